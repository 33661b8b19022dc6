"""Which queries can be enumerated, and the variables that separate their runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from spaseq.automaton.compile import compile_pattern
from spaseq.automaton.pattern import Atom, Kleene, Node, SequencePattern, children, walk
from spaseq.language.syntax import All, Conjunction, Consume, Emit, Not, Repeat, Strategy
from spaseq.language.syntax.printing import print_sequence
from spaseq.matching.obstacles import Obstacle, filter_of, other_operators, subsequences
from spaseq.matching.tecs.records import root

#: The most GPMs: labels are the bits of an integer.
MOST_GPMS: Final = 62


def obstacles(pattern: SequencePattern) -> Iterator[Obstacle]:
    """Yield why the matches of a query cannot be enumerated."""
    query, nfa = pattern.query, compile_pattern(pattern)
    for part in subsequences(query.sequence):
        match part:
            case Not() | Repeat(minimum=0):
                yield Obstacle("nothing depends on what is between events", print_sequence(part), part.span)
            case Conjunction() | All():
                yield Obstacle("nothing gathers events", print_sequence(part), part.span)
    atoms = [node for node in walk(pattern.root) if isinstance(node, Atom)]
    for item in dict.fromkeys([*(item for atom in atoms for item in atom.filters), *pattern.where]):
        yield filter_of(item, "no filter compares events")
    if any(edge.predicate.strategy not in (Strategy.ANY, None) for edge in nfa.edges):
        yield from other_operators(query.sequence, Strategy.ANY)
    if len(pattern.gpms) > MOST_GPMS:
        yield Obstacle(f"there are at most {MOST_GPMS} GPMs", str(len(pattern.gpms)))
    yield from _keys_obstacles(pattern, frozenset(nfa.shared))


def _keys_obstacles(pattern: SequencePattern, shared: frozenset[str]) -> Iterator[Obstacle]:
    derived, query = _derived(pattern), pattern.query
    anew = derived & (_own(pattern) | pattern.mixed)
    for name in sorted(anew):
        yield Obstacle("no variable joins the events of one iteration alone", f"?{name}")
    for name in sorted(derived - shared - anew):
        lacking = [gpm for gpm in query.gpms if name not in pattern.gpms[gpm.name].variables]
        for gpm in lacking:
            yield Obstacle(f"?{name} joins all events or none", f"{gpm.name} without it", gpm.span)
        if not lacking:
            yield Obstacle(f"?{name} joins all events or none", "a match with events that it does not join")
    clauses = {f"EMIT {query.emit}": query.emit is not Emit.ALL, "CONSUME ANY": query.consume is Consume.ANY}
    for clause in (clause for clause, stands in clauses.items() if stands and derived):
        names = " ".join(f"?{name}" for name in sorted(derived))
        yield Obstacle(f"there is PARTITION BY {names} where there is EMIT or CONSUME", clause)
    count = len(query.partition) + len(derived)
    if count > root.KEY_LIMIT:
        yield Obstacle(f"at most {root.KEY_LIMIT} variables tell runs apart", str(count))


def keys(pattern: SequencePattern) -> tuple[str, ...]:
    """Return the variables that separate runs: first those of PARTITION BY, then those of joins.

    If no event must be adjacent to another, a variable in which a match's events must agree works as in
    PARTITION BY.
    """
    return (*(variable.name for variable in pattern.query.partition), *sorted(_derived(pattern)))


def _derived(pattern: SequencePattern) -> set[str]:
    """Return the join variables of a match's events, without those of PARTITION BY."""
    atoms = [node for node in walk(pattern.root) if isinstance(node, Atom)]
    count = Counter(name for atom in atoms for name in pattern.gpms[atom.gpm].variables)
    own = _own(pattern)
    kleenes = [node for node in walk(pattern.root) if isinstance(node, Kleene)]
    inside = {atom.id for kleene in kleenes for atom in _atoms(kleene)}
    repeated = {n for atom in atoms if atom.id in inside for n in pattern.gpms[atom.gpm].variables - own}
    found = {name for name, number in count.items() if number > 1} | repeated
    return found - {variable.name for variable in pattern.query.partition}


def _own(pattern: SequencePattern) -> frozenset[str]:
    """Return the variables that some Kleene's iterations bind anew."""
    kleenes = (node for node in walk(pattern.root) if isinstance(node, Kleene))
    return frozenset[str]().union(*(kleene.own for kleene in kleenes))


def _atoms(node: Node) -> list[Atom]:
    if isinstance(node, Atom):
        return [node]
    return [atom for child in children(node) for atom in _atoms(child)]
