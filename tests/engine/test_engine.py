"""The embedded engine: order, watermark, lateness, dead letters, derived streams, handles."""

from __future__ import annotations

import itertools
import json
import random
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import rdflib

import spaseq
from spaseq.terms.interop import triples_of
from tests.streams import NS, Letter, events_of, found, letters, matches, query


def push(engine: spaseq.Engine, letter: Letter) -> None:
    engine.push(NS + letter.stream, letter.turtle, letter.time, name=f"{NS}{letter.name}")


def drained(handle: spaseq.Handle) -> list[str]:
    return [events_of(match) for match in handle.matches()]


def test_a_match_is_delivered_by_the_push_that_completes_it() -> None:
    engine = spaseq.Engine()
    handle = engine.register(query("A ; B"))
    seen = []
    for letter in letters("a1 b2 a3 b4"):
        push(engine, letter)
        seen.append(drained(handle))
    assert seen == [[], ["a1b2"], [], ["a3b4"]]


def test_on_match_is_called_instead() -> None:
    seen: list[spaseq.Match] = []
    with spaseq.Engine() as engine:
        handle = engine.register(query("A ; B"), on_match=seen.append)
        for letter in letters("a1 b2"):
            push(engine, letter)
    assert [events_of(match) for match in seen] == ["a1b2"]
    assert list(handle.matches()) == []


def test_a_trailing_negation_is_delivered_when_time_passes_its_window() -> None:
    engine = spaseq.Engine()
    handle = engine.register(query("A ; !B", "3 SECONDS SLIDING"))
    seen = []
    for letter in letters("a1 x4 x5"):
        push(engine, letter)
        seen.append(drained(handle))
    assert seen == [[], [], ["a1"]]


def test_close_ends_every_window() -> None:
    engine = spaseq.Engine()
    handle = engine.register(query("A ; !B", "10 SECONDS SLIDING"))
    for letter in letters("a1 x2"):
        push(engine, letter)
    assert drained(handle) == []
    engine.close()
    assert drained(handle) == ["a1"]
    with pytest.raises(spaseq.EngineError, match="closed"):
        push(engine, letters("a3")[0])


def test_leaving_a_with_block_by_an_error_delivers_nothing_more() -> None:
    engine = spaseq.Engine()
    handle = engine.register(query("A ; !B", "10 SECONDS SLIDING"))
    push(engine, letters("a1")[0])
    with pytest.raises(RuntimeError), engine:
        raise RuntimeError
    assert drained(handle) == []


# --- time ---------------------------------------------------------------------------------------


def test_times_of_ticks_and_instants() -> None:
    engine = spaseq.Engine()
    handle = engine.register(query("A ; B", "10 SECONDS SLIDING"))
    start = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
    for kind, seconds in [("a", 0), ("b", 10), ("a", 20), ("b", 31)]:
        turtle = letters(f"{kind}{seconds}")[0].turtle
        engine.push(NS + "S", turtle, start + timedelta(seconds=seconds))
    (match,) = handle.matches()
    assert (match.start, match.end) == (start, start + timedelta(seconds=10))
    (event,) = match.events["A"]
    assert (event.stream, event.time, event.n) == (rdflib.URIRef(NS + "S"), start, 0)


def test_a_datetime_without_a_timezone_is_utc() -> None:
    engine = spaseq.Engine()
    handle = engine.register(query("A"))
    engine.push(NS + "S", letters("a1")[0].turtle, datetime(2026, 3, 1))
    assert next(handle.matches()).start == datetime(2026, 3, 1, tzinfo=UTC)


def test_streams_of_one_query_share_a_clock() -> None:
    engine = spaseq.Engine()
    engine.register(query("A"))
    push(engine, letters("a1")[0])
    with pytest.warns(
        spaseq.SpaseqWarning, match="event 2: a bad event is left out: its time is in instants"
    ):
        engine.push(NS + "S", letters("a2")[0].turtle, datetime(2026, 3, 1))
    assert engine.bad == 1
    assert "instants" in engine.rejected[0].reason


