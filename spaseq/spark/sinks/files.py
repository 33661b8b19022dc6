"""Answers as files: each micro-batch's exactly once, dead letters beside them, and their owners."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from enum import StrEnum
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from typing import IO, Any, Final

import pyarrow as pa
from pyoxigraph import BlankNode
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # Spark's own name for it
from pyspark.sql.streaming.query import StreamingQuery

from spaseq.errors import EngineError, FormatError, SourceError
from spaseq.language import as_query
from spaseq.language.reading.parser import parse
from spaseq.language.syntax import Construct, Query
from spaseq.results import writer
from spaseq.results.writers._graphs import event_quads
from spaseq.sources import write_messages
from spaseq.spark._checkpoints import JOB, committing, require_begun_by
from spaseq.spark.sinks._lines import BAD, LATE, MATCH, SHED, match_of
from spaseq.spark.source._blocks import arrow_schema
from spaseq.spark.source._files import DRAFT, delete, drafted, info, join, move, names, normal, opened, write
from spaseq.spark.stages._job import canonical

#: Values of ``mode``, as in Spark: what happens to existing files of the query.
_MODES: Final = ("error", "append", "overwrite")

_DRAFTS: Final = "what string, path string"


def save(
    found: DataFrame,
    query: Query | str,
    folder: str | Path,
    form: str = "ndjson",
    *,
    letters: str | Path | None = None,
    checkpoint: str | Path | None = None,
    mode: str = "error",
    **trigger: Any,
) -> StreamingQuery | None:
    """Write answers (see ``answers`` and ``run``) as files to a folder that every machine sees.

    ``form``: ``ndjson``, a match per line; for CONSTRUCT also ``nquads``, ``trig`` and ``messages`` (RDF
    Messages), which can be read as event streams; or ``parquet``: the answers, partitioned by ``kind``, as
    ``expanded`` reads them. ``folder``: where matches go. ``letters``: where dead letters go as NDJSON, by
    default the same folder. Both are paths, ``file:`` or ``s3a:``. Files are ``matches-QUERY-…`` and
    ``letters-QUERY-…``: QUERY is a hash, so several queries may share a folder. Parquet has Spark's names.

    For a stream, ``save`` starts and returns the streaming query, with this ``checkpoint`` and Spark's
    ``trigger``. Each answer is written once, also after a crash. ``lastProgress.observedMetrics["answers"]``
    counts ``matches``, ``late``, ``bad`` and ``shed``. The same query with another checkpoint needs another
    folder, or raises EngineError.

    A batch is written at once. ``mode`` says what happens if there are files of this query already: ``error``
    raises EngineError, ``append`` keeps them, ``overwrite`` replaces them. Raises FormatError for a form that
    cannot hold the matches.
    """
    prepared = as_query(query)
    parquet = form == "parquet"
    if not parquet:
        form_of(form, prepared)
    elif letters is not None:
        raise EngineError("letters= is for files of matches: in parquet they are partitions of kind")
    if found.isStreaming and checkpoint is None:
        raise EngineError("a stream is written with a checkpoint: give checkpoint=")
    if mode not in _MODES:
        raise EngineError(f"mode={mode!r} is none of {', '.join(_MODES)}")
    if found.isStreaming and mode != "error":
        raise EngineError("mode= is for what is written at once: a stream goes on where its checkpoint is")
    begun = found.schema["json"].metadata.get(JOB)
    if begun is not None and checkpoint is not None:
        require_begun_by(json.loads(begun), found.sparkSession, checkpoint)
    frame = counted(found) if found.isStreaming else found
    # Rows about shedding are counted only; they are not dead letters.
    frame = frame.where(F.col("kind") != SHED).select("kind", "json")
    if parquet:
        with committing(found.sparkSession, checkpoint or ""):
            return _as_parquet(frame, str(folder), checkpoint, mode, trigger)
    places = Outputs(canonical(prepared), normal(folder), normal(letters or folder))
    files = AnswerFiles(places, OutputForm(form))
    if not found.isStreaming:
        places.require(mode)
        files.write(frame, replaces=mode == "overwrite")
        return None
    assert checkpoint is not None
    places.claim(checkpoint)
    stream = frame.writeStream.foreachBatch(files.write).option("checkpointLocation", str(checkpoint))
    with committing(found.sparkSession, checkpoint):
        return (stream.trigger(**trigger) if trigger else stream).start()


def _as_parquet(
    frame: DataFrame, folder: str, checkpoint: str | Path | None, mode: str, trigger: dict[str, Any]
) -> StreamingQuery | None:
    """Write the answers with Spark's own writers."""
    if not frame.isStreaming:
        frame.write.format("parquet").partitionBy("kind").mode(mode).save(folder)
        return None
    stream = frame.writeStream.format("parquet").option("path", folder).partitionBy("kind")
    stream = stream.option("checkpointLocation", str(checkpoint))
    return (stream.trigger(**trigger) if trigger else stream).start()


