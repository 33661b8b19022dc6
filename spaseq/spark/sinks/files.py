"""Answers as files: those of each micro-batch once, and dead letters beside the matches."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import IO, Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # Spark's own name for it
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import StructType

from spaseq.errors import EngineError
from spaseq.language import as_query
from spaseq.language.reading.parser import parse
from spaseq.language.syntax import Query
from spaseq.spark._checkpoints import JOB, committing, require_begun_by
from spaseq.spark.sinks._lines import BAD, LATE, MATCH, SHED
from spaseq.spark.sinks._outputs import (
    EXTENSIONS,
    LETTERS,
    MATCHES,
    OutputForm,
    Outputs,
    form_of,
    write_lines,
)
from spaseq.spark.source._files import DRAFT, delete, drafted, join, move, normal
from spaseq.spark.stages._job import canonical

#: What becomes of what a batch finds there, as Spark calls it.
_MODES: Final = ("error", "append", "overwrite")


@dataclass(frozen=True)
class _Written(WriterCommitMessage):
    """The drafts that a task has written: what they are, and where."""

    drafts: tuple[tuple[str, str], ...]


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
    """Writes answers (see ``answers`` and ``run``) as files to a folder that every machine sees.

    ``form``: ``ndjson``, a match a line; for CONSTRUCT also ``nquads``, ``trig`` and ``messages`` (RDF
    Messages), which are event streams again; or ``parquet``: the answers, with ``kind`` as a partition, for
    ``expanded`` to be read by. ``folder`` and ``letters``, where dead letters go as NDJSON (the same folder
    unless given): paths, ``file:`` or ``s3a:``. Files are called ``matches-QUERY-…`` and ``letters-QUERY-…``,
    QUERY being a hash of the query, so that several may share a folder; those of parquet are Spark's own.

    Of a stream, gives the started query, with this ``checkpoint`` and Spark's ``trigger``. Its files come and
    stay once, whatever crashes; ``lastProgress.observedMetrics["answers"]`` counts ``matches``, ``late``,
    ``bad`` and ``shed``. The same query with another checkpoint must go to another folder: EngineError.

    What is no stream is written at once. ``mode``: if there are files of this query already, that is an
    EngineError (``error``), they stay (``append``), or give way to the new ones (``overwrite``). Raises
    FormatError for a form that cannot hold the matches.
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
    # What was shed is counted, and no letter.
    frame = frame.where(F.col("kind") != SHED).select("kind", "json")
    if parquet:
        with committing(found.sparkSession, checkpoint or ""):
            return _as_parquet(frame, str(folder), checkpoint, mode, trigger)
    found.sparkSession.dataSource.register(_Answers)
    places = Outputs(canonical(prepared), normal(folder), normal(letters or folder))
    said = {"path": places.folder, "query": places.text, "form": form, "letters": places.letters}
    if not found.isStreaming:
        places.require(mode)
        frame.write.format(_Answers.name()).options(**said).mode("append").option("replaces", mode).save()
        return None
    assert checkpoint is not None
    places.claim(checkpoint)
    stream = frame.writeStream.format(_Answers.name()).options(**said, checkpointLocation=str(checkpoint))
    with committing(found.sparkSession, checkpoint):
        return (stream.trigger(**trigger) if trigger else stream).start()


def _as_parquet(
    frame: DataFrame, folder: str, checkpoint: str | Path | None, mode: str, trigger: dict[str, Any]
) -> StreamingQuery | None:
    """By Spark's own writers."""
    if not frame.isStreaming:
        frame.write.format("parquet").partitionBy("kind").mode(mode).save(folder)
        return None
    stream = frame.writeStream.format("parquet").option("path", folder).partitionBy("kind")
    stream = stream.option("checkpointLocation", str(checkpoint))
    return (stream.trigger(**trigger) if trigger else stream).start()


