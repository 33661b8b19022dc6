"""``SERVICE <urn:x-spaseq:NAME>``: registered queries in plain SPARQL, on both stores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rdflib import Graph, Literal, URIRef, Variable
from rdflib.plugins.sparql import prepareQuery, prepareUpdate
from rdflib.query import Result

import spaseq
from spaseq.rdf import Service, register
from tests.rdf import trades
from tests.rdf.trades import CONSTRUCTED, PREFIXED, PRICES, STORES, TRADES, E, recorded

pytestmark = [*trades.pytestmark, pytest.mark.parametrize("store", STORES)]

# A line of its own: rdflib's parser takes what follows a # in an IRI for a comment when it meets SERVICE.
NAMES = "PREFIX : <http://example.org/>\nPREFIX spaseq: <https://w3id.org/spaseq#>\n"
NAMES += "PREFIX prov: <http://www.w3.org/ns/prov#>\n"


def trade(engine: spaseq.Engine, tick: int, company: str, price: int) -> None:
    engine.push(TRADES, f"<{E[company]}> <{E.price}> {price} .", tick, name=E[f"e{tick}"])


@pytest.fixture
def engine() -> spaseq.Engine:
    return spaseq.Engine()


@pytest.fixture
def falls(engine: spaseq.Engine) -> Iterator[Service]:
    with register(engine, PREFIXED, "falls") as service:
        for tick, (company, price) in enumerate(PRICES):
            trade(engine, tick, company, price)
        yield service


def sparql(dataset: Graph, query: str, **options: object) -> Result:
    return dataset.query(NAMES + query, **options)  # type: ignore[arg-type]


def rows(result: Result) -> Counter[tuple[str | None, ...]]:
    return Counter(
        tuple(None if term is None else str(term).removeprefix(E) for term in row) for row in result
    )


# --- joining ------------------------------------------------------------------------------------


@pytest.mark.usefixtures("falls")
@pytest.mark.parametrize(
    "where",
    [
        "SERVICE <urn:x-spaseq:falls> {} GRAPH :kb { ?company :sector ?s }",
        "GRAPH :kb { ?company :sector ?s } SERVICE <urn:x-spaseq:falls> {}",
        "{ SERVICE <urn:x-spaseq:falls> {} } { SELECT DISTINCT * { GRAPH :kb { ?company :sector ?s } } }",
        "{ SELECT DISTINCT * { GRAPH :kb { ?company :sector ?s } } } { SERVICE <urn:x-spaseq:falls> {} }",
        "GRAPH ?g { ?company :sector ?s } SERVICE <urn:x-spaseq:falls> { }",
    ],
)
def test_matches_are_joined_with_the_rest(store: str, where: str) -> None:
    found = sparql(recorded(store), f"SELECT ?company ?p1 ?s {{ {where} }}")
    assert rows(found) == Counter([("acme", "14", "tools"), ("acme", "20", "tools")])


@pytest.mark.usefixtures("falls")
def test_an_optional_after_it(store: str) -> None:
    """rdflib needs to know which variables a part binds; the block itself does not say it."""
    where = "SERVICE <urn:x-spaseq:falls> {} OPTIONAL { GRAPH :kb { ?company :sector ?s } }"
    assert rows(sparql(recorded(store), f"SELECT ?company ?p1 ?s {{ {where} }}")) == Counter(
        [("acme", "14", "tools"), ("bolt", "3", None), ("acme", "20", "tools")]
    )
    dataset = recorded(store)
    Graph(store=dataset.store, identifier=E.other).add((E.x, E.is_, Literal(99)))
    where = "SERVICE <urn:x-spaseq:falls> {} OPTIONAL { GRAPH :other { ?x :is_ ?p1 } }"
    assert len(sparql(dataset, f"SELECT ?p1 ?x {{ {where} }}")) == 3


@pytest.mark.usefixtures("falls")
def test_an_optional_service(store: str) -> None:
    dataset = recorded(store)
    Graph(store=dataset.store, identifier=E.kb).add((E.idle, E.sector, Literal("none")))
    where = "GRAPH :kb { ?company :sector ?s } OPTIONAL { SERVICE <urn:x-spaseq:falls> { FILTER(?p1 > 15) } }"
    assert rows(sparql(dataset, f"SELECT ?company ?p1 {{ {where} }}")) == Counter(
        [("acme", "20"), ("idle", None)]
    )


@pytest.mark.usefixtures("falls")
def test_strings_are_the_same_in_every_store(store: str, engine: spaseq.Engine) -> None:
    named = "SELECT ?s WITHIN 9 SECONDS FROM STREAM S <urn:s> { SEQ(A) DEFINE GPM A ON S { ?x <urn:p> ?s } }"
    with register(engine, named, "named"):
        engine.push("urn:s", "<urn:x> <urn:p> 'tools', 'nuts' .", 1)
        where = "GRAPH :kb { ?company :sector ?s } SERVICE <urn:x-spaseq:named> {}"
        assert rows(sparql(recorded(store), f"SELECT ?s {{ {where} }}")) == Counter([("tools",)])


@pytest.mark.usefixtures("falls")
def test_init_bindings(store: str) -> None:
    found = sparql(
        recorded(store), "SELECT ?p1 { SERVICE <urn:x-spaseq:falls> {} }", initBindings={"company": E.bolt}
    )
    assert rows(found) == Counter([("3",)])


@pytest.mark.usefixtures("falls")
def test_a_prepared_query_sees_what_is_found_since(store: str, engine: spaseq.Engine) -> None:
    query = prepareQuery(NAMES + "SELECT ?p2 { SERVICE <urn:x-spaseq:falls> {} }")
    dataset = recorded(store)
    assert len(dataset.query(query)) == 3
    trade(engine, 6, "acme", 18)
    assert rows(dataset.query(query)) == Counter([("12",), ("2",), ("19",), ("18",)])


@pytest.mark.usefixtures("falls")
def test_a_construct_query_and_an_ask_query(store: str) -> None:
    graph = sparql(
        recorded(store), "CONSTRUCT { ?company :from ?p1 } { SERVICE <urn:x-spaseq:falls> {} }"
    ).graph
    assert graph is not None
    assert set(graph) == {(E.acme, E["from"], Literal(14)), (E.acme, E["from"], Literal(20))} | {
        (E.bolt, E["from"], Literal(3))
    }
    assert sparql(recorded(store), "ASK { SERVICE <urn:x-spaseq:falls> { FILTER(?p1 = 3) } }").askAnswer
    assert not sparql(recorded(store), "ASK { SERVICE <urn:x-spaseq:falls> { FILTER(?p1 = 4) } }").askAnswer


@given(
    prices=st.lists(st.tuples(st.sampled_from(["acme", "bolt"]), st.integers(1, 4)), max_size=8),
    where=st.sampled_from(
        [
            ("%s %s", "FILTER(?p2 > 1)"),
            ("%s OPTIONAL { %s }", "FILTER(?p2 > 1)"),
            ("%s MINUS { %s }", "FILTER(?p2 > 2)"),
            ("{ %s } UNION { %s }", "FILTER(?p2 > 2)"),
            ("%s FILTER EXISTS { %s }", "FILTER(?p2 > 1)"),
            ("%s { SELECT ?p1 (COUNT(*) AS ?n) { %s } GROUP BY ?p1 }", ""),
        ]
    ),
    first=st.booleans(),
)
@settings(max_examples=30)
@pytest.mark.slow
def test_it_is_as_if_the_rows_stood_there(
    store: str, prices: list[tuple[str, int]], where: tuple[str, str], first: bool
) -> None:
    """The definition: a SERVICE gives what the rows would give, in any pattern."""
    engine = spaseq.Engine()
    with register(engine, PREFIXED, "any") as service:
        matches: list[spaseq.Match] = []
        service.on_match = matches.append
        for tick, (company, price) in enumerate(prices):
            trade(engine, tick, company, price)
        dataset = recorded(store, prices)
        stored = Graph(store=dataset.store, identifier=E.rows)
        for n, match in enumerate(matches):
            for variable, term in match.bindings[0].items():
                stored.add((E[f"row{n}"], E[variable], term))
        shape, condition = where
        other = "GRAPH :kb { ?company :sector ?s }"
        answers = []
        for found in (
            "SERVICE <urn:x-spaseq:any> { %s }",
            "GRAPH :rows { ?row :company ?company ; :p1 ?p1 ; :p2 ?p2 . %s }",
        ):
            block = found % condition
            pattern = shape % ((block, other) if first else (other, block))
            query = f"SELECT DISTINCT ?company ?p1 ?p2 ?s ?n {{ {pattern} }}"
            answers.append(rows(sparql(dataset, query, use_store_provided=False)))
        assert answers[0] == answers[1]


# --- the block ----------------------------------------------------------------------------------


@pytest.mark.usefixtures("falls")
@pytest.mark.parametrize(
    ("block", "found"),
    [
        ("", [("14", None), ("3", None), ("20", None)]),
        ("FILTER(?p1 > 10)", [("14", None), ("20", None)]),
        ("BIND(?p1 - ?p2 AS ?x)", [("14", "2"), ("3", "1"), ("20", "1")]),
        ("VALUES ?company { :acme }", [("14", None), ("20", None)]),
        ("VALUES (?company ?x) { (:bolt 1) (UNDEF 2) } FILTER(?p1 < 4)", [("3", "1"), ("3", "2")]),
        ("OPTIONAL { VALUES (?p2 ?x) { (12 'a') } }", [("14", "a"), ("3", None), ("20", None)]),
        ("MINUS { VALUES ?p2 { 12 } }", [("3", None), ("20", None)]),
        ("?match spaseq:start ?x", [("14", "0"), ("3", "2"), ("20", "4")]),
        ("?match prov:generatedAtTime ?x FILTER(?x > 1)", [("3", "3"), ("20", "5")]),
        ("?match spaseq:matchedEvent ?x FILTER(?p1 = 3)", [("3", "e2"), ("3", "e3")]),
        ("?match prov:wasDerivedFrom/prov:generatedAtTime ?x FILTER(?p1 = 3)", [("3", "2"), ("3", "3")]),
        (
            "?match prov:qualifiedDerivation [ prov:entity ?x ; spaseq:gpm <urn:x-spaseq:falls#A> ]",
            [("14", "e0"), ("3", "e2"), ("20", "e4")],
        ),
        ("FILTER EXISTS { ?match spaseq:start 2 }", [("3", None)]),
        ("FILTER(isBlank(?match) && ?p1 < 4)", [("3", None)]),
        ("FILTER NOT EXISTS { ?match spaseq:matchedEvent :e2 }", [("14", None), ("20", None)]),
        ("{ SELECT (MAX(?t) AS ?x) { ?m spaseq:start ?t } }", [("14", "4"), ("3", "4"), ("20", "4")]),
    ],
)
@pytest.mark.few(1)
def test_what_a_block_may_say(store: str, block: str, found: list[tuple[str | None, ...]]) -> None:
    result = sparql(recorded(store), f"SELECT ?p1 ?x {{ SERVICE <urn:x-spaseq:falls> {{ {block} }} }}")
    assert rows(result) == Counter(found)


@pytest.mark.usefixtures("falls")
def test_two_services_each_have_their_own_match(store: str, engine: spaseq.Engine) -> None:
    """And each its own block, of which rdflib remembers only the first one's text."""
    two = "SERVICE <urn:x-spaseq:falls> { ?match spaseq:start ?x } SERVICE <urn:x-spaseq:again> %s"
    again = PREFIXED.replace("?p", "?q")
    with register(engine, again, "again"):
        for tick, price in [(6, 18), (7, 17)]:
            trade(engine, tick, "acme", price)
        found = sparql(recorded(store), f"SELECT ?p1 ?x ?q1 {{ {two % '{ FILTER(?q1 > 0) }'} }}")
        assert rows(found) == Counter(
            {(p, x, "18"): 1 for p, x in [("14", "0"), ("20", "4"), ("19", "5"), ("18", "6")]}
        )
        found = sparql(recorded(store), f"SELECT ?p1 ?q1 {{ {two % '{ ?match spaseq:start ?x }'} }}")
        assert rows(found) == Counter()  # ?match is a variable like any other, and these are two matches


