"""The semantics page, operator by operator, through the public API and on every matcher.

The first table is the page's own worked examples; the others were worked out by hand from its text.
"""

from __future__ import annotations

import warnings

import pytest

import spaseq
from spaseq.automaton.normal import normalise
from spaseq.language import prepare
from spaseq.matching.plan import explain
from tests.streams import NS, events_of, found, letters, query

MATCHERS = ["reference", "interpreter"]


@pytest.fixture(params=MATCHERS)
def matcher(request: pytest.FixtureRequest) -> str:
    return str(request.param)


WORKED = [
    ("a1 b2 a3 b4", "A ; B", "", ["a1b2", "a3b4"]),
    ("a1 a2 b3 b4", "A ; B", "", ["a1b3", "a2b3"]),
    ("a1 a2 b3 b4", "A : B", "", ["a1b3", "a2b3", "a1b4", "a2b4"]),
    ("a1 a2 b3 b4", "A , B", "", ["a2b3"]),
    ("a1 b2 b3 c4", "A ; B+ ; C", "", ["a1b2c4", "a1b2b3c4"]),
    ("a1 b2 b3 c4", "A ; B+[:] ; C", "", ["a1b2c4", "a1b2b3c4"]),
    ("a1 b2 b3 c4", "A : B+[:] : C", "", ["a1b2c4", "a1b3c4", "a1b2b3c4"]),
    ("a1 b2 d3 c4", "A ; B? ; C", "", ["a1b2c4"]),
    ("a1 d2 c3", "A ; B? ; C", "", ["a1c3"]),
    ("a1 b2 c3 a4 c5", "A ; !B ; C", "", ["a4c5"]),
    ("a1 b2 c3", "A , (B | C)", "", ["a1b2"]),
    ("a1 b2 c3", "A ; (B & C)", "", []),
    ("c1 a2 b3", "ALL(A, B, C)", "", ["c1a2b3"]),
    ("a1 a2 b3", "A : B", "EMIT LAST", ["a2b3"]),
    ("a1 a2 b3", "A : B", "EMIT NEXT", ["a1b3"]),
]

STRATEGIES = [
    ("a1 x2 b3", "A , B", "", []),
    ("a1 x2 b3", "A ; B", "", ["a1b3"]),
    ("a1 b2 c3 b4 c5", "A ; B ; C", "", ["a1b2c3"]),
    ("a1 b2 c3 b4 c5", "A : B : C", "", ["a1b2c3", "a1b2c5", "a1b4c5"]),
    ("a1 b2 c3 b4 c5", "A : B , C", "", ["a1b2c3", "a1b4c5"]),
    ("a1 b2 x3 c4", "A ; B , C", "", []),
    ("a1 b2 c3", "A", "", ["a1"]),
    ("b1 a2", "A ; B", "", []),
    ("a1 a2 a3", "A ; A2", "", ["a1a2", "a2a3"]),
]

KLEENE = [
    ("a1 a2 a3", "A+", "", ["a1", "a1a2", "a2", "a1a2a3", "a2a3", "a3"]),
    ("a1 x2 a3", "A+[,]", "", ["a1", "a3"]),
    ("a1 a2 a3", "A+[:]", "", ["a1", "a1a2", "a2", "a1a2a3", "a1a3", "a2a3", "a3"]),
    ("a1 a2 a3", "A{2}", "", ["a1a2", "a2a3"]),
    ("a1 a2 a3", "A{2,}", "", ["a1a2", "a1a2a3", "a2a3"]),
    ("a1 a2 a3 a4", "A{2,3}[,]", "", ["a1a2", "a1a2a3", "a2a3", "a2a3a4", "a3a4"]),
    ("a1 b2 c3", "A ; B* ; C", "", ["a1b2c3"]),
    ("a1 x2 c3", "A ; B* ; C", "", ["a1c3"]),
    ("a1 b2 a3 b4", "(A ; B)+", "", ["a1b2", "a1b2a3b4", "a3b4"]),
    ("a1 b2 x3 a4 b5", "(A , B)+[,]", "", ["a1b2", "a4b5"]),
    ("a1 b2 b3 a4 b5", "(A ; B+)+", "", ["a1b2", "a1b2b3", "a1b2b3b5", "a1b2a4b5", "a1b2b3a4b5", "a4b5"]),
    # The wait for a further iteration and the wait for what follows are independent.
    ("a1 b2 c3 b4 c5", "A ; B+ ; C", "", ["a1b2c3", "a1b2b4c5"]),
]

