"""Interprets the automaton: which runs an event extends, blocks, completes (SPAseq paper, 6.3).

An event is shown only to the runs it can change: those at a gate with an operator that reads one of its GPMs,
found by the values of the gate's key, and those before ``,``, which every event changes.

Events of different streams at one time are simultaneous, in any order of arrival. So an event that ``;`` or
``,`` must not skip does not end a run at once: it excludes the events that it precedes, and the run ends only
when time advances.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, count, product

from spaseq.automaton.nfa import Action, Again, Await, Decide, Enter, Forbid, Leave, Omit, Since, Unit, Until
from spaseq.automaton.pattern import AnyOrder, Atom
from spaseq.events import Stamp
from spaseq.language.syntax import Strategy
from spaseq.matching.context import Context, Rows
from spaseq.matching.interpreter.absence import Absences, EventMemory, Path, simultaneous
from spaseq.matching.interpreter.program import Gate, GateEdge, ProgramState, RunsProgram
from spaseq.matching.interpreter.state import Gap, MatchEnd, Part, PartialMatch, Parts, Wait, WaitIndex
from spaseq.matching.model import Choice, Occurrence, StreamWindow
from spaseq.matching.search import Join, Leading

#: What expires with an event: a waiting run, or a part of an ``ALL`` under its number.
Member = Wait | Parts


class PartitionRuns:
    """The runs of one automaton over the events of one partition.

    ``single``: all events are of one stream. ``allowed``: the only events that may be chosen, by position;
    None means all. ``ended`` collects the complete matches, until it is cleared.

    None of its objects refers back to it, so that the runs of a dropped partition are freed at once.
    """

    def __init__(
        self,
        program: RunsProgram,
        context: Context,
        window: StreamWindow,
        single: bool,
        allowed: frozenset[int] | None = None,
    ) -> None:
        self.memory = EventMemory(program, window)
        self.absences = Absences(program.pattern, context, window, self.memory)
        self._program = program
        self.context = context
        self.window = window
        self._single = single
        self.ended: list[tuple[PartialMatch, Rows]] = []
        self._allowed = allowed
        self._numbers = count()
        self._time: int | None = None
        self.reset()

    def reset(self) -> None:
        """Forget every run, but not the events that negations need."""
        self._indices = {id(gate): WaitIndex(gate) for gate in self._program.gates}
        self._neighbours: dict[int, Wait] = {}
        self._barred: dict[int, Wait] = {}
        self._now: list[Occurrence] = []
        # Per first event, by position: what expires when no window contains that event any more. (Reading the
        # first item of a plain dict skips all deleted ones.)
        self._families: OrderedDict[int, tuple[Occurrence, dict[int, Member]]] = OrderedDict()
        #: How many runs wait, and an estimate of their bytes.
        self.waiting = self.size = 0

    def start(self, run: PartialMatch, rows: Rows) -> None:
        """Start a run at the beginning of the automaton."""
        self.arrive(self._program.start, run, rows)

    def push(self, event: Occurrence) -> None:
        """Take the next event."""
        if event.time != self._time:
            self._time = event.time
            self._now.clear()
            for wait in list(self._barred.values()):
                self._remove(wait)
        self._expire(event)
        self.memory.add(event)
        if self._program.simultaneous:
            self._now.append(event)
        for wait in self._concerned(event):
            if wait.run.frontier is None or wait.run.frontier.precedes(event.stamp):
                self._show(wait, event)

    # --- the runs that an event concerns ----------------------------------------------------------

    def _concerned(self, event: Occurrence) -> list[Wait]:
        found = dict(self._neighbours)
        for gpm in event.solutions:
            for gate in self._program.woken.get(gpm, ()):
                for wait in self._indices[id(gate)].concerned(gpm, event):
                    found[wait.number] = wait
        return list(found.values())

    def _expire(self, event: Occurrence) -> None:
        while self._families:
            position, (first, members) = next(iter(self._families.items()))
            if self.window.together(first, event):
                return
            for number, member in members.items():
                if isinstance(member, Wait):
                    self._discard(member)
                else:
                    member.found.pop(number, None)
            del self._families[position]

    def remember(self, number: int, run: PartialMatch, member: Member) -> None:
        """Let a member expire with the run's first event."""
        if run.first is not None:
            family = self._families.setdefault(run.first.position, (run.first, {}))
            family[1][number] = member

    def _remove(self, wait: Wait) -> None:
        self._discard(wait)
        if wait.run.first is not None:
            family = self._families.get(wait.run.first.position)
            if family is not None:
                family[1].pop(wait.number, None)

    def _discard(self, wait: Wait) -> None:
        if wait.size:
            self.waiting -= 1
            self.size -= wait.size
            wait.size = 0
        self._neighbours.pop(wait.number, None)
        self._barred.pop(wait.number, None)
        self._indices[id(wait.gate)].discard(wait)

    def number(self) -> int:
        """Return a new number."""
        return next(self._numbers)

    # --- the effect of an event on a run ----------------------------------------------------------

    def _show(self, wait: Wait, event: Occurrence) -> None:
        """Let an event extend a waiting run, and exclude later events if it must not be skipped."""
        gate = wait.gate
        relevant: dict[int, list[tuple[tuple[Choice, ...], Rows, Path]]] = {}
        for way, run, rows in wait.begun:
            if isinstance(way.unit, AnyOrder):
                continue
            found = self._relevant(way.unit, rows, way.inside, run.frontier, event, gate.loose)
            relevant[way.unit.id] = found
            for choices, extended, path in found:
                if not wait.bars([e.stamp for _, e in choices]) and self._may_take(choices):
                    taken = self.took(gate, run, choices, path).beginning({way.unit.id})
                    self._step(way, taken, extended, event)
        if gate.strategy is Strategy.STRICT:
            self._bar(wait, (event.stamp,))
            return
        for rival in gate.rivals:
            found_rivals = relevant.get(rival.unit.id)
            if found_rivals is None:
                rows = wait.rows
                for kleene in rival.entered:
                    rows = self.context.enter(rows, kleene)
                inside = (*gate.inside, *rival.entered)
                found_rivals = self._relevant(rival.unit, rows, inside, wait.run.frontier, event, False)
            for choices, *_ in found_rivals:
                self._bar(wait, tuple(e.stamp for _, e in choices))

    def _relevant(
        self,
        unit: Unit,
        rows: Rows,
        inside: tuple[int, ...],
        after: MatchEnd | None,
        event: Occurrence,
        loose: bool,
    ) -> list[tuple[tuple[Choice, ...], Rows, Path]]:
        """Return the matches of a GPM or ``&`` after a run that this event completes."""
        if isinstance(unit, Atom):
            extended = self.context.extend(rows, unit, event, inside, loose)
            return [(((unit.gpm, event),), extended, (event.stamp,))] if extended else []
        now = [e for e in self._now if after is None or after.precedes(e.stamp)]
        found = simultaneous(self.context, unit, rows, inside, now, loose)
        return [match for match in found if any(e is event for _, e in match[0])]

    def took(self, gate: Gate, run: PartialMatch, choices: Sequence[Choice], path: Path) -> PartialMatch:
        """Return a run with the events of one step added; ``path``: how they were chosen."""
        del gate, path
        return run.took(choices)

    def gathered(
        self, gate: Gate, run: PartialMatch, choices: Sequence[Choice], parts: Sequence[PartialMatch]
    ) -> PartialMatch:
        """Return a run with the events of an ``ALL`` added; ``parts`` are the matches of its operands."""
        del gate, parts
        return run.took(choices)

    def _may_take(self, choices: Sequence[Choice]) -> bool:
        return self._allowed is None or all(e.position in self._allowed for _, e in choices)

    def _bar(self, wait: Wait, blocker: tuple[Stamp, ...]) -> None:
        if wait.bars(blocker):
            return
        wait.blockers.append(blocker)
        if self._single and wait.gate.plain:
            # All future events come after it.
            self._remove(wait)
        else:
            self._barred[wait.number] = wait

    def _step(self, way: GateEdge, run: PartialMatch, rows: Rows, last: Occurrence) -> None:
        if run.first is None or self.window.together(run.first, last):
            self.arrive(way.target, run, rows)

    def arrive(self, place: ProgramState, run: PartialMatch, rows: Rows) -> None:
        """Let a run enter a state: it ends there if possible, and waits at the outgoing gates."""
        for ends, order in zip(place.accepts, place.orders, strict=True):
            acted = self._act(run, rows, ends)
            if acted is not None:
                self._end(*acted, order)
        for gate in place.gates:
            acted = self._act(run, rows, gate.ends)
            if acted is not None:
                self._wait(gate, *acted)

    def _end(self, run: PartialMatch, rows: Rows, order: tuple[int, ...]) -> None:
        del order
        if run.home is None:
            self.ended.append((run, rows))
        else:
            home, operand = run.home
            assert isinstance(home, AllGathering)
            home.offer(self, operand, run, rows)

    def _wait(self, gate: Gate, run: PartialMatch, rows: Rows) -> None:
        wait = Wait(self.number(), gate, run, rows)
        for way in gate.ways:
            begun = self._act(run, rows, way.begins)
            if begun is not None:
                wait.begun.append((way, *begun))
        if gate.strategy is Strategy.STRICT:
            self._neighbours[wait.number] = wait
        else:
            self._indices[id(gate)].add(wait)
        self.waiting += 1
        self.size += wait.weigh()
        self.context.budget.partial(self.waiting)
        self.remember(wait.number, run, wait)
        for way, begun_run, begun_rows in wait.begun:
            if way.operands:
                self.gather(AllGathering(wait, way, begun_run, self.context.mark(begun_rows)))

    def gather(self, gathering: AllGathering) -> None:
        """Let the operands of an ``ALL`` begin."""
        gathering.start(self)

    def reread(
        self, program: RunsProgram, run: PartialMatch, rows: Rows, choices: Sequence[Choice]
    ) -> list[tuple[PartialMatch, Rows]]:
        """Return the ways in which a program matches exactly these events after a run."""
        events = [event for _, event in choices]
        allowed = frozenset(event.position for event in events)
        again = PartitionRuns(program, self.context, self.window, self._single, allowed)
        again.start(run, rows)
        if events:
            events.sort(key=lambda event: event.position)
            for event in self.memory.log(run.frontier, events[0], events[-1]):
                again.push(event)
        return [match for match in again.ended if match[0].choices == tuple(choices)]

    # --- actions ------------------------------------------------------------------------------

    def _act(
        self, run: PartialMatch, rows: Rows, actions: tuple[Action, ...]
    ) -> tuple[PartialMatch, Rows] | None:
        """Return a run and its Ω after some actions, or None if one of them is impossible."""
        start = rows
        for action in actions:
            if isinstance(action, Again | Leave):
                run = _stepped(run, action)
            match action:
                case Enter(kleene=kleene):
                    rows = self.context.enter(rows, kleene)
                    run = replace(run, counts={**run.counts, kleene: 1})
                case Again(kleene=kleene, maximum=maximum):
                    iterations = run.counts[kleene]
                    if maximum is not None and iterations >= maximum:
                        return None
                    rows = self.context.again(rows, kleene)
                    run = replace(run, counts={**run.counts, kleene: iterations + 1})
                case Leave(kleene=kleene, minimum=minimum, inside=inside):
                    if run.counts[kleene] < minimum:
                        return None
                    rows = self.context.leave(rows, kleene, inside)
                    if not rows:
                        return None
                case Forbid() | Omit():
                    run = replace(run, gaps=(*run.gaps, self.absences.begin(action, run, rows, start)))
                case Await(owner=owner, strategy=strategy):
                    gaps = (
                        gap._replace(owner=owner, strategy=strategy, begun=run.history)
                        if gap.owner is None
                        else gap
                        for gap in run.gaps
                    )
                    run = replace(run, gaps=tuple(gaps))
                case Decide(owner=owner, inside=inside):
                    decided = self._decide(run, rows, owner, inside)
                    if decided is None:
                        return None
                    run = decided
                case Since(within=within):
                    run = replace(run, since={**run.since, within: None})
                case Until(within=within, limit=limit):
                    begun = run.since[within]
                    if begun is None or run.frontier is None:
                        raise TypeError(action)
                    if run.frontier.time - begun > self.window.lasts(limit):
                        return None
        return run, rows

    def _decide(
        self, run: PartialMatch, rows: Rows, owner: int, inside: tuple[int, ...]
    ) -> PartialMatch | None:
        """Close the gaps before a complete element; None if a forbidden element is in one of them."""
        closed = [gap for gap in run.gaps if gap.owner == owner]
        if not closed:
            return run
        leading = list(run.leading)
        for gap in closed if run.home is None else ():
            found = self.absences.decide(gap, run, rows, inside)
            if found is False:
                return None
            if isinstance(found, Leading):
                leading.append(found)
        return replace(run, gaps=tuple(gap for gap in run.gaps if gap.owner != owner), leading=tuple(leading))


