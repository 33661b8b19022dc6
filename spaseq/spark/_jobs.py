"""Queries as jobs: their settings, where their background graphs are kept, and their buckets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from hashlib import blake2b
from pathlib import Path
from typing import Final, Literal, TypedDict, get_args

from pyspark.sql import DataFrame, SparkSession

from spaseq.errors import EngineError, warn
from spaseq.events import Clock
from spaseq.language.syntax import FunctionCall, Query
from spaseq.patterns.expressions.walk import is_volatile, matching_calls
from spaseq.patterns.kb import KnowledgeBase
from spaseq.patterns.kb import Source as Knowledge
from spaseq.patterns.shapes import text_of
from spaseq.sources.spans import read_duration
from spaseq.spark._checkpoints import require_begun_by
from spaseq.spark.background._contents import contents
from spaseq.spark.background._joined import placed
from spaseq.spark.background.frames import BROADCAST_LIMIT, SparkKnowledge
from spaseq.spark.sessions import prepare_session, require_streams
from spaseq.spark.stages._bucket import bound_of, keeps_all
from spaseq.spark.stages._job import KEPT, Job, bucket_numbers, canonical, needs, pattern_of, pickled

#: Background graphs: a mapping by IRI as for ``spaseq.run``, or DataFrames (see ``knowledge``).
Graphs = Mapping[str, Knowledge] | KnowledgeBase | SparkKnowledge

#: What to do with a checkpoint of other background graphs, see ``answers``.
KbChanged = Literal["error", "replay"]

#: The default number of a stream's buckets. It differs from shuffle partitions, as a restart may have another
#: number of these.
STREAM_BUCKETS: Final = 16


class Options(TypedDict, total=False):
    """The parameters that ``answers``, ``matches`` and ``run`` share; see ``answers``."""

    clock: Clock | str | None
    lateness: timedelta | str
    buckets: int | None
    matcher: str | None
    kb_changed: KbChanged
    latency: timedelta | str | None
    memory: int | None
    shapes: Knowledge | None
    checkpoint: str | Path | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How a query runs: ``Options``, completed by defaults."""

    clock: Clock | str | None = None
    lateness: timedelta | str = timedelta(0)
    buckets: int | None = None
    matcher: str | None = None
    kb_changed: KbChanged = "error"
    latency: timedelta | str | None = None
    memory: int | None = None
    shapes: Knowledge | None = None
    checkpoint: str | Path | None = None

    def __post_init__(self) -> None:
        if self.kb_changed not in get_args(KbChanged):
            raise EngineError(f"kb_changed is 'error' or 'replay', not {self.kb_changed!r}")
        if self.buckets is not None and self.buckets < 1:
            raise EngineError(f"buckets={self.buckets}: at least one")

    @property
    def allowed(self) -> timedelta:
        """The allowed lateness."""
        return _length("lateness", self.lateness)


def _length(name: str, given: timedelta | str) -> timedelta:
    try:
        return read_duration(given) if isinstance(given, str) else given
    except ValueError as error:
        raise EngineError(f"{name}=: {error}") from None


def job_of(
    spark: SparkSession,
    query: Query,
    kb: Graphs | None,
    clock: Clock,
    start: int | None,
    settings: Settings,
    *,
    is_stream: bool,
    topics: tuple[tuple[str, str], ...] = (),
) -> tuple[Job, DataFrame | None]:
    """Return the job of a query, and the part of its background graphs that is to be joined (``_joined``).

    Warns if the query cannot be spread over buckets. Raises EngineError for a checkpoint of another job.
    """
    functions = pickled(query)
    if is_stream:
        require_streams("a stream")
        _require_deterministic(query)
    graphs = kb if isinstance(kb, KnowledgeBase | SparkKnowledge) else KnowledgeBase(kb or {})
    graphs.require(query)
    prepare_session(spark)
    partitions = int(spark.conf.get("spark.sql.shuffle.partitions") or 1)
    text = canonical(query)
    pattern = pattern_of(text, functions)
    replays = settings.kb_changed == "replay" and is_stream and bool(graphs.names)
    group = KEPT.one_group if replays else needs(pattern).one_group
    if group is not None:
        warn(
            f"the query runs as one group, on one core of the cluster: {group}. "
            "spaseq.spark.drive, or the embedded engine, is faster for what fits one process"
        )
    if is_stream and (reason := keeps_all(pattern)) is not None:
        warn(
            f"the state keeps all events, and a restart matches them again: {reason}. To avoid this, negate "
            "another GPM with the same pattern"
        )
    buckets = settings.buckets or (STREAM_BUCKETS if is_stream else partitions)
    latency = None if settings.latency is None else _length("latency", settings.latency)
    bound = bound_of(pattern, latency, settings.memory, settings.matcher)
    job = Job(
        text, clock, start, bucket_numbers(1 if group is not None else buckets), settings.matcher,
        is_stream=is_stream, topics=topics, graphs=contents(graphs) if is_stream else "", replays=replays,
        bound=bound, shapes=text_of(settings.shapes), functions=functions,
    )  # fmt: skip
    if is_stream and settings.checkpoint is not None:
        require_begun_by(job.identity, spark, settings.checkpoint)
    limit = graphs.broadcast_limit if isinstance(graphs, SparkKnowledge) else BROADCAST_LIMIT
    background = placed(spark, graphs, pattern, partitions, limit)
    if replays and background.joined is not None:
        raise EngineError("kb_changed='replay' takes background graphs within knowledge(broadcast_limit=)")
    shared = spark.sparkContext.broadcast(background.shipped) if graphs.names else None
    known = blake2b(background.shipped, digest_size=8).hexdigest()
    job = replace(job, kb=shared, joined=background.joined, background=known, placing=background.text)
    return job, background.rows


def _require_deterministic(query: Query) -> None:
    for call in matching_calls(query):
        if isinstance(call, FunctionCall) and is_volatile(call):
            raise EngineError(
                f"<{call.function.value}>() gives something else each time, and a restart asks again: a "
                "query with a checkpoint cannot have it in a pattern or FILTER"
            )


def milliseconds_of(lateness: timedelta, clock: Clock) -> int:
    """Return a lateness in milliseconds of Spark's watermark, see ``_job.milliseconds``: rounded up to whole
    ticks.
    """
    return lateness // clock.unit if clock is Clock.TICKS else -(-lateness // timedelta(milliseconds=1))
