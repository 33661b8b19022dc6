"""Several events in one call: as if each were pushed."""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyoxigraph as ox
import pytest
import rdflib
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
                assert one.stats == other.stats
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


A = letters("a1")[0].turtle

#: A time on the other clock than ticks.
OTHER = datetime(2020, 1, 1, tzinfo=UTC)

#: What is no event, and what is said of it.
NONE = {
    "number": (7, "no event, which is a graph, its time and perhaps its name"),
    "none": (None, "no event"),
    "empty": ((), "no event"),
    "one": ((A,), "no event"),
    "four": ((A, 2, None, "more"), "no event"),
    "five": ([A, 2, None, "more", 1], "no event"),
    "text": ("ab", "no event"),
    "mapping": ({A: 1, 2: 3}, "no event"),
    "no graph": ((None, 2), "a graph is an rdflib.Graph, triples, Turtle or N-Triples text, not None"),
    "bytes": ((b"abc", 2), "a graph is an"),
    "four terms": (([(1, 2, 3, 4)], 2), "not an RDF triple: (1, 2, 3, 4)"),
    "no terms": (([(1, 2, 3)], 2), "not an RDF term: 1"),
    "no triples": (([1], 2), "not an RDF triple: 1"),
    "name": ((A, 2, 5), "the name of a graph is an IRI, not 5"),
    "literal": ((A, 2, rdflib.Literal("n")), "the name of a graph is an IRI, not rdflib"),
}


@pytest.mark.parametrize("kind", NONE)
def test_what_is_no_event_is_a_malformed_one(kind: str) -> None:
    """Of four parts the last was dropped; and what had too few ended the call."""
    event, reason = NONE[kind]
    engine = spaseq.Engine()
    handle = engine.register(query("A"))
    with pytest.warns(spaseq.SpaseqWarning, match="event 2: a bad event is left out"):
        engine.push_many(NS + "S", [(A, 1), event, (A, 3)])  # type: ignore[list-item]
    (letter,) = engine.rejected
    assert letter.reason.startswith(reason)
    assert (engine.bad, engine.events, engine.arrived) == (1, 2, {NS + "S": 3})
    assert [match.start for match in handle.matches()] == [1, 3]


@pytest.mark.parametrize("events", [A, A.encode()])
def test_text_is_not_several_events(events: Any) -> None:
    engine = spaseq.Engine()
    with pytest.raises(spaseq.EngineError, match="several events"):
        engine.push_many(NS + "S", events)
    assert not engine.bad


def test_an_event_may_be_any_row() -> None:
    engine = spaseq.Engine()
    handle = engine.register(query("A"))
    engine.push_many(NS + "S", [[A, 1], iter((A, 2)), np.array([A, 3], dtype=object)])  # type: ignore[list-item]
    assert [match.start for match in handle.matches()] == [1, 2, 3]


@settings(max_examples=examples(80), deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["S", "T"]),
            st.lists(
                st.tuples(st.integers(0, 12), st.sampled_from(["good", "good", "bad", "clock"])), max_size=5
            ),
        ),
        max_size=5,
    ),
    st.integers(0, 3),
    st.sampled_from([None, 4, 9]),
)
def test_letters_are_as_if_each_were_pushed(
    given_: list[tuple[str, list[tuple[int, str]]]], lateness: int, promised: int | None
) -> None:
    """Reasons, positions and their order: the reason of a late event depended on what came with it."""
    told: list[list[spaseq.BadEvent]] = []
    for several in (False, True):
        letters_: list[spaseq.BadEvent] = []
        engine = spaseq.Engine(lateness=timedelta(seconds=lateness), dead_letters=letters_.append)
        engine.register(query("A"))
        engine.register(query("A ; B", streams="ST"))
        if promised is not None:
            engine.advance(promised, NS + "S")
        for stream, items in given_:
            events = [
                (
                    "no Turtle" if kind == "bad" else A,
                    datetime(2020, 1, 1, tzinfo=UTC) if kind == "clock" else at,
                )
                for at, kind in items
            ]
            if several:
                engine.push_many(NS + stream, events)
            else:
                for event in events:
                    engine.push(NS + stream, *event)
        engine.close()
        told.append(letters_)
    assert told[0] == told[1]


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


def test_events_that_come_after_the_end_are_refused() -> None:
    """They still arrived, when what gives them had closed the engine."""
    engine = spaseq.Engine()
    handle = engine.register(query("A ; B"))

    def given_() -> Iterator[tuple[str, int]]:
        yield A, 1
        yield letters("b2")[0].turtle, 2
        engine.close()
        yield letters("b3")[0].turtle, 3

    with pytest.raises(spaseq.EngineError, match="the engine is closed"):
        engine.push_many(NS + "S", given_())
    assert engine.arrived == {NS + "S": 2}
    assert [match.end for match in handle.matches()] == [2]


