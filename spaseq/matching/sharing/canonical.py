"""A query under canonical names, which depend only on the sequence so far: equal prefixes are equal.

Each element of a sequence has a number, determined by the elements before it, the operator, and its own
conditions. Its places and the variables that it names first are called after that number. So two queries have
the same names in the common prefix of their sequences, and no others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from operator import is_
from typing import Any, Final, TypeVar, cast

from pyoxigraph import BlankNode

from spaseq.automaton.compile import compile_pattern
from spaseq.automaton.nfa import Action, Again, Enter, Leave, Rival, Unit
from spaseq.automaton.normal import is_strict
from spaseq.automaton.pattern import Atom, Chain, Either, GpmPart, Kleene, Node, SequencePattern, walk
from spaseq.language.syntax import Consume, Strategy, Var
from spaseq.matching.filters.derived import split
from spaseq.matching.interpreter.program import Gate, GateEdge, ProgramState, RunsProgram
from spaseq.matching.templates.form import ByOutline, Outline, compared, outline

#: Whether filters read derived columns.
_DERIVING: Final = ByOutline[bool]()


#: The number of elements with cached names.
_KEPT: Final = 1_024


class OutlineNumbers:
    """Numbers things; equal things get the same number."""

    def __init__(self) -> None:
        self._numbers: dict[object, int] = {}
        #: GPMs that have no correlated filters, by their common names.
        self.gpms: dict[str, GpmPart] = {}
        #: Elements with names, by everything that the names depend on.
        self.elements: dict[object, _Element] = {}

    def of(self, thing: object) -> int:
        """Return the number of a thing, the next one if it is new."""
        return self._numbers.setdefault(thing, len(self._numbers))


@dataclass(frozen=True, slots=True)
class AskedBeginning:
    """What a GPM asks of an event: a number, which is equal for equal questions, and its variables in
    order.
    """

    number: int
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Canonical:
    """A query under common names.

    ``beginnings`` are the numbers of its elements; ``variables`` and ``gpms`` map its names to common ones.
    ``outline``: equal for queries with equal automata except for constants (``templates.form.outline``).
    """

    pattern: SequencePattern
    outline: Outline
    beginnings: tuple[int, ...]
    variables: Mapping[str, str]
    gpms: Mapping[str, str]


def beginning(pattern: SequencePattern, asked: Mapping[str, AskedBeginning]) -> tuple[int, ...] | None:
    """Return a key of the GPMs of a query's first element, which is fast to compute and equal for queries
    with a common prefix.

    None if the query surely shares no partial matches (``canonical``).
    """
    root, query = pattern.root, pattern.query
    if not isinstance(root, Chain) or pattern.where or pattern.mixed or pattern.negated or pattern.witnesses:
        return None
    if query.consume is Consume.ANY:
        return None
    if query.skip is not None and any(isinstance(node, Either) for node in walk(root)):
        return None  # the choices of a run there determine preference
    if any(is_strict(node) or not isinstance(node, Atom | Chain | Either | Kleene) for node in walk(root)):
        return None
    return tuple(asked[node.gpm].number for node in walk(root.items[0]) if isinstance(node, Atom))


def canonical(
    pattern: SequencePattern, asked: Mapping[str, AskedBeginning], numbers: OutlineNumbers
) -> Canonical | None:
    """Return a query under the names that ``numbers`` gives; None if it cannot share partial matches.

    A query can if its elements are in a row, with ``;`` and ``:``, and consist of GPMs, Kleenes and
    alternatives. Otherwise the effect of an event on a partial match depends on more than the match's own
    elements: for ``,`` on every event of its partition, for a negation on all events between, for CONSUME on
    the matches found.
    """
    return None if beginning(pattern, asked) is None else under_common_names(pattern, asked, numbers)


def under_common_names(
    pattern: SequencePattern, asked: Mapping[str, AskedBeginning], numbers: OutlineNumbers
) -> Canonical | None:
    """Return what ``canonical`` does, for a query that has a ``beginning``."""
    assert isinstance(pattern.root, Chain)
    key = outline(pattern.query)
    return None if _derives(pattern, key) else _Canonical(pattern, asked, numbers).made(pattern.root, key)


def _derives(pattern: SequencePattern, key: Outline) -> bool:
    """Return whether filters of a query read derived columns. All queries of an outline agree in this."""
    if not pattern.where and not any(part.correlated for part in pattern.gpms.values()):
        return False
    return _DERIVING.of(key, lambda: bool(split(pattern).derived))


@dataclass(frozen=True, slots=True, eq=False)
class _Element:
    """An element under common names, and the common names of the query's names and places up to it."""

    number: int
    node: Node
    names: Mapping[str, str]
    ids: Mapping[int, int]


