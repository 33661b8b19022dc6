"""The parts of a use case: streams of small RDF graphs, a background graph, queries, planted matches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from pyoxigraph import BlankNode, Literal, NamedNode, Triple

EXAMPLE: Final = "https://w3id.org/spaseq/example/"

Namespace = Callable[[str], NamedNode]


def namespace(base: str) -> Namespace:
    """Return a function from local names to IRIs.

    >>> namespace("http://example.org/")("a")
    <NamedNode value=http://example.org/a>
    """
    return lambda name: NamedNode(base + name)


RDF: Final = namespace("http://www.w3.org/1999/02/22-rdf-syntax-ns#")
XSD: Final = namespace("http://www.w3.org/2001/XMLSchema#")
PROV: Final = namespace("http://www.w3.org/ns/prov#")
SOSA: Final = namespace("http://www.w3.org/ns/sosa/")
QUDT: Final = namespace("http://qudt.org/schema/qudt/")
UNIT: Final = namespace("http://qudt.org/vocab/unit/")
GEO: Final = namespace("http://www.w3.org/2003/01/geo/wgs84_pos#")
SCHEMA: Final = namespace("https://schema.org/")

COMMON_PREFIXES: Final[Mapping[str, str]] = {
    "geo": "http://www.w3.org/2003/01/geo/wgs84_pos#",
    "prov": "http://www.w3.org/ns/prov#",
    "qudt": "http://qudt.org/schema/qudt/",
    "schema": "https://schema.org/",
    "sosa": "http://www.w3.org/ns/sosa/",
    "unit": "http://qudt.org/vocab/unit/",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
}

Object = NamedNode | BlankNode | Literal

#: One match: for each GPM of the query, the names of the chosen event graphs, in order.
Match = Mapping[str, tuple[str, ...]]


def number(value: float, digits: int) -> Literal:
    """Return a decimal with exactly this many digits after the point.

    >>> number(1.5, 2)
    <Literal value=1.50 datatype=<NamedNode value=http://www.w3.org/2001/XMLSchema#decimal>>
    """
    return Literal(f"{value:.{digits}f}", datatype=XSD("decimal"))


def cents(value: int) -> Literal:
    """Return hundredths as a decimal: prices are counted in cents, so that comparisons are exact."""
    return Literal(f"{value // 100}.{value % 100:02d}", datatype=XSD("decimal"))


def moment(time: datetime) -> Literal:
    """Return a UTC time as ``xsd:dateTime``, with a fraction of a second only if it is not 0."""
    return Literal(time.isoformat().replace("+00:00", "Z"), datatype=XSD("dateTime"))


def about(
    subject: NamedNode | BlankNode, properties: Iterable[tuple[NamedNode, Object]]
) -> tuple[Triple, ...]:
    """Return triples that share a subject."""
    return tuple(Triple(subject, predicate, value) for predicate, value in properties)


@dataclass(frozen=True, slots=True)
class SampleEvent:
    """One event: the name of its graph, its time (UTC), its triples."""

    graph: NamedNode
    time: datetime
    triples: tuple[Triple, ...]


@dataclass(frozen=True, slots=True)
class SampleStream:
    """A stream: its IRI, its file, and its events in order of arrival.

    ``options`` are the options for reading the file (``triples=4``), if any.
    """

    iri: str
    file: str
    events: tuple[SampleEvent, ...]
    options: str = ""


@dataclass(frozen=True, slots=True)
class UseCase:
    """A use case.

    ``queries`` maps a query's name (its file is ``streams/NAME.rq``) to its text; ``planted`` maps
    the same names to *all* the matches that the query has over the streams. ``prefixes`` abbreviate
    the use case's own IRIs in files.
    """

    name: str
    prefixes: Mapping[str, str]
    streams: tuple[SampleStream, ...]
    knowledge_iri: str
    knowledge: tuple[Triple, ...]
    queries: Mapping[str, str]
    planted: Mapping[str, tuple[Match, ...]]


def in_order(events: Iterable[SampleEvent]) -> tuple[SampleEvent, ...]:
    """Sort events by time; events of equal time keep their order, which is their arrival."""
    return tuple(sorted(events, key=lambda event: event.time))


def names(events: Iterable[SampleEvent]) -> tuple[str, ...]:
    """Return the graph names of events."""
    return tuple(event.graph.value for event in events)
