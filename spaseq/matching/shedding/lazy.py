"""The lazy matcher under a bound: between events, buffered rows are shed.

A match is found if all its rows are there, so that nothing is found that is not without a bound. What
something looks for that must be absent stays. An event is looked at as the last of a match before it can go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

from spaseq.alone import Single
from spaseq.bounds import Policy, Pool, Shed, WorkClock
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

#: A look comes when so many times as long was worked as the last one took, and for so many rows one is new.
_SELDOM: Final = 16
#: What a look at a row is to a clock that counts work: much less than to try a match with it.
_LOOK: Final = 1 / 16
#: Of the bound some events in a row may take so much. Of what a unit took, this is forgotten with each.
_MOST: Final = 1.0
_FORGET: Final = 0.01
_ANY: Final = 1 << 40
#: So many events are taken at once, at least, where they come so.
_FEW: Final = 64
#: Where memory runs out, such a share of the rows stays, again and again, but not more often than this.
_HALF: Final = 0.5
_ROUNDS: Final = 6
#: The window's events and scratch space, which no shedding makes less, leave so much of it to buffers.
_STATE: Final = 0.5


class SheddingLazy(LazyMatcher):
    """The lazy matcher, which keeps its bounds by shedding. ``shed`` says what was given up."""

    def __init__(self, query: BoundedQuery, compiled: LazyTables | None = None) -> None:
        """``compiled``: its tables, if there are some."""
        bound, context = query.bound, query.context
        budget = context.budget if query.many is None else query.many.budget
        super().__init__(
            query.pattern, query.dictionary, context, query.window, compiled=compiled, budget=budget
        )
        self._memory.bound()
        self.shed = Shed()
        self._bound = bound
        self._name = query.name
        self._overload = None if bound.latency is None else Overload(bound.latency)
        # What it would be compared with passes over nothing.
        self._passes_over = self._overload is not None and bound.policy is Policy.SHARP
        if self._overload is not None and self._passes_over:
            self._overload.even = 1.0  # less is left free for bursts
        self._worth = BufferModel(classes(self._compiled), query.window.reach, bound.policy)
        self._rows = BufferRows(self._compiled, self._memory, self._worth)
        self._pace = LoadMeter(bound, _FEW)
        # Since the last look: events, seconds, and what it took itself. Units of work, and of these what was
        # looked at when they were counted last.
        self._events, self._spent, self._pause = 0, 0.0, 0.0
        self._units, self._tested = 0.0, 0
        # Seconds and units of late beyond what events take by themselves; how often rows were passed over.
        self._beyond, self._passed = np.zeros(2), 0
        # The load that there is; matches found.
        self._load, self._found_so_far = 0.0, 0.0
        #: How many events were shed, by buffer.
        self.gone: Ints = np.zeros(len(self._compiled.gpms), dtype=np.int64)
        # Where something was shed last, on the window's axis.
        self._last_shed = 0
        self._budget, self._least = budget, self._memory.nbytes
        self._load_passes()
        if bound.pool is not None and bound.pool.size < (least := self._least + self._memory.scratch_bytes):
            warn_within(
                f"{self._name} keeps its buffers in {least:,} bytes at least, and not in the "
                f"{bound.pool.size:,} that all queries together may take: give more memory"
            )

    def _load_passes(self) -> None:
        """Compiled code takes a while to be loaded: before anything is measured, not in the first look.

        The next look comes when many times as long was worked, and nothing is shed before.
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
        """See ``Quick.take_single``: what is to be done between events waits for some of them."""
        begin = self._bound.clock()
        columns = self._take_alone(event, start)
        status, place = self._begin_one(columns), self._window.place(event.at.time, start)
        if status != lay.DONE or self._memory.counters.item(counter.FOUND):
            return self._completes(columns, status, begin, place)
        self._end_one(begin, place)
        return None

    def _completes(self, columns: Ints, status: int, begin: float, place: int) -> Iterator[Block]:
        """What an event completes that came alone."""
        begin = yield from self._pace.timed(self._go_on(columns, status), begin)
        self._end_one(begin, place)

    def _end_one(self, begin: float, place: int) -> None:
        """An event that came alone is done with, on which work began then."""
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

    # --- what it does meanwhile -----------------------------------------------------------------

    def _see_to(self, begin: float, place: int) -> None:
        """Sees to the bound after some events: the last of these took since ``begin``."""
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
        """Says what the next events may take together, by what these took."""
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
        """Counts the work that some events were: each, what was looked at, and what was found."""
        tested = self._rows.tested
        units = events + tested - self._tested
        self._tested = tested
        self._units += units
        self._worth.work(units - events, 0)
        if isinstance(self._bound.clock, WorkClock):
            self._bound.clock.add(units)

    def _come(self) -> Ints:
        # What was shed comes again: else an order would be best until less is shed.
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
        yield from self._matched(found, choices)

    def _matched(self, found: Ints, choices: Ints) -> Iterator[Block]:
        """What was found, as matches."""
        yield from self._matches.of(found, choices)

    # --- looking, and shedding ------------------------------------------------------------------

    def _is_due(self) -> bool:
        if self._is_large:
            return True
        new = int(self._rows.new.sum())
        return bool(new) and _SELDOM * new >= self._memory.buffered and self._spent >= _SELDOM * self._pause

    def _look(self, axis: int) -> None:
        """Learns from what there is, and sheds what is too much."""
        events, self._events, self._spent = self._events, 0, 0.0
        w, overload = self._worth, self._overload
        # While there is room, all that is new stays.
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
        """Whether buffers take more than they may."""
        pool = self._bound.pool
        return pool is not None and self._memory.nbytes > self._room(pool)

    def _room(self, pool: Pool) -> int:
        """How many bytes buffers may take."""
        others = self._budget.size - self._budget.but("events") + self._memory.scratch_bytes
        most = pool.share(self._bound, self._memory.nbytes + others)
        return max(most - others, int(_STATE * most), self._least)

    def _grow(self, status: int, wanted: Ints, axis: int) -> None:
        # Nothing is in progress where an event is to be put in the buffers.
        if status in (lay.ROOM, lay.MORE_KEYS):
            self._lighten(axis, lambda: self._memory.grown(status, wanted))
        super()._grow(status, wanted, axis)

    def _lighten(self, axis: int, more: Callable[[], int]) -> None:
        """Sheds until there is room for so many bytes more."""
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
