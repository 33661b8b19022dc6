"""A path, as it was found; paths as text for a prompt, as plain values for JSON, and as RDF."""

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
    """Nodes and the edges between them, as numbers of ``graph``; ``len`` is the number of edges.

    ``cost``: the sum of the weights of its edges, if the path was found by weights.

    ``forward[i]`` says whether edge ``i`` leads from ``nodes[i]`` to ``nodes[i + 1]`` or back. A path of no
    edges may stand at a ``stranger``, a term that is no node of the graph; its node is then
    ``graph.nodes``.
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
        """The edges as the graph has them: subject, predicate, object."""
        ends = zip(self.nodes, self.nodes[1:], self.predicates, self.forward, strict=False)
        return tuple((a, p, b) if ahead else (b, p, a) for a, b, p, ahead in ends)

    @property
    def terms(self) -> tuple[RdflibTerm, ...]:
        """The nodes as terms."""
        if self.stranger is not None:
            return (to_rdflib(self.stranger),)
        return tuple(map(self.graph.term, self.nodes))

    @property
    def start(self) -> RdflibTerm:
        """The node where it begins."""
        return self.terms[0]

    @property
    def end(self) -> RdflibTerm:
        """The node where it ends."""
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


#: An edge by the numbers of subject, predicate and object.
Numbers = tuple[int, int, int]


def path_text(path: Path, names: Names) -> str:
    """A path by its labels, as ``Kismet → starred actors → Edward Arnold``; ``←`` against the edge."""
    text = one_line(names.node(path.nodes[0]))
    for predicate, ahead, node in zip(path.predicates, path.forward, path.nodes[1:], strict=True):
        arrow = "→" if ahead else "←"
        text += f" {arrow} {one_line(names.predicate(predicate))} {arrow} {one_line(names.node(node))}"
    return text


def triple_text(edge: Numbers, names: Names) -> str:
    """A triple by its labels, on one line: ``(Kismet, starred actors, Edward Arnold)``."""
    s, p, o = edge
    return f"({one_line(names.node(s))}, {one_line(names.predicate(p))}, {one_line(names.node(o))})"


def path_json(path: Path) -> dict[str, Any]:
    """The nodes and triples of a path; terms as in the SPARQL 1.1 results format."""
    return {
        "nodes": [json_term(term) for term in path.terms],
        "triples": [[json_term(term) for term in triple] for triple in path.triples],
    }


def rdf(graph: Snapshot, edges: Iterable[Numbers]) -> rdflib.Graph:
    """Triples as an rdflib graph, with the prefixes of theirs."""
    found = rdflib.Graph()
    for prefix, namespace in graph.prefixes.items():
        found.bind(prefix, namespace, replace=True)
    for edge in edges:
        found.add(triple(graph, edge))
    return found


def triple(graph: Snapshot, edge: Numbers) -> tuple[RdflibTerm, RdflibTerm, RdflibTerm]:
    """An edge as terms."""
    s, p, o = edge
    return graph.term(s), graph.predicate(p), graph.term(o)


def one_line(text: str) -> str:
    """A text without line breaks."""
    return " ".join(text.split())