NEGATION = [
    ("b1 a2 c3", "A ; !B ; C", "", ["a2c3"]),
    ("a1 b2 c3", "A ; !B : C", "", []),
    ("a1 c2 b3 c4", "A : !B : C", "", ["a1c2"]),
    # Leading: none since the window began (ticks 1 to 10), trailing: none until it ends.
    ("b1 a2 c3", "!B ; A ; C", "", []),
    ("c1 a2 c3", "!B ; A ; C", "", ["a2c3"]),
    ("a1 b2", "A ; !B", "", []),
    ("a1 c2 b12", "A ; !B", "", ["a1"]),
    ("a1 c2", "A ; !(B | C)", "", []),
    ("a1 x2", "A ; !(B | C)", "", ["a1"]),
    # A negated group is broken by an event that is relevant for one of its parts.
    ("a1 c2 d3", "A ; !(B ; C) ; D", "", []),
    ("a1 x2 d3", "A ; !(B ; C) ; D", "", ["a1d3"]),
    # A negation at the end of a group speaks of the gap up to what comes next.
    ("a1 b2 c3", "(A ; !B) ; C", "", []),
    ("a1 c2 b3 a4 c5", "(A ; !B) ; C", "", ["a1c2", "a4c5"]),
    ("a1 b2 a3 a4", "(A ; !B){2}", "", ["a3a4"]),
    # A leading negation restarts with the window.
    ("b1 a12", "!B ; A", "", ["a12"]),
]

OPTIONAL = [
    ("a1 b2 c3", "A? ; B ; C", "", ["a1b2c3"]),
    ("x1 b2 c3", "A? ; B ; C", "", ["b2c3"]),
    ("a1 b2", "A ; B ; C?", "", ["a1b2"]),
    ("a1 b2 c3", "A ; B ; C?", "", ["a1b2c3"]),
    ("a1 b2 c3 d4", "A ; (B ; C)? ; D", "", ["a1b2c3d4"]),
    ("a1 c2", "A , B? , C", "", ["a1c2"]),
]

BOOLEAN = [
    ("a1 c2 b3", "A ; (B | C)", "", ["a1c2"]),
    ("a1 b2", "(A | B) ; (A2 | B2)", "", ["a1b2"]),
    ("a1 b2 c3 d4", "(A ; B) | (C , D)", "", ["a1b2", "c3d4"]),
    ("a1 b2 c3", "A ; (B , C)", "", ["a1b2c3"]),
    ("a1 b2 x3 c4", "A ; (B , C)", "", []),
    # B is what the group can start with: the first B is taken, and does not lead to a match.
    ("a1 b2 x3 b4 c5", "A ; (B , C)", "", []),
    ("a1 b2 x3 b4 c5", "A : (B , C)", "", ["a1b4c5"]),
    ("b1 a2 b3", "ALL(A, B)", "", ["b1a2", "a2b3"]),
    ("b1 c2 a3", "ALL(A, (B ; C))", "", ["b1c2a3"]),
    ("c1 b2 a3", "ALL(A, (B ; C))", "", []),
    ("d1 b2 a3 c4", "D ; ALL(A, B) ; C", "", ["d1b2a3c4"]),
    ("a1 a2", "ALL(A, A2)", "", ["a1a2", "a1a2"]),
]

