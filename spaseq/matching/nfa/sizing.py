"""How much space the memory of a query's runs is given: little at first, more from sweep to sweep."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from spaseq.limits import Budget
from spaseq.matching.filters import _kernel_values as v
from spaseq.matching.nfa.memory import Capacity, RunMemory, fresh, memory, runs_size
from spaseq.matching.nfa.tables.analysis import NfaTables
from spaseq.patterns.spectra.solutions import Solutions

#: What a memory has space for at first: of many queries each has few runs. From sweep to sweep it grows, up
#: to what makes sweeps rare wherever runs come and go.
START: Final = Capacity(1 << 3, 1 << 3, 1 << 3, 1 << 3)
ENOUGH: Final = Capacity(1 << 10, 1 << 10, 1 << 10, 1 << 10)
#: So much a memory that was full in the middle of a batch has to spare, so that it is not soon full again.
_SPARE: Final = 1 << 12
#: A first batch of more events is given so much space at once: for what begins in it, up to so many that wait
#: at the same time, and so many that are found.
_LARGE: Final = 256
_WAITING: Final = (1 << 9) - START.waits
_FOUND: Final = 1 << 14
#: The same of a query with partitions, of each of which something may wait and be found.
_APART: Final = 1 << 11
_FOUND_APART: Final = 1 << 15
#: At so many gates an event is waited for there.
_GATES: Final = 8


@dataclass(slots=True)
class Sizing:
    """The space of one query's memories, one after the other.

    ``floor``: what the next one has space for at least; ``begun``: how much may begin in the batch in hand,
    if that is large; ``spare``: for at most so many events that are to come there is space already.
    """

    compiled: NfaTables
    budget: Budget
    floor: Capacity
    spare: int = _SPARE
    begun: int = 0

    def begin(self, events: int, solutions: Mapping[str, Solutions]) -> None:
        """A batch of so many events begins."""
        first = {name for gate in self.compiled.analysis.start.gates for name in gate.gpms}
        large = events > _LARGE
        self.begun = sum(len(solutions[name]) for name in first if name in solutions) if large else 0

    def first(self, apart: bool) -> RunMemory:
        """The first memory: of a large batch with space for what begins, not to grow a sweep at a time.

        ``apart``: whether the query has partitions.
        """
        room = self.floor
        if self.begun and room is START:
            # Most of what begins ends soon, and what is found stays there until the batch is done.
            most_of = (_APART, _FOUND_APART) if apart else (_WAITING, _FOUND)
            few, most = (self._wider(START, min(self.begun, some), 0) for some in most_of)
            # Scratch space is less than half of what runs take: it needs no more than is left free anyway.
            room = self._within(START, few._replace(nodes=most.nodes, found=most.found), scratch=0)
        return memory(self.compiled, room, self.budget)

    def found_many(self) -> bool:
        """What was found had no space: whether the next memory is to have more of it."""
        is_small = self.floor.found < ENOUGH.found
        if is_small:
            self.floor = self.floor._replace(found=ENOUGH.found)
        return is_small

    def grow(self) -> None:
        """The next time comes later: a memory has more space than the last one, up to ``ENOUGH``."""
        self.floor = Capacity(*(min(4 * now, enough) for now, enough in zip(self.floor, ENOUGH, strict=True)))

    def with_spare(self, room: Capacity, left: int, events: int, of: RunMemory) -> Capacity:
        """More space for what the rest of a batch may need, as long as that does not come near a limit.

        ``left``: how many of its ``events`` are left.
        """
        found = min(self.begun * left // events, _FOUND) if left else 0
        return self._within(room, self._wider(room, min(left, self.spare), found), of.scratch_bytes)

    def _wider(self, room: Capacity, spare: int, found: int) -> Capacity:
        # An event may be waited for at many gates, those of many queries that begin alike.
        waits = room.waits + spare * min(int(self.compiled.tables[v.MOST_GATES]), _GATES)
        # What is found holds a node, as what waits does.
        found = max(spare, found)
        return Capacity(waits, room.nodes + 2 * found, room.found + found, room.entries + spare)

    def _within(self, room: Capacity, wide: Capacity, scratch: int) -> Capacity:
        """The wider of two, unless that comes near a limit; ``scratch``: so many bytes are needed besides."""
        limit = self.budget.limits.query_bytes
        if limit is None:
            return wide
        size = self.budget.but("runs") + scratch + runs_size(self.compiled, wide)
        return wide if 2 * size < limit else room


# Memory that was swept, for the next one: what the system gives anew takes long to be touched first.

Ints = npt.NDArray[np.int64]

#: Integers of a memory that is worth it, and of one that would take longer to be made zeros again than what
#: is used of it takes to be touched.
_WORTH: Final = range(1 << 17, 1 << 25)
#: The next one may need more than this one; and one that is so many times as large as is needed goes back.
_WIDER: Final = 1.5
_TOO_WIDE: Final = 8
#: Both are such a part of the bytes that a query may take, at most, since only one of them is counted.
_OF_LIMIT: Final = 1 / 4


class Turns:
    """Two memories of a query, of which one is in use.

    While memory came from the system, some sweeps took fifty times as long as others: a window's events.
    """

    def __init__(self, compiled: NfaTables, budget: Budget) -> None:
        self._compiled, self._budget = compiled, budget
        self._spare: Ints | None = None

    def empty(self, room: Capacity, like: RunMemory) -> RunMemory:
        """An empty memory with so much space, and the progress of another one; see ``memory``.

        That one is in use until the next call.
        """
        in_use = _whole(like.ints)
        # Whoever was interrupted before may still use what was to be used next.
        spare, self._spare = None if self._spare is in_use else self._spare, None

        def allocate(size: int) -> tuple[Ints, bool]:
            if spare is not None and size <= len(spare) <= _TOO_WIDE * size:
                return spare[:size], False
            wide = int(_WIDER * size)
            return (np.zeros(wide, dtype=np.int64)[:size], True) if self._is_worth(wide) else fresh(size)

        new = memory(self._compiled, room, self._budget, like, allocate)
        self._spare = in_use if self._is_worth(len(in_use)) else None
        return new

    def _is_worth(self, size: int) -> bool:
        most = self._budget.limits.query_bytes
        return size in _WORTH and (most is None or 2 * 8 * size <= _OF_LIMIT * most)


def _whole(ints: Ints) -> Ints:
    """The array that some integers are the first ones of."""
    return ints if ints.base is None else ints.base