def _stepped(run: PartialMatch, step: Again | Leave) -> PartialMatch:
    """Record a step in the gaps that no element closes yet: it will be repeated when they are decided."""
    if not run.gaps:
        return run
    gaps = (
        gap._replace(mark=replace(gap.mark, steps=(*gap.mark.steps, step))) if gap.owner is None else gap
        for gap in run.gaps
    )
    return replace(run, gaps=tuple(gaps))


# ``ALL``: gathers the matches of its operands, in any order.
#
# They are first found loosely, each by itself. When all are there, each must be a match in the context of all
# the others, since the filters of one may need variables of another.


class AllGathering:
    """One ``ALL`` after one waiting run; the run's rows are ``marked``.

    Referenced only by the runs of its operands.
    """

    def __init__(self, wait: Wait, way: GateEdge, run: PartialMatch, marked: Rows) -> None:
        if not isinstance(way.unit, AnyOrder):
            raise TypeError(f"not an ALL: {way.unit}")
        self._node = way.unit
        self._wait = wait
        self._way = way
        self._run = run
        self._marked = marked
        #: The matches so far of each operand, by number.
        self.found: list[dict[int, Part]] = [{} for _ in way.operands]

    @property
    def wait(self) -> Wait:
        """The run before the ``ALL``."""
        return self._wait

    @property
    def way(self) -> GateEdge:
        """The edge of the ``ALL``."""
        return self._way

    @property
    def _fresh(self) -> PartialMatch:
        """An empty run right after the run before the ``ALL``, with which operands begin."""
        run = self._run
        return PartialMatch(first=run.first, frontier=run.frontier, before=(*run.before, *run.choices))

    def start(self, machine: PartitionRuns) -> None:
        """Start every operand, right after the run."""
        for i, operand in enumerate(self._way.operands):
            begun = replace(self._fresh, home=(self, i))
            machine.arrive(operand.start, begun, self._marked)

    def offer(self, machine: PartitionRuns, operand: int, run: PartialMatch, rows: Rows) -> None:
        """Add a match of an operand, and join it with the matches of the other operands."""
        part = (replace(run, home=None), rows)
        options = [list(parts.values()) for parts in self.found]
        options[operand] = [part]
        for parts in product(*options):
            self._join(machine, parts)
        number = machine.number()
        self.found[operand][number] = part
        machine.remember(number, run, Parts(self.found[operand], self))

    def _join(self, machine: PartitionRuns, parts: tuple[Part, ...]) -> None:
        added = tuple(chain.from_iterable(run.choices for run, _ in parts))
        stamps = [event.stamp for _, event in added]
        if not stamps or len(set(stamps)) < len(stamps) or self._wait.bars(stamps):
            return
        gate = self._wait.gate
        began = frozenset[int]().union(*(run.began for run, _ in parts))
        if gate.strategy is Strategy.NEXT and not began <= {rival.unit.id for rival in gate.rivals}:
            return  # another gate waits for these
        took = machine.gathered(self._wait.gate, self._run, added, [run for run, _ in parts])
        last = max((event for _, event in added), key=lambda event: event.position)
        if took.first is None or not machine.window.together(took.first, last):
            return
        context, node, inside = machine.context, self._node, self._way.inside
        # Inside another ALL, its operands are matched loosely, too.
        if self._run.home is not None or self._way.independent:
            rows = context.join([rows for _, rows in parts], node, inside, self._run.home is not None)
            self._arrive(machine, took, parts, rows)
            return
        for given in self._in_context(machine, parts):
            common = context.common([rows for _, rows in given])
            self._arrive(machine, took, given, context.join([common], node, inside))

    def _arrive(
        self, machine: PartitionRuns, took: PartialMatch, parts: tuple[Part, ...], rows: Rows
    ) -> None:
        """Continue the run with all operands, and with the decisions they leave open."""
        if rows:
            gaps = list(took.gaps)
            for i, (run, _) in enumerate(parts):
                rest = tuple(c for j, (other, _) in enumerate(parts) if j != i for c in other.choices)
                gaps += [_joined(gap, Join(rest, rows)) for gap in run.gaps]
            leading = tuple(chain(took.leading, *(run.leading for run, _ in parts)))
            began = frozenset[int]().union(*(run.began for run, _ in parts))
            run = replace(took, gaps=tuple(gaps), leading=leading).beginning(began)
            machine.arrive(self._way.target, run, rows)

    def _in_context(self, machine: PartitionRuns, parts: tuple[Part, ...]) -> Iterator[tuple[Part, ...]]:
        """Yield the ways in which each operand matches the same events, given the others."""
        found = []
        for i, (operand, (run, _)) in enumerate(zip(self._way.operands, parts, strict=True)):
            others = machine.context.compatible([rows for j, (_, rows) in enumerate(parts) if j != i])
            found.append(machine.reread(operand.strict, self._fresh, others, run.choices))
        return product(*found)


def _joined(gap: Gap, join: Join) -> Gap:
    """Return a gap at the end of an operand, with the choices of the other operands added to its steps."""
    return gap._replace(mark=replace(gap.mark, steps=(*gap.mark.steps, join)))
