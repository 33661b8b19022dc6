"""AFTER MATCH SKIP through the public API: worked examples, vectors, what is delivered when."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

import spaseq
from tests.matching.test_vectors import run
from tests.streams import NS, events_of, found, letters, query

PAST, NEXT = "AFTER MATCH SKIP PAST LAST EVENT", "AFTER MATCH SKIP TO NEXT EVENT"

WORKED = [
    ("a1 b2 b3 c4 b5", "A , B+[,]", PAST, ["a1b2b3"]),
    ("a1 a2 b3", "A+[,] , B", NEXT, ["a1a2b3", "a2b3"]),
    ("a1 b2 b3", "A , B+?[,]", PAST, ["a1b2"]),
    ("a1 b2 c3", "A ; B{0,1}? ; C", PAST, ["a1c3"]),
]

PREFERENCE = [
    # A quantifier prefers one more iteration, reluctant to leave; inner ones count before outer ones.
    ("a1 b2 c3", "A ; B{0,1} ; C", PAST, ["a1b2c3"]),
    ("a1 b2 b3 b4", "A , B{1,2}[,]", PAST, ["a1b2b3"]),
    ("a1 b2 b3 b4 b5", "A , (B{2}[,])+[,]", PAST, ["a1b2b3b4b5"]),
    ("a1 b2 b3 b4 b5", "A , (B{2}[,])+?[,]", PAST, ["a1b2b3"]),
    ("a1 b2 b3 c4 c5", "A , B+[,] , C+?[,]", PAST, ["a1b2b3c4"]),
    # X | Y prefers X, and only then the earlier event.
    ("a1 c2 b3", "A ; (B | C)", PAST, ["a1c2"]),
    ("a1 c2 b3", "A : (B | C)", PAST, ["a1b3"]),
    ("a1 b2 b3", "A : B", PAST, ["a1b2"]),
    ("a1 c2 b3", "A : B{0,1}? : C", PAST, ["a1c2"]),
    # X? and X* are plain, with and without X.
    ("a1 b2 c3", "A ; B? ; C", PAST, ["a1b2c3"]),
    ("a1 c2 b3", "A ; B?", PAST, ["a1b3"]),
    ("a1 b2 c3", "A , B*[,]", PAST, ["a1b2"]),
    ("b1 a2 c3", "B? ; A", NEXT, ["b1a2", "a2"]),
    # Only what is complete competes.
    ("a1 b2 x3", "A , B+[,] , C", PAST, []),
    ("a1 b2 b3 c4", "A , ((B+[,] , C) | B2)", PAST, ["a1b2b3c4"]),
    ("a1 b2 b3 x4", "A , ((B+[,] , C) | B2)", PAST, ["a1b2"]),
    # Negations, of which nothing is in the match.
    ("a1 b2 c3 a4 c5", "A ; !B ; C", PAST, ["a4c5"]),
    ("a1 c2 b3 c4", "A ; !B ; C+", PAST, ["a1c2c4"]),
    # In ALL, what an operand decides behind an event is decided with that event, in the order of time.
    ("a1 b2 b3 b4", "ALL(A, B{1,3}?[:])", PAST, ["a1b2"]),
    ("a1 b2 b3 b4", "ALL(A, B{1,2}[:])", PAST, ["a1b2b3"]),
    ("b1 b2 a3 b4", "ALL(B{1,2}?[:], A)", PAST, ["b1a3"]),
    ("a1 c2 b3 b4", "ALL(A, (C : B+?))", PAST, ["a1c2b3"]),
    # What is preferred and still waits ends before what is certain: the next match may begin in between.
    ("c1 b2", "(B | C ; !D) : B{0,1}?", PAST, ["c1", "b2"]),
]

SKIPPING = [
    ("a1 b2 a3 b4 a5", "A , B", PAST, ["a1b2", "a3b4"]),
    ("a1 a2 a3 a4", "A{2}[,]", PAST, ["a1a2", "a3a4"]),
    ("a1 a2 a3 a4", "A{2}[,]", NEXT, ["a1a2", "a2a3", "a3a4"]),
    ("a1 b2 b3 b4", "(A | B2) , B+[,]", "AFTER MATCH SKIP TO FIRST B", ["a1b2b3b4", "b2b3b4", "b3b4"]),
    ("a1 b2 b3 b4", "(A | B2) , B+[,]", "AFTER MATCH SKIP TO LAST B", ["a1b2b3b4"]),
    ("a1 b2 a3 b4 a5", "A , B , A2", "AFTER MATCH SKIP TO A2", ["a1b2a3", "a3b4a5"]),
    ("a1 b2 a3 b4 a5", "A , B , A2", PAST, ["a1b2a3"]),
]


@pytest.mark.parametrize(("stream", "sequence", "skip", "expected"), WORKED + PREFERENCE + SKIPPING)
def test_preferred(stream: str, sequence: str, skip: str, expected: list[str]) -> None:
    assert found(query(sequence, tail=skip), stream) == expected


def test_a_simultaneous_event_of_the_same_stream_comes_between() -> None:
    assert found(query("B , A", streams=("S", "T"), tail=PAST), "T.b1 T.x1 T.a1") == []
    assert found(query("B , A", streams=("S", "T"), tail=PAST), "T.b1 S.x1 T.a1") == ["T.b1T.a1"]


def test_a_run_does_not_end_where_the_filter_of_where_is_false() -> None:
    """It is false for a1, and for a2 until b4."""
    text = query("A : B+[:]", tail=PAST, where="FILTER(?bv <= ?av)")
    assert found(text, "a1=1 a2=9 b3=12 b4=2") == ["a2b3b4"]


@pytest.mark.parametrize("matcher", ["nfa", "reference"])
@pytest.mark.parametrize(("sequence", "rows"), [("(B{2}[,]) | (B , B)", 2), ("(B , B) | (B{2}[,])", 1)])
def test_of_two_derivations_of_a_match_the_preferred_one_has_the_solutions(
    sequence: str, rows: int, matcher: str
) -> None:
    # An iteration has a row of its own, and B , B one for both; without SKIP all three are there.
    text = query(sequence, gpms={"B": "FILTER(?bv = 1)"}, head="SELECT ?bv").replace("?b a :b", "[] a :b")
    for skip, expected in ((PAST, rows), ("", 3)):
        engine = spaseq.Engine(matcher=matcher if skip else "reference")
        handle = engine.register(f"{text} {skip}")
        for letter in letters("b1=1 b2=1"):
            engine.push(NS + letter.stream, letter.turtle, letter.time, name=f"{NS}{letter.name}")
        engine.close()
        (match,) = handle.matches()
        assert len(match.bindings) == expected


def test_vectors(shared: Callable[[str], Path]) -> None:
    cases = json.loads((shared("seq-vectors") / "vectors-2.json").read_text())["cases"]
    cases = [case for case in cases if "AFTER MATCH SKIP" in case["query"]]
    assert len(cases) == 275
    for case in cases:
        expected = sorted(sorted((gpm, i) for gpm, i in match) for match in case["matches"])
        assert run(case, "nfa") == expected, case["seed"]


# --- when -----------------------------------------------------------------------------------------


def delivered(sequence: str, stream: str, skip: str = PAST, window: str = "10 SECONDS") -> list[list[str]]:
    """What each push delivers, and last what the end does."""
    engine = spaseq.Engine()
    handle = engine.register(query(sequence, window, tail=skip))
    out = []
    for letter in letters(stream):
        engine.push(NS + letter.stream, letter.turtle, letter.time, name=f"{NS}{letter.name}")
        out.append([events_of(match) for match in handle.matches()])
    engine.close()
    return [*out, [events_of(match) for match in handle.matches()]]


@pytest.mark.parametrize(
    ("sequence", "stream", "expected"),
    [
        # The least is preferred: with its last event.
        ("A , B+?[,]", "a1 b2 b3", [[], ["a1b2"], [], []]),
        # More is preferred: as soon as no more can come.
        ("A , B+[,]", "a1 b2 b3 x4 x5", [[], [], [], ["a1b2b3"], [], []]),
        ("A ; B+", "a1 b2 x3 b4 x5", [[], [], [], [], [], ["a1b2b4"]]),
        ("A , B{1,2}[,]", "a1 b2 b3 b4", [[], [], ["a1b2b3"], [], []]),
        # With the end of the window, which begins with its first event; before what comes then.
        ("A ; B+", "a1 b2 a3 b12", [[], [], [], ["a1b2"], []]),
        # Whether the second one begins is said by the first one.
        ("A , B{0,2}[,]", "a1 b2 a3 x4", [[], [], ["a1b2"], ["a3"], []]),
        ("A ; B{0,1}? ; C", "a1 b2 c3", [[], [], ["a1c3"], []]),
        # Of what is simultaneous, or in any order: what may still come with it is preferred less.
        ("A ; (B & C)", "a1 b2 c2 b2 x3", [[], [], ["a1b2c2"], [], [], []]),
        ("B & C", "b1 c1 c1 x2", [[], ["b1c1"], [], [], []]),
        ("A : ALL(B , C)", "a1 c2 b3 c4 x5", [[], [], ["a1c2b3"], [], [], []]),
        # When a bound of time is over, as any later event says.
        ("(A ; B+) WITHIN 3 SECONDS", "a1 b2 x4 x5", [[], [], [], ["a1b2"], []]),
        ("A ; ((B+) WITHIN 2 SECONDS | C)", "a1 b2 b3 x5", [[], [], [], ["a1b2b3"], []]),
    ],
)
def test_as_soon_as_nothing_preferred_can_come(sequence: str, stream: str, expected: list[list[str]]) -> None:
    assert delivered(sequence, stream) == expected


def test_the_end_of_a_sliding_window_delivers() -> None:
    expected = [[], [], [], ["a1b2"], []]
    assert delivered("A ; B+", "a1 b2 x6 x7", window="5 SECONDS SLIDING") == expected


def test_time_that_goes_on_without_events_ends_bounds_of_time() -> None:
    engine = spaseq.Engine()
    handle = engine.register(query("(A ; B+) WITHIN 3 SECONDS", "1 HOURS", tail=PAST))
    for letter in letters("a1 b2"):
        engine.push(NS + letter.stream, letter.turtle, letter.time, name=f"{NS}{letter.name}")
    engine.advance(4)
    assert not list(handle.matches())
    engine.advance(5)
    assert [events_of(match) for match in handle.matches()] == ["a1b2"]


COMPILED = {
    "a filter of WHERE": ("A , B+[,]", "FILTER(?av < LAST(?bv))"),
    "a bound of time": ("(A , B+[,]) WITHIN 5 SECONDS , C", ""),
    "a bound of time inside a loop": ("((A ; B) WITHIN 2 SECONDS)+ ; C", ""),
    "numbers in LAST": ("A , B+[,]", "FILTER(LAST(?bv, 1) > ?av)"),
    "alternatives": ("(A , B+[,]) | (C , B)", ""),
}


@pytest.mark.parametrize("case", COMPILED)
def test_runs_over_columns(case: str) -> None:
    sequence, where = COMPILED[case]
    text = query(sequence, where=where, tail=PAST)
    assert "by tables over whole batches" in str(spaseq.explain(spaseq.prepare(text)))


def test_other_matchers_refuse() -> None:
    with pytest.raises(spaseq.EngineError, match="no AFTER MATCH SKIP; here AFTER MATCH SKIP PAST"):
        spaseq.Engine(matcher="interpreter").register(query("A , B", tail=PAST))


def test_explain_names_it_and_says_what_keeps_it_from_tables() -> None:
    plan = str(spaseq.explain(spaseq.prepare(query("A , B+[,]", tail=PAST))))
    assert re.search("matcher    nfa: priority simulation.* by tables over whole batches", plan)
    plan = str(spaseq.explain(spaseq.prepare(query("A , (B & C)", tail=PAST))))
    assert re.search("matcher    nfa: priority simulation.* event by event\n", plan)
    assert "otherwise  nfa by tables, if" in plan


@pytest.mark.parametrize(
    ("skip", "unskipped"), [(PAST, 0), ("AFTER MATCH SKIP TO FIRST A", 2), ("AFTER MATCH SKIP TO B", 1)]
)
def test_a_skip_that_goes_nowhere_is_counted(skip: str, unskipped: int) -> None:
    engine = spaseq.Engine()
    handle = engine.register(query("A , B{0,1}[,]", tail=skip))
    for letter in letters("a1 b2 a3"):
        engine.push(NS + letter.stream, letter.turtle, letter.time, name=f"{NS}{letter.name}")
    engine.close()
    assert [events_of(match) for match in handle.matches()] == ["a1b2", "a3"]
    assert handle.stats.unskipped == unskipped


# --- simultaneous events of several streams ---------------------------------------------------------


@pytest.mark.parametrize("matcher", ["nfa", "reference"])
@pytest.mark.parametrize(
    ("window", "stream", "expected"),
    [
        # Nothing that S could bring is an event of the match, so that it waits for nothing.
        ("2 EVENTS SLIDING", "S2.b1 S.x1 S2.a1 S2.a1 S.x1", ["b1a1"]),
        ("2 EVENTS SLIDING", "S2.b1 S2.a1 S.x1 S.x1 S.x2", ["b1a1"]),
        # The window of what waits is over by its events before its time is.
        ("1 EVENTS SLIDING", "S2.b1 S2.a1 S2.x1 S2.x1 S2.x1 S.x2", ["b1a1"]),
    ],
)
def test_what_waits_for_others_of_its_time_is_not_lost(
    window: str, stream: str, expected: list[str], matcher: str
) -> None:
    text = query("B & A", window, tail=PAST, streams=("S", "S2"))
    engine = spaseq.Engine(matcher=matcher)
    handle = engine.register(
        text.replace("GPM A ON S, S2", "GPM A ON S2").replace("GPM B ON S, S2", "GPM B ON S2")
    )
    for letter in letters(stream):
        engine.push(NS + letter.stream, letter.turtle, letter.time, name=f"{NS}{letter.name}")
    engine.close()
    found = ["".join(sorted((f"{g.lower()}1" for g in m.events), reverse=True)) for m in handle.matches()]
    assert found == expected
