"""Doubts about a path query: predicates without edges and ends that are not nodes, with the nearest name."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, Final

from pyoxigraph import NamedNode

from spaseq.language.syntax.printing import print_term
from spaseq.paths.graph.linking.candidates import linker_of
from spaseq.paths.graph.names import local_name, names_of
from spaseq.paths.graph.snapshot import Snapshot
from spaseq.paths.language.expression import Expression, NodeTest, read
from spaseq.terms.dictionary import Term

#: Nodes that are not in the graph are warned about one by one, at most this many of them.
_MOST_NODES: Final = 3
#: Similar names of nodes are looked up in graphs of at most this many nodes: their index takes 0.1 s to make.
_MOST_INDEXED: Final = 100_000

_KEPT: Final = 256


def doubts(
    graph: Snapshot, expression: str | Expression, sources: Any = None, targets: Any = None
) -> tuple[str, ...]:
    """Return the warnings about a query: predicates without edges, ends that are not nodes."""
    found = graph.derived(_by_expression)(expression)
    for ends in (sources, targets):
        if ends is not None and (strangers := graph.numbers(ends)[1]):
            found += tuple(_no_node(graph, term) for term in strangers[:_MOST_NODES])
            if len(strangers) > _MOST_NODES:
                found += (f"the graph has no node of {len(strangers) - _MOST_NODES:,} more terms",)
    return found


def _by_expression(graph: Snapshot) -> Callable[[str | Expression], tuple[str, ...]]:
    """Return the function ``_predicates`` of a graph; results for the latest expressions are kept."""
    return lru_cache(_KEPT)(partial(_predicates, graph))


def _predicates(graph: Snapshot, expression: str | Expression) -> tuple[str, ...]:
    """Return a warning for each predicate of an expression that no edge has."""
    root = graph.compile(expression).expression.root
    used = [p for symbol in read(root)
            for p in ([c.predicate for c in symbol.conditions] if isinstance(symbol, NodeTest)
                      else symbol.predicates)]  # fmt: skip
    return tuple(
        _no_predicate(graph, predicate, expression)
        for predicate in dict.fromkeys(used)
        if graph.predicate_number(predicate) is None
    )


def _no_predicate(graph: Snapshot, predicate: NamedNode, expression: str | Expression) -> str:
    prefixes = graph.compile(expression).expression.prefixes
    alike = names_of(graph).alike(local_name(predicate))
    hint = f": did you mean {print_term(alike, prefixes)}?" if alike else ""
    return f"no edge has the predicate {print_term(predicate, prefixes)}{hint}"


def _no_node(graph: Snapshot, term: Term) -> str:
    text = f"the graph has no node {print_term(term, graph.prefixes)}"
    if graph.file is None and graph.nodes > _MOST_INDEXED:
        return text
    for alike in linker_of(graph).link(graph, local_name(term), 1):
        return f"{text}: did you mean {print_term(graph.ox_term(alike.node), graph.prefixes)}?"
    return text
