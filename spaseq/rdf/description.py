"""Matches in RDF, by ``vocab/spaseq.ttl``.

::

    _:m a spaseq:Match ;
        spaseq:query <urn:x-spaseq:falls> ;
        spaseq:start 0 ; prov:generatedAtTime 3 ;         # of its first and of its last event
        spaseq:matchedEvent <e0>, <e3> ;
        prov:wasDerivedFrom <e0>, <e3> ;
        prov:qualifiedDerivation [
            a prov:Derivation ; prov:entity <e0> ; spaseq:gpm <urn:x-spaseq:falls#A> ] , … .
    <e0> prov:generatedAtTime 0 ; dcterms:isPartOf <stream> .
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from hashlib import sha1
from typing import Final

from rdflib.namespace import DCTERMS, PROV, RDF, RDFS
from rdflib.term import BNode, IdentifiedNode, Literal, Node, URIRef

from spaseq.language.syntax import Query
from spaseq.results.batch import Match
from spaseq.results.event import Event

_OURS: Final = "https://w3id.org/spaseq#"

MATCH: Final = URIRef(_OURS + "Match")
QUERY: Final = URIRef(_OURS + "Query")
GPM: Final = URIRef(_OURS + "GPM")

#: From a match to the query that found it.
OF_QUERY: Final = URIRef(_OURS + "query")
#: From a match to the graph of an event that it chose.
MATCHED_EVENT: Final = URIRef(_OURS + "matchedEvent")
#: From the ``prov:Derivation`` of a match from an event to the GPM that the event was chosen for.
BY_GPM: Final = URIRef(_OURS + "gpm")
#: From a match to the time of its first event; its ``prov:generatedAtTime`` is the time of the last.
START: Final = URIRef(_OURS + "start")

GENERATED_AT: Final[URIRef] = PROV.generatedAtTime
DERIVED_FROM: Final[URIRef] = PROV.wasDerivedFrom
PART_OF: Final[URIRef] = DCTERMS.isPartOf


Triple = tuple[IdentifiedNode, URIRef, Node]


def about_match(match: Match, node: IdentifiedNode) -> Iterator[Triple]:
    """Yield the time of the match ``node``, and the events that it was derived from."""
    yield node, RDF.type, MATCH
    yield node, START, time_literal(match.start)
    yield node, GENERATED_AT, time_literal(match.end)
    for event in _events(match):
        yield node, MATCHED_EVENT, event_name(event)
        yield node, DERIVED_FROM, event_name(event)


def about_choices(match: Match, node: IdentifiedNode, query: URIRef) -> Iterator[Triple]:
    """Yield its query, the GPM that chose each event, and the events' times and streams."""
    yield node, OF_QUERY, query
    for gpm, events in match.events.items():
        for event in events:
            derivation = BNode()
            yield node, PROV.qualifiedDerivation, derivation
            yield derivation, RDF.type, PROV.Derivation
            yield derivation, PROV.entity, event_name(event)
            yield derivation, BY_GPM, gpm_name(query, gpm)
    for event in _events(match):
        yield event_name(event), GENERATED_AT, time_literal(event.time)
        yield event_name(event), PART_OF, event.stream


def about_query(query: Query, name: URIRef) -> Iterator[Triple]:
    """Yield the query ``name`` and its GPMs."""
    yield name, RDF.type, QUERY
    for gpm in query.gpms:
        yield name, DCTERMS.hasPart, gpm_name(name, gpm.name)
        yield gpm_name(name, gpm.name), RDF.type, GPM
        yield gpm_name(name, gpm.name), RDFS.label, Literal(gpm.name)


def gpm_name(query: URIRef, gpm: str) -> URIRef:
    """Return the IRI of a GPM."""
    return URIRef(f"{query}#{gpm}")


def event_name(event: Event) -> IdentifiedNode:
    """Return the name of the event's graph; if it has none, a blank node, the same in all matches."""
    if isinstance(event.graph, IdentifiedNode):
        return event.graph
    return BNode("e" + sha1(f"{event.stream} {event.n}".encode()).hexdigest())


def time_literal(time: datetime | int) -> Literal:
    """Return an event's time as an rdflib literal: an ``xsd:dateTime``, or a tick."""
    return Literal(time)


def _events(match: Match) -> Iterator[Event]:
    """Yield each event once, though several GPMs may have chosen it."""
    yield from dict.fromkeys(event for events in match.events.values() for event in events)
