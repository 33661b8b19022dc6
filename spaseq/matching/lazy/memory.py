"""The arrays of the lazy matcher, and how they grow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from spaseq._fields import address
from spaseq.events import EARLIEST
from spaseq.limits import Budget
from spaseq.matching.filters import _kernel_values as v
from spaseq.matching.lazy.compiled import _kernel as k
from spaseq.matching.lazy.compiled import _kernel_layout as lay
from spaseq.matching.lazy.records import (
    counter,
    frame,
    moment,
    ordering,
    outcome,
    passing,
    plan,
    posting,
    ring,
    stored,
    waiting,
)
from spaseq.matching.lazy.tables import LazyTables

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_ROWS: Final = 1 << 6
_ENTRIES: Final = 1 << 8
_FRAMES: Final = 16
_FOUND: Final = 1 << 8
#: Results are returned in blocks of this size, so more room is made only if one event completes more matches.
_MOST_FOUND: Final = 1 << 14
_WAITS: Final = 1 << 6


class BufferMemory:
    """The buffers, their index, and the search in progress: see ``_kernel_layout``."""

    def __init__(self, compiled: LazyTables, limit: int, single: bool, budget: Budget) -> None:
        self._budget = budget
        self._tables = compiled.tables
        self._gpms = len(compiled.gpms)
        self._stride = stored.VALUES + compiled.values + 2 * stored.INDEX_LIMIT
        self.width = frame.SIZE + compiled.record
        self.floats = compiled.sums + lay.BOUNDS
        self.counters = np.zeros(counter.SIZE, dtype=np.int64)
        self.counters[counter.LIMIT] = limit
        self.counters[counter.SINGLE] = single
        self.counters[counter.DEPTH] = -1
        self.rings = np.zeros((self._gpms, ring.SIZE), dtype=np.int64)
        self.rings[:, ring.MASK] = _ROWS - 1
        self.rings[:, ring.BASE] = np.arange(self._gpms) * _ROWS
        self.rows = np.zeros((self._gpms * _ROWS, self._stride), dtype=np.int64)
        self._ordered = compiled.ordered
        self.ordered = np.zeros(len(self.rows) * self._ordered)
        self.index = np.zeros(_ENTRIES * posting.SIZE, dtype=np.int64)
        self.frames = np.zeros(frame.BEGIN + _FRAMES * self.width, dtype=np.int64)
        self.sums = np.zeros(1 + 2 * v.DEEPEST + _FRAMES * self.floats)
        self._plans = compiled.plans
        self._numbers = {gpm: g for g, gpm in enumerate(compiled.gpms)}
        items = [len(plan.items) for plan, _ in compiled.plans]
        end = len(items) * ordering.SIZE
        self._order = np.zeros(end + 2 * self._gpms + sum(items), dtype=np.int64)
        self.orders = self._order[:end].reshape(-1, ordering.SIZE)
        self.counters[counter.WOKEN] = end
        self.orders[:, ordering.LISTS] = np.cumsum([0, *items[:-1]])
        self.lists = np.zeros(sum(items), dtype=np.int64)
        self.size = waiting.RECORD + compiled.record + (moment.SIZE + 2) * max(items)
        self.waits = np.zeros(len(self.lists) * _WAITS * self.size, dtype=np.int64)
        self.spans = np.zeros(len(self.lists) * _WAITS * lay.BOUNDS)
        self.found = np.zeros((_FOUND, outcome.SIZE), dtype=np.int64)
        self.choices = np.zeros((4 * _FOUND, 3), dtype=np.int64)
        #: Only under a bound: see ``records.passing``.
        self.passing: Ints | None = None
        self._machine = np.zeros(lay.MACHINE, dtype=np.int64)
        self._renew()

    def bound(self) -> None:
        """Prepare for a bound, before the first event."""
        self.passing = np.zeros(self._promises + len(self.rows) * passing.ROW, dtype=np.int64)
        self.passing[[passing.SHARE, passing.SHOWN]] = passing.SURE

    @property
    def bounded(self) -> Ints:
        """The array of ``records.passing``; there must be a bound."""
        assert self.passing is not None
        return self.passing

    @property
    def _promises(self) -> int:
        """The place where the promises of rows begin."""
        return passing.SIZE + self._gpms

    @property
    def _row(self) -> int:
        """The number of integers per row."""
        return self._stride + self._ordered + (0 if self.passing is None else passing.ROW)

    @property
    def buffered(self) -> int:
        """How many rows are held."""
        return int((self.rings[:, ring.TAIL] - self.rings[:, ring.HEAD]).sum())

    @property
    def waiting(self) -> int:
        """How many partial matches wait for events."""
        return int(self.lists.sum())

    @property
    def counts(self) -> Ints:
        """How many rows of each GPM are held."""
        counted: Ints = self.rings[:, ring.TAIL] - self.rings[:, ring.HEAD]
        return counted

    def run(self, columns: Ints, numbers: Floats, codes: npt.NDArray[np.int8]) -> int:
        """Continue with a batch; return what the kernel needs."""
        return k.run(self._machine, columns, numbers, codes, self.passing)

    def _renew(self) -> None:
        """Tell the kernel where its arrays are, and their sizes. Must be called when an array is replaced."""
        arrays = (
            self._tables, self.counters, self.frames, self.sums, self.rings, self.rows, self.ordered,
            self.index, self._order, self.lists, self.waits, self.spans, self.found, self.choices,
        )  # fmt: skip
        self._machine[:] = [*map(address, arrays), self.width, self.floats, self.size]
        c = self.counters
        c[counter.FRAMES_END] = len(self.frames)
        c[counter.ENTRY_MASK] = len(self.index) // posting.SIZE - 1
        c[counter.FOUND_ROOM], c[counter.CHOICE_ROOM] = len(self.found), len(self.choices)
        c[counter.LISTS] = len(self.lists)
        c[counter.WAIT_ROOM] = len(self.waits) // self.size // len(self.lists)

    def reorder(self, orders: Sequence[Sequence[int]], numbers: Floats, codes: npt.NDArray[np.int8]) -> None:
        """Take the items of each plan in another order; if a plan's order is empty, it is chosen for each
        match.

        Partial matches that wait in the old order are made again from the buffered events.
        """
        for row, order in zip(self.orders, orders, strict=True):
            row[ordering.CHAIN] = bool(order)
            row[ordering.ORDER : ordering.ORDER + len(order)] = order
        self._wake(orders)
        self.lists[:] = 0
        self.rings[:, ring.UNTIL] = self.rings[:, ring.HEAD]
        c = self.counters
        c[counter.REPEATING], c[counter.STAGE] = 1, 0
        while True:
            status = self.run(self.rings.ravel(), numbers, codes)
            if status == lay.DONE:
                break
            self.grow(status, self.counts, EARLIEST)
        c[counter.REPEATING] = 0

    def _wake(self, orders: Sequence[Sequence[int]]) -> None:
        """Set which plans the events of each GPM may continue. They may continue a chain where it begins, or
        where partial matches wait.
        """
        woken: list[list[int]] = [[] for _ in range(self._gpms)]
        begin = int(self._tables[lay.T_PLANS])
        for number, ((one, _), order) in enumerate(zip(self._plans, orders, strict=True)):
            taken, may = 0, set[int]()
            for i in order:
                if not one.after(i) & taken:
                    may.add(i)
                taken |= 1 << i
            if not order:
                may = {i for i in range(len(one.items)) if not one.after(i)}
            for g in sorted({self._numbers[one.items[i].atom.gpm] for i in may}):
                woken[g].append(begin + number * plan.SIZE)
        first = int(self.counters[counter.WOKEN])
        ends = first + 2 * self._gpms + np.cumsum([0, *map(len, woken)])
        self._order[first : first + 2 * self._gpms] = np.stack([ends[:-1], ends[1:]], axis=1).ravel()
        self._order[ends[0] : ends[-1]] = [place for of in woken for place in of]

    def restrict(self, over: Sequence[int], reach: int) -> None:
        """Disable some plans; the events of the others are kept for this reach on the window's axis."""
        self.counters[counter.LIMIT], self.counters[counter.EXPIRED] = reach, EARLIEST
        t = self._tables
        begin = int(t[lay.T_PLANS])
        rows = t[begin : int(t[lay.T_PLANS_END])].reshape(-1, plan.SIZE)
        rows[over, plan.ITEMS_END] = rows[over, plan.ITEMS]
        begins = [*self.orders[:, ordering.LISTS].tolist(), len(self.lists)]
        for number in over:
            self.lists[begins[number] : begins[number + 1]] = 0

    def grow(self, status: int, wanted: Ints, axis: int) -> None:
        """Enlarge what the kernel needs.

        ``wanted`` are the new rows by GPM, ``axis`` is the current place.
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
                max(EARLIEST, axis - int(self.counters[counter.LIMIT])),
            )
            self._budget.partial(self.waiting)
            room = len(self.waits) // self.size // len(self.lists)
            if 2 * int(self.lists.max()) > room:
                self._budget.takes("waits", 2 * (self.waits.nbytes + self.spans.nbytes))
                self.waits, self.spans = (
                    np.concatenate([some, np.zeros_like(some)], axis=1).ravel()
                    for some in (all_.reshape(len(self.lists), -1) for all_ in (self.waits, self.spans))
                )
                self._renew()
        elif status == lay.DEEPER:
            self._budget.takes("frames", 2 * (self.frames.nbytes + self.sums.nbytes))
            self.frames = np.concatenate([self.frames, np.zeros_like(self.frames)])
            self.sums = np.concatenate([self.sums, np.zeros(len(self.frames) // self.width * self.floats)])
            self._renew()

    @property
    def first_found(self) -> int:
        """The event of the first result."""
        return int(self.found[0, outcome.EVENT]) if self.counters[counter.FOUND] else -1

    @property
    def is_found_small(self) -> bool:
        """Whether there is so little room for results that blocks would cost more than matches."""
        return len(self.found) < _MOST_FOUND

    def more_found(self) -> None:
        """Make more room for results."""
        self._budget.takes("found", 2 * (self.found.nbytes + self.choices.nbytes))
        self.found = np.concatenate([self.found, np.zeros_like(self.found)])
        self.choices = np.concatenate([self.choices, np.zeros_like(self.choices)])
        self._renew()

    def take(self, unfinished: int | None) -> tuple[Ints, Ints]:
        """Remove and return the results, except those of an unfinished event."""
        c = self.counters
        found, count, used = self.found, int(c[counter.FOUND]), int(c[counter.CHOICES])
        ready = count
        if unfinished is not None:
            ready = int(np.searchsorted(found[:count, outcome.EVENT], unfinished))
        end = int(found[ready, outcome.BEGIN]) if ready < count else used
        taken = found[:ready].copy(), self.choices[:end].copy()
        found[: count - ready] = found[ready:count]
        found[: count - ready, [outcome.BEGIN, outcome.END]] -= end
        self.choices[: used - end] = self.choices[end:used]
        c[counter.FOUND], c[counter.CHOICES] = count - ready, used - end
        return taken

    @property
    def nbytes(self) -> int:
        """The bytes of rows and of waiting partial matches."""
        held = (self.index, self.waits, self.spans)
        return 8 * len(self.rows) * self._row + sum(part.nbytes for part in held)

    @property
    def scratch_bytes(self) -> int:
        """The bytes of the search in progress and of its results."""
        return sum(part.nbytes for part in (self.frames, self.sums, self.found, self.choices))

    def grown(self, status: int, wanted: Ints) -> int:
        """Return how many more bytes the rows or their index would take with the room that the kernel
        needs.
        """
        if status == lay.ROOM:
            more = int(self._rooms(wanted, self.rings[:, ring.MASK] + 1).sum()) - len(self.rows)
            return 8 * more * self._row
        return max(0, 8 * posting.SIZE * self._entries(int(wanted.sum())) - self.index.nbytes)

    def shrink(self) -> None:
        """Free unused room."""
        rooms = self._rooms(np.zeros_like(self.counts), np.full(self._gpms, _ROWS))
        if (rooms < self.rings[:, ring.MASK] + 1).any():
            self._lay_out(np.minimum(rooms, self.rings[:, ring.MASK] + 1))
        if self._entries(0) * posting.SIZE < len(self.index):
            self._more_entries(0)
        room = len(self.waits) // self.size // len(self.lists)
        needed = max(_WAITS, 1 << int(self.lists.max()).bit_length())
        if needed < room:
            self.waits = self.waits.reshape(len(self.lists), room, -1)[:, :needed].ravel()
            self.spans = self.spans.reshape(len(self.lists), room, -1)[:, :needed].ravel()
            self._budget.takes("waits", self.waits.nbytes + self.spans.nbytes)
            self._renew()

    def _rooms(self, wanted: Ints, least: Ints) -> Ints:
        """Return the new number of rows of each buffer, including new rows: ``least`` or more."""
        sizes = least.copy()
        for g, held in enumerate((self.counts + wanted).tolist()):
            while sizes[g] < held:
                sizes[g] *= 2
        return sizes

    def _more_rows(self, wanted: Ints) -> None:
        self._lay_out(self._rooms(wanted, self.rings[:, ring.MASK] + 1))

    def _lay_out(self, rooms: Ints) -> None:
        """Give each buffer room for this many rows."""
        old, rings = self.rings.copy(), self.rings
        rings[:, ring.MASK] = rooms - 1
        ends = np.cumsum(rings[:, ring.MASK] + 1)
        rings[:, ring.BASE] = ends - rings[:, ring.MASK] - 1
        self._budget.takes("rows", 8 * int(ends[-1]) * self._row)
        rows = np.zeros((int(ends[-1]), self._stride), dtype=np.int64)
        ordered = np.zeros(len(rows) * self._ordered)
        held = old[:, ring.TAIL] - old[:, ring.HEAD]
        of = np.repeat(np.arange(len(held)), held)
        numbers = np.arange(len(of)) + (old[:, ring.HEAD] - np.cumsum(held) + held)[of]
        (source, room), (target, new_room) = (
            (one[of, ring.BASE] + (numbers & one[of, ring.MASK]), one[of, ring.MASK] + 1)
            for one in (old, rings)
        )
        rows[target] = self.rows[source]
        if self.passing is not None:
            promises = np.zeros((len(rows), passing.ROW), dtype=np.int64)
            promises[target] = self.passing[self._promises :].reshape(-1, passing.ROW)[source]
            self.passing = np.concatenate([self.passing[: self._promises], promises.ravel()])
        # The columns of each buffer follow each other.
        for column in range(self._ordered):
            old_at, new_at = (
                one[of, ring.BASE] * self._ordered + column * size + (numbers & one[of, ring.MASK])
                for one, size in ((old, room), (rings, new_room))
            )
            ordered[new_at] = self.ordered[old_at]
        self.rows, self.ordered = rows, ordered
        self._renew()

    def _entries(self, wanted: int) -> int:
        """Return the new number of entries of an index, including new ones."""
        entries = self.index.reshape(-1, posting.SIZE)
        live = int((entries[:, posting.COUNT] > 0).sum()) + stored.INDEX_LIMIT * wanted
        return max(_ENTRIES, 1 << (4 * live).bit_length())

    def _more_entries(self, wanted: int) -> None:
        size = self._entries(wanted)
        self._budget.takes("index", 8 * size * posting.SIZE)
        self.index = np.zeros(size * posting.SIZE, dtype=np.int64)
        self._renew()
        k.reindex(
            self._tables, self.counters, self.frames, self.rings.ravel(), self.rows.ravel(), self.index
        )  # fmt: skip
