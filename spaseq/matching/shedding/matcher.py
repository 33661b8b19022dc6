"""The NFA kernel under a bound: its partial matches are observed between events, and overload is shed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from spaseq.alone import Single
from spaseq.bounds import Policy, Shed
from spaseq.errors import warn_within
from spaseq.events import EventBatch
from spaseq.matching.columns.blocks.found import Block
from spaseq.matching.columns.matcher import PushedPattern
from spaseq.matching.filters import batch as heads
from spaseq.matching.nfa import matcher as whole
from spaseq.matching.nfa import sizing
from spaseq.matching.nfa.compiled import _kernel_layout as lay
from spaseq.matching.nfa.matcher import NfaMatcher
from spaseq.matching.nfa.memory import Capacity, RunMemory, runs_size
from spaseq.matching.nfa.records import header as mem
from spaseq.matching.nfa.records import partitions
from spaseq.matching.nfa.sizing import Turns
from spaseq.matching.nfa.tables.analysis import NfaTables
from spaseq.matching.nfa.tables.compiling import compile_tables
from spaseq.matching.obstacles import in_words
from spaseq.matching.shedding import _kernel_known as cells
from spaseq.matching.shedding.account import Account
from spaseq.matching.shedding.burst import BurstFilter
from spaseq.matching.shedding.cost_model import Utilities
from spaseq.matching.shedding.observed import ObservedRuns
from spaseq.matching.shedding.overload import LoadMeter, Overload, Seldom, late
from spaseq.matching.shedding.query import BoundedQuery, obstacles
from spaseq.matching.shedding.rates import Queries
from spaseq.matching.shedding.selection import Doubt, admitted_of, least_room, let_go, part_of
from spaseq.patterns.spectra.solutions import Solutions

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

#: When memory runs out, this share of it is used after shedding.
_FILLED: Final = 0.8
_FULL: Final = 0.95
#: A shared prefix is freed only with its last partial match, so there are at most this many rounds of
#: shedding.
_ROUNDS: Final = 6
#: Shedding does not shrink scratch space; partial matches get at least this share of the memory.
_STATE: Final = 0.5

#: The next look at all partial matches is due after this multiple of the last look's pause. It is doubled
#: where all have the same utility: then there is nothing to choose.
_SELDOM: Final = 16
#: A look waits for a calm time, but at most this multiple of its due time.
_LATE: Final = 1.5
#: A look that takes longer than this many bounds is spread over events.
_BRIEF: Final = 8.0
#: At least one look in this part of a window: else most partial matches come and go unseen.
_HALF: Final = 0.5
#: A plan is made anew after this part of an age, if the latency is above this part of the bound.
_PLANNED: Final = 0.25
_NEAR: Final = 0.8
#: Weight of the last plan in the moving average of ``evenness``.
_SMOOTH: Final = 0.25


class SheddingNfa(NfaMatcher):
    """The kernel, which keeps its bounds by shedding; all matches found are also found without bounds.

    It observes its partial matches between events, and removes those of lowest utility. ``shed`` has the
    counts.
    """

    def __init__(
        self, query: BoundedQuery, compiled: NfaTables | None = None, queries: Queries | None = None
    ) -> None:
        """``compiled``: its tables, if they exist; ``queries``: the queries of its matches, if there are
        several. Raises ``ValueError`` if false matches could be found (``query.obstacles``).
        """
        bound = query.bound
        if against := in_words(obstacles(query.pattern, bound.policy)):
            raise ValueError(f"to shed by {bound.policy}, it must be that {', and '.join(against)}")
        dictionary, window = query.dictionary, query.window
        compiled = compiled or compile_tables(query.pattern, dictionary.pin)
        budget = None if query.many is None else query.many.budget
        super().__init__(
            query.pattern, dictionary, query.context, window, compiled, budget, floor=sizing.ENOUGH
        )
        self._sizing.spare = 0  # spare room would count towards a bound of memory
        self._turns = Turns(compiled, self._budget) if bound.pool is None else None
        self._bound, self._name = bound, query.name
        self._pace = LoadMeter(bound)
        self._observed = ObservedRuns(query, self._compiled, self._memory, self._columns.numbers, queries)
        self._doubt = Doubt(query.pattern, query.window)
        gates = [" | ".join(sorted(gate.gpms)) for gate in self._compiled.analysis.gates]
        self._account = Account(self._name, gates, query.bound.policy, is_chosen=self._doubt.matters)
        # The number of draws of random numbers so far.
        self._draws = 0
        self._overload = None if query.bound.latency is None else Overload(query.bound.latency)
        # Since the end of the last look: events, and seconds of work and of the next look; the seconds of the
        # last look, and how long it delayed events.
        self._events, self._spent, self._looking, self._taken, self._pause = 0, 0.0, 0.0, 0.0, 0.0
        # The counts of the current look; at which event it began, and how many events the last one took.
        self._began = self._between = 0
        self._counted: Ints = np.zeros_like(self._observed.model.alive)
        # The part of ``_spent`` that the overload detector has measured.
        self._measured = 0.0
        # The share of events that ``random-input`` admits.
        self._admitted = 1.0
        # Events since the last plan, and whether partial matches were passed over.
        self._unplanned, self._passes = 0, False
        # When the next plan may be made.
        self._planning = Seldom()
        # The seconds of the current look that a plan took.
        self._aside = 0.0
        self._passing: BurstFilter | None = None
        if bound.latency is not None and bound.policy is Policy.SHARP and not self._doubt.matters:
            self._passing = BurstFilter(self._observed, bound.latency, bound.clock)
        # Partial matches made since the last check of the bound; whether the current event is a single one.
        self._made, self._is_alone = 0, False
        # Since the last check of the bound: the seconds to choose what is passed over, and how often one was.
        self._choosing, self._left_out = 0.0, 0
        self._load_passes()
        least = runs_size(self._compiled, sizing.ENOUGH) + self._memory.scratch_bytes
        if bound.pool is not None and bound.pool.size < least:
            warn_within(
                f"{self._name} keeps its partial matches in {least:,} bytes at least, and not in the "
                f"{bound.pool.size:,} that all queries together may take: give more memory"
            )

    def _load_passes(self) -> None:
        """Load compiled code, which takes a while, before anything is measured."""
        whole.load()
        none: Ints = np.zeros(heads.HEAD, dtype=np.int64)
        runs, model = self._observed, self._observed.model
        runs.rehearse(none, moved=False)
        runs.ask(none, 0)
        runs.observe(0, 0)
        if len(runs.features.graves):
            runs.look_for_dead(0)
        runs.welcome()
        runs.has_strangers()
        model.begin()
        runs.credit()
        self._mark(np.ones(model.alive.size), 0, 0)
        self._sweep(0, 0, 0)
        if self._passing is not None:
            self._passing.load(none)

    # --- events ---

    def _take(self, batch: EventBatch, start: int, solutions: Mapping[str, Solutions]) -> Ints:
        self._observed.place = int(self._window.places(batch, start)[0]), int(batch.time[0])
        before = self._memory
        columns = super()._take(batch, start, solutions)
        self._observed.rehearse(columns, moved=self._memory is not before)
        self._meet(columns, len(batch), is_asked=self._observed.is_sampled(len(batch)))
        return columns

    def _take_alone(self, event: Single, start: int) -> Ints:
        before = self._memory
        columns = super()._take_alone(event, start)
        self._observed.place = self._window.place(event.at.time, start), event.at.time
        is_asked = self._observed.is_sampled(1)
        if is_asked:
            self._observed.rehearse(columns, moved=self._memory is not before)
        self._meet(columns, 1, is_asked=is_asked)
        return columns

    def _meet(self, columns: Ints, events: int, *, is_asked: bool) -> None:
        """Choose the partial matches that some events are not shown to. If ``is_asked``, also determine the
        events' load.

        The load is the number of partial matches that an event would be shown to if none were passed over.
        Otherwise the load would seem smaller, the greater the overload is.
        """
        runs = self._observed
        self._memory.ints[mem.DECIDED] = 0
        runs.bury(self._events + self._between // 2)
        shown = runs.sample(columns) if is_asked else 0
        gone = self._pass_over(columns)
        if is_asked:
            runs.sampled(events, max(0, shown - gone // events))

    def process(self, batch: EventBatch, start: int, solutions: Mapping[str, Solutions]) -> Iterator[Block]:
        """See ``ByColumns.process``."""
        clock = self._bound.clock
        at = 0
        while at < len(batch):
            end = min(len(batch), at + self._pace.chunk)
            part, found = part_of(batch, solutions, at, end)
            if self._admitted < 1:
                found = self._admit(found, start + at, end - at)
            begin = clock()
            memory, self._is_alone = self._memory, False
            try:
                begin = yield from self._pace.timed(super().process(part, start + at, found), begin)
            finally:
                # After an interruption, all partial matches are shown the next events.
                self._show(memory)
            self._pace.events += end - at
            self._made += int(self._memory.ints[mem.DECIDED])
            self._observed.position = start + end
            self._observed.place = int(self._window.places(part, start + at)[-1]), int(part.time[-1])
            self._see_to(begin)
            at = end

    def expect(self, asked: Sequence[PushedPattern]) -> bool:
        """See ``Quick.expect``. Return False if single events are dropped at random."""
        return self._bound.policy is not Policy.RANDOM_INPUT and super().expect(asked)

    def take_single(self, event: Single, start: int) -> Iterator[Block] | None:
        """See ``Quick.take_single``. The bound is checked after several events, not after each one."""
        clock = self._bound.clock
        begin = clock()
        memory, self._is_alone = self._memory, True
        columns = self._take_alone(event, start)
        memory.begin()
        status = self._run(columns)
        if status != lay.DONE or memory.ints.item(mem.FOUND_COUNT):
            return self._completed(start, columns, status, begin, memory)
        self._show(memory)
        self._end_one(start, begin)
        return None

    def _completed(
        self, start: int, columns: Ints, status: int, begin: float, memory: RunMemory
    ) -> Iterator[Block]:
        """Yield the matches of a single event; ``memory``: the memory when the event came."""
        try:
            begin = yield from self._pace.timed(self._go_on(start, columns, status), begin)
        finally:
            self._show(memory)
        self._end_one(start, begin)

    def _end_one(self, start: int, begin: float) -> None:
        """Finish a single event, on which work began at ``begin``."""
        self._made += self._memory.ints.item(mem.DECIDED)
        self._observed.position = start + 1
        if (since := self._pace.end_one(begin)) is not None:
            self._see_to(since)

    def _show(self, memory: RunMemory) -> None:
        """Show events again to the partial matches that were passed over; ``memory``: the memory when they
        were.
        """
        if self._passing is not None:
            self._passing.show(moved=self._memory is not memory)

    def _see_to(self, begin: float) -> None:
        """Check the bound after some events. The time since ``begin`` is not counted yet."""
        events = self._pace.see()
        made, self._made = self._made, 0
        runs = self._observed
        runs.count(events, made)
        self._account.make(made)
        worked = self._pace.taken + self._bound.clock() - begin
        if self._passing is not None and self._overload is not None:
            self._passing.worked(events, worked, self._overload.least)
        self._spent += worked
        self._pace.taken = 0.0
        self._events += events
        runs.given += events
        load, units = runs.load, runs.units
        begun = self._welcome()
        if self._overload is not None:
            spent = self._spent - self._measured
            between = spent - worked + self._choosing
            took = self._overload.measure(events, spent, load, units, begun, between)
            if self._passing is not None:
                self._passing.took(events, took)
        # Partial matches that were passed over count, too: otherwise a look would take longer, the more must
        # be shed.
        work = int(units) + self._left_out + 1
        self._measured, runs.units = self._spent, 0.0
        self._choosing, self._left_out = 0.0, 0
        even = 0.0 if self._overload is None else self._overload.even
        waits = self._passing is not None and not self._passing.leaves(self._pause)
        if runs.hand or self._spent >= due(self._paused, even, waits=waits):
            self._look(*runs.place, work)
        if self._events:
            self._pace.learn(self._spent / self._events)

    def _pass_over(self, columns: Ints) -> int:
        passing, overload = self._passing, self._overload
        if passing is None or overload is None:
            return 0
        begin = self._bound.clock()
        looked_at, gone = passing.pass_over(columns, overload.unit, overload.least)
        self._observed.add_work(looked_at)
        self._choosing += self._bound.clock() - begin
        often = 0
        if gone:
            often = int(passing.passed.sum())
            self._passes = True
            self._left_out += gone
            self._account.pass_over(passing.passed, self._observed.model)
            passing.passed[:] = 0
            self._account.begin(late(passing.latency))
        return often

    # --- during the kernel's work -----------------------------------------------------------------

    def _found(self) -> Iterator[Block]:
        m = self._memory.ints
        if m[mem.FOUND_COUNT]:
            # In a batch, partial matches that became matches may not have been observed yet.
            if self._spent >= self._taken and self._observed.has_strangers():
                self._observed.observe(*self._observed.place)
            self._observed.credit()
        at_once = 0
        few = self._matches.few(m) if self._is_alone and self._is_plain and m[mem.FOUND_COUNT] else None
        for block in super()._found() if few is None else (few,):
            if self._doubt.matters:
                self.shed.doubtful += self._doubt.count(block)
                self._doubt.consumed(block)
            at_once += len(block)
            yield block
        self._account.find(at_once)

    def _admit(self, found: Mapping[str, Solutions], position: int, size: int) -> Mapping[str, Solutions]:
        """Return the solutions of the events that are admitted at random."""
        admitted, passed_over = admitted_of(found, position, size, self._admitted)
        self.shed.events += passed_over
        return admitted

    def close(self) -> Iterator[Block]:
        """See ``ByColumns.close``."""
        yield from super().close()
        self.end_shedding()

    def end_shedding(self) -> None:
        """See ``Shedder.end_shedding``."""
        self._account.estimate()
        if self.shed.active:
            self._account.end()

    # --- observing ---

    def _look(self, axis: int, time: int, most: int) -> None:
        """Observe ``most`` partial matches. Once all have been observed, learn, and shed if there is too much
        load.

        No single event is delayed by all of them: with each event, as many are observed as it had units of
        work. If there are few, all are observed at once.
        """
        begin, runs = self._bound.clock(), self._observed
        m = self._memory.ints
        places = int(m[mem.NEXT_WAIT] - m[mem.WAITS]) // int(m[mem.WIDTH]) - 1
        brief = self._overload is None or self._taken <= _BRIEF * (self._bound.latency or 0.0)
        if not runs.hand:
            self._counted[:] = 0
            self._began = self._events
            most = places + 1 if brief else most
        # The next partial matches were observed by the last look when it was equally far on.
        middle = min(1.0, (runs.hand + most / 2) / max(1, places))
        passed = self._events + self._between - min(self._between, int(middle * (self._between + 1)))
        runs.hand, seen = runs.visit(self._counted, runs.instant(axis, time, passed), runs.hand, most)
        runs.add_work(seen)
        if runs.hand >= places:
            ending = self._bound.clock()
            self._looking += ending - begin
            self._planning.worked(self._spent)
            self._aside = 0.0
            self._end_look(axis, time)
            self._pause = self._bound.clock() - ending - self._aside
            self._looking, self._taken = 0.0, self._looking + self._pause
            if brief:
                self._pause, self._between = self._taken, 0
            self._spent = self._measured = 0.0
        else:
            self._looking += self._bound.clock() - begin
        self._spent += self._bound.clock() - begin

    def _end_look(self, axis: int, time: int) -> None:
        """End a look at all partial matches: learn from it, and shed if there is too much load."""
        runs, s, events = self._observed, self._observed.model, self._events
        self._between, self._events, runs.hand = events - self._began, 0, 0
        s.outlive(events)
        s.alive[:] = self._counted
        s.window.pass_to(axis, runs.given)
        s.decay(events)
        if s.learn():
            runs.forget()
            runs.observe(axis, time, counted=False)
        if self._overload is not None:
            runs.measure_load()
            share = self._overload.share(self._overload.lasting(runs.load))
            self._overload.tell(self.shed, self._name)
            self._keep(share, axis, time, events)
        self._notice(events)

    def _welcome(self) -> int:
        """Observe the partial matches that the last events made; return how many of them have one event."""
        begin = self._bound.clock()
        begun = self._observed.welcome()
        self._spent += self._bound.clock() - begin
        return begun

    @property
    def _paused(self) -> float:
        """Return the seconds that the next look is expected to delay events.

        This includes a plan, unless the last look was at least half a window ago. In wide windows, half as
        many matches were found when looks came as often as possible.
        """
        window = self._observed.model.window
        if not window.is_timed or self._events >= _HALF * cells.AGES * window.age:
            return self._pause
        return self._pause + self._planning.seconds

    def _keep(self, share: float, axis: int, time: int, events: int) -> None:
        """Shed all but this share of the load.

        Nothing is shed before it is necessary, whatever it may cost later. A burst passes, but the
        descendants of a first event that was shed take a window to grow again.
        """
        policy = self._bound.policy
        if policy is Policy.RANDOM_INPUT:
            self._admitted = min(1.0, max(0.01, self._admitted * (share if share < 1 else 1.02)))
            if share < 1:
                self._account.begin(late(self.shed.latency))
            return
        self._plan(events)
        self._observed.learn_loads()
        if share < 1 and self._shed(share, axis, time):
            self._sweep(axis, time, 0)
            self._observed.observe(axis, time)
            self._observed.measure_load()
            self._account.begin(late(self.shed.latency))

    def _plan(self, events: int) -> None:
        """Now and then, compute the price at which there is not too much work.

        A plan takes several times as long as a look. With a plan for each look, looks would be so rare that
        most partial matches would come and go unobserved.
        """
        s, overload, begin = self._observed.model, self._overload, self._bound.clock()
        self._unplanned += events
        if overload is None or overload.unit <= 0 or self._unplanned < _PLANNED * s.window.age:
            return
        if not self._planning.is_due:
            return
        if s.price > 0 or self._passes or (overload.latency or 0.0) > _NEAR * overload.most:
            self._passes = False
            s.plan(overload.most * 1.0 / overload.unit)
            self._unplanned = 0
            overload.even += _SMOOTH * (s.even - overload.even)
            self._planning.took(took := self._bound.clock() - begin)
            self._aside += took

    def _notice(self, events: int) -> None:
        """Count events, and note when shedding has ended."""
        self._account.pass_by(events)
        if self._admitted >= 1 and self._account.is_over(self._observed.model):
            self._account.end()

    def update(self) -> None:
        """See ``Shedder.update``."""
        self._account.estimate()

    # --- selecting ---

    @property
    def shed(self) -> Shed:
        """The counts of what was shed; the caller may replace the object."""
        return self._account.shed

    @shed.setter
    def shed(self, shed: Shed) -> None:
        self._account.shed = shed

    def _shed(self, share: float, axis: int, time: int, *, by_size: bool = False) -> int:
        """Remove partial matches from the arena, so that a share of the load stays; return how many. The
        arena must be swept then.

        ``by_size``: the load is memory, not the work at the next events.
        """
        s, policy = self._observed.model, self._bound.policy
        policy = Policy.SHARP if policy is Policy.RANDOM_INPUT else policy
        if self._doubt.matters:
            return self._let_go(s.worth(policy, by_size=by_size), share, axis, time)
        return self._mark(s.kept(share, policy, by_size=by_size), axis, time)

    def _let_go(self, worth: Utilities, share: float, axis: int, time: int) -> int:
        """Do what ``_shed`` does, but remove first events, each with all its descendants."""
        m = self._memory.ints
        # A look that is spread over events may end with partial matches that it has not observed.
        rows = self._observed.listed(axis, time)
        if not len(rows):
            return 0
        self._draws += 1
        gone = let_go(m, rows, worth, share, self._bound.policy, self._draws)
        self._account.add(gone.cells, self._observed.model)
        self._doubt.forget(axis)
        keys = m[gone.partitions[:, None] + (partitions.KEY + np.arange(len(self._keys)))].tolist()
        for key, place, position in zip(keys, gone.places.tolist(), gone.positions.tolist(), strict=True):
            self._doubt.add(tuple(key), place, position)
        return int(gone.cells.sum())

    def _mark(self, kept: npt.NDArray[np.float64], axis: int, time: int) -> int:
        """Remove partial matches from the arena, which must be swept then; return how many."""
        shed = np.zeros_like(self._observed.model.alive)
        self._draws += 1
        self._observed.mark(kept, shed, axis, time, self._draws)
        self._account.add(shed, self._observed.model)
        return int(shed.sum())

    def _sweep(self, axis: int, time: int, decided: int, left: tuple[int, int] = (0, 0)) -> None:
        hand = self._observed.surviving(axis, time)
        super()._sweep(axis, time, decided, left)
        self._observed.move(self._memory, hand)

    def _empty(self, room: Capacity, like: RunMemory) -> RunMemory:
        return super()._empty(room, like) if self._turns is None else self._turns.empty(room, like)

    def _room(self, live: int, remembered: int, decided: int, axis: int, time: int) -> Capacity:
        room = super()._room(live, remembered, decided, axis, time)
        pool = self._bound.pool
        if pool is None:
            return room
        most = pool.share(self._bound, self._budget.size) - self._budget.but("runs")
        most = max(most - self._memory.scratch_bytes, int(_STATE * most))
        if runs_size(self._compiled, room) <= most:
            return room
        entries = max(remembered + int(self._memory.ints[mem.WANTED]), sizing.ENOUGH.entries)
        least = self._least(axis, time, decided, entries)
        enough = max(_FULL * most, runs_size(self._compiled, sizing.ENOUGH._replace(entries=entries)))
        for _ in range(_ROUNDS):
            size = runs_size(self._compiled, least)
            if size <= enough or not self._lighten(_FILLED * most / size, axis, time):
                break
            self._account.begin(f"more would take more memory than its {most:,} bytes")
            # Decisions are made again, for fewer runs.
            decided = int(_FILLED * most / size * decided)
            least = self._least(axis, time, decided, entries)
        size = runs_size(self._compiled, least)
        more = max(1.0, min(2.0, most / size))
        grown = least._replace(waits=int(more * least.waits), nodes=int(more * least.nodes))
        return grown if runs_size(self._compiled, grown) <= most else least

    def _lighten(self, share: float, axis: int, time: int) -> int:
        """Keep this share of the partial matches; return how many were removed."""
        self._observed.observe(axis, time)
        if not self._observed.model.price:
            # There may have been time enough, so that there is no plan yet.
            self._observed.model.plan(math.inf)
        return self._shed(share, axis, time, by_size=True)

    def _least(self, axis: int, time: int, decided: int, entries: int) -> Capacity:
        return least_room(self._tables, self._memory.ints, axis, time, decided, entries, sizing.ENOUGH)


def due(pause: float, even: float, *, waits: bool) -> float:
    """Return after how many seconds of work the next look is due, if the last one delayed events by
    ``pause``.

    ``even``: how equal all utilities are; ``waits``: the latest events leave no time for a look.
    """
    return (_LATE if waits else 1.0) * (1 + even) * _SELDOM * pause
