"""``spaseq.rdf.connect``: events that are added to a dataset, matches that appear in it, on both stores."""

from __future__ import annotations

import threading
from datetime import UTC, datetime

import pytest
from rdflib import BNode, Dataset, Graph, Literal, URIRef
from rdflib.namespace import PROV, RDF

import spaseq
from spaseq.rdf import connect
from tests.rdf import trades
from tests.rdf.trades import (
    CONSTRUCTED,
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

TRIG = """@prefix : <http://example.org/> . @prefix prov: <http://www.w3.org/ns/prov#> .
:e1 prov:generatedAtTime 1 . GRAPH :e1 { :acme :price 5 }
GRAPH :e2 { :acme :price 4 }  :e2 prov:generatedAtTime 2 .
:e3 prov:generatedAtTime 3 . :e3 a :Trade . GRAPH :e3 { :acme :price 3 }
"""


def found(results: spaseq.rdf.Results) -> list[tuple[object, object]]:
    return [(match.start, match.end) for match in results]


# --- events -------------------------------------------------------------------------------------


def test_an_event_is_pushed_when_its_time_is_said(store: str) -> None:
    dataset, engine = Dataset(store=store), spaseq.Engine()
    with connect(dataset, engine, stream=TRADES) as connection:
        results = connection.register(PREFIXED)
        seen = []
        for tick, price in enumerate([3, 2, 1]):
            event(dataset, f"e{tick}", "acme", price, tick)
            seen.append(found(results))
        assert seen == [[], [(0, 1)], [(1, 2)]]
        event(dataset, "e3", "acme", 0, 3)
        assert found(results) == [(2, 3)]
        assert (connection.pushed, engine.events, engine.bad) == (4, 4, 0)


def test_a_match_knows_the_graphs_of_its_events(store: str) -> None:
    dataset, engine = Dataset(store=store), spaseq.Engine()
    with connect(dataset, engine, stream=TRADES) as connection:
        results = connection.register(PREFIXED)
        for tick, price in enumerate([3, 2]):
            event(dataset, f"e{tick}", "acme", price, tick)
        (match,) = results
        (first,) = match.events["A"]
        assert (first.graph, first.stream) == (E.e0, URIRef(TRADES))


def test_a_time_that_is_said_first_announces_the_event(store: str) -> None:
    dataset, engine = Dataset(store=store), spaseq.Engine()
    with connect(dataset, engine, stream=TRADES) as connection:
        results = connection.register(PREFIXED)
        pushed = []
        for tick in range(3):
            default_graph(dataset).add((E[f"e{tick}"], PROV.generatedAtTime, Literal(tick)))
            event(dataset, f"e{tick}", "acme", 9 - tick)
            pushed.append(connection.pushed)
        assert (pushed, found(results)) == ([0, 1, 2], [(0, 1)])
        connection.flush()
        assert (connection.pushed, found(results)) == (3, [(1, 2)])
        connection.flush()
        assert connection.pushed == 3


def test_times_that_are_all_said_first_wait_for_flush(store: str) -> None:
    dataset, engine = Dataset(store=store), spaseq.Engine()
    with connect(dataset, engine, stream=TRADES) as connection:
        results = connection.register(PREFIXED)
        for tick in (2, 1):
            default_graph(dataset).add((E[f"e{tick}"], PROV.generatedAtTime, Literal(tick)))
        for tick in (2, 1):
            event(dataset, f"e{tick}", "acme", 9 - tick)
        assert (connection.pushed, found(results)) == (0, [])
        connection.flush()
        assert (connection.pushed, found(results)) == (2, [(1, 2)])


def test_a_file_in_any_order_is_pushed_by_the_end_of_with(store: str) -> None:
    dataset, engine = Dataset(store=store), spaseq.Engine()
    handle = engine.register(PREFIXED.replace("A , B", "A : B"))
    with connect(dataset, engine, stream=TRADES):
        dataset.parse(data=TRIG, format="trig")
    engine.close()
    assert sorted((m.start, m.end) for m in handle.matches()) == [(1, 2), (1, 3), (2, 3)]
    assert engine.late == 0


def test_an_event_all_at_once(store: str) -> None:
    dataset, engine = Dataset(store=store), spaseq.Engine()
    with connect(dataset, engine) as connection:
        results = connection.register(PREFIXED)
        moments = [datetime(2026, 5, 1, 12, minute, tzinfo=UTC) for minute in (0, 1)]
        for moment, price in zip(moments, [2, 1], strict=True):
            with connection.event(E[f"e{price}"], moment, TRADES) as graph:
                graph.add((E.acme, E.price, Literal(price)))
                assert connection.pushed == 2 - price
        assert found(results) == [tuple(moments)]
        assert (E.e1, None, Literal(moments[1])) in default_graph(dataset)
        with pytest.raises(ZeroDivisionError), connection.event("http://example.org/e9", 9, TRADES):
            raise ZeroDivisionError
        assert connection.pushed == 2


def test_streams_by_what_an_event_is_part_of(store: str) -> None:
    dataset, engine = Dataset(store=store), spaseq.Engine()
    with connect(dataset, engine) as connection:
        results = connection.register(PREFIXED)
        for tick, price in enumerate([3, 2]):
            part_of(dataset, f"e{tick}", "trades")
            event(dataset, f"e{tick}", "acme", price, tick)
        assert found(results) == [(0, 1)]


def test_what_was_there_before_is_no_event(store: str) -> None:
    dataset, engine = recorded(store), spaseq.Engine()
    with connect(dataset, engine, stream=TRADES) as connection:
        connection.register(PREFIXED)
        connection.flush()
        assert connection.pushed == 0
    assert len(default_graph(dataset)) == 6


def test_after_close_nothing_is_pushed(store: str) -> None:
    dataset, engine = Dataset(store=store), spaseq.Engine()
    connection = connect(dataset, engine, stream=TRADES)
    connection.close()
    connection.close()
    event(dataset, "e1", "acme", 1, 1)
    assert engine.events == 0


def test_a_single_graph_speaks_for_its_store(store: str) -> None:
    graph, engine = Graph(store=store), spaseq.Engine()
    with connect(graph, engine, stream=TRADES) as connection:
        results = connection.register(PREFIXED)
        for tick, price in enumerate([3, 2]):
            Graph(store=graph.store, identifier=E[f"e{tick}"]).add((E.acme, E.price, Literal(price)))
            graph.add((E[f"e{tick}"], PROV.generatedAtTime, Literal(tick)))
        assert found(results) == [(0, 1)]


def test_callbacks_may_add_events(store: str) -> None:
    dataset, engine = Dataset(store=store), spaseq.Engine()
    with connect(dataset, engine, stream=TRADES) as connection:
        seen: list[object] = []

        def again(match: spaseq.Match) -> None:
            seen.append(match.end)
            if len(seen) < 5:
                event(dataset, f"next{len(seen)}", "acme", 9 - len(seen), 10 + len(seen))

        connection.register(PREFIXED, on_match=again)
        event(dataset, "e0", "acme", 10, 0)
        event(dataset, "e1", "acme", 9, 1)
        assert seen == [1, 11, 12, 13, 14]


# --- what is wrong ------------------------------------------------------------------------------


def test_an_event_without_a_stream(store: str) -> None:
    dataset, engine = Dataset(store=store), spaseq.Engine()
    with connect(dataset, engine) as connection:
        with pytest.warns(spaseq.SpaseqWarning, match=r"e1 is not an event: it is in no stream.*stream="):
            event(dataset, "e1", "acme", 1, 1)
        assert [bad.position for bad in connection.rejected] == ["graph http://example.org/e1"]
        assert connection.pushed == 0


def test_a_time_that_is_none(store: str) -> None:
    dataset, engine = Dataset(store=store), spaseq.Engine()
    with connect(dataset, engine, stream=TRADES) as connection:
        with pytest.warns(spaseq.SpaseqWarning, match="neither an xsd:dateTime"):
            event(dataset, "e1", "acme", 1, "soon")
        assert [(bad.stream, bad.payload) for bad in connection.rejected] == [(TRADES, "soon")]


def test_late_events_are_the_engines(store: str) -> None:
    dataset, engine = Dataset(store=store), spaseq.Engine()
    with connect(dataset, engine, stream=TRADES) as connection:
        connection.register(PREFIXED)
        event(dataset, "e2", "acme", 1, 2)
        with pytest.warns(spaseq.SpaseqWarning, match="a late event is left out"):
            event(dataset, "e1", "acme", 1, 1)
        assert engine.late == 1


def test_a_graph_that_goes_on_is_warned_of(store: str) -> None:
    dataset, engine = Dataset(store=store), spaseq.Engine()
    with connect(dataset, engine, stream=TRADES) as connection:
        connection.register(PREFIXED)
        event(dataset, "e1", "acme", 1, 1)
        with pytest.warns(spaseq.SpaseqWarning, match=r"e1> goes on after it was pushed"):
            event(dataset, "e1", "acme", 2)


def test_a_store_without_named_graphs(store: str) -> None:  # noqa: ARG001
    with pytest.raises(spaseq.EngineError, match="SimpleMemory holds no named graphs"):
        connect(Graph(store="SimpleMemory"), spaseq.Engine())
    with pytest.raises(spaseq.EngineError, match="keep=0"):
        connect(Dataset(), spaseq.Engine(), keep=0)


# --- matches ------------------------------------------------------------------------------------


def test_matches_of_construct_are_named_graphs(store: str) -> None:
    dataset, engine = Dataset(store=store), spaseq.Engine()
    stream = f"REGISTER STREAM <{E.falls}> AS CONSTRUCT"
    with connect(dataset, engine, stream=TRADES) as connection:
        results = connection.register(CONSTRUCTED.replace("CONSTRUCT", stream))
        for tick, price in enumerate([3, 2, 1]):
            event(dataset, f"e{tick}", "acme", price, tick)
        assert connection.pushed == 3  # what is written for a match is no event
        assert found(results) == [(0, 1), (1, 2)]
    query = """PREFIX prov: <http://www.w3.org/ns/prov#> PREFIX dcterms: <http://purl.org/dc/terms/>
        SELECT ?match ?price ?t ?e { GRAPH ?match { ?c <http://example.org/fell> ?price }
            ?match prov:generatedAtTime ?t ; prov:wasDerivedFrom ?e ; dcterms:isPartOf <http://example.org/falls>
        }"""
    rows = list(dataset.query(query))
    assert sorted((row.price.toPython(), row.t.toPython(), row.e) for row in rows) == [
        (1, 2, E.e1),
        (1, 2, E.e2),
        (2, 1, E.e0),
        (2, 1, E.e1),
    ]
    matches = {row.match for row in rows}
    assert all(isinstance(match, BNode) for match in matches)
    ours = URIRef("https://w3id.org/spaseq#Match")
    assert set(default_graph(dataset).subjects(RDF.type, ours)) == matches


def test_results_hold_the_newest_and_count_the_others(store: str) -> None:
    dataset, engine = Dataset(store=store), spaseq.Engine()
    with connect(dataset, engine, stream=TRADES, keep=2) as connection:
        results = connection.register(PREFIXED.replace("A , B", "A : B"))
        for tick, price in enumerate([3, 2, 1]):
            event(dataset, f"e{tick}", "acme", price, tick)
        assert (len(results), results.dropped) == (2, 1)
        assert len(found(results)) == 2
        assert (len(results), found(results)) == (0, [])


@pytest.mark.filterwarnings("ignore:.*GPM B is never used")
def test_results_are_taken_by_another_thread(store: str) -> None:
    dataset, engine = Dataset(store=store), spaseq.Engine()
    with connect(dataset, engine, stream=TRADES) as connection:
        results = connection.register(PREFIXED.replace("A , B", "A").replace("?p1 ?p2", "?p1"))
        taken: list[object] = []
        done = threading.Event()

        def take() -> None:
            while not done.is_set() or len(results):
                taken.extend(match.end for match in results)

        reader = threading.Thread(target=take)
        reader.start()
        for tick in range(100):
            event(dataset, f"e{tick}", "acme", 1, tick)
        done.set()
        reader.join()
        assert taken == list(range(100))
        assert results.dropped == 0
