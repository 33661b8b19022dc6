"""The counts on the automaton of a live query: of its newest events, beside the engine."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from spaseq import Engine, prepare
from spaseq.patterns.kb import KnowledgeBase
from spaseq.serve.counting import count
from spaseq.serve.newest.recent import RecentEvents, now
from spaseq.why.diagnose import diagnose
from spaseq.why.replay import Traced
from tests.serve.running import running
from tests.streams import NS, letters, query


def test_what_was_registered_late_is_not_counted_over_what_came_before() -> None:
    with running() as server:
        server.register(query("A ; B"), "early")
        server.send("a1 a2 b3")
        key = server.register(query("A ; B"), "late")
        server.send("a4 b5")
        told = server.http.get(f"/queries/{key}/explain", params={"format": "json"}).json()
        assert told["counted"]["events"] == 2
        assert [edge["count"] for edge in told["edges"]] == [1, 1]
        told = server.http.get("/queries/early/explain", params={"format": "json"}).json()
        assert told["counted"]["events"] == 5
        assert [edge["count"] for edge in told["edges"]] == [3, 3]


def test_a_query_without_events_is_drawn_without_counts() -> None:
    with running() as server:
        key = server.register(query("A ; B"))
        told = server.http.get(f"/queries/{key}/explain", params={"format": "json"}).json()
        assert told["counted"]["events"] == 0
        assert all("count" not in edge or not edge["count"] for edge in told["edges"])


@pytest.mark.parametrize("sequence", ["A ; B", "A , B+[,] ; !C", "A : B", "ALL(A, B)"])
@pytest.mark.parametrize("words", ["a1 b2 c3 a4 a5 b6 b7 c8", "a1 T.b1 a2 T.b3", "x1 a2 x3 b4"])
def test_the_counts_of_all_events_are_those_of_a_diagnosis(sequence: str, words: str) -> None:
    """As long as nothing is left out, both look at the same events."""
    prepared = prepare(query(sequence, "10 SECONDS SLIDING", streams=("S", "T")))
    engine, recent = Engine(), RecentEvents()
    engine.follow(recent.add)
    handle = engine.register(prepared)
    for letter in letters(words):
        engine.push(NS + letter.stream, letter.turtle, letter.time)
    events, kb = now(engine, recent, [stream.iri.value for stream in prepared.streams])
    evidence = handle.pipeline.evidence()
    expected = diagnose(evidence, 5)
    found = count(prepared, events, kb, seen=evidence.events, begin=evidence.begin, seconds=5)
    assert (found.states, found.edges, found.events) == (expected.states, expected.edges, expected.traced)


def test_the_newest_are_counted_when_there_is_no_time_for_all() -> None:
    prepared = prepare(query("A : B : C"))
    engine, recent = Engine(), RecentEvents()
    engine.follow(recent.add)
    engine.register(prepared)
    for tick in range(1_000):
        engine.push(NS + "S", letters(f"{'ab'[tick % 2]}{tick}")[0].turtle, tick)
    events, kb = now(engine, recent, [NS + "S"])
    found = count(prepared, events, kb, seen=1_000, begin=0, seconds=0.05)
    assert 0 < found.events < 1_000
    first = found.edges[0]
    assert first.taken == np.ceil(found.events / 2)


def test_nothing_seen_is_nothing_counted() -> None:
    found = count(prepare(query("A ; B")), {}, KnowledgeBase({}), seen=0, begin=None, seconds=1)
    assert found == Traced()


def test_counting_does_not_wait_for_the_engine() -> None:
    """An engine that is busy is asked once, for what it keeps; what is counted then is not its work."""
    prepared = prepare(query("A ; B"))
    engine, recent = Engine(), RecentEvents()
    engine.follow(recent.add)
    engine.register(prepared)
    for letter in letters("a1 b2"):
        engine.push(NS + letter.stream, letter.turtle, letter.time)
    events, kb = now(engine, recent, [NS + "S"])

    async def beside() -> Traced:
        with engine.turn.lock:
            return await asyncio.to_thread(count, prepared, events, kb, seen=2, begin=1, seconds=1)

    assert asyncio.run(beside()).events == 2
