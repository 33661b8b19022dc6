"""Answers as files: those of each micro-batch once, and dead letters beside the matches."""

from __future__ import annotations

import io
import os
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

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
from spaseq.language import checked, prepare
from spaseq.language.syntax import Query
from spaseq.spark._forms import EXTENSIONS, Form, form_of, write_lines
from spaseq.spark._lines import BAD, LATE, MATCH

#: Files that do not count yet; readers of Hadoop's kind leave out what begins with a dot.
_DRAFT: Final = ".draft-"

_MATCHES: Final = "matches"
_LETTERS: Final = "letters"


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
    **trigger: Any,
) -> StreamingQuery | None:
    """Writes answers (see ``answers`` and ``run``) as files to a folder that every machine sees.

    ``form``: ``ndjson``, a match a line; for CONSTRUCT also ``nquads``, ``trig`` and ``messages`` (RDF
    Messages), which are event streams again; or ``parquet``: the answers, with ``kind`` as a partition, for
    ``expanded`` to be read by. ``letters``: where dead letters go, as NDJSON: the same folder unless given.
    Files are called ``matches-…`` and ``letters-…``, but those of parquet, which are Spark's own.

    Of a stream, gives the started query, with this ``checkpoint`` and Spark's ``trigger``. Its files come and
    stay once, whatever crashes; ``lastProgress.observedMetrics["answers"]`` counts ``matches``, ``late`` and
    ``bad``. What is no stream is written at once. Raises FormatError for a form that cannot hold the matches.
    """
    prepared = prepare(query) if isinstance(query, str) else query
    parquet = form == "parquet"
    if not parquet:
        form_of(form, prepared)
    elif letters is not None:
        raise EngineError("letters= is for files of matches: in parquet they are partitions of kind")
    if found.isStreaming and checkpoint is None:
        raise EngineError("a stream is written with a checkpoint: give checkpoint=")
    frame = counted(found) if found.isStreaming else found
    frame = frame.select("kind", "json")
    said = {"path": str(folder)}
    if not parquet:
        found.sparkSession.dataSource.register(_Answers)
        said |= {"query": str(prepared), "form": form, "letters": str(letters or folder)}
    name = "parquet" if parquet else _Answers.name()
    if not found.isStreaming:
        batch = frame.write.format(name).options(**said).mode("append")
        (batch.partitionBy("kind") if parquet else batch).save()
        return None
    stream = frame.writeStream.format(name).options(**said, checkpointLocation=str(checkpoint))
    stream = stream.partitionBy("kind") if parquet else stream
    return (stream.trigger(**trigger) if trigger else stream).start()


def counted(found: DataFrame) -> DataFrame:
    """Answers whose matches, late and bad events are counted, as the observed metrics ``answers``."""
    kinds = {"matches": MATCH, "late": LATE, "bad": BAD}
    counts = [F.count_if(F.col("kind") == kind).alias(name) for name, kind in kinds.items()]
    return found.observe("answers", *counts)


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

    A micro-batch that comes again after a crash takes the place of what it had left.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        self._text = options["query"]
        self._form = Form(options["form"])
        self._folder = Path(options["path"])
        self._letters = Path(options["letters"])

    @property
    def _query(self) -> Query:
        return checked(self._text)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """What a task does."""
        lines: dict[str, list[str]] = {_MATCHES: [], _LETTERS: []}
        for batch in iterator:
            pairs = zip(batch.column("kind").to_pylist(), batch.column("json").to_pylist(), strict=True)
            for kind, line in pairs:
                lines[_MATCHES if kind == MATCH else _LETTERS].append(line)
        return _Written(tuple((what, self._draft(what, some)) for what, some in lines.items() if some))

    def commit(
        self,
        messages: Sequence[WriterCommitMessage | None],
        batchId: int | None = None,  # noqa: N803  # Spark's
    ) -> None:
        """What the driver does when all tasks are done; without a number, everything is new."""
        drafts = [draft for message in messages if isinstance(message, _Written) for draft in message.drafts]
        name = uuid.uuid4().hex if batchId is None else f"{batchId:08}"
        for what in (_MATCHES, _LETTERS):
            folder = self._place(what)
            stale = set(folder.glob(f"{what}-{name}-*"))
            mine = [Path(path) for kind, path in drafts if kind == what]
            for number, draft in enumerate(mine):
                final = folder / f"{what}-{name}-{number:04}.{self._extension(what)}"
                draft.replace(final)
                stale.discard(final)
            for left in (*stale, *folder.glob(f"{_DRAFT}{what}-*")):
                left.unlink(missing_ok=True)

    def abort(
        self,
        messages: Sequence[WriterCommitMessage | None],
        batchId: int | None = None,  # noqa: ARG002, N803  # Spark's
    ) -> None:
        """What the driver does when a task has failed."""
        for message in messages:
            if isinstance(message, _Written):
                for _, path in message.drafts:
                    Path(path).unlink(missing_ok=True)

    def _draft(self, what: str, lines: Iterable[str]) -> str:
        folder = self._place(what)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{_DRAFT}{what}-{uuid.uuid4().hex}"
        out = io.BytesIO()
        write_lines(lines, self._form if what == _MATCHES else Form.NDJSON, self._query, out)
        with path.open("wb") as file:
            file.write(out.getbuffer())
            file.flush()
            os.fsync(file.fileno())
        return str(path)

    def _place(self, what: str) -> Path:
        return self._folder if what == _MATCHES else self._letters

    def _extension(self, what: str) -> str:
        return EXTENSIONS[self._form if what == _MATCHES else Form.NDJSON]