EMIT = [
    ("a1 a2 b3", "A+ ; B", "EMIT MAX", ["a1a2b3"]),
    ("a1 b2 b3 c4", "A : B+[:] : C", "EMIT MAX", ["a1b2b3c4"]),
    ("a1 a2 b3 b4", "A : B", "EMIT LAST", ["a2b3", "a2b4"]),
    ("a1 a2 b3 b4", "A : B", "EMIT NEXT", ["a1b3", "a1b4"]),
    ("a1 a2 b3 b4", "A : B", "EMIT ALL", ["a1b3", "a2b3", "a1b4", "a2b4"]),
    ("a1 b2 a3 b4", "A : B", "CONSUME ANY", ["a1b2", "a3b4"]),
    ("a1 b2 a3 b4", "A : B", "CONSUME NONE", ["a1b2", "a1b4", "a3b4"]),
    ("a1 a2 b3 b4", "A : B", "EMIT LAST CONSUME ANY", ["a2b3"]),
    # What waits for its window's end is a partial match too, and is dropped.
    ("a1 b2 c3", "(A ; !D) | (B ; C)", "CONSUME ANY", ["b2c3"]),
]


@pytest.mark.parametrize(
    ("events", "seq", "tail", "expected"),
    WORKED + STRATEGIES + KLEENE + NEGATION + OPTIONAL + BOOLEAN + EMIT,
)
def test_sequences(matcher: str, events: str, seq: str, tail: str, expected: list[str]) -> None:
    result = found(query(seq, tail=tail), events, matcher=matcher)
    assert sorted(result) == sorted(expected)


#: What only the reference says yet.
SECOND_EDITION = [
    ("a1 x2 c3", "A , C?", "", ["a1"]),
    ("a1 c2", "A , C?", "", ["a1c2"]),
    ("a1 x2 c3 b4", "A , C? ; B", "", ["a1b4"]),
    ("c1 x2 a3", "C? , A", "", ["a3"]),
    ("a1 b2 c3", "A ; B{0,1} ; C", "", ["a1c3", "a1b2c3"]),
    ("a1 x2 b3 c4", "A , !B ; C", "", ["a1c4"]),
    ("a1 b2 x3 c4", "A , !B ; C", "", []),
    ("a1 x2 b3", "A , !B", "", ["a1"]),
    ("a1 b5 c6 a7 b8 c9", "(A ; B) WITHIN 2 SECONDS ; C", "", ["a7b8c9"]),
    ("a1 b5 c6", "A ; !B WITHIN 2 SECONDS ; C", "", ["a1c6"]),
    ("b1 x2 a3", "!B , A", "", ["a3"]),
    ("a1 c2 b3 c4", "A ; B{0,1} ; C", "", ["a1c2", "a1b3c4"]),
    ("c1 b2 b3", "((A , B) | (C , B+[,]))+", "", ["c1b2", "c1b2b3"]),
    ("a0 e1 e2", "(A , E+[,]) | (B , E+[,])", "", ["a0e1", "a0e1e2"]),
    ("e1 e2 c3", "E+ ; !E ; C", "", ["e2c3", "e1e2c3"]),
    ("a1 b2 b3 c4 b5", "A , B+[,]", "AFTER MATCH SKIP PAST LAST EVENT", ["a1b2b3"]),
    ("a1 a2 b3", "A+[,] , B", "AFTER MATCH SKIP TO NEXT EVENT", ["a1a2b3", "a2b3"]),
    ("a1 b2 b3", "A , B+?[,]", "AFTER MATCH SKIP PAST LAST EVENT", ["a1b2"]),
    ("a1 b2 c3", "A ; B{0,1}? ; C", "AFTER MATCH SKIP PAST LAST EVENT", ["a1c3"]),
    # A left join asks for the whole of what is absent.
    ("a1 b2 d3", "A ; (B ; C)? ; D", "", ["a1d3"]),
    ("a1 b2 c3 d4", "A ; (B ; C)? ; D", "", ["a1b2c3d4"]),
    # Several that are absent are asked one by one.
    ("a1 c2 b3 d4", "A ; B? ; C? ; D", "", ["a1c2d4", "a1b3d4"]),
    # Where the first event of the match stands: at itself nothing begins again.
    ("a1 a2 b3 a4 b5", "A+[,] , B", "AFTER MATCH SKIP TO FIRST A", ["a1a2b3", "a2b3", "a4b5"]),
    ("a1 a2 b3 a4 b5", "A+[,] , B", "AFTER MATCH SKIP TO LAST A", ["a1a2b3", "a2b3", "a4b5"]),
    ("a1 b2 a3 b4", "A : B+[:]", "AFTER MATCH SKIP TO LAST B", ["a1b2b4"]),
]


