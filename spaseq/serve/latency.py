"""Durations of requests: a histogram for Prometheus."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import Final

#: Upper bounds of the buckets, in seconds; one more bucket is unbounded.
BOUNDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Latency:
    """Counts of requests by the time until their responses began; ``total`` is the sum, in seconds."""

    def __init__(self) -> None:
        self.total = 0.0
        self._counts = [0] * (len(BOUNDS) + 1)

    def add(self, seconds: float) -> None:
        """Add one request."""
        self._counts[bisect_left(BOUNDS, seconds)] += 1
        self.total += seconds

    @property
    def count(self) -> int:
        """Return the number of requests."""
        return sum(self._counts)

    def up_to(self) -> Iterator[tuple[str, int]]:
        """Yield for each bound how many requests were no longer; the last bound is ``+Inf``."""
        before = 0
        for bound, count in zip((*map(str, BOUNDS), "+Inf"), self._counts, strict=True):
            before += count
            yield bound, before
