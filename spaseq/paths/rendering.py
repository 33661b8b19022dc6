"""Paths for a reader: text for a language model's prompt, plain values for JSON, RDF."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import rdflib

from spaseq.paths.graph.names import Names
from spaseq.paths.graph.snapshot import Snapshot
from spaseq.paths.path import Path
from spaseq.results.writers._json import json_term
from spaseq.terms.interop import RdflibTerm

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