def counted(found: DataFrame) -> DataFrame:
    """Answers whose matches, late and bad events are counted, as the observed metrics ``answers``.

    So are, as ``shed``, the partial matches that buckets gave up to keep a bound.
    """
    kinds = {"matches": MATCH, "late": LATE, "bad": BAD}
    counts = [F.count_if(F.col("kind") == kind).alias(name) for name, kind in kinds.items()]
    gone = F.get_json_object("json", "$.partial_matches").cast("bigint")
    shed = F.coalesce(F.sum(F.when(F.col("kind") == SHED, gone)), F.lit(0)).alias("shed")
    return found.observe("answers", *counts, shed)


class _Answers(DataSource):
    """What ``save`` writes to, on Spark's side."""

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "spaseq-answers"

    def writer(self, schema: StructType, overwrite: bool) -> AnswersWriter:  # noqa: ARG002  # Spark's
        """For what is there."""
        return AnswersWriter(self.options)

    def streamWriter(self, schema: StructType, overwrite: bool) -> AnswersWriter:  # noqa: ARG002, N802  # Spark's
        """For a stream."""
        return AnswersWriter(self.options)


class AnswersWriter(DataSourceArrowWriter, DataSourceStreamArrowWriter):
    """A task writes drafts; the driver gives them their names, with the number of the micro-batch in them.

    A micro-batch that comes again after a crash takes the place of what it had left. Files of other queries
    are left alone.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        self._places = Outputs(options["query"], options["path"], options["letters"])
        self._form = OutputForm(options["form"])
        self._replaces = options.get("replaces") == "overwrite"

    @property
    def _query(self) -> Query:
        # Not checked: a worker that only writes need not know the functions of the user's.
        return parse(self._places.text)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """What a task does: lines are written as they come, so that no more of them are held than a batch."""
        drafts: list[tuple[str, str]] = []
        with ExitStack() as open_files:

            def opened(what: str) -> IO[bytes]:
                name = f"{DRAFT}{self._places.prefix(what)}{uuid.uuid4().hex}"
                drafts.append((what, join(self._places.of(what), name)))
                return open_files.enter_context(drafted(drafts[-1][1]))

            def matches() -> Iterator[str]:
                letters: IO[bytes] | None = None
                for batch in iterator:
                    columns = (batch.column(name).to_pylist() for name in ("kind", "json"))
                    for kind, line in zip(*columns, strict=True):
                        if kind == MATCH:
                            yield line
                        else:
                            letters = letters or opened(LETTERS)
                            letters.write(f"{line}\n".encode())

            lines = matches()
            for first in lines:
                write_lines(chain((first,), lines), self._form, self._query, opened(MATCHES))
        return _Written(tuple(drafts))

    def commit(
        self,
        messages: Sequence[WriterCommitMessage | None],
        batchId: int | None = None,  # noqa: N803  # Spark's
    ) -> None:
        """What the driver does when all tasks are done; without a number, everything is new."""
        drafts = [draft for message in messages if isinstance(message, _Written) for draft in message.drafts]
        name = uuid.uuid4().hex if batchId is None else f"{batchId:08}"
        for what in (MATCHES, LETTERS):
            begin = f"{self._places.prefix(what)}{name}-"
            stale = {
                path
                for path in self._places.files(what)
                if (batchId is None and self._replaces) or path.rpartition("/")[2].startswith(begin)
            }
            mine = [path for kind, path in drafts if kind == what]
            for number, draft in enumerate(mine):
                final = join(self._places.of(what), f"{begin}{number:04}.{self._extension(what)}")
                move(draft, final)
                stale.discard(final)
            # Of a batch, drafts of others may still be written.
            left = self._places.files(what, DRAFT) if batchId is not None else ()
            for path in (*stale, *left):
                delete(path)

    def abort(
        self,
        messages: Sequence[WriterCommitMessage | None],
        batchId: int | None = None,  # noqa: ARG002, N803  # Spark's
    ) -> None:
        """What the driver does when a task has failed."""
        for message in messages:
            if isinstance(message, _Written):
                for _, path in message.drafts:
                    delete(path)

    def _extension(self, what: str) -> str:
        return EXTENSIONS[self._form if what == MATCHES else OutputForm.NDJSON]
