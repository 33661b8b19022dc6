"""Sequences that nothing matches although every GPM matches something: where they end, and of what."""

from __future__ import annotations

import itertools
import time as clock

import pytest

import spaseq
from spaseq.why import Trial
from tests.why.streams import NS, query, why

ABC = {"A": "?s :a ?p", "B": "?s :b ?q", "C": "?s :c ?r"}


def events(text: str) -> list[tuple[int, str]]:
    """``a1 b7/5``: at 1 :x has :a 0, at 7 :x has :b 5; ``ya1`` is of :y."""
    out = []
    for word in text.split():
        head, _, value = word.partition("/")
        subject = "y" if head.startswith("y") else "x"
        letter, time = head.removeprefix("y")[0], int(head.removeprefix("y")[1:])
        out.append((time, f":{subject} :{letter} {value or 0}"))
    return out


@pytest.mark.parametrize(
    ("sequence", "within", "stream", "cause"),
    [
        (
            "A ; B",
            "10 SECONDS",
            "a1 a8 b12",
            "3 events, all ended in SEQ(A ; B): windows of 10 SECONDS TUMBLING cut it: "
            "with SLIDING there is a match",
        ),
        (
            "A ; B",
            "10 SECONDS SLIDING",
            "a1 b16 a17 b30",
            "4 events, all ended in SEQ(A ; B): a window of 10 SECONDS is too short: "
            "with 20 SECONDS there is a match (the shortest spans 13 ticks)",
        ),
        (
            "A , B , C",
            "100 SECONDS",
            "a1 b2 a3 c4",
            "4 events, all ended in SEQ(A , B , C): other events come in between: "
            "with SEQ(A ; B ; C) there is a match",
        ),
        (
            "A , B , C",
            "100 SECONDS",
            "a1 c2 b3 c4",
            "4 events, all ended in SEQ(A , B): other events come in between: "
            "with SEQ(A ; B ; C) there is a match",
        ),
        (
            "A ; !C ; B",
            "100 SECONDS",
            "a1 c2 b3",
            "3 events, all ended in SEQ(A ; !C ; B): something negated comes in between: "
            "with SEQ(A ; B) there is a match",
        ),
        (
            "A , B",
            "100 SECONDS",
            "a1 yb2 b3",
            "3 events, all ended in SEQ(A , B): events of another ?s come in between: "
            "with PARTITION BY ?s there is a match",
        ),
        (
            "A ; B",
            "100 SECONDS",
            "a1 yb2",
            "2 events, all ended in SEQ(A ; B): A and B never have the same ?s where it is wanted",
        ),
        (
            "A{3,} ; B",
            "100 SECONDS",
            "a1 a2 b3",
            "3 events, all ended in SEQ(A{3,}): there are too few iterations: "
            "with SEQ(A+ ; B) there is a match",
        ),
        ("B ; A", "100 SECONDS", "a1 b2", "2 events, all ended in SEQ(B ; A)"),
    ],
)
def test_the_likeliest_cause(sequence: str, within: str, stream: str, cause: str) -> None:
    named = {name: text for name, text in ABC.items() if name in sequence}
    assert why(query(sequence, named, within), *events(stream)).cause == cause


def test_a_blank_node_that_is_another_in_each_event() -> None:
    told = why(query("A ; B", {"A": "?s :a ?p", "B": "?s :b ?q"}), (1, "_:x :a 1"), (2, "_:x :b 1"))
    assert told.cause == (
        "2 events, all ended in SEQ(A ; B): A and B never have the same ?s where it is wanted: "
        "it is a blank node, and no two events have the same"
    )


