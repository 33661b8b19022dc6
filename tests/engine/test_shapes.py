"""Events that do not conform to SHACL shapes: dead letters, and nothing else is changed by them."""

from __future__ import annotations

import asyncio
import os
import random
import sys
import warnings
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pyoxigraph
import pytest
import rdflib

import spaseq
from tests.streams import NS, Letter, events_of, letters, matches, query

#: A value is positive. Values of zero and less are of events that do not conform.
SHAPES = f"""
@prefix sh: <http://www.w3.org/ns/shacl#> . @prefix : <{NS}> .
:Positive sh:targetSubjectsOf :v ;
  sh:property [ sh:path :v ; sh:minExclusive 0 ; sh:message "not positive" ] .
"""
REASON = "does not conform to the shapes"
PAIRS = query("A , B", "9 SECONDS SLIDING")
pytestmark = pytest.mark.filterwarnings("ignore:no registered query reads")
S = f"{NS}S"


def give(engine: spaseq.Engine, events: list[Letter]) -> None:
    for letter in events:
        engine.push(S, letter.turtle, letter.time, name=f"{NS}{letter.name}")


def give_together(engine: spaseq.Engine, events: list[Letter]) -> None:
    engine.push_many(S, [(letter.turtle, letter.time, f"{NS}{letter.name}") for letter in events])


def trig(events: list[Letter]) -> str:
    return "".join(
        f"<{NS}{e.name}> <http://www.w3.org/ns/prov#generatedAtTime> {e.time} . <{NS}{e.name}> "
        f"{{ <{NS}e/{e.name}> a <{NS}{e.type}> ; <{NS}v> {e.value} ; <{NS}k> <{NS}{e.key}> }}\n"
        for e in events
    )


def in_a_file(events: list[Letter], path: Path) -> spaseq.Source:
    path.write_text(trig(events))
    return spaseq.Source(S, path)


def some(seed: int, count: int = 24) -> list[Letter]:
    rng = random.Random(seed)
    return letters(" ".join(f"{rng.choice('ab')}{t}={rng.choice([1, 2, 3, 0])}" for t in range(1, count)))


def told(match: spaseq.Match) -> tuple[object, ...]:
    return events_of(match), match.start, match.end, [e.n for es in match.events.values() for e in es]


@pytest.mark.filterwarnings("ignore::spaseq.SpaseqWarning")
@pytest.mark.parametrize("way", ["push", "push_many", "feed", "take", "callback"])
def test_the_others_are_matched_as_if_they_came_alone(way: str, tmp_path: Path) -> None:
    """However events come, with the times and the numbers that they have among all."""
    for seed in range(4):
        events = some(seed)
        conforming = [letter for letter in events if letter.value > 0]
        want = [events_of(match) for match in matches(PAIRS, conforming)]
        found: list[spaseq.Match] = []
        engine = spaseq.Engine(shapes=SHAPES)
        handle = engine.register(PAIRS, on_match=found.append if way == "callback" else None)
        if way in ("push", "callback"):
            give(engine, events)
        elif way == "push_many":
            give_together(engine, events)
        elif way == "feed":
            engine.feed(in_a_file(events, tmp_path / "s.trig"))
        else:
            assert sum(engine.take(in_a_file(events, tmp_path / "s.trig"))) == len(conforming)
        engine.close()
        found += handle.matches()
        assert [events_of(match) for match in found] == want
        assert all(e.n == e.time - 1 for match in found for es in match.events.values() for e in es)
        assert (engine.nonconforming, engine.bad) == 2 * (len(events) - len(conforming),)
        assert (engine.events, engine.arrived) == (len(conforming), {S: len(events)})


def test_a_dead_letter_has_the_place_the_message_and_the_event() -> None:
    found: list[spaseq.BadEvent] = []
    engine = spaseq.Engine(shapes=SHAPES, dead_letters=found.append)
    engine.register(PAIRS)
    engine.push(S, "no turtle", 1)
    give_together(engine, letters("a2 b3=0 b1 a3=-1 a4"))
    assert [letter.position for letter in found] == ["event 1", "event 3", "event 4", "event 5"]
    assert [letter.reason.partition(":")[0] for letter in found[1:]] == [REASON, "late", REASON]
    assert found[1].reason == f"{REASON}: <{NS}e/b3> <{NS}v>: not positive"
    assert f"<{NS}e/b3> <{NS}v>" in found[1].payload
    assert (engine.bad, engine.late, engine.nonconforming) == (3, 1, 2)


