"""Several events in one call: as if each were pushed."""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime, timedelta

import pyoxigraph as ox
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spaseq
from tests.conftest import examples
from tests.streams import NS, Letter, events_of, letters, query


def _items(events: list[Letter]) -> Iterator[tuple[str, int, str]]:
    return ((letter.turtle, letter.time, f"{NS}{letter.name}") for letter in events)


@settings(max_examples=examples(60))
@given(st.integers(0, 2**64 - 1))
def test_as_if_each_were_pushed(seed: int) -> None:
    """The late and the bad ones, too; matches come in the same order."""
    rng = random.Random(seed)
    texts = rng.sample(["A ; B", "A , B", "A : B+ ; A", "A ; !C ; B", "C"], 2)
    lateness = timedelta(seconds=rng.choice([0, 2]))
    single, several = (spaseq.Engine(lateness=lateness) for _ in range(2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", spaseq.SpaseqWarning)
        handles = [[engine.register(query(t, "5 SECONDS")) for t in texts] for engine in (single, several)]
        time = 0
        for _ in range(rng.randint(1, 4)):
            events = []
            for _ in range(rng.randint(0, 9)):
                time += rng.choice([0, 1, 1, 2])
                events += letters(f"{rng.choice('abc')}@{max(0, time - rng.choice([0, 0, 0, 1, 3]))}")
            items = list(_items(events))
            if items and rng.random() < 0.3:
                items.insert(rng.randrange(len(items)), ("no Turtle", time, f"{NS}bad"))
            for graph, at, name in items:
                single.push(NS + "S", graph, at, name)
            several.push_many(NS + "S", iter(items))
            for one, other in zip(*handles, strict=True):
                assert list(map(events_of, one.matches())) == list(map(events_of, other.matches()))
                assert asdict(one.stats) == asdict(other.stats)
        single.close()
        several.close()
    assert (single.late, single.bad, single.events) == (several.late, several.bad, several.events)
    assert [letter.position for letter in single.rejected if "Turtle" in letter.payload] == [
        letter.position for letter in several.rejected if "Turtle" in letter.payload
    ]


def test_every_form_of_a_graph_and_time() -> None:
    engine = spaseq.Engine()
    handle = engine.register(query("A", gpms={"A": "BIND(1 AS ?x)"}))
    triples = [quad.triple for quad in ox.parse(letters("a2")[0].turtle, format=ox.RdfFormat.TURTLE)]
    engine.push_many(ox.NamedNode(NS + "S"), [(letters("a1")[0].turtle, 1), (triples, 2, f"{NS}a2")])
    assert [(match.start, str(match.events["A"][0].graph)) for match in handle.matches()] == [
        (1, "None"),
        (2, f"{NS}a2"),
    ]


def test_an_error_ends_it_and_those_before_have_arrived() -> None:
    engine = spaseq.Engine()
    handle = engine.register(query("A"))

    def given_() -> Iterator[tuple[str, int]]:
        yield letters("a1")[0].turtle, 1
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        engine.push_many(NS + "S", given_())
    with pytest.raises(spaseq.EngineError, match="a time is"):
        engine.push_many(NS + "S", [(letters("a2")[0].turtle, 2), ("", "3")])  # type: ignore[list-item]
    assert [match.start for match in handle.matches()] == [1, 2]
    strict = spaseq.Engine(strict=True)
    handle = strict.register(query("A"))
    with pytest.raises(spaseq.SpaseqError, match="event 2"):
        strict.push_many(
            NS + "S", [(letters("a1")[0].turtle, 1), ("no Turtle", 2), (letters("a3")[0].turtle, 3)]
        )
    assert [match.start for match in handle.matches()] == [1]


def test_times_of_another_clock_are_bad_events() -> None:
    engine = spaseq.Engine()
    handle = engine.register(query("A"))
    a = letters("a1")[0].turtle
    with pytest.warns(spaseq.SpaseqWarning, match="clock|instants"):
        engine.push_many(NS + "S", [(a, 1), (a, datetime(2020, 1, 1, tzinfo=UTC)), (a, 3)])
    assert [match.start for match in handle.matches()] == [1, 3]
    assert engine.bad == 1


def test_in_a_callback_it_is_done_after_the_event_in_hand() -> None:
    engine = spaseq.Engine()
    seen: list[str] = []

    def again(match: spaseq.Match) -> None:
        seen.append(events_of(match))
        if match.start == 1:
            engine.push_many(NS + "S", _items(letters("a2 a3")))

    engine.register(query("A"), again)
    later = engine.register(query("A"))
    engine.push_many(NS + "S", _items(letters("a1")))
    assert seen == ["a1", "a2", "a3"]
    engine.close()
    assert [events_of(match) for match in later.matches()] == ["a1", "a2", "a3"]
    with pytest.raises(spaseq.EngineError, match="closed"):
        engine.push_many(NS + "S", [])


@pytest.mark.parametrize("event", [7, ("a graph alone",)], ids=["number", "one"])
def test_what_is_no_event_is_said_and_those_before_have_arrived(event: object) -> None:
    engine = spaseq.Engine()
    handle = engine.register(query("A"))
    graph = f"<urn:e> a <{NS}a> ; <{NS}v> 1 ."
    with pytest.raises(spaseq.EngineError, match="event 2 of push_many is no graph, time and perhaps name"):
        engine.push_many(NS + "S", [(graph, 1), event, (graph, 3)])  # type: ignore[list-item]
    engine.push_many(NS + "S", [(graph, 4)])
    assert [match.start for match in handle.matches()] == [1, 4]


@pytest.mark.filterwarnings("ignore:.*clock:spaseq.errors.SpaseqWarning")
def test_no_event_is_lost_where_a_callback_raises_and_clocks_are_mixed() -> None:
    """What came after the first change of clocks was neither taken nor rejected."""
    engine = spaseq.Engine()

    def fail(_: spaseq.Match) -> None:
        raise KeyError("mine")

    engine.register(query("A"), fail)
    other = engine.register(query("A"))
    a = letters("a1")[0].turtle
    with pytest.raises(KeyError, match="mine"):
        engine.push_many(NS + "S", [(a, 1), (a, datetime(2020, 1, 1, tzinfo=UTC)), (a, 3)])
    assert (engine.events, engine.bad) == (3, 1)
    assert [match.start for match in other.matches()] == [1, 3]
