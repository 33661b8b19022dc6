"""Queries as jobs: where their background graphs go, and into how many buckets they are spread."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from datetime import timedelta
from hashlib import blake2b
from typing import Literal, get_args

from pyspark.sql import DataFrame, SparkSession

from spaseq.errors import EngineError, SpaseqWarning
from spaseq.events import Clock
from spaseq.gpm.expressions.walk import is_volatile, matching_calls
from spaseq.gpm.kb import KnowledgeBase
from spaseq.gpm.kb import Source as Knowledge
from spaseq.language.syntax import FunctionCall, Query
from spaseq.spark.background._contents import contents
from spaseq.spark.background._placing import placed
from spaseq.spark.background.frames import BROADCAST_LIMIT, SparkKnowledge
from spaseq.spark.sessions import prepare_session
from spaseq.spark.stages._job import KEPT, Job, bucket_numbers, needs, pattern_of, pickled

#: Background graphs: by IRI as for ``spaseq.run``, or as DataFrames.
Graphs = Mapping[str, Knowledge] | KnowledgeBase | SparkKnowledge

#: What becomes of a checkpoint whose background graphs were others, see ``answers``.
KbChanged = Literal["error", "replay"]


def job_of(
    spark: SparkSession,
    query: Query,
    kb: Graphs | None,
    clock: Clock,
    start: int | None,
    buckets: int | None,
    evaluator: str | None,
    *,
    is_stream: bool,
    kb_changed: KbChanged,
) -> tuple[Job, DataFrame | None]:
    """The job of a query, and what of its background graphs is to be joined (``_placing``).

    Warns if it cannot be spread over buckets.
    """
    functions = pickled(query)
    if is_stream:
        _require_deterministic(query)
    graphs = kb if isinstance(kb, KnowledgeBase | SparkKnowledge) else KnowledgeBase(kb or {})
    graphs.require(query)
    prepare_session(spark)
    partitions = int(spark.conf.get("spark.sql.shuffle.partitions") or 1)
    text = str(query)
    if kb_changed not in get_args(KbChanged):
        raise EngineError(f"kb_changed is 'error' or 'replay', not {kb_changed!r}")
    if buckets is not None and buckets < 1:
        raise EngineError(f"buckets={buckets}: at least one")
    replays = kb_changed == "replay" and is_stream and bool(graphs.names)
    group = KEPT.one_group if replays else needs(pattern_of(text, functions)).one_group
    if group is not None:
        warnings.warn(
            f"the query runs as one group, on one core of the cluster: {group}. "
            "spaseq.spark.drive, or the embedded engine, is faster for what fits one process",
            SpaseqWarning,
            stacklevel=4,
        )
    numbers = bucket_numbers(1 if group is not None else buckets or partitions)
    limit = graphs.broadcast_limit if isinstance(graphs, SparkKnowledge) else BROADCAST_LIMIT
    background = placed(spark, graphs, pattern_of(text, functions), partitions, limit)
    if replays and background.joined is not None:
        raise EngineError("kb_changed='replay' takes background graphs within knowledge(broadcast_limit=)")
    shared = spark.sparkContext.broadcast(background.shipped) if graphs.names else None
    known = blake2b(background.shipped, digest_size=8).hexdigest()
    job = Job(
        text, clock, start, numbers, evaluator, shared, is_stream, background.joined, known,
        graphs=contents(graphs) if is_stream else "", replays=replays, functions=functions,
    )  # fmt: skip
    return job, background.rows


def _require_deterministic(query: Query) -> None:
    for call in matching_calls(query):
        if isinstance(call, FunctionCall) and is_volatile(call):
            raise EngineError(
                f"<{call.function.value}>() gives something else each time, and a restart asks again: a "
                "query with a checkpoint cannot have it in a pattern or FILTER"
            )


def milliseconds_of(lateness: timedelta, clock: Clock) -> int:
    """A lateness as Spark's watermark counts it, see ``_job.milliseconds``: rounded up, but whole ticks."""
    return lateness // clock.unit if clock is Clock.TICKS else -(-lateness // timedelta(milliseconds=1))