def test_construct_and_ask_as_services(store: str, engine: spaseq.Engine) -> None:
    ask = PREFIXED.replace("SELECT ?company ?p1 ?p2", "ASK")
    with register(engine, CONSTRUCTED, "made"), register(engine, ask, "any"):
        for tick, (company, price) in enumerate(PRICES):
            trade(engine, tick, company, price)
        made = "SELECT ?c ?x { SERVICE <urn:x-spaseq:made> { ?c :fell ?x } }"
        assert (
            Counter([("acme", "12"), ("bolt", "2"), ("acme", "19")]).keys()
            == rows(sparql(recorded(store), made)).keys()
        )
        when = "SELECT ?t { SERVICE <urn:x-spaseq:any> { ?match spaseq:start ?t } }"
        assert rows(sparql(recorded(store), when)) == Counter([("0",)])
        assert sparql(recorded(store), "ASK { SERVICE <urn:x-spaseq:any> {} }").askAnswer


# --- names --------------------------------------------------------------------------------------


@pytest.mark.parametrize("iri", ["urn:x-spaseq:registered", "http://example.org/registered"])
def test_the_name_of_register_query(store: str, engine: spaseq.Engine, iri: str) -> None:
    query = PREFIXED.replace("SELECT", f"REGISTER QUERY <{iri}> AS SELECT")
    with register(engine, query) as service:
        assert service.name == iri.removeprefix("urn:x-spaseq:")
        trade(engine, 1, "acme", 2)
        trade(engine, 2, "acme", 1)
        assert (
            len(sparql(recorded(store), f"SELECT ?p1 {{ SERVICE <urn:x-spaseq:{service.name}> {{}} }}")) == 1
        )


