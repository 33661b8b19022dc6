"""What is known of a DataFrame of events before it is read, and what its readers report to the driver.

If this package made the events, their clock and streams are metadata of the columns. So a query can be
checked when it is planned. Faults that only the workers see, when they read rows, are counted by an
accumulator. The driver shows them as a warning, at the line that planned the query.
"""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.accumulators import Accumulator, AccumulatorParam
from pyspark.sql import DataFrame, SparkSession

from spaseq.errors import EngineError, SourceError, SpaseqWarning, _caller
from spaseq.events import Clock
from spaseq.language.syntax import Query
from spaseq.spark.sinks._lines import FAILED, SHED
from spaseq.spark.source._rows import EVENTS
from spaseq.spark.stages._job import undeclared

_CLOCK: Final = "spaseq.clock"
_STREAMS: Final = "spaseq.streams"

#: By kind of report: the count, and the first report.
Told = dict[Hashable, tuple[int, str]]

Stage = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


# --- before -----------------------------------------------------------------------------------


def knowing(events: DataFrame, clock: Clock | None, streams: Iterable[str]) -> DataFrame:
    """Return the same events, with their streams and (unless None) clock as metadata for queries."""
    if clock is not None:
        events = events.withMetadata("clock", {_CLOCK: clock.value})
    return events.withMetadata("stream", {_STREAMS: sorted(streams)})


def clock_of(events: DataFrame, given: Clock | str | None) -> Clock:
    """Return the clock of events: the one given, known, or of the first event; instants if none is known.

    Raises EngineError if the one that is given is not the one that is known.
    """
    said = _said(events, "clock", _CLOCK)
    known = Clock(said) if isinstance(said, str) else None
    if given is not None:
        if known not in (None, Clock(given)):
            raise EngineError(f"clock={str(given)!r}, but the times of these events are {known}")
        return Clock(given)
    if known is not None:
        return known
    if not events.isStreaming and "clock" in events.columns:
        first = events.where("clock IS NOT NULL").select("clock").first()
        if first is not None:
            return Clock(first[0])
    return Clock.INSTANTS


def check_events(events: DataFrame, query: Query) -> None:
    """Raise SourceError for a DataFrame without events, and for a stream that the query does not declare."""
    if events.isStreaming and "EventTimeWatermark" in events._jdf.queryExecution().analyzed().toString():
        raise EngineError("these events have a watermark already: leave withWatermark out, and say lateness=")
    have = {field.name: field.dataType.simpleString() for field in events.schema.fields}
    for name, kind in (column.split() for column in EVENTS.split(", ")):
        if name != "bad" and have.get(name) not in (kind, kind.removeprefix("big")):
            found = f"{name!r} is a column of {have[name]}" if name in have else f"no column {name!r}"
            raise SourceError(
                f"this DataFrame holds no events ({found}): make events of its rows by events(df, stream=…, "
                "time=…, template=…), or of messages by kafka_events"
            )
    declared = [stream.iri.value for stream in query.streams]
    known = _said(events, "stream", _STREAMS)
    for stream in known if isinstance(known, list) else ():
        if stream not in declared:
            raise SourceError(undeclared(stream, declared))


def _said(events: DataFrame, column: str, what: str) -> object:
    metadata = events.schema[column].metadata if column in events.columns else {}
    return metadata.get(what)


# --- after ------------------------------------------------------------------------------------


class _Heard(AccumulatorParam[Told]):
    """Adds up the reports of tasks. The first of each kind is a warning, at the line that planned the
    query.
    """

    def __init__(self, message: str) -> None:
        self._message = message
        _, frame = _caller()
        self._place = frame.f_code.co_filename, frame.f_lineno
        self._shown: set[object] = set()

    def zero(self, value: Told) -> Told:  # noqa: ARG002  # Spark's
        return {}

    def addInPlace(self, value1: Told, value2: Told) -> Told:  # noqa: N802  # Spark's name
        told = dict(value1)
        for kind, (count, first) in value2.items():
            before, known = told.get(kind, (0, first))
            told[kind] = before + count, known
        if TaskContext.get() is None:
            for kind in told.keys() - self._shown:
                self._shown.add(kind)
                count, first = told[kind]
                _say(self._message.format(count=count, first=first), self._place)
        return told


def _say(message: str, place: tuple[str, int]) -> None:
    """Warn at a line of the caller's."""
    try:
        warnings.warn_explicit(message, SpaseqWarning, *place)
    except SpaseqWarning:
        # If warnings are errors, none may be raised: this is Spark's thread, and must go on.
        logging.getLogger("spaseq").error(message)


def hearing(rows: DataFrame | SparkSession, message: str = "{first}") -> Accumulator[Told]:
    """Return an accumulator for the reports of tasks. The first of each kind is a warning: ``message``,
    filled in.
    """
    spark = rows if isinstance(rows, SparkSession) else rows.sparkSession
    return spark.sparkContext.accumulator({}, _Heard(message))


def telling_letters(stage: Stage, told: Accumulator[Told]) -> Stage:
    """Return a stage that also reports the dead letters among its rows."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in stage(batches):
            letters = batch.column("letter")
            if letters.null_count < len(letters):
                lost = letters.drop_null()
                told.add({"": (len(lost), lost[0].as_py())})
            yield batch

    run.__name__ = stage.__name__
    return run


def telling_shed(answers: Iterable[tuple[str, str]], told: Accumulator[Told] | None) -> None:
    """Report what buckets shed, among answers (kind and line)."""
    if told is not None:
        for line in [line for kind, line in answers if kind == SHED]:
            told.add({"": (json.loads(line)["partial_matches"], "")})


def telling_failed(answers: list[tuple[str, str]], told: Accumulator[Told] | None) -> list[tuple[str, str]]:
    """Report failed calls, and return the other answers (kind and line)."""
    failed = [line for kind, line in answers if kind == FAILED]
    if not failed:
        return answers
    for line in failed:
        if told is not None:
            told.add({iri: (count, first) for iri, (count, first) in json.loads(line).items()})
    return [answer for answer in answers if answer[0] != FAILED]


def telling_ties(rows: pa.RecordBatch, told: Accumulator[Told]) -> None:
    """Report rows with the same ``__time`` as others."""
    times = rows.column("__time").drop_null()
    ties = len(times) - pc.count_distinct(times).as_py()
    if ties:
        told.add({"": (ties, "")})