class _Canonical:
    def __init__(
        self, pattern: SequencePattern, asked: Mapping[str, AskedBeginning], numbers: OutlineNumbers
    ) -> None:
        self._pattern = pattern
        self._asked = asked
        self._numbers = numbers
        self._names: Mapping[str, str] = {v.name: f"by {i}" for i, v in enumerate(pattern.query.partition)}
        # Variables that the current element names first.
        self._new: dict[str, str] = {}
        self._ids: Mapping[int, int] = {}
        # Parts of the query with final names, by identity.
        self._renamings: dict[int, Any] = {}
        # Counts names that may change next time.
        self._unsure = 0

    def made(self, root: Chain, key: Outline) -> Canonical:
        beginnings: list[int] = []
        items: list[Node] = []
        before: object = tuple(self._names)
        owners = tuple(self._pattern.owners.items())
        for item, operator in zip(root.items, (None, *root.operators), strict=True):
            before = found = self._element(item, operator, before, owners)
            beginnings.append(found.number)
            items.append(found.node)
        # A name that no element has occurs only inside a GPM.
        self._new = {}
        pattern, query = self._pattern, self._pattern.query
        gpms = {name: self._gpm(part) for name, part in pattern.gpms.items()}
        if query.partition:
            query = replace(query, partition=tuple(Var(self._names[v.name]) for v in query.partition))
        made = SequencePattern(
            query=query,
            root=Chain(self._numbers.of(("chain", tuple(beginnings))), tuple(items), root.operators),
            gpms={part.name: part for part in gpms.values()},
            group_of={self._names[name]: self._ids[kleene] for name, kleene in pattern.group_of.items()},
            owners={
                self._names[name]: tuple(self._ids[kleene] for kleene in kleenes)
                for name, kleenes in pattern.owners.items()
            },
            mixed=pattern.mixed,
            where=pattern.where,
            negated=pattern.negated,
            streams=pattern.streams,
            witnesses=pattern.witnesses,
        )
        common = {name: part.name for name, part in gpms.items()}
        return Canonical(made, key, tuple(beginnings), self._names, common)

    def _element(self, item: Node, operator: Strategy | None, before: object, owners: object) -> _Element:
        """Return an element after ``before``, which is another element or the initial names. It is computed
        once for all queries.

        The names depend only on the key.
        """
        gpms = [node.gpm for node in walk(item) if isinstance(node, Atom)]
        asks = tuple((self._asked[gpm], self._pattern.gpms[gpm].variables) for gpm in gpms)
        key = before, operator, item, asks, owners
        known = self._numbers.elements
        found = known.get(key)
        if found is None:
            last = before.number if isinstance(before, _Element) else None
            number = self._number(item, operator, last)
            found = _Element(number, self._node(item), self._names, self._ids)
            if len(known) >= _KEPT:
                known.clear()
            known[key] = found
        self._names, self._ids = found.names, found.ids
        return found

    def _number(self, item: Node, operator: Strategy | None, before: int | None) -> int:
        """Return the number of an element, and name what is new in it."""
        self._new = {}
        nodes = [node.id for node in walk(item)]
        shape = self._shape(item)
        owners = tuple(
            tuple(
                nodes.index(kleene) if kleene in nodes else -1
                for kleene in self._pattern.owners.get(name, ())
            )
            for name in self._new
        )
        number = self._numbers.of((before, operator, shape, owners))
        self._names = {**self._names, **{name: f"{number}.{place}" for place, name in enumerate(self._new)}}
        ids = {node: self._numbers.of(("node", number, place)) for place, node in enumerate(nodes)}
        self._ids = {**self._ids, **ids}
        return number

    def _shape(self, node: Node) -> object:
        """Return a node's conditions, without the identities of places."""
        match node:
            case Atom(gpm=gpm, filters=filters, loose=loose):
                asked = self._asked[gpm]
                more = sorted(self._pattern.gpms[gpm].variables - set(asked.names))
                names = tuple(self._name(name) for name in (*asked.names, *more))
                return "gpm", asked.number, names, self._flat(filters), self._flat(loose)
            case Kleene(element=element, own=own):
                shape = self._shape(element)
                names = tuple(sorted(map(self._name, own)))
                return "repeated", node.minimum, node.maximum, node.strategy, node.reluctant, names, shape
            case Chain(items=items, operators=operators):
                return "chain", operators, tuple(map(self._shape, items))
            case Either(operands=operands, closed=closed, apart=apart, places=places):
                return "either", apart, places, *map(self._shape, operands), "|", *map(self._shape, closed)
            case _:
                raise TypeError(node)

    def _node(self, node: Node) -> Node:
        """Return a node under common names."""
        changes: dict[str, Any] = {"id": self._ids[node.id]}
        match node:
            case Atom(gpm=gpm, filters=filters, loose=loose):
                changes |= {"gpm": self._called(gpm)}
                changes |= {"filters": self._renamed(filters), "loose": self._renamed(loose)}
            case Kleene(element=element, own=own):
                changes |= {"element": self._node(element), "own": frozenset(map(self._name, own))}
            case Chain(items=items):
                changes["items"] = tuple(map(self._node, items))
            case Either(operands=operands, closed=closed):
                changes["operands"] = tuple(map(self._node, operands))
                changes["closed"] = tuple(map(self._node, closed))
            case _:
                raise TypeError(node)
        return cast("Node", replace(node, **changes))

    def _gpm(self, part: GpmPart) -> GpmPart:
        name, known = self._called(part.name), self._numbers.gpms
        if name not in known or part.correlated:
            made = GpmPart(
                replace(self._renamed(part.gpm), name=name),
                part.streams,
                self._renamed(part.stateless),
                self._renamed(part.correlated),
                frozenset(map(self._name, part.variables)),
            )
            if part.correlated:
                return made
            known[name] = made
        return known[name]

    def _called(self, gpm: str) -> str:
        asked = self._asked[gpm]
        return f"{asked.number} {' '.join(map(self._name, asked.names))}"

    def _name(self, name: str) -> str:
        found = self._names.get(name)
        return self._new.setdefault(name, f"new {len(self._new)}") if found is None else found

    def _flat(self, tree: Any) -> tuple[object, ...]:
        """Return a part of a syntax tree under common names, as a flat list."""
        out: list[object] = []
        blanks: dict[str, int] = {}

        def flatten(part: Any) -> None:
            kind = part.__class__
            if kind is Var:
                out.append((Var, self._name(part.name)))
            elif kind is BlankNode:
                out.append((BlankNode, blanks.setdefault(part.value, len(blanks))))
            elif kind is tuple:
                out.append((tuple, len(part)))
                for one in part:
                    flatten(one)
            elif names := compared(kind):
                out.append(kind)
                for name in names:
                    flatten(getattr(part, name))
            else:
                out.append(part)

        flatten(tree)
        return tuple(out)

    def _renamed(self, tree: Any) -> Any:
        """Return a part of a syntax tree under common names."""
        blanks: dict[str, BlankNode] = {}
        known = self._renamings

        def renamed(part: Any) -> Any:
            kind = part.__class__
            if kind is Var:
                if part.name not in self._names:
                    self._unsure += 1
                return Var(self._name(part.name))
            if kind is BlankNode:
                self._unsure += 1
                return blanks.setdefault(part.value, BlankNode(f"b{len(blanks)}"))
            if kind is tuple:
                parts = tuple(map(renamed, part))
                return part if all(map(is_, parts, part)) else parts
            names = compared(kind)
            if not names:
                return part
            if id(part) in known:
                return known[id(part)]
            before = self._unsure
            changes = {}
            for name in names:
                old = getattr(part, name)
                new = renamed(old)
                if new is not old:
                    changes[name] = new
            made = replace(part, **changes) if changes else part
            if self._unsure == before:
                known[id(part)] = made
            return made

        return renamed(tree)


