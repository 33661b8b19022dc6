"""Which variables a Kleene binds anew, in each alternative (semantics, section 4, *Group variables*).

Occurrences on different sides of a ``|`` are separate. So a name may belong to a Kleene on one side and to
another, or to the whole match, on the other. If the side taken at one place decides the scope at another
place, the sequence is written out: once for each side, with the others ``closed``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import product

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
    Within,
    children,
    walk,
)

_NONE: frozenset[str] = frozenset()

#: The variables of each GPM.
Variables = Mapping[str, frozenset[str]]


def scoped(root: Node, variables: Variables, single: frozenset[str]) -> Node:
    """Return the sequence with the variables that its Kleenes own, numbered from 0 in the order written.

    The ids of ``root`` must differ. ``single`` are variables that have one value in any case.
    """
    return _Owners(_numbered(_Alternatives(root, variables, single).body(root)), variables, single).tree()


def owners(root: Node, variables: Variables) -> tuple[dict[str, tuple[int, ...]], frozenset[str]]:
    """Return the Kleenes that each group variable belongs to, outermost first, and the variables of several
    scopes.
    """
    found: dict[str, set[int | None]] = {}
    for name, kleene in _occurrences(root, variables, ()):
        found.setdefault(name, set()).add(kleene)
    groups = {name: tuple(sorted(k for k in ids if k is not None)) for name, ids in found.items()}
    mixed = frozenset(name for name, ids in found.items() if len(ids) > 1 and groups[name])
    return {name: ids for name, ids in groups.items() if ids}, mixed


def loops(node: Node) -> frozenset[int]:
    """Return the Kleenes that occur in every alternative of a node, also if an optional part is left out."""
    match node:
        case Kleene(id=identity, element=element):
            return loops(element) | {identity}
        case Either(operands=operands) if not any(isinstance(operand, Empty) for operand in operands):
            first, *others = map(loops, operands)
            return first.intersection(*others)
        case Absent():
            return frozenset()
        case _:
            return frozenset[int]().union(*map(loops, children(node)))


def passed(node: Node, before: frozenset[int] = frozenset()) -> Iterator[tuple[int, frozenset[int]]]:
    """Yield the id of each node in ``node``, and the Kleenes that stand before it in every alternative."""
    yield node.id, before
    if isinstance(node, Chain):
        for item in node.items:
            yield from passed(item, before)
            before |= loops(item)
    else:
        for part in children(node):
            yield from passed(part, before)


def _occurrences(
    node: Node, variables: Variables, inside: tuple[Kleene, ...]
) -> Iterator[tuple[str, int | None]]:
    """Yield every place of a variable, and the innermost Kleene there that it belongs to."""
    if isinstance(node, Atom):
        for name in variables[node.gpm]:
            yield name, next((k.id for k in reversed(inside) if name in k.own), None)
    if isinstance(node, Kleene):
        inside = (*inside, node)
    for part in children(node):
        for name, kleene in _occurrences(part, variables, inside):
            if not isinstance(node, Absent) or name not in node.free:
                yield name, kleene


def _exempt(root: Node) -> dict[int, int]:
    """Return negation id → Kleene id, for negations of a GPM that stand beside a Kleene of the same GPM."""
    found = {}
    for chain in (node for node in walk(root) if isinstance(node, Chain)):
        for i, item in enumerate(chain.items):
            if not isinstance(item, Absent) or not isinstance(item.element, Atom):
                continue
            for side in (reversed(chain.items[:i]), iter(chain.items[i + 1 :])):
                beside = next((other for other in side if not isinstance(other, Absent)), None)
                kleene = None if beside is None else _bare(beside)
                if (
                    isinstance(kleene, Kleene)
                    and isinstance(kleene.element, Atom)
                    and kleene.element.gpm == item.element.gpm
                ):
                    found[item.id] = kleene.id
    return found


def _bare(node: Node) -> Node:
    """Return an element without ``WITHIN`` and ``?``."""
    match node:
        case Within(element=element) | Maybe(element=element):
            return _bare(element)
        case Either(operands=(some, Empty()), apart=True) | Either(operands=(Empty(), some), apart=True):
            return _bare(some)
        case _:
            return node


class _Bound:
    """The variables that the atoms of a sequence bind or join."""

    def __init__(self, root: Node, variables: Variables) -> None:
        self._variables = variables
        self._exempt = _exempt(root)

    def of(self, node: Node) -> frozenset[str]:
        """Return all variables in a node, on the sides that are taken."""
        match node:
            case Atom(gpm=name):
                return self._variables[name]
            case Absent(id=identity) if identity in self._exempt:
                return _NONE
            case Either(operands=operands):
                return _NONE.union(*map(self.of, operands))
            case Maybe(element=element):
                return self.of(element)
            case _:
                return _NONE.union(*map(self.of, children(node)))

    def surely(self, node: Node) -> frozenset[str]:
        """Return the variables in a node whichever sides are taken; a Kleene may take all sides."""
        match node:
            case Either(operands=operands, apart=False):
                return frozenset.intersection(*map(self.surely, operands))
            case Atom() | Kleene() | Absent():
                return self.of(node)
            case _:
                return _NONE.union(*map(self.surely, children(node)))


class _Alternatives:
    """Writes a sequence out where the scope of a variable depends on the side that is taken elsewhere."""

    def __init__(self, root: Node, variables: Variables, single: frozenset[str]) -> None:
        self._bound = _Bound(root, variables)
        self._single = single
        self._deciding: set[int] = set()

    def body(self, node: Node) -> Node:
        """Return the whole sequence, or the body of a Kleene: each iteration takes its own sides."""
        self._deciding |= self._decide(node)
        readings = self._readings(node)
        return (
            readings[0]
            if len(readings) == 1
            else Either(node.id, readings, apart=True, places=(0,) * len(readings))
        )

    def _decide(self, body: Node) -> set[int]:
        """Return the ids of each ``|`` that decides, by the side taken, whether a Kleene elsewhere owns a
        variable; and of each ``|`` around such a ``|``.
        """
        sides = [node for node in _outside_kleenes(body) if isinstance(node, Either) and not node.apart]
        deciding: set[int] = set()
        for kleene in (node for node in walk(body) if isinstance(node, Kleene)):
            inner = self._bound.of(kleene) - self._single
            for either in sides:
                maybe = self._bound.of(either) - self._bound.surely(either)
                if maybe & inner and not any(node is kleene for node in walk(either)):
                    deciding.add(either.id)
        return {either.id for either in sides if any(node.id in deciding for node in walk(either))}

    def _readings(self, node: Node) -> tuple[Node, ...]:
        """Return the node once for each combination of the deciding sides."""
        match node:
            case Atom() | Empty() | Absent():
                return (node,)
            case Kleene(element=element):
                return (replace(node, element=self.body(element)),)
            case Within(element=element):
                return tuple(replace(node, element=one) for one in self._readings(element))
            case Maybe(element=element):
                ones = self._readings(element)
                return tuple(
                    replace(node, element=one, readings=ones if len(ones) > 1 else ()) for one in ones
                )
            case Chain(items=items):
                return tuple(replace(node, items=ones) for ones in product(*map(self._readings, items)))
            case Either(operands=operands) if node.id in self._deciding:
                return tuple(
                    replace(
                        node,
                        operands=(one,),
                        closed=(*operands[:i], *operands[i + 1 :]),
                        places=(node.place(i),),
                    )
                    for i, operand in enumerate(operands)
                    for one in self._readings(operand)
                )
            case Both(operands=operands) | Either(operands=operands) | AnyOrder(operands=operands):
                return tuple(replace(node, operands=ones) for ones in product(*map(self._readings, operands)))


def _outside_kleenes(node: Node) -> Iterator[Node]:
    """Yield the node and all nodes inside it, except inside Kleenes and negations."""
    yield node
    if not isinstance(node, Kleene | Absent):
        for part in children(node):
            yield from _outside_kleenes(part)


def _numbered(root: Node) -> Node:
    """Return the tree with ids from 0 in the order written; a part at several places gets an id for each."""
    count = 0

    def number(node: Node) -> Node:
        nonlocal count
        identity = count
        count += 1
        return rebuilt(replace(node, id=identity), number)

    return number(root)


def rebuilt(node: Node, change: Callable[[Node], Node]) -> Node:
    """Return the node with its direct children changed."""
    match node:
        case Atom() | Empty():
            return node
        case Chain(items=items):
            return replace(node, items=tuple(map(change, items)))
        case Both(operands=operands) | AnyOrder(operands=operands):
            return replace(node, operands=tuple(map(change, operands)))
        case Either(operands=operands, closed=closed):
            return replace(node, operands=tuple(map(change, operands)), closed=tuple(map(change, closed)))
        case Maybe(element=element, readings=readings):
            return replace(node, element=change(element), readings=tuple(map(change, readings)))
        case Kleene(element=element) | Absent(element=element) | Within(element=element):
            return replace(node, element=change(element))


class _Owners:
    """Finds what each Kleene owns in a sequence of distinct ids."""

    def __init__(self, root: Node, variables: Variables, single: frozenset[str]) -> None:
        self._root = root
        self._bound = _Bound(root, variables)
        self._single = single
        self._own: dict[int, frozenset[str]] = {}
        self._visit(root, _NONE)

    def tree(self) -> Node:
        """Return the sequence with its Kleenes' and negations' variables."""
        exempt = _exempt(self._root)

        def change(node: Node) -> Node:
            if isinstance(node, Kleene):
                node = replace(node, own=self._own[node.id])
            elif isinstance(node, Absent) and node.id in exempt:
                node = replace(node, free=self._own[exempt[node.id]])
            return rebuilt(node, change)

        return change(self._root)

    def _visit(self, node: Node, outside: frozenset[str]) -> None:
        """Visit a node. ``outside``: the variables that the same alternative binds outside of the node."""
        if isinstance(node, Kleene):
            self._own[node.id] = self._bound.of(node) - outside - self._single
        parts = children(node)
        for part in parts:
            if not children(part):
                continue  # no Kleene inside; this keeps long sequences of events linear
            beside = () if isinstance(node, Either | Maybe) else (p for p in parts if p is not part)
            self._visit(part, outside.union(*map(self._bound.of, beside)))