@pytest.mark.usefixtures("falls")
def test_an_unknown_name_says_what_there_is(store: str) -> None:
    query = "SELECT * { SERVICE %s <urn:x-spaseq:fall> { FILTER(?p1 > 1) } }"
    with pytest.raises(spaseq.EngineError, match=r"did you mean 'falls'\?.*register"):
        list(sparql(recorded(store), query % ""))
    assert sparql(recorded(store), "ASK { SERVICE SILENT <urn:x-spaseq:fall> {} }").askAnswer


def test_names_and_what_is_wrong_with_them(store: str, engine: spaseq.Engine) -> None:  # noqa: ARG001
    with register(engine, PREFIXED, "taken"), pytest.raises(spaseq.EngineError, match="'taken' already"):
        register(engine, PREFIXED, "taken")
    register(engine, PREFIXED, "taken").close()
    with pytest.raises(spaseq.EngineError, match="REGISTER QUERY"):
        register(engine, PREFIXED)
    with pytest.raises(spaseq.EngineError, match=r"\?match is the match itself"):
        register(engine, PREFIXED.replace("?p1", "?match"), "named")
    with pytest.raises(spaseq.EngineError, match="keeps one match"):
        register(engine, PREFIXED, "few", keep=0)
    with pytest.raises(spaseq.QueryError):
        register(engine, "SELECT", "wrong")


