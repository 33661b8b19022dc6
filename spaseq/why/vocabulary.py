"""Constants of a GPM's pattern that no event has, and similar ones that events have."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from pathlib import Path
from typing import Final

import numpy as np
from pyoxigraph import BlankNode, NamedNode

from spaseq.errors import SourceError
from spaseq.events import EventBatch, Ids
from spaseq.language import syntax as s
from spaseq.limits import Limits
from spaseq.patterns.spectra.solutions import Mask
from spaseq.sources.formats._lift import lift, load_context, terms_of
from spaseq.terms.dictionary import Term
from spaseq.why.diagnosis import Missing
from spaseq.why.evidence import Evidence

_TYPE: Final = NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")

#: The least similarity of two names, from 0 to 1, and how many of the most frequent names are compared.
_ALIKE: Final = 0.6
_COMPARED: Final = 1_000

#: The most alternatives reported.
_TOLD: Final = 5


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A constant in a place of a triple, among triples with ``predicate`` if that is given."""

    role: str
    term: Term
    place: str
    predicate: Term | None = None


def missing(evidence: Evidence, gpm: s.Gpm) -> tuple[Missing, ...]:
    """Return the constants that every match of the GPM needs and no event of its streams has."""
    batch = evidence.sample
    if batch is None:
        return ()
    events = np.repeat(np.arange(len(batch)), np.diff(batch.offset))
    here = np.isin(batch.stream, list(evidence.streams(gpm.streams)))[events]
    found: dict[Term, Missing] = {}
    lifting = [evidence.contexts.get(evidence.query.stream(name)) for name in gpm.streams]
    context = lifting[0] if len(set(lifting)) == 1 else None
    made = {} if context is None else _keys(context)
    for wanted in dict.fromkeys(_constants(gpm.pattern)):
        if wanted.predicate in found:
            continue  # its values are missing, too
        column: Ids = getattr(batch, wanted.place)
        identity = evidence.dictionary.find(wanted.term)
        rows = here
        if wanted.predicate is not None:
            rows = here & (batch.p == evidence.dictionary.find(wanted.predicate))
        if identity and bool((rows & (column == identity)).any()):
            continue
        near, count, instead = _nearest(evidence, wanted.term, column[rows], events[rows])
        others = np.flatnonzero(~here & (column == identity)) if identity else ()
        elsewhere = _streams(evidence, batch, events[others]) if len(others) else ()
        shown = evidence.show(wanted.term)
        if wanted.role == "value" and wanted.predicate is not None:
            shown = f"{shown} of {evidence.show(wanted.predicate)}"
        nearest = None if near is None else evidence.show(near)
        item = Missing(gpm.name, wanted.role, shown, nearest, count, elsewhere, instead)
        if context is not None and wanted.role == "predicate":
            near_key = None if near is None else made.get(near)
            item = replace(item, context=context.name, key=made.get(wanted.term), nearest_key=near_key)
        found[wanted.term] = item
    return tuple(found.values())


def _constants(pattern: s.Group) -> Iterator[_Wanted]:
    """Yield what every solution needs, in the order written: nothing of OPTIONAL, UNION, MINUS and GRAPH."""
    for element in pattern.elements:
        if isinstance(element, s.Group):
            yield from _constants(element)
        elif isinstance(element, s.Triples):
            for triple in element.patterns:
                yield from _of(triple)


def _of(triple: s.TriplePattern) -> Iterator[_Wanted]:
    subject, predicate, value = triple.subject, triple.predicate, triple.object
    if not isinstance(predicate, s.Var):
        yield from (_Wanted("predicate", step, "p") for step in _steps(predicate))
    if not isinstance(predicate, NamedNode):
        return
    if not isinstance(value, s.Var | BlankNode):
        yield _Wanted("class" if predicate == _TYPE else "value", value, "o", predicate)
    if not isinstance(subject, s.Var | BlankNode):
        yield _Wanted("subject", subject, "s", predicate)


def _steps(path: s.Path) -> Iterator[NamedNode]:
    """Yield the predicates that every match of a path uses."""
    match path:
        case NamedNode():
            yield path
        case s.PathSequence(parts):
            for part in parts:
                yield from _steps(part)
        case s.PathInverse(inner) | s.PathRepeat(inner, 1):
            yield from _steps(inner)


def _nearest(
    evidence: Evidence, term: Term, column: Ids, events: Ids
) -> tuple[Term | None, int, tuple[str, ...]]:
    """Return the term in ``column`` most similar to ``term``, its number of events, and the most frequent
    terms of the column.
    """
    seen, counts = np.unique(column, return_counts=True)
    order = np.argsort(-counts, kind="stable")[:_COMPARED]
    terms = [(evidence.dictionary.term(identity), identity) for identity in seen[order].tolist()]
    ranked = [
        (likeness(str(term), str(other)), identity)
        for other, identity in terms
        if not isinstance(other, BlankNode)
    ]
    best, identity = max(ranked, key=lambda pair: pair[0], default=((0.0, 0.0), 0))
    instead = tuple(evidence.show(other) for other, _ in terms[:_TOLD] if not isinstance(other, BlankNode))
    if best[0] < _ALIKE:
        return None, 0, instead
    rows: Mask = column == identity
    return evidence.dictionary.term(identity), len(np.unique(events[rows])), instead


def likeness(one: str, other: str) -> tuple[float, float]:
    """Return the similarity of the names of two terms, ignoring case; then of the whole terms.

    >>> likeness("<http://a.org/price>", "<http://b.org/Price>")[0]
    1.0
    """
    a, b = _name(one), _name(other)
    return SequenceMatcher(None, a, b).ratio(), SequenceMatcher(None, one, other).ratio()


def _name(text: str) -> str:
    """Return the last part of an IRI; a literal without its datatype."""
    literal = re.match(r'"(.*)"', text, re.DOTALL)
    if literal:
        return literal[1].lower()
    return re.split(r"[/#:]", text.strip("<>").rstrip("/#"))[-1].lower()


def _streams(evidence: Evidence, batch: EventBatch, events: Iterable[int]) -> tuple[str, ...]:
    """Return the query's names of the streams of some events."""
    found = {int(batch.stream[event]) for event in events}
    return tuple(
        declared.name
        for declared in evidence.query.streams
        if evidence.dictionary.find(declared.iri) in found
    )


def _keys(context: Path) -> Mapping[Term, str]:
    """Return predicate → its column or key, by the JSON-LD processor; empty if the context is unreadable."""
    try:
        text = load_context(context, Limits())
    except SourceError:  # the file was removed since the stream was opened
        return {}
    names = sorted(terms_of(json.loads(text)))
    rows = [json.dumps({"@id": "urn:row", name: "urn:value"}) for name in names]
    found: dict[Term, str] = {}
    for name, triples in zip(names, lift(rows, text), strict=True):
        if not isinstance(triples, ValueError):
            for subject, predicate, _ in triples:
                if subject == NamedNode("urn:row") and isinstance(predicate, NamedNode):
                    found.setdefault(predicate, name)
    return found
