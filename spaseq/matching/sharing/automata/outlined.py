"""Automata of queries under common names: built once for all of one outline, and renamed for each query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final, TypeVar

from spaseq.automaton.compile import compile_pattern
from spaseq.automaton.nfa import Action, Again, Enter, Leave, Rival, Unit
from spaseq.automaton.pattern import Node, SequencePattern, walk
from spaseq.matching.runs.program import Gate, Place, Program, Way
from spaseq.matching.sharing.automata.canonical import Canonical
from spaseq.matching.templates.form import ByOutline

_Unit = TypeVar("_Unit", bound=Unit)

#: Where automata begin, and the sequences that they are of.
_BUILT: Final = ByOutline[tuple[Node, Place]]()


def start(pattern: SequencePattern, common: Canonical) -> Place:
    """Where the automaton of a query that may share begins, under its common names.

    Queries of one outline have the same places, and name all alike, but for constants.
    """
    root, built = _BUILT.of(common.outline, lambda: (pattern.root, Program(compile_pattern(pattern)).start))
    nodes = {node.id: other for node, other in zip(walk(root), walk(common.pattern.root), strict=True)}
    return _Renaming(nodes, common.variables, common.gpms).place(built)


class _Renaming:
    def __init__(
        self, nodes: Mapping[int, Node], variables: Mapping[str, str], gpms: Mapping[str, str]
    ) -> None:
        self._nodes = nodes
        self._variables = variables
        self._gpms = gpms
        self._places: dict[Place, Place] = {}

    def place(self, place: Place) -> Place:
        if place not in self._places:
            made = self._places[place] = Place()
            made.accepts = tuple(self._actions(ends) for ends in place.accepts)
            made.orders = place.orders
            made.gates = tuple(map(self._gate, place.gates))
        return self._places[place]

    def _gate(self, gate: Gate) -> Gate:
        return replace(
            gate,
            ends=self._actions(gate.ends),
            rivals=tuple(Rival(self._ids(rival.entered), self._unit(rival.unit)) for rival in gate.rivals),
            inside=self._ids(gate.inside),
            key=tuple(sorted(self._variables[name] for name in gate.key)),
            ways=tuple(map(self._way, gate.ways)),
            gpms=frozenset(self._gpms[gpm] for gpm in gate.gpms),
        )

    def _way(self, way: Way) -> Way:
        assert not way.operands  # nothing gathers events in what is shared
        begins, inside = self._actions(way.begins), self._ids(way.inside)
        return Way(begins, self._unit(way.unit), inside, self.place(way.target), ())

    def _actions(self, actions: tuple[Action, ...]) -> tuple[Action, ...]:
        return tuple(map(self._action, actions))

    def _action(self, action: Action) -> Action:
        match action:
            case Leave(kleene=kleene, inside=inside):
                return replace(action, kleene=self._nodes[kleene].id, inside=self._ids(inside))
            case Enter(kleene=kleene) | Again(kleene=kleene):
                return replace(action, kleene=self._nodes[kleene].id)
        raise TypeError(action)  # nothing is absent in what is shared

    def _ids(self, ids: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(self._nodes[number].id for number in ids)

    def _unit(self, unit: _Unit) -> _Unit:
        found = self._nodes[unit.id]
        assert isinstance(found, type(unit))
        return found
