"""The priority simulation, event by event: finds the preferred match of each first event, and no other.

The runs of one first event are a *family*. They are the interpreter's runs, with their choices. When one of
them is complete, runs that can only become less preferred matches are cut. When no run is left that can
become a preferred one, the complete run is the family's match. Families are decided in the order of their
first events; SKIP determines where the next one may begin.
"""

from __future__ import annotations

import math
from bisect import insort
from dataclasses import dataclass, field, replace
from operator import attrgetter

from spaseq.automaton.pattern import AnyOrder, SequencePattern, walk
from spaseq.events import BEGINNING
from spaseq.language.syntax import SkipMode
from spaseq.matching.context import Context, Rows
from spaseq.matching.interpreter.matcher import found_of
from spaseq.matching.interpreter.program import RunsProgram
from spaseq.matching.interpreter.state import ChoiceTrace, PartialMatch
from spaseq.matching.model import Found, Occurrence, StreamWindow
from spaseq.matching.nfa.skip.families import ALWAYS, FamilyMachine
from spaseq.matching.nfa.skip.preference import Merging, Moment, Preference, preferred, resumed_at


@dataclass(frozen=True, slots=True)
class PreferredRun:
    """A match and the choices that made it; ``waits``: an element that must be absent may still come."""

    trace: ChoiceTrace
    run: PartialMatch
    found: Found
    waits: bool


@dataclass(slots=True, eq=False)
class Family:
    """The matches of one first event: the preferred one of the certain matches, and the waiting matches."""

    first: Occurrence
    moment: Moment
    best: PreferredRun | None = None
    waiting: list[PreferredRun] = field(default_factory=list)


