"""The priority simulation, event by event: of each first event the preferred match, and no other.

The runs of one first event are a *family*. They are those of the runs evaluator, and each knows its choices.
As soon as one of them is complete, those are cut that can only become less preferred matches; when none is
left that can become a preferred one, it is the family's match. Families are taken in the order of their first
events; where the next one may begin is what SKIP says.
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Final

from spaseq.automaton.pattern import AnyOrder, Atom, SequencePattern, walk
from spaseq.events import Stamp
from spaseq.language.syntax import SkipMode
from spaseq.matching.context import Context, Rows
from spaseq.matching.model import Bounds, Choice, Found, Occurrence
from spaseq.matching.ordered.limits import open_bounds
from spaseq.matching.ordered.merging import Merging
from spaseq.matching.ordered.preference import Preference, preferred
from spaseq.matching.ordered.skipping import Moment, resumed_at
from spaseq.matching.runs.evaluator import found_of
from spaseq.matching.runs.machine import Machine, Member
from spaseq.matching.runs.memory import Path
from spaseq.matching.runs.program import Gate, Program
from spaseq.matching.runs.state import Run, Trace, Wait

_ALWAYS: Final[Moment] = (-math.inf,)
#: More than the number of any event.
_LAST: Final = 1 << 62
#: So many runs are not worth comparing.
_FEW: Final = 4
_LONG_AGO: Final = -(1 << 63)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A match, and the choices that made it; ``waits``: something that is absent may still come."""

    trace: Trace
    run: Run
    found: Found
    waits: bool


@dataclass(slots=True, eq=False)
class Family:
    """The matches of one first event: the preferred one of those that are certain, and those that wait."""

    first: Occurrence
    moment: Moment
    best: Candidate | None = None
    waiting: list[Candidate] = field(default_factory=list)


