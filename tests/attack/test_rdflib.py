"""Inside rdflib: programs that call it in every way, threads, what it writes, what it cannot convert."""

from __future__ import annotations

import logging
import random
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from io import BytesIO
from typing import Any

import pyoxigraph as ox
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rdflib import XSD, Dataset, Graph, Literal, URIRef, plugin
from rdflib.plugins.sparql import prepareQuery
from rdflib.query import Result
from rdflib.store import Store

import spaseq
from spaseq.rdf import Service, connect, register
from spaseq.rdf.services import SERVICES
from spaseq.terms.interop import to_rdflib
from tests.conftest import examples
from tests.rdf import trades
from tests.rdf.trades import CONSTRUCTED, PREFIXED, STORES, TRADES, E, recorded

pytestmark = trades.pytestmark

NAMES = "PREFIX : <http://example.org/>\nPREFIX spaseq: <https://w3id.org/spaseq#>\n"
NAMES += "PREFIX prov: <http://www.w3.org/ns/prov#>\n"


def trade(engine: spaseq.Engine, tick: int, price: int, company: str = "acme") -> None:
    engine.push(TRADES, f"<{E[company]}> <{E.price}> {price} .", tick, name=E[f"e{tick}"])


# --- programs that call rdflib ------------------------------------------------------------------


@pytest.mark.parametrize("store", STORES)
def test_every_parameter_by_its_name_and_by_its_place(store: str) -> None:
    dataset = Dataset(store=store)
    graph = dataset.graph(E.g)
    graph.add((E.a, E.b, Literal(1)))
    where = "{ GRAPH :g { ?s ?p ?o } }"
    given: dict[str, Any] = {
        "query_object": f"SELECT ?o {where}",
        "processor": "sparql",
        "result": "sparql",
        "initNs": {"": str(E)},
        "initBindings": {"s": E.a},
        "use_store_provided": False,
    }
    asked = [dataset.query(**given), dataset.query(*given.values()), Dataset.query(self=dataset, **given)]
    for result in asked:
        assert isinstance(result, Result)
        assert [row.o.toPython() for row in result] == [1]
    given = {
        "update_object": f"DELETE {where.replace('?o', '1')} WHERE {where}",
        "processor": "sparql",
        "initNs": {"": str(E)},
        "initBindings": {"s": E.a},
        "use_store_provided": False,
    }
    dataset.update(**given)
    assert len(graph) == 0
    dataset.update(*given.values())
    with pytest.raises(TypeError):
        dataset.query(text="ASK {}")  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        dataset.query()  # type: ignore[call-arg]


def test_a_class_of_their_own() -> None:
    """Who overrides ``query`` and calls rdflib's is left as they are."""

    class Logged(Dataset):
        def query(self, query_object: Any, *args: Any, **kwargs: Any) -> Result:
            seen.append(query_object)
            return super().query(query_object, *args, **kwargs)

    seen: list[object] = []
    dataset = Logged()
    assert dataset.query("ASK {}").askAnswer
    assert dataset.query(query_object=prepareQuery("ASK {}")).askAnswer
    assert len(seen) == 2


def test_every_store_that_there_is_can_be_opened() -> None:
    """As rdflib's own tests do; ours is one of them once a program has asked for it."""
    names = {found.name for found in plugin.plugins(None, Store)}
    assert "spaseq-window" in names
    dataset = Dataset(store="spaseq-window")
    with pytest.warns(spaseq.SpaseqWarning, match="no query is registered"):
        dataset.open("some/path", create=True)
    assert len(dataset) == 0
    assert list(dataset.quads()) == []
    dataset.bind("e", E)
    assert dict(dataset.namespaces())["e"] == URIRef(E)
    dataset.commit()
    dataset.close()


@pytest.mark.parametrize("store", STORES)
def test_every_form_of_spaseq_as_sparql_says_what_it_is(store: str) -> None:
    for text in (PREFIXED, CONSTRUCTED, "REGISTER QUERY <urn:q> AS " + PREFIXED, PREFIXED.lower()):
        with pytest.raises(spaseq.EngineError, match="processor='spaseq'"):
            recorded(store).query(text)


# --- threads ------------------------------------------------------------------------------------


@pytest.fixture
def switching() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


ONE = f"""PREFIX : <{E}> SELECT ?company ?p WITHIN 20 EVENTS SLIDING
FROM STREAM S <{TRADES}> WHERE {{ SEQ(A) DEFINE GPM A ON S {{ ?company :price ?p }} }}"""


