"""Queries as DataFrames: events in, matches out, in batches or as a stream."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import reduce
from itertools import islice
from pathlib import Path
from typing import Final, Unpack

import numpy as np
import pyarrow as pa
from pyspark.accumulators import Accumulator
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # Spark's own name for it

from spaseq.connect import LiveSource
from spaseq.engine.arguments import stream_iri
from spaseq.engine.running import StreamSource, _sources
from spaseq.errors import EngineError, SourceError, warn
from spaseq.events import EARLIEST, LATEST, Clock
from spaseq.language import as_query
from spaseq.language.syntax import UNITS, Query, WindowKind
from spaseq.patterns.shapes import text_of
from spaseq.sources import SourceOptions
from spaseq.spark._checkpoints import JOB
from spaseq.spark._jobs import Graphs, Options, Settings, job_of, milliseconds_of
from spaseq.spark.background._background import filed
from spaseq.spark.background._joined import between, stage_schema
from spaseq.spark.sessions import frame_of, require_classic
from spaseq.spark.sinks._columns import Columns, expanded, require_read, typed, types_of
from spaseq.spark.sinks.files import counted
from spaseq.spark.source._blocks import ARROW, read_row
from spaseq.spark.source._files import normal
from spaseq.spark.source._pieces import PIECE, Cutter, Place
from spaseq.spark.source._rows import behind, read_rows
from spaseq.spark.source._told import (
    Told,
    check_events,
    clock_of,
    hearing,
    telling_letters,
)
from spaseq.spark.source.kafka import topics_of
from spaseq.spark.stages._job import Job
from spaseq.spark.stages._stateless import conforming
from spaseq.spark.stages.arrow import (
    ANSWERS,
    COUNTS,
    TIMED_ANSWERS,
    all_at_once,
    counts_at_once,
    from_blocks,
    from_rows,
)
from spaseq.terms.dictionary import Dictionary
from spaseq.why.replay import plain

_LEFT_OUT: Final = (
    "{count} malformed events or more are left out of matches, and would be dead letters among answers; "
    "the first: {first}"
)

_GIVEN_UP: Final = (
    "a bucket sheds partial matches to keep its bound, {count} or more of them: matches may be missing "
    "(the observed metrics 'answers' of a stream count them, and rows of the kind 'shed' tell of each bucket)"
)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A job, and for each stream the rows between its stages (see ``stages.arrow``).

    ``between``: these rows, with the stream's number as ``source``. ``observed``: for a batch, the counts of
    ``events``, set by the first action on its answers. ``failed`` counts failed calls of the user's
    functions.
    """

    job: Job
    query: Query
    between: tuple[DataFrame, ...]
    settings: Settings
    observed: tuple[Observation, ...] = ()
    failed: Accumulator[Told] | None = None


def answers(
    events: DataFrame,
    query: Query | str,
    kb: Graphs | None = None,
    *,
    start: int | None = None,
    **options: Unpack[Options],
) -> DataFrame:
    """Return the answers of a query over a DataFrame of events: matches and dead letters.

    Columns: ``kind`` (``match``, ``late``, ``bad``, ``shed``) and ``json``: a match as a line of NDJSON (see
    ``spaseq.results``), or a dead letter. An event of a stream is late if earlier micro-batches have moved
    the watermark beyond its time; within a micro-batch events may be in any order. The letter of a late event
    has its graph, or only the triples that GPMs asked for. If no GPM asked for any, it has only the event's
    stamp.

    ``events`` has the columns of ``format("spaseq")``, in batches or as a stream. All times are on one
    ``clock``. By default it is that of the column from which ``events`` was made, or of a batch's first
    event. For other streams it is instants. The watermark is that of the slowest stream: it moves once every
    declared stream has brought events. Each declared stream is a separate reading of ``events``
    (``kafka_events`` and ``run`` read each only once). ``start``: when tumbling windows begin, by default at
    the first event's time; a stream needs it. ``lateness``: a timedelta, or text such as ``"10 seconds"``.
    ``buckets``: into how many buckets partitions are hashed, which limits the number of parallel tasks. By
    default ``spark.sql.shuffle.partitions``, and 16 for a stream. A checkpoint fixes the number.

    ``checkpoint``: the checkpoint that the stream will be written with. If it belongs to another query or has
    other background graphs, the call raises EngineError; without this argument, the first micro-batch fails.

    ``kb_changed``: a stream cannot continue with changed background graphs unless it was begun with
    ``"replay"``. Then the events of the last windows are matched again: delivered matches stay delivered, and
    later matches are based on the new graphs. For this the state keeps all events of the window, and the
    query runs as one group.

    ``latency`` and ``memory`` are bounds for each bucket: the time of an event (a timedelta), on average over
    some events, and bytes of partial matches. Partial matches that would exceed a bound are shed, as by
    ``Engine``. A row of the kind ``shed`` reports what a bucket shed in a micro-batch; the first one is also
    a warning.

    ``shapes``: SHACL, as for ``Engine``; the workers need pyshacl. Events that do not conform are ``bad``,
    with SHACL's message. Tumbling windows then need ``start``.
    """
    return _found(events, as_query(query), kb, start, Settings(**options), None)


