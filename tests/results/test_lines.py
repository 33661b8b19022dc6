"""Batches of matches as text: the same from their columns as from what a user sees of each match."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime

import pytest
from rdflib import BNode

import spaseq
from spaseq.results import writer
from spaseq.results.batch import MatchBatch
from spaseq.results.writers._json import line_of

STREAM = "http://example.org/s"
PREFIX = "PREFIX : <http://example.org/>\n"
CLAUSES = "WITHIN 9 SECONDS {clauses}FROM STREAM S :s WHERE {{ SEQ(A ; B? ; C) "
GPMS = (
    "DEFINE GPM A ON S { ?a :p ?x OPTIONAL { ?a :r ?r } } "
    "DEFINE GPM B ON S { ?b :q ?y } DEFINE GPM C ON S { ?c :p ?z OPTIONAL { ?c :q ?q } } }"
)
SEQUENCE = CLAUSES.format(clauses="") + GPMS
#: Terms that are written in all the ways there are.
EVENTS = (
    ':e1 :p "plain", "say \\"hi\\"\\n\\t\\u0001\\u2028 ü \\U0001F600"@en ; :r _:blank .',
    ":e2 :q 1, 1.50, 1e3, true .",
    ':e3 :p <http://example.org/ü>, "2026-01-02"^^<http://www.w3.org/2001/XMLSchema#date> ; :q "7" .',
    ":e4 :p 7 .",
    ":e5 :p 8 ; :r :e4 .",
)
FORMS = {
    "rows": "SELECT ?x ?y ?z ?r ?q " + SEQUENCE,
    "everything": "SELECT * " + SEQUENCE,
    "one": "SELECT ?r " + SEQUENCE,
    "none": "SELECT ?nothing " + SEQUENCE.replace("?c :p ?z", "?c :p ?z . ?c :p ?nothing"),
    "limit": f"SELECT ?x ?z {SEQUENCE} LIMIT 5",
    "offset": f"SELECT ?x ?z {SEQUENCE} OFFSET 1",
    "distinct": "SELECT DISTINCT ?a " + SEQUENCE,
    "computed": "SELECT ?x (STR(?z) AS ?text) " + SEQUENCE,
    "counted": "SELECT (COUNT(?x) AS ?count) " + SEQUENCE,
    "partitioned": "SELECT ?x ?z " + CLAUSES.format(clauses="PARTITION BY ?v ")
    + "DEFINE GPM A ON S { ?a :v ?v ; :p ?x } DEFINE GPM B ON S { ?b :v ?v ; :q ?y } "
    "DEFINE GPM C ON S { ?c :v ?v ; :p ?z } }",
    "ask": "ASK " + SEQUENCE,
    "construct": "CONSTRUCT { ?a :to ?c } " + SEQUENCE,
}  # fmt: skip


def found(form: str, *, named: bool = True, instants: bool = False) -> MatchBatch:
    engine = spaseq.Engine()
    handle = engine.register(PREFIX + FORMS[form])
    names = (None, BNode("g"), "http://example.org/ü") if named else (None,)
    for tick, triples in enumerate(EVENTS):
        moment = datetime(2026, 1, 2, 3, 4, tick, 500_000 * tick % 1_000_000, tzinfo=UTC)
        text = PREFIX + triples.replace(" .", f" ; :v {('<urn:v>', 'true')[tick % 2]} .")
        engine.push(STREAM, text, moment if instants else tick, names[tick % len(names)])
    engine.close()
    (batch,) = handle.batches()
    return batch


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("named", "instants"), [(False, False), (True, True)])
@pytest.mark.parametrize("kind", ["ndjson", "json", "csv", "tsv"])
def test_columns_are_written_as_matches_are(form: str, named: bool, instants: bool, kind: str) -> None:
    batch = found(form, named=named, instants=instants)
    assert len(batch)
    if form == "construct" and kind != "ndjson":
        return
    at_once, one_by_one = io.BytesIO(), io.BytesIO()
    with writer(kind, batch.query, at_once) as results:
        results.batch(batch[:1])
        results.batch(batch[1:])
    with writer(kind, batch.query, one_by_one) as results:
        for match in batch:
            results.match(match)
    assert at_once.getvalue() == one_by_one.getvalue()


def test_what_a_user_changes_is_written() -> None:
    match, *_ = found("rows")
    match.bindings.clear()
    assert json.loads(line_of(match))["bindings"] == []
