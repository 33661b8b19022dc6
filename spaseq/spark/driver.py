"""The other way to run a stream: the stateless stage on the cluster, the matching in the driver.

For queries without a key to spread them, and for streams that one process can match. The watermark needs no
further micro-batch, and nothing is shuffled. State and output are committed together: one file, named by the
number of the micro-batch, has its answers and the state after it. The file is written before the answers are
handed to the sink. A micro-batch that Spark repeats after a crash finds its file, and hands the same answers
to the sink under the same number.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from spaseq.chunks import unpacking
from spaseq.errors import EngineError
from spaseq.language import as_query
from spaseq.language.syntax import Query
from spaseq.spark._checkpoints import committing, newest_commit
from spaseq.spark._jobs import milliseconds_of
from spaseq.spark.queries import Prepared
from spaseq.spark.sinks._lines import BAD, LATE, MATCH, letter_line
from spaseq.spark.sinks.files import (
    EXTENSIONS,
    LETTERS,
    MATCHES,
    OutputForm,
    Outputs,
    form_of,
    write_lines,
)
from spaseq.spark.source._files import delete, info, join, normal, opened, write
from spaseq.spark.source._told import telling_failed
from spaseq.spark.stages._bucket import Bucket, State
from spaseq.spark.stages._job import END_MS, canonical, reached
from spaseq.spark.stages._late import late_among

#: Takes a micro-batch's number and its answers (kind and line, see ``queries.answers``). After a crash, the
#: same number may come twice, with the same answers.
Sink = Callable[[int, Sequence[tuple[str, str]]], None]

#: How many micro-batches' commits are kept.
_KEPT: Final = 3

_NEVER: Final = -END_MS


def drive(plan: Prepared, checkpoint: str | Path, sink: Sink, **trigger: Any) -> StreamingQuery:
    """Start a stream that ``queries.planned`` has planned, and return its query.

    ``checkpoint``: the one of the plan. ``sink``: called with the answers of each micro-batch. ``trigger``:
    arguments of Spark's own ``trigger``. Raises ValueError if the plan has no checkpoint.
    """
    if not all(rows.isStreaming for rows in plan.between):
        raise ValueError("only a stream can be driven: plan it with a checkpoint")
    if isinstance(sink, FolderSink):
        sink.places.claim(checkpoint)
    driver = _Driver(plan, join(normal(checkpoint), "driver"), sink)
    rows = plan.between[0]
    for other in plan.between[1:]:
        rows = rows.union(other)
    writer = rows.writeStream.foreachBatch(driver.take).option("checkpointLocation", str(checkpoint))
    with committing(rows.sparkSession, checkpoint):
        return (writer.trigger(**trigger) if trigger else writer).start()


def folder_sink(
    folder: str | Path,
    query: Query | str,
    form: str = "ndjson",
    *,
    letters: str | Path | None = None,
) -> FolderSink:
    """Return a sink for ``drive`` that writes the answers of each micro-batch as files in a folder.

    Matches go to ``matches-QUERY-<number>…``, dead letters to ``letters-QUERY-…``. See ``save`` for ``form``,
    ``letters``, QUERY, and which files belong to which query.
    """
    prepared = as_query(query)
    places = Outputs(canonical(prepared), normal(folder), normal(letters or folder))
    return FolderSink(places, prepared, form_of(form, prepared))


@dataclass(frozen=True, slots=True)
class FolderSink:
    """The ``Sink`` that ``folder_sink`` returns."""

    places: Outputs
    query: Query
    form: OutputForm

    def __call__(self, number: int, answers: Sequence[tuple[str, str]]) -> None:
        for what, form in ((MATCHES, self.form), (LETTERS, OutputForm.NDJSON)):
            kinds = (MATCH,) if what == MATCHES else (LATE, BAD)
            lines = [line for kind, line in answers if kind in kinds]
            if lines:
                out = io.BytesIO()
                write_lines(lines, form, self.query, out)
                name = f"{self.places.prefix(what)}{number:08}.{EXTENSIONS[form]}"
                write(join(self.places.of(what), name), out.getbuffer())


class _Driver:
    """The state of a driven query, and its micro-batches."""

    def __init__(self, plan: Prepared, folder: str, sink: Sink) -> None:
        self._job = plan.job
        self._failed = plan.failed
        self._lateness = milliseconds_of(plan.settings.allowed, plan.job.clock)
        self._sources = len(plan.between)
        self._folder = folder
        self._sink = sink
        self._number: int | None = None
        self._bucket = Bucket(self._job)
        self._newest: dict[int, int] = {}
        self._is_over = False
        if (commit := newest_commit(folder)) is not None:
            self._load(int(commit.rpartition("/")[2].removesuffix(".commit")))

    def take(self, rows: DataFrame, number: int) -> None:
        """Process a micro-batch, as Spark's ``foreachBatch`` calls it."""
        done = self._path(number)
        if info(done) is not None:
            header = self._load(number)
            self._sink(number, [(kind, line) for kind, line in header["answers"]])
            return
        if self._number != number - 1:
            if number:
                self._load(number - 1)
            else:
                self._bucket, self._newest = Bucket(self._job), {}
        answers = self._process(rows)
        beside = {"answers": answers, "newest": list(self._newest.items())}
        write(done, self._bucket.state().packed(beside))
        # A later run continues ended streams from their state.
        self._number = None if self._is_over else number
        self._sink(number, answers)
        delete(self._path(number - _KEPT))

    def _process(self, rows: DataFrame) -> list[tuple[str, str]]:
        """Add the chunks, and advance to the watermark after them."""
        answers: list[tuple[str, str]] = []
        before = self._bucket.reached
        ended: set[int] = set()
        self._is_over = False
        table = rows.toArrow()
        # As integers: the end of a stream may lie beyond the last year of a datetime.
        times = table.column("at").cast(pa.int64()).to_pylist()
        for row, at in zip(table.drop_columns("at").to_pylist(), times, strict=True):
            if row["letter"] is not None:
                answers.append((BAD, row["letter"]))
            if row["chunk"] is not None:
                late = self._bucket.add(row["chunk"], before)
                answers += [(LATE, letter_line(letter, self._job.topics)) for letter in late]
            if row["over"] is not None:
                answers += [
                    (LATE, letter_line(letter, self._job.topics))
                    for letter in late_among(row["over"], before)
                ]
            self._is_over |= row["ends"]
            if at is not None and at // 1000 >= END_MS:
                ended.add(row["source"])
            elif at is not None:
                newest = self._newest.get(row["source"], _NEVER)
                self._newest[row["source"]] = max(newest, at // 1000)
        found = self._bucket.close() if self._is_over else self._moved(ended)
        answers += [(MATCH, line) for line in found]
        return answers + telling_failed(list(self._bucket.notices()), self._failed)

    def _moved(self, ended: set[int]) -> Iterable[str]:
        """Move to the watermark: that of the slowest stream that has not ended."""
        going = set(range(self._sources)) - ended
        if not going <= self._newest.keys():
            return ()
        watermark = min(self._newest[source] for source in going) - self._lateness
        return self._bucket.release(reached(watermark, self._job.clock))

    def _load(self, number: int) -> Mapping[str, Any]:
        """Load the state after a micro-batch."""
        path = self._path(number)
        with opened(path) as file:
            data = file.read()
        try:
            state, beside = State.unpacked(data)
            with unpacking():
                self._newest = dict(beside["newest"])
            self._bucket = Bucket.from_state(state, self._job)
        except EngineError as error:
            raise EngineError(f"{path}: {error}") from error
        self._number = number
        return beside

    def _path(self, number: int) -> str:
        return join(self._folder, f"{number}.commit")