def _found(
    events: DataFrame,
    query: Query,
    kb: Graphs | None,
    start: int | None,
    settings: Settings,
    told: Accumulator[Told] | None,
) -> DataFrame:
    """Return the answers; the accumulator ``told`` counts malformed events."""
    job, rows, failed = _read(events, query, kb, start, settings, told)
    return _answers(job, rows, failed, settings)


def _read(
    events: DataFrame,
    query: Query,
    kb: Graphs | None,
    start: int | None,
    settings: Settings,
    told: Accumulator[Told] | None,
    *,
    counted: bool = False,
) -> tuple[Job, DataFrame, Accumulator[Told] | None]:
    """Return the job, the rows of its stateless stage, and the accumulator of failed calls, if any."""
    require_classic(events)
    require_read(events)
    check_events(events, query)
    spark = events.sparkSession
    clock = clock_of(events, settings.clock)
    if start is None and _tumbles(query):
        if events.isStreaming:
            raise EngineError(
                "the query's windows tumble, and begin with the first event, which no task of a stream "
                "knows: say with start= when (an integer on the stream's clock; instants are microseconds)"
            )
        if settings.shapes is not None:
            raise EngineError(
                "the query's windows tumble, and begin with the first event that conforms to the shapes: say "
                "with start= when that is (an integer on the events' clock; instants are microseconds)"
            )
        start = events.agg(F.min("time")).first()[0]  # type: ignore[index]  # an aggregate has one row
    job, background = job_of(
        spark, query, kb, clock, start, settings, is_stream=events.isStreaming, topics=topics_of(events)
    )
    job = replace(job, counted=counted)
    known = behind(events)
    reading = read_rows if known is None else known.reading
    failed = hearing(spark) if job.functions else None
    stage = from_rows(job, reading, hearing(spark), failed)
    stage = stage if told is None else telling_letters(stage, told)
    if events.isStreaming:
        parts = _by_stream(events, job) if known is None else known.by_stream()
    else:
        parts = [events if known is None else known.rows]
    read = [between(job, part.mapInArrow(stage, stage_schema(job)), background) for part in parts]
    dropped = () if counted else ("events",)
    marked = [_marked(rows.drop(*dropped), settings.allowed, job) for rows in read]
    return job, reduce(DataFrame.union, marked), failed


def analyze(
    events: DataFrame,
    query: Query | str,
    kb: Graphs | None = None,
    *,
    start: int | None = None,
    traced: int = 20_000,
    **options: Unpack[Options],
) -> DataFrame:
    """Return the counts of ``spaseq explain --analyze`` for a batch of events, over all tasks.

    Columns: ``part``, ``what``, ``count``. All events are counted, and for each GPM the events that it
    matched and its solutions. The first events of each bucket, about ``traced`` of them, are traced. Their
    counts: how many partial matches entered each state of the automaton, advanced, ended as matches, or were
    dropped and why; and how often each edge was taken. The automaton is that of the query without EMIT,
    CONSUME, SKIP and LIMIT. The other parameters are those of ``answers``. Raises EngineError for a stream.
    """
    if events.isStreaming:
        raise EngineError(
            "analyze counts a batch: read the events without readStream, or ask state() about a stream"
        )
    settings = Settings(**options)
    job, rows, _ = _read(events, plain(as_query(query)), kb, start, settings, None, counted=True)
    stage = counts_at_once(replace(job, matcher="interpreter", bound=None), traced)
    counts = _by_bucket(job, rows).mapInArrow(stage, COUNTS)
    return counts.groupBy("part", "what").agg(F.sum("count").alias("count")).orderBy("part", "what")


