"""Queries as DataFrames: events in, matches out, in batches or as a stream."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import reduce
from pathlib import Path
from typing import Final

from pyspark.accumulators import Accumulator
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # Spark's own name for it

from spaseq.connect import LiveSource
from spaseq.engine.arguments import stream_iri
from spaseq.engine.running import StreamSource, _sources
from spaseq.errors import EngineError, SourceError, warn
from spaseq.events import Clock
from spaseq.gpm.kb import Source as Knowledge
from spaseq.gpm.shapes import text_of
from spaseq.language import as_query
from spaseq.language.syntax import UNITS, Query, WindowKind
from spaseq.spark._jobs import Graphs, KbChanged, job_of, milliseconds_of
from spaseq.spark.background._filed import filed
from spaseq.spark.background._placing import between, stage_schema
from spaseq.spark.sinks._lines import MATCH
from spaseq.spark.sinks._typed import require_columns, typed
from spaseq.spark.sinks.feedback import require_read
from spaseq.spark.sinks.files import counted
from spaseq.spark.source._files import normal
from spaseq.spark.source._reading import first_of, pieces_of
from spaseq.spark.source._rows import read_rows
from spaseq.spark.source._told import (
    Told,
    check_streams,
    clock_of,
    hearing,
    hearing_failed,
    hearing_warnings,
    telling_letters,
)
from spaseq.spark.source.datasource import PIECE, streams_text
from spaseq.spark.source.kafka import messages_behind, topics_of
from spaseq.spark.stages._bounds import Bound, bound_of
from spaseq.spark.stages._failed import Failed
from spaseq.spark.stages._job import Job
from spaseq.spark.stages._processor import BucketProcessor
from spaseq.spark.stages.arrow import ANSWERS, all_at_once, from_blocks, from_rows

_TERM: Final = "STRUCT<type: STRING, value: STRING, datatype: STRING, `xml:lang`: STRING>"
_EVENT: Final = "STRUCT<stream: STRING, graph: STRING, time: STRING, n: BIGINT>"
_LINE: Final = (
    f"start STRING, end STRING, partition MAP<STRING, {_TERM}>, events MAP<STRING, ARRAY<{_EVENT}>>, "
    "bindings STRING, graph STRING"
)

#: The columns of matches.
_EXPANDED: Final = ("start", "end", "partition", "events", "bindings", "graph", "json")

#: A stream's buckets, unless given. Not as many as shuffle partitions: a restart may have others.
STREAM_BUCKETS: Final = 16

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
    """A job and, of each stream, the rows between its stages: those of ``_stages``, and ``source``.

    ``observed``: what is read at once counts ``events`` there, for the first who asks for answers.
    ``failed``: counts failed calls of the user's functions.
    """

    job: Job
    query: Query
    between: tuple[DataFrame, ...]
    lateness: timedelta
    observed: tuple[Observation, ...] = ()
    failed: Accumulator[Failed] | None = None


def answers(
    events: DataFrame,
    query: Query | str,
    kb: Graphs | None = None,
    *,
    clock: Clock | str | None = None,
    start: int | None = None,
    lateness: timedelta = timedelta(0),
    buckets: int | None = None,
    evaluator: str | None = None,
    kb_changed: KbChanged = "error",
    latency: timedelta | None = None,
    memory: int | None = None,
    shapes: Knowledge | None = None,
) -> DataFrame:
    """What a query says about a DataFrame of events: matches and dead letters.

    Columns: ``kind`` (``match``, ``late``, ``bad``, ``shed``) and ``json``: a match as a line of NDJSON (see
    ``spaseq.results``), or a letter. An event of a stream is late if the micro-batches before its own have
    moved the watermark beyond its time, so that events may be in any order within one; what is late is told
    once, with its graph, or with what GPMs asked of it, or with its stamp alone if none did.

    ``events`` has the columns of ``format("spaseq")``, in batches or as a stream. All times are on one
    ``clock``: that of the column ``events`` was made of, or of the first event of a batch; for other streams
    it is to be given, or else they are instants. Of several streams the watermark is that of the one that
    lags: it moves when each that the query declares has brought something, and each is a reading of
    ``events`` (``kafka_events`` and ``run`` read each stream once). ``start`` is where tumbling windows
    begin: the first event's time unless given, and to be given for a stream. ``buckets``: into how many the
    partitions are hashed; no more tasks have work. Unless given, ``spark.sql.shuffle.partitions`` of them,
    and 16 for a stream, whose checkpoint keeps their number.

    ``kb_changed``: a stream that goes on with other background graphs than before is an error, unless it was
    begun with ``"replay"``. Then the events of the last windows are asked anew: what was told stays told, and
    matches that end from now on are those on the new graphs. For this the state has all events of the window,
    and the query runs as one group.

    ``latency`` and ``memory`` bound what each bucket takes: the former for an event, on average over some,
    the latter for its partial matches, in bytes. What would break them is shed, as by ``Engine``; what a
    bucket gave up in a micro-batch is a row of the kind ``shed``, and the first time a warning.

    ``shapes``: SHACL, as for ``Engine``; the workers need pyshacl. Events that do not conform are ``bad``,
    with SHACL's message. Tumbling windows then need ``start``.
    """
    prepared = as_query(query)
    clock = clock_of(events, clock)
    bound = bound_of(str(prepared), latency, memory, evaluator)
    said = text_of(shapes)
    return _found(
        events, prepared, kb, clock, start, lateness, buckets, evaluator, kb_changed, bound, said, None
    )


def _found(
    events: DataFrame,
    query: Query,
    kb: Graphs | None,
    clock: Clock,
    start: int | None,
    lateness: timedelta,
    buckets: int | None,
    evaluator: str | None,
    kb_changed: KbChanged,
    bound: Bound | None,
    shapes: str,
    told: Accumulator[Told] | None,
) -> DataFrame:
    """The answers; ``told`` hears of malformed events."""
    require_read(events)
    spark = events.sparkSession
    check_streams(events, query)
    if start is None and _tumbles(query):
        if events.isStreaming:
            raise EngineError(
                "the query's windows tumble, and begin with the first event, which no task of a stream "
                "knows: say with start= when (an integer on the stream's clock; instants are microseconds)"
            )
        if shapes:
            raise EngineError(
                "the query's windows tumble, and begin with the first event that conforms to the shapes: say "
                "with start= when that is (an integer on the events' clock; instants are microseconds)"
            )
        start = events.agg(F.min("time")).first()[0]  # type: ignore[index]  # an aggregate has one row
    buckets = STREAM_BUCKETS if buckets is None and events.isStreaming else buckets
    is_stream = events.isStreaming
    job, background = job_of(
        spark, query, kb, clock, start, buckets, evaluator, is_stream=is_stream, kb_changed=kb_changed
    )
    job = replace(job, topics=topics_of(events), bound=bound, shapes=shapes)
    messages = messages_behind(events)
    reading = read_rows if messages is None else messages.reading.read
    failed = hearing_failed(job, spark)
    stage = from_rows(job, reading, hearing_warnings(spark), failed)
    stage = stage if told is None else telling_letters(stage, told)
    if events.isStreaming:
        parts = _by_stream(events, job) if messages is None else messages.by_topic()
    else:
        parts = [events if messages is None else messages.rows]
    between = [_between(job, background, part.mapInArrow(stage, stage_schema(job))) for part in parts]
    marked = [_marked(rows.drop("events"), lateness, clock) for rows in between]
    return _answers(job, reduce(DataFrame.union, marked), failed)


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
    clock: Clock | str | None = None,
    start: int | None = None,
    lateness: timedelta = timedelta(0),
    buckets: int | None = None,
    evaluator: str | None = None,
    kb_changed: KbChanged = "error",
    latency: timedelta | None = None,
    memory: int | None = None,
    shapes: Knowledge | None = None,
    columns: Mapping[str, str] | None = None,
) -> DataFrame:
    """The matches of a query over a DataFrame of events; the other parameters are those of ``answers``.

    Columns: ``start`` and ``end`` (timestamps, or integers on ticks), ``partition``, ``events`` (per GPM),
    ``bindings`` (JSON), ``graph`` (the N-Triples of CONSTRUCT), ``json`` (all of it). With ``columns``, such
    as ``{"price": "double"}``, these variables, too, with their values as Spark's types: a row for each of
    ``bindings``, and null for what is not bound or of another type. Malformed events, which ``answers`` would
    tell of, are told of by a warning; of a stream, the observed metrics ``answers`` count them, and those
    that come late.
    """
    prepared = as_query(query)
    if columns is not None:
        require_columns(prepared, columns, _EXPANDED)
    clock = clock_of(events, clock)
    told = hearing(events, _LEFT_OUT)
    bound = bound_of(str(prepared), latency, memory, evaluator)
    found = _found(
        events,
        prepared,
        kb,
        clock,
        start,
        lateness,
        buckets,
        evaluator,
        kb_changed,
        bound,
        text_of(shapes),
        told,
    )
    found = expanded(counted(found) if events.isStreaming else found, clock)
    return found if columns is None else typed(found, columns)


def expanded(found: DataFrame, clock: Clock | str) -> DataFrame:
    """The matches among answers, in columns."""
    parsed = found.where(F.col("kind") == MATCH).select(F.from_json("json", _LINE).alias("m"), "json")
    kind = "BIGINT" if Clock(clock) is Clock.TICKS else "TIMESTAMP"
    return parsed.select(
        F.col("m.start").cast(kind).alias("start"),
        F.col("m.end").cast(kind).alias("end"),
        "m.partition",
        "m.events",
        "m.bindings",
        "m.graph",
        "json",
    )


def run(
    spark: SparkSession,
    query: Query | str,
    streams: Mapping[str, StreamSource],
    kb: Graphs | None = None,
    *,
    checkpoint: str | Path | None = None,
    clock: Clock | str | None = None,
    lateness: timedelta = timedelta(0),
    follow: bool = False,
    most_bytes: int | None = None,
    piece_bytes: int = PIECE,
    buckets: int | None = None,
    evaluator: str | None = None,
    kb_changed: KbChanged = "error",
    latency: timedelta | None = None,
    memory: int | None = None,
    shapes: Knowledge | None = None,
) -> DataFrame:
    """The answers of a query over files, folders or patterns, see ``answers`` and ``spaseq.run``.

    With ``checkpoint``, a streaming DataFrame, which is to be written with that ``checkpointLocation``:
    every micro-batch takes up to ``most_bytes`` of each stream, and with ``follow`` new files are waited
    for. Otherwise the streams end where their files do, which ends all windows; a later run goes on with the
    files that came since, and what was told stays so. Without ``checkpoint``, everything at once; then
    nothing is late. ``clock``: that of the first event unless given.
    ``expanded`` gives the columns of matches.
    """
    prepared = as_query(query)
    plan = planned(
        spark, prepared, streams, kb, checkpoint=checkpoint, clock=clock, lateness=lateness, follow=follow,
        most_bytes=most_bytes, piece_bytes=piece_bytes, buckets=buckets, evaluator=evaluator,
        kb_changed=kb_changed, latency=latency, memory=memory, shapes=shapes,
    )  # fmt: skip
    return answers_of(plan)


def answers_of(plan: Prepared) -> DataFrame:
    """The second half of ``run``, after ``planned``: the answers (see there)."""
    parts = [_marked(rows.drop("source"), plan.lateness, plan.job.clock) for rows in plan.between]
    return _answers(plan.job, reduce(DataFrame.union, parts), plan.failed)


def planned(
    spark: SparkSession,
    query: Query,
    streams: Mapping[str, StreamSource],
    kb: Graphs | None = None,
    *,
    checkpoint: str | Path | None = None,
    clock: Clock | str | None = None,
    lateness: timedelta = timedelta(0),
    follow: bool = False,
    most_bytes: int | None = None,
    piece_bytes: int = PIECE,
    buckets: int | None = None,
    evaluator: str | None = None,
    kb_changed: KbChanged = "error",
    latency: timedelta | None = None,
    memory: int | None = None,
    shapes: Knowledge | None = None,
) -> Prepared:
    """The first half of ``run``, with its parameters: the query and, of each stream, what is asked of events.

    ``answers_of`` is the second half; ``drive`` takes its place for a stream that this process drives.
    Raises SourceError for a stream that is no file, folder or pattern.
    """
    for stream in streams.values():
        if isinstance(stream, str):
            normal(stream)  # raises for schemes, before they are looked for among those of live sources
    given = {stream_iri(s.stream).value: (s.location, s.options) for s in _sources(query, streams)}
    located = {iri: (in_files(iri, location), options) for iri, (location, options) in given.items()}
    conforming = text_of(shapes)
    judged = conforming if _tumbles(query) else ""  # elsewhere the first time does not matter
    firsts = [first_of(iri, *source, piece_bytes, lateness, judged) for iri, source in located.items()]
    known = [first for first in firsts if first is not None]
    if not known and clock is None:
        warn("no stream has an event yet: times are taken for instants, unless clock= says otherwise")
    clock = Clock(clock or (known[0][0] if known else Clock.INSTANTS))
    start: int | None = min((time for found, time in known if found is clock), default=0)
    start = start if _tumbles(query) else None
    is_stream = checkpoint is not None
    buckets = STREAM_BUCKETS if buckets is None and is_stream else buckets
    job, background = job_of(
        spark, query, kb, clock, start, buckets, evaluator, is_stream=is_stream, kb_changed=kb_changed
    )
    job = replace(job, bound=bound_of(str(query), latency, memory, evaluator), shapes=conforming)
    failed = hearing_failed(job, spark)
    stage = from_blocks(job, milliseconds_of(lateness, clock), hearing_warnings(spark), failed)
    if checkpoint is None:
        read = [pieces_of(spark, iri, *source, piece_bytes) for iri, source in located.items()]
    else:
        # One source for all streams, which knows when all have ended; it gives but the places of bytes.
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
        read = [blocks.where(F.col("stream") == iri) for iri in located] if len(located) > 1 else [blocks]
    parts = []
    observed: list[Observation] = []
    for number, some in enumerate(read):
        rows = _between(job, background, some.mapInArrow(stage, stage_schema(job)))
        name = f"stream {number}"
        observation = name if checkpoint is not None else Observation(name)
        if isinstance(observation, Observation):
            observed.append(observation)
        rows = rows.observe(observation, F.sum("events").alias("events")).drop("events")
        parts.append(rows.withColumn("source", F.lit(number)))
    return Prepared(job, query, tuple(parts), lateness, tuple(observed), failed)


def in_files(stream: str, location: object) -> str:
    """The location of a stream. Raises SourceError for one that is no file, folder or pattern."""
    if isinstance(location, LiveSource):
        raise SourceError(f"stream {stream}: Spark reads files and folders; topics by spark.kafka_events")
    if not isinstance(location, str | Path) or str(location) == "-":
        raise SourceError(f"stream {stream}: Spark reads files and folders, not an open file or a pipe")
    return str(location)


def _between(job: Job, background: DataFrame | None, read: DataFrame) -> DataFrame:
    """What comes from the stateless stage, given what its first or only part has read."""
    return read if background is None else between(job, read, background)


def _answers(job: Job, between: DataFrame, failed: Accumulator[Failed] | None) -> DataFrame:
    """The stateful stage. It gets the background graphs only if EXISTS may ask them; as a file if it is a
    stream, since the process that Spark starts for stateful processors cannot read a broadcast.
    """
    asks = job.kb is not None and job.needs.triples
    if not asks:
        job = replace(job, kb=None)
    told = None if job.bound is None else hearing(between, _GIVEN_UP)
    if between.isStreaming:
        if job.kb is not None:
            job = replace(job, kb=filed(between.sparkSession, job.kb.value))
        found = between.groupBy("bucket").transformWithStateInPandas(
            BucketProcessor(job, told, failed), ANSWERS, "append", "eventTime"
        )
    else:
        partitions = len(job.buckets)
        found = (
            between.repartition(partitions, "bucket")
            .sortWithinPartitions("bucket", "begin")
            .mapInArrow(all_at_once(job, told, failed), ANSWERS)
        )
    return found.withColumnRenamed("line", "json")


def _marked(rows: DataFrame, lateness: timedelta, clock: Clock) -> DataFrame:
    """What comes from the stateless stage; of a stream, with a watermark."""
    if rows.isStreaming:
        rows = rows.withWatermark("at", f"{milliseconds_of(lateness, clock)} milliseconds")
    # Without `at`, or Spark would drop late rows itself, unseen.
    return rows.drop("at")


def _tumbles(query: Query) -> bool:
    """Whether the query has windows of time that begin somewhere."""
    return query.window.kind is not WindowKind.SLIDING and UNITS[query.window.unit] is not None
