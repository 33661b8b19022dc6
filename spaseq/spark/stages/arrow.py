"""The stages as Spark calls them: on Arrow batches, and as a stateful processor.

A row between the stages is a chunk: ``at`` is the progress of its stream, from which watermarks are made, and
``begin`` the chunk's first time. A row without a chunk has one of three contents: the progress of a stream
with the stamps of its events in no chunk (``over``), a dead letter, or the end of all streams (``ends``). The
last goes to every bucket.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark import TaskContext
from pyspark.accumulators import Accumulator

from spaseq.chunks import extent
from spaseq.errors import LimitError
from spaseq.events import EARLIEST, EventBatch
from spaseq.sources import BadEvent
from spaseq.spark._workers import freeze_worker
from spaseq.spark.background import _asking
from spaseq.spark.background._asking import Asking
from spaseq.spark.background._background import Local
from spaseq.spark.sinks._lines import BAD, LATE, MATCH, letter_line
from spaseq.spark.source._blocks import ALL, arrow_schema, read_row
from spaseq.spark.source._rows import Reading, read_rows
from spaseq.spark.source._told import Stage, Told, telling_failed, telling_shed
from spaseq.spark.stages._bucket import Bucket, State
from spaseq.spark.stages._job import END_MS, Job, looks_back, milliseconds, reached
from spaseq.spark.stages._keepers import Answer, BucketStep, Done, blocks, take
from spaseq.spark.stages._late import late_among
from spaseq.spark.stages._stateless import Passed, Stateless, stage_of
from spaseq.terms.dictionary import Dictionary

if TYPE_CHECKING:
    from pyspark.sql.streaming.stateful_processor import (
        MapState,
        StatefulProcessorHandle,
        TimerValues,
        ValueState,
    )

BETWEEN: Final = (
    "at timestamp, bucket int, begin bigint, chunk binary, letter string, over binary, ends boolean, "
    "events bigint"
)
ANSWERS: Final = "kind string, line string"

#: The same columns, with the end of each match as its event time.
TIMED_ANSWERS: Final = f"{ANSWERS}, end timestamp"

#: The columns of ``counts_at_once``.
COUNTS: Final = "part string, what string, count bigint"

_BETWEEN: Final = arrow_schema(BETWEEN)
_COUNTS: Final = arrow_schema(COUNTS)
_ANSWERS: Final = arrow_schema(ANSWERS)

Batches = Iterable[pa.RecordBatch]


# --- the stateless stage, or the one before it if there is one ---------------------------------


def from_blocks(
    job: Job,
    lateness_ms: int,
    told: Accumulator[Told] | None = None,
    failed: Accumulator[Told] | None = None,
) -> Stage:
    """Return the stateless stage on the rows of ``_blocks``; or the stage of ``_asking``, if the job has
    one.
    """

    def stage(batches: Batches) -> Iterator[pa.RecordBatch]:
        ended: list[str] = []

        def read(letters: list[BadEvent]) -> Iterator[EventBatch]:
            for batch in batches:
                for row in batch.to_pylist():
                    if row["ended"] is not None:
                        ended.append(row["ended"])
                    else:
                        yield from read_row(row, _dictionary(job), letters)

        yield from _staged(job, read, told, failed)
        for what in ended:
            yield _end(job, None if what == ALL else (END_MS + lateness_ms) * 1000)
        freeze_worker()

    return _shown(stage, job)


def from_rows(
    job: Job,
    reading: Reading = read_rows,
    told: Accumulator[Told] | None = None,
    failed: Accumulator[Told] | None = None,
) -> Stage:
    """Return the same stage on rows of events, see ``_rows``; or on other rows, with the function that reads
    them.
    """

    def stage(batches: Batches) -> Iterator[pa.RecordBatch]:
        def read(letters: list[BadEvent]) -> Iterator[EventBatch]:
            for batch in batches:
                yield from reading(batch, _dictionary(job), letters)

        yield from _staged(job, read, told, failed)
        freeze_worker()

    return _shown(stage, job)


def _shown(stage: Stage, job: Job) -> Stage:
    """Name a stage for Spark's plan: its name has the background graphs, and how each is joined."""
    stage.__name__ = f"graph_patterns {job.placing}".rstrip()
    return stage


def _staged(
    job: Job,
    read: Callable[[list[BadEvent]], Iterator[EventBatch]],
    told: Accumulator[Told] | None,
    failed: Accumulator[Told] | None,
) -> Iterator[pa.RecordBatch]:
    letters: list[BadEvent] = []
    if job.joined is not None:
        task = TaskContext.get()
        number = 0 if task is None else task.partitionId()
        yield from _asking.records(job, stage_of(job, Asking).run(read(letters), letters), number)
        return
    for passed in stage_of(job, Stateless).run(read(letters), letters):
        if passed.warnings and told is not None:
            told.add({where: (1, message) for where, message in passed.warnings.items()})
        if passed.failed and failed is not None:
            failed.add(dict(passed.failed))
        yield record(rows_of(job, passed))


def _dictionary(job: Job) -> Dictionary:
    """Return the dictionary of the stage that reads events."""
    return (stage_of(job, Stateless) if job.joined is None else stage_of(job, Asking)).dictionary