# Automata of queries under common names: built once for all of one outline, and renamed for each query.

_Unit = TypeVar("_Unit", bound=Unit)

#: The starts of automata, and their sequences.
_BUILT: Final = ByOutline[tuple[Node, ProgramState]]()


def start(pattern: SequencePattern, common: Canonical) -> ProgramState:
    """Return the start of the automaton of a query that may share, under its common names.

    Queries of one outline have equal automata except for names and constants.
    """
    root, built = _BUILT.of(
        common.outline, lambda: (pattern.root, RunsProgram(compile_pattern(pattern)).start)
    )
    nodes = {node.id: other for node, other in zip(walk(root), walk(common.pattern.root), strict=True)}
    return _Renaming(nodes, common.variables, common.gpms).place(built)


class _Renaming:
    def __init__(
        self, nodes: Mapping[int, Node], variables: Mapping[str, str], gpms: Mapping[str, str]
    ) -> None:
        self._nodes = nodes
        self._variables = variables
        self._gpms = gpms
        self._places: dict[ProgramState, ProgramState] = {}

    def place(self, place: ProgramState) -> ProgramState:
        if place not in self._places:
            made = self._places[place] = ProgramState()
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

    def _way(self, way: GateEdge) -> GateEdge:
        assert not way.operands  # shared elements gather no events
        begins, inside = self._actions(way.begins), self._ids(way.inside)
        return GateEdge(begins, self._unit(way.unit), inside, self.place(way.target), ())

    def _actions(self, actions: tuple[Action, ...]) -> tuple[Action, ...]:
        return tuple(map(self._action, actions))

    def _action(self, action: Action) -> Action:
        match action:
            case Leave(kleene=kleene, inside=inside):
                return replace(action, kleene=self._nodes[kleene].id, inside=self._ids(inside))
            case Enter(kleene=kleene) | Again(kleene=kleene):
                return replace(action, kleene=self._nodes[kleene].id)
        raise TypeError(action)  # shared elements have no absences

    def _ids(self, ids: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(self._nodes[number].id for number in ids)

    def _unit(self, unit: _Unit) -> _Unit:
        found = self._nodes[unit.id]
        assert isinstance(found, type(unit))
        return found
