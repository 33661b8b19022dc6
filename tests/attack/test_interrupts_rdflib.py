"""An interrupt at any call inside rdflib's part: a match is shown once, an event is pushed once."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from rdflib import Dataset

import spaseq
import spaseq.rdf
from tests.attack.interrupted import AtCall
from tests.rdf import trades

NS = "http://example.org/"
FALLS = f"""
    SELECT ?c ?p1 ?p2 WITHIN 40 EVENTS FROM STREAM S <{NS}trades>
    WHERE {{ SEQ(A : B)
      DEFINE GPM A ON S {{ ?c <{NS}price> ?p1 }}
      DEFINE GPM B ON S {{ ?c <{NS}price> ?p2 . FILTER(?p2 < ?p1) }} }}"""
ASKED = "SELECT ?c ?p1 ?p2 { SERVICE <urn:x-spaseq:falls> { FILTER(?p1 > 3) } }"
EVENTS = 12

#: One that comes while a generator is closed is told to nobody.
pytestmark = [
    *trades.pytestmark,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def trade(number: int) -> str:
    return f"<{NS}c{number % 2}> <{NS}price> {number * 7 % 23} ."


def interrupted(file: str, work: Callable[[AtCall], bool]) -> int:
    """Does something with an interrupt at one call of a file after the other; how often there was one."""
    number = 1
    while work(AtCall(file, number)):
        number += 1 + number // 20
    return number


@pytest.mark.few(0, ci=1)
@pytest.mark.parametrize("file", ["rdf/service.py", "rdf/_quads.py", "rdf/description.py"])
def test_a_service_that_is_asked(file: str) -> None:
    """After it, each match is there once, and described."""

    def asked(data: Dataset) -> list[tuple[str, ...]]:
        return sorted(tuple(map(str, row)) for row in data.query(ASKED))

    def work(at: AtCall) -> bool:
        data, engine = Dataset(), spaseq.Engine()
        with spaseq.rdf.register(engine, FALLS, "falls", keep=8) as service:
            for tick in range(EVENTS):
                engine.push(NS + "trades", trade(tick), tick)
                if tick == EVENTS // 2 and not at.number:
                    asked(data)
            hit = bool(at.number) and at.during(lambda: asked(data) and None)
            found.append(asked(data))
            described.append(len(service._graph))
        return hit

    found: list[list[tuple[str, ...]]] = []
    described: list[int] = []
    work(AtCall(file, 0))
    assert len(found[0]) > 3
    assert interrupted(file, work) > 3
    assert all(one == found[0] for one in found)
    assert set(described) == {described[0]}


@pytest.mark.few(1)
@pytest.mark.parametrize("file", ["rdf/live.py", "rdf/recorded.py"])
def test_a_live_dataset_whose_events_are_made(file: str) -> None:
    """Who makes the event again that was interrupted, if it has not arrived, has each event pushed once."""

    def work(at: AtCall) -> bool:
        data, engine = Dataset(), spaseq.Engine()
        with spaseq.rdf.connect(data, engine, stream=NS + "trades") as live:
            live.register(FALLS, on_match=lambda _: None)

            def make(tick: int) -> None:
                with live.event(f"{NS}e{tick}", tick) as graph:
                    graph.parse(data=trade(tick), format="turtle")

            hit = False
            for tick in range(EVENTS):
                if hit:
                    make(tick)
                elif at.during(lambda tick=tick: make(tick)):  # type: ignore[misc]
                    hit = True
                    if engine.arrived.get(NS + "trades", 0) == tick:
                        make(tick)
        assert (engine.arrived, live.pushed) == ({NS + "trades": EVENTS}, EVENTS)
        assert (engine.late, engine.bad) == (0, 0)
        return hit

    assert interrupted(file, work) > 3


def test_matches_of_a_live_dataset_that_are_taken() -> None:
    def work(at: AtCall) -> bool:
        data, engine = Dataset(), spaseq.Engine()
        got = []
        with spaseq.rdf.connect(data, engine, stream=NS + "trades") as live:
            results = live.register(FALLS)
            for tick in range(EVENTS):
                with live.event(f"{NS}e{tick}", tick) as graph:
                    graph.parse(data=trade(tick), format="turtle")
            there = len(results)
            hit = at.during(lambda: got.extend(results))
            got += list(results)
        assert len(got) == there
        return hit

    assert interrupted("rdf/live.py", work) > 3
