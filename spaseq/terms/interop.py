"""rdflib's terms, which users see, to and from pyoxigraph's, which the engine uses."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable
from functools import lru_cache

import pyoxigraph as ox
import rdflib
from rdflib.term import Node

from spaseq.terms.dictionary import Term
from spaseq.terms.texts import term_of, text_of
from spaseq.terms.values import STRING_TYPE


class _Quiet(threading.local):
    """A context, per thread: inside, rdflib logs no traceback for ill-typed literals, which are legal RDF."""

    _inside = False

    def __enter__(self) -> None:
        self._inside = True

    def __exit__(self, *_: object) -> None:
        self._inside = False

    def lets_pass(self, _: logging.LogRecord) -> bool:
        """Return whether a record of rdflib's is to be logged."""
        return not self._inside


_quiet = _Quiet()
logging.getLogger("rdflib.term").addFilter(_quiet.lets_pass)

RdflibTerm = rdflib.URIRef | rdflib.BNode | rdflib.Literal


def to_rdflib(term: Term) -> RdflibTerm:
    """Return the same term for rdflib; a literal keeps its lexical form as written."""
    return shown(text_of(term))


# Cached: the rows and events of matches repeat a few terms, and rdflib checks each term it makes.
@lru_cache(maxsize=1 << 14)
def shown(text: str) -> RdflibTerm:
    """Return rdflib's term for a text."""
    term = term_of(text)
    match term:
        case ox.NamedNode():
            return _iri(term)
        case ox.BlankNode():
            return rdflib.BNode(term.value)
        case ox.Literal() if term.language:
            return rdflib.Literal(term.value, lang=term.language)
        case ox.Literal() if term.datatype == STRING_TYPE:
            return rdflib.Literal(term.value)
        case ox.Literal():
            with _quiet:
                return rdflib.Literal(term.value, datatype=_iri(term.datatype), normalize=False)


def shown_all(texts: Iterable[str]) -> list[RdflibTerm]:
    """Return the terms of many texts for rdflib. Literals and blank nodes are cached, IRIs are not."""
    make, iri = str.__new__, rdflib.URIRef
    return [shown(text) if text[0] in '"_' else make(iri, text) for text in texts]


def _iri(term: ox.NamedNode) -> rdflib.URIRef:
    """Return the IRI for rdflib, without rdflib's check: the parser made a stricter one."""
    return str.__new__(rdflib.URIRef, term.value)


def from_rdflib(term: Node) -> Term:
    """Return the term for pyoxigraph. Raises TypeError unless it is an RDF 1.1 term."""
    match term:
        case rdflib.URIRef():
            return ox.NamedNode(str(term))
        case rdflib.BNode():
            return ox.BlankNode(str(term))
        case rdflib.Literal() if term.language:
            return ox.Literal(str(term), language=term.language)
        case rdflib.Literal() if term.datatype is None:
            return ox.Literal(str(term))
        case rdflib.Literal():
            return ox.Literal(str(term), datatype=ox.NamedNode(str(term.datatype)))
    raise TypeError(f"not an RDF term: {term!r}")


def to_triple(triple: tuple[Node, Node, Node]) -> ox.Triple:
    """Return an rdflib triple for pyoxigraph. Raises TypeError unless it is RDF 1.1."""
    s, p, o = map(from_rdflib, triple)
    if isinstance(s, ox.Literal) or not isinstance(p, ox.NamedNode):
        raise TypeError(f"not an RDF triple: {triple!r}")
    return ox.Triple(s, p, o)


def triples_of(graph: Iterable[tuple[Node, Node, Node]]) -> list[ox.Triple]:
    """Return the triples of an rdflib graph for pyoxigraph, sorted by text: rdflib's order is arbitrary."""
    return sorted(map(to_triple, graph), key=str)
