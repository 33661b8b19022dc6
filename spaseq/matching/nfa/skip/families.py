"""The runs of the priority simulation: a machine with runs that keep their choices, family by family."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from spaseq.automaton.pattern import AnyOrder, Atom, Both, Node, walk
from spaseq.events import Stamp
from spaseq.matching.context import Context, Rows
from spaseq.matching.interpreter.absence import Path
from spaseq.matching.interpreter.machine import AllGathering, Member, PartitionRuns
from spaseq.matching.interpreter.program import Gate, GateEdge, RunsProgram
from spaseq.matching.interpreter.state import ChoiceTrace, Home, PartialMatch, Wait
from spaseq.matching.model import Choice, Occurrence, StreamWindow
from spaseq.matching.nfa.skip.preference import (
    Chosen,
    Merging,
    Moment,
    Preference,
    gathered,
    least,
    least_gathered,
    open_bounds,
    preferred,
)

#: Before all events.
ALWAYS: Final[Moment] = (-math.inf,)
#: Greater than the number of any event.
_LAST: Final = 1 << 62
#: Fewer runs than this are not compared for merging.
FEW: Final = 4


class FamilyMachine(PartitionRuns):
    """A machine with runs that keep their choices. ``begun`` collects the first events of new runs.

    The runs of one first event are a family, see ``simulation``.
    """

    def __init__(
        self,
        program: RunsProgram,
        context: Context,
        window: StreamWindow,
        single: bool,
        preference: Preference,
        merging: Merging,
    ) -> None:
        self._preference = preference
        self._merging = merging
        self._open = open_bounds(program.gates)
        #: All events before this time have come.
        self.time: float = -math.inf
        self.begun: dict[int, Occurrence] = {}
        super().__init__(program, context, window, single)

    def reset(self) -> None:
        # The waits for a match's first event, by number; and each ALL, by the number of the run that waits
        # for it.
        self._starts: dict[int, Wait] = {}
        self._gatherings: dict[int, AllGathering] = {}
        super().reset()

    def took(self, gate: Gate, run: PartialMatch, choices: Sequence[Choice], path: Path) -> PartialMatch:
        trace = self._preference.step(run.trace, gate.order, path)
        return self._traced(run, run.took(choices), trace)

    def gathered(
        self, gate: Gate, run: PartialMatch, choices: Sequence[Choice], parts: Sequence[PartialMatch]
    ) -> PartialMatch:
        trace = self._preference.gathered(run.trace, gate.order, [part.trace for part in parts])
        return self._traced(run, run.took(choices), trace)

    def _traced(self, before: PartialMatch, run: PartialMatch, trace: ChoiceTrace) -> PartialMatch:
        first = before.first
        if first is None:
            # Of simultaneous events, the first is the one of the first stream, whichever arrived first.
            events = (event for _, event in run.choices)
            first = min(events, key=lambda event: self._preference.moment(event.stamp))
        return replace(run, first=first, trace=trace)

    def remember(self, number: int, run: PartialMatch, member: Member) -> None:
        super().remember(number, run, member)
        if run.first is not None:
            self.begun[run.first.position] = run.first
        elif isinstance(member, Wait):
            self._starts[number] = member

    def gather(self, gathering: AllGathering) -> None:
        self._gatherings[gathering.wait.number] = gathering
        super().gather(gathering)

    def _discard(self, wait: Wait) -> None:
        self._starts.pop(wait.number, None)
        self._gatherings.pop(wait.number, None)
        super()._discard(wait)

    def _end(self, run: PartialMatch, rows: Rows, order: tuple[int, ...]) -> None:
        super()._end(replace(run, trace=self._preference.ended(run.trace, order)), rows, order)

    # --- families -----------------------------------------------------------------------------

    def has(self, first: Occurrence) -> bool:
        """Return whether a run that began with an event may still become a match."""
        return any(True for _ in self._alive(first))

    def cut(
        self, first: Occurrence, best: ChoiceTrace | None = None, now: Moment = ALWAYS, tick: Moment = ALWAYS
    ) -> bool:
        """End the runs of a first event that cannot become a match preferred to the best; return whether some
        are left.

        No event will come before ``now``, and none before ``tick`` will be gathered with a future one.
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
        """Keep only the preferred run among the runs of a first event that have the same future; see
        ``cut``.
        """
        _, members = self._families.get(first.position, (first, {}))
        if len(members) <= FEW:
            return
        kept: dict[object, tuple[Wait, ChoiceTrace]] = {}
        for wait in [member for member in members.values() if isinstance(member, Wait)]:
            key = self._merging.key(wait)
            if key is None:
                continue
            bound = self._rough_bound(wait, now, tick)
            if key not in kept:
                kept[key] = wait, bound
            elif preferred(bound, kept[key][1]):
                self._remove(kept[key][0])
                kept[key] = wait, bound
            else:
                self._remove(wait)

    def beginnings(self, tick: Moment) -> set[Moment]:
        """Return the moments of the current events with which a match may begin that also takes a
        simultaneous future event.
        """
        return {
            moment
            for wait in self._starts.values()
            for begun in wait.begun
            if isinstance(begun[0].unit, Both)
            for atom in walk(begun[0].unit)
            for moment in self._takes(wait, begun, atom, tick)
        }

    def begins(self, first: Moment, now: Moment, tick: Moment) -> list[ChoiceTrace]:
        """Return lower bounds, in the order of preference, of the matches with a first step of two events
        (``Both``) of which one is still to come.
        """
        waits = [w for w in self._starts.values() if any(isinstance(way.unit, Both) for way, *_ in w.begun)]
        return [self._bound(wait, now, tick, first) for wait in waits]

    def _rough_bound(self, wait: Wait, now: Moment, tick: Moment) -> ChoiceTrace:
        """Return a bound like ``_bound``, but ignore which current events could be taken. It serves to
        compare runs with the same future.
        """
        match wait.gate.ways[0].unit:
            case Atom():
                chosen: Chosen = (now,)
            case AnyOrder():
                chosen = ()
            case unit:
                chosen = least(unit, lambda _: None, tick)
        return self._preference.bound(wait.run.trace, wait.gate.order, chosen, now)

    def _bound(self, member: Member, now: Moment, tick: Moment, first: Moment = ALWAYS) -> ChoiceTrace:
        """Return a lower bound of the choices of all matches that a run may become, without current events
        before ``first``.
        """
        outer, gathering = _outermost(member)
        chosen = self._least(outer, gathering or self._gatherings.get(outer.number), now, tick, first)
        return self._preference.bound(outer.run.trace, outer.gate.order, chosen, now)

    def _least(self, wait: Wait, gathering: Home | None, now: Moment, tick: Moment, first: Moment) -> Chosen:
        """Return the least choice of the step that a run waits for, or the beginning of that choice."""
        unit = wait.gate.ways[0].unit
        if isinstance(unit, Atom):
            return (now,)
        if isinstance(unit, AnyOrder):
            if gathering is None or not all(isinstance(operand, Atom) for operand in unit.operands):
                return ()  # any of the events so far may be its first
            parts = [[gathered(run.trace) for run, _ in found.values()] for found in gathering.found]
            return least_gathered(parts, now)
        begun = next((b for b in wait.begun if b[0] is wait.gate.ways[0]), None)

        def old(atom: Atom) -> Moment | None:
            taken = self._takes(wait, begun, atom, tick) if begun else iter(())
            return min((moment for moment in taken if moment >= first), default=None)

        return least(unit, old, now)

    def _takes(
        self, wait: Wait, begun: tuple[GateEdge, PartialMatch, Rows], atom: Node, tick: Moment
    ) -> Iterator[Moment]:
        """Yield the moments of the current events that a GPM of an ``&`` may take."""
        way, run, rows = begun
        if isinstance(atom, Atom):
            for event in self._in_hand(tick):
                after = run.frontier is None or run.frontier.precedes(event.stamp)
                if after and self.context.extend(rows, atom, event, way.inside, wait.gate.loose):
                    yield self._preference.moment(event.stamp)

    def _in_hand(self, tick: Moment) -> list[Occurrence]:
        """Return the current events that may be gathered with a future one."""
        return self._now if self._now and tick <= (self._now[0].time,) else []

    def _alive(self, first: Occurrence) -> Iterator[tuple[int, Member]]:
        """Yield the runs that began with an event and may still become a match."""
        _, members = self._families.get(first.position, (first, {}))
        for number, member in members.items():
            if self._may_step(member) if isinstance(member, Wait) else number in member.found:
                yield number, member

    def _may_step(self, wait: Wait) -> bool:
        """Return whether some future event may still extend a run."""
        since = wait.run.since
        for end in self._open[wait.gate]:
            begun = since.get(end.within)
            if begun is not None and self.time - begun > self.window.lasts(end.limit):
                return False
        if not wait.blockers or not isinstance(wait.gate.ways[0].unit, Atom):
            return bool(wait.begun)
        # Later events are excluded: the next event must be simultaneous with the one that excludes them.
        time, frontier = wait.blockers[0][0].time, wait.run.frontier
        coming = (Stamp(time, stream, _LAST) for stream in self.context.streams)
        return any((frontier is None or frontier.precedes(s)) and not wait.bars([s]) for s in coming)


def _outermost(member: Member) -> tuple[Wait, Home | None]:
    """Return the run that waits in the sequence itself: this one, or the one before the ``ALL`` it belongs
    to.
    """
    home = None if isinstance(member, Wait) else member.home
    wait = member if isinstance(member, Wait) else member.home.wait
    while wait.run.home is not None:
        home = wait.run.home[0]
        wait = home.wait
    return wait, home
