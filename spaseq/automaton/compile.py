"""Sequence in normal form → NFA_scep.

A construction on *tails*: dangling edges that know what to do before and after the operator on the way
to the next unit. Compiling a node lets every tail reach every unit that the node can start with,
and returns the tails that leave it. A node that can match nothing (``X?``, ``!X``) is passed over by
adding its actions to the tail.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import NamedTuple

from pyoxigraph import NamedNode

from spaseq.automaton.nfa import (
    NFA,
    Accept,
    Action,
    Again,
    Await,
    Decide,
    Edge,
    Enter,
    Forbid,
    Leave,
    Predicate,
    Rival,
    Unit,
)
from spaseq.automaton.passes import passes
from spaseq.automaton.pattern import (
    Absent,
    AnyOrder,
    Atom,
    Both,
    Chain,
    Either,
    Empty,
    Kleene,
    Maybe,
    Node,
    SequencePattern,
    Within,
    may_trail,
    starts,
    units,
    walk,
)
from spaseq.language.syntax import Strategy


@dataclass(frozen=True, slots=True)
class _Tail:
    """An edge without its target. ``open``: a negation waits for the next element to close its gap.

    ``reached`` says that the operator is already on the edge; what is added then comes after it.
    ``inside`` are the Kleenes in progress; ``outside`` what they were at the operator.
    """

    state: int
    inside: tuple[int, ...]
    ends: tuple[Action, ...] = ()
    reached: bool = False
    strategy: Strategy | None = None
    rivals: tuple[Rival, ...] = ()
    outside: tuple[int, ...] = ()
    begins: tuple[Action, ...] = ()
    open: bool = False
    order: tuple[int, ...] = ()

    def chose(self, *choices: int) -> _Tail:
        """After choices of the sequence, each its place in the order of preference."""
        return replace(self, order=(*self.order, *choices))

    def then(self, *actions: Action) -> _Tail:
        if self.reached:
            return replace(self, begins=(*self.begins, *actions))
        return replace(self, ends=(*self.ends, *actions))

    def operator(self, strategy: Strategy, element: Node) -> _Tail:
        """Sets the operator before ``element``, and what it must not skip."""
        rivals: tuple[Rival, ...] = ()
        if strategy is Strategy.NEXT:
            rivals = tuple(Rival(entered, unit) for entered, unit in starts(element))
        return replace(self, reached=True, strategy=strategy, rivals=rivals, outside=self.inside)

    def awaiting(self, element: Node) -> _Tail:
        """The element that comes next closes the gaps that are open."""
        return replace(self.then(Await(element.id)), open=False) if self.open else self

    def passing(self, path: _Path) -> _Tail:
        """Goes past an element that matches nothing."""
        passed = self.chose(*path.order)
        return replace(passed.then(*path.actions), open=True) if path.actions else passed


class _Path(NamedTuple):
    """A way in which an element matches nothing: the actions of passing it, and the choices made."""

    actions: tuple[Action, ...] = ()
    order: tuple[int, ...] = ()


def compile_pattern(pattern: SequencePattern) -> NFA:
    """The automaton of a query's sequence, after all ``passes``."""
    return reduce(lambda nfa, step: step(nfa), passes, build(pattern))


def build(pattern: SequencePattern) -> NFA:
    """The automaton as the construction gives it, before any pass."""
    return _part(pattern, pattern.root, (), None)


def _part(pattern: SequencePattern, root: Node, inside: tuple[int, ...], strategy: Strategy | None) -> NFA:
    return _Compiler(pattern, root, inside, strategy).nfa()


