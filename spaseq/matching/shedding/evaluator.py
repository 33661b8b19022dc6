"""The kernel under a bound: between events, what overburdens it is shed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

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
from spaseq.matching.kernel.tables.analysis import Compiled
from spaseq.matching.obstacles import in_words
from spaseq.matching.shedding.bounded import Bounded
from spaseq.matching.shedding.compiled import _kernel_passes as k
from spaseq.matching.shedding.fits import obstacles
from spaseq.matching.shedding.learned.queries import Queries
from spaseq.matching.shedding.looking import Looking, due
from spaseq.matching.shedding.lots import admitted_of, part_of
from spaseq.matching.shedding.measured.overload import late
from spaseq.matching.shedding.passing import Passing

Ints = npt.NDArray[np.int64]


class Shedding(Looking):
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
        self._passing: Passing | None = None
        if effort.latency is not None and effort.policy is Policy.SHARP and not self._doubt.matters:
            self._passing = Passing(self._sketch, effort.latency, effort.clock)
        # How many partial matches were made since the bound was seen to; whether the events in hand are one
        # that came alone.
        self._made, self._is_alone = 0, False
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
        if self._hand or self._spent >= due(self._paused, even, waits=waits):
            self._look(axis, time, work)
        if self._events:
            self._pace.learn(self._spent / self._events)

    def _pass_over(self, columns: Ints) -> int:
        passing, overload = self._passing, self._overload
        if passing is None or overload is None:
            return 0
        begin = self._effort.clock()
        axis, now = self._place[0], self._sketch.window.passed(self._given)
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
            self._account.begin(late(passing.latency))
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

    def _admit(self, found: Mapping[str, Solutions], position: int, size: int) -> Mapping[str, Solutions]:
        """The solutions of those events alone that have drawn so."""
        admitted, passed_over = admitted_of(found, position, size, self._admitted)
        self.shed.events += passed_over
        return admitted

    def close(self) -> Iterator[Block]:
        """See ``ByColumns.close``."""
        yield from super().close()
        self.end_shedding()

    def end_shedding(self) -> None:
        """See ``Shedder.end_shedding``."""
        self._tell()
        if self.shed.active:
            self._account.end()