def _by_stream(events: DataFrame, job: Job) -> list[DataFrame]:
    """Return one DataFrame for each stream of the events, so that each has its own watermark.

    Spark has one watermark per DataFrame, from its newest event. With several, the slowest counts. Events of
    undeclared streams are in the first DataFrame.
    """
    _, *others = sorted({stream.iri.value for stream in job.query.streams})
    if not others:
        return [events]
    rest = F.coalesce(~F.col("stream").isin(others), F.lit(True))
    return [events.where(rest), *(events.where(F.col("stream") == stream) for stream in others)]


def matches(
    events: DataFrame,
    query: Query | str,
    kb: Graphs | None = None,
    *,
    start: int | None = None,
    columns: Columns | None = None,
    observed: str = "answers",
    **options: Unpack[Options],
) -> DataFrame:
    """Return the matches of a query over a DataFrame of events, with a column for each part of a match.

    The parameters not described here are those of ``answers``. Columns: ``start`` and ``end`` (timestamps, or
    integers on ticks), ``partition``, ``events`` (per GPM), ``bindings`` (JSON), ``graph`` (the N-Triples of
    CONSTRUCT), ``json`` (the whole match).

    ``columns`` adds variables as columns, with values of Spark's types: ``"price double, k string"``, a
    StructType, a mapping from names to types, or a list of names for text. In a mapping, the type ``"{id}"``
    names the column ``id`` of the template of ``events``: terms of the variable become values of that column
    again, so that matches can be joined with the table. With ``columns``, the result has a row for each of
    ``bindings``; an unbound value, or one of another type, is null.

    Malformed events are left out, with a warning. For a stream, observed metrics count malformed and late
    events; ``observed`` is their name, which must differ between two ``matches`` in one streaming query.
    """
    require_classic(events)
    prepared = as_query(query)
    known = behind(events)
    keys = None if known is None else known.keys
    wanted = None if columns is None else types_of(columns, prepared, keys)
    settings = Settings(**options)
    require_read(events)
    check_events(events, prepared)
    clock = clock_of(events, settings.clock)
    told = hearing(events, _LEFT_OUT)
    found = _found(events, prepared, kb, start, replace(settings, clock=clock), told)
    found = expanded(counted(found, observed) if events.isStreaming else found, clock)
    return found if wanted is None else typed(found, wanted)


def run(
    spark: SparkSession,
    query: Query | str,
    streams: Mapping[str, StreamSource],
    kb: Graphs | None = None,
    *,
    follow: bool = False,
    most_bytes: int | None = None,
    piece_bytes: int = PIECE,
    **options: Unpack[Options],
) -> DataFrame:
    """Return the answers of a query over files, folders or patterns; see ``answers`` and ``spaseq.run``.

    With ``checkpoint``, the result is a streaming DataFrame, to be written with this ``checkpointLocation``.
    Every micro-batch reads up to ``most_bytes`` of each stream. With ``follow``, the streams wait for new
    files. Without it, they end with their files, which ends all windows; a later run reads the files added
    since, and does not repeat matches.

    Without ``checkpoint``, everything is read at once, and no event is late. ``clock``: by default, the clock
    of the first event. The other parameters are those of ``answers``. ``expanded`` turns the answers into
    columns of matches.
    """
    return answers_of(
        planned(
            spark, as_query(query), streams, kb, follow=follow, most_bytes=most_bytes,
            piece_bytes=piece_bytes, **options,
        )
    )  # fmt: skip


