"""The services of this process by name, and the lock of rdflib's parser."""

from __future__ import annotations

import difflib
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rdflib.plugins.sparql.parserutils import CompValue
from rdflib.plugins.sparql.sparql import QueryContext
from rdflib.term import Node, URIRef, Variable

if TYPE_CHECKING:
    from spaseq.events import EventBatch

#: A service's IRI is this and its name.
SCHEME: Final = "urn:x-spaseq:"

#: rdflib's parser is for one thread at a time.
PARSER: Final = threading.Lock()


@dataclass(frozen=True, slots=True, eq=False)
class ServiceEntry:
    """A service as SPARQL sees it.

    ``ask`` returns the solutions of a SERVICE's block, ``window`` the events in the query's window: the
    position of each in the stream, its batch and its index there.
    """

    iri: URIRef
    variables: tuple[Variable, ...]
    ask: Callable[[CompValue, QueryContext], Sequence[Mapping[Variable, Node]]]
    window: Callable[[], Sequence[tuple[int, EventBatch, int]]]


#: The services, by name.
SERVICES: Final[dict[str, ServiceEntry]] = {}


def columns_of_services() -> dict[URIRef, tuple[Variable, ...]]:
    """Return the columns of each service's matches, by its IRI."""
    return {service.iri: service.variables for service in list(SERVICES.values())}


def hint(name: str) -> str:
    """Return the end of a message about an unknown service: which name is like it, and which there are."""
    near = difflib.get_close_matches(name, SERVICES, 1)
    like = f"did you mean {near[0]!r}? " if near else ""
    return f"{like}spaseq.rdf.register makes services; there are now: {', '.join(SERVICES) or 'none'}"
