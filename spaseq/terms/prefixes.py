"""Prefixes that need no declaration in options, and that hints propose in queries."""

from __future__ import annotations

from typing import Final

#: Prefixes that everybody declares alike.
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
