"""Which variables a Kleene binds anew (semantics, section 4, group variables): by alternative."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

from tests.judge.pattern import AllOf, And, Either, Gpm, In, Name, No, Node, Opt, Or, Seq, Times, inside


def names(node: Node) -> Iterator[Name]:
    """The names in a node, those in negations included."""
    if isinstance(node, Name):
        yield node
    for part in inside(node):
        yield from names(part)


def alternatives(node: Node) -> list[Node]:
    """The node once for each choice of a side of every ``|`` outside Kleenes.

    A Kleene chooses anew in each iteration; in a negation all sides are meant.
    """
    match node:
        case Name() | No():
            return [node]
        case Or(operands=operands):
            return [
                Or((*operands[:i], fixed, *operands[i + 1 :]), i)
                for i, operand in enumerate(operands)
                for fixed in alternatives(operand)
            ]
        case Seq(items=items, ops=ops):
            return [Seq(p, ops) for p in itertools.product(*map(alternatives, items))]
        case And(operands=operands):
            return [And(p) for p in itertools.product(*map(alternatives, operands))]
        case AllOf(operands=operands):
            return [AllOf(p) for p in itertools.product(*map(alternatives, operands))]
        case Times(element=element):
            readings = alternatives(element)
            return [replace(node, element=readings[0] if len(readings) == 1 else Either(tuple(readings)))]
        case Opt(element=element):
            readings = tuple(alternatives(element))
            return [replace(node, element=fixed, readings=readings) for fixed in readings]
        case In(element=element):
            return [replace(node, element=fixed) for fixed in alternatives(element)]
        case Either(readings=readings):
            return list(readings)


def groups(root: Node, gpms: dict[str, Gpm], single: frozenset[str]) -> dict[Node, frozenset[str]]:
    """The variables that each Kleene of one alternative binds anew; ``single`` have one value anyway."""
    own: dict[Node, frozenset[str]] = {}
    exempt = beside(root)

    def bound(node: Node) -> frozenset[str]:
        """What is bound inside, on the sides taken."""
        if node in exempt:
            return frozenset()
        if isinstance(node, Name):
            return frozenset(gpms[node.name].binds)
        parts = inside(node)
        if isinstance(node, Or) and node.take is not None:
            parts = (node.operands[node.take],)
        return frozenset().union(*map(bound, parts))

    def visit(node: Node, outside: frozenset[str]) -> None:
        parts = inside(node)
        if isinstance(node, Or) and node.take is not None:
            parts = (node.operands[node.take],)
        if isinstance(node, Times):
            own[node] = bound(node) - outside - single
        if isinstance(node, Opt):
            # What is absent may have been any of these.
            parts = node.readings
        for part in parts:
            others = parts if not isinstance(node, Either | Opt) else (part,)
            visit(part, outside.union(*(bound(o) for o in others if o is not part)))

    visit(root, frozenset())
    return own


def over(root: Node, gpms: dict[str, Gpm]) -> tuple[dict[Node, frozenset[str]], frozenset[str]]:
    """The variables of Kleenes that stand before each node in every alternative, matched or left out.

    And those of the whole sequence.
    """
    found: dict[Node, frozenset[str]] = {}

    def repeated(node: Node) -> frozenset[str]:
        if isinstance(node, No):
            return frozenset()
        if isinstance(node, Times):
            return frozenset(v for name in names(node) for v in gpms[name.name].binds)
        parts = [repeated(part) for part in inside(node)]
        if isinstance(node, Or | Either):
            return parts[0].intersection(*parts)
        return frozenset().union(*parts)

    def visit(node: Node, before: frozenset[str]) -> None:
        found[node] = before
        for part in (*inside(node), *(node.readings if isinstance(node, Opt) else ())):
            visit(part, before)
            if isinstance(node, Seq):
                before |= repeated(part)

    visit(root, frozenset())
    return found, repeated(root)


def beside(root: Node) -> dict[No, Times]:
    """The negations that stand beside a Kleene of the GPM they negate, with it."""
    return dict(_beside(root))


def _beside(root: Node) -> Iterator[tuple[No, Times]]:
    if isinstance(root, Seq):
        bare = [item.element if isinstance(item, In) else item for item in root.items]
        for i, item in enumerate(bare):
            if isinstance(item, No) and isinstance(item.element, Name):
                before = next((o for o in reversed(bare[:i]) if not isinstance(o, No)), None)
                after = next((o for o in bare[i + 1 :] if not isinstance(o, No)), None)
                for o in (before, after):
                    o = o.element if isinstance(o, Opt) else o
                    if (
                        isinstance(o, Times)
                        and isinstance(o.element, Name)
                        and o.element.name == item.element.name
                    ):
                        yield item, o
    parts = root.readings if isinstance(root, Opt) else inside(root)
    for part in parts:
        yield from _beside(part)
