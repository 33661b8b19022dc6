"""Which rows of a background graph some events can need: GRAPH patterns that are found by key.

A GRAPH pattern's *key* is a set of variables that each of its solutions binds, and that the patterns joined
with it certainly bind, too: the triples beside it, or before the OPTIONAL or MINUS around it. A solution
with a key that no event has changes nothing. So events need only the solutions with their own keys; further
solutions do no harm.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from spaseq.automaton.pattern import GpmPart, SequencePattern
from spaseq.language.scope import certain, mentioned, occurring
from spaseq.language.syntax import (
    Filter,
    Graph,
    Group,
    Minus,
    Optional,
    Pattern,
    SubSelect,
    Triples,
    Union,
    Values,
)
from spaseq.patterns.expressions.walk import exists_in, expressions, patterns, volatile

#: What an event is asked for: patterns without GRAPH, each of which it must match.
Asked = tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class Lookup:
    """How the solutions of a GRAPH pattern are found: the names of its key, sorted, and what binds them.

    ``asks``: the name of each GPM that has the pattern, and what it asks of its events beside it.
    """

    key: tuple[str, ...]
    asks: tuple[tuple[str, Group], ...]


def lookups(pattern: SequencePattern) -> dict[Graph, Lookup]:
    """The GRAPH patterns of a query that have a key; see ``_background.asked_once`` for what it must be."""
    found: dict[Graph, list[tuple[str, Asked]]] = {}
    for name, part in pattern.gpms.items():
        for graph, asked in _places(part.stateless, (), _ambient(part)):
            found.setdefault(graph, []).append((name, asked))
    keys = {
        graph: certain(graph).intersection(*(certain(Group(asked)) for _, asked in places))
        for graph, places in found.items()
    }
    return {
        graph: Lookup(
            tuple(sorted(keys[graph])), tuple(dict.fromkeys((name, Group(asked)) for name, asked in places))
        )
        for graph, places in found.items()
        if keys[graph]
    }


def without_graphs(part: GpmPart) -> Group:
    """What every event that a GPM wants must match, whatever background graphs say."""
    return Group(_asked(part.stateless.elements, _ambient(part)))


def _ambient(part: GpmPart) -> frozenset[str]:
    """What AT and AS bind, outside of the patterns."""
    return frozenset(variable.name for variable in (part.gpm.time, part.gpm.graph) if variable is not None)


def _places(group: Group, around: Asked, ambient: frozenset[str]) -> Iterator[tuple[Graph, Asked]]:
    """Each GRAPH in a group, and what the rows of an event that it is joined with must match.

    What is joined may be so in any order. But rows that OPTIONAL or MINUS change are those from before it.
    """
    joined = around + _asked(group.elements, ambient)
    for i, element in enumerate(group.elements):
        match element:
            case Graph():
                yield element, joined
            case Group():
                yield from _places(element, joined, ambient)
            case Union(branches):
                for branch in branches:
                    yield from _places(branch, joined, ambient)
            case Optional(inner) | Minus(inner):
                filters = tuple(e for e in group.elements[i:] if isinstance(e, Filter))
                yield from _places(inner, _asked((*group.elements[:i], *filters), ambient), ambient)
            case SubSelect():
                # What is around it is not seen inside.
                yield from _places(element.pattern, (), frozenset())


def _asked(elements: Sequence[Pattern], ambient: frozenset[str]) -> Asked:
    """Return the elements of a group that an event must match by itself, with their filters."""
    own = tuple(element for element in elements if _is_alone(element, ambient))
    bound = certain(Group(own))
    return own + tuple(
        element
        for element in elements
        if isinstance(element, Filter)
        and mentioned(element.condition) <= bound
        and not exists_in(element.condition)
        and not volatile(element.condition)
    )


def _is_alone(element: Pattern, ambient: frozenset[str]) -> bool:
    """Whether an element is joined with its neighbours, and means the same without them and GRAPH."""
    match element:
        case Triples() | Values():
            return True
        case Group() | Union() | SubSelect():
            return (
                not ambient & occurring(element)
                and not any(isinstance(inner, Graph) for inner in patterns(element))
                and not any(volatile(expression) for expression in expressions(element))
            )
    return False