@pytest.mark.parametrize(
    ("second", "cause"),
    [
        ("?s :b ?q", "A and B never have the same ?s where it is wanted"),  # in the first eighth
        (
            "?s :b ?q . FILTER(?q > ?p)",
            "to find out what would help takes more than 2600 s of the processor's time",
        ),
    ],
)
def test_where_time_lasts_for_few_changes(second: str, cause: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A look at each event takes a second here."""
    seconds = itertools.count()
    monkeypatch.setattr(clock, "thread_time", lambda: next(seconds))
    with spaseq.Engine() as engine:
        handle = engine.register(query("A ; B", {"A": "?s :a ?p", "B": second}))
        for time in range(400):
            engine.push(f"{NS}s", f"<{NS}{time}> <{NS}{'ab'[time % 2]}> 1 .", time)
    told = handle.why(seconds=2_600)
    assert told.failing == "SEQ(A ; B)"
    assert told.cause.endswith(cause)
    assert told.trials[0] == Trial("WITHIN 10 SECONDS SLIDING", False)
    assert None in [trial.matches for trial in told.trials]


def test_a_filter_between_events_that_never_holds() -> None:
    gpms = {"A": "?s :a ?p", "B": "?s :b ?q . FILTER(?q > ?p)"}
    told = why(query("A ; B", gpms), *events("a1/5 b2/4 a3/9 b4/3"))
    assert told.cause == (
        "4 events, all ended in SEQ(A ; B): FILTER(?q > ?p) of GPM B never holds where it is wanted"
    )
    # b2 after a1; b4 after a1 and after a3.
    assert [(f.gpm, f.held, f.failed, f.erred) for f in told.filters] == [("B", 0, 3, 0)]


def test_a_filter_that_errs() -> None:
    gpms = {
        "A": "?s :a ?p ; :at ?t1",
        "B": "?s :b ?q ; :at ?t2 . FILTER(?t2 - ?t1 < 10)",
    }
    at = ':at "2026-01-01T00:0{}:00Z"^^xsd:dateTime'
    told = why(query("A ; B", gpms), (1, f":x :a 1 ; {at.format(1)}"), (2, f":x :b 1 ; {at.format(2)}"))
    (item,) = told.filters
    assert (item.held, item.failed, item.erred) == (0, 0, 1)
    assert item.error is not None
    assert told.cause == (
        f"2 events, all ended in SEQ(A ; B): FILTER(?t2 - ?t1 < 10) of GPM B always errs: {item.error}"
    )


def test_prev_in_a_first_iteration_holds() -> None:
    gpms = {"A": "?s :a ?p . FILTER(?p > PREV(?p))", "B": "?s :b ?q"}
    told = why(query("A{2,}[,] ; B", gpms), *events("a1/5 a2/4 b3"))
    assert told.failing == "SEQ(A{2,}[,])"
    # a1 and a2 as the first, a2 after a1.
    assert [(f.gpm, f.held, f.failed, f.erred, f.error) for f in told.filters] == [("A", 2, 1, 0, None)]


def test_a_filter_of_where() -> None:
    text = query("A ; B", {"A": "?s :a ?p", "B": "?s :b ?q"}, where="FILTER(?p + ?q > 10)")
    told = why(text, *events("a1/1 b2/2 b3/3"))
    assert told.cause.endswith("FILTER(?p + ?q > 10) of WHERE never holds where it is wanted")
    # b2 does not pass, so that b3 is the next after a1, too.
    assert [(f.gpm, f.held, f.failed, f.erred) for f in told.filters] == [(None, 0, 2, 0)]


def test_what_it_says_in_full() -> None:
    gpms = {"A": "?s :a ?p", "B": "?s :b ?q"}
    told = why(query("A , B", gpms), *events("a1 ya2 b3"))
    assert str(told).splitlines()[:11] == [
        "3 events, all ended in SEQ(A , B): events of another ?s come in between: "
        "with PARTITION BY ?s there is a match",
        "GPM A: 2 of 3 events, 2 solutions",
        "GPM B: 1 of 3 events, 1 solutions",
        "in the first 3 events:",
        "    state 0: 1 came, 1 went on",
        "        0 → 1  A: 2×",
        "    state 1: 2 came, 2 died (, 1, join 1)",
        "        1 → 2  , B: 0×",
        "    state 2: 0 came",
        "    all ended in SEQ(A , B)",
        "    WITHIN 10 SECONDS SLIDING: no match",
    ]
    assert told.as_json()["trials"][0] == {"change": "WITHIN 10 SECONDS SLIDING", "matches": False}