class SkipSimulation:
    """Finds the matches of one sequence in one partition, see ``PartitionMatcher``.

    ``program`` is shared by the partitions of a query.
    """

    def __init__(
        self, program: RunsProgram, pattern: SequencePattern, context: Context, window: StreamWindow
    ) -> None:
        if pattern.query.skip is None:
            raise ValueError("without AFTER MATCH SKIP no match is preferred")
        self._skip = pattern.query.skip
        # The beginning of the next match depends on all first events before it.
        self._in_turn = self._skip.mode is not SkipMode.TO_NEXT_EVENT
        self._context = context
        self._window = window
        self._single = len(set(pattern.streams)) == 1
        self._preference = Preference(context.rank)
        merging = Merging(pattern)
        self._machine = FamilyMachine(program, context, window, self._single, self._preference, merging)
        # Whether one step may take several events of one time.
        self._gathers = program.simultaneous
        # Whether runs of one first event may become part of a match with an earlier first event.
        self._in_any_order = any(isinstance(node, AnyOrder) for node in walk(pattern.root))
        # The first one of the streams with events of GPMs.
        streams = {context.stream_id(name) for gpm in pattern.gpms.values() for name in gpm.streams}
        self._rank = min(context.rank(stream) for stream in streams)
        self._restart()

    def _restart(self) -> None:
        self._families: list[Family] = []
        self._by_position: dict[int, Family] = {}
        self._at = self._time = BEGINNING
        # No event will come before ``_now``; no event before ``_tick`` will be gathered with a future one.
        self._now = self._tick = ALWAYS
        # Where the next match may begin.
        self._resume = ALWAYS
        # The first events of the current time that have had their match.
        self._done: set[Moment] = set()
        self._machine.time = -math.inf
        self._machine.start(PartialMatch(), self._context.start)

    @property
    def kept(self) -> tuple[int, int]:
        """See ``PartitionMatcher.kept``."""
        return self._machine.waiting, self._machine.size

    def push(self, occurrence: Occurrence) -> list[Found]:
        """See ``PartitionMatcher.push``."""
        found = []
        if self._time < occurrence.time:
            self._come_to(occurrence.time)
            found = self._take_decided()
        self._machine.memory.clear(self._oldest(occurrence))
        self._machine.push(occurrence)
        time, rank, number = self._context.order(occurrence.stamp)
        if rank <= self._rank:
            # Later events of this time come from other streams, with greater moments.
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

    def advance(self, at: int, time: int) -> list[Found]:
        """See ``PartitionMatcher.advance``."""
        self._at = at
        self._come_to(time)
        self._decide_waiting()
        return self._take_decided()

    def _come_to(self, time: int) -> None:
        """Advance to a time: decide what was open because of simultaneous events."""
        if self._time < time:
            self._time = self._machine.time = time
            self._now, self._tick = max(self._now, (time,)), (time,)
            self._done.clear()

    def drop(self) -> None:
        """See ``PartitionMatcher.drop``."""
        self._machine.reset()
        self._restart()

    # --- matches ------------------------------------------------------------------------------

    def _family(self, first: Occurrence) -> Family | None:
        """Return the family of an event; None if no match may begin with it."""
        family = self._by_position.get(first.position)
        if family is None:
            moment = self._preference.moment(first.stamp)
            if moment < self._resume or moment in self._done:
                self._machine.cut(first)
                return None
            family = self._by_position[first.position] = Family(first, moment)
            insort(self._families, family, key=attrgetter("moment"))
        return family

    def _end(self, run: PartialMatch, rows: Rows) -> None:
        """End a run: it is a match, if the remaining filters hold."""
        rows = self._context.complete(rows)
        if not rows or run.first is None or run.trace is None:
            return
        family = self._family(run.first)
        found = found_of(run, rows)
        if family is not None and not self._machine.absences.led(run, found):
            self._offer(family, PreferredRun(run.trace, run, found, bool(run.gaps)))

    def _offer(self, family: Family, candidate: PreferredRun) -> None:
        """Add a match: among certain ones, a family keeps the preferred one."""
        best = family.best
        if candidate.waits:
            family.waiting.append(candidate)
        elif best is None:
            family.best = candidate
        else:
            family.best = candidate if preferred(candidate.trace, best.trace) else best

    def _decide_waiting(self) -> None:
        """Remove the waiting matches for which a forbidden element has come."""
        absences = self._machine.absences
        for family in self._families:
            asked, family.waiting = family.waiting, []
            over = self._window.closing(family.first) <= self._at
            for c in asked:
                if absences.trailed(c.run, c.found):
                    continue
                if over or not absences.open(c.run, c.found, self._newest, self._at, self._time):
                    c = replace(c, waits=False)
                self._offer(family, c)

    def _take_decided(self) -> list[Found]:
        """Return the matches that are decided now."""
        found = []
        if self._skip.mode is SkipMode.TO_NEXT_EVENT:
            # In this mode, families do not affect each other.
            for family in list(self._families):
                if self._decided(family):
                    self._forget(family)
                    if family.best is not None:
                        found.append(family.best.found)
                        self._done.add(family.moment)
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
        """Return whether a family has its match, or will have none; cut runs that can only be
        less preferred.
        """
        best = family.best
        over = self._window.closing(family.first) <= self._at
        if not over and self._in_turn and self._now <= family.moment:
            return False  # a future event may begin a match that skips this family
        if not over and self._gathers and self._tick <= family.moment and not self._begun(family):
            return False
        if best is None:
            return not family.waiting and (over or not self._machine.has(family.first))
        family.waiting = [c for c in family.waiting if preferred(c.trace, best.trace)]
        if not over:
            over = not self._machine.cut(family.first, best.trace, self._now, self._tick)
        return over and not family.waiting

    def _begun(self, family: Family) -> bool:
        """Return whether no preferred match can still begin with two events at once: the family's event, or
        one before it, and a future event.
        """
        beginnings = self._machine.beginnings(self._tick)
        if self._in_turn and any(self._resume <= moment < family.moment for moment in beginnings):
            return False  # that match skips this family
        if family.moment not in beginnings:
            return True
        window = self._machine.begins(family.moment, self._now, self._tick)
        return family.best is not None and not any(preferred(b, family.best.trace) for b in window)

    def _leave_out(self) -> None:
        """End runs with matches that other runs also lead to, or that will be skipped."""
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
        """Return the oldest place on the window's axis of events that matches may contain or depend on."""
        opening = self._window.opening(occurrence, occurrence)
        firsts = (self._window.opening(f.first, f.first) for f in self._families if f.waiting)
        return min((opening, *firsts))