def counted(found: DataFrame, name: str = "answers") -> DataFrame:
    """Return answers with observed metrics called ``name``: counts of matches, late and bad events.

    ``shed`` counts the partial matches that buckets shed to keep a bound.
    """
    kinds = {"matches": MATCH, "late": LATE, "bad": BAD}
    counts = [F.count_if(F.col("kind") == kind).alias(name) for name, kind in kinds.items()]
    gone = F.get_json_object("json", "$.partial_matches").cast("bigint")
    shed = F.coalesce(F.sum(F.when(F.col("kind") == SHED, gone)), F.lit(0)).alias("shed")
    return found.observe(name, *counts, shed)


@dataclass(frozen=True, slots=True)
class AnswerFiles:
    """The files of a query's answers: tasks write drafts, and the driver renames them.

    The new names have the number of the micro-batch. A micro-batch that is repeated after a crash replaces
    the files of its first attempt. Files of other queries stay.
    """

    places: Outputs
    form: OutputForm

    def write(self, answers: DataFrame, number: int | None = None, *, replaces: bool = False) -> None:
        """Write the answers of a micro-batch by its number, or those of a batch."""
        run = uuid.uuid4().hex

        def tasks(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            yield pa.RecordBatch.from_pylist(self.drafts(batches, run), schema=arrow_schema(_DRAFTS))

        try:
            drafts = answers.mapInArrow(tasks, _DRAFTS).collect()
            self.commit([(row.what, row.path) for row in drafts], number, replaces=replaces)
        finally:
            # Drafts of failed tasks; for a stream, also those of earlier runs.
            for what in (MATCHES, LETTERS):
                for path in self.places.files(what, DRAFT):
                    if number is not None or run in path:
                        delete(path)

    def drafts(self, batches: Iterable[pa.RecordBatch], run: str) -> list[dict[str, str]]:
        """Write a task's answers to drafts, and return which drafts it has written."""
        drafts: list[dict[str, str]] = []
        with ExitStack() as open_files:

            def opened(what: str) -> IO[bytes]:
                name = f"{DRAFT}{self.places.prefix(what)}{run}-{uuid.uuid4().hex}"
                drafts.append({"what": what, "path": join(self.places.of(what), name)})
                return open_files.enter_context(drafted(drafts[-1]["path"]))

            def matches() -> Iterator[str]:
                letters: IO[bytes] | None = None
                for batch in batches:
                    columns = (batch.column(name).to_pylist() for name in ("kind", "json"))
                    for kind, line in zip(*columns, strict=True):
                        if kind == MATCH:
                            yield line
                        else:
                            letters = letters or opened(LETTERS)
                            letters.write(f"{line}\n".encode())

            lines = matches()
            for first in lines:
                # Not checked: a worker that only writes need not know the user's functions.
                query = parse(self.places.text)
                write_lines(chain((first,), lines), self.form, query, opened(MATCHES))
        return drafts

    def commit(self, drafts: list[tuple[str, str]], number: int | None, *, replaces: bool = False) -> None:
        """Rename the drafts, and delete the files that they replace."""
        name = uuid.uuid4().hex if number is None else f"{number:08}"
        for what in (MATCHES, LETTERS):
            begin = f"{self.places.prefix(what)}{name}-"
            known = self.places.files(what)
            stale = {path for path in known if replaces or path.rpartition("/")[2].startswith(begin)}
            extension = EXTENSIONS[self.form if what == MATCHES else OutputForm.NDJSON]
            mine = [path for kind, path in drafts if kind == what]
            for place, draft in enumerate(mine):
                final = join(self.places.of(what), f"{begin}{place:04}.{extension}")
                move(draft, final)
                stale.discard(final)
            for path in stale:
                delete(path)


# --- formats, and which query owns which files of a folder ---------------------------------------

#: What files of answers hold, and what their names begin with.
MATCHES: Final = "matches"
LETTERS: Final = "letters"


@dataclass(frozen=True, slots=True)
class Outputs:
    """Where a query's answers go: normal locations (see ``_files``) for its matches and its dead letters."""

    text: str
    folder: str
    letters: str

    @property
    def query(self) -> str:
        """The hash that identifies the query in file names."""
        return blake2b(self.text.encode(), digest_size=6).hexdigest()

    def of(self, what: str) -> str:
        """Return the folder of matches or letters."""
        return self.folder if what == MATCHES else self.letters

    def prefix(self, what: str) -> str:
        """Return the beginning of the files' names."""
        return f"{what}-{self.query}-"

    def files(self, what: str, begin: str = "") -> list[str]:
        """Return the query's files with names that begin with ``begin`` and the prefix."""
        prefix = begin + self.prefix(what)
        return [path for path in names(self.of(what)) if path.rpartition("/")[2].startswith(prefix)]

    def require(self, mode: str) -> None:
        """Raise EngineError if a batch must not be written here."""
        for folder in self._folders:
            owner = self._owner(folder)
            if owner is not None:
                raise EngineError(
                    f"{folder} is where this query writes as a stream, with the checkpoint {owner}"
                )
        if mode == "error" and self._is_there:
            raise EngineError(
                f"{self.folder} has answers of this query: give another folder, or mode= append or overwrite"
            )

    def claim(self, checkpoint: str | Path) -> None:
        """Claim the folders for a stream with this checkpoint.

        Raises EngineError if another checkpoint owns a folder, or if there are files of which the stream
        would not know.
        """
        try:
            known = normal(checkpoint)
            is_begun = next(names(join(known, "offsets")), None) is not None
        except SourceError:  # on a file system that only Spark knows
            known, is_begun = str(checkpoint), True
        owners = {folder: self._owner(folder) for folder in self._folders}
        for folder, owner in owners.items():
            if owner not in (None, known):
                raise EngineError(
                    f"{folder} is where this query writes with checkpoint {owner}: go on with that one, "
                    "or give another folder"
                )
        if self._is_there and (None in owners.values() or not is_begun):
            raise EngineError(
                f"{self.folder} has answers of this query that this checkpoint has not made: "
                "give another folder"
            )
        for folder in self._folders:
            write(self._note(folder), known.encode())

    @property
    def _folders(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((self.folder, self.letters)))

    @property
    def _is_there(self) -> bool:
        return any(self.files(what) for what in (MATCHES, LETTERS))

    def _note(self, folder: str) -> str:
        return join(folder, f".writer-{self.query}")

    def _owner(self, folder: str) -> str | None:
        if info(self._note(folder)) is None:
            return None
        with opened(self._note(folder)) as file:
            return file.read().decode()


class OutputForm(StrEnum):
    """What a file of matches contains: a line of JSON for each, or the events that CONSTRUCT makes of
    them.
    """

    NDJSON = "ndjson"
    NQUADS = "nquads"
    TRIG = "trig"
    MESSAGES = "messages"


#: The ending of file names; readers take the format from it.
EXTENSIONS: Final = {
    OutputForm.NDJSON: "ndjson",
    OutputForm.NQUADS: "nq",
    OutputForm.TRIG: "trig",
    OutputForm.MESSAGES: "messages",
}


def form_of(name: str, query: Query) -> OutputForm:
    """Return the form of that name. Raises FormatError for an unknown form, and for a form of graphs unless
    the query makes graphs.
    """
    if name not in tuple(OutputForm):
        raise FormatError(
            f"unknown format {name!r} of files of matches: known are {', '.join(OutputForm)}, parquet"
        )
    form = OutputForm(name)
    if form is not OutputForm.NDJSON and not isinstance(query.form, Construct):
        raise FormatError(f"{form} holds graphs, which only CONSTRUCT makes: use {OutputForm.NDJSON}")
    return form


def write_lines(lines: Iterable[str], form: OutputForm, query: Query | None, out: IO[bytes]) -> None:
    """Write the matches of some lines to a file of this form. ``query`` is not needed for NDJSON and dead
    letters.
    """
    if form is OutputForm.NDJSON or query is None:
        out.writelines(f"{line}\n".encode() for line in lines)
    elif form is OutputForm.MESSAGES:
        found = enumerate((match_of(line, query) for line in lines), 1)
        # In TriG, which readers expect of a file of that name.
        write_messages((event_quads(match, BlankNode(f"match{n}")) for n, match in found), out, "trig")
    else:
        with writer(form, query, out) as writing:
            for line in lines:
                writing.match(match_of(line, query))
