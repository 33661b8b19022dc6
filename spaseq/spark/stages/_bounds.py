"""What a bucket may take, and what it counts beside its matches: what it shed, and calls that failed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass
from datetime import timedelta

from spaseq.automaton.pattern import SequencePattern
from spaseq.bounds import Shed, latency_given
from spaseq.errors import warn
from spaseq.language.syntax import Consume
from spaseq.matching.planner import under_bound
from spaseq.spark.stages._job import BucketBound
from spaseq.terms.dictionary import Dictionary

#: By a function's IRI: the number of failed calls, and the warning of the first one.
Failed = dict[Hashable, tuple[int, str]]


def bound_of(
    pattern: SequencePattern, latency: timedelta | None, memory: int | None, matcher: str | None
) -> BucketBound | None:
    """The bound that the buckets of a query keep by shedding, or None; a warning says if they cannot.

    Raises EngineError for an invalid bound, and for an matcher that cannot shed.
    """
    if latency is None and memory is None:
        return None
    bound = BucketBound(None if latency is None else latency_given(latency), memory)
    bound.fresh()  # which checks the memory
    if pattern.query.consume is Consume.ANY:
        # What was consumed must be consumed again where a bucket is brought back (``_remote``).
        warn("on Spark, a query with CONSUME ANY runs without a bound: drop it, or use the embedded engine")
        return None
    how = under_bound(pattern, matcher)
    if not how.is_kept:
        warn(f"the query {how.reason}")
    return bound if how.sheds else None


@dataclass(slots=True)
class GivenUp:
    """What an matcher has shed since the last call."""

    partial_matches: int = 0
    doubtful: int = 0

    def since(self, shed: Shed | None) -> str | None:
        """A line for what was given up since it was asked last; None if nothing was.

        ``recall`` is the estimate of all that the matcher has seen (see ``Shed``).
        """
        if shed is None:
            return None
        gone, doubtful = shed.partial_matches - self.partial_matches, shed.doubtful - self.doubtful
        self.partial_matches, self.doubtful = shed.partial_matches, shed.doubtful
        if not gone and not doubtful:
            return None
        return json.dumps({"partial_matches": gone, "doubtful": doubtful, "recall": shed.recall})


class FailedCalls:
    """What fails with a dictionary, as often as is asked what came to it; its warnings are not shown."""

    def __init__(self, dictionary: Dictionary) -> None:
        self._dictionary = dictionary
        self._told: Counter[str] = Counter()
        self._warnings: list[str] = []
        dictionary.warn = self._warnings.append

    def since(self) -> Failed:
        """What has failed since the last call."""
        failed = self._dictionary.failed_calls
        if failed == self._told:
            return {}
        new, self._told = failed - self._told, failed.copy()
        first = {iri: next((w for w in self._warnings if w.startswith(f"<{iri}>")), "") for iri in new}
        self._warnings.clear()
        return {iri: (count, first[iri]) for iri, count in new.items()}
