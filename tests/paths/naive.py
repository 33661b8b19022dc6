"""Path expressions evaluated the obvious way, on small graphs: what the backends are compared with.

Pairs by the algebra of relations, without an automaton; paths by trying all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pyoxigraph import NamedNode

from spaseq.paths.language.expression import Alternative, Concatenation, NodeTest, Path, Repetition, Step
from spaseq.terms.dictionary import Term

Triple = tuple[Term, NamedNode, Term]
Relation = frozenset[tuple[Term, Term]]

#: An edge as it was taken: the triple, and whether forwards.
Taken = tuple[Triple, bool]


@dataclass(frozen=True)
class Walk:
    """Nodes and triples."""

    nodes: tuple[Term, ...]
    triples: tuple[Triple, ...]


def nodes_of(triples: frozenset[Triple]) -> set[Term]:
    """All subjects and objects."""
    return {term for s, _, o in triples for term in (s, o)}


def passes(node: Term, test: NodeTest, triples: frozenset[Triple]) -> bool:
    """Whether a node has all the triples a test asks for."""
    for c in test.conditions:
        found = {
            (o if s == node else None, s if o == node else None) for s, p, o in triples if p == c.predicate
        }
        values = {backward if c.inverse else forward for forward, backward in found} - {None}
        if not (values if c.value is None else c.value in values):
            return False
    return True


def takes(step: Step, predicate: NamedNode) -> bool:
    """Whether a step takes edges of a predicate."""
    return (predicate in step.predicates) != step.negated


def relation(path: Path, triples: frozenset[Triple], nodes: frozenset[Term]) -> Relation:
    """All pairs of ``nodes`` that a path joins."""
    match path:
        case Step():
            taken = {(s, o) for s, p, o in triples if takes(path, p)}
            return frozenset((o, s) for s, o in taken) if path.inverse else frozenset(taken)
        case NodeTest():
            return frozenset((node, node) for node in nodes if passes(node, path, triples))
        case Alternative(parts):
            return frozenset().union(*(relation(part, triples, nodes) for part in parts))
        case Concatenation(parts):
            whole = identity(nodes)
            for part in parts:
                whole = joined(whole, relation(part, triples, nodes))
            return whole
        case Repetition(part, minimum, maximum):
            once = relation(part, triples, nodes)
            power = identity(nodes)
            for _ in range(minimum):
                power = joined(power, once)
            whole = power
            rounds = 0
            while maximum is None or rounds < maximum - minimum:
                power = joined(power, once)
                rounds += 1
                if power <= whole and maximum is None:
                    break
                whole |= power
            return whole


def identity(nodes: frozenset[Term]) -> Relation:
    """Every node with itself."""
    return frozenset((node, node) for node in nodes)


def joined(first: Relation, second: Relation) -> Relation:
    """First one, then the other."""
    return frozenset((a, d) for a, b in first for c, d in second if b == c)


def ends(path: Path, walk: Walk, taken: tuple[Taken, ...], at: int, triples: frozenset[Triple]) -> set[int]:
    """Where in a walk the expression may have been read to, from place ``at`` on."""
    match path:
        case Step():
            if at < len(taken) and takes(path, taken[at][0][1]) and taken[at][1] != path.inverse:
                return {at + 1}
            return set()
        case NodeTest():
            return {at} if passes(walk.nodes[at], path, triples) else set()
        case Alternative(parts):
            return set().union(*(ends(part, walk, taken, at, triples) for part in parts))
        case Concatenation(parts):
            places = {at}
            for part in parts:
                places = set().union(*(ends(part, walk, taken, place, triples) for place in places))
            return places
        case Repetition(part, minimum, maximum):
            places = {at}
            reached = set(places) if minimum == 0 else set()
            bound = minimum + len(taken) + 1 if maximum is None else maximum
            for iteration in range(1, bound + 1):
                places = set().union(*(ends(part, walk, taken, place, triples) for place in places))
                if iteration >= minimum:
                    reached |= places
            return reached


def walks(
    start: Term, triples: frozenset[Triple], longest: int, mode: str
) -> Iterator[tuple[Walk, tuple[Taken, ...]]]:
    """All walks from a node of at most so many edges that a mode allows, in every direction."""

    def extend(nodes: tuple[Term, ...], taken: tuple[Taken, ...]) -> Iterator[tuple[Walk, tuple[Taken, ...]]]:
        yield Walk(nodes, tuple(triple for triple, _ in taken)), taken
        closed = mode == "SIMPLE" and len(nodes) > 1 and nodes[0] == nodes[-1]
        if len(taken) == longest or closed:
            return
        for triple in triples:
            s, _, o = triple
            for before, after, forward in ((s, o, True), (o, s, False)):
                if before != nodes[-1]:
                    continue
                if mode == "TRAIL" and any(triple == other for other, _ in taken):
                    continue
                if mode == "ACYCLIC" and after in nodes:
                    continue
                if mode == "SIMPLE" and after in nodes[1:]:
                    continue
                yield from extend((*nodes, after), (*taken, (triple, forward)))

    yield from extend((start,), ())


def matching(path: Path, triples: frozenset[Triple], start: Term, longest: int, mode: str) -> set[Walk]:
    """The walks from a node that the expression takes."""
    return {
        walk
        for walk, taken in walks(start, triples, longest, mode)
        if len(taken) in ends(path, walk, taken, 0, triples)
    }
