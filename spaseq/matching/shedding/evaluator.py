"""The kernel under a bound: between events, what overburdens it is shed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from spaseq.alone import Single
from spaseq.effort import Policy
from spaseq.errors import warn_within
from spaseq.events import Clock, EventBatch, Stamp
from spaseq.gpm.spectra.solutions import Solutions
from spaseq.matching.columns.blocks.found import Block
from spaseq.matching.columns.evaluator import Asked
from spaseq.matching.conditions import batch as heads
from spaseq.matching.kernel import evaluator as whole
from spaseq.matching.kernel import sizing
from spaseq.matching.kernel.compiled import _kernel_layout as lay
from spaseq.matching.kernel.memory import Memory, runs_size
from spaseq.matching.kernel.records import header as mem
from spaseq.matching.kernel.tables.compiled import Compiled
from spaseq.matching.obstacles import in_words
from spaseq.matching.shedding.bounded import Bounded
from spaseq.matching.shedding.compiled import _kernel_passes as k
from spaseq.matching.shedding.fits import obstacles
from spaseq.matching.shedding.learned.queries import Queries
from spaseq.matching.shedding.lots import admitted_of, part_of
from spaseq.matching.shedding.measured.overload import Overload
from spaseq.matching.shedding.observed import due
from spaseq.matching.shedding.passing import Passing
from spaseq.matching.shedding.selecting import Selecting

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

#: A look is spread over events if it takes longer than so many may; what is known is fresher if it is not.
_BRIEF: Final = 8.0
#: A plan is made anew after such a part of an age, from such a part of the bound on.
_PLANNED: Final = 0.25
_NEAR: Final = 0.8
#: How far partial matches are worth the same is that of late: so much of it is what the last plan says.
_SMOOTH: Final = 0.25


class Shedding(Selecting):
    """The kernel, which keeps its bounds by shedding; all that it finds is found without bounds, too.

    ``shed`` says what was given up.
    """

    def __init__(
        self, query: Bounded, compiled: Compiled | None = None, queries: Queries | None = None
    ) -> None:
        """See ``Observed``. Raises ``ValueError`` if false matches could be found (``fits.obstacles``)."""
        effort = query.effort
        if against := in_words(obstacles(query.pattern, effort.policy)):
            raise ValueError(f"to shed by {effort.policy}, it must be that {', and '.join(against)}")
        super().__init__(query, compiled, queries)
        self._overload = None if effort.latency is None else Overload(effort.latency)
        self._passing: Passing | None = None
        if effort.latency is not None and effort.policy is Policy.SHARP and not self._doubt.matters:
            self._passing = Passing(self._sketch, effort.latency, effort.clock)
        # How many new ones are shed.
        self._scratch: Ints = np.zeros_like(self._sketch.alive)
        # Since the last look ended: events, and seconds of work and of the next look; what the last one
        # took, and held events up for.
        self._events, self._spent, self._looking, self._taken, self._pause = 0, 0.0, 0.0, 0.0, 0.0
        # What the look at hand has counted; at which of the events it began, and how many the last one took.
        self._began = self._between = 0
        self._counted: Ints = np.zeros_like(self._sketch.alive)
        # Of the work, what the overload detector knows.
        self._measured = 0.0
        # How many partial matches were made since the bound was seen to; whether the events in hand are one
        # that came alone.
        self._made, self._is_alone = 0, False
        # Of the events, the share that ``random-input`` lets in.
        self._admitted = 1.0
        # Events since a plan was made, and whether something was passed over.
        self._unplanned, self._passes = 0, False
        # Since the bound was seen to: the seconds that it took to choose what is passed over, and how often
        # one was.
        self._choosing, self._left_out = 0.0, 0
        self._load_passes()
        least = runs_size(self._compiled, sizing.ENOUGH) + self._memory.scratch_bytes
        if effort.pool is not None and effort.pool.size < least:
            warn_within(
                f"{self._name} keeps its partial matches in {least:,} bytes at least, and not in the "
                f"{effort.pool.size:,} that all queries together may take: give more memory"
            )

    def _load_passes(self) -> None:
        """Compiled code takes a while to be loaded: before anything is measured, not in the first look."""
        whole.load()
        none: Ints = np.zeros(heads.HEAD, dtype=np.int64)
        self._rehearse(none, self._memory)
        self._ask(none, 0)
        self._observe(0, 0)
        if len(self._features.graves):
            self._look_for_dead()
        self._welcome(0, 0)
        k.strangers(self._memory.ints, self._known)
        self._sketch.begin()
        self._credit()
        self._mark(np.ones(self._sketch.alive.size), 0, 0)
        self._sweep(0, 0, 0)
        if self._passing is not None:
            self._passing.load(self._tables, self._memory.ints, none, self._known)

    def process(self, batch: EventBatch, start: int, solutions: Mapping[str, Solutions]) -> Iterator[Block]:
        """See ``ByColumns.process``."""
        clock = self._effort.clock
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
                # Whoever stops midway: what comes next is shown to all.
                self._show(memory)
            self._pace.events += end - at
            self._made += int(self._memory.ints[mem.DECIDED])
            self._position = start + end
            self._place = int(self._bounds.places(part, start + at)[-1]), int(part.time[-1])
            self._see_to(begin)
            at = end

    def take_one(
        self, batch: EventBatch, start: int, solutions: Mapping[str, Solutions]
    ) -> Iterator[Block] | None:
        """See ``Quick.take_one``: there is always something left to do."""
        return self.process(batch, start, solutions)

    def expect(self, asked: Sequence[Asked], clock: Clock) -> bool:
        """See ``Quick.expect``: not where each event draws lots."""
        return self._effort.policy is not Policy.RANDOM_INPUT and super().expect(asked, clock)

    def take_single(
        self, at: Stamp, graph: int, terms: Sequence[int], start: int, event: Single | None = None
    ) -> Iterator[Block] | None:
        """See ``Quick.take_single``: what is to be done between events waits for some of them."""
        clock = self._effort.clock
        begin = clock()
        memory, self._is_alone = self._memory, True
        columns = self._take_alone(at, graph, terms, start, event)
        memory.begin()
        status = self._run(columns)
        if status != lay.DONE or memory.ints.item(mem.FOUND_COUNT):
            return self._completed(start, columns, status, begin, memory)
        self._show(memory)
        self._end_one(start, begin)
        return None

    def _completed(
        self, start: int, columns: Ints, status: int, begin: float, memory: Memory
    ) -> Iterator[Block]:
        """What an event completes that came alone; ``memory``: what it was when that came."""
        try:
            begin = yield from self._pace.timed(self._go_on(start, columns, status), begin)
        finally:
            self._show(memory)
        self._end_one(start, begin)

    def _end_one(self, start: int, begin: float) -> None:
        """An event that came alone is done with, on which work began then."""
        self._made += self._memory.ints.item(mem.DECIDED)
        self._position = start + 1
        if (since := self._pace.end_one(begin)) is not None:
            self._see_to(since)

    def _show(self, memory: Memory) -> None:
        """What was passed over is shown what comes; ``memory``: what it was then."""
        if self._passing is not None:
            self._passing.show(self._tables, self._memory.ints, moved=self._memory is not memory)

    def _see_to(self, begin: float) -> None:
        """Sees to the bound after some events: the last of these took since ``begin``."""
        events = self._pace.see()
        made, self._made = self._made, 0
        self._count(events, made)
        worked = self._pace.taken + self._effort.clock() - begin
        if self._passing is not None and self._overload is not None:
            self._passing.worked(events, worked, self._overload.least)
        self._spent += worked
        self._pace.taken = 0.0
        self._events += events
        self._given += events
        axis, time = self._place
        load, units = self._load, self._units
        begun = self._welcome(axis, time)
        if self._overload is not None:
            spent = self._spent - self._measured
            between = spent - worked + self._choosing
            took = self._overload.measure(events, spent, load, units, begun, between)
            if self._passing is not None:
                self._passing.took(events, took)
        # To look at no more than was shown would take the longer the more there is to be shed.
        work = int(units) + self._left_out + 1
        self._measured, self._units = self._spent, 0.0
        self._choosing, self._left_out = 0.0, 0
        even = 0.0 if self._overload is None else self._overload.even
        waits = self._passing is not None and not self._passing.leaves(self._pause)
        if self._hand or self._spent >= due(self._pause, even, waits=waits):
            self._look(axis, time, work)
        if self._events:
            self._pace.learn(self._spent / self._events)

    def _pass_over(self, columns: Ints) -> int:
        passing, overload = self._passing, self._overload
        if passing is None or overload is None:
            return 0
        begin = self._effort.clock()
        axis, now = self._place[0], self._sketch.passed(self._given)
        m = self._memory.ints
        looked_at, gone = passing.pass_over(
            self._tables, m, columns, self._known, overload.unit, overload.least, axis, now
        )
        self._add_work(looked_at)
        self._choosing += self._effort.clock() - begin
        often = 0
        if gone:
            often = int(passing.passed.sum())
            self._passes = True
            self._left_out += gone
            self._account.pass_over(passing.passed, self._sketch)
            passing.passed[:] = 0
            self._account.begin(_late(passing.latency))
        return often

    # --- what the kernel does meanwhile ---------------------------------------------------------

    def _found(self) -> Iterator[Block]:
        m = self._memory.ints
        if m[mem.FOUND_COUNT]:
            # Of many events at once, those that a match came of were not looked at yet.
            if self._spent >= self._taken and k.strangers(m, self._known):
                self._observe(*self._place)
            self._credit()
        at_once = 0
        few = self._matches.few(m) if self._is_alone and self._is_plain and m[mem.FOUND_COUNT] else None
        for block in super()._found() if few is None else (few,):
            if self._doubt.matters:
                self.shed.doubtful += self._doubt.count(block)
                self._doubt.consumed(block)
            at_once += len(block)
            yield block
        self._account.find(at_once)

    # --- looking --------------------------------------------------------------------------------

    def _look(self, axis: int, time: int, most: int) -> None:
        """Looks at ``most`` partial matches; learns, and sheds what is too much, when all have been seen.

        No event pays for them all: with each, as many are looked at as it was units of work. But if they are
        few, all are looked at.
        """
        begin = self._effort.clock()
        m = self._memory.ints
        places = int(m[mem.NEXT_WAIT] - m[mem.WAITS]) // int(m[mem.WIDTH]) - 1
        brief = self._overload is None or self._taken <= _BRIEF * (self._effort.latency or 0.0)
        if not self._hand:
            self._counted[:] = 0
            self._began = self._events
            most = places + 1 if brief else most
        # Those that are next were seen by the last look when it was as far on.
        middle = min(1.0, (self._hand + most / 2) / max(1, places))
        passed = self._events + self._between - min(self._between, int(middle * (self._between + 1)))
        self._hand, seen = self._visit(self._counted, axis, time, self._hand, most, passed)
        self._add_work(seen)
        if self._hand >= places:
            ending = self._effort.clock()
            self._looking += ending - begin
            self._end_look(axis, time)
            self._looking, self._taken = 0.0, self._looking + self._effort.clock() - ending
            self._pause = self._effort.clock() - ending
            if brief:
                self._pause, self._between = self._taken, 0
            self._spent = self._measured = 0.0
        else:
            self._looking += self._effort.clock() - begin
        self._spent += self._effort.clock() - begin

    def _end_look(self, axis: int, time: int) -> None:
        """All partial matches have been looked at: learns of that, and sheds what is too much."""
        s, events = self._sketch, self._events
        self._between, self._events, self._hand = events - self._began, 0, 0
        s.outlive(events)
        s.alive[:] = self._counted
        s.pass_to(axis, self._given)
        s.decay(events)
        if s.learn():
            self._kept[:] = 1.0
            self._known[:] = 0
            self._observe(axis, time, counted=False)
        if self._overload is not None:
            self._load = self._loaded()
            share = self._overload.share(self._overload.lasting(self._load))
            self._overload.tell(self.shed, self._name)
            self._keep(share, axis, time, events)
        self._notice(events)

    def _welcome(self, axis: int, time: int) -> int:
        """Looks at the partial matches that the last events made; sheds of these where there is no room.

        How many of them began.
        """
        begin = self._effort.clock()
        s, f, m, numbers = self._sketch, self._features, self._memory, self._columns.numbers
        room = (
            math.inf if self._overload is None else self._overload.load - self._overload.lasting(self._load)
        )
        if self._admitted < 1 or self._doubt.matters:
            room = math.inf
        shed = self._scratch
        total, begun, load = k.welcome(
            f.tables, m.ints, m.floats, numbers.numbers, numbers.codes, self._known, f.ways, f.bases,
            *s.quantiles.arrays, s.counts, s.steps, s.alive, self._loads, self._kept, shed, self._next, axis,
            time, s.passed(self._given), room, self._draws,
        )  # fmt: skip
        self._load += load
        self._next = int(m.ints[mem.NEXT_WAIT])
        self._add_work(total)
        if shed.any():
            self._account.add(shed, self._sketch)
            shed[:] = 0
            self._account.begin(_late(self._overload.expect(self._load) if self._overload else None))
        self._spent += self._effort.clock() - begin
        return begun

    def _admit(self, found: Mapping[str, Solutions], position: int, size: int) -> Mapping[str, Solutions]:
        """The solutions of those events alone that have drawn so."""
        admitted, passed_over = admitted_of(found, position, size, self._admitted)
        self.shed.events += passed_over
        return admitted

    @property
    def _since_seen(self) -> int:
        return self._events + self._between // 2

    # --- shedding -------------------------------------------------------------------------------

    def _keep(self, share: float, axis: int, time: int, events: int) -> None:
        """Sheds all but this share of the load.

        Nothing is shed before that, whatever it may cost some day: a burst passes, but what would have grown
        of a first event that was shed takes a window to grow again.
        """
        s, policy = self._sketch, self._effort.policy
        if policy is Policy.RANDOM_INPUT:
            self._admitted = min(1.0, max(0.01, self._admitted * (share if share < 1 else 1.02)))
            if share < 1:
                self._account.begin(_late(self.shed.latency))
            return
        self._plan(events)
        self._loads = s.load()
        if share < 1 and self._shed(share, axis, time):
            self._sweep(axis, time, 0)
            self._observe(axis, time)
            self._load = self._loaded()
            self._account.begin(_late(self.shed.latency))

    def _plan(self, events: int) -> None:
        """Now and then, what work must bring so that there is not too much of it."""
        s, overload = self._sketch, self._overload
        self._unplanned += events
        if overload is None or overload.unit <= 0 or self._unplanned < _PLANNED * s.age:
            return
        if s.price > 0 or self._passes or (overload.latency or 0.0) > _NEAR * overload.most:
            self._passes = False
            s.plan(overload.most * 1.0 / overload.unit)
            self._unplanned = 0
            overload.even += _SMOOTH * (s.even - overload.even)

    def _notice(self, events: int) -> None:
        self._account.pass_by(events, self._sketch)
        if self._admitted >= 1 and self._account.is_over(self._sketch):
            self._account.end()

    def close(self) -> Iterator[Block]:
        """See ``ByColumns.close``."""
        yield from super().close()
        self.end_shedding()

    def end_shedding(self) -> None:
        """See ``Shedder.end_shedding``."""
        self._account.pass_by(self._events, self._sketch)
        if self.shed.active:
            self._account.end()


def _late(latency: float | None) -> str:
    return f"an event takes {1_000 * (latency or 0):.3g} ms"
