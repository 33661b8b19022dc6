"""The kernel under a bound: between events, what overburdens it is shed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from spaseq.automaton.pattern import SequencePattern
from spaseq.effort import Effort, Policy, Shed, WorkClock
from spaseq.errors import warn
from spaseq.events import Clock, EventBatch
from spaseq.gpm.spectra.solutions import Solutions
from spaseq.language.syntax.printing import print_sequence
from spaseq.matching.columns.blocks.found import Block
from spaseq.matching.columns.evaluator import Asked
from spaseq.matching.context import Context
from spaseq.matching.kernel import evaluator as whole
from spaseq.matching.kernel.memory import Room, runs_size
from spaseq.matching.kernel.records import header as mem
from spaseq.matching.kernel.records import partitions
from spaseq.matching.model import Bounds
from spaseq.matching.obstacles import in_words
from spaseq.matching.shedding.account import Account
from spaseq.matching.shedding.compiled import _kernel_firsts as firsts
from spaseq.matching.shedding.compiled import _kernel_passes as k
from spaseq.matching.shedding.doubt import Doubt
from spaseq.matching.shedding.firsts import let_go
from spaseq.matching.shedding.fits import obstacles
from spaseq.matching.shedding.learned.sketch import Worth
from spaseq.matching.shedding.least import least_room
from spaseq.matching.shedding.lots import admitted_of, part_of, taken_at_once
from spaseq.matching.shedding.observed import Observed
from spaseq.matching.shedding.overload import Overload
from spaseq.terms.dictionary import Dictionary

Ints = npt.NDArray[np.int64]

#: A look at all partial matches begins when so many times as long was worked as the last one held events up.
_SELDOM: Final = 16
#: It is spread over events if it takes longer than so many events may: what is known is fresher if it is not.
_BRIEF: Final = 8.0
#: A plan is made anew after such a part of an age, from such a part of the bound on.
_PLANNED: Final = 0.25
_NEAR: Final = 0.8
#: Where memory runs out, so much of it is in use afterwards.
_FILLED: Final = 0.8
_FULL: Final = 0.95
#: What several partial matches begin with goes with the last of them only: so often more are shed.
_ROUNDS: Final = 6
#: Scratch space, which no shedding makes smaller, leaves at least so much of it to partial matches.
_STATE: Final = 0.5


class Shedding(Observed):
    """The kernel, which keeps its bounds by shedding; all that it finds is found without bounds, too.

    ``shed`` says what was given up.
    """

    def __init__(
        self,
        pattern: SequencePattern,
        dictionary: Dictionary,
        context: Context,
        bounds: Bounds,
        effort: Effort,
    ) -> None:
        """Raises ``ValueError`` if false matches could be found (``fits.obstacles``)."""
        if against := in_words(obstacles(pattern, effort.policy)):
            raise ValueError(f"to shed by {effort.policy}, it must be that {', and '.join(against)}")
        super().__init__(pattern, dictionary, context, bounds, effort)
        self._pattern = pattern
        self._overload = None if effort.latency is None else Overload(effort.latency)
        # What each class loads; of each cell, the share that was kept when something was shed last; how many
        # new ones are shed.
        self._load, self._loads = 0.0, np.zeros(self._features.classes)
        self._kept: npt.NDArray[np.float64] = np.ones(self._sketch.alive.size)
        self._scratch: Ints = np.zeros_like(self._sketch.alive)
        # Since the last look ended: events, and seconds of work and of the next look; what the last one
        # took, and held events up for.
        self._events, self._spent, self._looking, self._taken, self._pause = 0, 0.0, 0.0, 0.0, 0.0
        # What the look at hand has counted; and the events between the last two.
        self._between = 0
        self._counted: Ints = np.zeros_like(self._sketch.alive)
        # Of the work, what the overload detector knows.
        self._measured = 0.0
        self._chunk = 1
        # So often partial matches have drawn lots.
        self._draws = 0
        # Of the events, the share that ``random-input`` lets in.
        self._admitted = 1.0
        # Events since a plan was made.
        self._unplanned = 0
        gates = [" | ".join(sorted(gate.gpms)) for gate in self._compiled.analysis.gates]
        self._doubt = Doubt(pattern, bounds)
        self._account = Account(self._name, gates, effort.policy, is_chosen=self._doubt.matters)
        self._load_passes()
        least = runs_size(self._compiled, whole.ENOUGH) + self._memory.scratch_bytes
        if effort.pool is not None and effort.pool.size < least:
            warn(
                f"{self._name} keeps its partial matches in {least:,} bytes at least, and not in the "
                f"{effort.pool.size:,} that all queries together may take: give more memory"
            )

    @property
    def shed(self) -> Shed:
        """What was given up; who reads it may bring the object."""
        return self._account.shed

    @shed.setter
    def shed(self, shed: Shed) -> None:
        self._account.shed = shed

    def _load_passes(self) -> None:
        """Compiled code takes a while to be loaded: before anything is measured, not in the first look."""
        self._observe(0, 0)
        k.strangers(self._memory.ints, self._known)
        self._credit()
        self._mark(np.ones(self._sketch.alive.size), 0, 0)

    def process(self, batch: EventBatch, start: int, solutions: Mapping[str, Solutions]) -> Iterator[Block]:
        """See ``ByColumns.process``."""
        clock = self._effort.clock
        at = 0
        while at < len(batch):
            end = min(len(batch), at + self._chunk)
            part, found = part_of(batch, solutions, at, end)
            if self._admitted < 1:
                found = self._admit(found, start + at, end - at)
            begin = clock()
            for block in super().process(part, start + at, found):
                self._spent += clock() - begin
                yield block
                begin = clock()
            self._count(end - at)
            self._spent += clock() - begin
            axis, time = self._bounds.places(part, start + at), int(part.time[-1])
            self._events += end - at
            at, self._position = end, start + end
            load, units = self._load, self._units
            begun = self._welcome(int(axis[-1]), time)
            if self._overload is not None:
                self._overload.measure(len(part), self._spent - self._measured, load, units, begun)
            self._measured, self._units = self._spent, 0.0
            if self._hand or self._spent >= _SELDOM * self._pause:
                self._look(int(axis[-1]), time, start + end, int(units) + 1)
            self._pace()

    def take_one(
        self, batch: EventBatch, start: int, solutions: Mapping[str, Solutions]
    ) -> Iterator[Block] | None:
        """See ``Quick.take_one``: there is always something left to do."""
        return self.process(batch, start, solutions)

    def expect(self, asked: Sequence[Asked], clock: Clock) -> bool:
        """See ``Quick.expect``."""
        del asked, clock
        return False

    def _pace(self) -> None:
        """How many events come between two looks, at least."""
        if isinstance(self._effort.clock, WorkClock) or not self._events or self._effort.latency is None:
            return
        self._chunk = taken_at_once(self._effort.latency, self._spent / self._events)

    # --- what the kernel does meanwhile ---------------------------------------------------------

    def _found(self) -> Iterator[Block]:
        m = self._memory.ints
        if m[mem.FOUND_COUNT]:
            # Of many events at once, those that a match came of were not looked at yet.
            if self._spent >= self._taken and k.strangers(m, self._known):
                self._observe(*self._place)
            self._credit()
        at_once = 0
        for block in super()._found():
            if self._doubt.matters:
                self.shed.doubtful += self._doubt.count(block)
                self._doubt.consumed(block)
            at_once += len(block)
            yield block
        self._account.find(at_once)

    # --- looking --------------------------------------------------------------------------------

    def _look(self, axis: int, time: int, position: int, most: int) -> None:
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
            most = places + 1 if brief else most
        # Those that are next were seen before by the last look, which was as far on then.
        passed = self._events + int(self._between * (1 - min(1.0, self._hand / max(1, places))))
        self._hand, seen = self._visit(self._counted, axis, time, self._hand, most, passed)
        self._add_work(seen)
        if self._hand >= places:
            ending = self._effort.clock()
            self._looking += ending - begin
            self._end_look(axis, time, position)
            self._looking, self._taken = 0.0, self._looking + self._effort.clock() - ending
            self._pause = self._effort.clock() - ending
            if brief:
                self._pause, self._between = self._taken, 0
            self._spent = self._measured = 0.0
        else:
            self._looking += self._effort.clock() - begin
        self._spent += self._effort.clock() - begin

    def _end_look(self, axis: int, time: int, position: int) -> None:
        """All partial matches have been looked at: learns of that, and sheds what is too much."""
        s, events = self._sketch, self._events
        self._between, self._events, self._hand = events, 0, 0
        s.alive[:] = self._counted
        s.pass_to(axis, position)
        s.decay(events)
        if s.learn():
            self._kept[:] = 1.0
            self._known[:] = 0
            self._observe(axis, time, counted=False)
        if self._overload is not None:
            self._load = self._loaded()
            share = self._overload.share(self._load)
            self._overload.tell(self.shed, self._name)
            self._keep(share, axis, time, events)
        self._notice(events)

    def _welcome(self, axis: int, time: int) -> int:
        """Looks at the partial matches that the last events made; sheds of these where there is no room.

        How many of them began.
        """
        begin = self._effort.clock()
        s, f, m, numbers = self._sketch, self._features, self._memory, self._columns.numbers
        room = math.inf if self._overload is None else self._overload.load - self._load
        if self._admitted < 1 or self._doubt.matters:
            room = math.inf
        shed = self._scratch
        total, begun, load = k.welcome(
            f.tables, m.ints, m.floats, numbers.numbers, numbers.codes, self._known, f.ways, f.bases,
            *s.quantiles.arrays, s.counts, s.steps, s.alive, self._loads, self._kept, shed, self._next, axis,
            time, s.passed(self._position), room, self._draws,
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
        if s.price > 0 or (overload.latency or 0.0) > _NEAR * overload.most:
            s.plan(overload.most * 1.0 / overload.unit)
            self._unplanned = 0

    def _shed(self, share: float, axis: int, time: int, *, by_size: bool = False) -> int:
        """Takes all but a share of the load out of the arena, which must be swept then; how many.

        ``by_size``: it is not the work at the next events that counts, but the memory.
        """
        s, policy = self._sketch, self._effort.policy
        policy = Policy.SHARP if policy is Policy.RANDOM_INPUT else policy
        if self._doubt.matters:
            return self._let_go(s.worth(policy, by_size=by_size), share, axis, time)
        kept = s.kept(share, policy, by_size=by_size)
        if not by_size:
            self._kept = kept
        return self._mark(kept, axis, time)

    def _let_go(self, worth: Worth, share: float, axis: int, time: int) -> int:
        """The same by first events, each with all that begins with it."""
        m, s = self._memory.ints, self._sketch
        rows = np.zeros((int(s.alive.sum()), firsts.L_SIZE), dtype=np.int64)
        now = s.passed(self._position)
        firsts.listed(self._tables, m, self._known, self._features.bases, rows.ravel(), axis, time, now)
        if not len(rows):
            return 0
        self._draws += 1
        gone = let_go(m, rows, worth, share, self._effort.policy, self._draws)
        self._account.add(gone.cells, s)
        self._doubt.forget(axis)
        keys = m[gone.partitions[:, None] + (partitions.KEY + np.arange(len(self._keys)))].tolist()
        for key, place, position in zip(keys, gone.places.tolist(), gone.positions.tolist(), strict=True):
            self._doubt.add(tuple(key), place, position)
        return int(gone.cells.sum())

    def _mark(self, kept: npt.NDArray[np.float64], axis: int, time: int) -> int:
        """Takes partial matches out of the arena, which must be swept then; how many."""
        s, f = self._sketch, self._features
        shed = np.zeros_like(s.alive)
        now = s.passed(self._position)
        self._draws += 1
        k.mark(
            self._tables, self._memory.ints, self._known, f.bases, kept, shed, axis, time, now, self._draws
        )  # fmt: skip
        self._account.add(shed, self._sketch)
        return int(shed.sum())

    def _room(self, live: int, remembered: int, decided: int, axis: int, time: int) -> Room:
        room = super()._room(live, remembered, decided, axis, time)
        pool = self._effort.pool
        if pool is None:
            return room
        most = pool.share(self._effort, self._budget.size) - self._budget.but("runs")
        most = max(most - self._memory.scratch_bytes, int(_STATE * most))
        if runs_size(self._compiled, room) <= most:
            return room
        entries = max(remembered + int(self._memory.ints[mem.WANTED]), whole.ENOUGH.entries)
        least = self._least(axis, time, decided, entries)
        enough = max(_FULL * most, runs_size(self._compiled, whole.ENOUGH._replace(entries=entries)))
        for _ in range(_ROUNDS):
            size = runs_size(self._compiled, least)
            if size <= enough or not self._lighten(_FILLED * most / size, axis, time):
                break
            self._account.begin(f"more would take more memory than its {most:,} bytes")
            # What was decided is decided again, for fewer.
            decided = int(_FILLED * most / size * decided)
            least = self._least(axis, time, decided, entries)
        size = runs_size(self._compiled, least)
        more = max(1.0, min(2.0, most / size))
        grown = least._replace(waits=int(more * least.waits), nodes=int(more * least.nodes))
        return grown if runs_size(self._compiled, grown) <= most else least

    def _lighten(self, share: float, axis: int, time: int) -> int:
        """Leaves this share of the partial matches; how many are gone."""
        self._observe(axis, time)
        if not self._sketch.price:
            # There may be time enough, so that nothing was planned yet.
            self._sketch.plan(math.inf)
        return self._shed(share, axis, time, by_size=True)

    def _least(self, axis: int, time: int, decided: int, entries: int) -> Room:
        return least_room(self._tables, self._memory.ints, axis, time, decided, entries, whole.ENOUGH)

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
        self._account.estimate()
        if self.shed.active:
            self._account.end()

    @property
    def _name(self) -> str:
        return f"SEQ({print_sequence(self._pattern.query.sequence)})"


def _late(latency: float | None) -> str:
    return f"an event takes {1_000 * (latency or 0):.3g} ms"
