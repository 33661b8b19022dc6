"""Parameterized patterns on event columns give what the reference gives, in whatever batches events come."""

from __future__ import annotations

import random
import warnings
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from pyoxigraph import NamedNode

from spaseq.automaton.normal import normalise
from spaseq.automaton.pattern import SequencePattern
from spaseq.errors import SpaseqWarning
from spaseq.events import Stamp
from spaseq.language.reading.parser import parse
from spaseq.matching.context import Context
from spaseq.matching.kmp.matcher import KmpMatcher
from spaseq.matching.kmp.query import compile_query, obstacles
from spaseq.matching.model import Occurrence, StreamWindow
from spaseq.matching.obstacles import Obstacle, in_words
from spaseq.matching.planner import by_events
from spaseq.terms.dictionary import Dictionary
from tests.matching.blocks import singly
from tests.matching.kernel_cases import batches, shown
from tests.matching.kmp.parameterized_cases import (
    PLACES,
    Case,
    Stream,
    by_matcher,
    by_parameterized,
    by_reference,
    random_case,
    random_stream,
)

#: Random cases of each seed, and streams of each query: together over 2,500 cases, and 10,000 with those that
#: only who asks for them runs.
CASES = 200
STREAMS = 10
SEEDS = [pytest.param(seed, marks=() if seed < 13 else pytest.mark.long) for seed in range(52)]


@pytest.fixture(autouse=True)
def _unused_variables() -> None:
    warnings.simplefilter("ignore", SpaseqWarning)