# --- order and lateness -------------------------------------------------------------------------


def test_an_event_before_the_watermark_is_late_counted_and_kept() -> None:
    engine = spaseq.Engine()
    handle = engine.register(query("A ; B"))
    first, second, overtaken, last = letters("a2 b5 a4 b6")
    push(engine, first)
    push(engine, second)
    with pytest.warns(spaseq.SpaseqWarning, match="event 3: a late event is left out"):
        push(engine, overtaken)
    push(engine, last)
    assert drained(handle) == ["a2b5"]
    assert (engine.late, handle.stats.late) == (1, 1)
    (letter_,) = engine.rejected
    assert letter_.stream == NS + "S"
    assert letter_.position == "event 3"
    assert letter_.reason == "late: its time 4 is before the watermark, 5, which event 2 moved"
    assert f"<{NS}v>" in letter_.payload


def test_an_equal_time_is_not_late() -> None:
    assert found(query("A : B"), "a1 b1 x1 b1") == ["a1b1", "a1b1"]


def test_lateness_holds_events_back() -> None:
    engine = spaseq.Engine(lateness=timedelta(seconds=3))
    handle = engine.register(query("A ; B"))
    seen = []
    for letter in letters("a1 b4 a3 x5 x7"):
        push(engine, letter)
        seen.append(drained(handle))
    assert seen == [[], [], [], [], ["a1b4", "a3b4"]]
    engine.close()
    assert engine.late == 0


@pytest.mark.parametrize("seq", ["A ; B+ ; C", "A , B", "A : !B : C", "ALL(A, B)"])
def test_within_the_lateness_every_order_of_arrival_gives_the_same(seq: str) -> None:
    events = letters("a1=1 b2=2 a3=3 c4=4 b5=5 c6=6 a7=7 c8=8")
    expected = sorted(found(query(seq, "100 SECONDS", {}), events))
    assert expected
    generator = random.Random(7)
    for _ in range(20):
        # Each event is overtaken by others up to 3 ticks younger, at most.
        shuffled = sorted(events, key=lambda e: e.time + generator.uniform(0, 3))
        assert (
            sorted(found(query(seq, "100 SECONDS", {}), shuffled, lateness=timedelta(seconds=3))) == expected
        )


def test_strict_raises_for_late_and_bad_events() -> None:
    engine = spaseq.Engine(strict=True)
    engine.register(query("A"))
    push(engine, letters("a5")[0])
    with pytest.raises(spaseq.LateEventError, match="event 2: late") as late:
        push(engine, letters("a4")[0])
    assert late.value.stream == NS + "S"
    with pytest.raises(spaseq.BadEventError) as bad:
        engine.push(NS + "S", "<a> <b", 6)
    assert bad.value.position == "event 3"


def test_bad_input_goes_to_the_dead_letters_and_the_query_goes_on(tmp_path: Path) -> None:
    file = tmp_path / "dead.ndjson"
    engine = spaseq.Engine(dead_letters=file)
    handle = engine.register(query("A"))
    with pytest.warns(spaseq.SpaseqWarning, match="event 1: a bad event is left out") as bad_:
        engine.push(NS + "S", "this is not Turtle", 1)
    push(engine, letters("a2")[0])
    with pytest.warns(spaseq.SpaseqWarning, match="event 3: a late event is left out") as late_:
        push(engine, letters("a1")[0])
    push(engine, letters("x0")[0])  # the second of its kind
    assert drained(handle) == ["a2"]
    assert (engine.bad, engine.late) == (1, 2)
    total = f"1 bad and 2 late events were left out ({file} has all)"
    with pytest.warns(spaseq.SpaseqWarning, match=re.escape(total)) as total_:
        engine.close()
    assert {warning.filename for record in (bad_, late_, total_) for warning in record} == {__file__}
    bad, late, _ = map(json.loads, file.read_text().splitlines())
    assert bad["payload"] == "this is not Turtle"
    assert late["reason"].startswith("late: its time 1")


