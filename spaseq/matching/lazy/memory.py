"""The arrays of the lazy evaluator, and how they grow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from spaseq.limits import Budget
from spaseq.matching.conditions import _kernel_values as v
from spaseq.matching.lazy.compiled import _kernel as k
from spaseq.matching.lazy.compiled import _kernel_layout as lay
from spaseq.matching.lazy.tables import Compiled

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_ROWS: Final = 1 << 6
_ENTRIES: Final = 1 << 8
_FRAMES: Final = 16
_FOUND: Final = 1 << 8
#: Room for more is made only where one event completes more: what is found is given in such blocks.
_MOST_FOUND: Final = 1 << 14
_WAITS: Final = 1 << 6


class Memory:
    """The buffers, their index, and the search in progress: see ``_kernel_layout``."""

    def __init__(self, compiled: Compiled, limit: int, single: bool, budget: Budget) -> None:
        self._budget = budget
        self._tables = compiled.tables
        self._gpms = len(compiled.gpms)
        self._stride = lay.VALUES + compiled.values + 2 * lay.INDEX_LIMIT
        self.width = lay.FRAME + compiled.record
        self.floats = compiled.sums + lay.BOUNDS
        self.counters = np.zeros(lay.COUNTERS, dtype=np.int64)
        self.counters[lay.LIMIT] = limit
        self.counters[lay.SINGLE] = single
        self.counters[lay.DEPTH] = -1
        self.rings = np.zeros((self._gpms, lay.R_SIZE), dtype=np.int64)
        self.rings[:, lay.R_MASK] = _ROWS - 1
        self.rings[:, lay.R_BASE] = np.arange(self._gpms) * _ROWS
        self.rows = np.zeros((self._gpms * _ROWS, self._stride), dtype=np.int64)
        self._ordered = compiled.ordered
        self.ordered = np.zeros(len(self.rows) * self._ordered)
        self.index = np.zeros(_ENTRIES * lay.E_SIZE, dtype=np.int64)
        self.frames = np.zeros(lay.FRAMES + _FRAMES * self.width, dtype=np.int64)
        self.sums = np.zeros(1 + 2 * v.DEEPEST + _FRAMES * self.floats)
        self.orders = np.zeros((len(compiled.plans), lay.O_SIZE), dtype=np.int64)
        items = [len(plan.items) for plan, _ in compiled.plans]
        self.orders[:, lay.O_LISTS] = np.cumsum([0, *items[:-1]])
        self.lists = np.zeros(sum(items), dtype=np.int64)
        self.size = lay.W_RECORD + compiled.record + (lay.PLACE_SIZE + 2) * max(items)
        self.waits = np.zeros(len(self.lists) * _WAITS * self.size, dtype=np.int64)
        self.spans = np.zeros(len(self.lists) * _WAITS * lay.BOUNDS)
        self.found = np.zeros((_FOUND, lay.FOUND_SIZE), dtype=np.int64)
        self.choices = np.zeros((4 * _FOUND, 3), dtype=np.int64)

    @property
    def buffered(self) -> int:
        """How many rows are held."""
        return int((self.rings[:, lay.R_TAIL] - self.rings[:, lay.R_HEAD]).sum())

    @property
    def waiting(self) -> int:
        """How many partial matches wait for events."""
        return int(self.lists.sum())

    @property
    def counts(self) -> Ints:
        """How many rows of each GPM are held."""
        counted: Ints = self.rings[:, lay.R_TAIL] - self.rings[:, lay.R_HEAD]
        return counted

    def run(self, columns: Ints, numbers: Floats, codes: npt.NDArray[np.int8]) -> int:
        """Goes on with a batch; says what the kernel wants."""
        self._measure()
        return k.run(
            self._tables, self.counters, self.frames, self.sums, self.rings.ravel(), self.rows.ravel(),
            self.ordered, self.index, columns, self.width, self.floats, self.orders.ravel(), self.lists,
            self.waits,
            self.spans, self.size, self.found.ravel(), self.choices.ravel(), numbers, codes,
        )  # fmt: skip

    def _measure(self) -> None:
        """Tells the kernel how much room there is."""
        c = self.counters
        c[lay.FRAMES_END] = len(self.frames)
        c[lay.ENTRY_MASK] = len(self.index) // lay.E_SIZE - 1
        c[lay.FOUND_ROOM], c[lay.CHOICE_ROOM] = len(self.found), len(self.choices)
        c[lay.LISTS] = len(self.lists)
        c[lay.WAIT_ROOM] = len(self.waits) // self.size // len(self.lists)

    def reorder(self, orders: Sequence[Sequence[int]], numbers: Floats, codes: npt.NDArray[np.int8]) -> None:
        """Takes the items of each plan in another order; an empty one is found anew for each match.

        What waits in the old order is made again from the events that are held.
        """
        for row, order in zip(self.orders, orders, strict=True):
            row[lay.O_CHAIN] = bool(order)
            row[lay.O_ORDER : lay.O_ORDER + len(order)] = order
        self.lists[:] = 0
        self.rings[:, lay.R_UNTIL] = self.rings[:, lay.R_HEAD]
        c = self.counters
        c[lay.REPEATING], c[lay.STAGE] = 1, 0
        while True:
            status = self.run(self.rings.ravel(), numbers, codes)
            if status == lay.DONE:
                break
            self.grow(status, self.counts, -lay.FAR)
        c[lay.REPEATING] = 0

    def grow(self, status: int, wanted: Ints, axis: int) -> None:
        """Makes more of what the kernel wants more of.

        ``wanted`` are the new rows by GPM, ``axis`` is now.
        """
        if status == lay.ROOM:
            self._more_rows(wanted)
        elif status == lay.MORE_KEYS:
            self._more_entries(int(wanted.sum()))
        elif status == lay.MORE_WAITS:
            k.drop_all_old(
                self.counters,
                self.lists,
                self.waits,
                self.spans,
                self.size,
                axis - int(self.counters[lay.LIMIT]),
            )
            self._budget.partial(self.waiting)
            room = len(self.waits) // self.size // len(self.lists)
            if 2 * int(self.lists.max()) > room:
                self._budget.takes("waits", 2 * (self.waits.nbytes + self.spans.nbytes))
                self.waits, self.spans = (
                    np.concatenate([some, np.zeros_like(some)], axis=1).ravel()
                    for some in (all_.reshape(len(self.lists), -1) for all_ in (self.waits, self.spans))
                )
        elif status == lay.DEEPER:
            self._budget.takes("frames", 2 * (self.frames.nbytes + self.sums.nbytes))
            self.frames = np.concatenate([self.frames, np.zeros_like(self.frames)])
            self.sums = np.concatenate([self.sums, np.zeros(len(self.frames) // self.width * self.floats)])

    @property
    def first_found(self) -> int:
        """The event of what was found first."""
        return int(self.found[0, lay.FOUND_EVENT]) if self.counters[lay.FOUND] else -1

    @property
    def is_found_small(self) -> bool:
        """Whether there is so little room for what is found that blocks would cost more than matches."""
        return len(self.found) < _MOST_FOUND

    def more_found(self) -> None:
        """Makes more room for what is found."""
        self._budget.takes("found", 2 * (self.found.nbytes + self.choices.nbytes))
        self.found = np.concatenate([self.found, np.zeros_like(self.found)])
        self.choices = np.concatenate([self.choices, np.zeros_like(self.choices)])

    def take(self, unfinished: int | None) -> tuple[Ints, Ints]:
        """Takes out what was found, but for that of an event with which the kernel is not done."""
        c = self.counters
        found, count, used = self.found, int(c[lay.FOUND]), int(c[lay.CHOICES])
        ready = count
        if unfinished is not None:
            ready = int(np.searchsorted(found[:count, lay.FOUND_EVENT], unfinished))
        end = int(found[ready, lay.FOUND_BEGIN]) if ready < count else used
        taken = found[:ready].copy(), self.choices[:end].copy()
        found[: count - ready] = found[ready:count]
        found[: count - ready, [lay.FOUND_BEGIN, lay.FOUND_END]] -= end
        self.choices[: used - end] = self.choices[end:used]
        c[lay.FOUND], c[lay.CHOICES] = count - ready, used - end
        return taken

    def _more_rows(self, wanted: Ints) -> None:
        old, rings = self.rings.copy(), self.rings
        held = old[:, lay.R_TAIL] - old[:, lay.R_HEAD] + wanted
        for g in range(self._gpms):
            size = int(old[g, lay.R_MASK]) + 1
            while size < held[g]:
                size *= 2
            rings[g, lay.R_MASK] = size - 1
        ends = np.cumsum(rings[:, lay.R_MASK] + 1)
        rings[:, lay.R_BASE] = ends - rings[:, lay.R_MASK] - 1
        self._budget.takes("rows", 8 * int(ends[-1]) * (self._stride + self._ordered))
        rows = np.zeros((int(ends[-1]), self._stride), dtype=np.int64)
        ordered = np.zeros(len(rows) * self._ordered)
        for before, now in zip(old, rings, strict=True):
            numbers = np.arange(before[lay.R_HEAD], before[lay.R_TAIL])
            source = before[lay.R_BASE] + (numbers & before[lay.R_MASK])
            rows[now[lay.R_BASE] + (numbers & now[lay.R_MASK])] = self.rows[source]
            for column in range(self._ordered):
                old_at, new_at = (
                    ring[lay.R_BASE] * self._ordered
                    + column * (ring[lay.R_MASK] + 1)
                    + (numbers & ring[lay.R_MASK])
                    for ring in (before, now)
                )
                ordered[new_at] = self.ordered[old_at]
        self.rows, self.ordered = rows, ordered

    def _more_entries(self, wanted: int) -> None:
        entries = self.index.reshape(-1, lay.E_SIZE)
        live = int((entries[:, lay.E_COUNT] > 0).sum()) + lay.INDEX_LIMIT * wanted
        size = max(_ENTRIES, 1 << (4 * live).bit_length())
        self._budget.takes("index", 8 * size * lay.E_SIZE)
        self.index = np.zeros(size * lay.E_SIZE, dtype=np.int64)
        self._measure()
        k.reindex(
            self._tables, self.counters, self.frames, self.rings.ravel(), self.rows.ravel(), self.index
        )  # fmt: skip