@pytest.mark.parametrize("end", ["close", "finish", "abandon"])
@pytest.mark.parametrize("more", [False, True])
def test_what_gives_events_may_end_the_engine(end: str, more: bool, tmp_path: Path) -> None:
    with spaseq.Engine(state=tmp_path / "s", commit_every=1) as engine:
        engine.register(query("A"), name="q")
        engine.push(NS + "S", A, 0)
    engine = spaseq.Engine(state=tmp_path / "s", commit_every=1)

    def given_() -> Iterator[tuple[str, int]]:
        yield A, 1
        getattr(engine, end)()
        if more:
            yield A, 2

    if more or end == "abandon":
        with pytest.raises(spaseq.EngineError, match="the engine is closed"):
            engine.push_many(NS + "S", given_())
    else:
        engine.push_many(NS + "S", given_())
    with spaseq.Engine(state=tmp_path / "s") as engine:
        assert engine.arrived == {NS + "S": 2 if end == "close" else 1}
        found = [match.start for match in engine.queries["q"].matches()]
        assert found == ([0, 1] if end == "close" else [0])


def _using(engine: spaseq.Engine, name: str, handle: spaseq.Handle, seen: list[str]) -> None:
    """What else may be done where events are given."""
    match name:
        case "push":
            engine.push(NS + "S", A, 2)
        case "bad":
            engine.push(NS + "S", "no Turtle", 2)
        case "other":
            engine.push(NS + "T", A, 2)
        case "push_many":
            engine.push_many(NS + "S", [(A, 2), ("no Turtle", 2), (A, 2)])
        case "advance":
            engine.advance(2)
        case "cancel":
            handle.cancel()
        case "register":
            engine.register(query("A"), lambda m: seen.append(f"new {m.start}"))
        case "ask":
            seen.append(f"{[m.start for m in handle.matches()]} {engine.events} {engine.watermark}")
        case "change":
            engine.change("urn:g", [])
        case "raise":
            raise RuntimeError("no more")


USES = ["push", "bad", "other", "push_many", "advance", "cancel", "register", "ask", "change", "raise"]


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("callback", [False, True])
@pytest.mark.parametrize("fails", [False, True])
def test_what_gives_events_may_use_the_engine(use: str, callback: bool, fails: bool) -> None:
    """As if each were pushed, and what is done meanwhile done between the pushes."""
    told: list[object] = []
    for several in (False, True):
        letters_: list[spaseq.BadEvent] = []
        seen: list[str] = []
        engine = spaseq.Engine(dead_letters=letters_.append)

        def found(match: spaseq.Match, seen: list[str] = seen) -> None:
            seen.append(events_of(match))
            if fails and len(seen) == 1:
                raise KeyError("mine")

        handle = engine.register(query("A ; A"), found if callback else None)
        other = engine.register(query("A", streams="ST"))

        def given_(
            engine: spaseq.Engine = engine, handle: spaseq.Handle = handle, seen: list[str] = seen
        ) -> Iterator[tuple[str, int]]:
            yield A, 0
            yield A, 1
            _using(engine, use, handle, seen)
            yield A, 3
            yield A, 0

        raised = ""
        try:
            if several:
                engine.push_many(NS + "S", given_())
            else:
                for event in given_():
                    try:
                        engine.push(NS + "S", *event)
                    except KeyError as error:
                        raised = repr(error)
        except (RuntimeError, KeyError) as error:
            raised = raised or repr(error)
        engine.close()
        told.append(
            (
                raised,
                seen,
                letters_,
                engine.arrived,
                [m.start for m in other.matches()],
                [events_of(m) for m in handle.matches()],
            )
        )
    assert told[0] == told[1]


def test_in_a_callback_what_gives_events_may_push() -> None:
    engine = spaseq.Engine()
    seen: list[int] = []

    def given_() -> Iterator[tuple[str, int]]:
        yield A, 2
        engine.push(NS + "S", A, 3)
        yield A, 4

    def found(match: spaseq.Match) -> None:
        seen.append(int(match.start))  # type: ignore[arg-type]
        if match.start == 1:
            engine.push_many(NS + "S", given_())

    engine.register(query("A"), found)
    engine.push(NS + "S", A, 1)
    assert (seen, engine.late, engine.arrived) == ([1, 2, 3, 4], 0, {NS + "S": 4})


def test_room_to_spare_ends_no_query() -> None:
    """What the kernel takes beyond its need, for the rest of a batch, is not counted against a limit."""
    text = """PREFIX : <urn:> SELECT * WITHIN 50 SECONDS SLIDING FROM STREAM S <urn:s>
    WHERE { SEQ(A ; B) DEFINE GPM A ON S { ?x :a ?v } DEFINE GPM B ON S { ?x :b ?w } }"""
    engine = spaseq.Engine(limits=spaseq.Limits(query_bytes=900_000))
    handle = engine.register(text)
    engine.push_many("urn:s", [(f"<urn:x> <urn:{'aaab'[i % 4]}> {i} .", i) for i in range(3_000)])
    assert handle.stats.events == 3_000
    assert sum(map(len, handle.batches())) == handle.stats.matches > 0