def test_a_stream_that_nobody_reads_is_a_warning_with_the_nearest_name() -> None:
    engine = spaseq.Engine()
    engine.register(query("A", streams=["Sensors"]))
    with pytest.warns(spaseq.SpaseqWarning, match=r"Sensor>; did you mean <http://example.org/Sensors>"):
        engine.push(NS + "Sensor", letters("a1")[0].turtle, 1)


# --- what is pushed -----------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["text", "graph", "tuples", "triples"])
def test_every_form_of_a_graph(form: str) -> None:
    letter = letters("a1=5")[0]
    graph = rdflib.Graph().parse(data=letter.turtle)
    given = {
        "text": letter.turtle,
        "graph": graph,
        "tuples": list(graph),
        "triples": list(triples_of(graph)),
    }[form]
    engine = spaseq.Engine()
    handle = engine.register(query("A", head="SELECT ?av"))
    engine.push(rdflib.URIRef(NS + "S"), given, 1)
    (match,) = handle.matches()
    assert match.bindings == [{"av": rdflib.Literal(5)}]
    assert set(match.events["A"][0].triples()) == set(graph)


def test_blank_nodes_belong_to_their_event() -> None:
    text = f"""PREFIX : <{NS}> SELECT * WITHIN 9 SECONDS FROM STREAM S <{NS}S>
        WHERE {{ SEQ(A ; B) DEFINE GPM A ON S {{ ?x :a ?y }} DEFINE GPM B ON S {{ ?x :b ?z }} }}"""
    engine = spaseq.Engine()
    handle = engine.register(text)
    engine.push(NS + "S", f"_:n <{NS}a> 1 .", 1)
    engine.push(NS + "S", f"_:n <{NS}b> 2 .", 2)
    assert list(handle.matches()) == []


# --- queries ------------------------------------------------------------------------------------


def test_cancel() -> None:
    engine = spaseq.Engine()
    handle = engine.register(query("A"))
    other = engine.register(query("A"))
    push(engine, letters("a1")[0])
    handle.cancel()
    push(engine, letters("a2")[0])
    assert (drained(handle), drained(other)) == (["a1"], ["a1", "a2"])
    assert handle.done
    assert not other.done


def test_limit_ends_a_query() -> None:
    engine = spaseq.Engine()
    handle = engine.register(query("A", tail="LIMIT 2"))
    for letter in letters("a1 a2 a3"):
        push(engine, letter)
    assert handle.done
    assert drained(handle) == ["a1", "a2"]
    assert handle.stats.rows == 2


def test_ask_is_true_at_the_first_match() -> None:
    engine = spaseq.Engine()
    handle = engine.register(query("A ; B", head="ASK"))
    for letter in letters("a1 b2 a3 b4"):
        push(engine, letter)
    assert drained(handle) == ["a1b2"]
    assert handle.done


def test_stats() -> None:
    engine = spaseq.Engine()
    handle = engine.register(query("A ; B"))
    for letter in letters("a1 x2 b3 b4"):
        push(engine, letter)
    stats = handle.stats
    assert (stats.events, stats.relevant, stats.matches, stats.rows) == (4, 3, 1, 1)
    assert stats.watermark == 4
    assert engine.watermark == 4


def test_an_unknown_background_graph_is_named() -> None:
    text = query("A", gpms={"A": "GRAPH :kb { ?a :p ?q }"})
    with pytest.raises(spaseq.KnowledgeError, match=r"http://example\.org/kb"):
        spaseq.Engine().register(text)


def test_background_knowledge_joins_each_event() -> None:
    text = query("A ; B", gpms={"A": "?a :k ?k GRAPH :kb { ?k :big true }", "B": "?b :k ?k"})
    kb = {NS + "kb": f"<{NS}y> <{NS}big> true ."}
    assert found(text, "a1/x a2/y b3/x b4/y", kb=kb) == ["a2b4"]


# --- derived streams ----------------------------------------------------------------------------

