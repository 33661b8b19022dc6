"""``Dataset.query(…, processor="spaseq", result="spaseq")`` over recorded streams, on both stores."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from pyoxigraph import NamedNode
from rdflib import BNode, ConjunctiveGraph, Dataset, Graph, Literal, URIRef, Variable
from rdflib.plugins.sparql import prepareQuery
from rdflib.query import Result

import spaseq
from spaseq.rdf import SpaseqResult, prepare
from spaseq.sources import SourceOptions, open_source
from spaseq.terms.dictionary import Dictionary
from tests.rdf import trades
from tests.rdf.trades import (
    CONSTRUCTED,
    FALLS,
    PREFIXED,
    STORES,
    TRADES,
    E,
    default_graph,
    event,
    part_of,
    recorded,
)

pytestmark = [*trades.pytestmark, pytest.mark.parametrize("store", STORES)]


def asked(dataset: Graph, query: Any = PREFIXED, **options: Any) -> SpaseqResult:
    result = dataset.query(query, processor="spaseq", result="spaseq", **options)
    assert isinstance(result, SpaseqResult)
    return result


def rows(result: Result) -> list[tuple[str, ...]]:
    return sorted(tuple(str(term).removeprefix(E) for term in row) for row in result)


FOUND = [("acme", "14", "12"), ("acme", "20", "19"), ("bolt", "3", "2")]


# --- text, prepared, what both stores do with them ----------------------------------------------


def test_text(store: str) -> None:
    result = asked(recorded(store))
    assert rows(result) == FOUND
    assert (result.type, result.vars) == ("SELECT", [Variable("company"), Variable("p1"), Variable("p2")])
    assert len(result) == len(result.bindings) == 3
    assert [row.p2.toPython() for row in result] == [12, 2, 19]
    assert [(match.start, match.end) for match in result.matches] == [(0, 1), (2, 3), (4, 5)]


def test_a_prepared_query_is_asked_again_and_again(store: str) -> None:
    query = prepare(PREFIXED)
    assert rows(asked(recorded(store), query)) == FOUND
    assert rows(asked(recorded(store, [("acme", 2), ("acme", 1)]), query)) == [("acme", "2", "1")]


def test_rdflibs_own_result_can_hold_it(store: str) -> None:
    result = recorded(store).query(PREFIXED, processor="spaseq")
    assert not isinstance(result, SpaseqResult)
    assert rows(result) == FOUND


@pytest.mark.parametrize("query", [PREFIXED, prepare(PREFIXED), spaseq.prepare(PREFIXED)])
@pytest.mark.parametrize("method", ["query", "update"])
def test_spaseq_asked_as_sparql_says_what_to_do(store: str, method: str, query: str | spaseq.Query) -> None:
    with pytest.raises(spaseq.EngineError, match="processor='spaseq'"):
        getattr(recorded(store), method)(query)
    with pytest.raises(Exception, match=r"(?i)expected") as caught:
        getattr(recorded(store), method)("SELECT { SEQ(A) }")
    assert not isinstance(caught.value, spaseq.SpaseqError)


def test_the_query_of_the_engine_is_that_of_the_dataset(store: str) -> None:
    assert rows(asked(recorded(store), spaseq.prepare(PREFIXED))) == FOUND
    assert rows(recorded(store).query(spaseq.prepare(PREFIXED), processor="spaseq")) == FOUND
    engine = spaseq.Engine()
    handle = engine.register(prepare(PREFIXED))
    for tick, price in enumerate([2, 1]):
        engine.push(TRADES, f"<{E.acme}> <{E.price}> {price} .", tick)
    assert len(list(handle.matches())) == 1


def test_matches_come_from_our_processor_alone(store: str) -> None:
    with pytest.raises(spaseq.EngineError, match="processor='spaseq'"):
        recorded(store).query("SELECT * { ?s ?p ?o }", result="spaseq", use_store_provided=False)


def test_a_sparql_query_asked_as_spaseq_says_what_to_do(store: str) -> None:
    with pytest.raises(spaseq.EngineError, match=r"spaseq\.prepare"):
        asked(recorded(store), prepareQuery("SELECT * { ?s ?p ?o }"))
    with pytest.raises(spaseq.QuerySyntaxError, match="expected"):
        asked(recorded(store), "SELECT * { ?s ?p ?o }")


def test_sparql_still_goes_to_the_store(store: str) -> None:
    result = recorded(store).query("SELECT ?s { GRAPH <http://example.org/kb> { ?s ?p ?o } }")
    assert [row.s for row in result] == [E.acme]


# --- forms --------------------------------------------------------------------------------------


def test_ask(store: str) -> None:
    ask = PREFIXED.replace("SELECT ?company ?p1 ?p2", "ASK")
    assert bool(asked(recorded(store), ask)) is True
    result = asked(recorded(store, [("acme", 1)]), ask)
    assert (result.type, result.askAnswer) == ("ASK", False)


def test_construct(store: str) -> None:
    result = asked(recorded(store), CONSTRUCTED)
    assert result.type == "CONSTRUCT"
    assert result.graph is not None
    assert set(result.graph) == {
        (E.acme, E.fell, Literal(12)),
        (E.bolt, E.fell, Literal(2)),
        (E.acme, E.fell, Literal(19)),
    }
    assert set(result) == set(result.graph)
    assert b":fell 2" in (result.serialize(format="turtle") or b"")


def test_nothing_found_has_its_columns_all_the_same(store: str) -> None:
    result = asked(recorded(store, []))
    assert (len(result), result.vars) == (0, [Variable("company"), Variable("p1"), Variable("p2")])


def test_a_window_ends_with_the_stream(store: str) -> None:
    waits = PREFIXED.replace("SEQ(A , B)", "SEQ(A ; !B)").replace("?p1 ?p2", "?p1")
    assert rows(asked(recorded(store), waits))[-1] == ("bolt", "2")


# --- bindings and namespaces --------------------------------------------------------------------


def test_init_ns_adds_prefixes_and_those_of_the_query_win(store: str) -> None:
    assert rows(asked(recorded(store), FALLS, initNs={"": E})) == FOUND
    assert rows(asked(recorded(store), PREFIXED, initNs={"": "urn:other:"})) == FOUND
    assert rows(asked(recorded(store), prepare(FALLS, initNs={"": str(E)}))) == FOUND
    with pytest.raises(spaseq.QuerySyntaxError, match="prefix ':' is not declared"):
        asked(recorded(store), FALLS)


def test_the_datasets_own_namespaces_are_prefixes(store: str) -> None:
    dataset = recorded(store)
    dataset.bind("ex", E)
    assert rows(asked(dataset, FALLS.replace(":price", "ex:price"))) == FOUND


def test_base(store: str) -> None:
    assert rows(asked(recorded(store), FALLS.replace(":price", "<price>"), base=str(E))) == FOUND


def test_init_bindings_restrict(store: str) -> None:
    dataset = recorded(store)
    for key in ("company", Variable("company"), "?company"):
        assert rows(asked(dataset, initBindings={key: E.bolt})) == [("bolt", "3", "2")]
    assert rows(asked(dataset, prepare(PREFIXED), initBindings={"p1": Literal(14)})) == FOUND[:1]
    assert rows(asked(dataset, initBindings={"company": E.nobody})) == []
    assert rows(asked(dataset, initBindings={"unmentioned": E.nobody})) == FOUND


def test_init_bindings_are_substituted_before_the_sequence_is_matched(store: str) -> None:
    """``,`` means the very next event; what is restricted is each GPM, not the rows at the end."""
    prices = [("acme", 5), ("acme", 9), ("acme", 4), ("acme", 3)]
    query = PREFIXED.replace("A , B", "A ; B")
    assert ("acme", "5", "3") not in rows(asked(recorded(store, prices), query))
    assert rows(asked(recorded(store, prices), query, initBindings={"p2": Literal(3)})) == [
        ("acme", "4", "3"),
        ("acme", "5", "3"),
        ("acme", "9", "3"),
    ]


@pytest.mark.parametrize(
    ("where", "instead"),
    [
        ("FILTER(?p2 < ?p1)", "FILTER(?p2 < ?limit)"),  # a filter of a GPM
        ("FILTER(?p2 < ?p1) } }", "} FILTER(?p2 < ?limit) }"),  # of WHERE
    ],
)
def test_init_bindings_are_parameters(store: str, where: str, instead: str) -> None:
    text = PREFIXED.replace(where, instead)
    assert rows(asked(recorded(store), prepare(text), initBindings={"limit": Literal(3)})) == [
        ("bolt", "3", "2")
    ]
    with pytest.raises(spaseq.QueryMeaningError, match=r"no GPM binds \?limit"):
        asked(recorded(store), text)


def test_init_bindings_of_at_and_as(store: str) -> None:
    text = PREFIXED.replace("GPM A ON S", "GPM A ON S AT ?t AS ?g").replace("?p1 ?p2 W", "?p1 ?p2 ?t ?g W")
    assert rows(asked(recorded(store), text, initBindings={"g": E.e2, "t": Literal(2)})) == [
        ("bolt", "3", "2", "2", "e2")
    ]


def test_init_bindings_of_a_projected_parameter(store: str) -> None:
    text = PREFIXED.replace("?p1 ?p2 W", "?p1 ?p2 (?p1 * ?rate AS ?paid) W")
    assert rows(asked(recorded(store), text, initBindings={"rate": Literal(2)}))[0] == (*FOUND[0], "28")


def test_a_blank_node_cannot_be_bound(store: str) -> None:
    with pytest.raises(spaseq.EngineError, match=r"\?company is a blank node"):
        asked(recorded(store), initBindings={"company": BNode()})


# --- which events are whose ---------------------------------------------------------------------


TWO = """PREFIX : <http://example.org/>
SELECT ?p1 ?p2 WITHIN 40 MINUTES FROM STREAM S <http://example.org/north> FROM STREAM T <http://example.org/south>
WHERE { SEQ(A ; B) DEFINE GPM A ON S { ?c :price ?p1 } DEFINE GPM B ON T { ?c :price ?p2 } }"""


def test_streams_by_what_an_event_is_part_of(store: str) -> None:
    dataset = recorded(store)
    for n in range(6):
        part_of(dataset, f"e{n}", "north" if n % 2 == 0 else "south")
    assert rows(asked(dataset, TWO)) == [("14", "12"), ("20", "19"), ("3", "2")]


def test_an_event_may_be_of_two_streams(store: str) -> None:
    dataset = recorded(store, [("acme", 1), ("acme", 2)])
    for name in ("e0", "e1"):
        part_of(dataset, name, "north")
        part_of(dataset, name, "south")
    assert rows(asked(dataset, TWO)) == [("1", "2")]


def test_one_stream_and_no_word_of_streams(store: str) -> None:
    assert len(asked(recorded(store)).matches) == 3


def test_two_streams_and_no_word_of_streams(store: str) -> None:
    with pytest.raises(spaseq.SourceError, match=r"6 events .*isPartOf> <http://example.org/north> in the"):
        asked(recorded(store), TWO)


def test_events_that_belong_to_no_stream_are_not_silently_left_out(store: str) -> None:
    dataset = recorded(store)
    part_of(dataset, "e0", "trades")
    part_of(dataset, "e1", "trades")
    with pytest.warns(spaseq.SpaseqWarning, match="4 events of the dataset are part of no stream"):
        assert rows(asked(dataset)) == FOUND[:1]


def test_a_stream_that_the_dataset_does_not_have(store: str) -> None:
    dataset = recorded(store, [("acme", 1)])
    part_of(dataset, "e0", "trade")
    with pytest.warns(spaseq.SpaseqWarning, match=r"did you mean <http://example.org/trade>"):
        assert rows(asked(dataset)) == []


CATALOGUE = """
@prefix dcat: <http://www.w3.org/ns/dcat#> . @prefix vocals: <http://w3id.org/rsp/vocals#> .
<http://example.org/south> a vocals:RDFStream ; vocals:hasEndpoint [ dcat:accessURL <south.trig> ] .
"""
SOUTH = """
@prefix : <http://example.org/> . @prefix prov: <http://www.w3.org/ns/prov#> .
:s0 prov:generatedAtTime 7 .
GRAPH :s0 { :bolt :price "8" }
"""


def test_a_stream_of_the_catalogue_is_read_from_its_file(store: str, tmp_path: Path) -> None:
    (tmp_path / "catalog.ttl").write_text(CATALOGUE)
    (tmp_path / "south.trig").write_text(SOUTH)
    result = asked(recorded(store), TWO, catalog=tmp_path / "catalog.ttl")
    assert rows(result) == [("2", "8"), ("3", "8")]


# --- time ---------------------------------------------------------------------------------------


def test_events_are_in_the_order_of_their_times_not_of_their_names(store: str) -> None:
    dataset = Dataset(store=store)
    for name, price, time in [("a", 1, 9), ("b", 3, 5), ("c", 2, 7)]:
        event(dataset, name, "acme", price, time)
    assert rows(asked(dataset)) == [("acme", "2", "1"), ("acme", "3", "2")]


def test_bad_times_are_warned_of_and_kept(store: str) -> None:
    dataset = recorded(store)
    event(dataset, "bad", "acme", 1, "soon")
    with pytest.warns(spaseq.SpaseqWarning, match="1 events were not read.*neither an xsd:dateTime"):
        result = asked(dataset)
    assert rows(result) == FOUND
    assert [bad.stream for bad in result.rejected] == [str(E.trades)]
    with pytest.raises(spaseq.BadEventError):
        asked(dataset, strict=True)


def test_what_rdf_cannot_hold_is_warned_of_and_kept(store: str) -> None:
    if store == "Oxigraph":
        pytest.skip("Oxigraph refuses it before we see it")
    dataset = recorded(store)
    graph = Graph(store=dataset.store, identifier=E.bad)
    graph.add((E.acme, Literal("no predicate"), E.acme))  # type: ignore[arg-type]  # that is the point
    default_graph(dataset).add((E.bad, URIRef("http://www.w3.org/ns/prov#generatedAtTime"), Literal(3)))
    with pytest.warns(spaseq.SpaseqWarning, match="not an RDF triple"):
        result = asked(dataset)
    assert rows(result) == FOUND
    assert [bad.position for bad in result.rejected] == ["graph http://example.org/bad"]


# --- background graphs --------------------------------------------------------------------------

WITH_SECTOR = PREFIXED.replace(
    ":price ?p1 }", ":price ?p1 . GRAPH <http://example.org/kb> { ?company :sector ?s } }"
)


def test_background_graphs_are_the_datasets_own(store: str) -> None:
    assert rows(asked(recorded(store), WITH_SECTOR)) == FOUND[:2]


def test_background_graphs_may_be_given(store: str) -> None:
    kb = {str(E.kb): "<http://example.org/bolt> <http://example.org/sector> 'nuts' ."}
    assert rows(asked(recorded(store), WITH_SECTOR, kb=kb)) == FOUND[2:]


def test_a_variable_ranges_over_the_graphs_that_are_no_events(store: str) -> None:
    query = WITH_SECTOR.replace("<http://example.org/kb>", "?g").replace("?p1 ?p2 W", "?p1 ?g W")
    assert rows(asked(recorded(store), query)) == [("acme", "14", "kb"), ("acme", "20", "kb")]


def test_a_missing_background_graph(store: str) -> None:
    with pytest.raises(spaseq.KnowledgeError, match="other"):
        asked(recorded(store), WITH_SECTOR.replace("org/kb", "org/other"))


# --- what is no recorded stream -----------------------------------------------------------------


def test_a_single_graph_is_no_recorded_stream(store: str) -> None:
    with pytest.raises(spaseq.EngineError, match="one named graph per event"):
        asked(Graph(store=store))


def test_a_conjunctive_graph(store: str) -> None:
    if store == "Oxigraph":
        pytest.skip("ConjunctiveGraph is rdflib's past, and Oxigraph's neither")
    graph = ConjunctiveGraph()
    for tick, price in enumerate([3, 2]):
        name = E[f"e{tick}"]
        graph.get_context(name).add((E.acme, E.price, Literal(price)))
        graph.default_context.add((name, URIRef("http://www.w3.org/ns/prov#generatedAtTime"), Literal(tick)))
    assert rows(asked(graph)) == [("acme", "3", "2")]


# --- files --------------------------------------------------------------------------------------


def test_w3c_formats(store: str) -> None:
    result = asked(recorded(store))
    for form in ("json", "xml", "csv", "tsv"):
        text = result.serialize(format=form)
        assert text is not None
        again = Result.parse(io.BytesIO(text), format=form)
        assert again.vars == result.vars
        expected = [[str(term) for term in row] for row in result]
        assert [[str(term) for term in row] for row in again] == expected
    assert b"acme" in (result.serialize(format="txt") or b"")


def test_tsv_is_for_everybody(store: str, tmp_path: Path) -> None:
    result = recorded(store).query("SELECT ?s ?o ?x { GRAPH <http://example.org/kb> { ?s ?p ?o } }")
    result.serialize(str(tmp_path / "rows.tsv"), format="tsv")
    assert (tmp_path / "rows.tsv").read_text() == '?s\t?o\t?x\n<http://example.org/acme>\t"tools"\t\n'
    with pytest.raises(spaseq.FormatError, match="ASK"):
        recorded(store).query("ASK {}").serialize(format="tsv")


@pytest.mark.parametrize("query", [PREFIXED, CONSTRUCTED])
def test_ndjson(store: str, query: str, tmp_path: Path) -> None:
    result = asked(recorded(store), query)
    text = result.serialize(format="ndjson")
    assert text is not None
    first, *_ = lines = [json.loads(line) for line in text.splitlines()]
    assert len(lines) == 3
    assert (first["start"], first["end"]) == (0, 1)
    assert [event["graph"] for event in first["events"]["A"]] == [str(E.e0)]
    result.serialize(str(tmp_path / "matches.ndjson"), format="ndjson")
    assert (tmp_path / "matches.ndjson").read_bytes() == text
    out = io.BytesIO()
    result.serialize(out, format="ndjson")
    assert out.getvalue() == text


def test_messages_of_construct_are_a_stream_again(store: str) -> None:
    text = asked(recorded(store), CONSTRUCTED).serialize(format="messages")
    assert text is not None
    assert b"wasDerivedFrom> <http://example.org/e0>" in text
    stream = NamedNode(str(E.falls))
    bad: list[spaseq.BadEvent] = []
    options = SourceOptions(format="messages")
    batches = list(open_source(io.BytesIO(text), stream, Dictionary(), options, on_bad=bad.append))
    assert [int(time) for batch in batches for time in batch.time] == [1, 3, 5]
    assert bad == []


def test_formats_that_cannot_hold_it(store: str) -> None:
    with pytest.raises(spaseq.FormatError, match="only CONSTRUCT"):
        asked(recorded(store)).serialize(format="messages")
    with pytest.raises(spaseq.FormatError, match="processor='spaseq'"):
        recorded(store).query("SELECT * {}").serialize(format="ndjson")
    with pytest.raises(spaseq.FormatError, match="UTF-8"):
        asked(recorded(store)).serialize(format="ndjson", encoding="latin-1")


def test_aggregates_over_loops(store: str) -> None:
    """PREV inside an aggregate, PREV of an aggregate, and an iteration without a value."""
    text = (
        PREFIXED[: PREFIXED.index("SELECT")]
        + """
        SELECT (SUM(?p - PREV(?p)) AS ?steps) (COUNT(?p) AS ?n) WITHIN 40 MINUTES
        FROM STREAM S <http://example.org/trades>
        WHERE { SEQ(A{2}[,]) DEFINE GPM A ON S { ?c :price ?any OPTIONAL { ?c :price ?p FILTER(?p > 2) }
          FILTER(COALESCE(?p, 0) <= PREV(MAX(?p))) } }"""
    )
    found = rows(asked(recorded(store), text))
    assert found == [("-1", "2"), ("-2", "2"), ("-9", "2"), ("0", "1")]
