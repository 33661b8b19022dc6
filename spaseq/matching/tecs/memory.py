"""The arrays of the enumerating matcher, and how they grow."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, NamedTuple

import numpy as np

from spaseq.events import EARLIEST
from spaseq.limits import Budget
from spaseq.matching.tecs.automaton import DeterministicAutomaton
from spaseq.matching.tecs.compiled import _kernel_active as active_state
from spaseq.matching.tecs.compiled import _kernel_layout as lay
from spaseq.matching.tecs.compiled import _kernel_node as node
from spaseq.matching.tecs.compiled import _kernel_partition as partition
from spaseq.matching.tecs.compiled._kernel import run
from spaseq.matching.tecs.compiled._kernel_keys import move_partitions
from spaseq.matching.tecs.records import counter, root

_NODES: Final = 1 << 14
_PARTITIONS: Final = 1 << 6
_FOUND: Final = 1 << 12
_SHARED: Final = 1 << 3
_ACTIVE: Final = 4
_LIST: Final = 4
_KEYS: Final = 16


class Roots:
    """The roots found in a memory, and how many of them were enumerated."""

    counters: lay.Ints
    nodes: lay.Ints
    found: lay.Ints

    @property
    def unread(self) -> int:
        """The number of roots that are not completely enumerated."""
        return int(self.counters[counter.FOUND_COUNT] - self.counters[counter.READ])

    def forget_read(self) -> None:
        """Drop the enumerated roots, once they are the majority."""
        c = self.counters
        read, count = int(c[counter.READ]), int(c[counter.FOUND_COUNT])
        if read and 2 * read >= count:
            self.found[: count - read] = self.found[read:count]
            c[counter.FOUND_COUNT], c[counter.READ] = count - read, 0

    def forget_found(self) -> None:
        """Drop all roots."""
        self.counters[counter.FOUND_COUNT] = self.counters[counter.READ] = 0

    def take_away(self, keys: Collection[int] | None) -> lay.Ints:
        """Remove and return the roots that were not enumerated; ``keys``: only those with these
        first keys.
        """
        c = self.counters
        left = self.found[c[counter.READ] : c[counter.FOUND_COUNT]]
        taken = np.ones(len(left), dtype=np.bool_)
        if keys is not None:
            taken = np.isin(left[:, root.KEYS], list(keys))
        given, kept = left[taken], left[~taken]
        self.found[: len(kept)] = kept
        c[counter.FOUND_COUNT], c[counter.READ] = len(kept), 0
        return given


class TecsMemory(Roots):
    """All partial matches of a query: see ``_kernel_layout`` for what the arrays hold."""

    def __init__(
        self, automaton: DeterministicAutomaton, labels: int, keys: int, limit: int, budget: Budget
    ) -> None:
        self._budget = budget
        self.automaton = automaton
        self.counters = np.zeros(counter.SIZE, dtype=np.int64)
        c = self.counters
        c[counter.N_KEYS], c[counter.LABELS], c[counter.LIMIT] = keys, labels, limit
        c[counter.MOST_ACTIVE], c[counter.MOST_LIST] = _ACTIVE, _LIST
        # A list begins with a node that is not a union and one more.
        c[counter.LONGEST] = 2
        # No node has number 0, where runs start.
        c[counter.FIRST_NODE] = c[counter.LAST_MARK] = 1
        c[counter.NEXT_NODE] = 2
        # Without keys there is one partition from the start.
        c[counter.PARTITIONS] = int(keys == 0)
        c[counter.MASK] = _NODES - 1
        self.nodes, self.found, self.seen = lay.arrays(
            (_NODES, node.SIZE), (_FOUND, root.SIZE), (_KEYS, keys + 2)
        )
        self.nodes[1] = node.MARK, 0, 0, EARLIEST
        self.parts, self.table = lay.arrays((0, 0), (0,))
        self._allocate(_PARTITIONS if keys else 1)

    def run(self, columns: lay.Ints) -> int:
        """Continue with a batch; return what the kernel needs."""
        return run(
            self.counters, self.nodes, self.parts, self.table, self.found, self.seen, self.automaton.table,
            columns,
        )  # fmt: skip

    @property
    def partitions(self) -> int:
        """How many partitions are held."""
        return int(self.counters[counter.PARTITIONS])

    @property
    def live_nodes(self) -> int:
        """How many nodes are held."""
        return int(self.counters[counter.NEXT_NODE] - self.counters[counter.FIRST_NODE])

    def widen(self) -> None:
        """Enlarge what the kernel needs more of, while no roots wait to be enumerated."""
        c = self.counters
        if c[counter.WANTS] == lay.MORE_KEYS:
            self._budget.takes("seen", 2 * self.seen.nbytes)
            (self.seen,) = lay.arrays((2 * len(self.seen), self.seen.shape[1]))
            return
        old, most_list = self.parts, int(c[counter.MOST_LIST])
        active = int(c[counter.MOST_ACTIVE])
        if c[counter.WANTS] == lay.MORE_LIST:
            most_list *= 2
        else:
            active *= 2
        self._move(old, len(old) - 1, active, most_list, EARLIEST)

    def more_nodes(self) -> None:
        """Double the ring."""
        self._budget.takes("nodes", 2 * self.nodes.nbytes)
        # Each node is in both halves then: at the right place for its number, and at a place that is never
        # read.
        self.nodes = np.concatenate([self.nodes, self.nodes])
        self.counters[counter.MASK] = len(self.nodes) - 1

    def more_found(self) -> None:
        """Double the room for roots."""
        self._budget.takes("found", 2 * self.found.nbytes)
        self.found = np.concatenate([self.found, np.zeros_like(self.found)])

    def begin(self, least: int | None) -> int:
        """Drop all roots, which must have been given away; return the number of the next root.

        ``least``: the least top in the windows of these roots.
        """
        c = self.counters
        c[counter.READ] = 0
        c[counter.FOUND_COUNT] = int(least is not None)
        if least is not None:
            self.found[0, root.LEAST] = least
        return int(c[counter.FOUND_COUNT])

    @property
    def found_count(self) -> int:
        """The number of the next root."""
        return self.counters.item(counter.FOUND_COUNT)

    def since(self, first: int) -> New:
        """Return the roots from this number on."""
        c = self.counters
        found = self.found[first : c[counter.FOUND_COUNT]]
        tops = self.nodes[found[:, root.NODE] & c[counter.MASK], node.TOP]
        return New(found, found[:, root.STATE], tops)

    def reach(self, limit: int) -> None:
        """Set the reach of windows from now on."""
        self.counters[counter.LIMIT] = limit

    def make_partitions(self, least: int) -> None:
        """Drop the partitions without an event since ``least``; at least half are free then."""
        live = int((self.parts[: self.partitions, partition.LAST] >= least).sum())
        active, most_list = int(self.counters[counter.MOST_ACTIVE]), int(self.counters[counter.MOST_LIST])
        self._move(self.parts, max(_PARTITIONS, 1 << (2 * live).bit_length()), active, most_list, least)

    def _move(self, old: lay.Ints, size: int, active: int, most_list: int, least: int) -> None:
        words, entry = _entry(active, most_list)
        self.parts, self.table = self._arrays(size, active, most_list)
        move_partitions(self.counters, old, self.parts, self.table, words, entry, least)
        self.counters[counter.MOST_ACTIVE], self.counters[counter.MOST_LIST] = active, most_list

    def _allocate(self, size: int) -> None:
        c = self.counters
        c[counter.WORDS], c[counter.ENTRY_SIZE] = _entry(_ACTIVE, _LIST)
        c[counter.ENTRIES] = partition.WAITING + c[counter.LABELS] * c[counter.WORDS]
        self.parts, self.table = self._arrays(size, _ACTIVE, _LIST)

    def _arrays(self, size: int, active: int, most_list: int) -> tuple[lay.Ints, lay.Ints]:
        words, entry = _entry(active, most_list)
        width = int(partition.WAITING + self.counters[counter.LABELS] * words + active * entry)
        self._budget.takes("partitions", 8 * size * (width + 3))
        # The last row is scratch space.
        parts, table = lay.arrays((size + 1, width), (1 << (2 * size).bit_length(),))
        return parts, table


class New(NamedTuple):
    """Roots of one batch: their states, and the latest starts of their runs."""

    roots: lay.Ints
    states: lay.Ints
    tops: lay.Ints

    def some(self, numbers: lay.Ints, limit: int) -> lay.Ints:
        """Return those of the roots that have a match in a window of this reach, which must not exceed the
        memory's.
        """
        roots = self.roots[numbers]
        axis = roots[:, root.AXIS]
        roots[:, root.LEAST] = np.where(axis >= EARLIEST + limit, axis - limit, EARLIEST)
        return roots[self.tops[numbers] >= roots[:, root.LEAST]]


class PartitionShare(Roots):
    """The roots of one of several queries that share a memory."""

    def __init__(self, memory: Roots) -> None:
        self.counters, self.found = lay.arrays((counter.SIZE,), (_SHARED, root.SIZE))
        self.nodes = memory.nodes

    def add(self, roots: lay.Ints) -> None:
        """Add roots."""
        self.forget_read()
        count = int(self.counters[counter.FOUND_COUNT])
        end = count + len(roots)
        if end > len(self.found):
            room = np.zeros((1 << end.bit_length(), root.SIZE), dtype=np.int64)
            room[:count] = self.found[:count]
            self.found = room
        self.found[count:end] = roots
        self.counters[counter.FOUND_COUNT] = end

    def look(self, memory: Roots) -> None:
        """Use the current nodes of a memory."""
        self.nodes = memory.nodes
        for number in (counter.FIRST_NODE, counter.MASK):
            self.counters[number] = memory.counters[number]

    def keep(self) -> None:
        """Keep the nodes in use, whatever happens to the memory."""
        self.nodes = self.nodes.copy()

    @property
    def least(self) -> int | None:
        """The least top in a window of a root that is not enumerated; None if there is none."""
        return least_of(self.found[self.counters[counter.READ] :]) if self.unread else None


def least_of(roots: lay.Ints) -> int:
    """Return the least top in the window of the first root, which is the least in the windows of all."""
    return int(roots[0, root.LEAST])


def _entry(active: int, most_list: int) -> tuple[int, int]:
    """Return how many integers hold a bit for each active state, and the size of an active state."""
    return -(-active // 64), active_state.LIST + 2 * most_list
