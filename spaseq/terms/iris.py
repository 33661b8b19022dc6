"""Well-known prefixes, and relative IRIs and a base → absolute IRIs (RFC 3986, section 5)."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from pyoxigraph import NamedNode, RdfFormat
from pyoxigraph import parse as parse_rdf

# Prefixes that need no declaration in options, and that hints propose in queries.

#: Prefixes with one usual meaning.
WELL_KNOWN: Final = {
    "as": "https://www.w3.org/ns/activitystreams#",
    "dcat": "http://www.w3.org/ns/dcat#",
    "dct": "http://purl.org/dc/terms/",
    "dcterms": "http://purl.org/dc/terms/",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "geo": "http://www.w3.org/2003/01/geo/wgs84_pos#",
    "geof": "http://www.opengis.net/def/function/geosparql/",
    "ldes": "https://w3id.org/ldes#",
    "math": "http://www.w3.org/2005/xpath-functions/math#",
    "owl": "http://www.w3.org/2002/07/owl#",
    "prov": "http://www.w3.org/ns/prov#",
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "schema": "http://schema.org/",
    "sosa": "http://www.w3.org/ns/sosa/",
    "ssn": "http://www.w3.org/ns/ssn/",
    "tree": "https://w3id.org/tree#",
    "uom": "http://www.opengis.net/def/uom/OGC/1.0/",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
}

# A relative IRI and a base → the absolute IRI (RFC 3986, section 5).

#: The characters that Turtle allows in an IRI reference between ``<`` and ``>``.
_REFERENCE: Final = re.compile(r'[^\x00-\x20<>"{}|^`\\]*')


@lru_cache(maxsize=1 << 10)
def resolve(base: str, reference: str) -> NamedNode:
    """Return the absolute IRI of a reference. Raises ValueError if there is none.

    >>> resolve("http://example.org/a/b", "../c").value
    'http://example.org/c'
    """
    if _REFERENCE.fullmatch(reference) is None:
        raise ValueError(f"{reference!r} has characters that no IRI has")
    try:
        # pyoxigraph has no function for this; its parser resolves IRIs.
        triple = next(iter(parse_rdf(f"<{reference}> a <> .", RdfFormat.TURTLE, base_iri=base)))
    except SyntaxError as problem:
        raise ValueError(str(problem)) from None
    if not isinstance(triple.subject, NamedNode):
        raise TypeError(triple.subject)
    return triple.subject