@pytest.mark.parametrize(("events", "seq", "tail", "expected"), SECOND_EDITION)
def test_second_edition(events: str, seq: str, tail: str, expected: list[str]) -> None:
    assert sorted(found(query(seq, tail=tail), events, matcher="reference")) == sorted(expected)


@pytest.mark.parametrize(
    ("events", "seq", "joined", "expected"),
    [
        ("b1/x a2/y", "B? ; A", "AB", ["a2"]),
        ("a1/x b2/x a3/y b4/y", "(A , B){2}[,]", "AB", ["a1b2a3b4"]),
        # Beside a Kleene of the same GPM, a negation shares only what is not the Kleene's.
        ("a1/x e2/x e3/y c4/x", "A ; E+ ; !E ; C", "AEC", ["a1e2c4"]),
    ],
)
def test_joined_in_the_second_edition(events: str, seq: str, joined: str, expected: list[str]) -> None:
    gpms = {n: f"?{n.lower()} :k ?k" for n in joined}
    assert sorted(found(query(seq, gpms=gpms), events, matcher="reference")) == expected


@pytest.mark.parametrize("name", ["reference", "nfa"])
def test_sides_written_out_keep_their_place_in_the_order_of_preference(name: str) -> None:
    """Whether ``?k`` is the Kleene's depends on the side taken; more iterations come before that choice."""
    gpms = {"E": "?e :k ?k", "F": "?f :k ?k", "A": "FILTER(COUNT(?ev) = 1)"}
    text = query("E+[,] : (A | F)", gpms=gpms, tail="AFTER MATCH SKIP PAST LAST EVENT")
    assert found(text, "e1/x e2/x f3/x a4/y", matcher=name) == ["e1e2f3"]


#: What random queries found, each once.
FOUND = [
    # A first event that is still to come, on another stream, keeps nothing waiting for ever.
    ("3 EVENTS SLIDING", "A", "S.a1 T.a1 T.a2", ["a1", "T.a1", "T.a2"]),
    # What stood before a match's window bars it also after the match was looked at once.
    ("3 SECONDS SLIDING", "!E ; (B{1,2}? ; C)", "e5 b7 c8 x10 x11 x12 x13", []),
    # A filter of WHERE may hold after a further iteration.
    ("2 SECONDS SLIDING", "(B , A+?[:])+", "b1=2 a1=1 b2=3 a3=2 x9", ["b1a1b2a3"]),
]


@pytest.mark.parametrize(("window", "seq", "events", "expected"), FOUND)
def test_found_with_skip(window: str, seq: str, events: str, expected: list[str]) -> None:
    where = "FILTER(MIN(?bv) > FIRST(?av))" if "A+" in seq else ""
    streams = ["S", "T"] if "T." in events else ["S"]
    text = query(seq, window, tail="AFTER MATCH SKIP PAST LAST EVENT", where=where, streams=streams)
    assert found(text, events, matcher="reference") == expected


