"""Sequence in normal form → NFA_scep.

A construction on *tails*: dangling edges that have the actions before and after the operator on the way to
the next unit. Compiling a node connects every tail to every unit that the node can start with, and returns
the tails that leave the node. A node that can match nothing (``X?``, ``!X``) is passed by adding its actions
to the tail.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Final, NamedTuple

from pyoxigraph import NamedNode

from spaseq.automaton.nfa import (
    NFA,
    AbsentSide,
    Accept,
    Action,
    Again,
    Await,
    Decide,
    Edge,
    Enter,
    Forbid,
    Leave,
    Omit,
    Predicate,
    Rival,
    Since,
    Unit,
    Until,
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
    choices,
    may_trail,
    units,
    walk,
)
from spaseq.errors import QueryMeaningError
from spaseq.language.syntax import Strategy

#: The most actions of an automaton; a transition counts as four. Some 60 optional elements in a row have this
#: many, and so do two disjunctions of 120 sides in a row. Registering such a query takes some seconds
#: (measured).
MOST_ACTIONS: Final = 60_000


class _Turn(NamedTuple):
    """A ``|`` of which one side was taken; ``entered`` and ``inside`` as in ``AbsentSide``."""

    entered: tuple[int, ...]
    inside: tuple[int, ...]
    either: Either
    side: int

    def others(self) -> Iterator[AbsentSide]:
        """Yield the sides that were not taken."""
        operands = self.either.operands
        for other in (*operands[: self.side], *operands[self.side + 1 :], *self.either.closed):
            yield AbsentSide(self.entered, self.inside, other)


@dataclass(frozen=True, slots=True)
class _Tail:
    """An edge without its target. ``open``: a gap waits for the next element to close it.

    ``reached``: the operator is already on the edge; actions added later come after it. ``inside`` are the
    Kleenes in progress, ``outside`` those in progress at the operator. ``beside`` are the ``|``s entered
    since the operator. Their sides not taken are written out only when an optional element is left out,
    because each of n sides has n - 1 others.
    """

    state: int
    inside: tuple[int, ...]
    ends: tuple[Action, ...] = ()
    reached: bool = False
    strategy: Strategy | None = None
    rivals: tuple[Rival, ...] = ()
    outside: tuple[int, ...] = ()
    begins: tuple[Action, ...] = ()
    beside: tuple[_Turn, ...] = ()
    open: bool = False
    order: tuple[int, ...] = ()

    def chose(self, *choices: int) -> _Tail:
        """Return the tail with ``choices`` added, each a position in the order of preference."""
        return replace(self, order=(*self.order, *choices))

    def then(self, *actions: Action) -> _Tail:
        if self.reached:
            return replace(self, begins=(*self.begins, *actions))
        return replace(self, ends=(*self.ends, *actions))

    def operator(self, strategy: Strategy, element: Node) -> list[_Tail]:
        """Set the operator before ``element``: once for each choice of what it must not skip."""
        tail = replace(self, reached=True, strategy=strategy, outside=self.inside, beside=())
        if strategy is not Strategy.NEXT:
            return [tail]
        rivals = (tuple(Rival(entered, unit) for entered, unit in choice) for choice in choices(element))
        return [replace(tail, rivals=choice) for choice in rivals if choice]

    def reaches(self, unit: Unit) -> bool:
        """Return whether ``unit`` may come after the operator: the operator is not ``;``, or it waits for
        ``unit`` or a part of it.
        """
        if self.strategy is not Strategy.NEXT:
            return True
        inner = {node.id for node in walk(unit)}
        return any(rival.unit.id in inner for rival in self.rivals)

    def besides(self, either: Either, side: int) -> _Tail:
        """Enter one side of a ``|``."""
        turn = _Turn(self.inside[len(self.outside) :], self.inside, either, side)
        return replace(self, beside=(*self.beside, turn))

    def awaiting(self, element: Node, strategy: Strategy | None) -> _Tail:
        """Return the tail with the gaps closed, if any are open: ``element`` comes next."""
        return (
            replace(self.then(Await(element.id, strategy or self.strategy)), open=False)
            if self.open
            else self
        )

    def passing(self, path: _Path, strategy: Strategy | None) -> _Tail:
        """Pass an element that matches nothing. ``strategy`` stands before it, unless it comes first."""
        passed = self.chose(*path.order)
        if not path.actions:
            return passed
        before = self.strategy if self.reached else strategy
        beside = tuple(side for turn in self.beside for side in turn.others()) if self.reached else ()
        actions = [
            replace(action, strategy=before, inside=self.inside, beside=beside)
            if isinstance(action, Omit)
            else replace(action, strategy=before, inside=self.inside)
            for action in path.actions
        ]
        return replace(passed.then(*actions), open=True)


class _Path(NamedTuple):
    """A way for an element to match nothing: the actions of passing it, and the choices made."""

    actions: tuple[Forbid | Omit, ...] = ()
    order: tuple[int, ...] = ()


def compile_pattern(pattern: SequencePattern) -> NFA:
    """Return the automaton of a query's sequence, after all ``passes``."""
    return reduce(lambda nfa, step: step(nfa), passes, build(pattern))


