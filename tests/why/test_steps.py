"""What becomes of partial matches in each state, counted by hand."""

from __future__ import annotations

import pytest

from tests.why.streams import query, why
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


def test_all_is_not_traced() -> None:
    told = why(query("ALL(A, B)", {"A": "?s :a ?p", "B": "?s :b ?q"}), *events("a1 b2"))
    assert (told.matches, told.states, told.edges) == (1, (), ())


def test_skip_is_left_out() -> None:
    text = query("A , B+", {"A": "?s :a ?p", "B": "?s :b ?q"}) + " AFTER MATCH SKIP PAST LAST EVENT"
    told = why(text, *events("a1 a2"))
    assert told.cause == "2 events, of which GPM B matched none: no event has predicate :b; they have :a"
    assert told.states[1].died == {",": 1, "end of input": 1}
