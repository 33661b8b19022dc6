"""What becomes of partial matches in each state, counted by hand."""

from __future__ import annotations

import pytest

import spaseq
from tests.why.streams import NS, query, why
from tests.why.test_sequences import ABC, events

State = tuple[int, int, int, dict[str, int]]


@pytest.mark.parametrize(
    ("sequence", "stream", "states", "edges"),
    [
        # a1: b2, and then c of another subject, a5: nothing more
        (
            "A ; B ; C",
            "a1 b2 yc3 a5",
            [(1, 1, 0, {}), (2, 1, 0, {"end of input": 1}), (1, 0, 0, {"join": 1}), (0, 0, 0, {})],
            [2, 1, 0],
        ),
        # a1 is followed by c2, a3 by b4, which c5 follows at once
        (
            "A , B , C",
            "a1 c2 a3 b4 c5",
            [(1, 1, 0, {}), (2, 1, 0, {",": 1}), (1, 1, 0, {}), (1, 1, 1, {})],
            [2, 1, 1],
        ),
        # c2 forbids what b3 would complete
        (
            "A ; !C ; B",
            "a1 c2 b3",
            [(1, 1, 0, {}), (1, 1, 0, {}), (1, 0, 0, {"negation": 1})],
            [1, 1],
        ),
        # a1 and b12 lie in two windows of 10; a15 waits when all ends
        (
            "A ; B",
            "a1 b12 a15",
            [(1, 1, 0, {}), (2, 0, 0, {"end of input": 1, "window": 1}), (0, 0, 0, {})],
            [2, 0],
        ),
    ],
)
def test_states_and_edges(sequence: str, stream: str, states: list[State], edges: list[int]) -> None:
    named = {name: text for name, text in ABC.items() if name in sequence}
    told = why(query(sequence, named), *events(stream))
    assert [(s.came, s.went_on, s.ended, s.died) for s in told.states] == states
    assert [edge.taken for edge in told.edges] == edges


def test_a_filter_stands_in_the_way() -> None:
    gpms = {"A": "?s :a ?p", "B": "?s :b ?q . FILTER(?q > ?p)"}
    told = why(query("A ; B", gpms), *events("a1/5 b2/4"))
    assert told.states[1].died == {"filter": 1}


def test_partitions_are_counted_together() -> None:
    text = query("A , B", {"A": "?s :a ?p", "B": "?s :b ?q"}).replace("FROM", "PARTITION BY ?s FROM", 1)
    told = why(text, *events("a1 ya2 b3 yb4"))
    assert [(s.came, s.went_on, s.ended) for s in told.states] == [(1, 1, 0), (2, 2, 0), (2, 2, 2)]


def test_all_is_one_edge_with_the_matches_of_its_operands() -> None:
    gpms = {name: ABC[name] for name in "ABC"}
    # After c1 A comes twice and B once, joined once each; then c5.
    told = why(query("C ; ALL(A, B) : C", gpms, "100 SECONDS"), *events("c1 a2 a3 b4 c5"))
    assert [(e.label, e.taken, e.operands) for e in told.edges] == [
        ("C", 2, ()),
        ("; ALL(A, B)", 1, (2, 1)),
        (": C", 1, ()),
    ]
    # c1 goes on, c5 does not.
    assert [(s.came, s.went_on, s.ended) for s in told.states] == [(1, 1, 0), (2, 1, 0), (1, 1, 0), (1, 1, 1)]


def test_an_operand_that_never_comes_where_it_is_wanted() -> None:
    told = why(query("ALL(A, B) ; C", ABC), *events("c1 a2 yb3 c4"))
    assert (told.matches, told.edges[0].taken, told.edges[0].operands) == (0, 0, (1, 1))
    assert told.failing == "SEQ(ALL(A, B))"
    assert "        0 → 1  ALL(A, B): 0× (operands: 1×, 1×)" in str(told).splitlines()


@pytest.mark.slow
def test_less_is_looked_at_where_the_whole_is_too_much() -> None:
    gpms = {"A": "?s :a ?p", "D": "?s :a ?q", "B": "?s :b ?r"}
    text = query("A : D : B", gpms, "1000 SECONDS")
    told = why(text, *events("b0 " + " ".join(f"a{time}" for time in range(1, 200))))
    # Pairs of a and d are more than a replay keeps, from a101 on.
    assert (told.sampled, told.tried, told.traced) == (200, 25, 100)
    assert told.cause.startswith("200 events; in the first 25 of them all ended in SEQ(A : D : B)")
    assert told.states[2].came == 99 * 98 // 2
    assert "    in the first 100 of them, for which there was time:" in str(told).splitlines()


def test_no_time_is_no_answer_but_the_counts() -> None:
    with spaseq.Engine() as engine:
        handle = engine.register(query("A ; B", {name: ABC[name] for name in "AB"}))
        for time in (1, 2):
            engine.push(f"{NS}s", f"<urn:x> <{NS}{'ba'[time - 1]}> 1 .", time)
    told = handle.why(0)
    assert told.cause == (
        "2 events, each GPM matched some; "
        "to find out where all ended takes more than 0 s of the processor's time"
    )
    assert (told.gpms["A"].matched, told.traced, told.failing) == (1, 0, None)
    assert handle.why().failing == "SEQ(A ; B)"


def test_skip_is_left_out() -> None:
    text = query("A , B+", {"A": "?s :a ?p", "B": "?s :b ?q"}) + " AFTER MATCH SKIP PAST LAST EVENT"
    told = why(text, *events("a1 a2"))
    assert told.cause == "2 events, of which GPM B matched none: no event has predicate :b; they have :a"
    assert told.states[1].died == {",": 1, "end of input": 1}
