"""Find events that violate SHACL shapes: shapes are read and checked once, and pyshacl applies them."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final, Literal

import rdflib
from pyoxigraph import NamedNode
from rdflib.term import Node

from spaseq.errors import EngineError, KnowledgeError
from spaseq.events import EventBatch
from spaseq.excerpts import bounded
from spaseq.patterns.kb import KnowledgeBase, Source
from spaseq.terms.dictionary import Term
from spaseq.terms.interop import from_rdflib, to_rdflib

#: The beginning of a dead letter's reason if its event does not conform.
NOT_CONFORMING: Final = "does not conform to the shapes: "

#: How many of SHACL's results a reason cites.
_CITED: Final = 3

#: The graph that the shapes are read as, and the base of their relative IRIs.
_NAME: Final = NamedNode("urn:spaseq:shapes")

_NOWHERE: Final = rdflib.URIRef("urn:spaseq:nowhere")

_SH: Final = rdflib.Namespace("http://www.w3.org/ns/shacl#")


class Shapes:
    """SHACL shapes. Whether an event conforms depends on its own graph alone.

    ``source``: a file, an rdflib graph, or Turtle text, as for ``KnowledgeBase``. ``text``: the shapes as
    N-Triples, for other processes. Raises KnowledgeError, with file and line, for what cannot be read or has
    no valid shapes, and EngineError without pyshacl.
    """

    def __init__(self, source: Source) -> None:
        try:
            from pyshacl import ShapesGraph, Validator
            from pyshacl.graph_abstraction import DataGraph
        except ImportError as error:
            raise EngineError(
                f"validation by SHACL needs {error.name}, which is not installed: pip install 'spaseq[shacl]'"
            ) from None
        triples = KnowledgeBase({_NAME: source}).graphs[_NAME]
        self.text = "".join(f"{triple} .\n" for triple in triples)
        self._graph = _graph(triples, "core")  # so that messages say xsd:integer
        # What pyshacl logs about shapes is raised here, or is the reason of a dead letter.
        self._options = {"logger": logging.Logger("pyshacl", logging.CRITICAL + 1)}
        self._shapes = ShapesGraph(self._graph, logger=self._options["logger"])
        self._validator, self._data = Validator, DataGraph.from_rdflib
        self._check()

    def problems(self, batch: EventBatch) -> Mapping[int, str]:
        """Return why events do not conform, by their positions in the batch, in this order."""
        found = ((index, self._problem(batch, index)) for index in range(len(batch)))
        return {index: problem for index, problem in found if problem is not None}

    def _problem(self, batch: EventBatch, index: int) -> str | None:
        term = batch.dictionary.term
        graph = _graph((term(s), term(p), term(o)) for s, p, o in batch.triples(index))
        try:
            conforms, report, _ = self._on(graph).run()
        except Exception as error:  # SHACL calls this a failure: the event may or may not conform
            return bounded(f"{NOT_CONFORMING}the validation failed: {error}")
        return None if conforms else bounded(NOT_CONFORMING + _cited(report))

    def _check(self) -> None:
        """Apply each shape to a node without triples, which raises the shape's own errors."""
        if not self._shapes.shapes:
            raise KnowledgeError("the shapes: there is none, so that every event would conform")
        nothing, node = self._on(_graph(())), None
        try:
            for shape in self._shapes.shapes:
                node = shape.node
                shape.validate(nothing.make_executor(), nothing.data_graph, focus=[_NOWHERE])
        except Exception as error:  # pyshacl's, rdflib's, or that of a regular expression
            where = f"shape <{node}>" if isinstance(node, rdflib.URIRef) else "the shapes"
            raise KnowledgeError(f"{where}: {' '.join(str(error).split())}") from error

    def _on(self, graph: rdflib.Graph) -> Any:
        """Return pyshacl's validator of a graph, for the shapes that were read once."""
        validator = self._validator(self._data(graph), shacl_graph=self._graph, options=self._options)
        validator.shacl_graph = self._shapes
        return validator


def text_of(source: Source | None) -> str:
    """Return shapes, checked, as N-Triples; no text if there are none."""
    return "" if source is None else Shapes(source).text


@lru_cache(maxsize=32)
def shapes_of(text: str) -> Shapes:
    """Return the shapes of a text, read once in each process."""
    return Shapes(text)


def _graph(triples: Iterable[Iterable[Term]], prefixes: Literal["core", "none"] = "none") -> rdflib.Graph:
    graph = rdflib.Graph(bind_namespaces=prefixes)
    for triple in triples:
        s, p, o = map(to_rdflib, triple)
        graph.add((s, p, o))
    return graph


def _cited(report: rdflib.Graph) -> str:
    """Return the first of a report's results, by their text: node, path and message of each."""
    found = sorted(_result(report, result) for result in report.objects(None, _SH.result))
    more = [f"and {len(found) - _CITED} more"] if len(found) > _CITED else []
    return "; ".join([*found[:_CITED], *more])


def _result(report: rdflib.Graph, result: Node) -> str:
    parts = (report.value(result, _SH.focusNode), report.value(result, _SH.resultPath))
    at = " ".join(_shown(node) for node in parts if node is not None)
    return f"{at}: {' '.join(sorted(map(str, report.objects(result, _SH.resultMessage))))}"


def _shown(node: Node) -> str:
    """Return a node as a reason shows it: labels of blank nodes are left out, as they mean nothing."""
    return "[]" if isinstance(node, rdflib.BNode) else str(from_rdflib(node))
