"""A step-by-step run of the automaton that counts what becomes of every partial match."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from spaseq.automaton.compile import compile_pattern
from spaseq.automaton.nfa import NFA, Edge, Unit
from spaseq.automaton.pattern import AnyOrder, Atom, SequencePattern
from spaseq.automaton.show import label
from spaseq.events import Stamp
from spaseq.language.syntax import Strategy
from spaseq.matching.context import Context, Rows
from spaseq.matching.interpreter.absence import Path
from spaseq.matching.interpreter.machine import AllGathering, Member, PartitionRuns
from spaseq.matching.interpreter.matcher import Interpreter
from spaseq.matching.interpreter.program import GateEdge, ProgramState, RunsProgram
from spaseq.matching.interpreter.state import MatchEnd, PartialMatch, Wait
from spaseq.matching.model import Choice, Found, Occurrence, StreamWindow
from spaseq.why.diagnosis import EdgeCount, StateCount

#: Reasons why a partial match ends, besides the strategy after it.
WINDOW, FILTER, JOIN, NEGATION, END = "window", "filter", "join", "negation", "end of input"


@dataclass(slots=True)
class _Visit:
    """A partial match in a state: whether it advanced, ended as a match, or what prevented it."""

    state: int
    first: Occurrence | None
    on: bool = False
    fate: str | None = None


@dataclass(slots=True)
class RunTrace:
    """The counts of an automaton, over all partitions; for the operands of an ALL, matches only."""

    nfa: NFA
    program: RunsProgram
    taken: Counter[Edge] = field(default_factory=Counter)
    operands: Counter[tuple[Edge, int]] = field(default_factory=Counter)
    ended: Counter[int] = field(default_factory=Counter)
    visits: list[_Visit] = field(default_factory=list)
    states: dict[int, int] = field(default_factory=dict)
    edges: dict[int, Edge] = field(default_factory=dict)
    window: StreamWindow | None = None
    last: Occurrence | None = None

    def __post_init__(self) -> None:
        waiting = [(0, self.program.start)]
        while waiting:
            state, place = waiting.pop()
            if id(place) in self.states:
                continue
            self.states[id(place)] = state
            for edge, way in _ways(self.nfa, state, place):
                self.edges[id(way)] = edge
                waiting.append((edge.target, way.target))

    def counts(self) -> tuple[tuple[StateCount, ...], tuple[EdgeCount, ...]]:
        """Return the counts so far, by state and by edge."""
        came: Counter[int] = Counter()
        on: Counter[int] = Counter()
        died: dict[int, Counter[str]] = {state: Counter() for state in range(self.nfa.size)}
        begun = _Visit(0, None, on=any(visit.on for visit in self.visits if visit.first is None))
        for visit in [begun, *(visit for visit in self.visits if visit.first is not None)]:
            came[visit.state] += 1
            if visit.on:
                on[visit.state] += 1
            elif visit.first is not None and self.last is not None and self.window is not None:
                ends = END if self.window.together(visit.first, self.last) else WINDOW
                died[visit.state][visit.fate or ends] += 1
        states = tuple(
            StateCount(state, came[state], on[state], self.ended[state], dict(died[state]))
            for state in range(self.nfa.size)
        )
        return states, tuple(map(self._edge, self.nfa.edges))

    def _edge(self, edge: Edge) -> EdgeCount:
        unit = edge.predicate.unit
        many = len(unit.operands) if isinstance(unit, AnyOrder) else 0
        operands = tuple(self.operands[edge, number] for number in range(many))
        return EdgeCount(edge.source, edge.target, label(edge), self.taken[edge], operands)


def _ways(nfa: NFA, state: int, place: ProgramState) -> Iterator[tuple[Edge, GateEdge]]:
    """Yield the edges out of a state, and the compiled form of each."""
    edges = list(nfa.leaving(state))
    for gate in place.gates:
        for way in gate.ways:
            edge = next(
                edge
                for edge in edges
                if edge.ends == gate.ends
                and edge.begins == way.begins
                and edge.predicate.unit == way.unit
                and edge.predicate.strategy is gate.strategy
            )
            edges.remove(edge)
            yield edge, way


def trace_of(pattern: SequencePattern) -> RunTrace:
    """Return a trace of a sequence.

    Partial matches are not indexed by keys, so that events that do not join are counted as rejected.
    """
    nfa = compile_pattern(pattern).everywhere(_keyless)
    return RunTrace(nfa, RunsProgram(nfa))


def _keyless(nfa: NFA) -> NFA:
    return replace(nfa, edges=tuple(replace(edge, key=()) for edge in nfa.edges))


class TracedRuns(Interpreter):
    """The matcher ``interpreter`` with counts."""

    def __init__(
        self, trace: RunTrace, pattern: SequencePattern, context: Context, window: StreamWindow
    ) -> None:
        super().__init__(trace.program, pattern, context, window)
        self._trace = trace
        trace.window = window
        single = len(set(pattern.streams)) == 1
        self._machine = _Traced(trace, context, window, single)
        self._machine.start(PartialMatch(), context.start)

    def push(self, occurrence: Occurrence) -> list[Found]:
        """Process an occurrence, see ``PartitionMatcher.push``."""
        self._trace.last = occurrence
        return super().push(occurrence)


class _Traced(PartitionRuns):
    """The machine with counts.

    ``_here`` is the visit that is just beginning. ``_seeing`` is the visit of the partial match that sees an
    event, ``_hindrance`` what keeps this event from being taken. ``_home`` is the ALL that a match of an
    operand may complete.
    """

    def __init__(self, trace: RunTrace, context: Context, window: StreamWindow, single: bool) -> None:
        self._trace = trace
        self._visit_of: dict[int, _Visit] = {}
        self._here: _Visit | None = None
        self._seeing: _Visit | None = None
        self._hindrance: str | None = None
        self._home: AllGathering | None = None
        super().__init__(trace.program, context, window, single)

    def arrive(self, place: ProgramState, run: PartialMatch, rows: Rows) -> None:
        """Count an arrival, see ``PartitionRuns.arrive``."""
        home, self._home = self._home, None
        if home is not None and place is home.way.target:
            self._complete(home)
        outer = self._here
        state = self._trace.states.get(id(place))
        self._here = None if state is None else _Visit(state, run.first)
        if self._here is not None:
            self._trace.visits.append(self._here)
        super().arrive(place, run, rows)
        self._here = outer
        self._home = home

    def _complete(self, home: AllGathering) -> None:
        edge, visit = self._trace.edges.get(id(home.way)), self._visit_of.get(home.wait.number)
        if edge is not None:
            self._trace.taken[edge] += 1
        if visit is not None:
            visit.on = True

    def _end(self, run: PartialMatch, rows: Rows, order: tuple[int, ...]) -> None:
        if self._here is not None and run.home is None:
            self._here.on = True
            self._trace.ended[self._here.state] += 1
        if run.home is not None:
            home, operand = run.home
            assert isinstance(home, AllGathering)
            self._home = home
            edge = self._trace.edges.get(id(home.way))
            if edge is not None:
                self._trace.operands[edge, operand] += 1
        super()._end(run, rows, order)
        self._home = None

    def _decide(
        self, run: PartialMatch, rows: Rows, owner: int, inside: tuple[int, ...]
    ) -> PartialMatch | None:
        decided = super()._decide(run, rows, owner, inside)
        if decided is None and self._here is not None:
            self._here.fate = NEGATION
        return decided

    def remember(self, number: int, run: PartialMatch, member: Member) -> None:
        """Count a match of an operand, see ``PartitionRuns.remember``."""
        if self._here is not None and isinstance(member, Wait):
            self._here.fate = None
            self._visit_of[number] = self._here
        super().remember(number, run, member)

    def _show(self, wait: Wait, event: Occurrence) -> None:
        outer, self._seeing = self._seeing, self._visit_of.get(wait.number)
        self._hindrance = None
        super()._show(wait, event)
        self._seeing = outer

    def _relevant(
        self,
        unit: Unit,
        rows: Rows,
        inside: tuple[int, ...],
        after: MatchEnd | None,
        event: Occurrence,
        loose: bool,
    ) -> list[tuple[tuple[Choice, ...], Rows, Path]]:
        found = super()._relevant(unit, rows, inside, after, event, loose)
        if not found and self._seeing is not None and isinstance(unit, Atom):
            solutions = event.solutions.get(unit.gpm, ())
            if solutions:
                agree = any(
                    all(row.binding.get(v, t) == t for v, t in solution.items())
                    for row in rows
                    for solution in solutions
                )
                self._hindrance = FILTER if agree else JOIN
                self._seeing.fate = self._hindrance
        return found

    def _bar(self, wait: Wait, blocker: tuple[Stamp, ...]) -> None:
        visit = self._visit_of.get(wait.number)
        if visit is not None and not visit.on and self._hindrance is None:
            visit.fate = str(wait.gate.strategy or Strategy.STRICT)
        super()._bar(wait, blocker)

    def _step(self, way: GateEdge, run: PartialMatch, rows: Rows, last: Occurrence) -> None:
        edge = self._trace.edges.get(id(way))
        within = run.first is None or self.window.together(run.first, last)
        if edge is not None and within:
            self._trace.taken[edge] += 1
            if self._seeing is not None:
                self._seeing.on = True
        elif self._seeing is not None and not within:
            self._seeing.fate = self._hindrance = WINDOW
        super()._step(way, run, rows, last)