def _end(job: Job, at: int | None) -> pa.RecordBatch:
    """Return the rows that say how far an ended stream has come; with None, that all have ended."""
    if job.joined is not None:
        return _asking.end(job, at)
    return record(all_ended(job) if at is None else [(at, job.buckets[0], 0, None, None, None, False, 0)])


def all_ended(job: Job) -> list[tuple[object, ...]]:
    """Return the rows of ``BETWEEN`` that tell each bucket that all streams have ended."""
    return [(None, bucket, 0, None, None, None, True, 0) for bucket in job.buckets]


def rows_of(job: Job, passed: Passed) -> list[tuple[object, ...]]:
    """Return the rows of ``BETWEEN`` for the results of some events."""
    at = None if passed.newest is None else milliseconds(passed.newest, job.clock) * 1000
    over = json.dumps(passed.matched).encode() if job.counted else passed.over
    rows: list[tuple[object, ...]] = [(at, job.buckets[0], 0, None, None, over, False, passed.events)]
    rows += [(at, piece.bucket, piece.begin, piece.data, None, None, False, 0) for piece in passed.pieces]
    rows += [
        (at, job.buckets[0], 0, None, letter_line(letter, job.topics), None, False, 0)
        for letter in passed.letters
    ]
    return rows


def record(rows: list[tuple[object, ...]]) -> pa.RecordBatch:
    """Return rows, at least one, as an Arrow batch."""
    columns = zip(*rows, strict=True)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, _BETWEEN, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=_BETWEEN)


# --- the stateful stage -----------------------------------------------------------------------


def all_at_once(
    job: Job, told: Accumulator[Told] | None = None, failed: Accumulator[Told] | None = None
) -> Stage:
    """Return the stateful stage of a batch: rows come ordered by bucket and ``begin``.

    The ``begin`` of each row is a watermark, so only chunks that overlap in time are held. ``told`` counts
    what is shed, ``failed`` failed calls.
    """

    def stage(batches: Batches) -> Iterator[pa.RecordBatch]:
        rows = (row for batch in batches for row in batch.to_pylist())
        for _, members in groupby(rows, key=lambda row: row["bucket"]):
            for found in blocks(_all_of(Bucket(job), members)):
                telling_shed(found, told)
                if answers := telling_failed(found, failed):
                    yield _answers(answers)
        freeze_worker()

    return stage


def _all_of(bucket: Bucket, rows: Iterable[dict[str, Any]]) -> Iterator[Answer]:
    """Yield all answers of a bucket."""
    for row in rows:
        if row["letter"] is not None:
            yield BAD, row["letter"]
        if row["chunk"] is not None:
            for line in bucket.release(row["begin"]):
                yield MATCH, line
            bucket.add(row["chunk"], bucket.reached)
    for line in bucket.close():
        yield MATCH, line
    yield from bucket.notices()


def counts_at_once(job: Job, events: int) -> Stage:
    """Return a stage like ``all_at_once`` that yields the counts of ``queries.analyze`` instead of answers.

    ``events``: about how many events of each bucket are traced.
    """

    def stage(batches: Batches) -> Iterator[pa.RecordBatch]:
        rows = (row for batch in batches for row in batch.to_pylist())
        for _, members in groupby(rows, key=lambda row: row["bucket"]):
            counts = _counts_of(Bucket(job), members, events)
            found = [(part, what, count) for (part, what), count in counts.items()]
            yield pa.RecordBatch.from_arrays(list(map(pa.array, zip(*found, strict=True))), schema=_COUNTS)
        freeze_worker()

    return stage


def _counts_of(bucket: Bucket, rows: Iterable[dict[str, Any]], events: int) -> Counter[tuple[str, str]]:
    counts: Counter[tuple[str, str]] = Counter()
    trace, traced = bucket.trace(), 0
    for row in rows:
        counts["events", "all"] += row["events"]
        for name, (matched, solutions) in json.loads(row["over"] or b"{}").items():
            counts.update({(f"GPM {name}", "events"): matched, (f"GPM {name}", "solutions"): solutions})
        if row["chunk"] is not None and traced < events:
            traced += extent(row["chunk"]).events
            bucket.add(row["chunk"], bucket.reached)
    with suppress(LimitError):
        for _ in bucket.close():
            pass
    counts["events", "traced"] += traced
    states, edges = trace.counts()
    for state in states[1:]:
        became = {"came": state.came, "went on": state.went_on, "ended": state.ended}
        became |= {f"died: {reason}": count for reason, count in state.died.items()}
        counts.update({(f"state {state.state}", what): count for what, count in became.items()})
    counts.update({(f"{e.source} → {e.target} {e.label}", "taken"): e.taken for e in edges})
    return counts


def _answers(found: list[Answer]) -> pa.RecordBatch:
    kinds, lines = zip(*found, strict=True)
    return pa.RecordBatch.from_arrays([pa.array(kinds), pa.array(lines)], schema=_ANSWERS)


#: No timer is set.
_NO_TIMER: Final = -1


