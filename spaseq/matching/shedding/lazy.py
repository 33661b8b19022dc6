"""The lazy matcher under a bound: between events, buffered rows are shed.

A match is found if all its rows are there, so each match is also found without a bound. Rows that may show
that an absence is violated stay. An event is tried as the last one of a match before it can be shed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

from spaseq.alone import Single
from spaseq.bounds import Bound, Policy, Pool, Shed, WorkClock
from spaseq.errors import warn_within
from spaseq.events import EventBatch
from spaseq.matching.columns.blocks.found import Block
from spaseq.matching.lazy.compiled import _kernel_layout as lay
from spaseq.matching.lazy.matcher import LazyMatcher
from spaseq.matching.lazy.records import counter, passing
from spaseq.matching.lazy.tables import LazyTables
from spaseq.matching.shedding.account import given_up, recall_of
from spaseq.matching.shedding.buffers import BufferModel, BufferRows, classes
from spaseq.matching.shedding.overload import LoadMeter, Overload, late
from spaseq.matching.shedding.query import BoundedQuery
from spaseq.matching.shedding.selection import part_of
from spaseq.patterns.spectra.solutions import Solutions

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

#: A look is due after this many times the duration of the last look, if one row in this many is new.
_SELDOM: Final = 16
#: The cost of observing a row, for a clock that counts work: much less than testing a match with it.
_LOOK: Final = 1 / 16
#: Consecutive events may take this share of the bound together. The second number is the share of the
#: measured unit that is forgotten at each event.
_MOST: Final = 1.0
_FORGET: Final = 0.01
_ANY: Final = 1 << 40
#: The least number of events taken at once from a batch.
_FEW: Final = 64
#: If memory runs out, this share of the rows stays, repeatedly, but at most this many times.
_HALF: Final = 0.5
_ROUNDS: Final = 6
#: The buffers' least share of memory; the window's events and scratch space are not reduced by shedding.
_STATE: Final = 0.5


class SheddingLazy(LazyMatcher):
    """The lazy matcher, which keeps its bounds by shedding. ``shed`` has the counts."""

    def __init__(self, query: BoundedQuery, compiled: LazyTables | None = None) -> None:
        """``compiled``: its tables, if they exist."""
        bound, context = query.bound, query.context
        budget = context.budget if query.many is None else query.many.budget
        super().__init__(
            query.pattern, query.dictionary, context, query.window, compiled=compiled, budget=budget
        )
        self._memory.bound()
        self.shed = Shed()
        self._bound = bound
        #: Called when the figures of ``shed`` have changed.
        self.tells: Callable[[], None] | None = None
        self._name = query.name
        self._overload = None if bound.latency is None else Overload(bound.latency)
        # The baseline policies pass over nothing.
        self._passes_over = self._overload is not None and bound.policy is Policy.SHARP
        if self._overload is not None and self._passes_over:
            self._overload.even = 1.0  # less is left free for bursts
        self._worth = BufferModel(classes(self._compiled), query.window.reach, bound.policy)
        self._rows = BufferRows(self._compiled, self._memory, self._worth)
        self._pace = LoadMeter(bound, _FEW)
        # Since the last look: events, seconds, and the seconds of the look. Units of work, and the rows
        # tested when they were last counted.
        self._events, self._spent, self._pause = 0, 0.0, 0.0
        self._units, self._tested = 0.0, 0
        # Recent seconds and units of work beyond the events' own; how often rows were passed over.
        self._beyond, self._passed = np.zeros(2), 0
        # The current load; matches found.
        self._load, self._found_so_far = 0.0, 0.0
        #: How many events were shed, by buffer.
        self.gone: Ints = np.zeros(len(self._compiled.gpms), dtype=np.int64)
        # The place of the last shedding on the window's axis.
        self._last_shed = 0
        self._budget, self._least = budget, self._memory.nbytes
        self._load_passes()
        if bound.pool is not None and bound.pool.size < (least := self._least + self._memory.scratch_bytes):
            warn_within(
                f"{self._name} keeps its buffers in {least:,} bytes at least, and not in the "
                f"{bound.pool.size:,} that all queries together may take: give more memory"
            )

    def _load_passes(self) -> None:
        """Load compiled code, which takes a while, before anything is measured.

        Otherwise the first look would seem long. The next look is due after many times its duration, and
        nothing is shed before that.
        """
        self._let_go(self._worth.kept, every=False)
        self._alive()
        numbers = self._columns.numbers
        self._rows.credit(*self._memory.take(None), numbers.numbers, numbers.codes)

    def process(self, batch: EventBatch, start: int, solutions: Mapping[str, Solutions]) -> Iterator[Block]:
        """See ``ByColumns.process``."""
        clock, at = self._bound.clock, 0
        while at < len(batch):
            end = min(len(batch), at + self._pace.chunk)
            part, found = part_of(batch, solutions, at, end)
            begin = clock()
            begin = yield from self._pace.timed(super().process(part, start + at, found), begin)
            self._pace.events += end - at
            self._see_to(begin, int(self._window.places(part, start + at)[-1]))
            at = end

    def take_single(self, event: Single, start: int) -> Iterator[Block] | None:
        """See ``Quick.take_single``. The bound is checked after several events, not after each one."""
        begin = self._bound.clock()
        columns = self._take_alone(event, start)
        status, place = self._begin_one(columns), self._window.place(event.at.time, start)
        if status != lay.DONE or self._memory.counters.item(counter.FOUND):
            return self._completes(columns, status, begin, place)
        self._end_one(begin, place)
        return None

    def _completes(self, columns: Ints, status: int, begin: float, place: int) -> Iterator[Block]:
        """Yield the matches of a single event."""
        begin = yield from self._pace.timed(self._go_on(columns, status), begin)
        self._end_one(begin, place)

    def _end_one(self, begin: float, place: int) -> None:
        """Finish a single event, on which work began at ``begin``."""
        if (since := self._pace.end_one(begin)) is not None:
            self._see_to(since, place)

    def close(self) -> Iterator[Block]:
        """See ``ByColumns.close``."""
        yield from super().close()
        self.end_shedding()

    def update(self) -> None:
        """See ``Shedder.update``."""
        self.shed.passed_over = int(self._memory.bounded[passing.PASSED])
        self._estimate()

    def end_shedding(self) -> None:
        """See ``Shedder.end_shedding``."""
        self._estimate()
        if self.shed.active:
            self.shed.active = False
            warn_within(f"{self._name} sheds no more: {given_up(self.shed, 'buffered events')}")

    # --- during the kernel's work -----------------------------------------------------------------

    def _see_to(self, begin: float, place: int) -> None:
        """Check the bound after some events. The time since ``begin`` is not counted yet."""
        clock, load = self._bound.clock, self._load
        events = self._pace.see()
        self._count(events)
        units, self._units = self._units, 0.0
        spent, self._pace.taken = self._pace.taken + clock() - begin, 0.0
        self._spent += spent
        self._events += events
        if self._is_due():
            begin = clock()
            self._look(place)
            self._pause = clock() - begin
            spent += self._pause
        if self._overload is not None:
            self._overload.measure(events, spent, load, units)
            self._pace.learn(spent / events)
            if self._passes_over:
                self._allow(self._overload, events, spent, units)

    def _allow(self, overload: Overload, events: int, spent: float, units: float) -> None:
        """Set the budget of the next events, from the seconds and units of the last ones."""
        assert self._bound.latency is not None
        beyond = np.maximum([spent - events * overload.least, units - events], 0.0)
        self._beyond = self._beyond * (1 - _FORGET) ** events + beyond
        if self._beyond.all():
            unit = self._beyond[0] / self._beyond[1]
            most = passing.EVENTS * (_MOST * self._bound.latency - overload.least) / unit
            self._memory.bounded[passing.MOST] = int(np.clip(most, 1, _ANY))

    def _begin(self, columns: Ints, new: Ints) -> int:
        self._rows.begin()
        return super()._begin(columns, new)

    def _count(self, events: int) -> None:
        """Count the work of some events: each itself, the rows tested, and the matches found."""
        tested = self._rows.tested
        units = events + tested - self._tested
        self._tested = tested
        self._units += units
        self._worth.work(units - events, 0)
        if isinstance(self._bound.clock, WorkClock):
            self._bound.clock.add(units)

    def _come(self) -> Ints:
        # Shed rows count, too, since such rows will come again: otherwise an order would be best only until
        # less is shed.
        return np.maximum(super()._come(), self._worth.by_buffer.astype(np.int64))

    def _found(self, unfinished: int | None) -> Iterator[Block]:
        found, choices = self._memory.take(unfinished)
        if not len(found):
            return
        self._units += len(found)
        self._worth.work(len(found), len(found))
        if isinstance(self._bound.clock, WorkClock):
            self._bound.clock.add(len(found))
        numbers = self._columns.numbers
        self._rows.credit(found, choices, numbers.numbers, numbers.codes)
        self._found_so_far += len(found)
        yield from self._made(found, choices)

    # --- observing and shedding -------------------------------------------------------------------

    def _is_due(self) -> bool:
        if self._is_large:
            return True
        new = int(self._rows.new.sum())
        return bool(new) and _SELDOM * new >= self._memory.buffered and self._spent >= _SELDOM * self._pause

    def _look(self, axis: int) -> None:
        """Learn from the rows, and shed if there are too many."""
        events, self._events, self._spent = self._events, 0, 0.0
        w, overload = self._worth, self._overload
        # While there is room, all new rows stay.
        is_full = overload is not None and self._load > overload.target
        gone = self._let_go(w.kept if is_full else np.ones_like(w.kept), every=False)
        if w.pass_to(axis, events):
            w.learn()
        rows, least = self._alive()
        self._load = w.load(rows)
        if overload is not None:
            share = overload.share(self._load)
            overload.tell(self.shed, self._name)
            if share < 1:
                w.choose(rows, least, share)
                gone += self._let_go(w.kept, every=True)
                rows, _ = self._alive()
                self._load = w.load(rows)
            if self._passes_over:
                w.rank(rows)
            passed = int(self._memory.bounded[passing.PASSED])
            gone += passed - self._passed
            self.shed.passed_over = self._passed = passed
        if self._is_large:
            self._memory.shrink()
            self._lighten(axis, lambda: 0)
        if gone:
            self._begin_shedding(late(self.shed.latency))
            self._last_shed = axis
        elif self.shed.active and axis - self._last_shed > max(1, self._window.reach):
            self.end_shedding()
        self._estimate()

    def _begin_shedding(self, why: str) -> None:
        if not self.shed.active:
            self.shed.active = True
            warn_within(f"{self._name} sheds buffered events: {why} (stats.shed says how many)")

    # --- memory ---------------------------------------------------------------------------------

    @property
    def _is_large(self) -> bool:
        """Return whether the buffers take more than their share of memory."""
        pool = self._bound.pool
        return pool is not None and self._memory.nbytes > self._room(pool)

    def _room(self, pool: Pool) -> int:
        """Return how many bytes buffers may take."""
        others = self._budget.size - self._budget.but("events") + self._memory.scratch_bytes
        most = pool.share(self._bound, self._memory.nbytes + others)
        return max(most - others, int(_STATE * most), self._least)

    def _grow(self, status: int, wanted: Ints, axis: int) -> None:
        # No search is in progress when an event is added to the buffers.
        if status in (lay.ROOM, lay.MORE_KEYS):
            self._lighten(axis, lambda: self._memory.grown(status, wanted))
        super()._grow(status, wanted, axis)

    def _lighten(self, axis: int, more: Callable[[], int]) -> None:
        """Shed until there is room for more bytes."""
        pool = self._bound.pool
        for _ in range(_ROUNDS if pool is not None else 0):
            assert pool is not None
            room = self._room(pool)
            if self._memory.nbytes + more() <= room:
                return
            self._worth.choose(*self._alive(), _HALF)
            if not self._let_go(self._worth.kept, every=True):
                return
            self._memory.shrink()
            self._last_shed = axis
            self._begin_shedding(f"more would take more memory than its {room:,} bytes")

    def _alive(self) -> tuple[Floats, Floats]:
        """See ``BufferRows.alive``."""
        numbers = self._columns.numbers
        if isinstance(self._bound.clock, WorkClock):
            self._bound.clock.add(self._memory.buffered * _LOOK)
        return self._rows.alive(numbers.numbers, numbers.codes)

    def _let_go(self, kept: Floats, *, every: bool) -> int:
        numbers = self._columns.numbers
        declined, shed = self._worth.declined.copy(), self._worth.shed.copy()
        gone = self._rows.let_go(kept, numbers.numbers, numbers.codes, every=every)
        if gone:
            classes = self._worth.declined - declined + self._worth.shed - shed
            of = self._worth.classes.of
            self.gone += np.bincount(of, classes, minlength=len(self.gone)).astype(np.int64)
            states = zip(self._compiled.gpms, self.gone.tolist(), strict=True)
            self.shed.by_state = {f"buffered {gpm}": count for gpm, count in states if count}
            self.shed.partial_matches += gone
        return gone

    def _estimate(self) -> None:
        self.shed.recall = recall_of(self._found_so_far, float(self._rows.missed.sum()), self.shed)
        if self.tells is not None:
            self.tells()

    # --- for several queries ------------------------------------------------------------------------

    @property
    def weights(self) -> Floats:
        """The weight of a match by its first item, among those of all plans; may be changed."""
        return self._rows.weights

    def keep_bound(self, bound: Bound) -> None:
        """Keep another bound from now on."""
        self._bound = bound
