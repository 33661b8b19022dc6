"""Inside rdflib: a service beside the rows it gives."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rdflib import Dataset, Literal, Namespace, URIRef
from rdflib.graph import Graph
from rdflib.plugins.sparql import prepareQuery

import spaseq
from spaseq.rdf import register
from tests.benchmarks.measure import Measurement, check, side_by_side

_E: Final = Namespace("http://example.org/")

_FALLS: Final = """PREFIX : <http://example.org/>
SELECT ?company ?p1 ?p2 WITHIN 40 MINUTES FROM STREAM S <http://example.org/trades>
WHERE { SEQ(A , B) DEFINE GPM A ON S { ?company :price ?p1 }
  DEFINE GPM B ON S { ?company :price ?p2 FILTER(?p2 < ?p1) } }"""


def service(quick: bool) -> Iterator[Measurement]:
    """A service's matches joined with a background graph, and the same rows as VALUES."""
    matches = 20 if quick else 1_000
    engine, dataset = spaseq.Engine(), Dataset()
    background = Graph(store=dataset.store, identifier=_E.kb)
    with register(engine, _FALLS, "measured", keep=matches) as registered:
        rows: list[str] = []
        registered.on_match = lambda m: rows.append(" ".join(term.n3() for term in m.bindings[0].values()))
        for tick in range(2 * matches):
            company = _E[f"c{tick // 2 % 50}"]
            background.add((company, _E.sector, Literal(tick // 2 % 50)))
            engine.push(URIRef(_E.trades), [(company, _E.price, Literal(5 - tick % 2))], tick)
        values = "VALUES (?company ?p1 ?p2) { " + " ".join(f"({row})" for row in rows) + " }"
        joined = (
            "PREFIX : <http://example.org/>\nSELECT ?company ?s {{ {} GRAPH :kb {{ ?company :sector ?s }} }}"
        )
        ours = prepareQuery(joined.format("SERVICE <urn:x-spaseq:measured> {}"))
        theirs = prepareQuery(joined.format(values))
        for query in (ours, theirs):
            check("rows", len(dataset.query(query)), matches)
        times = side_by_side(
            1 if quick else 7, lambda: len(dataset.query(ours)), lambda: len(dataset.query(theirs))
        )
    yield Measurement(
        "rdflib-service", f"{matches} matches joined with a graph", times[0] / times[1], "VALUES, time"
    )