def test_it_is_told_at_once() -> None:
    engine = spaseq.Engine(shapes=SHAPES)
    engine.register(PAIRS)
    engine.push(S, letters("a1")[0].turtle, 1)
    with pytest.warns(spaseq.SpaseqWarning, match=f"event 2: a bad event.*{REASON}.*not positive"):
        give(engine, letters("b2=0"))
    assert engine.rejected[0].position == "event 2"
    with pytest.warns(spaseq.SpaseqWarning, match="1 bad and 0 late events were left out"):
        engine.close()


def test_strict_raises() -> None:
    engine = spaseq.Engine(shapes=SHAPES, strict=True)
    handle = engine.register(PAIRS)
    with pytest.raises(spaseq.BadEventError, match=f"S, event 2: {REASON}") as raised:
        give_together(engine, letters("a1 a2=0 b3"))
    assert raised.value.position == "event 2"
    assert [events_of(match) for match in handle.matches()] == ["a1b3"]


def test_results_are_cited_in_one_order_and_not_all() -> None:
    many = SHAPES.replace("not positive", "z") + "".join(
        f":{n} sh:targetSubjectsOf :v ; sh:property [ sh:path :p{n} ; sh:minCount 1 ; sh:message 'm{n}' ] .\n"
        for n in range(4)
    )
    engine = spaseq.Engine(shapes=many, dead_letters=(found := []).append)
    give(engine, letters("a1=0"))
    at = f"<{NS}e/a1> <{NS}p"
    assert found[0].reason == f"{REASON}: {at}0>: m0; {at}1>: m1; {at}2>: m2; and 2 more"


def test_a_blank_node_has_no_label() -> None:
    engine = spaseq.Engine(shapes=SHAPES, dead_letters=(found := []).append)
    engine.push(S, f"[] <{NS}v> -1 .", 1)
    assert found[0].reason == f"{REASON}: [] <{NS}v>: not positive"


def test_an_event_that_cannot_be_validated_is_a_dead_letter() -> None:
    """A shape that asks for itself, on data that goes in a circle: SHACL lets that fail."""
    circle = (
        f"@prefix sh: <http://www.w3.org/ns/shacl#> . @prefix : <{NS}> . :Next sh:targetSubjectsOf :next ; "
        "sh:property [ sh:path :next ; sh:node :Next ] ."
    )
    engine = spaseq.Engine(shapes=circle, dead_letters=(found := []).append)
    handle = engine.register(query("A"))
    chain = " ".join(f"<urn:n{i}> <{NS}next> <urn:n{i + 1}> ." for i in range(40))
    engine.push(S, chain, 1)
    give(engine, letters("a2"))
    assert "the validation failed: " in found[0].reason
    assert [events_of(match) for match in handle.matches()] != []


def test_a_time_that_is_refused_moves_no_clock() -> None:
    """That of a silent stream goes on from its newest event that conforms."""
    reading, writing = os.pipe()
    with open(reading, "rb", buffering=0) as file, open(writing, "wb", buffering=0) as pipe:
        quads = pyoxigraph.parse(trig(letters("a1 a50=0")), pyoxigraph.RdfFormat.TRIG)
        pipe.write(pyoxigraph.serialize(quads, format=pyoxigraph.RdfFormat.N_QUADS))
        idle = timedelta(milliseconds=50)
        engine = spaseq.Engine(shapes=SHAPES, idle=idle, wall_clock=lambda: 0.0, dead_letters=lambda _: None)
        engine.register(PAIRS)
        steps = engine.pull(spaseq.Source(S, file, spaseq.SourceOptions(format="nq")))
        while not engine.nonconforming:
            next(steps)
        for _ in range(4):
            next(steps)
        assert (engine.watermark, engine.nonconforming) == (1, 1)


def test_events_that_queries_make_are_not_validated() -> None:
    engine = spaseq.Engine(shapes=SHAPES)
    head = f"REGISTER STREAM <{NS}T> AS CONSTRUCT {{ ?a a :b ; :v -1 }}"
    engine.register(query("A", head=head))
    handle = engine.register(query("B", streams=("T",)))
    give(engine, letters("a1"))
    engine.close()
    assert len(list(handle.matches())) == 1
    assert engine.nonconforming == 0


# --- a state --------------------------------------------------------------------------------------


