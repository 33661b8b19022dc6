"""The stages as Spark calls them: on Arrow batches, and as a stateful processor.

Between the stages a row is a chunk: ``at`` is how far its stream has come (what watermarks are made of),
``begin`` the chunk's first time. A row without a chunk only says how far a stream has come, and by how many
events (``over``: the stamps of those that are in no chunk), or brings a dead letter.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Final

import pandas as pd
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle, TimerValues, ValueState

from spaseq.events import EARLIEST, EventBatch
from spaseq.sources import BadEvent
from spaseq.spark import _asking
from spaseq.spark._asking import asking_of
from spaseq.spark._blocks import read_row
from spaseq.spark._bucket import Bucket
from spaseq.spark._job import END_MS, Job, looks_back, milliseconds, pattern_of, reached
from spaseq.spark._lines import BAD, LATE, MATCH, letter_line
from spaseq.spark._passed_over import late_among
from spaseq.spark._rows import read_rows
from spaseq.spark._settle import settle
from spaseq.spark._stateless import Passed, stage_of
from spaseq.terms import Dictionary

BETWEEN: Final = (
    "at timestamp, bucket int, begin bigint, chunk binary, letter string, over binary, events bigint"
)
ANSWERS: Final = "kind string, line string"

_BETWEEN: Final = pa.schema(
    [
        ("at", pa.timestamp("us", tz="UTC")),
        ("bucket", pa.int32()),
        ("begin", pa.int64()),
        ("chunk", pa.binary()),
        ("letter", pa.string()),
        ("over", pa.binary()),
        ("events", pa.int64()),
    ]
)
_ANSWERS: Final = pa.schema([("kind", pa.string()), ("line", pa.string())])

#: An answer: its kind and its line.
Answer = tuple[str, str]

Batches = Iterable[pa.RecordBatch]


# --- the stateless stage, or the one before it if there is one ---------------------------------


def from_blocks(job: Job, lateness_ms: int) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
    """The stateless stage on the rows of ``_blocks``; or that of ``_asking``, if the job has one."""

    def stage(batches: Batches) -> Iterator[pa.RecordBatch]:
        ended = False

        def read(letters: list[BadEvent]) -> Iterator[EventBatch]:
            nonlocal ended
            for batch in batches:
                for row in batch.to_pylist():
                    if row["ended"]:
                        ended = True
                    else:
                        yield from read_row(row, _dictionary(job), letters)

        yield from _staged(job, read)
        if ended:
            yield _end(job, (END_MS + lateness_ms) * 1000)
        settle()

    return stage


def from_rows(job: Job) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
    """The same on rows of events, see ``_rows``."""

    def stage(batches: Batches) -> Iterator[pa.RecordBatch]:
        def read(letters: list[BadEvent]) -> Iterator[EventBatch]:
            for batch in batches:
                yield from read_rows(batch, _dictionary(job), letters)

        yield from _staged(job, read)
        settle()

    return stage


def _staged(job: Job, read: Callable[[list[BadEvent]], Iterator[EventBatch]]) -> Iterator[pa.RecordBatch]:
    letters: list[BadEvent] = []
    if job.joined is not None:
        task = TaskContext.get()
        number = 0 if task is None else task.partitionId()
        yield from _asking.records(job, asking_of(job).run(read(letters), letters), number)
        return
    for passed in stage_of(job).run(read(letters), letters):
        yield record(rows_of(job, passed))


def _dictionary(job: Job) -> Dictionary:
    """The dictionary of the stage that reads events."""
    return (stage_of(job) if job.joined is None else asking_of(job)).dictionary


def _end(job: Job, at: int) -> pa.RecordBatch:
    if job.joined is not None:
        return _asking.end(job, at)
    return record([(at, job.buckets[0], 0, None, None, None, 0)])


def rows_of(job: Job, passed: Passed) -> list[tuple[object, ...]]:
    """The rows of ``BETWEEN`` that tell what became of some events."""
    at = None if passed.newest is None else milliseconds(passed.newest, job.clock) * 1000
    rows: list[tuple[object, ...]] = [(at, job.buckets[0], 0, None, None, passed.over, passed.events)]
    rows += [(at, piece.bucket, piece.begin, piece.data, None, None, 0) for piece in passed.pieces]
    rows += [(at, job.buckets[0], 0, None, letter_line(letter), None, 0) for letter in passed.letters]
    return rows


def record(rows: list[tuple[object, ...]]) -> pa.RecordBatch:
    """Such rows, at least one, as Spark takes them."""
    columns = zip(*rows, strict=True)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, _BETWEEN, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=_BETWEEN)


# --- the stateful stage -----------------------------------------------------------------------


def all_at_once(job: Job) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
    """The stateful stage where everything is there: rows ordered by bucket and ``begin``.

    The ``begin`` of each row is a watermark, so only what overlaps in time is held.
    """

    def stage(batches: Batches) -> Iterator[pa.RecordBatch]:
        rows = (row for batch in batches for row in batch.to_pylist())
        for _, members in groupby(rows, key=lambda row: row["bucket"]):
            bucket = Bucket(job)
            for row in members:
                if row["letter"] is not None:
                    yield _answers([(BAD, row["letter"])])
                if row["chunk"] is not None:
                    found = [(MATCH, line) for line in bucket.release(row["begin"])]
                    bucket.add(row["chunk"], bucket.reached)
                    if found:
                        yield _answers(found)
            found = [(MATCH, line) for line in bucket.close()]
            if found:
                yield _answers(found)
        settle()

    return stage


def _answers(found: list[Answer]) -> pa.RecordBatch:
    kinds, lines = zip(*found, strict=True)
    return pa.RecordBatch.from_arrays([pa.array(kinds), pa.array(lines)], schema=_ANSWERS)


@dataclass(slots=True)
class _Warm:
    """A bucket as it was when a state was stored, in the process that stored it."""

    token: str
    bucket: Bucket


#: The buckets of this process, by job and number. Spark reuses its Python processes.
_warm: dict[tuple[Job, int], _Warm] = {}


class Buckets:
    """The buckets of a stream in one process, as ``BucketProcessor`` hands them on.

    Stored are the bucket's state and a token of it. A process that still has the bucket of that token goes
    on with it; any other reads the state.
    """

    def __init__(
        self, job: Job, handle: StatefulProcessorHandle, token: ValueState, state: ValueState
    ) -> None:
        self._job = job
        self._handle = handle
        self._token = token
        self._state = state
        self._trails = looks_back(pattern_of(job.text)) > 1

    def take(self, number: int, rows: Iterable[pd.DataFrame], timers: TimerValues) -> pd.DataFrame:
        """The rows of a bucket in a micro-batch; its answers."""
        chunks: list[bytes] = []
        found: list[Answer] = []
        watermark = self._watermark(timers)
        for frame in rows:
            found += [(BAD, letter) for letter in frame["letter"] if letter is not None]
            chunks += [bytes(chunk) for chunk in frame["chunk"] if chunk is not None]
            for over in frame["over"].dropna():
                found += [(LATE, letter_line(letter)) for letter in late_among(bytes(over), watermark)]
        if chunks:
            bucket = self._load(number)
            for chunk in chunks:
                found += [(LATE, letter_line(letter)) for letter in bucket.add(chunk, watermark)]
            found += self._advance(bucket, watermark)
            for timer in list(self._handle.listTimers()):
                self._handle.deleteTimer(timer)
            self._store(number, bucket, timers.getCurrentWatermarkInMs())
        return _frame(found)

    def move(self, number: int, timers: TimerValues) -> pd.DataFrame:
        """Moves a bucket to the watermark; its answers."""
        bucket = self._load(number)
        found = self._advance(bucket, self._watermark(timers))
        self._store(number, bucket, timers.getCurrentWatermarkInMs())
        return _frame(found)

    def _watermark(self, timers: TimerValues) -> int:
        """The least time that may still come; Spark says 0 as long as it knows nothing."""
        watermark = timers.getCurrentWatermarkInMs()
        return reached(watermark, self._job.clock) if watermark > 0 else EARLIEST

    def _advance(self, bucket: Bucket, watermark: int) -> list[Answer]:
        is_over = watermark >= reached(END_MS, self._job.clock)
        lines = bucket.close() if is_over else bucket.release(watermark)
        return [(MATCH, line) for line in lines]

    def _load(self, number: int) -> Bucket:
        token = self._token.get()
        if token is None:
            return Bucket(self._job)
        warm = _warm.pop(self._place(number), None)
        if warm is not None and warm.token == token[0]:
            return warm.bucket
        state = self._state.get()
        assert state is not None  # it is stored with the token
        return Bucket.from_bytes(bytes(state[0]), self._job)

    def _store(self, number: int, bucket: Bucket, watermark_ms: int) -> None:
        token = uuid.uuid4().hex
        self._token.update((token,))
        self._state.update((bucket.to_bytes(),))
        _warm[self._place(number)] = _Warm(token, bucket)
        held = bucket.held
        if held is not None:
            self._handle.registerTimer(max(watermark_ms, milliseconds(held, self._job.clock)) + 1)
        elif self._trails and bucket.waits:
            self._handle.registerTimer(watermark_ms + 1)

    def _place(self, number: int) -> tuple[Job, int]:
        return replace(self._job, kb=None), number


def _frame(found: list[Answer]) -> pd.DataFrame:
    return pd.DataFrame(found, columns=["kind", "line"], dtype="object")


__all__ = ["ANSWERS", "BETWEEN", "Buckets", "all_at_once", "from_blocks", "from_rows"]