def test_a_service_that_is_closed_is_gone(store: str, engine: spaseq.Engine) -> None:
    service = register(engine, PREFIXED, "gone")
    service.close()
    service.close()
    trade(engine, 1, "acme", 2)
    trade(engine, 2, "acme", 1)
    assert len(service) == 0
    with pytest.raises(spaseq.EngineError, match="no query is registered"):
        list(sparql(recorded(store), "SELECT ?p1 { SERVICE <urn:x-spaseq:gone> {} }"))


def test_other_services_are_left_to_rdflib(store: str) -> None:
    error = {"Memory": "unknown url type", "Oxigraph": "foo"}[store]
    with pytest.raises(OSError, match=error):
        list(sparql(recorded(store), "SELECT * { SERVICE <foo:bar> { ?s ?p ?o } }"))


WAYS = [
    ("SERVICE <urn:x-spaseq:falls> {}", {}),
    ("SERVICE sq:falls {}", {"initNs": {"sq": "urn:x-spaseq:", "": str(E)}}),
    ("service u:x-spaseq:falls { }", {"initNs": {"u": "urn:", "": str(E)}}),
    ("BIND(<urn:x-spaseq:falls> AS ?s) SERVICE ?s {}", {}),
    ("BIND(IRI('urn:x-spaseq:falls') AS ?s) SERVICE ?s {}", {}),
    ("VALUES ?s { <urn:x-spaseq:falls> } SERVICE ?s {}", {}),
    ("BIND(sq:falls AS ?s) SERVICE ?s {}", {"initNs": {"sq": "urn:x-spaseq:", "": str(E)}}),
    ("SERVICE ?s {}", {"initBindings": {"s": URIRef("urn:x-spaseq:falls")}}),
    ("GRAPH :kb { ?x :service ?s } SERVICE ?s {}", {"use_store_provided": False}),
]


@pytest.mark.usefixtures("falls")
@pytest.mark.parametrize(("where", "options"), WAYS)
@pytest.mark.parametrize("prepared", [False, True])
@pytest.mark.few(1)
def test_a_service_may_be_named_in_every_way(
    store: str, where: str, options: dict[str, Any], prepared: bool
) -> None:
    dataset = recorded(store)
    Graph(store=dataset.store, identifier=E.kb).add((E.x, E.service, URIRef("urn:x-spaseq:falls")))
    query: Any = f"PREFIX : <http://example.org/> SELECT * {{ {where} }}"
    given = dict(options)
    if prepared:
        query = prepareQuery(query, given.pop("initNs", {}))
    result = dataset.query(query, **given)
    assert Counter((str(row.p1), str(row.p2)) for row in result) == Counter(
        [("14", "12"), ("3", "2"), ("20", "19")]
    )
    assert {"company", "p1", "p2"} <= set(map(str, result.vars or ()))


@pytest.mark.usefixtures("falls")
def test_the_prefixes_of_the_dataset(store: str) -> None:
    dataset = recorded(store)
    dataset.bind("sq", "urn:x-spaseq:")
    assert len(dataset.query("SELECT ?p1 { SERVICE sq:falls {} }")) == 3


