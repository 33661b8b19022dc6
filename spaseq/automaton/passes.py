"""Passes over an automaton after its construction: each a function NFA → NFA.

No pass changes which matches there are, nor when they are found.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Final

from spaseq.automaton.nfa import NFA, Action, Again, Await, Decide, Forbid, Omit, Unit
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
    walk,
)
from spaseq.language import scope
from spaseq.language.syntax import Filter, Group, Strategy, Triples

_NONE: Final[frozenset[str]] = frozenset()


def drop_vacuous_negations(nfa: NFA) -> NFA:
    """Drop negations between neighbours (``,``): there is no gap in which an event could occur."""

    def change(part: NFA) -> NFA:
        edges = (
            replace(edge, ends=_without(edge.ends, (Forbid, Omit)))
            if edge.predicate.strategy is Strategy.STRICT
            else edge
            for edge in part.edges
        )
        part = replace(part, edges=tuple(edges))
        if _forbids(part):
            return part
        return replace(
            part,
            edges=tuple(
                replace(
                    edge,
                    ends=_without(edge.ends, Decide),
                    begins=_without(edge.begins, Await),
                )
                for edge in part.edges
            ),
            accepts=tuple(replace(accept, ends=_without(accept.ends, Decide)) for accept in part.accepts),
        )

    return nfa.everywhere(change)


def merge_states(nfa: NFA) -> NFA:
    """Merge states from which the same is possible (partition refinement, as for DFAs)."""

    def change(part: NFA) -> NFA:
        block = dict.fromkeys(range(part.size), 0)
        while True:
            signatures = _futures(part, block)
            numbers = {signature: i for i, signature in enumerate(dict.fromkeys(signatures.values()))}
            refined = {state: numbers[signature] for state, signature in signatures.items()}
            if len(numbers) == len(set(block.values())):
                break
            block = refined
        edges = (replace(e, source=refined[e.source], target=refined[e.target]) for e in part.edges)
        accepts = (replace(accept, state=refined[accept.state]) for accept in part.accepts)
        return replace(
            part,
            size=len(numbers),
            edges=tuple(dict.fromkeys(edges)),
            accepts=tuple(dict.fromkeys(accepts)),
        )

    return nfa.everywhere(change)


def place_filters(nfa: NFA) -> NFA:
    """Write to each edge the filters that can first be decided there.

    Correlated filters stand at their GPM, or at the ``&`` that binds their variables. A filter of WHERE
    stands at the earliest edges after which all its variables are bound, outside of the Kleenes they belong
    to.
    """

    def change(part: NFA) -> NFA:
        known = _known(part)
        bound = _bound_in(part, known)
        edges = []
        for edge in part.edges:
            before = bound.get(edge.source, _NONE)
            after = before | _acted(part.pattern, edge.ends, known.get(edge.source, _NONE))
            after |= _bound(part.pattern, edge.predicate.unit)
            after -= _NONE.union(*(_own(part.pattern, kleene) for kleene in edge.inside))
            own = [f for node in walk(edge.predicate.unit) for f in _filters(node)]
            where = [
                f
                for f in part.pattern.where
                if not scope.mentioned(f.condition) <= before and scope.mentioned(f.condition) <= after
            ]
            edges.append(replace(edge, filters=(*own, *where)))
        return replace(part, edges=tuple(edges))

    return nfa.everywhere(change)


def derive_keys(nfa: NFA) -> NFA:
    """Find the variables by which the runs that wait at an edge can be looked up.

    The run, the unit, and every rival bind these variables. Also records in ``shared`` which variables all
    GPMs share. No matcher partitions by them without PARTITION BY, since ``,`` is about the whole streamset.
    """

    def change(part: NFA) -> NFA:
        known = _known(part)
        edges = []
        for edge in part.edges:
            key = _acted(part.pattern, edge.ends, known.get(edge.source, _NONE))
            for unit in (edge.predicate.unit, *(rival.unit for rival in edge.predicate.rivals)):
                key &= _bound(part.pattern, unit)
            edges.append(replace(edge, key=tuple(sorted(key))))
        return replace(part, edges=tuple(edges))

    pattern = nfa.pattern
    positive = [pattern.gpms[name] for name in pattern.positive]
    shared = frozenset.intersection(*(scope.gpm_certain(part.gpm) for part in positive))
    return replace(nfa.everywhere(change), shared=tuple(sorted(shared)))


def order_by_cost(nfa: NFA) -> NFA:
    """Put disjuncts and conjuncts with the fewest triple patterns and filters first (paper, 7.3).

    Not with AFTER MATCH SKIP, which prefers matches in the order written.
    """
    if nfa.pattern.query.skip is not None:
        return nfa

    def change(part: NFA) -> NFA:
        edges = (
            replace(edge, predicate=replace(edge.predicate, unit=_ordered(part.pattern, edge.predicate.unit)))
            for edge in part.edges
        )
        return replace(
            part,
            edges=tuple(sorted(edges, key=lambda e: (e.source, _cost(part.pattern, e.predicate.unit)))),
        )

    return nfa.everywhere(change)


passes: Final[tuple[Callable[[NFA], NFA], ...]] = (
    drop_vacuous_negations,
    merge_states,
    place_filters,
    derive_keys,
    order_by_cost,
)


def _without(actions: tuple[Action, ...], kind: type | tuple[type, ...]) -> tuple[Action, ...]:
    return tuple(action for action in actions if not isinstance(action, kind))


def _forbids(nfa: NFA) -> bool:
    """Return whether a gap may be open somewhere; an operand of ALL leaves its gaps to what comes after."""
    edges = (action for edge in nfa.edges for action in (*edge.ends, *edge.begins))
    accepts = (action for accept in nfa.accepts for action in accept.ends)
    if any(isinstance(action, Forbid | Omit) for action in (*edges, *accepts)):
        return True
    units = (edge.predicate.unit for edge in nfa.edges)
    return any(
        _forbids(nfa.parts[operand.id]) for u in units if isinstance(u, AnyOrder) for operand in u.operands
    )


def _futures(nfa: NFA, block: Mapping[int, int]) -> dict[int, object]:
    """Return what is possible from each state, given a partition of the states; the initial state stays
    alone.
    """
    accepts: dict[int, set[object]] = defaultdict(set)
    edges: dict[int, set[object]] = defaultdict(set)
    for accept in nfa.accepts:
        accepts[accept.state].add((accept.ends, accept.order))
    for e in nfa.edges:
        edges[e.source].add((e.ends, e.predicate, e.begins, e.order, block[e.target]))
    return {state: (state == 0, frozenset(accepts[state]), frozenset(edges[state])) for state in block}


def _known(nfa: NFA) -> dict[int, frozenset[str]]:
    """Return the variables surely bound in each state: the greatest fixpoint over all ways to reach it."""
    known: dict[int, frozenset[str]] = {0: _NONE}
    changed = True
    while changed:
        changed = False
        for edge in nfa.edges:
            if edge.source not in known:
                continue
            arriving = _acted(nfa.pattern, edge.ends, known[edge.source])
            arriving |= _bound(nfa.pattern, edge.predicate.unit)
            found = arriving & known.get(edge.target, arriving)
            if known.get(edge.target) != found:
                known[edge.target] = found
                changed = True
    return known


def _bound_in(nfa: NFA, known: Mapping[int, frozenset[str]]) -> dict[int, frozenset[str]]:
    """Return the variables bound in each state, without those of the Kleenes that may be in
    progress there.
    """
    inside: dict[int, set[int]] = defaultdict(set)
    for edge in nfa.edges:
        inside[edge.target].update(edge.inside)
    return {
        state: bound.difference(*(_own(nfa.pattern, kleene) for kleene in inside[state]))
        for state, bound in known.items()
    }


def _acted(pattern: SequencePattern, actions: Iterable[Action], bound: frozenset[str]) -> frozenset[str]:
    """Return the variables still bound after some actions: an iteration's end removes its own variables."""
    for action in actions:
        if isinstance(action, Again):
            bound -= _own(pattern, action.kleene)
    return bound


