"""The ordered kernel's memory: that of the runs kernel, the families, and what an event has made so far."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from spaseq.events import EARLIEST, LATEST
from spaseq.limits import Budget
from spaseq.matching.conditions import _kernel_values as v
from spaseq.matching.kernel.memory import Memory, Room, memory
from spaseq.matching.kernel.records import header
from spaseq.matching.ordered.compiled import _kernel as k
from spaseq.matching.ordered.compiled import _kernel_layout as lay
from spaseq.matching.ordered.records import families, preferences, roster
from spaseq.matching.ordered.tables import Ordering

Ints = npt.NDArray[np.int64]

_START: Final = Room(1 << 12, 1 << 13, 1, 1)
_FAMILIES: Final = 1 << 11


class Families:
    """All runs of a query, by the first events they began with."""

    def __init__(self, ordering: Ordering, budget: Budget) -> None:
        self._budget = budget
        self._compiled = ordering.compiled
        self._options = options = ordering.options
        self._most = int(options[preferences.MOST])
        self.runs: Memory = memory(self._compiled, _START, budget)
        self.newest = self._nothing_new()
        self.rows: Ints = np.zeros(roster.SIZE + _FAMILIES * families.SIZE, dtype=np.int64)
        levels = options[preferences.LEVELS_END] - options[preferences.LEVELS]
        self.rows[roster.LEVELS] = levels // lay.LEVEL_SIZE
        self.rows[roster.NEXT] = roster.SIZE
        self.rows[roster.END] = len(self.rows)
        self.rows[roster.TIME], self.rows[roster.DUE] = EARLIEST, LATEST
        self.seen = self._nothing_seen()

    @property
    def found(self) -> int:
        """How many matches were found, and are not forgotten."""
        return int(self.rows[roster.COUNT])

    def oldest(self, otherwise: int, column: int, members: int = -1) -> int:
        """What a column says of the oldest family that one of these members wants."""
        family = int(k.oldest(self.rows, members))
        return int(self.rows[family + column]) if family else otherwise

    def make_room(self) -> None:
        """More space for what is short of it, now that nothing is found any more. Raises ``LimitError``."""
        a, m = self.rows, self.runs.ints
        if not a[roster.FREE] and a[roster.NEXT] >= a[roster.END]:
            self._budget.takes("families", 16 * len(a))
            self.rows = np.concatenate([a, np.zeros(len(a) - roster.SIZE, dtype=np.int64)])
            self.rows[roster.END] = len(self.rows)
        decided = int(m[header.DECIDED]) + 1
        self._budget.partial(int(m[header.LIVE_WAITS]) + decided)
        waits = 2 * (int(m[header.LIVE_WAITS]) + decided * (self._most + 1) + 2)
        nodes = 2 * (int(m[header.LIVE_NODES]) + decided)
        buckets = 2 * (int(m[header.LIVE_BUCKETS]) + decided * (self._most + 1) + 2)
        is_known = buckets <= m[header.BUCKET_COUNT] and m[header.LIVE_PARTITIONS] < m[header.MOST_PARTITIONS]
        if waits > m[header.MOST_WAITS] or nodes > m[header.MOST_NODES] or not is_known:
            self._move(Room(*map(max, Room(waits, nodes, 1, 1), _START)))

    def _move(self, room: Room) -> None:
        """Takes the runs that are alive into another memory."""
        old = self.runs
        self.runs = memory(self._compiled, room, self._budget, old)
        tables = self._compiled.tables
        newest, self.newest = self.newest, self._nothing_new()
        k.sweep(
            tables, old.ints, old.floats, self.rows, newest, self.runs.ints, self.runs.floats, self.newest
        )
        self.seen = self._nothing_seen()

    def _nothing_new(self) -> Ints:
        """Of no partition an event of any GPM is known."""
        apart = self._options[preferences.OWN] and self._compiled.tables[v.N_KEYS]
        most = int(self.runs.ints[header.MOST_PARTITIONS]) if apart else 0
        return np.zeros(most * len(self._compiled.gpms), dtype=np.int64)

    def _nothing_seen(self) -> Ints:
        waits = int(self.runs.ints[header.MOST_WAITS])
        return np.zeros(2 << (2 * waits).bit_length(), dtype=np.int64)
