"""The automaton in the interpreter's form: edges grouped by their operators.

A *place* is a state. A *gate* groups the edges out of a place that share their operator and its rivals, so
that a rival is tested once for all of them. The automata of ALL's operands are places of the same program.
They are read *loosely*: ``;`` as ``:``, since what it may skip depends on the other operands, and is decided
when all of them are found.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from spaseq.automaton.nfa import NFA, Action, Await, Edge, Forbid, Omit, Rival, Unit
from spaseq.automaton.pattern import AnyOrder, Atom, Both, Node, SequencePattern, walk
from spaseq.language import scope
from spaseq.language.syntax import Strategy


class ProgramState:
    """A state: how matches may end there, with their ``orders`` of preference, and the outgoing gates."""

    accepts: tuple[tuple[Action, ...], ...]
    orders: tuple[tuple[int, ...], ...]
    gates: tuple[Gate, ...]


@dataclass(frozen=True, eq=False, slots=True)
class GateEdge:
    """An edge after its gate. ``operands`` are those of an ``ALL``, else empty."""

    begins: tuple[Action, ...]
    unit: Unit
    inside: tuple[int, ...]
    target: ProgramState
    operands: tuple[Operand, ...]

    @property
    def independent(self) -> bool:
        """Whether the operands of an ``ALL`` need nothing of each other except to join."""
        return all(operand.independent for operand in self.operands)


@dataclass(frozen=True, eq=False, slots=True)
class Gate:
    """Edges with one operator.

    ``gpms``: the GPMs with events that it must see. ``key``: the variables that all of them bind and that
    every waiting run binds. ``plain``: no ``&`` is involved. ``order`` is that of its edges (``Accept``).
    ``parted``: a run that takes one edge may still take the others, which belong to other queries.
    """

    ends: tuple[Action, ...]
    strategy: Strategy | None
    rivals: tuple[Rival, ...]
    inside: tuple[int, ...]
    key: tuple[str, ...]
    loose: bool
    ways: tuple[GateEdge, ...]
    gpms: frozenset[str]
    plain: bool
    order: tuple[int, ...]
    parted: bool = False


class Operand:
    """An operand of an ``ALL``: its start when read loosely, and a program of its own."""

    def __init__(self, nfa: NFA, start: ProgramState) -> None:
        self._nfa = nfa
        self.start = start

    @cached_property
    def strict(self) -> RunsProgram:
        """The operand as a program, with every operator as written."""
        return RunsProgram(self._nfa)

    @cached_property
    def independent(self) -> bool:
        """Whether reading it loosely gives its exact matches."""
        nodes = [node for node in walk(self._nfa.root) if isinstance(node, Atom | Both | AnyOrder)]
        return not (
            any(isinstance(node, AnyOrder) for node in nodes)
            or any(node.filters for node in nodes if isinstance(node, Atom))
            or any(node.deferred for node in nodes if isinstance(node, Both))
            or any(edge.predicate.strategy is Strategy.NEXT for edge in self._nfa.edges)
            or any(isinstance(action, Forbid | Omit) for action in _actions(self._nfa))
        )


class RunsProgram:
    """The program of runs.

    ``woken`` has the gates that must see an event of a GPM. ``remembered``: negations need the events of
    these GPMs. ``simultaneous``: an ``&`` needs the other events of the same time; ``logged``: an ``ALL``
    needs to match its events again, or an absence depends on all events in its gap.
    """

    def __init__(self, nfa: NFA) -> None:
        self.gates: list[Gate] = []
        self.start = self._places(nfa, loose=False)
        self.woken: dict[str, list[Gate]] = {}
        for gate in self.gates:
            for gpm in sorted(gate.gpms):
                self.woken.setdefault(gpm, []).append(gate)
        self.pattern = nfa.pattern
        actions = [action for part in _everywhere(nfa) for action in _actions(part)]
        units = [unit for action in actions if isinstance(action, Forbid) for unit in action.units]
        self.remembered = frozenset(gpm for unit in units for gpm in gpms_of(unit))
        self.simultaneous = any(not gate.plain for gate in self.gates)
        self.logged = any(not way.independent for gate in self.gates for way in gate.ways) or any(
            isinstance(a, Omit) or (isinstance(a, Forbid | Await) and a.strategy is Strategy.STRICT)
            for a in actions
        )

    def _places(self, nfa: NFA, loose: bool) -> ProgramState:
        """Make the places of an automaton and its parts; return the initial one."""
        places = [ProgramState() for _ in range(nfa.size)]
        for state, place in enumerate(places):
            accepts = [accept for accept in nfa.accepts if accept.state == state]
            place.accepts = tuple(accept.ends for accept in accepts)
            place.orders = tuple(accept.order for accept in accepts)
            groups: dict[object, list[Edge]] = {}
            for edge in nfa.leaving(state):
                predicate = edge.predicate
                key = _key(nfa.pattern, edge)
                shared = (edge.ends, predicate.strategy, predicate.rivals, key, edge.order)
                groups.setdefault(shared, []).append(edge)
            place.gates = tuple(self._gate(nfa, edges, places, loose) for edges in groups.values())
            self.gates.extend(place.gates)
        return places[0]

    def _gate(self, nfa: NFA, edges: list[Edge], places: list[ProgramState], loose: bool) -> Gate:
        first = edges[0]
        strategy, rivals = first.predicate.strategy, first.predicate.rivals
        if loose and strategy is Strategy.NEXT:
            strategy, rivals = Strategy.ANY, ()
        units = [*(edge.predicate.unit for edge in edges), *(rival.unit for rival in rivals)]
        return Gate(
            ends=first.ends,
            strategy=strategy,
            rivals=rivals,
            inside=first.predicate.inside,
            key=_key(nfa.pattern, first),
            loose=loose,
            ways=tuple(self._way(nfa, edge, places[edge.target]) for edge in edges),
            # The operands of an ALL have gates of their own.
            gpms=frozenset(g for unit in units if not isinstance(unit, AnyOrder) for g in gpms_of(unit)),
            plain=not any(isinstance(unit, Both) for unit in units),
            order=first.order,
        )

    def _way(self, nfa: NFA, edge: Edge, target: ProgramState) -> GateEdge:
        unit = edge.predicate.unit
        operands: tuple[Operand, ...] = ()
        if isinstance(unit, AnyOrder):
            parts = [nfa.parts[operand.id] for operand in unit.operands]
            operands = tuple(Operand(part, self._places(part, loose=True)) for part in parts)
        return GateEdge(edge.begins, unit, edge.inside, target, operands)


def gpms_of(node: Node) -> frozenset[str]:
    """Return the GPMs that occur in a node."""
    return frozenset(atom.gpm for atom in walk(node) if isinstance(atom, Atom))


def _key(pattern: SequencePattern, edge: Edge) -> tuple[str, ...]:
    """Return the part of an edge's key that each single GPM it reads binds."""
    units = (edge.predicate.unit, *(rival.unit for rival in edge.predicate.rivals))
    read = frozenset(gpm for unit in units for gpm in gpms_of(unit))
    bound = [scope.gpm_certain(pattern.gpms[gpm].gpm) for gpm in read]
    return tuple(name for name in edge.key if all(name in names for names in bound))


def _everywhere(nfa: NFA) -> Iterator[NFA]:
    yield nfa
    for part in nfa.parts.values():
        yield from _everywhere(part)


def _actions(nfa: NFA) -> Iterator[Action]:
    for edge in nfa.edges:
        yield from edge.ends
        yield from edge.begins
    for accept in nfa.accepts:
        yield from accept.ends