@pytest.mark.usefixtures("switching")
def test_services_are_asked_while_events_come() -> None:
    """Each answer is of one moment: no match without its description, never more than are kept."""
    engine = spaseq.Engine()
    whole = NAMES + "SELECT ?p ?match ?e { SERVICE <urn:x-spaseq:busy> { ?match spaseq:matchedEvent ?e } }"
    torn = NAMES + "ASK { SERVICE <urn:x-spaseq:busy> { FILTER NOT EXISTS { ?match spaseq:start ?t } } }"
    done = threading.Event()
    prepared = prepareQuery(whole), prepareQuery(whole)  # rdflib's parser is for one thread

    def ask(number: int) -> int:
        dataset, asked = Dataset(), 0
        query: Any = prepared[number] if number < 2 else whole
        while not done.is_set() or not asked:
            found = [row.p.toPython() for row in dataset.query(query)]
            assert len(found) <= 7
            assert found == list(range(found[0], found[0] + len(found))) if found else True
            assert not dataset.query(torn).askAnswer
            asked += 1
        return asked

    with register(engine, ONE, "busy", keep=7), ThreadPoolExecutor(4) as pool:
        asking = [pool.submit(ask, n) for n in range(4)]
        try:
            for tick in range(300):
                trade(engine, tick, tick)
        finally:
            done.set()
        assert min(future.result(60) for future in asking) >= 1


@pytest.mark.usefixtures("switching")
def test_two_services_in_two_orders_do_not_wait_for_each_other() -> None:
    engine = spaseq.Engine()
    with register(engine, ONE, "one"), register(engine, ONE.replace("?p", "?q"), "two"):
        for tick in range(5):
            trade(engine, tick, tick)

        def ask(first: str, then: str) -> list[int]:
            text = f"SELECT * {{ SERVICE <urn:x-spaseq:{first}> {{}} SERVICE <urn:x-spaseq:{then}> {{}} }}"
            return [len(Dataset().query(text)) for _ in range(10)]

        with ThreadPoolExecutor(2) as pool:
            both = [pool.submit(ask, "one", "two"), pool.submit(ask, "two", "one")]
            assert [future.result(60) for future in both] == [[25] * 10] * 2


@pytest.mark.usefixtures("switching")
def test_a_name_is_taken_by_one_of_many() -> None:
    engine = spaseq.Engine()
    together = threading.Barrier(8)

    def take(_: int) -> Service | None:
        together.wait()
        try:
            return register(engine, ONE, "wanted")
        except spaseq.EngineError:  # there is a service of that name
            return None

    with ThreadPoolExecutor(8) as pool:
        for _ in range(10):
            (service,) = (s for s in pool.map(take, range(8)) if s is not None)
            service.close()
    assert "wanted" not in SERVICES


@pytest.mark.usefixtures("switching")
@pytest.mark.parametrize("within", ["20 EVENTS SLIDING", "20 SECONDS SLIDING", "20 SECONDS"])
def test_the_window_is_looked_at_while_events_come(within: str) -> None:
    engine = spaseq.Engine()
    done = threading.Event()
    said = NAMES + "SELECT ?t { ?g prov:generatedAtTime ?t }"
    queries = [prepareQuery(said) for _ in range(3)]  # rdflib's parser is for one thread

    def look(number: int) -> int:
        dataset, looks = Dataset(store="spaseq-window"), 0
        dataset.open("busy")
        while not done.is_set() or not looks:
            times = [row.t.toPython() for row in dataset.query(queries[number])]
            assert sorted(times) == list(range(min(times), max(times) + 1)) if times else True
            assert len(times) <= 22
            looks += 1
        return looks

    with register(engine, ONE.replace("20 EVENTS SLIDING", within), "busy"), ThreadPoolExecutor(3) as pool:
        looking = [pool.submit(look, n) for n in range(3)]
        try:
            for tick in range(300):
                trade(engine, tick, tick)
        finally:
            done.set()
        assert min(future.result(60) for future in looking) >= 1


@pytest.mark.usefixtures("switching")
@pytest.mark.parametrize("query", [PREFIXED, spaseq.prepare(PREFIXED)])
def test_recorded_streams_are_asked_by_several_threads(query: Any) -> None:
    dataset = recorded("Memory")

    def ask(_: int) -> int:
        return len(dataset.query(query, processor="spaseq", result="spaseq"))

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(ask, range(12))) == [3] * 12


# --- queries that fail --------------------------------------------------------------------------


