"""IRIs for describing matches and streams; ours are defined in ``vocab/spaseq.ttl``.

A match is a ``prov:Entity`` derived from its events; the ``dcterms:isPartOf`` of an event's graph is its
stream. Our own terms are terms that no other vocabulary has.
"""

from __future__ import annotations

from typing import Final

from rdflib.namespace import DCTERMS, PROV
from rdflib.term import URIRef

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