@pytest.mark.parametrize("name", ["reference", "interpreter", "nfa", "lazy", "tecs"])
@pytest.mark.parametrize("first", ["S", "T"])
def test_emit_orders_simultaneous_events_by_iri(name: str, first: str) -> None:
    """Whichever stream the engine has heard of first."""
    engine = spaseq.Engine(matcher=name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", spaseq.SpaseqWarning)
        engine.register(query("X : Y", streams=[first]))
        handle = engine.register(query("A : B", streams=["S", "T"], tail="EMIT LAST"))
    for letter in letters("S.a1 T.a1 S.b2"):
        engine.push(NS + letter.stream, letter.turtle, letter.time, name=f"{NS}{letter.name}")
    assert [events_of(match) for match in handle.matches()] == ["T.a1b2"]


@pytest.mark.parametrize(
    ("events", "seq", "moments"),
    [
        # A match is delivered with the event that decides it, or when its window has ended.
        ("a1 x2 b3", "A , !B", {"x2": ["a1"]}),
        ("a1 x2 c3", "A , C?", {"x2": ["a1"]}),
        ("a1 x2 b3 y4", "A , (B , C)?", {"x2": ["a1"]}),
        ("a1 b2 x3 y4", "A , (B , C)?", {"x3": ["a1"]}),
        ("a1 x2 x5 x6", "A ; !B WITHIN 3 SECONDS", {"x5": ["a1"]}),
        ("a1 x2 x20", "A ; !B", {"x20": ["a1"]}),
        ("S.a1 S.x2 T.x2 S.x3", "A , !B", {"T.x2": ["a1"]}),
        ("S.a1 S.x2 S.x3", "A , !B", {"S.x3": ["a1"]}),
    ],
)
def test_when_what_is_absent_is_decided(events: str, seq: str, moments: dict[str, list[str]]) -> None:
    streams = ("S", "T") if "S." in events else ("S",)
    engine = spaseq.Engine(matcher="reference")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", spaseq.SpaseqWarning)
        handle = engine.register(query(seq, streams=streams))
    seen = {}
    for word, letter in zip(events.split(), letters(events), strict=True):
        engine.push(NS + letter.stream, letter.turtle, letter.time, name=f"{NS}{letter.name}")
        if now := [events_of(match) for match in handle.matches()]:
            seen[word] = now
    assert seen == moments


WINDOWS = [
    # Tumbling windows begin at the first event; a match lies in one of them.
    ("5 SECONDS", "a1 b5 b6", "A : B", ["a1b5"]),
    ("5 SECONDS", "x1 a5 b6", "A ; B", []),
    ("5 SECONDS TUMBLING", "a1 a7 b10", "A ; B", ["a7b10"]),
    # Sliding: last - first ≤ 5, inclusive.
    ("5 SECONDS SLIDING", "a1 b5 b6 b7", "A : B", ["a1b5", "a1b6"]),
    ("5 SECONDS SLIDING", "x1 a5 b6", "A ; B", ["a5b6"]),
    # Counted in events of the streamset, relevant or not.
    ("3 EVENTS", "a1 x20 b300 b4000", "A : B", ["a1b300"]),
    ("2 EVENTS SLIDING", "a1 x20 b300 b4000", "A : B", ["a1b300"]),
    ("2 EVENTS SLIDING", "a1 x2 x3 b4", "A ; B", []),
    # Negation at the end of a window.
    ("3 SECONDS SLIDING", "a1 b5", "A ; !B", ["a1"]),
    ("3 SECONDS SLIDING", "a1 b4", "A ; !B", []),
    ("3 EVENTS", "a1 x2 x3 b4", "A ; !B", ["a1"]),
    ("3 EVENTS", "a1 x2 b3", "A ; !B", []),
    # Negation at the beginning of a sliding window: since 3 ticks before the match's last event.
    ("3 SECONDS SLIDING", "b1 x2 a4", "!B ; A", []),
    ("3 SECONDS SLIDING", "b1 x2 a5", "!B ; A", ["a5"]),
    ("3 SECONDS SLIDING", "b1 a3 c5", "!B ; A ; C", ["a3c5"]),
    ("1 MINUTES", "a1 b60 b61", "A : B", ["a1b60"]),
    ("1 DAY", "a0 b86399 b86400", "A : B", ["a0b86399"]),
]


@pytest.mark.parametrize(("window", "events", "seq", "expected"), WINDOWS)
def test_windows(matcher: str, window: str, events: str, seq: str, expected: list[str]) -> None:
    assert sorted(found(query(seq, window), events, matcher=matcher)) == sorted(expected)


TWO_STREAMS = [
    # Events of different streams with equal time are simultaneous.
    ("S.a1 T.b1", "A : B", []),
    ("S.a1 T.b1", "A & B", ["a1T.b1"]),
    ("S.a1 T.b2", "A & B", []),
    ("S.a1 T.b2 S.c2", "A , B", ["a1T.b2"]),
    ("S.a1 T.x1 S.b2", "A , B", ["a1b2"]),
    ("S.a1 T.x2 S.b3", "A , B", []),
    ("S.a1 S.b2 T.b2", "A ; B", ["a1b2", "a1T.b2"]),
    ("S.a1 S.b2 T.c2", "A ; (B & C)", ["a1b2T.c2"]),
    ("S.a1 S.b2 S.b3 T.c3", "A ; (B & C)", ["a1b3T.c3"]),
    ("S.a1 S.b1 T.b1", "A ; B", ["a1b1"]),
]


@pytest.mark.parametrize(("events", "seq", "expected"), TWO_STREAMS)
def test_two_streams(matcher: str, events: str, seq: str, expected: list[str]) -> None:
    text = query(seq, streams=["S", "T"])
    assert sorted(found(text, events, matcher=matcher)) == sorted(expected)


CORRELATED = [
    # Joins and correlated filters decide relevance, and so what ; may skip.
    ("a1=5 b2=7 b3=3", "A ; B", {"B": "FILTER(?bv < ?av)"}, ["a1b3"]),
    ("a1=5 b2=7 b3=3", "A , B", {"B": "FILTER(?bv < ?av)"}, []),
    ("a1=5 b2=4 b3=3", "A : B", {"B": "FILTER(?bv < ?av)"}, ["a1b2", "a1b3"]),
    ("a1/x b2/y b3/x", "A ; B", {"A": "?a :k ?k", "B": "?b :k ?k"}, ["a1b3"]),
    # A negation's filter may use what comes after it.
    ("a1=1 b2=5 c3=7", "A ; !B ; C", {"B": "FILTER(?bv < ?cv)"}, []),
    ("a1=1 b2=9 c3=7", "A ; !B ; C", {"B": "FILTER(?bv < ?cv)"}, ["a1c3"]),
    # An unbound variable is an error, hence false.
    ("a1=1 b2=5", "(A | C) ; B", {"B": "FILTER(?bv > ?cv)"}, []),
    ("a1=1 b2=5", "(A | C) ; B", {"B": "FILTER(!BOUND(?cv) || ?bv > ?cv)"}, ["a1b2"]),
    # Inside a Kleene: the current iteration, the one before, the iterations so far.
    ("b1=1 b2=3 b3=2 b4=5", "B{3,}", {"B": "FILTER(?bv > PREV(?bv))"}, ["b1b2b4"]),
    ("b1=1 b2=3 b3=9", "B{2,}", {"B": "FILTER(SUM(?bv) < 10)"}, ["b1b2"]),
    ("b1=1 b2=3 b3=2", "B{2,}", {"B": "FILTER(?bv >= MAX(?bv))"}, ["b1b2"]),
    ("b1 b2 b3", "B+", {"B": "FILTER(COUNT(?bv) <= 2)"}, ["b1", "b1b2", "b2", "b2b3", "b3"]),
    ("b1=4 b2=4 b3=4", "B{2,}", {"B": "FILTER(FIRST(?bv) = ?bv && COUNT(?b) < 3)"}, ["b1b2", "b2b3"]),
    # After it: all iterations, or some iteration.
    ("b1=1 b2=5 c3=4", "B+ ; C", {"C": "FILTER(?cv > AVG(?bv))"}, ["b1b2c3", "b1c3"]),
    ("b1=1 b2=5 c3=4", "B+ ; C", {"C": "FILTER(?cv < ?bv)"}, ["b1b2c3", "b2c3"]),
    ("b1=1 b2=5 c3=4", "B+ ; C", {"C": "FILTER(?cv < LAST(?bv))"}, ["b1b2c3", "b2c3"]),
    ("b1=1 b2=5 c3=4", "B+ ; C", {"C": "FILTER(?cv < FIRST(?bv))"}, ["b2c3"]),
    ("b1=1 b2=5 c3=4", "B+ ; C", {"C": "FILTER(MIN(?bv) = 1 && MAX(?bv) = 5)"}, ["b1b2c3"]),
    # EXISTS asks the event's own graph, under what the match has bound so far.
    ("a1=5 b2=5 b3=7", "A ; B", {"B": "FILTER NOT EXISTS { ?b :v ?av }"}, ["a1b3"]),
    ("a1=5 b2=7 b3=5", "A ; B", {"B": "FILTER EXISTS { ?b :v ?av }"}, ["a1b3"]),
    # Filters across the operands of ALL and & hold for the joined match, in any order.
    ("a1=1 b2=5 a3=9", "ALL(A, B)", {"A": "FILTER(?av > ?bv)"}, ["b2a3"]),
    ("a1=1 b2=5 a3=9", "ALL(A, B)", {"B": "FILTER(?av < ?bv)"}, ["a1b2"]),
]


@pytest.mark.parametrize(("events", "seq", "gpms", "expected"), CORRELATED)
def test_context(matcher: str, events: str, seq: str, gpms: dict[str, str], expected: list[str]) -> None:
    assert sorted(found(query(seq, gpms=gpms), events, matcher=matcher)) == sorted(expected)


#: A variable that several elements of a repeated group have is joined within each iteration, not across them.
KEYED = {name: f"?{name.lower()} :k ?k" for name in "ABC"}
EITHER = ["a1", "a1a3", "a1b2", "a1b2a3", "a3", "b2", "b2a3"]
JOINED = [
    ("a1/x b2/x a3/y b4/y", "(A ; B)+", KEYED, ["a1b2", "a1b2a3b4", "a3b4"]),
    ("a1/x b2/y a3/y b4/y", "(A ; B)+ ; C", KEYED, []),
    ("a1/x b2/x a3/y b4/y c5/y", "(A ; B)+ ; C", KEYED, ["a3b4c5"]),
    ("a1/x b2/y a3/x", "(A | B)+[:]", KEYED, EITHER),
]


@pytest.mark.parametrize(("events", "seq", "gpms", "expected"), JOINED)
def test_joined_in_a_loop(
    matcher: str, events: str, seq: str, gpms: dict[str, str], expected: list[str]
) -> None:
    assert sorted(found(query(seq, gpms=gpms), events, matcher=matcher)) == expected


def test_simultaneous_conjunction_with_a_filter(matcher: str) -> None:
    text = query("A & B", gpms={"A": "FILTER(?av > ?bv)"}, streams=["S", "T"])
    assert found(text, "S.a1=1 T.b1=5 S.a2=5 T.b2=1", matcher=matcher) == ["a2T.b2"]


def test_a_filter_on_one_side_of_an_and_asks_only_where_it_is_taken(matcher: str) -> None:
    gpms = {"D": "?d a ?type", "B": "", "C": "FILTER(?cv > ?dv)"}
    text = query("A ; (D & (B | C))", gpms=gpms).replace("?d a :d", "?d :v ?any")
    assert found(text, "a1 b2 a3 c4", matcher=matcher) == ["a1b2"]


@pytest.mark.parametrize(
    ("sequence", "expected"),
    [("(A | B) & C", ["a1T.c1"]), ("ALL((A | B), C)", ["a1T.c1", "T.c1a3"])],
)
def test_a_filter_on_one_side_reads_what_another_operand_binds_whatever_other_sides_bind(
    matcher: str, sequence: str, expected: list[str]
) -> None:
    """``?m`` is bound on B's side, too, which is not taken where A is."""
    gpms = {"A": "FILTER(?m = :x)", "B": "?b :k ?m", "C": "?c :k ?m"}
    text = query(sequence, gpms=gpms, streams=["S", "T"])
    assert found(text, "S.a1 T.c1/x S.a3 T.c3/y", matcher=matcher) == expected


def test_a_filter_in_all_reads_what_another_operand_binds_although_its_own_binds_it_later(
    matcher: str,
) -> None:
    gpms = {"A": "FILTER(?m = :x)", "C": "?c :k ?m", "D": "?d :k ?m"}
    text = query("ALL(A : C, D)", gpms=gpms)
    assert found(text, "d1/x a2 c3/x", matcher=matcher) == ["d1a2c3"]
    assert found(text, "d1/y a2 c3/y", matcher=matcher) == []


def test_where_filters_apply_as_soon_as_their_variables_are_bound(matcher: str) -> None:
    """So they decide what is relevant, just as a correlated filter does."""
    text = query("A ; B", where="FILTER(?bv < ?av)")
    assert found(text, "a1=5 b2=7 b3=3", matcher=matcher) == ["a1b3"]


def test_where_filter_over_a_whole_kleene(matcher: str) -> None:
    text = query("B+ ; C", where="FILTER(COUNT(?b) = 2)")
    assert sorted(found(text, "b1 b2 b3 c4", matcher=matcher)) == ["b1b2c4", "b2b3c4"]


PARTITIONED = [
    ("a1/x a2/y b3/x b4/y", "A , B", ["a1b3", "a2b4"]),
    ("a1/x b2/y a3/y b4/x", "A ; B", ["a1b4"]),
    ("a1/x b2/y c3/x", "A ; !B ; C", ["a1c3"]),
    ("a1/x b2/x c3/x", "A ; !B ; C", []),
    ("a1/x a2/y a3/x", "A{2}[,]", ["a1a3"]),
]


@pytest.mark.parametrize(("events", "seq", "expected"), PARTITIONED)
def test_partitions(matcher: str, events: str, seq: str, expected: list[str]) -> None:
    gpms = {n: f"?{n.lower()} :k ?k" for n in "ABC"}
    text = query(seq, gpms=gpms, partition="?k")
    assert sorted(found(text, events, matcher=matcher)) == sorted(expected)


@pytest.mark.parametrize("name", ["reference", "interpreter", "nfa", "kmp", None])
def test_what_a_filter_keeps_out_stands_between(name: str | None) -> None:
    """An event belongs to a partition by what a GPM binds without its FILTERs, as a row does in SQL."""
    filtered = {"A": "?a :k ?k FILTER(?av > 1)", "B": "?b :k ?k FILTER(?bv != 3)"}
    events = "a1=5/x b2=3/x b3=7/x a4=5/y a5=1/y b6=7/y a7=2/x a8=2/y b9=7/x c10/y b11=7/y"
    if name == "kmp":
        filtered = {"A": "?a :k ?k FILTER(?av != 1)", "B": "?b :k ?k FILTER(?bv != 3)"}
    text = query("A , B", gpms=filtered, partition="?k", window="20 SECONDS")
    assert found(text, events, matcher=name) == ["a7b9", "a8b11"]


@pytest.mark.parametrize("name", ["reference", "interpreter", "nfa", None])
def test_what_a_filter_keeps_out_is_in_its_partition_for_a_negation(name: str | None) -> None:
    """A negated GPM that binds no key forbids it in the partitions that other GPMs give the event."""
    gpms = {"A": "?a :k ?k", "B": "?b :k ?k FILTER(?bv != 3)"}
    text = query("A ; !B2 ; B", gpms=gpms, partition="?k", window="20 SECONDS")
    events = "a1=5/x b2=3/x b3=7/x a4=5/y b5=3/z b6=7/y"
    assert found(text, events, matcher=name) == ["a4b6"]


def test_with_skipping_operators_nobody_pays_for_partitions() -> None:
    gpms = {"A": "?a :k ?k FILTER(?av > 1)", "B": "?b :k ?k"}
    assert normalise(prepare(query("A ; B", gpms=gpms, partition="?k"))).witnesses == frozenset()
    assert normalise(prepare(query("A , B", gpms=gpms, partition="?k"))).witnesses == {"A without filters"}
    assert "by A without filters" in str(explain(prepare(query("A , B", gpms=gpms, partition="?k"))))


def test_emit_and_consume_are_per_partition(matcher: str) -> None:
    gpms = {n: f"?{n.lower()} :k ?k" for n in "AB"}
    text = query("A : B", gpms=gpms, partition="(?k)", tail="EMIT LAST CONSUME ANY")
    events = "a1/x a2/y a3/x b4/x b5/y b6/x"
    assert sorted(found(text, events, matcher=matcher)) == ["a2b5", "a3b4"]