RISES = f"""
    PREFIX : <{NS}>
    REGISTER STREAM :rises AS
    CONSTRUCT {{ [] a :r ; :v ?bv ; :k :k }}
    WITHIN 10 SECONDS SLIDING FROM STREAM S :S
    WHERE {{ SEQ(A , B)
      DEFINE GPM A ON S {{ ?a a :a ; :v ?av }}
      DEFINE GPM B ON S {{ ?b a :a ; :v ?bv FILTER(?bv > ?av) }} }}"""

TWO_RISES = f"""
    PREFIX : <{NS}>
    SELECT ?first ?second WITHIN 10 SECONDS SLIDING FROM STREAM R :rises
    WHERE {{ SEQ(A ; B)
      DEFINE GPM A ON R {{ ?a a :r ; :v ?first }}
      DEFINE GPM B ON R {{ ?b a :r ; :v ?second FILTER(?second > ?first) }} }}"""


@pytest.mark.parametrize("texts", list(itertools.permutations([RISES, TWO_RISES])))
def test_a_registered_stream_feeds_another_query(texts: tuple[str, str]) -> None:
    engine = spaseq.Engine()
    handles = {text: engine.register(text) for text in texts}
    seen = []
    for letter in letters("a1=1 a2=5 a3=3 a4=9"):
        push(engine, letter)
        seen.append(
            [(m.start, m.end, [int(v) for v in m.bindings[0].values()]) for m in handles[TWO_RISES].matches()]
        )
    assert seen == [[], [], [], [(2, 4, [5, 9])]]


def test_constructed_graphs() -> None:
    (first, second) = matches(RISES, "a1=1 a2=5 a3=3 a4=9")
    assert rdflib.Literal(5) in set(first.graph().objects())
    assert len(second.graph()) == 3
    (plain,) = matches(query("A"), "a1")
    with pytest.raises(TypeError, match="CONSTRUCT"):
        plain.graph()


def test_a_derived_event_that_waits_for_a_window_is_not_late() -> None:
    """A match with a trailing negation appears after its own time: its readers wait for it."""
    quiet = RISES.replace("SEQ(A , B)", "SEQ(A , B ; !C)").replace(
        "DEFINE GPM A", "DEFINE GPM C ON S { ?c a :c } DEFINE GPM A"
    )
    both = TWO_RISES.replace("FROM STREAM R :rises", "FROM STREAM R :rises FROM STREAM S :S").replace(
        "DEFINE GPM B ON R { ?b a :r ;", "DEFINE GPM B ON S { ?b a :b ;"
    )
    engine = spaseq.Engine()
    engine.register(quiet)
    handle = engine.register(both)
    for letter in letters("a1=1 a2=5 b6=7 x30"):
        push(engine, letter)
    engine.close()
    assert [(m.start, m.end) for m in handle.matches()] == [(2, 6)]
    assert engine.late == 0


def test_a_query_cannot_feed_itself() -> None:
    engine = spaseq.Engine()
    with pytest.raises(spaseq.EngineError, match="feed itself"):
        engine.register(RISES.replace("FROM STREAM S :S", "FROM STREAM S :rises"))
    # The refused query is not half there.
    handle = engine.register(query("A"))
    push(engine, letters("a1")[0])
    assert drained(handle) == ["a1"]


def test_a_callback_that_raises_gets_the_other_matches_of_the_event() -> None:
    seen: list[spaseq.Match] = []

    def found(match: spaseq.Match) -> None:
        seen.append(match)
        if len(seen) in (1, 4):
            raise RuntimeError("no")

    events = list(letters("a1 a2 a3 b4 b5"))
    with spaseq.Engine() as engine:
        handle = engine.register(query("A : B", "9 SECONDS SLIDING"), on_match=found)
        for letter in events[:3]:
            push(engine, letter)
        with pytest.raises(RuntimeError):
            push(engine, events[3])
        assert len(seen) == 3
        with pytest.raises(RuntimeError):
            push(engine, events[4])  # what raises is the first of its own
        assert len(seen) == 6
    assert len(seen) == 6 == handle.stats.matches
    assert len({events_of(match) for match in seen}) == 6
