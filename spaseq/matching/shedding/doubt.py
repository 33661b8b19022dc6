"""Which matches might be others without a bound: those that one of what was shed could have kept out.

EMIT chooses among the matches of one last event, and CONSUME ANY ends partial matches: where all of one first
event is shed together, a match may be a false one only while that first event's window lasts.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable

from spaseq.automaton.pattern import SequencePattern
from spaseq.language.syntax import Consume, Emit
from spaseq.matching.columns.blocks.found import Block
from spaseq.matching.host import Key, emitted
from spaseq.matching.model import Bounds, Found, Occurrence


class Doubt:
    """Remembers the first events of which all was shed, by partition, while that may matter."""

    def __init__(self, pattern: SequencePattern, bounds: Bounds) -> None:
        self._bounds = bounds
        emit = emitted(pattern)
        self._chooses = emit is not Emit.ALL
        # Among events of several streams, what is earlier does not tell what came before.
        self._by_earlier = emit in (Emit.NEXT, Emit.MAX) and len(set(pattern.streams)) == 1
        self._consumes = pattern.query.consume is Consume.ANY
        # Place on the window's axis, and position; in order.
        self._gone: dict[Key, list[tuple[int, int]]] = {}

    @property
    def matters(self) -> bool:
        """Whether dropping a partial match may let another match through at all."""
        return self._chooses or self._consumes

    def add(self, key: Key, place: int, position: int) -> None:
        """All of a first event was shed."""
        insort(self._gone.setdefault(key, []), (place, position))

    def forget(self, place: int) -> None:
        """Time has come to a place on the window's axis."""
        oldest = place - 2 * self._bounds.reach
        for key, gone in list(self._gone.items()):
            del gone[: bisect_left(gone, (oldest, 0))]
            if not gone:
                del self._gone[key]

    def count(self, block: Block) -> int:
        """How many of these matches might be others."""
        return sum(self._is_in_doubt(key, match) for key, match in block) if self._gone else 0

    def consumed(self, found: Iterable[tuple[Key, Found]]) -> None:
        """Of matches in doubt nobody knows what they consume: that is as if it were shed."""
        if self._consumes and self._gone:
            for key, match in found:
                if self._is_in_doubt(key, match):
                    self.add(key, self._place(match.last), match.last.position)

    def _is_in_doubt(self, key: Key, match: Found) -> bool:
        gone = self._gone.get(key)
        if gone is None:
            return False
        reach, first = self._bounds.reach, match.first
        # What a partial match consumes that was shed, it does within its window.
        if self._consumes and gone[-1][0] + reach >= self._place(first):
            return True
        if not self._chooses:
            return False
        # Another match of the same last event, which began with what was shed, might have been preferred.
        at = bisect_left(gone, (self._place(match.last) - reach, -1))
        return at < len(gone) and (not self._by_earlier or gone[at][1] < first.position)

    def _place(self, event: Occurrence) -> int:
        return self._bounds.place(event.time, event.position)
