"""The store ``spaseq-window``: what is in a query's window now, as named graphs."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import NamedNode
from rdflib import Dataset, Graph, Literal, URIRef
from rdflib.graph import DATASET_DEFAULT_GRAPH_ID
from rdflib.namespace import DCTERMS, PROV

import spaseq
from spaseq.events import BatchBuilder, Clock
from spaseq.matching.model import stream_window
from spaseq.rdf import register
from spaseq.rdf._quads import QuadStore
from spaseq.rdf.window import Recent
from spaseq.terms.dictionary import Dictionary
from tests.rdf import trades
from tests.rdf.trades import PREFIXED, TRADES, E, default_graph

pytestmark = trades.pytestmark


@pytest.fixture
def engine() -> spaseq.Engine:
    return spaseq.Engine()


def trade(
    engine: spaseq.Engine, time: int | datetime, name: str, price: int = 1, stream: str = TRADES
) -> None:
    engine.push(stream, f"<{E.acme}> <{E.price}> {price} .", time, name=E[name])


def window(
    engine: spaseq.Engine, within: str = "10 SECONDS SLIDING", query: str = PREFIXED
) -> Iterator[Dataset]:
    """A dataset that shows the window of a query; the service ends with the test."""
    with register(engine, query.replace("40 MINUTES", within), "shown"):
        dataset = Dataset(store="spaseq-window")
        dataset.open("shown")
        yield dataset


def names(dataset: Dataset) -> list[str]:
    return sorted(
        str(graph.identifier).removeprefix(E)
        for graph in dataset.graphs()
        if graph.identifier != DATASET_DEFAULT_GRAPH_ID
    )


def test_sliding(engine: spaseq.Engine) -> None:
    for dataset in window(engine, "10 SECONDS SLIDING"):
        seen = []
        for tick in (1, 5, 11, 12, 30):
            trade(engine, tick, f"e{tick}")
            seen.append(names(dataset))
        assert seen == [["e1"], ["e1", "e5"], ["e1", "e11", "e5"], ["e11", "e12", "e5"], ["e30"]]


def test_tumbling(engine: spaseq.Engine) -> None:
    for dataset in window(engine, "10 SECONDS"):
        seen = []
        for tick in (1, 10, 11, 20, 21):
            trade(engine, tick, f"e{tick}")
            seen.append(names(dataset))
        assert seen == [["e1"], ["e1", "e10"], ["e11"], ["e11", "e20"], ["e21"]]


def test_events_are_counted(engine: spaseq.Engine) -> None:
    for dataset in window(engine, "2 EVENTS"):
        seen = []
        for tick in range(5):
            trade(engine, tick, f"e{tick}")
            seen.append(names(dataset))
        assert seen == [["e0"], ["e0", "e1"], ["e2"], ["e2", "e3"], ["e4"]]


def test_instants(engine: spaseq.Engine) -> None:
    for dataset in window(engine, "10 MINUTES SLIDING"):
        start = datetime(2026, 1, 1, tzinfo=UTC)
        for minutes in (0, 10, 11):
            trade(engine, start + timedelta(minutes=minutes), f"e{minutes}")
        assert names(dataset) == ["e10", "e11"]
        assert (E.e11, PROV.generatedAtTime, Literal(start + timedelta(minutes=11))) in default_graph(dataset)


def test_events_and_what_is_said_of_them(engine: spaseq.Engine) -> None:
    for dataset in window(engine):
        trade(engine, 1, "e1", 7)
        engine.push(TRADES, f"<{E.bolt}> <{E.price}> 8 .", 2)  # without a name
        trade(engine, 3, "e1", 9)  # a name again
        assert len(names(dataset)) == 2
        assert set(Graph(store=dataset.store, identifier=E.e1)) == {
            (E.acme, E.price, Literal(7)),
            (E.acme, E.price, Literal(9)),
        }
        said = default_graph(dataset)
        assert set(said.objects(E.e1, PROV.generatedAtTime)) == {Literal(1), Literal(3)}
        assert set(said.objects(None, DCTERMS.isPartOf)) == {URIRef(TRADES)}
        trade(engine, 12, "e12")
        assert set(Graph(store=dataset.store, identifier=E.e1)) == {(E.acme, E.price, Literal(9))}


def test_sparql_over_what_is_in_the_window_now(engine: spaseq.Engine) -> None:
    for dataset in window(engine):
        for tick, price in enumerate([5, 7, 6]):
            trade(engine, tick, f"e{tick}", price)
        query = """PREFIX : <http://example.org/> PREFIX prov: <http://www.w3.org/ns/prov#>
            SELECT ?g ?p ?t { ?g prov:generatedAtTime ?t GRAPH ?g { ?c :price ?p FILTER(?p > 5) } }
            ORDER BY ?p"""
        rows = [(row.g, row.p.toPython(), row.t.toPython()) for row in dataset.query(query)]
        assert rows == [(E.e2, 6, 2), (E.e1, 7, 1)]


def test_a_window_is_a_recorded_stream(engine: spaseq.Engine) -> None:
    for dataset in window(engine, "3 SECONDS SLIDING"):
        for tick, price in enumerate([9, 8, 7, 9, 8]):
            trade(engine, tick, f"e{tick}", price)
        result = dataset.query(PREFIXED, processor="spaseq", result="spaseq")
        assert [(match.start, match.end) for match in result.matches] == [(1, 2), (3, 4)]


def test_several_streams(engine: spaseq.Engine) -> None:
    both = PREFIXED.replace("WHERE", "FROM STREAM T <http://example.org/quotes> WHERE").replace(
        "B ON S", "B ON S, T"
    )
    for dataset in window(engine, query=both):
        trade(engine, 1, "e1")
        trade(engine, 1, "q1", stream=str(E.quotes))
        assert names(dataset) == ["e1", "q1"]
        assert set(default_graph(dataset).objects(E.q1, DCTERMS.isPartOf)) == {E.quotes}


TRIPLE = (E.a, E.b, E.c)


def test_writing_is_refused(engine: spaseq.Engine) -> None:
    for dataset in window(engine):
        trade(engine, 1, "e1")
        for write in (
            lambda d: d.add(TRIPLE),
            lambda d: d.graph(E.e1).add(TRIPLE),
            lambda d: d.remove((None, None, None)),
            lambda d: d.remove_graph(E.e1),
            lambda d: d.addN([(*TRIPLE, d.graph(E.e1))]),
            lambda d: d.parse(data="<urn:a> <urn:b> <urn:c> .", format="turtle"),
            lambda d: d.update("INSERT DATA { <urn:a> <urn:b> <urn:c> }"),
        ):
            with pytest.raises(spaseq.EngineError, match="push events to the engine"):
                write(dataset)
        assert len(dataset.graph(E.e1)) == 1


def test_names_and_what_is_wrong_with_them(engine: spaseq.Engine) -> None:
    for shown in window(engine):
        with pytest.raises(spaseq.EngineError, match="already"):
            shown.open("shown")
        dataset = Dataset(store="spaseq-window")
        assert names(dataset) == []
        dataset.open("urn:x-spaseq:shown")
        trade(engine, 1, "e1")
        shown.close()
        trade(engine, 2, "e2")
        assert (names(shown), names(dataset)) == ([], ["e1", "e2"])
        shown.open("shown")
        assert names(shown) == ["e1", "e2"]


def test_a_strange_name_is_an_empty_store(engine: spaseq.Engine) -> None:
    """Until a query is registered under it; and read-only as any other."""
    for _ in window(engine):
        dataset = Dataset(store="spaseq-window")
        with pytest.warns(spaseq.SpaseqWarning, match=r"'show'.* did you mean 'shown'\?.*are now: shown"):
            dataset.open("show", create=True)
        assert (len(dataset), names(dataset), list(dataset.query("SELECT * { ?s ?p ?o }"))) == (0, [], [])
        with pytest.raises(spaseq.EngineError, match="push events to the engine"):
            dataset.graph(E.e1).add(TRIPLE)
        with register(engine, PREFIXED, "show"):
            trade(engine, 1, "e1")
            assert names(dataset) == ["e1"]
        assert names(dataset) == []


@pytest.mark.parametrize("within", ["10 SECONDS SLIDING", "10 SECONDS", "3 EVENTS SLIDING", "3 EVENTS"])
@pytest.mark.parametrize("opened", range(6))
def test_it_does_not_matter_when_it_is_opened(engine: spaseq.Engine, within: str, opened: int) -> None:
    """Events before are shown, too, those that are still in the window."""
    ticks = [1, 4, 9, 12, 13, 40]
    for early in window(engine, within):
        late = Dataset(store="spaseq-window")
        for n, tick in enumerate(ticks):
            trade(engine, tick, f"e{tick}", n)
            if n == opened:
                late.open("shown")
            if n >= opened:
                assert names(late) == names(early) != []
                assert set(late.quads()) == set(early.quads())
        trade(engine, 41, "e41")
        assert names(late) == names(early)


@given(
    gaps=st.lists(st.integers(0, 7), min_size=1, max_size=30),
    sizes=st.lists(st.integers(1, 4), min_size=1, max_size=30),
    within=st.sampled_from(["10 SECONDS SLIDING", "10 SECONDS", "4 EVENTS SLIDING", "4 EVENTS"]),
)
def test_the_window_by_its_definition(gaps: list[int], sizes: list[int], within: str) -> None:
    """Whatever comes, in batches of any size: the events that a match with the newest one may have."""
    ticks = [sum(gaps[: n + 1]) for n in range(len(gaps))]
    query = spaseq.prepare(PREFIXED.replace("40 MINUTES", within))
    recent = Recent(query.window)
    limits = stream_window(query.window, True, ticks[0])
    dictionary, begin = Dictionary(), 0
    stream = NamedNode(TRADES)
    while begin < len(ticks):
        builder = BatchBuilder(dictionary, stream, Clock.TICKS)
        size = sizes[begin % len(sizes)]
        for tick in ticks[begin : begin + size]:
            builder.add(tick, 0, [])
        recent.add(builder.build())
        begin = min(begin + size, len(ticks))
        axis = list(range(begin)) if limits.counted else ticks[:begin]
        now = axis[-1]
        inside = [
            n
            for n, at in enumerate(axis)
            if (now - at <= limits.size if limits.sliding else limits.index(at) == limits.index(now))
        ]
        found = recent.now(None)
        assert [position for position, _, _ in found] == inside
        assert [int(batch.time[index]) for _, batch, index in found] == [ticks[n] for n in inside]
    if not limits.counted:  # and time goes on without events
        now = ticks[-1] + 3
        later = [
            n
            for n, at in enumerate(ticks)
            if (now - at <= limits.size if limits.sliding else limits.index(at) == limits.index(now))
        ]
        assert [position for position, _, _ in recent.now(now)] == later


TERMS = [URIRef(f"urn:{letter}") for letter in "abc"]
QUADS = st.tuples(st.tuples(*[st.sampled_from(TERMS)] * 3), st.sampled_from(TERMS))
PATTERNS = st.tuples(*[st.sampled_from([None, *TERMS])] * 3)


@given(
    put=st.lists(QUADS, max_size=12),
    take=st.lists(st.integers(0, 11), max_size=12),
    pattern=PATTERNS,
    name=st.sampled_from([None, *TERMS]),
)
def test_the_store_answers_as_rdflibs_own(
    put: list[tuple[tuple[URIRef, URIRef, URIRef], URIRef]],
    take: list[int],
    pattern: tuple[URIRef | None, URIRef | None, URIRef | None],
    name: URIRef | None,
) -> None:
    store, memory = QuadStore(), Dataset().store
    parts = dict(enumerate(put))
    for n, quad in parts.items():
        store.put(n, [quad])
    for n in take:
        if parts.pop(n, None):
            store.take(n)
    left = list(parts.values())
    for triple, graph in left:
        memory.add(triple, Graph(store=memory, identifier=graph))

    def shown(of: object) -> tuple[object, ...]:
        context = None if name is None else Graph(store=of, identifier=name)  # type: ignore[arg-type]
        found = {t: {g.identifier for g in graphs} for t, graphs in of.triples(pattern, context)}  # type: ignore[attr-defined]
        return found, len(of) if context is None else of.__len__(context)  # type: ignore[arg-type, attr-defined]

    assert shown(store) == shown(memory)
    assert {g.identifier for g in store.contexts()} == {graph for _, graph in left}
    if not left:
        assert not any(store._index)
