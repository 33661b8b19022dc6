"""BNODE(label) is one node in one solution, and IRI(text) is read with the query's BASE: on every route."""

from __future__ import annotations

import pytest
from rdflib import BNode, Dataset, Graph, Literal, Namespace, URIRef
from rdflib.graph import DATASET_DEFAULT_GRAPH_ID
from rdflib.namespace import PROV

import spaseq

E = Namespace("http://e.org/")
PATTERNS = {
    "joins": "?s :p ?o",
    # A path of this kind is Oxigraph's.
    "general": "?s :p ?o . ?s :p+ ?o",
}


def rows(body: str, select: str = "*", base: str = "BASE <http://e.org/x/y>") -> list[dict[str, object]]:
    text = (
        f"{base} PREFIX : <http://e.org/> SELECT {select} WITHIN 9 SECONDS FROM STREAM S :s "
        f"WHERE {{ SEQ(A) DEFINE GPM A ON S {{ {body} }} }}"
    )
    query = spaseq.prepare(text)
    assert spaseq.prepare(str(query)) == query  # BASE is kept
    engine = spaseq.Engine()
    handle = engine.register(query)
    engine.push(E.s, '<urn:s> <http://e.org/p> "a", "b" .', 1)
    return [dict(row) for match in handle.matches() for row in match.bindings]


@pytest.mark.parametrize("pattern", PATTERNS.values(), ids=PATTERNS)
def test_equal_labels_are_one_node_in_one_solution(pattern: str) -> None:
    found = rows(f'{pattern} BIND(BNODE("k") AS ?x) BIND(BNODE("k") AS ?y) BIND(BNODE("l") AS ?z)')
    assert len(found) == 2
    assert all(row["x"] == row["y"] != row["z"] for row in found)
    assert found[0]["x"] != found[1]["x"]
    assert isinstance(found[0]["x"], BNode)


@pytest.mark.parametrize("pattern", PATTERNS.values(), ids=PATTERNS)
def test_a_filter_sees_one_node(pattern: str) -> None:
    assert len(rows(f"{pattern} FILTER(sameTerm(BNODE(?o), BNODE(?o)))")) == 2
    assert rows(f"{pattern} FILTER(sameTerm(BNODE(?o), BNODE()))") == []


@pytest.mark.parametrize(
    ("body", "select"),
    [
        ("?s :p ?o", '(BNODE("k") AS ?x) (BNODE("k") AS ?y)'),
        ('{ SELECT (BNODE("k") AS ?x) (BNODE("k") AS ?y) { ?s :p ?o } }', "*"),
        ('{ SELECT (BNODE("k") AS ?x) (BNODE("k") AS ?y) { ?s :p ?o } GROUP BY ?o }', "*"),
        ("{ SELECT (BNODE(SAMPLE(?o)) AS ?x) (BNODE(MIN(?o)) AS ?y) { ?s :p ?o } GROUP BY ?o }", "*"),
    ],
)
def test_what_select_computes(body: str, select: str) -> None:
    first, second = rows(body, select)
    assert first["x"] == first["y"]
    assert second["x"] == second["y"]
    assert first["x"] != second["x"]


@pytest.mark.parametrize("pattern", PATTERNS.values(), ids=PATTERNS)
@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ('IRI("../up")', "http://e.org/up"),
        ("URI(?o)", "http://e.org/x/a"),
        ('IRI(CONCAT("#", ?o))', "http://e.org/x/y#a"),
        ('IRI("urn:k")', "urn:k"),
        ("IRI(<k>)", "http://e.org/x/k"),
        ('IRI(CONCAT(?o, "> <k"))', None),
        ('IRI("a b")', None),
    ],
)
def test_iri_is_read_with_the_base(pattern: str, expression: str, expected: str | None) -> None:
    found = rows(f'{pattern} FILTER(?o = "a") BIND({expression} AS ?x)')
    assert [row.get("x") for row in found] == [expected and URIRef(expected)]


def test_without_a_base_a_relative_iri_is_an_error() -> None:
    found = rows('?s :p ?o BIND(IRI(?o) AS ?x) BIND(IRI("urn:k") AS ?y)', base="")
    assert [(row.get("x"), row["y"]) for row in found] == [(None, URIRef("urn:k"))] * 2


@pytest.mark.filterwarnings("ignore:.*:DeprecationWarning")
def test_in_rdflib() -> None:
    dataset = Dataset()
    Graph(store=dataset.store, identifier=E.e).add((URIRef("urn:s"), E.p, Literal("a")))
    times = Graph(store=dataset.store, identifier=DATASET_DEFAULT_GRAPH_ID)
    times.add((E.e, PROV.generatedAtTime, Literal(1)))
    text = """PREFIX : <http://e.org/>
        SELECT (BNODE("k") AS ?x) (BNODE("k") AS ?y) (IRI(?o) AS ?z) WITHIN 9 SECONDS FROM STREAM S :s
        WHERE { SEQ(A) DEFINE GPM A ON S { ?s :p ?o } }"""
    ((x, y, z),) = dataset.query(text, processor="spaseq", result="spaseq", base="http://e.org/x/y")
    assert x == y
    assert z == URIRef("http://e.org/x/a")
