"""Nothing accumulates: services, live datasets and windows over many times what they keep."""

from __future__ import annotations

import gc
import tracemalloc

import pytest
from rdflib import Dataset

import spaseq
from spaseq.rdf import connect, register
from spaseq.terms.interop import shown
from tests.rdf import trades
from tests.rdf.trades import CONSTRUCTED, PREFIXED, TRADES, E, default_graph

pytestmark = trades.pytestmark

KEEP = 5


def rounds(tick: int) -> list[tuple[int, str, int]]:
    """A trade and a fall of a company that never comes again."""
    return [(tick, f"c{tick}", 2), (tick + 1, f"c{tick}", 1)]


def push(engine: spaseq.Engine, tick: int, company: str, price: int) -> None:
    engine.push(TRADES, f"<{E[company]}> <{E.price}> {price} .", tick, name=E[f"e{tick}"])


def test_a_service_keeps_so_many_matches() -> None:
    engine = spaseq.Engine()
    dataset = Dataset()
    with register(engine, PREFIXED, "endless", keep=KEEP) as service:
        store, seen = service._store, []
        for tick in range(0, 200, 2):
            for trade in rounds(tick):
                push(engine, *trade)
            if tick % 20 == 0:  # a query of its own each time
                list(
                    dataset.query(
                        f"SELECT ?p1 {{ SERVICE <urn:x-spaseq:endless> {{ FILTER(?p1 > {tick}) }} }}"
                    )
                )
                sizes = [len(service), len(store), len(store._graphs), *map(len, store._index)]
                seen.append((*sizes, len(service._blocks) <= 16))
        assert seen[2] == seen[5] == seen[-1]
        assert seen[-1][0] == KEEP


def test_a_window_keeps_what_is_in_it() -> None:
    engine = spaseq.Engine()
    with register(engine, PREFIXED.replace("40 MINUTES", "10 SECONDS SLIDING"), "endless"):
        dataset = Dataset(store="spaseq-window")
        dataset.open("endless")
        store, seen = dataset.store, []
        for tick in range(0, 200, 2):
            for trade in rounds(tick):
                push(engine, *trade)
            seen.append([len(store), len(store._graphs), *map(len, store._index)])  # type: ignore[attr-defined]
        assert seen[20] == seen[50] == seen[-1]


def test_a_live_dataset_keeps_so_many_events_and_matches() -> None:
    engine, dataset = spaseq.Engine(), Dataset()
    with connect(dataset, engine, stream=TRADES, keep=KEEP) as connection:
        results = connection.register(CONSTRUCTED)
        seen = []
        for tick in range(0, 100, 2):
            for time, company, price in rounds(tick):
                with connection.event(E[f"e{time}"], time) as graph:
                    graph.add((E[company], E.price, trades.Literal(price)))
            graphs = sum(1 for _ in dataset.graphs())
            seen.append((graphs, len(default_graph(dataset)), len(connection._events), len(results)))
        assert seen[20] == seen[-1] == (2 * KEEP + 1, seen[-1][1], KEEP, KEEP)


@pytest.mark.slow
def test_memory_is_flat(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of everything that is ours: on Oxigraph, since rdflib's own store keeps entries of what it removed."""
    monkeypatch.setattr("spaseq.engine.core._SWEEP_AFTER", 100)
    engine, dataset = spaseq.Engine(), Dataset(store="Oxigraph")
    with (
        connect(dataset, engine, stream=TRADES, keep=KEEP) as connection,
        register(engine, PREFIXED.replace("40 MINUTES", "10 SECONDS SLIDING"), "endless", keep=KEEP),
    ):
        window = Dataset(store="spaseq-window")
        window.open("endless")
        connection.register(CONSTRUCTED.replace("40 MINUTES", "10 SECONDS"))

        def run(first: int, last: int) -> int:
            for tick in range(first, last, 2):
                for time, company, price in rounds(tick):
                    with connection.event(E[f"e{time}"], time) as graph:
                        graph.add((E[company], E.price, trades.Literal(price)))
            shown.cache_clear()  # it is full only after thousands of terms
            gc.collect()
            return tracemalloc.get_traced_memory()[0]

        tracemalloc.start()
        try:
            run(0, 200)
            before = run(200, 300)
            after = run(300, 700)
        finally:
            tracemalloc.stop()
        assert (after - before) / 400 < 1_000  # bytes an event; a match left behind would have 5,000