@pytest.mark.parametrize("store", STORES)
def test_a_service_whose_query_failed_says_so(store: str) -> None:
    """Its matches are not all that there are: an answer of them would be wrong without a word."""
    engine = spaseq.Engine(limits=spaseq.Limits(held_events=5), lateness=timedelta(seconds=10))
    dataset = Dataset(store=store)
    with register(engine, PREFIXED, "limited") as service:
        for tick in (1, 2, 20):
            trade(engine, tick, 30 - tick)
        assert len(service) == 1
        for tick in range(21, 25):
            trade(engine, tick, 30 - tick)
        with pytest.warns(spaseq.SpaseqWarning, match="held_events"):
            trade(engine, 25, 1)
        with pytest.raises(spaseq.LimitError, match="held_events=5"):
            list(dataset.query("SELECT * { SERVICE <urn:x-spaseq:limited> {} }"))
        assert (
            len(dataset.query("SELECT * { SERVICE SILENT <urn:x-spaseq:limited> {} }")) == len(service) >= 1
        )


# --- what rdflib writes -------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["trig", "nquads", "json-ld", "jelly"])
@given(
    prices=st.lists(st.tuples(st.sampled_from(["acme", "bolt"]), st.integers(1, 9)), min_size=1, max_size=12),
    store=st.sampled_from(STORES),
    seed=st.integers(0, 2**32),
)
@settings(max_examples=examples(30))
def test_what_rdflib_writes_is_read_whole(
    form: str, prices: list[tuple[str, int]], store: str, seed: int
) -> None:
    ticks = random.Random(seed).sample(range(100), len(prices))
    dataset = Dataset(store=store)
    for tick, (company, price) in zip(ticks, prices, strict=True):
        trades.event(dataset, f"e{tick}", company, price, tick)
    expected = dataset.query(PREFIXED, processor="spaseq", result="spaseq").matches  # type: ignore[attr-defined]
    text = dataset.serialize(format=form, encoding="utf-8")
    options = spaseq.SourceOptions(format={"nquads": "nq", "json-ld": "jsonld"}.get(form, form), order="time")
    bad: list[spaseq.BadEvent] = []
    source = spaseq.Source(TRADES, BytesIO(text), options)
    found = list(spaseq.run(PREFIXED, {"S": source}, dead_letters=bad.append))
    assert bad == []
    assert [(m.start, m.end, m.bindings) for m in found] == [(m.start, m.end, m.bindings) for m in expected]


def test_two_times_of_an_event_are_told_as_such() -> None:
    text = f"<{E.a}> <{E.b}> 1 ."
    stamps = "".join(f"<{E.g}> <http://www.w3.org/ns/prov#generatedAtTime> {tick} ." for tick in (1, 2))
    bad: list[spaseq.BadEvent] = []
    source = spaseq.Source(
        TRADES, BytesIO(f"{stamps} <{E.g}> {{ {text} }}".encode()), spaseq.SourceOptions("trig")
    )
    with pytest.raises(spaseq.SourceError, match="two different times: 1 and 2"):  # nothing else was there
        list(spaseq.run(PREFIXED, {"S": source}, dead_letters=bad.append))
    assert [event.reason for event in bad] == ["it has two different times: 1 and 2"]


# --- what rdflib cannot convert -----------------------------------------------------------------


@pytest.mark.parametrize("datatype", ["integer", "dateTime", "boolean", "decimal", "double", "date", "gYear"])
def test_an_ill_typed_literal_is_passed_on_without_a_word(
    datatype: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """rdflib logs a traceback whenever it makes one itself; whatever makes rdflib's terms here does not."""
    ill = to_rdflib(ox.Literal("none", datatype=ox.NamedNode(XSD[datatype])))
    engine = spaseq.Engine()
    live, window = Dataset(), Dataset(store="spaseq-window")
    constructed = ONE.replace("SELECT ?company ?p", "CONSTRUCT { ?company :had ?p }")
    matches: list[spaseq.Match] = []
    with (
        caplog.at_level(logging.DEBUG, "rdflib"),
        register(engine, ONE, "ill", on_match=matches.append),
        connect(live, engine) as connection,
    ):
        results = connection.register(constructed)
        window.open("ill")
        engine.push(TRADES, f"<{E.acme}> <{E.price}> 'none'^^<{XSD[datatype]}> .", 1, name=E.e1)
        (match,) = matches
        assert match.bindings[0]["p"] == ill
        assert len(list(results)) == 1
        (row,) = live.query(
            "SELECT * { SERVICE <urn:x-spaseq:ill> { ?match ?x ?y FILTER(isIRI(?x)) } } LIMIT 1"
        )
        assert row.p == ill
        assert list(Graph(store=window.store, identifier=E.e1).objects()) == [ill]
        result = window.query(ONE, processor="spaseq", result="spaseq")
        assert [row.p for row in result] == [ill]
        for form in ("ndjson", "tsv", "json", "xml", "csv"):
            result.serialize(format=form)
        graph = window.query(constructed, processor="spaseq", result="spaseq")
        graph.serialize(format="messages")
        assert repr(match)
    assert [record.getMessage() for record in caplog.records] == []
    assert "Traceback" not in capfd.readouterr().err
