"""SPAseq inside rdflib: queries over datasets, and streams in SPARQL. Importing this package enables it.

``processor`` runs queries over a Dataset, ``service`` makes registered queries SPARQL services, ``live``
makes named graphs events. Open ``processor.py`` first. A recorded stream is a Dataset with a named graph for
each event, and its ``prov:generatedAtTime`` in the default graph:

>>> import rdflib, spaseq, spaseq.rdf
>>> dataset = rdflib.Dataset()
>>> _ = dataset.parse(format="trig", data='''
...     @prefix : <http://example.org/> .
...     @prefix prov: <http://www.w3.org/ns/prov#> .
...     :t0 prov:generatedAtTime 0 .   GRAPH :t0 { :acme :price 14 }
...     :t1 prov:generatedAtTime 1 .   GRAPH :t1 { :acme :price 12 }
...     :t2 prov:generatedAtTime 2 .   GRAPH :t2 { :acme :price 16 }
...     GRAPH :kb { :acme :sector "tools" } ''')
>>> falls = '''
...     PREFIX : <http://example.org/>
...     SELECT ?company ?p1 ?p2 WITHIN 40 MINUTES
...     FROM STREAM S <http://example.org/trades>
...     WHERE { SEQ(A , B)
...       DEFINE GPM A ON S { ?company :price ?p1 }
...       DEFINE GPM B ON S { ?company :price ?p2 . FILTER(?p2 < ?p1) } } '''
>>> for row in dataset.query(falls, processor="spaseq", result="spaseq"):
...     print(row.company, row.p1, row.p2)
http://example.org/acme 14 12

A registered query is a service of plain SPARQL; its solutions are its matches so far:

>>> engine = spaseq.Engine()
>>> service = spaseq.rdf.register(engine, falls, "falls")
>>> for tick, price in enumerate([20, 18, 19]):
...     trade = f"@prefix : <http://example.org/> . :acme :price {price} ."
...     engine.push("http://example.org/trades", trade, tick)
>>> for row in dataset.query('''
...         PREFIX : <http://example.org/>
...         SELECT ?p1 ?p2 ?sector {
...           SERVICE <urn:x-spaseq:falls> { FILTER(?p1 > 15) }
...           GRAPH :kb { ?company :sector ?sector } } '''):
...     print(row.p1, row.p2, row.sector)
20 18 tools

Live, named graphs that are added to a dataset are events (and matches of CONSTRUCT become named graphs):

>>> with spaseq.rdf.connect(dataset, engine, stream="http://example.org/trades") as live:
...     results = live.register(falls)
...     for tick, price in enumerate([9, 7], 10):
...         with live.event(f"http://example.org/t{tick}", tick) as graph:
...             _ = graph.parse(data=f"@prefix : <http://example.org/> . :acme :price {price} .")
...     print([(match.start, match.end) for match in results])
[(10, 11)]
>>> service.close()
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from spaseq._lazy import lazily
from spaseq.rdf.asking import listen

if TYPE_CHECKING:
    from spaseq.rdf.live import Connection, Results, connect
    from spaseq.rdf.prepared import prepare
    from spaseq.rdf.result import SpaseqResult
    from spaseq.rdf.service import Service, register

__all__ = [
    "Connection",
    "Results",
    "Service",
    "SpaseqResult",
    "connect",
    "prepare",
    "register",
]

listen()

# Streams are loaded on first use: queries over recorded data do not need them.
__getattr__, __dir__ = lazily(
    __name__,
    {
        "live": "Connection Results connect",
        "prepared": "prepare",
        "result": "SpaseqResult",
        "service": "Service register",
    },
)