@pytest.mark.few(0, ci=3)
@pytest.mark.parametrize("seed", SEEDS)
def test_equals_the_reference(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(CASES // STREAMS):
        case = random_case(rng)
        for _ in range(STREAMS):
            stream = random_stream(rng, case, 9)
            sizes = [rng.randrange(1, 5) for _ in range(rng.randrange(4))]
            expected = by_reference(case, stream)
            assert by_parameterized(case, stream, sizes) == expected, _told(case, stream, sizes)


@pytest.mark.slow
def test_the_cases_are_not_trivial() -> None:
    """Matches in partitions and without, with filters, and of events with several solutions."""
    seen: Counter[str] = Counter()
    rng = random.Random(1)
    for _ in range(300):
        case = random_case(rng)
        stream = random_stream(rng, case, 12)
        if by_parameterized(case, stream, []):
            seen["a match"] += 1
            seen["partition"] += bool(case.pattern.query.partition)
            seen["filter"] += "FILTER" in case.text
            seen["long"] += len(compile_query(case.pattern).atoms) > 2
            seen["several"] += any(len(rows) > 1 for e in stream.events for rows in e.solutions.values())
    assert min(seen.values()) > 5
    assert len(seen) == 5


@pytest.mark.few(1, ci=5)
@pytest.mark.parametrize("seed", range(30))
def test_long_streams(seed: int) -> None:
    rng = random.Random(1_000 + seed)
    case = random_case(rng)
    stream = random_stream(rng, case, 600)
    stream = replace(stream, window=StreamWindow(6, False, True, 0))
    context = Context(case.pattern, stream.dictionary, lambda *_: False)
    expected = by_matcher(case, stream, by_events("interpreter", case.pattern, context, stream.window))
    assert by_parameterized(case, stream, [rng.randrange(1, 200) for _ in range(5)]) == expected


def _told(case: Case, stream: Stream, sizes: list[int]) -> str:
    term = stream.dictionary.term
    events = []
    for event in stream.events:
        rows = [
            (gpm, {name: str(term(i)) for name, i in row.items()})
            for gpm, found in event.solutions.items()
            for row in found
        ]
        events.append(f"{event.stamp} {rows}")
    return "\n".join([case.text, f"{stream.window} {sizes}", *events])


# --- forgetting -----------------------------------------------------------------------------------


def made(seq: str, gpms: dict[str, str], by: str = "") -> SequencePattern:
    defined = " ".join(f"DEFINE GPM {name} ON S {{ {body} }}" for name, body in gpms.items())
    return normalise(
        parse(
            f"PREFIX : <http://example.org/> SELECT * WITHIN 10 SECONDS {by} "
            f"FROM STREAM S <http://example.org/s> WHERE {{ SEQ({seq}) {defined} }}"
        )
    )


RETURNS = {"A": "[] :at ?x", "B": "[] :at ?y . FILTER(?x != ?y)", "C": "[] :at ?x"}


def test_ids_of_past_events_are_given_again() -> None:
    """Each page is visited by nobody ever after, so its id comes back as that of another page."""
    dictionary = Dictionary()
    pattern = made("A , B , C", RETURNS)
    matcher = KmpMatcher(
        pattern, dictionary, Context(pattern, dictionary, lambda *_: False), StreamWindow(9, True, True, 0)
    )
    found, limits = [], []
    for start in range(0, 400, 4):
        for part in ((0, 1, 0), (2,)):
            events = []
            for i, page in enumerate(part, start + 3 * (len(part) == 1)):
                term = dictionary.intern(NamedNode(f"http://example.org/{start + page}"))
                seen = {"A": ({"x": term},), "B": ({"y": term},), "C": ({"x": term},)}
                events.append(Occurrence(Stamp(i, 1, i), i, seen))
            (batch,) = batches(events, dictionary, [])
            matches = [match for _, match in singly(matcher.process(*batch))]
            found += [str(dictionary.term(match.rows[0].binding["y"])) for match in matches]
            del batch
            dictionary.sweep()
        limits.append(dictionary.limit)
    assert found == [f"<http://example.org/{start + 1}>" for start in range(0, 400, 4)]
    assert limits[-1] == limits[2] < 20


@pytest.mark.slow
def test_idle_partitions_are_dropped() -> None:
    dictionary = Dictionary()
    pattern = made("A , B", {"A": "[] :who ?k ; :at ?x", "B": "[] :who ?k ; :at ?x"}, "PARTITION BY ?k")
    matcher = KmpMatcher(
        pattern, dictionary, Context(pattern, dictionary, lambda *_: False), StreamWindow(9, False, True, 0)
    )
    place = dictionary.intern(PLACES[0])
    events, found = [], 0
    for i in range(20_000):
        who = dictionary.intern(NamedNode(f"http://example.org/who/{i // 2}"))
        rows = ({"k": who, "x": place},)
        events.append(Occurrence(Stamp(i, 1, i), i, {"A": rows, "B": rows}))
    for batch in batches(events, dictionary, [500] * 40):
        found += len(shown(singly(matcher.process(*batch))))
        assert len(matcher._partitions.keys) < 2_000
        assert len(matcher._partitions.state) < 4_000
    assert found == 10_000


@pytest.mark.slow
def test_an_event_is_compared_once() -> None:
    """Whatever the pattern and the window: every event is a step, and a stop where it does not fit."""
    dictionary = Dictionary()
    names = "ABCDEFGH"
    pattern = made(" , ".join(names), dict.fromkeys(names, "[] :at ?x"))
    matcher = KmpMatcher(
        pattern, dictionary, Context(pattern, dictionary, lambda *_: False), StreamWindow(99, True, True, 0)
    )
    terms = [dictionary.intern(place) for place in PLACES]
    stream = [terms[i // 7 % 3] for i in range(7_000)]
    events = [
        Occurrence(Stamp(i, 1, i), i, {name: ({"x": term},) for name in names})
        for i, term in enumerate(stream)
    ]
    assert not [match for batch in batches(events, dictionary, []) for match in matcher.process(*batch)]
    assert np.array_equal(matcher._stops[:8], [0, 0, 0, 0, 0, 0, 0, 999])


# --- which queries fit ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seq", "gpms", "by", "reason"),
    [
        ("A , B , C", RETURNS, "", None),
        ("A , (B , C)", RETURNS, "", None),
        ("A , B , A", {"A": "[] :at ?x", "B": "[] :at ?y"}, "", None),
        ("A", {"A": "[] :at ?x"}, "", None),
        (
            "A , B , C",
            {name: f"{body} . [] :who ?k" for name, body in RETURNS.items()},
            "PARTITION BY ?k",
            None,
        ),
        ("A , B ; C", RETURNS, "", "every operator is ','; here ';' before C"),
        ("A , B+[,] , C", RETURNS, "", "each place is one GPM; here B+[,]"),
        ("A , B? , C", RETURNS, "", "each place is one GPM; here B?"),
        ("A , (B | C)", RETURNS, "", "each place is one GPM; here B | C"),
        (
            "B , A",
            {"A": "[] :at ?x", "B": RETURNS["B"]},
            "",
            "variables are compared when both are bound; here FILTER(?x != ?y)",
        ),
        (
            "A , B",
            {"A": "[] :at ?x", "B": "[] :at ?y . FILTER(?x < ?y)"},
            "",
            "events are compared by = and != of variables alone; here FILTER(?x < ?y)",
        ),
        ("A , B", RETURNS, "", "all GPMs are in the sequence; here C"),
        (" , ".join("A" * 63), {"A": "[] :at ?x"}, "", "it is at most 62 events long; here 63"),
    ],
)
def test_what_it_cannot_run(seq: str, gpms: dict[str, str], by: str, reason: str | None) -> None:
    found = [replace(obstacle, span=None) for obstacle in obstacles(made(seq, gpms, by))]
    assert in_words(found) == ([] if reason is None else [reason])


def test_one_stream_and_no_consumption() -> None:
    text = (
        "PREFIX : <http://example.org/> SELECT * WITHIN 10 SECONDS FROM STREAM S <http://example.org/s> "
        "FROM STREAM T <http://example.org/t> WHERE { SEQ(A , B) "
        "DEFINE GPM A ON S { [] :at ?x } DEFINE GPM B ON S, T { [] :at ?x } }"
    )
    (obstacle,) = obstacles(normalise(parse(text)))
    assert in_words([obstacle]) == ["there is one stream; here FROM STREAM T (1:96)"]
    alone = text.replace("FROM STREAM T <http://example.org/t>", "").replace("S, T", "S")
    assert not any(obstacles(normalise(parse(alone))))
    (obstacle,) = obstacles(normalise(parse(f"{alone} CONSUME ANY")))
    assert obstacle == Obstacle("nothing is consumed", "CONSUME ANY")


def test_gpms_that_ask_the_same_share_their_tracks() -> None:
    """@x.@y.@x is known to begin again two symbols later only if ?x and ?y are seen on one track."""
    compiled = compile_query(made("A , B , C , D", {**RETURNS, "D": "[] :at ?y"}))
    assert [asked.gpm for asked in compiled.questions] == ["A"]
    assert [(t.variable, t.by_value) for t in compiled.questions[0].tracks] == [("x", False), ("x", True)]
