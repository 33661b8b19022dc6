"""What callers give ``push`` in several forms, as terms and triples."""

from __future__ import annotations

import io
from collections.abc import Iterable

import pyoxigraph as ox
import rdflib
from rdflib.term import Node

from spaseq.interop import from_rdflib, to_triple

#: Something that says a stream: an IRI as text, or as rdflib's or pyoxigraph's term.
StreamName = str | rdflib.URIRef | ox.NamedNode

#: An event's graph: an rdflib graph, triples of rdflib or pyoxigraph, or Turtle or N-Triples text.
EventGraph = rdflib.Graph | Iterable[ox.Triple | tuple[Node, Node, Node]] | str

#: The name of an event's graph.
GraphName = rdflib.URIRef | rdflib.BNode | str | None


def stream_iri(name: StreamName) -> ox.NamedNode:
    """A stream's IRI; ValueError if it is none."""
    return name if isinstance(name, ox.NamedNode) else ox.NamedNode(str(name))


def graph_name(name: GraphName, graph: EventGraph) -> ox.NamedNode | ox.BlankNode | None:
    """The name given, or else an rdflib graph's own IRI."""
    if name is None and isinstance(graph, rdflib.Graph) and isinstance(graph.identifier, rdflib.URIRef):
        name = graph.identifier
    if name is None:
        return None
    term = from_rdflib(name) if isinstance(name, Node) else ox.NamedNode(name)
    return None if isinstance(term, ox.Literal) else term


def triples_given(graph: EventGraph) -> Iterable[ox.Triple]:
    """The triples; SyntaxError, ValueError or TypeError for what is no graph."""
    if isinstance(graph, str):
        quads = ox.parse(io.BytesIO(graph.encode()), format=ox.RdfFormat.TURTLE)
        return [quad.triple for quad in quads]
    return [triple if isinstance(triple, ox.Triple) else to_triple(triple) for triple in graph]
