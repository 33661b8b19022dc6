"""The services of this process by name, and the lock of rdflib's parser."""

from __future__ import annotations

import difflib
import threading
from typing import TYPE_CHECKING, Final

from rdflib.term import URIRef, Variable

if TYPE_CHECKING:
    from spaseq.rdf.service import Service

#: A service's IRI is this and its name.
SCHEME: Final = "urn:x-spaseq:"

#: The services, by name.
SERVICES: Final[dict[str, Service]] = {}

#: rdflib's parser is for one thread at a time.
PARSER: Final = threading.Lock()


def columns_of_services() -> dict[URIRef, tuple[Variable, ...]]:
    """Return the columns of each service's matches, by its IRI."""
    return {service.iri: service.variables for service in list(SERVICES.values())}


def unknown(name: str) -> str:
    """Return the message for an unknown service."""
    near = difflib.get_close_matches(name, SERVICES, 1)
    hint = f"did you mean <{SCHEME}{near[0]}>? " if near else ""
    known = ", ".join(SERVICES) or "none"
    return (
        f"no query is registered for SERVICE <{SCHEME}{name}>: {hint}"
        f"spaseq.rdf.register makes services; there are now: {known}"
    )
