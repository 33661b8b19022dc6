"""Trades as a recorded stream: a dataset of rdflib, in each of the stores that the tests know."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from rdflib import Dataset, Graph, Literal, Namespace, URIRef
from rdflib.graph import DATASET_DEFAULT_GRAPH_ID
from rdflib.namespace import DCTERMS, PROV

E = Namespace("http://example.org/")
TRADES = str(E.trades)

STORES = ["Memory", "Oxigraph"]

# rdflib's own Dataset.query, GRAPH and TriG parser use what rdflib 7.6 deprecates; nothing of ours may.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Dataset.(default_context|contexts|identifier):DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:ConjunctiveGraph is deprecated:DeprecationWarning"),
]

#: Company and price at ticks 0, 1, 2…
PRICES = [("acme", 14), ("acme", 12), ("bolt", 3), ("bolt", 2), ("acme", 20), ("acme", 19)]

FALLS = """
SELECT ?company ?p1 ?p2 WITHIN 40 MINUTES
FROM STREAM S <http://example.org/trades>
WHERE { SEQ(A , B)
  DEFINE GPM A ON S { ?company :price ?p1 }
  DEFINE GPM B ON S { ?company :price ?p2 . FILTER(?p2 < ?p1) } }
"""
PREFIXED = "PREFIX : <http://example.org/>" + FALLS
CONSTRUCTED = PREFIXED.replace("SELECT ?company ?p1 ?p2", "CONSTRUCT { ?company :fell ?p2 }")


def default_graph(dataset: Dataset) -> Graph:
    """The default graph, by what all versions of rdflib have."""
    return Graph(store=dataset.store, identifier=DATASET_DEFAULT_GRAPH_ID)


def event(dataset: Dataset, name: str, company: str, price: object, time: object = None) -> URIRef:
    """Adds an event graph, and its time unless that is None."""
    graph = Graph(store=dataset.store, identifier=E[name])
    graph.add((E[company], E.price, Literal(price)))
    if time is not None:
        default_graph(dataset).add((E[name], PROV.generatedAtTime, Literal(time)))
    return E[name]


def recorded(store: str, prices: Iterable[tuple[str, int]] = PRICES) -> Dataset:
    """Trades e0, e1… at ticks 0, 1…, and a background graph with the companies' sectors."""
    dataset = Dataset(store=store)
    for tick, (company, price) in enumerate(prices):
        event(dataset, f"e{tick}", company, price, tick)
    Graph(store=dataset.store, identifier=E.kb).add((E.acme, E.sector, Literal("tools")))
    return dataset


def part_of(dataset: Dataset, name: str, stream: str) -> None:
    """Says in the default graph that an event belongs to a stream."""
    default_graph(dataset).add((E[name], DCTERMS.isPartOf, E[stream]))
