"""The arrays of the enumerating evaluator, and how they grow."""

from __future__ import annotations

from typing import Final

import numpy as np

from spaseq.limits import Budget
from spaseq.matching.enumeration.automaton import Automaton
from spaseq.matching.enumeration.compiled import _kernel_layout as lay
from spaseq.matching.enumeration.compiled._kernel_partitions import move_partitions
from spaseq.matching.enumeration.compiled._kernel_walk import enumerate_matches

_NODES: Final = 1 << 14
_PARTITIONS: Final = 1 << 6
_FOUND: Final = 1 << 12
_ACTIVE: Final = 4
_LIST: Final = 4
_KEYS: Final = 16
_MATCHES: Final = 1 << 6
_MOST_MATCHES: Final = 1 << 16


class Memory:
    """All partial matches of a query: see ``_kernel_layout`` for what the arrays hold."""

    def __init__(self, automaton: Automaton, labels: int, keys: int, limit: int, budget: Budget) -> None:
        self._budget = budget
        self.automaton = automaton
        self.counters = np.zeros(lay.COUNTERS, dtype=np.int64)
        c = self.counters
        c[lay.N_KEYS], c[lay.LABELS], c[lay.LIMIT] = keys, labels, limit
        c[lay.MOST_ACTIVE], c[lay.MOST_LIST] = _ACTIVE, _LIST
        # A list begins with a node that is no union and one more.
        c[lay.LONGEST] = 2
        # No node has number 0, where runs start.
        c[lay.FIRST_NODE] = c[lay.LAST_MARK] = 1
        c[lay.NEXT_NODE] = 2
        # Without keys there is one partition, and it is there from the start.
        c[lay.PARTITIONS] = int(keys == 0)
        c[lay.MASK] = _NODES - 1
        self.nodes, self.found, self.seen = lay.arrays(
            (_NODES, lay.NODE_SIZE), (_FOUND, lay.FOUND_SIZE), (_KEYS, keys + 1)
        )
        self.nodes[1] = lay.MARK, 0, 0, np.iinfo(np.int64).min
        self.parts, self.table, self.work = lay.arrays((0, 0), (0,), (0,))
        self._allocate(_PARTITIONS if keys else 1)

    @property
    def partitions(self) -> int:
        """How many partitions are held."""
        return int(self.counters[lay.PARTITIONS])

    @property
    def live_nodes(self) -> int:
        """How many nodes are held."""
        return int(self.counters[lay.NEXT_NODE] - self.counters[lay.FIRST_NODE])

    def widen(self) -> None:
        """Makes more of what the kernel wants more of, while nothing found waits to be enumerated."""
        c = self.counters
        if c[lay.WANTS] == lay.MORE_KEYS:
            self._budget.takes("seen", 2 * self.seen.nbytes)
            (self.seen,) = lay.arrays((2 * len(self.seen), self.seen.shape[1]))
            return
        old, most_list = self.parts, int(c[lay.MOST_LIST])
        active = int(c[lay.MOST_ACTIVE])
        if c[lay.WANTS] == lay.MORE_LIST:
            most_list *= 2
        else:
            active *= 2
        self._move(old, len(old), active, most_list, np.iinfo(np.int64).min)

    def more_nodes(self) -> None:
        """A ring twice as large."""
        self._budget.takes("nodes", 2 * self.nodes.nbytes)
        # Each node is in both halves then: where its number leads now, and where nothing asks for it.
        self.nodes = np.concatenate([self.nodes, self.nodes])
        self.counters[lay.MASK] = len(self.nodes) - 1

    def more_found(self) -> None:
        """Room for twice as many roots."""
        self._budget.takes("found", 2 * self.found.nbytes)
        self.found = np.concatenate([self.found, np.zeros_like(self.found)])

    @property
    def unread(self) -> int:
        """How many of the roots found are not enumerated to their end."""
        return int(self.counters[lay.FOUND_COUNT] - self.counters[lay.READ])

    def forget_read(self) -> None:
        """Lets the roots go that were enumerated, once they are most of all."""
        c = self.counters
        read, count = int(c[lay.READ]), int(c[lay.FOUND_COUNT])
        if read and 2 * read >= count:
            self.found[: count - read] = self.found[read:count]
            c[lay.FOUND_COUNT], c[lay.READ] = count - read, 0

    def forget_found(self) -> None:
        """Lets all roots go."""
        self.counters[lay.FOUND_COUNT] = self.counters[lay.READ] = 0

    def make_partitions(self, least: int) -> None:
        """Drops the partitions that no event since ``least`` has touched; at least half are free then."""
        live = int((self.parts[: self.partitions, lay.LAST] >= least).sum())
        active, most_list = int(self.counters[lay.MOST_ACTIVE]), int(self.counters[lay.MOST_LIST])
        self._move(self.parts, max(_PARTITIONS, 1 << (2 * live).bit_length()), active, most_list, least)

    def _move(self, old: lay.Ints, size: int, active: int, most_list: int, least: int) -> None:
        words, entry = _entry(active, most_list)
        self.parts, self.table, self.work = self._arrays(size, active, most_list)
        move_partitions(self.counters, old, self.parts, self.table, words, entry, least)
        self.counters[lay.MOST_ACTIVE], self.counters[lay.MOST_LIST] = active, most_list

    def _allocate(self, size: int) -> None:
        c = self.counters
        c[lay.WORDS], c[lay.ENTRY_SIZE] = _entry(_ACTIVE, _LIST)
        c[lay.ENTRIES] = lay.WAITING + c[lay.LABELS] * c[lay.WORDS]
        self.parts, self.table, self.work = self._arrays(size, _ACTIVE, _LIST)

    def _arrays(self, size: int, active: int, most_list: int) -> tuple[lay.Ints, lay.Ints, lay.Ints]:
        words, entry = _entry(active, most_list)
        width = int(lay.WAITING + self.counters[lay.LABELS] * words + active * entry)
        self._budget.takes("partitions", 8 * size * (width + 3))
        parts, table, work = lay.arrays((size, width), (1 << (2 * size).bit_length(),), (width,))
        return parts, table, work


