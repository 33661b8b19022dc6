"""A Kleene at the end of a sequence that may be left out: by the kernel, compared with the reference."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spaseq
from tests.conftest import examples

_SEQUENCES = (
    "A ; B*", "A : B*", "A ; B*[:]", "A : B*[:]", "A ; B*[,]", "A ; C* ; B*", "A+ ; B*", "A ; !C ; B*",
    "(A | C) ; B*", "A ; B*?", "(A ; B*) | (C ; B?)", "A ; B* ; C?", "A , C ; B*",
    "A ; (B{2,})?", "A ; (B ; C)?",
)  # fmt: skip
_FILTERS = ("", "FILTER(?b > ?a)", "FILTER(?b > 3)", "FILTER(?b > PREV(?b))", "FILTER(?b < FIRST(?b) + 3)")
_AFTER = ("", "", "EMIT LAST", "EMIT NEXT", "CONSUME ANY")


def _text(rng: random.Random) -> str:
    sequence, condition = rng.choice(_SEQUENCES), rng.choice(_FILTERS)
    gpms = [
        f"DEFINE GPM {name} ON S {{ ?k <urn:{name.lower()}> ?{name.lower()} . {condition * (name == 'B')} }}"
        for name in "ABC"
        if name in sequence
    ]
    window = rng.choice(["5 SECONDS", "8 SECONDS", "6 EVENTS", "9 EVENTS"])
    kind, partition = rng.choice(["SLIDING", "TUMBLING"]), rng.choice(["", "PARTITION BY ?k"])
    return (
        f"SELECT * WITHIN {window} {kind} {partition} "
        f"FROM STREAM S <urn:s> WHERE {{ SEQ({sequence}) {' '.join(gpms)} }} {rng.choice(_AFTER)}"
    )


def _events(rng: random.Random) -> list[tuple[str, int]]:
    time, events = 0, []
    for _ in range(rng.randint(8, 25)):
        time += rng.choice([0, 1, 1, 2, 3])
        graph = [
            f"<urn:k{rng.randint(0, 1)}> <urn:{rng.choice('aabbbcd')}> {rng.randint(0, 6)} ."
            for _ in range(rng.choice([1, 1, 2]))
        ]
        events.append((" ".join(graph), time))
    return events


def _found(text: str, matcher: str, events: list[tuple[str, int]], one_by_one: bool) -> list[str]:
    engine = spaseq.Engine(matcher=matcher)
    matches: list[spaseq.Match] = []
    engine.register(text, matches.append)
    if one_by_one:
        for graph, time in events:
            engine.push("urn:s", graph, time)
    else:
        engine.push_many("urn:s", events)
    engine.close()
    return sorted(
        str([sorted((gpm, [event.n for event in of]) for gpm, of in match.events.items()), _rows(match)])
        for match in matches
    )


def _rows(match: spaseq.Match) -> list[str]:
    return sorted(str(sorted(map(str, row.items()))) for row in match.bindings)


@settings(max_examples=examples(60))
@given(st.integers(0, 2**64 - 1), st.booleans())
def test_as_the_reference_has_it(seed: int, one_by_one: bool) -> None:
    rng = random.Random(seed)
    text, events = _text(rng), _events(rng)
    try:
        expected = _found(text, "reference", events, one_by_one)
        found = _found(text, "nfa", events, one_by_one)
    except spaseq.SpaseqError:
        return  # what no matcher takes, or the kernel does not
    assert found == expected, text


@pytest.mark.parametrize("sequence", ["A ; B*", "A : B*[:]", "A ; C ; B*"])
def test_the_kernel_is_chosen(sequence: str) -> None:
    """What takes ten to twenty times as long event by event."""
    gpms = " ".join(
        f"DEFINE GPM {n} ON S {{ ?k <urn:{n.lower()}> ?{n.lower()} }}" for n in "ABC" if n in sequence
    )
    query = f"SELECT * WITHIN 5 SECONDS FROM STREAM S <urn:s> WHERE {{ SEQ({sequence}) {gpms} }}"
    assert "\nmatcher    nfa: " in str(spaseq.explain(query))
