"""The terms of an event's triples → their ids: the dictionary's, and fresh ones for its blank nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import cast

from pyoxigraph import BlankNode, Literal, NamedNode, Quad, Triple

from spaseq.terms.dictionary import UNBOUND, Dictionary, Term
from spaseq.terms.texts import text_of

#: The terms of a triple, as a parsed ``Triple`` unpacks. Only triple terms hold a ``Triple``.
Row = tuple[Term | Triple, Term | Triple, Term | Triple]


def beyond_rdf11(term: Term | Triple) -> str:
    """Return why RDF 1.1, and rdflib, have no such term; empty if they do.

    >>> from pyoxigraph import BaseDirection
    >>> beyond_rdf11(Literal("x", language="ar", direction=BaseDirection.RTL))
    'a literal with a base direction, which RDF 1.1 does not have: "x"@ar--rtl'
    """
    if isinstance(term, Literal):
        return "" if term.direction is None else f"a literal with a base direction, which {_NO_SUCH}: {term}"
    return f"a triple term, which {_NO_SUCH}: {term}" if isinstance(term, Triple) else ""


_NO_SUCH = "RDF 1.1 does not have"


def identifier(dictionary: Dictionary, term: Term) -> int:
    """Return the id of an event's term, ``UNBOUND`` for a blank node. Raises ValueError for RDF 1.2 terms."""
    if isinstance(term, BlankNode):
        return UNBOUND
    problem = None if isinstance(term, NamedNode) else beyond_rdf11(term)
    if problem:
        raise ValueError(problem)
    return dictionary.intern(term)


class _Entering:
    """Gives the terms of one event ids by ``enter``, and its blank nodes fresh ids; under the dictionary's
    lock.
    """

    __slots__ = ("_blank", "_dictionary", "_enter")

    def __init__(self, dictionary: Dictionary, enter: Callable[[str], int]) -> None:
        self._dictionary, self._enter = dictionary, enter
        self._blank: dict[BlankNode, int] = {}

    def identify(self, term: Term | Triple) -> int:
        """Return the id of a term. Raises ValueError for an RDF 1.2 term."""
        if isinstance(term, BlankNode):
            if term not in self._blank:
                self._blank[term] = self._dictionary.fresh()
            return self._blank[term]
        return _entered(term, text_of(cast("Term", term)), self._enter)


def _entered(term: Term | Triple, text: str, enter: Callable[[str], int]) -> int:
    """Return the id of a term by its ``text``. Raises ValueError for an RDF 1.2 term."""
    if not isinstance(term, NamedNode):
        problem = beyond_rdf11(term)
        if problem:
            raise ValueError(problem)
    return enter(text)


def identified(
    dictionary: Dictionary, triples: Iterable[Triple | Row], graph: NamedNode | BlankNode | None
) -> tuple[dict[tuple[int, int, int], None], int]:
    """Return the distinct triples of an event and the name of its graph, as ids. Blank nodes get fresh ids.

    Must be called with the dictionary's lock held.
    """
    known, identify = dictionary.known, _Entering(dictionary, dictionary.enter).identify
    rows: dict[tuple[int, int, int], None] = {}
    for s, p, o in triples:
        # Most terms have been seen before.
        subject = known(s.value) if type(s) is NamedNode else None
        predicate = known(p.value) if type(p) is NamedNode else None
        object_ = known(o.value) if type(o) is NamedNode else known(str(o)) if type(o) is Literal else None
        rows[subject or identify(s), predicate or identify(p), object_ or identify(o)] = None
    return rows, UNBOUND if graph is None else identify(graph)


def different(terms: tuple[int, ...]) -> tuple[int, ...]:
    """Return the terms of the distinct triples, one after the other."""
    if len(terms) > 6 or (len(terms) == 6 and terms[:3] == terms[3:]):
        rows = dict.fromkeys(zip(terms[0::3], terms[1::3], terms[2::3], strict=True))
        if 3 * len(rows) < len(terms):
            return tuple(chain.from_iterable(rows))
    return terms


def identified_one(
    dictionary: Dictionary,
    triples: Sequence[Triple | Quad],
    graph: NamedNode | BlankNode | None,
    enter: Callable[[str], int],
) -> tuple[int, tuple[int, ...]]:
    """Return the graph's name and the terms of the distinct triples, as ids, for an event that comes alone.

    ``enter`` gives the ids of terms that Python has not seen, by their texts. Raises what ``enter`` raises,
    and what ``BatchBuilder.add`` raises.
    """
    known = dictionary.known
    entering: _Entering | None = None
    found: list[int] = []
    for triple in triples:
        subject, predicate, object_ = triple.subject, triple.predicate, triple.object
        s = known(subject.value) if type(subject) is NamedNode else None
        p = known(predicate.value)
        o = known(object_.value) if type(object_) is NamedNode else None
        if type(object_) is Literal:
            text = str(object_)
            o = known(text) or _entered(object_, text, enter)
        if s is None or p is None or o is None:
            entering = entering or _Entering(dictionary, enter)
            s = s or entering.identify(subject)
            p = p or entering.identify(predicate)
            o = o or entering.identify(object_)
        found += (s, p, o)
    terms = different(tuple(found))
    if graph is None:
        return UNBOUND, terms
    return (entering or _Entering(dictionary, enter)).identify(graph), terms