@pytest.mark.usefixtures("falls")
@pytest.mark.parametrize(
    ("query", "columns"),
    [
        ("SELECT * { SERVICE <urn:x-spaseq:falls> {} }", "company p1 p2"),
        ("SELECT * { { SELECT * { SERVICE <urn:x-spaseq:falls> {} } } }", "company p1 p2"),
        ("SELECT * { { SELECT ?p1 { SERVICE <urn:x-spaseq:falls> {} } } }", "p1"),
        ("SELECT * { SERVICE <urn:x-spaseq:falls> { ?match spaseq:start ?t } }", "company p1 p2 match t"),
        ("SELECT * { OPTIONAL { SERVICE <urn:x-spaseq:falls> {} } }", "company p1 p2"),
        ("SELECT * { ?s ?p ?o } VALUES ?s { 'SERVICE <urn:x-spaseq:falls> {}' }", "s p o"),
    ],
)
@pytest.mark.parametrize("prepared", [False, True])
def test_all_columns(store: str, query: str, columns: str, prepared: bool) -> None:
    asked: Any = prepareQuery(NAMES + query) if prepared else NAMES + query
    result = recorded(store).query(asked)
    assert {str(name) for name in result.vars or ()} == set(columns.split())
    if "?s" not in query:
        assert len(result) == 3
        assert all(row.p1 is not None for row in result)


@pytest.mark.usefixtures("falls")
def test_what_was_prepared_before_a_service_has_its_columns(store: str, engine: spaseq.Engine) -> None:
    query = prepareQuery("SELECT * { SERVICE <urn:x-spaseq:later> {} OPTIONAL { GRAPH ?g { ?q1 ?x ?y } } }")
    for names, tick in (("?q", 8), ("?r", 10)):
        with register(engine, PREFIXED.replace("?p", names), "later"):
            trade(engine, tick, "acme", 2)
            trade(engine, tick + 1, "acme", 1)
            row = next(iter(recorded(store).query(query)))
            assert row[Variable(f"{names[1]}1")] == Literal(2)


@pytest.mark.usefixtures("falls")
@pytest.mark.parametrize(("where", "options"), WAYS)
@pytest.mark.parametrize("prepared", [False, True])
@pytest.mark.few(1)
def test_updates(store: str, where: str, options: dict[str, Any], prepared: bool) -> None:
    dataset = recorded(store)
    Graph(store=dataset.store, identifier=E.kb).add((E.x, E.service, URIRef("urn:x-spaseq:falls")))
    where += " OPTIONAL { GRAPH :kb { ?company :sector ?sector } } FILTER(!BOUND(?sector))"
    update: Any = f"PREFIX : <{E}> INSERT {{ GRAPH :found {{ ?company :fell ?p2 }} }} WHERE {{ {where} }}"
    given = dict(options)
    if prepared:
        update = prepareUpdate(update, given.pop("initNs", {}))
    dataset.update(update, **given)
    assert set(Graph(store=dataset.store, identifier=E.found)) == {(E.bolt, E.fell, Literal(2))}


@pytest.mark.usefixtures("falls")
def test_several_updates_in_one_request(store: str) -> None:
    dataset = recorded(store)
    dataset.update(
        """PREFIX : <http://example.org/> INSERT DATA { GRAPH :found { :a :b :c } } ;
        PREFIX s: <urn:x-spaseq:>
        INSERT { GRAPH :found { ?company :fell ?p2 } } WHERE { SERVICE s:falls {} } ;
        DELETE WHERE { GRAPH :found { ?x :b ?y } }"""
    )
    assert len(Graph(store=dataset.store, identifier=E.found)) == 3


def test_updates_of_others_go_to_the_store(store: str) -> None:
    dataset = recorded(store)
    dataset.update("INSERT DATA { GRAPH <urn:g> { <urn:a> <urn:b> 'SERVICE' } }")
    assert len(Graph(store=dataset.store, identifier=URIRef("urn:g"))) == 1


# --- how much is kept ---------------------------------------------------------------------------


def test_the_newest_matches_are_kept(store: str, engine: spaseq.Engine) -> None:
    with register(engine, PREFIXED, "few", keep=2) as service:
        for tick, price in enumerate([9, 8, 7, 6]):
            trade(engine, tick, "acme", price)
        assert len(service) == 2
        query = "SELECT ?p2 ?x { SERVICE <urn:x-spaseq:few> { ?match spaseq:start ?x } }"
        assert rows(sparql(recorded(store), query)) == Counter([("7", "1"), ("6", "2")])