class Buckets:
    """The buckets of a stream, called by ``BucketProcessor``, and their states in Spark.

    The state of a bucket is its chunks, each under its number, and its head. With the head are stored the
    token by which keepers know the bucket (``_keepers``), and the time for which a timer is set
    (``_NO_TIMER``: none).
    """

    def __init__(
        self,
        job: Job,
        handle: StatefulProcessorHandle,
        head: ValueState,
        chunks: MapState,
        told: Accumulator[Told] | None,
        failed: Accumulator[Told] | None,
    ) -> None:
        """``told`` counts what is shed, ``failed`` failed calls."""
        self._job, self._told, self._failed = job, told, failed
        self._handle = handle
        self._head = head
        self._chunks = chunks
        self._trails = looks_back(job.pattern) > 1
        self._has_event_time = job.has_event_time
        task = TaskContext.get()
        # Each run has its own: buckets in keepers from another run may be of other background graphs.
        run = task and task.getLocalProperty("spark.jobGroup.id")
        self._query = f"{run} {job.identity} {job.background} {job.topics}"
        self._partition = 0 if task is None else task.partitionId()

    def take(self, number: int, rows: Iterable[pd.DataFrame], timers: TimerValues) -> Iterator[pd.DataFrame]:
        """Process the rows of a bucket in a micro-batch; yield its answers."""
        chunks: list[bytes] = []
        told: list[Answer] = []
        is_over = False
        watermark = self._watermark(timers)
        for frame in rows:
            is_over |= bool(frame["ends"].any())
            told += [(BAD, letter) for letter in frame["letter"] if letter is not None]
            chunks += [bytes(chunk) for chunk in frame["chunk"] if chunk is not None]
            for over in frame["over"].dropna():
                letters = late_among(bytes(over), watermark)
                told += [(LATE, letter_line(letter, self._job.topics)) for letter in letters]
        if told:
            yield self._frame(told)
        if chunks or (is_over and self._head.exists()):
            yield from self._step(number, timers, tuple(chunks), is_over=is_over)

    def move(self, number: int, timers: TimerValues) -> Iterator[pd.DataFrame]:
        """Advance a bucket to the watermark; yield its answers."""
        yield from self._step(number, timers)

    def _step(
        self, number: int, timers: TimerValues, chunks: tuple[bytes, ...] = (), *, is_over: bool = False
    ) -> Iterator[pd.DataFrame]:
        found = self._head.get()
        token, head, timer = found or (None, None, _NO_TIMER)
        if (chunks or is_over) and timer != _NO_TIMER:  # otherwise it is the timer that has expired
            self._handle.deleteTimer(timer)
        step = BucketStep(self._query, number, token, chunks, self._watermark(timers), is_over)
        for said in take(step, self._partition, _Stored(self._job, head, self._chunks)):
            if isinstance(said, Done):
                self._store(said, timers.getCurrentWatermarkInMs())
            else:
                telling_shed(said, self._told)
                if answers := telling_failed(said, self._failed):
                    yield self._frame(answers)

    def _frame(self, found: list[Answer]) -> pd.DataFrame:
        frame = pd.DataFrame(found, columns=["kind", "line"], dtype="object")
        if self._has_event_time:
            # A line begins {"start":"…","end":"…"
            ends = [line.split('"', 8)[7] if kind == MATCH else "NaT" for kind, line in found]
            times = np.array([end.removesuffix("Z") for end in ends], dtype="datetime64[us]")
            frame["end"] = pd.Series(times).dt.tz_localize("UTC")
        return frame

    def _watermark(self, timers: TimerValues) -> int:
        """Return the earliest time of future events; Spark's watermark is 0 as long as it knows none.

        Spark treats an event time equal to the watermark as late; we do not: see ``queries._marked``.
        """
        watermark = timers.getCurrentWatermarkInMs()
        if watermark <= 0:
            return EARLIEST
        return reached(watermark + self._has_event_time, self._job.clock)

    def _store(self, done: Done, watermark_ms: int) -> None:
        for dropped in done.changes.dropped:
            self._chunks.removeKey((dropped,))
        for added, data in done.changes.added.items():
            self._chunks.updateValue((added,), (data,))
        due = _NO_TIMER
        if done.held is not None:
            held_ms = milliseconds(done.held, self._job.clock) - self._has_event_time
            due = max(watermark_ms, held_ms) + 1
        elif self._trails and done.waits:
            due = watermark_ms + 1
        self._head.update((done.token, done.changes.head, due))
        if due != _NO_TIMER:
            self._handle.registerTimer(due)


@dataclass(frozen=True, slots=True)
class _Stored:
    """What Spark has stored of a bucket, for a keeper without it."""

    of: Job
    head: bytes | None
    chunks: MapState

    def job(self) -> Job:
        """See ``Knows``. Includes the background graphs, since a keeper cannot read Spark's broadcasts."""
        kb = self.of.kb
        return self.of if kb is None else replace(self.of, kb=Local(kb.value))

    def state(self) -> State:
        """See ``Knows``."""
        assert self.head is not None  # it is stored with the token
        return State(bytes(self.head), {key[0]: bytes(value[0]) for key, value in self.chunks.iterator()})
