"""How many events come between two times that a bound is seen to: what they took comes in."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable
from typing import Final

from spaseq.effort import Effort, WorkClock
from spaseq.matching.columns.blocks.found import Block

#: So many events at most are taken at once, and as a part of a bound so much time, about.
_CHUNK: Final = 4_096
_SLICE: Final = 1 / 8
#: So many events at least are taken at once where they come so, as a call for each takes longer than they.
#: But together they are to take no more than so many seconds: what one took is to be known before the next
#: one that takes long is looked at.
_FEW: Final = 16
_LONG: Final = 4e-3
#: Those that come alone wait for each other, so many at most.
_ALONE: Final = 64


class Pace:
    """Counts the events that came, and the seconds that they took, until the bound is seen to.

    ``events`` and ``taken`` are those since then, and ``chunk`` is how many are taken at once of a batch.
    ``is_exact``: work is counted, and not measured, so that the bound is seen to after each event.
    """

    def __init__(self, effort: Effort, few: int = _FEW) -> None:
        """``few``: so many events are taken at once, at least, where they come so."""
        self._clock, self._latency, self._few = effort.clock, effort.latency, few
        self.is_exact = isinstance(effort.clock, WorkClock)
        self.chunk, self.events, self.taken = 1, 0, 0.0

    def timed(self, found: Iterable[Block], begin: float) -> Generator[Block, None, float]:
        """What is found, on which work began then; returns since when time is not counted.

        What whoever reads it does meanwhile takes none.
        """
        for block in found:
            self.taken += self._clock() - begin
            yield block
            begin = self._clock()
        return begin

    def end_one(self, begin: float) -> float | None:
        """An event that came alone is done with, on which work began then.

        None if the bound need not be seen to; else since when time is not counted. What took longer than the
        bound does not wait for others.
        """
        self.events += 1
        if self.is_exact or self.events >= min(_ALONE, self.chunk):
            return begin
        now = self._clock()
        self.taken += now - begin
        return now if self.taken > (self._latency or math.inf) else None

    def see(self) -> int:
        """The bound is seen to: how many events came since it was. The seconds are the caller's to take."""
        events, self.events = self.events, 0
        return events

    def learn(self, each: float) -> None:
        """An event takes so many seconds."""
        if not self.is_exact and self._latency is not None:
            each = max(each, 1e-9)
            few = min(self._few, max(1.0, _LONG / each))
            self.chunk = int(min(_CHUNK, max(few, self._latency * _SLICE / each)))