class Ordered:
    """Finds the matches of one sequence in one partition, see ``Evaluator``.

    ``program`` is shared by the partitions of a query.
    """

    def __init__(self, program: Program, pattern: SequencePattern, context: Context, bounds: Bounds) -> None:
        if pattern.query.skip is None:
            raise ValueError("without AFTER MATCH SKIP no match is preferred")
        self._skip = pattern.query.skip
        # Where the next match begins depends on all first events before it.
        self._in_turn = self._skip.mode is not SkipMode.TO_NEXT_EVENT
        self._context = context
        self._bounds = bounds
        self._single = len(set(pattern.streams)) == 1
        self._preference = Preference(context.rank)
        merging = Merging(pattern)
        self._machine = _Machine(program, context, bounds, self._single, self._preference, merging)
        # Whether one step may take several events of one time.
        self._gathers = program.simultaneous
        # Whether what begins with one event may become a part of a match that begins with an earlier one.
        self._in_any_order = any(isinstance(node, AnyOrder) for node in walk(pattern.root))
        self._restart()

    def _restart(self) -> None:
        self._families: list[Family] = []
        self._by_position: dict[int, Family] = {}
        self._at = _LONG_AGO
        # No event will come before this moment; none will be gathered that is before that one.
        self._now = self._tick = _ALWAYS
        # From where on the next match may begin.
        self._resume = _ALWAYS
        self._machine.time = -math.inf
        self._machine.start(Run(), self._context.start)

    @property
    def kept(self) -> tuple[int, int]:
        """See ``Evaluator.kept``."""
        return self._machine.waiting, self._machine.size

    def push(self, occurrence: Occurrence) -> list[Found]:
        """See ``Evaluator.push``."""
        found = []
        if self._tick < (occurrence.time,):
            # Time goes on: what was undecided among simultaneous events is decided.
            self._now = self._tick = (occurrence.time,)
            self._machine.time = occurrence.time
            found = self._take_decided()
        self._machine.memory.clear(self._oldest(occurrence))
        self._machine.push(occurrence)
        time, rank, number = self._context.order(occurrence.stamp)
        if rank == 0:
            # Of the streams the first in order: what comes of others at this time is later.
            self._now = (time, rank, number + 1)
        for first in list(self._machine.begun.values()):
            self._family(first)
        self._machine.begun.clear()
        for run, rows in self._machine.ended:
            self._end(run, rows)
        self._machine.ended.clear()
        self._newest = occurrence
        self._decide_waiting()
        found += self._take_decided()
        self._leave_out()
        return found

    def advance(self, at: int) -> list[Found]:
        """See ``Evaluator.advance``."""
        self._at = at
        if not self._bounds.counted:
            self._now = max(self._now, (at + 1,))
            self._tick = max(self._tick, (at + 1,))
            self._machine.time = max(self._machine.time, at + 1)
        self._decide_waiting()
        return self._take_decided()

    def drop(self) -> None:
        """See ``Evaluator.drop``."""
        self._machine.reset()
        self._restart()

    # --- matches ------------------------------------------------------------------------------

    def _family(self, first: Occurrence) -> Family | None:
        """The family of an event; None if no match may begin with it."""
        family = self._by_position.get(first.position)
        if family is None:
            moment = self._preference.moment(first.stamp)
            if moment < self._resume:
                self._machine.cut(first)
                return None
            family = self._by_position[first.position] = Family(first, moment)
            insort(self._families, family, key=attrgetter("moment"))
        return family

    def _end(self, run: Run, rows: Rows) -> None:
        """A run has ended: it is a match, if the filters that are left hold."""
        rows = self._context.complete(rows)
        if not rows or run.first is None or run.trace is None:
            return
        family = self._family(run.first)
        found = found_of(run, rows)
        if family is not None and not self._machine.absences.led(run, found):
            self._offer(family, Candidate(run.trace, run, found, bool(run.gaps)))

    def _offer(self, family: Family, candidate: Candidate) -> None:
        """One match more: of all that are certain, a family keeps the preferred one."""
        best = family.best
        if candidate.waits:
            family.waiting.append(candidate)
        elif best is None:
            family.best = candidate
        else:
            family.best = candidate if preferred(candidate.trace, best.trace) else best

    def _decide_waiting(self) -> None:
        """Of the matches that wait, those go for which something has come that they say is absent."""
        absences = self._machine.absences
        for family in self._families:
            asked, family.waiting = family.waiting, []
            over = self._bounds.closing(family.first) <= self._at
            for c in asked:
                if absences.trailed(c.run, c.found):
                    continue
                if over or not absences.open(c.run, c.found, self._newest, self._at):
                    c = replace(c, waits=False)
                self._offer(family, c)

    def _take_decided(self) -> list[Found]:
        """The matches that are decided now."""
        found = []
        if self._skip.mode is SkipMode.TO_NEXT_EVENT:
            # Then no family has a say in another one.
            for family in list(self._families):
                if self._decided(family):
                    self._forget(family)
                    found += [family.best.found] if family.best else []
            return found
        while self._families and self._decided(self._families[0]):
            family = self._families[0]
            self._forget(family)
            if family.best is not None:
                found.append(family.best.found)
                self._resume = resumed_at(self._skip, family.best.found, self._context.rank)
                while self._families and self._families[0].moment < self._resume:
                    self._forget(self._families[0])
        return found

    def _decided(self, family: Family) -> bool:
        """Whether a family has its match, or will have none; cuts what can only be less preferred."""
        best = family.best
        over = self._bounds.closing(family.first) <= self._at
        if not over and self._gathers and self._tick <= family.moment:
            return False  # simultaneous events may still make it begin in other ways
        if not over and self._in_turn and self._now <= family.moment:
            return False  # or begin a match that passes it over
        if best is None:
            return not family.waiting and (over or not self._machine.has(family.first))
        family.waiting = [c for c in family.waiting if preferred(c.trace, best.trace)]
        if not over:
            over = not self._machine.cut(family.first, best.trace, self._now, self._tick)
        return over and not family.waiting

    def _leave_out(self) -> None:
        """Ends runs that can lead to nothing but what others lead to, or to what is passed over."""
        together = self._gathers or self._in_any_order or not self._single
        if self._families and self._skip.mode is SkipMode.PAST_LAST_EVENT and not together:
            head = self._families[0]
            if head.best is not None and not head.waiting:
                # Its match will be this one, or one that ends later.
                self._resume = resumed_at(self._skip, head.best.found, self._context.rank)
                while len(self._families) > 1 and self._families[1].moment < self._resume:
                    self._forget(self._families[1])
        for family in self._families:
            self._machine.merge(family.first, self._now, self._tick)

    def _forget(self, family: Family) -> None:
        self._families.remove(family)
        del self._by_position[family.first.position]
        self._machine.cut(family.first)

    def _oldest(self, occurrence: Occurrence) -> int:
        """From where on the window's axis matches may have events, or look back at some."""
        opening = self._bounds.opening(occurrence, occurrence)
        firsts = (self._bounds.opening(f.first, f.first) for f in self._families if f.waiting)
        return min((opening, *firsts))


