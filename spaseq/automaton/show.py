"""Sequences and edges in words, as drawings and ``explain`` show them."""

from __future__ import annotations

from collections.abc import Iterable

from spaseq.automaton.nfa import Accept, Action, Again, Edge, Forbid, Leave, Omit, Until
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
)
from spaseq.language.syntax import Strategy


def show(node: Node) -> str:
    """Return a node of the sequence as it is written in SEQ.

    >>> show(Maybe(0, Kleene(1, Atom(2, "A", (), ()), 2, None, Strategy.ANY, frozenset())))
    '(A{2,}[:])?'
    """
    match node:
        case Atom(gpm=gpm):
            return gpm
        case Chain(items=items, operators=operators):
            first, *others = map(_item, items)
            return first + "".join(f" {op} {item}" for op, item in zip(operators, others, strict=True))
        case Both(operands=operands):
            return " & ".join(map(_item, operands))
        case Either(operands=(some, Empty())):
            return _optional(some, "?")
        case Either(operands=(Empty(), some)):
            return _optional(some, "??")
        case Either(operands=(one,)):
            return show(one)
        case Either(operands=operands):
            return " | ".join(map(_item, operands))
        case AnyOrder(operands=operands):
            return f"ALL({', '.join(map(_item, operands))})"
        case Kleene(minimum=minimum):
            return _repeated(node, minimum)
        case Maybe(element=element):
            return _optional(element, "?")
        case Absent(element=element, limit=limit):
            return f"!{_unit(element)}" + ("" if limit is None else f" WITHIN {limit}")
        case Within(element=element, limit=limit):
            return f"{_item(element)} WITHIN {limit}"
        case Empty():
            return "()"


def label(edge: Edge) -> str:
    """Return an edge's conditions: negations, the operator, the unit, and its bounds."""
    strategy = edge.predicate.strategy
    parts = [*_negations((*edge.ends, *edge.begins)), f"{strategy} " if strategy else ""]
    guards = _guards(edge.ends)
    return "".join(parts) + show(edge.predicate.unit) + (f" ({', '.join(guards)})" if guards else "")


def ending(accept: Accept) -> str:
    """Return what must hold for a match to end in a state; empty if nothing does."""
    return " ".join([*map(str.strip, _negations(accept.ends)), *_guards(accept.ends)])


def _unit(node: Node) -> str:
    return show(node) if isinstance(node, Atom | AnyOrder) else f"({show(node)})"


def _item(node: Node) -> str:
    if isinstance(node, Either) and len(node.operands) == 1:
        return _item(node.operands[0])
    if isinstance(node, Either) and len(node.operands) == 2 and Empty in map(type, node.operands):
        return show(node)  # followed by its own sign, as in the grammar
    return f"({show(node)})" if isinstance(node, Chain | Both | Either) else show(node)


def _optional(some: Node, sign: str) -> str:
    """Return an optional node: a repetition from 1 on becomes one from 0 on, others get ``sign``."""
    if isinstance(some, Kleene) and some.minimum == 1:
        return _repeated(some, 0)
    return _unit(some) + sign


def _repeated(kleene: Kleene, minimum: int) -> str:
    maximum = kleene.maximum
    inner = "?" * kleene.reluctant + ("" if kleene.strategy is Strategy.NEXT else f"[{kleene.strategy}]")
    if maximum is None:
        sign = {0: "*", 1: "+"}.get(minimum, f"{{{minimum},}}")
    else:
        sign = f"{{{minimum}}}" if minimum == maximum else f"{{{minimum},{maximum}}}"
    return _unit(kleene.element) + sign + inner


def _negations(actions: Iterable[Action]) -> list[str]:
    negated = (a.negation for a in actions if isinstance(a, Forbid))
    omitted = (a.optional for a in actions if isinstance(a, Omit))
    return [
        *(f"{show(node)} " for node in dict.fromkeys(negated)),
        *(f"no {show(node)} " for node in dict.fromkeys(omitted)),
    ]


def _guards(actions: Iterable[Action]) -> list[str]:
    guards = []
    for action in actions:
        match action:
            case Again(maximum=maximum) if maximum is not None:
                guards.append(f"<{maximum}×")
            case Leave(minimum=minimum) if minimum > 1:
                guards.append(f"≥{minimum}×")
            case Until(limit=limit):
                guards.append(f"within {limit}")
    return guards