class _Compiler:
    def __init__(
        self, pattern: SequencePattern, root: Node, inside: tuple[int, ...], strategy: Strategy | None
    ) -> None:
        self._pattern = pattern
        self._root = root
        self._start = _Tail(0, inside, reached=True, strategy=strategy, outside=inside)
        self._orders = pattern.query.skip is not None
        self._states: dict[int, int] = {}
        self._edges: dict[Edge, None] = {}
        self._parts: dict[int, NFA] = {}

    def nfa(self) -> NFA:
        ended = self._element(self._root, [self._start])
        # An operand of ALL may match nothing, if it is optional; a whole sequence never does.
        whole = self._root is self._pattern.root
        passed = [] if whole else [Accept(0, *path) for path in self._empties(self._root)]
        accepts = dict.fromkeys([*passed, *(Accept(tail.state, tail.ends, tail.order) for tail in ended)])
        return NFA(
            pattern=self._pattern,
            root=self._root,
            size=len(self._states) + 1,
            edges=tuple(self._edges),
            accepts=tuple(accepts),
            parts=self._parts,
        )

    def _element(self, node: Node, tails: Iterable[_Tail]) -> list[_Tail]:
        """A node at whose end the gaps that are open before it are decided."""
        tails = list(tails)
        ended = self._node(node, [tail.awaiting(node) for tail in tails])
        if any(tail.open for tail in tails):
            return [tail.then(Decide(node.id, tail.inside)) for tail in ended]
        return ended

    def _node(self, node: Node, tails: list[_Tail]) -> list[_Tail]:
        match node:
            case Atom() | Both() | AnyOrder():
                return [self._unit(node, tails)]
            case Chain():
                return self._chain(node, tails)
            case Either(operands=operands):
                return [
                    ended
                    for i, operand in enumerate(operands)
                    for ended in self._node(operand, self._choose(tails, i))
                ]
            case Maybe(element=element):
                return self._element(element, tails)
            case Absent() | Empty():
                return []
            case Within(element=element):
                return self._node(element, tails)
            case Kleene():
                return self._kleene(node, tails)

    def _unit(self, unit: Unit, tails: Iterable[_Tail]) -> _Tail:
        state = self._states.setdefault(unit.id, len(self._states) + 1)
        inside = self._start.inside
        for tail in tails:
            inside = tail.inside
            predicate = Predicate(self._streams(unit), tail.strategy, unit, tail.rivals, tail.outside)
            edge = Edge(tail.state, state, tail.ends, predicate, tail.begins, order=tail.order)
            self._edges[edge] = None
        if isinstance(unit, AnyOrder):
            for operand in unit.operands:
                if operand.id not in self._parts:
                    self._parts[operand.id] = _part(self._pattern, operand, inside, Strategy.ANY)
        # An operand of ALL that ends with a negation leaves its gap to what comes after the ALL.
        return _Tail(state, inside, open=may_trail(unit))

    def _streams(self, unit: Unit) -> frozenset[NamedNode]:
        names = (node.gpm for node in walk(unit) if isinstance(node, Atom))
        return frozenset().union(*(self._pattern.gpms[name].streams for name in names))

    def _chain(self, chain: Chain, tails: list[_Tail]) -> list[_Tail]:
        """``fresh`` tails have matched nothing of the chain yet, and keep the operator before it."""
        fresh, going = tails, list[_Tail]()
        for item, operator in zip(chain.items, (None, *chain.operators), strict=True):
            reaching = [tail.operator(operator, item) for tail in going] if operator is not None else []
            passed = self._empties(item)
            ended = self._element(_optional(item), [*fresh, *reaching])
            fresh = [tail.passing(path) for tail in fresh for path in passed]
            going = [*(tail.passing(path) for tail in going for path in passed), *ended]
        return going

    def _kleene(self, kleene: Kleene, tails: list[_Tail]) -> list[_Tail]:
        element, identity = kleene.element, kleene.id
        entering = [replace(tail.then(Enter(identity)), inside=(*tail.inside, identity)) for tail in tails]
        ended = self._element(element, entering)
        if any(tail.open for tail in ended):
            # A negation at an iteration's end is decided by the next iteration as a whole.
            ended = [tail.then(Decide(element.id, tail.inside)) for tail in ended]
        if kleene.maximum is None or kleene.maximum > 1:
            again = (
                tail.then(Again(identity, kleene.maximum))
                for tail in self._choose(ended, int(kleene.reluctant))
            )
            self._element(element, [tail.operator(kleene.strategy, element) for tail in again])
        return [
            replace(tail.then(Leave(identity, kleene.minimum, tail.inside[:-1])), inside=tail.inside[:-1])
            for tail in self._choose(ended, int(not kleene.reluctant))
        ]

    def _choose(self, tails: Iterable[_Tail], choice: int) -> list[_Tail]:
        """Tails behind a choice, where preference matters."""
        return [tail.chose(choice) if self._orders else tail for tail in tails]

    def _empties(self, node: Node) -> list[_Path]:
        """The ways in which a node matches without an event."""
        paths = _empties(node)
        return list(paths if self._orders else dict.fromkeys(_Path(path.actions) for path in paths))


def _optional(item: Node) -> Node:
    """What stands behind ``?``: the gap before ``X?`` is closed by X."""
    return item.element if isinstance(item, Maybe) else item


def _empties(node: Node) -> tuple[_Path, ...]:
    """The ways in which a node matches without an event."""
    match node:
        case Atom() | Both():
            return ()
        case Empty():
            return (_Path(),)
        case Absent(element=element):
            return (_Path((Forbid(units(element)),)),)
        case Maybe(element=element):
            return _empties(element) or (_Path((Forbid(units(element)),)),)
        case Kleene(element=element) | Within(element=element):
            return _empties(element)
        case Either(operands=operands):
            return tuple(
                path._replace(order=(i, *path.order))
                for i, operand in enumerate(operands)
                for path in _empties(operand)
            )
        case Chain(items=parts) | AnyOrder(operands=parts):
            return tuple(_concatenated(parts))


def _concatenated(parts: tuple[Node, ...]) -> Iterator[_Path]:
    paths = [_Path()]
    for part in parts:
        paths = [_Path(*map(add, path, more)) for path in paths for more in _empties(part)]
    yield from paths