def answers_of(plan: Prepared) -> DataFrame:
    """Return the answers of what ``planned`` returned: the second half of ``run``."""
    lateness = plan.settings.allowed
    parts = [_marked(rows.drop("source"), lateness, plan.job) for rows in plan.between]
    return _answers(plan.job, reduce(DataFrame.union, parts), plan.failed, plan.settings)


def planned(
    spark: SparkSession,
    query: Query,
    streams: Mapping[str, StreamSource],
    kb: Graphs | None = None,
    *,
    follow: bool = False,
    most_bytes: int | None = None,
    piece_bytes: int = PIECE,
    **options: Unpack[Options],
) -> Prepared:
    """Prepare a query for ``answers_of`` or ``drive``: the first half of ``run``, with its parameters.

    The result has the job, and for each stream the rows that the stateless stage makes of its events.
    ``answers_of`` is the second half; ``drive`` replaces it for a stream that is matched in the driver.
    Raises SourceError for a stream that is not a file, a folder or a pattern.
    """
    settings = Settings(**options)
    require_classic(spark)
    lateness, is_stream = settings.allowed, settings.checkpoint is not None
    for stream in streams.values():
        if isinstance(stream, str):
            normal(stream)  # raises for schemes, before they are looked for among those of live sources
    given = {stream_iri(s.stream).value: (s.location, s.options) for s in _sources(query, streams)}
    located = {iri: (in_files(iri, location), options) for iri, (location, options) in given.items()}
    judged = text_of(settings.shapes) if _tumbles(query) else ""  # elsewhere the first time does not matter
    firsts = [first_of(iri, *source, piece_bytes, lateness, judged) for iri, source in located.items()]
    known = [first for first in firsts if first is not None]
    if not known and settings.clock is None:
        warn("no stream has an event yet: times are taken for instants, unless clock= says otherwise")
    clock = Clock(settings.clock or (known[0][0] if known else Clock.INSTANTS))
    start: int | None = min((time for found, time in known if found is clock), default=0)
    start = start if _tumbles(query) else None
    job, background = job_of(spark, query, kb, clock, start, settings, is_stream=is_stream)
    failed = hearing(spark) if job.functions else None
    stage = from_blocks(job, milliseconds_of(lateness, clock), hearing(spark), failed)
    if is_stream:
        read = _followed(spark, located, follow, most_bytes, piece_bytes)
    else:
        read = [pieces_of(spark, iri, *source, piece_bytes) for iri, source in located.items()]
    parts = []
    observed: list[Observation] = []
    for number, some in enumerate(read):
        rows = between(job, some.mapInArrow(stage, stage_schema(job)), background)
        name = f"stream {number}"
        observation = name if is_stream else Observation(name)
        if isinstance(observation, Observation):
            observed.append(observation)
        rows = rows.observe(observation, F.sum("events").alias("events")).drop("events")
        parts.append(rows.withColumn("source", F.lit(number)))
    return Prepared(job, query, tuple(parts), settings, tuple(observed), failed)


def _followed(
    spark: SparkSession,
    located: Mapping[str, tuple[str, SourceOptions]],
    follow: bool,
    most_bytes: int | None,
    piece_bytes: int,
) -> list[DataFrame]:
    """Return the blocks of each stream. One source reads all streams, so that it knows when all have
    ended.
    """
    from spaseq.spark.source.datasource import streams_text

    said: dict[str, str | int] = {
        "streams": streams_text(located),
        "rows": "blocks",
        "pieceBytes": piece_bytes,
        "follow": str(follow).lower(),
        "tasks": spark.sparkContext.defaultParallelism,
    }
    if most_bytes is not None:
        said["maxBytesPerTrigger"] = most_bytes
    blocks = spark.readStream.format("spaseq").options(**said).load()
    return [blocks.where(F.col("stream") == iri) for iri in located] if len(located) > 1 else [blocks]


