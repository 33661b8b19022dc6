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
    """A job and the rows between its stages, for each stream (see ``stages.arrow``), with ``source``.

    ``observed``: the counts of ``events`` of a batch, set by the first action on its answers. ``failed``
    counts failed calls of the user's functions.
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
    ``spaseq.results``), or a letter. An event of a stream is late if earlier micro-batches have moved the
    watermark beyond its time; within a micro-batch events may be in any order. A late event has one letter,
    with its graph, or with the triples that GPMs asked for, or with its stamp alone if none did.

    ``events`` has the columns of ``format("spaseq")``, in batches or as a stream. All times are on one
    ``clock``: that of the column ``events`` was made of, or of the first event of a batch; for other streams
    give it, or else times are instants. The watermark is that of the slowest stream: it moves when each
    declared stream has brought events, and each stream is a reading of ``events`` (``kafka_events`` and
    ``run`` read each once). ``start`` is where tumbling windows begin: the first event's time unless given;
    a stream needs it. ``lateness`` is a timedelta, or text such as ``"10 seconds"``. ``buckets``: how many
    the partitions are hashed into, which bounds the tasks at work: by default
    ``spark.sql.shuffle.partitions``, and 16 for a stream. A checkpoint fixes their number.

    ``checkpoint``: the checkpoint that the stream will be written with. A checkpoint of another query, or of
    other background graphs, is then an error at once; without the argument, the first micro-batch fails.

    ``kb_changed``: a stream that goes on with other background graphs than before is an error, unless it was
    begun with ``"replay"``. Then the events of the last windows are matched again: delivered matches stay
    delivered, and matches that end from now on are based on the new graphs. For this the state keeps all
    events of the window, and the query runs as one group.

    ``latency`` and ``memory`` bound what each bucket takes: the former for an event, on average over some,
    the latter for its partial matches, in bytes. What would break them is shed, as by ``Engine``; what a
    bucket gave up in a micro-batch is a row of the kind ``shed``, and the first time a warning.

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
    """The answers; ``told`` hears of malformed events."""
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
    """The job, the rows of its stateless stage, and what hears of failed calls."""
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
    """The counts of ``spaseq explain --analyze`` for a batch of events, over all tasks.

    Columns: ``part``, ``what``, ``count``. All events are counted, and for each GPM the events that it
    matched and its solutions. The first events of each bucket, about ``traced`` of them, are traced: how many
    partial matches came into each state of the automaton, went on, ended as matches, or died of what; and how
    often each edge was taken. The automaton is that of the query without EMIT, CONSUME, SKIP and LIMIT.
    The other parameters are those of ``answers``. Raises EngineError for a stream.
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
    """A stream's events by their streams, so that each has a watermark: of all, the one that lags counts.

    Spark has one watermark a DataFrame, that of the newest. What is of no declared stream is in the first.
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
    """The matches of a query over a DataFrame of events; the other parameters are those of ``answers``.

    Columns: ``start`` and ``end`` (timestamps, or integers on ticks), ``partition``, ``events`` (per GPM),
    ``bindings`` (JSON), ``graph`` (the N-Triples of CONSTRUCT), ``json`` (all of it). With ``columns``, these
    variables, too, with their values as Spark's types: ``"price double, k string"``, a StructType, a mapping
    from names to types, or a list of names for text. A type ``"{id}"`` in a mapping is a column of the
    template of ``events``: terms of the variable come back as that column's values, so that matches join with
    the table. Then there is a row for each of ``bindings``; a value unbound or of another type is null.
    A warning tells of malformed events. The observed metrics of a stream count them, and late events;
    ``observed`` names these metrics, which must differ where two ``matches`` are in one streaming query.
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
    """The answers of a query over files, folders or patterns, see ``answers`` and ``spaseq.run``.

    With ``checkpoint``, a streaming DataFrame, which is to be written with that ``checkpointLocation``:
    every micro-batch takes up to ``most_bytes`` of each stream, and with ``follow`` new files are waited
    for. Without ``follow``, the streams end with their files, which ends all windows; a later run reads the
    files added since, and does not repeat matches. Without ``checkpoint``, everything is read at once, and
    nothing is late. ``clock``: by default, the clock of the first event. The other parameters are those of
    ``answers``. ``expanded`` gives the columns of matches.
    """
    return answers_of(
        planned(
            spark, as_query(query), streams, kb, follow=follow, most_bytes=most_bytes,
            piece_bytes=piece_bytes, **options,
        )
    )  # fmt: skip


def answers_of(plan: Prepared) -> DataFrame:
    """The second half of ``run``, after ``planned``: the answers (see there)."""
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
    """The first half of ``run``, with its parameters: the query and, of each stream, what is asked of events.

    ``answers_of`` is the second half; ``drive`` takes its place for a stream that this process drives.
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
    """The blocks of each stream. One source reads all, so that it knows when all have ended."""
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
    """The location of a stream. Raises SourceError for one that is no file, folder or pattern."""
    if isinstance(location, LiveSource):
        raise SourceError(f"stream {stream}: Spark reads files and folders; topics by spark.kafka_events")
    if not isinstance(location, str | Path) or str(location) == "-":
        raise SourceError(f"stream {stream}: Spark reads files and folders, not an open file or a pipe")
    return str(location)


def _answers(job: Job, between: DataFrame, failed: Accumulator[Told] | None, settings: Settings) -> DataFrame:
    """The stateful stage. It gets the background graphs only if EXISTS may ask them; as a file if it is a
    stream, since the process that Spark starts for stateful processors cannot read a broadcast.
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
    # A checkpoint that is named later is compared then (``save``).
    return found.withMetadata("json", {JOB: json.dumps(identity)})


def _by_bucket(job: Job, between: DataFrame) -> DataFrame:
    """The rows of a batch as a stateful stage takes them."""
    return between.repartition(len(job.buckets), "bucket").sortWithinPartitions("bucket", "begin")


def _marked(rows: DataFrame, lateness: timedelta, job: Job) -> DataFrame:
    """Return the rows of the stateless stage; of a stream, with a watermark.

    If matches have an event time, the watermark is a millisecond earlier, since Spark refuses an event time
    that equals it: see ``Buckets``.
    """
    if rows.isStreaming:
        delay = milliseconds_of(lateness, job.clock) + job.has_event_time
        rows = rows.withWatermark("at", f"{delay} milliseconds")
    # Without `at`, or Spark would drop late rows itself, unseen.
    return rows.drop("at")


def _tumbles(query: Query) -> bool:
    """Whether the query has windows of time that begin somewhere."""
    return query.window.kind is not WindowKind.SLIDING and UNITS[query.window.unit] is not None


def first_of(
    stream: str, location: str, options: SourceOptions, size: int, lateness: timedelta, shapes: str
) -> tuple[Clock, int] | None:
    """The clock of a stream, and the time of the first event by time, read from its beginning.

    ``shapes``: what events must conform to, as N-Triples, if to anything.
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
    """All pieces of a stream's files, as many for each core.

    Not by ``format("spaseq")``: that asks Python processes for the plan, and others to read it.
    """
    rows = [piece.row(stream) for piece, _ in Cutter(location, options, size).after(Place())]
    return frame_of(spark, pa.Table.from_pylist(rows, schema=ARROW))
