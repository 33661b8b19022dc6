"""The room of the memory of a query's runs: little at first, more from sweep to sweep."""

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

#: The initial room is small, for many queries with few runs each. From sweep to sweep it grows up to
#: ``ENOUGH``, with which sweeps are rare even if runs come and go.
START: Final = Capacity(1 << 3, 1 << 3, 1 << 3, 1 << 3)
ENOUGH: Final = Capacity(1 << 10, 1 << 10, 1 << 10, 1 << 10)
#: The spare room of a memory that was full in the middle of a batch, so that it is not soon full again.
_SPARE: Final = 1 << 12
#: A first batch of more than ``_LARGE`` events gets room at once for the runs that begin in it: at most
#: ``_WAITING`` waits at the same time, and ``_FOUND`` findings.
_LARGE: Final = 256
_WAITING: Final = (1 << 9) - START.waits
_FOUND: Final = 1 << 14
#: The same two limits for a query with partitions, each of which may have waits and findings.
_APART: Final = 1 << 11
_FOUND_APART: Final = 1 << 15
#: The assumed number of gates at which an event's runs wait, at most.
_GATES: Final = 8


@dataclass(slots=True)
class Sizing:
    """The room of one query's memories, one after the other.

    ``floor``: the least room of the next memory; ``begun``: how many runs may begin in the current batch, if
    it is large; ``spare``: a memory has spare room for at most this many future events.
    """

    compiled: NfaTables
    budget: Budget
    floor: Capacity
    spare: int = _SPARE
    begun: int = 0

    def begin(self, events: int, solutions: Mapping[str, Solutions]) -> None:
        """Begin a batch of this many events."""
        first = {name for gate in self.compiled.analysis.start.gates for name in gate.gpms}
        large = events > _LARGE
        self.begun = sum(len(solutions[name]) for name in first if name in solutions) if large else 0

    def first(self, apart: bool) -> RunMemory:
        """Return the first memory. For a large batch it has room for the runs that begin in it, so that it
        need not grow from sweep to sweep.

        ``apart``: whether the query has partitions.
        """
        room = self.floor
        if self.begun and room is START:
            # Most runs end soon, and findings stay until the batch is done.
            most_of = (_APART, _FOUND_APART) if apart else (_WAITING, _FOUND)
            few, most = (self._wider(START, min(self.begun, some), 0) for some in most_of)
            # Scratch space is less than half of the runs' memory, so the part of the limit that ``_within``
            # leaves free suffices for it.
            room = self._within(START, few._replace(nodes=most.nodes, found=most.found), scratch=0)
        return memory(self.compiled, room, self.budget)

    def found_many(self) -> bool:
        """Note that there was no room for findings; return whether the next memory will have more."""
        is_small = self.floor.found < ENOUGH.found
        if is_small:
            self.floor = self.floor._replace(found=ENOUGH.found)
        return is_small

    def grow(self) -> None:
        """Give the next memory more room than the last one, up to ``ENOUGH``, so that sweeps become rarer."""
        self.floor = Capacity(*(min(4 * now, enough) for now, enough in zip(self.floor, ENOUGH, strict=True)))

    def with_spare(self, room: Capacity, left: int, events: int, of: RunMemory) -> Capacity:
        """Return ``room`` with additional room for the rest of a batch, unless that comes near a limit.

        ``left``: how many of the batch's ``events`` are left.
        """
        found = min(self.begun * left // events, _FOUND) if left else 0
        return self._within(room, self._wider(room, min(left, self.spare), found), of.scratch_bytes)

    def _wider(self, room: Capacity, spare: int, found: int) -> Capacity:
        # An event's runs may wait at many gates: those of many queries with a common prefix.
        waits = room.waits + spare * min(int(self.compiled.tables[v.MOST_GATES]), _GATES)
        # A finding holds a node, like a wait.
        found = max(spare, found)
        return Capacity(waits, room.nodes + 2 * found, room.found + found, room.entries + spare)

    def _within(self, room: Capacity, wide: Capacity, scratch: int) -> Capacity:
        """Return ``wide``, the wider of two rooms, unless it comes near a limit; then ``room``. ``scratch``:
        further bytes.
        """
        limit = self.budget.limits.query_bytes
        if limit is None:
            return wide
        size = self.budget.but("runs") + scratch + runs_size(self.compiled, wide)
        return wide if 2 * size < limit else room


# Swept memory for reuse: new memory from the system is slow to touch first.

Ints = npt.NDArray[np.int64]

#: The sizes of a memory worth reusing, in integers: above, clearing all would take longer than touching the
#: used part of a new one.
_WORTH: Final = range(1 << 17, 1 << 25)
#: The next one may need more than this one; and one that is this many times larger than needed is released.
_WIDER: Final = 1.5
_TOO_WIDE: Final = 8
#: The two memories take at most this share of a query's limit of bytes, since only one of them is counted.
_OF_LIMIT: Final = 1 / 4


class Turns:
    """Two memories of a query, used in turn.

    With new memory from the system, some sweeps took fifty times as long as others: as long as a window's
    events.
    """

    def __init__(self, compiled: NfaTables, budget: Budget) -> None:
        self._compiled, self._budget = compiled, budget
        self._spare: Ints | None = None

    def empty(self, room: Capacity, like: RunMemory) -> RunMemory:
        """Return an empty memory of this size, with the progress of another one; see ``memory``.

        The other one is in use until the next call.
        """
        in_use = _whole(like.ints)
        # After an interrupt, the spare memory may still be in use.
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
    """Return the array of which some integers are the beginning."""
    return ints if ints.base is None else ints.base