def _own(pattern: SequencePattern, kleene: int) -> frozenset[str]:
    owners = (node.own for node in walk(pattern.root) if isinstance(node, Kleene) and node.id == kleene)
    return next(owners)


def _bound(pattern: SequencePattern, node: Node) -> frozenset[str]:
    """Return the variables that every match of a node binds."""
    match node:
        case Atom(gpm=name):
            return scope.gpm_certain(pattern.gpms[name].gpm)
        case Chain(items=parts) | Both(operands=parts) | AnyOrder(operands=parts):
            return _NONE.union(*(_bound(pattern, part) for part in parts))
        case Either(operands=operands):
            return frozenset.intersection(*(_bound(pattern, operand) for operand in operands))
        case Kleene(element=element) | Within(element=element):
            return _bound(pattern, element)
        case Maybe() | Absent() | Empty():
            return _NONE


def _filters(node: Node) -> tuple[Filter, ...]:
    match node:
        case Atom(filters=filters) | Both(deferred=filters):
            return filters
        case _:
            return ()


def _ordered(pattern: SequencePattern, node: Unit) -> Unit:
    if not isinstance(node, Both):
        return node
    return replace(node, operands=tuple(sorted(node.operands, key=lambda o: _cost(pattern, o))))


def _cost(pattern: SequencePattern, node: Node) -> int:
    """Return the cost of evaluating a node, in triple patterns and filters."""
    return sum(
        len(atom.filters) + _size(pattern.gpms[atom.gpm].stateless)
        for atom in walk(node)
        if isinstance(atom, Atom)
    )


def _size(pattern: Group) -> int:
    return sum(len(p.patterns) if isinstance(p, Triples) else 1 for p in pattern.elements)