def build(pattern: SequencePattern) -> NFA:
    """Return the automaton as the construction gives it, before any pass."""
    return _part(pattern, pattern.root, (), None)


def _part(pattern: SequencePattern, root: Node, inside: tuple[int, ...], strategy: Strategy | None) -> NFA:
    return _NfaCompiler(pattern, root, inside, strategy).nfa()


class _NfaCompiler:
    def __init__(
        self, pattern: SequencePattern, root: Node, inside: tuple[int, ...], strategy: Strategy | None
    ) -> None:
        self._pattern = pattern
        self._root = root
        self._start = _Tail(0, inside, reached=True, strategy=strategy, outside=inside)
        self._orders = pattern.query.skip is not None
        self._states: dict[int, int] = {}
        self._edges: dict[Edge, None] = {}
        self._size = 0
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

    def _element(self, node: Node, tails: Iterable[_Tail], strategy: Strategy | None = None) -> list[_Tail]:
        """Compile a node; at its end, the gaps opened before it are decided.

        ``strategy`` stands right before it; None if the tails already have it.
        """
        tails = list(tails)
        ended = self._node(node, [tail.awaiting(node, strategy) for tail in tails])
        if any(tail.open for tail in tails):
            return [tail.then(Decide(node.id, tail.inside)) for tail in ended]
        return ended

    def _node(self, node: Node, tails: list[_Tail]) -> list[_Tail]:
        match node:
            case Atom() | Both() | AnyOrder():
                return [self._unit(node, tails)]
            case Chain():
                return self._chain(node, tails)
            case Either():
                return self._either(node, tails)
            case Maybe(element=element):
                return self._node(element, tails)
            case Absent() | Empty():
                return []
            case Within(id=identity, element=element, limit=limit):
                ended = self._node(element, [tail.then(Since(identity)) for tail in tails])
                return [tail.then(Until(identity, limit)) for tail in ended]
            case Kleene():
                return self._kleene(node, tails)

    def _unit(self, unit: Unit, tails: Iterable[_Tail]) -> _Tail:
        state = self._states.setdefault(unit.id, len(self._states) + 1)
        inside = self._start.inside
        for tail in tails:
            inside = tail.inside
            if not tail.reaches(unit):
                continue
            predicate = Predicate(self._streams(unit), tail.strategy, unit, tail.rivals, tail.outside)
            edge = Edge(tail.state, state, tail.ends, predicate, tail.begins, order=tail.order)
            self._edges[edge] = None
            self._size += 4 + len(edge.ends) + len(edge.begins)
        if self._size > MOST_ACTIONS:
            raise QueryMeaningError(
                f"the sequence needs an automaton of more than {MOST_ACTIONS:,} actions: "
                "write fewer optional elements in a row, or shorter disjunctions beside each other",
                text=self._pattern.query.text.partition("\n")[0][:200],
            )
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
        """Compile a chain. The ``fresh`` tails have matched nothing of the chain yet: they keep the operator
        before it.
        """
        fresh, going = tails, list[_Tail]()
        for item, operator in zip(chain.items, (None, *chain.operators), strict=True):
            reaching = [t for tail in going for t in tail.operator(operator, item)] if operator else []
            passed = self._empties(item)
            ended = self._element(item, [*fresh, *reaching], operator)
            fresh = [tail.passing(path, operator) for tail in fresh for path in passed]
            going = [*(tail.passing(path, operator) for tail in going for path in passed), *ended]
        return going

    def _either(self, either: Either, tails: list[_Tail]) -> list[_Tail]:
        ended = []
        for i, operand in enumerate(either.operands):
            beside = [tail if either.apart else tail.besides(either, i) for tail in tails]
            ended += self._node(operand, self._choose(beside, either.place(i)))
        return ended

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
            reaching = [t for tail in again for t in tail.operator(kleene.strategy, element)]
            self._element(element, reaching, kleene.strategy)
        return [
            replace(tail.then(Leave(identity, kleene.minimum, tail.inside[:-1])), inside=tail.inside[:-1])
            for tail in self._choose(ended, int(not kleene.reluctant))
        ]

    def _choose(self, tails: Iterable[_Tail], choice: int) -> list[_Tail]:
        """Return tails with a choice added, where preference matters."""
        return [tail.chose(choice) if self._orders else tail for tail in tails]

    def _empties(self, node: Node) -> list[_Path]:
        """Return the ways in which a node matches without an event."""
        paths = _empties(node)
        return list(paths if self._orders else dict.fromkeys(_Path(path.actions) for path in paths))


def _empties(node: Node) -> tuple[_Path, ...]:
    """Return the ways in which a node matches without an event."""
    match node:
        case Atom() | Both():
            return ()
        case Empty():
            return (_Path(),)
        case Absent(element=element):
            return (_Path((Forbid(units(element), node),)),)
        case Maybe(element=element):
            return _empties(element) or (_Path((Omit(node),)),)
        case Kleene(element=element) | Within(element=element):
            return _empties(element)
        case Either(operands=operands):
            return tuple(
                path._replace(order=(node.place(i), *path.order))
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
