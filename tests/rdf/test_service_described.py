"""Matches of a service are described when somebody asks: the answers are as if they had been at once."""

from __future__ import annotations

import random

import pytest
from rdflib import Dataset, Graph
from rdflib.compare import isomorphic

import spaseq
from spaseq.rdf import Service, register, service
from tests.rdf import trades
from tests.rdf.trades import PREFIXED, TRADES, E

pytestmark = trades.pytestmark

CHOSEN = PREFIXED.replace("A , B", "A ; B")
#: A blank node for each match.
MADE = CHOSEN.replace("SELECT ?company ?p1 ?p2", "CONSTRUCT { ?company :fell [ :from ?p1 ; :to ?p2 ] }")


def push(engine: spaseq.Engine, tick: int, price: int) -> None:
    engine.push(TRADES, f"<{E.acme}> <{E.price}> {price} .", tick, name=E[f"e{tick}"])


def rows(one: Service) -> list[tuple[str, ...]]:
    found = Dataset().query(f"SELECT ?p1 ?p2 {{ SERVICE <{one.iri}> {{}} }}")
    return [tuple(map(str, row)) for row in found]


def described(one: Service) -> Graph:
    made = Dataset().query(f"CONSTRUCT {{ ?s ?p ?o }} {{ SERVICE <{one.iri}> {{ ?s ?p ?o }} }}").graph
    assert made is not None
    graph = Graph()
    for s, p, o in made:
        # The two services have names of their own.
        graph.add(tuple(E.here if str(t).startswith(str(one.iri)) else t for t in (s, p, o)))  # type: ignore[arg-type]
    return graph


@pytest.mark.parametrize("query", [CHOSEN, MADE])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.few(1)
def test_asked_now_and_then_it_is_as_if_asked_after_each_event(
    query: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(seed)
    monkeypatch.setattr(service, "_TRIPLES", rng.choice([3, 500_000]))
    engine, keep = spaseq.Engine(), rng.randint(1, 6)
    with (
        register(engine, query, "each", keep=keep) as each,
        register(engine, query, "then", keep=keep) as then,
    ):
        for tick in range(16):
            push(engine, tick, rng.randint(1, 9))
            rows(each)
            assert len(then) == len(each) <= keep
            if rng.random() < 0.2:
                assert rows(then) == rows(each)
        assert rows(then) == rows(each)
        assert isomorphic(described(then), described(each))
        assert len(described(then)) > keep


def test_what_makes_room_before_somebody_asks_is_not_described(monkeypatch: pytest.MonkeyPatch) -> None:
    of = []
    monkeypatch.setattr(service, "about_match", lambda match, _: of.append(match.end) or [])
    engine, seen = spaseq.Engine(), []
    with register(engine, CHOSEN, "falls", keep=3, on_match=seen.append) as falls:
        for tick in range(20):
            push(engine, tick, 20 - tick)
        assert (len(falls), of) == (3, [])
        rows(falls)
        assert of == [match.end for match in seen[-3:]]
        rows(falls)
        assert len(of) == 3


def test_matches_do_not_keep_very_many_events(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "_TRIPLES", 10)
    engine = spaseq.Engine()
    with register(engine, PREFIXED, "falls") as falls:
        for tick in range(40):
            push(engine, tick, 1 if tick in (1, 21) else 2 + tick)
        # The second, 20 triples later, has both described.
        assert [kept.match for kept in falls._kept] == [None, None]