class _Machine(Machine):
    """A machine whose runs keep their choices. ``begun`` gathers the first events that runs begin with."""

    def __init__(
        self,
        program: Program,
        context: Context,
        bounds: Bounds,
        single: bool,
        preference: Preference,
        merging: Merging,
    ) -> None:
        self._preference = preference
        self._merging = merging
        self._open = open_bounds(program.gates)
        #: What happens before this time has happened.
        self.time: float = -math.inf
        self.begun: dict[int, Occurrence] = {}
        super().__init__(program, context, bounds, single)

    def took(self, gate: Gate, run: Run, choices: Sequence[Choice], path: Path) -> Run:
        trace = self._preference.step(run.trace, gate.order, path)
        return self._traced(run, run.took(choices), trace)

    def gathered(self, gate: Gate, run: Run, choices: Sequence[Choice], parts: Sequence[Run]) -> Run:
        trace = self._preference.gathered(run.trace, gate.order, [part.trace for part in parts])
        return self._traced(run, run.took(choices), trace)

    def _traced(self, before: Run, run: Run, trace: Trace) -> Run:
        first = before.first
        if first is None:
            # Among simultaneous events the first is that of the first stream, whichever came first.
            events = (event for _, event in run.choices)
            first = min(events, key=lambda event: self._preference.moment(event.stamp))
        return replace(run, first=first, trace=trace)

    def remember(self, number: int, run: Run, member: Member) -> None:
        super().remember(number, run, member)
        if run.first is not None:
            self.begun[run.first.position] = run.first

    def _end(self, run: Run, rows: Rows, order: tuple[int, ...]) -> None:
        super()._end(replace(run, trace=self._preference.ended(run.trace, order)), rows, order)

    # --- families -----------------------------------------------------------------------------

    def has(self, first: Occurrence) -> bool:
        """Whether a run that began with an event may still become a match."""
        return any(True for _ in self._alive(first))

    def cut(
        self, first: Occurrence, best: Trace | None = None, now: Moment = _ALWAYS, tick: Moment = _ALWAYS
    ) -> bool:
        """Ends the runs of a first event that cannot become a match preferred to the best; if some are left.

        No event will come before ``now``, or be gathered with one that does if it is before ``tick``.
        """
        left = False
        for number, member in list(self._alive(first)):
            if best is not None and preferred(self._bound(member, now, tick), best):
                left = True
            elif isinstance(member, Wait):
                self._remove(member)
            else:
                member.found.pop(number, None)
        return left

    def merge(self, first: Occurrence, now: Moment, tick: Moment) -> None:
        """Of the runs of a first event that have the same future, leaves the preferred one; see ``cut``."""
        _, members = self._families.get(first.position, (first, {}))
        if len(members) <= _FEW:
            return
        kept: dict[object, tuple[Wait, Trace]] = {}
        for wait in [member for member in members.values() if isinstance(member, Wait)]:
            key = self._merging.key(wait)
            if key is None:
                continue
            bound = self._bound(wait, now, tick)
            if key not in kept:
                kept[key] = wait, bound
            elif preferred(bound, kept[key][1]):
                self._remove(kept[key][0])
                kept[key] = wait, bound
            else:
                self._remove(wait)

    def _bound(self, member: Member, now: Moment, tick: Moment) -> Trace:
        """No match that this leads to is preferred to it."""
        outer = _outermost(member)
        unit = outer.gate.ways[0].unit
        least = now if isinstance(unit, Atom) else tick
        return self._preference.bound(outer.run.trace, outer.gate.order, unit, least)

    def _alive(self, first: Occurrence) -> Iterator[tuple[int, Member]]:
        """What may still become a match that begins with an event."""
        _, members = self._families.get(first.position, (first, {}))
        for number, member in members.items():
            if self._may_step(member) if isinstance(member, Wait) else number in member.found:
                yield number, member

    def _may_step(self, wait: Wait) -> bool:
        """Whether some event to come may still take a run on."""
        since = wait.run.since
        for end in self._open[wait.gate]:
            begun = since.get(end.within)
            if begun is not None and self.time - begun > self.bounds.lasts(end.limit):
                return False
        if not wait.blockers or not isinstance(wait.gate.ways[0].unit, Atom):
            return bool(wait.begun)
        # What follows at a later time is barred: it must be simultaneous with what bars it.
        time, frontier = wait.blockers[0][0].time, wait.run.frontier
        coming = (Stamp(time, stream, _LAST) for stream in self.context.streams)
        return any((frontier is None or frontier.precedes(s)) and not wait.bars([s]) for s in coming)


def _outermost(member: Member) -> Wait:
    """What waits in the sequence itself: a run, or that in front of the ``ALL`` for which it waits."""
    wait = member if isinstance(member, Wait) else member.home.wait
    while wait.run.home is not None:
        wait = wait.run.home[0].wait
    return wait
