"""Bounds of a distributed query: what each bucket may take, and the lines that say what it gave up."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from spaseq.effort import Effort, Policy, Pool, Shed, latency_given
from spaseq.errors import warn
from spaseq.language.syntax import Consume
from spaseq.matching.evaluators import under_bound
from spaseq.spark.stages._job import pattern_of


@dataclass(frozen=True, slots=True)
class Bound:
    """What a bucket may take, picklable. ``latency``: seconds for an event, on average over some events of
    the bucket; ``memory``: bytes of its partial matches. None is no bound. ``clock`` counts seconds.
    """

    latency: float | None = None
    memory: int | None = None
    clock: Callable[[], float] = time.perf_counter

    def effort(self) -> Effort:
        """The same for the evaluator of one bucket, which shares it with no other."""
        pool = None if self.memory is None else Pool(self.memory)
        return Effort(self.latency, pool, 1.0, Policy.SHARP, self.clock)


def bound_of(text: str, latency: timedelta | None, memory: int | None, evaluator: str | None) -> Bound | None:
    """The bound that the buckets of a query keep by shedding, or None; a warning says if they cannot.

    Raises EngineError for what is no bound, and for an evaluator that cannot shed.
    """
    if latency is None and memory is None:
        return None
    bound = Bound(None if latency is None else latency_given(latency), memory)
    bound.effort()  # which checks the memory
    pattern = pattern_of(text)
    if pattern.query.consume is Consume.ANY:
        # What was consumed must be consumed again where a bucket is brought back (``_remote``).
        warn("on Spark, a query with CONSUME ANY runs without a bound: drop it, or use the embedded engine")
        return None
    how = under_bound(pattern, evaluator)
    if not how.is_kept:
        warn(f"the query {how.reason}")
    return bound if how.sheds else None


@dataclass(slots=True)
class GivenUp:
    """What an evaluator gave up, as often as somebody asks what came to it."""

    partial_matches: int = 0
    doubtful: int = 0

    def since(self, shed: Shed | None) -> str | None:
        """A line for what was given up since it was asked last; None if nothing was.

        ``recall`` is the estimate of all that the evaluator has seen (see ``Shed``).
        """
        if shed is None:
            return None
        gone, doubtful = shed.partial_matches - self.partial_matches, shed.doubtful - self.doubtful
        self.partial_matches, self.doubtful = shed.partial_matches, shed.doubtful
        if not gone and not doubtful:
            return None
        return json.dumps({"partial_matches": gone, "doubtful": doubtful, "recall": shed.recall})