def _entry(active: int, most_list: int) -> tuple[int, int]:
    """How many integers have a bit for each active state, and the size of an active state."""
    return -(-active // 64), lay.LIST + 2 * most_list


class Walk:
    """Where the enumeration of what was found stands."""

    def __init__(self) -> None:
        self._state, self._stack, self._path = lay.arrays((lay.WALK,), (64, 2), (64, 2))
        # Few matches at first, since few may be wanted.
        self._matches = _MATCHES
        self._events = 4 * _MATCHES

    def next(self, memory: Memory) -> tuple[lay.Ints, lay.Ints, lay.Ints, lay.Ints] | None:
        """Some more of the matches that were found; None when there are no more.

        The positions of their events and the labels of these, where each match begins among them and where
        the last ends, and the number of the root that each belongs to.
        """
        state, c = self._state, memory.counters
        state[lay.W_ROOT] = c[lay.READ]
        while True:
            # Room of their own, since they are kept.
            positions, labels = np.empty((2, self._events), dtype=np.int64)
            offsets, roots = np.zeros((2, self._matches + 1), dtype=np.int64)
            status = enumerate_matches(
                c, memory.nodes, memory.found, int(c[lay.FOUND_COUNT]), state, self._stack, self._path,
                positions, labels, offsets[1:], roots,
            )  # fmt: skip
            c[lay.READ] = state[lay.W_ROOT]
            count, used = int(state[lay.W_COUNT]), int(state[lay.W_USED])
            if count:
                if status == lay.FULL and self._matches < _MOST_MATCHES:
                    self._matches *= 4
                    self._events = max(self._events, 4 * self._matches)
                if 2 * used < len(positions):
                    positions, labels = positions[:used].copy(), labels[:used].copy()
                return positions[:used], labels[:used], offsets[: count + 1], roots[:count]
            if status == lay.DONE:
                return None
            if status == lay.DEEPER:
                self._stack = np.concatenate([self._stack, np.zeros_like(self._stack)])
                self._path = np.concatenate([self._path, np.zeros_like(self._path)])
            else:
                self._events *= 2
