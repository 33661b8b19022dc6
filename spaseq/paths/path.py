"""A path that was found, and how to show paths: as text for a prompt, as values for JSON, and as RDF."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import rdflib

from spaseq.language.syntax.printing import print_term
from spaseq.paths.graph.names import Names
from spaseq.paths.graph.snapshot import Snapshot
from spaseq.results.writers._json import json_term
from spaseq.terms.dictionary import Term
from spaseq.terms.interop import RdflibTerm, to_rdflib


@dataclass(frozen=True, slots=True)
class Path:
    """A path: nodes and the edges between them, as numbers of ``graph``; ``len`` is the number of edges.

    ``forward[i]``: edge ``i`` leads from ``nodes[i]`` to ``nodes[i + 1]``; if False, it leads from ``nodes[i
    + 1]`` to ``nodes[i]``. ``cost`` is the sum of the edges' weights, if the search had weights. A path
    without edges may be at a ``stranger``, a term that is not a node of the graph; the number of its node is
    then ``graph.nodes``.
    """

    graph: Snapshot = field(repr=False, compare=False)
    nodes: tuple[int, ...]
    predicates: tuple[int, ...]
    forward: tuple[bool, ...]
    stranger: Term | None = None
    cost: float | None = field(default=None, compare=False)

    def __len__(self) -> int:
        return len(self.predicates)

    def __bool__(self) -> bool:
        return True

    @property
    def edges(self) -> tuple[tuple[int, int, int], ...]:
        """The edges as numbers, in the direction of the graph: subject, predicate, object."""
        ends = zip(self.nodes, self.nodes[1:], self.predicates, self.forward, strict=False)
        return tuple((a, p, b) if ahead else (b, p, a) for a, b, p, ahead in ends)

    @property
    def terms(self) -> tuple[RdflibTerm, ...]:
        """The nodes as rdflib terms."""
        if self.stranger is not None:
            return (to_rdflib(self.stranger),)
        return tuple(map(self.graph.term, self.nodes))

    @property
    def start(self) -> RdflibTerm:
        """The first node."""
        return self.terms[0]

    @property
    def end(self) -> RdflibTerm:
        """The last node."""
        return self.terms[-1]

    @property
    def triples(self) -> tuple[tuple[RdflibTerm, RdflibTerm, RdflibTerm], ...]:
        """The edges as the triples of the graph."""
        term, predicate = self.graph.term, self.graph.predicate
        return tuple((term(s), predicate(p), term(o)) for s, p, o in self.edges)

    def __str__(self) -> str:
        prefixes = self.graph.prefixes
        if self.stranger is not None:
            return print_term(self.stranger, prefixes)
        names = [print_term(self.graph.ox_term(node), prefixes) for node in self.nodes]
        text = names[0]
        for name, p, ahead in zip(names[1:], self.predicates, self.forward, strict=True):
            label = print_term(self.graph.ox_predicate(p), prefixes)
            text += f" -{label}-> {name}" if ahead else f" <-{label}- {name}"
        return text


#: An edge: the numbers of its subject, predicate and object.
Numbers = tuple[int, int, int]


def path_text(path: Path, names: Names) -> str:
    """Return a path with labels, as ``Kismet → starred actors → Edward Arnold``; ``←`` against the edge."""
    text = one_line(names.node(path.nodes[0]))
    for predicate, ahead, node in zip(path.predicates, path.forward, path.nodes[1:], strict=True):
        arrow = "→" if ahead else "←"
        text += f" {arrow} {one_line(names.predicate(predicate))} {arrow} {one_line(names.node(node))}"
    return text


def triple_text(edge: Numbers, names: Names) -> str:
    """Return a triple with labels, on one line: ``(Kismet, starred actors, Edward Arnold)``."""
    s, p, o = edge
    return f"({one_line(names.node(s))}, {one_line(names.predicate(p))}, {one_line(names.node(o))})"


def path_json(path: Path) -> dict[str, Any]:
    """Return the nodes and triples of a path; terms as in the SPARQL 1.1 results format."""
    return {
        "nodes": [json_term(term) for term in path.terms],
        "triples": [[json_term(term) for term in triple] for triple in path.triples],
    }


def rdf(graph: Snapshot, edges: Iterable[Numbers]) -> rdflib.Graph:
    """Return edges as an rdflib graph, with the prefixes of ``graph``."""
    found = rdflib.Graph()
    for prefix, namespace in graph.prefixes.items():
        found.bind(prefix, namespace, replace=True)
    for edge in edges:
        found.add(triple(graph, edge))
    return found


def triple(graph: Snapshot, edge: Numbers) -> tuple[RdflibTerm, RdflibTerm, RdflibTerm]:
    """Return an edge as rdflib terms."""
    s, p, o = edge
    return graph.term(s), graph.predicate(p), graph.term(o)


def one_line(text: str) -> str:
    """Return a text without line breaks."""
    return " ".join(text.split())
