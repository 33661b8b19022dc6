"""CONSTRUCT over many matches at once: the same graphs as of one match after the other."""

from __future__ import annotations

import io
import json

import pyoxigraph as ox
import pytest
from rdflib.compare import isomorphic

import spaseq
from spaseq.results import writer
from spaseq.results.batch import MatchBatch
from spaseq.terms.interop import to_rdflib

STREAM = "http://e/s"
#: A blank node; the same triple twice where ?a is ?b; a literal as subject; what is unbound.
TEMPLATE = "[] :from ?a ; :to ?b . ?x :has ?a , ?b . ?b :in ?x . ?n :of ?x . ?x ?p ?n"
QUERY = f"""PREFIX : <http://e/>
    %s CONSTRUCT {{ {TEMPLATE} }} WITHIN 100 SECONDS SLIDING FROM STREAM S <{STREAM}>
    WHERE {{ SEQ(A : B)
      DEFINE GPM A ON S {{ ?x :a ?a OPTIONAL {{ ?x :n ?n . ?n :p ?p }} }}
      DEFINE GPM B ON S {{ ?x :b ?b }} }} %s"""
EVENTS = [
    *((f"<http://e/x> <http://e/a> {i} .", i) for i in range(4)),
    ("<http://e/x> <http://e/a> <http://e/y> .", 4),
    ("<http://e/x> <http://e/a> 7 ; <http://e/n> _:n . _:n <http://e/p> <http://e/q> .", 5),
    ("<http://e/x> <http://e/a> 7 ; <http://e/n> _:n . _:n <http://e/p> 3 .", 6),
    *((f"<http://e/x> <http://e/b> {i} .", i + 10) for i in range(4)),
    ("<http://e/x> <http://e/b> <http://e/y> .", 20),
]


def found(query: str) -> MatchBatch:
    engine = spaseq.Engine()
    handle = engine.register(query)
    engine.push_many(STREAM, EVENTS)
    engine.close()
    return MatchBatch.joined(list(handle.batches()))


def graph_of(triples: object) -> object:
    import rdflib

    graph = rdflib.Graph()
    for triple in triples:  # type: ignore[attr-defined]
        graph.add(tuple(map(to_rdflib, triple)))
    return graph


def test_each_match_has_the_graph_that_it_has_alone() -> None:
    batch = found(QUERY % ("", ""))
    assert len(batch) == 35
    seen = set()
    for i in range(len(batch)):
        alone = batch._view.projector.construct(batch._block[i])
        together = batch.graphs.of(i)
        assert len(together) == len(alone) == len(set(together))
        assert isomorphic(graph_of(alone), graph_of(together))
        assert batch[i].constructed == together
        blank = {s for s, _, _ in together if isinstance(s, ox.BlankNode)}
        seen.add(frozenset(blank - {t for t in batch.bindings.terms if isinstance(t, ox.BlankNode)}))
    assert len(seen) == len(batch)  # each has a blank node of its own


@pytest.mark.parametrize("format_", ["nquads", "trig", "ndjson"])
def test_a_batch_is_written_as_its_matches_are(format_: str) -> None:
    batch = found(QUERY % ("", ""))
    texts = []
    for together in (True, False):
        out = io.BytesIO()
        with writer(format_, batch.query, out) as into:
            if together:
                into.batch(batch)
            else:
                for match in batch:
                    into.match(match)
        texts.append(out.getvalue().decode())
    if format_ == "ndjson":
        one, other = ([json.loads(line) for line in text.splitlines()] for text in texts)
        assert one == other
        assert all(line["graph"].endswith(" .\n") for line in one)
    else:
        assert texts[0] == texts[1]


def test_limit_leaves_the_graphs_of_those_that_are_given() -> None:
    batch, all_ = found(QUERY % ("", "LIMIT 20")), found(QUERY % ("", ""))
    assert len(batch) == 20
    for i in range(20):
        assert isomorphic(graph_of(batch.graphs.of(i)), graph_of(all_.graphs.of(i)))


def test_the_events_of_a_derived_stream_share_no_blank_nodes() -> None:
    engine = spaseq.Engine()
    engine.register(QUERY % ("REGISTER STREAM <http://e/d> AS", ""))
    reader = engine.register(
        """PREFIX : <http://e/> SELECT ?m ?n ?a WITHIN 100 SECONDS SLIDING FROM STREAM D <http://e/d>
           WHERE { SEQ(E) DEFINE GPM E ON D { ?m :from ?a OPTIONAL { ?n :of ?x } } }"""
    )
    engine.push_many(STREAM, EVENTS)
    engine.close()
    rows = [row for match in reader.matches() for row in match.bindings]
    assert len(rows) == 35
    assert len({row["m"] for row in rows}) == 35
    assert len({row["n"] for row in rows if "n" in row}) == 10  # of the two events with one, in five matches


def test_a_template_without_a_possible_triple_makes_empty_graphs() -> None:
    batch = found(QUERY.replace(TEMPLATE, "?b :of ?x") % ("", "") + "")
    numbers = [i for i in range(len(batch)) if not batch.graphs.of(i)]
    assert len(numbers) == 28  # ?b is a literal