def in_files(stream: str, location: object) -> str:
    """Return a stream's location as text. Raises SourceError unless it is a file, folder or pattern."""
    if isinstance(location, LiveSource):
        raise SourceError(f"stream {stream}: Spark reads files and folders; topics by spark.kafka_events")
    if not isinstance(location, str | Path) or str(location) == "-":
        raise SourceError(f"stream {stream}: Spark reads files and folders, not an open file or a pipe")
    return str(location)


def _answers(job: Job, between: DataFrame, failed: Accumulator[Told] | None, settings: Settings) -> DataFrame:
    """Return the answers of the stateful stage.

    The stage gets the background graphs only if EXISTS may read them. In a stream it gets them as a file,
    since the process that Spark starts for stateful processors cannot read a broadcast.
    """
    identity = job.identity
    asks = job.kb is not None and job.needs.triples
    if not asks:
        job = replace(job, kb=None)
    told = None if job.bound is None else hearing(between, _GIVEN_UP)
    if between.isStreaming:
        if job.kb is not None:
            job = replace(job, kb=filed(between.sparkSession, job.kb.value))
        from spaseq.spark.stages._processor import BucketProcessor

        processor = BucketProcessor(job, told, failed)
        schema, event_time = (TIMED_ANSWERS, "end") if job.has_event_time else (ANSWERS, "")
        found = between.groupBy("bucket").transformWithStateInPandas(
            processor, schema, "append", "eventTime", eventTimeColumnName=event_time
        )
    else:
        found = _by_bucket(job, between).mapInArrow(all_at_once(job, told, failed), ANSWERS)
    found = found.withColumnRenamed("line", "json")
    if settings.checkpoint is not None or not between.isStreaming:
        return found
    # If the checkpoint is named only later, ``save`` compares it with this.
    return found.withMetadata("json", {JOB: json.dumps(identity)})


def _by_bucket(job: Job, between: DataFrame) -> DataFrame:
    """Return the rows of a batch by bucket and time, as the stateful stage needs them."""
    return between.repartition(len(job.buckets), "bucket").sortWithinPartitions("bucket", "begin")


def _marked(rows: DataFrame, lateness: timedelta, job: Job) -> DataFrame:
    """Return the rows of the stateless stage; of a stream, with a watermark.

    If matches have an event time, the watermark is a millisecond earlier, since Spark refuses an event time
    that equals it: see ``Buckets``.
    """
    if rows.isStreaming:
        delay = milliseconds_of(lateness, job.clock) + job.has_event_time
        rows = rows.withWatermark("at", f"{delay} milliseconds")
    # Without `at`: Spark would drop late rows itself, with no report.
    return rows.drop("at")


def _tumbles(query: Query) -> bool:
    """Return whether the query's windows tumble by time."""
    return query.window.kind is not WindowKind.SLIDING and UNITS[query.window.unit] is not None


def first_of(
    stream: str, location: str, options: SourceOptions, size: int, lateness: timedelta, shapes: str
) -> tuple[Clock, int] | None:
    """Return a stream's clock and the earliest time in its first events; None if it has no event.

    Events that would be late are left out. ``shapes``: the SHACL shapes that events must conform to, as
    N-Triples, or an empty text.
    """
    for piece, _ in Cutter(location, options, min(size, 1 << 20)).after(Place()):
        row = piece.row(stream)
        read = (conforming(batch, shapes, []) for batch in read_row(row, Dictionary(), []))
        for batch in islice((b for b in read if len(b)), 1):
            allowed = min(lateness // batch.clock.unit, LATEST)
            newest = np.maximum(np.maximum.accumulate(batch.time), EARLIEST + allowed) - allowed
            on_time = np.append(True, batch.time[1:] >= newest[:-1])
            return batch.clock, int(batch.time[on_time].min())
    return None


def pieces_of(
    spark: SparkSession, stream: str, location: str, options: SourceOptions, size: int
) -> DataFrame:
    """Return all pieces of a stream's files as rows, evenly over the cores.

    Not by ``format("spaseq")``, which starts Python processes to plan, and further ones to read the plan.
    """
    rows = [piece.row(stream) for piece, _ in Cutter(location, options, size).after(Place())]
    return frame_of(spark, pa.Table.from_pylist(rows, schema=ARROW))