@pytest.mark.parametrize("giving", [give, give_together])
def test_a_restart_goes_on_with_the_same_numbers(
    tmp_path: Path, giving: Callable[[spaseq.Engine, list[Letter]], None]
) -> None:
    events = letters("a1 x2=0 a3 b4 x5=0 a6 a7=0 a8 b9")
    whole = spaseq.Engine(shapes=SHAPES, dead_letters=lambda _: None)
    handle = whole.register(PAIRS)
    giving(whole, events)
    want = [told(match) for match in handle.matches()]
    found: list[tuple[object, ...]] = []
    dead: list[spaseq.BadEvent] = []
    for cut in (3, 7, 8, 9):
        with spaseq.Engine(shapes=SHAPES, state=tmp_path / "s", dead_letters=dead.append) as engine:
            handle = engine.register(PAIRS, name="q")
            giving(engine, events[engine.arrived.get(S, 0) : cut])
            found += [told(match) for match in handle.matches()]
            assert engine.arrived == {S: cut}
    assert found == want
    assert [letter.position for letter in dead] == ["event 2", "event 5", "event 7"]
    assert engine.nonconforming == 3
    assert len(want) == 2


def test_a_source_is_read_on(tmp_path: Path) -> None:
    events = some(5, 40)
    want = [events_of(match) for match in matches(PAIRS, [e for e in events if e.value > 0])]
    found: list[str] = []
    dead: list[spaseq.BadEvent] = []
    for cut in (10, 25, 40):
        source = in_a_file(events[:cut], tmp_path / "s.trig")
        with spaseq.Engine(shapes=SHAPES, state=tmp_path / "s", dead_letters=dead.append) as engine:
            handle = engine.register(PAIRS, name="q")
            engine.feed(source)
            found += [events_of(match) for match in handle.matches()]
    assert found == want
    assert [letter.position for letter in dead] == [f"event {e.time}" for e in events if e.value <= 0]


# --- the shapes ------------------------------------------------------------------------------------


def test_shapes_are_a_file_a_graph_or_a_text(tmp_path: Path) -> None:
    (tmp_path / "shapes.ttl").write_text(SHAPES)
    for shapes in (tmp_path / "shapes.ttl", str(tmp_path / "shapes.ttl"), rdflib.Graph().parse(data=SHAPES)):
        engine = spaseq.Engine(shapes=shapes, dead_letters=lambda _: None)
        give(engine, letters("a1 a2=0"))
        assert engine.nonconforming == 1
        assert rdflib.NORMALIZE_LITERALS
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", spaseq.SpaseqWarning)
        source = in_a_file(letters("a1 b2=0 b3"), tmp_path / "s.trig")
        assert [events_of(match) for match in spaseq.run(PAIRS, {"S": source}, shapes=SHAPES)] == ["a1b3"]


def test_the_engine_for_asyncio() -> None:
    async def pushed() -> int:
        engine = spaseq.Engine(shapes=SHAPES, dead_letters=lambda _: None)
        async with spaseq.AsyncEngine(engine) as waiting:
            await waiting.push(S, letters("a1=0")[0].turtle, 1)
        return engine.nonconforming

    assert asyncio.run(pushed()) == 1


SHAPE = "@prefix sh: <http://www.w3.org/ns/shacl#> . <urn:a> a sh:NodeShape ; sh:targetClass <urn:c> ; "


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<urn:a>\n<urn:b> <urn:c> .\n<urn:d", "line 3: "),
        ("<urn:a> <urn:b> <urn:c> .", "the shapes: there is none"),
        (SHAPE + "sh:property [ sh:path <urn:p> ; sh:pattern '(' ] .", r"shape <urn:a>: missing \)"),
        (SHAPE + "sh:property [ sh:path <urn:p> ; sh:minCount 'x' ] .", "shape <urn:a>: .*minCount must be"),
        (SHAPE + "sh:property [ sh:minCount 1 ] .", "shape"),
    ],
)
def test_wrong_shapes(text: str, message: str) -> None:
    with pytest.raises(spaseq.KnowledgeError, match=message):
        spaseq.Engine(shapes=text)


def test_a_file_of_shapes_that_is_wrong_has_its_name_and_line(tmp_path: Path) -> None:
    (tmp_path / "shapes.ttl").write_text("\n\n<urn:a> <urn:b .\n")
    with pytest.raises(spaseq.KnowledgeError, match=r"shapes\.ttl, line 3: "):
        spaseq.Engine(shapes=tmp_path / "shapes.ttl")
    with pytest.raises(spaseq.KnowledgeError, match=r"none\.ttl"):
        spaseq.Engine(shapes=tmp_path / "none.ttl")


def test_without_pyshacl(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyshacl", None)
    with pytest.raises(spaseq.EngineError, match=r"needs pyshacl.*: pip install 'spaseq\[shacl\]'"):
        spaseq.Engine(shapes=SHAPES)
