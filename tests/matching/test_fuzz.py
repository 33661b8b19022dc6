"""Every matcher gives what the reference gives, on random queries and streams.

An example is a seed: a query and so many streams, since a query costs more than a stream. CI looks at more
than 2,000 cases of each matcher, always the same ones. The profile ``long`` looks at a thousand times as
many, new ones: ``pytest --hypothesis-profile=long tests/matching/test_fuzz.py``, at about 4 ms a case two
hours on a core of its own (with ``-k "test_any_query and not kernel"``, a million of them in more than one).
A case that fails is shown as small as it can be made.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from spaseq.matching.interpreter import absence as runs_memory
from spaseq.matching.nfa import memory as kernel_memory
from spaseq.matching.nfa import sizing
from tests.matching.kernel_cases import by_kernel, by_reference, by_runs, difference
from tests.matching.random_sequences import Query, Sample, random_query, random_sample
from tests.matching.shrinking import shrink

#: How many streams a query is tried on, and of how many events at most.
STREAMS = 25
EVENTS = 7

#: So many groups of examples, which may run side by side.
PARTS = range(4)

EXAMPLES = settings.default.max_examples if settings.default else 100

#: Made smaller here, by what a case means and not by its seed.
unshrunk = settings(max_examples=EXAMPLES, phases=[Phase.explicit, Phase.generate])

seeds = st.integers(0, 2**64 - 1)

MATCHERS = {"interpreter": by_runs, "nfa": by_kernel}


@pytest.fixture(autouse=True)
def little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets matchers forget, and run out of room, where otherwise only long streams would make them.

    ``interpreter`` forgets after each event; the kernel's memory starts with room for one run.
    """
    monkeypatch.setattr(runs_memory, "_PAUSE", 1)
    for room in ("START", "ENOUGH"):
        monkeypatch.setattr(
            sizing, room, kernel_memory.Capacity(*(1 for _ in kernel_memory.Capacity._fields))
        )
    monkeypatch.setattr(kernel_memory, "_DECISIONS", 1)
    monkeypatch.setattr(kernel_memory, "_KEYS", 1)


@pytest.mark.parametrize("part", PARTS)
def test_any_query(part: int) -> None:
    """1,000 cases of ``interpreter`` in CI, and over 500 of ``nfa``: those that its tables can hold."""

    @unshrunk
    @given(seeds)
    def compared(seed: int) -> None:
        rng = random.Random(f"{part} {seed}")
        for sample in samples(rng, random_query(rng)):
            check(sample, "interpreter", "nfa")

    compared()


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.few(0, ci=2)
def test_any_query_of_the_whole_language(part: int) -> None:
    """As many of ``interpreter``, and 800 of the kernel, more: left joins, notNext, WITHIN, LAST with n."""

    @unshrunk
    @given(seeds)
    def compared(seed: int) -> None:
        rng = random.Random(f"whole {part} {seed}")
        query = random_query(rng, most=4, whole_language=True, rich=rng.random() < 0.3)
        for sample in samples(rng, query):
            check(sample, "interpreter", "nfa")

    compared()


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.few(1, ci=3)
def test_any_query_of_the_kernel(part: int) -> None:
    """500 cases of the kernel more."""

    @settings(unshrunk, max_examples=EXAMPLES // 2)
    @given(seeds)
    def compared(seed: int) -> None:
        rng = random.Random(f"kernel {part} {seed}")
        for sample in samples(rng, random_query(rng, alls=False, kernel=True)):
            check(sample, "nfa")

    compared()


#: What random sequences seldom bring to a match.
RARE = (
    "E ; ALL(A, B)",
    "E , ALL(A, B : C)",
    "ALL(A ; B, C)",
    "ALL(A ; !B ; C, D)",
    "ALL(A ; !B, C) ; D",
    "ALL(!A ; B, C)",
    "ALL(ALL(A, B), C ; D)",
    "ALL(A , B, (C & D))",
    "ALL((A ; B)+, C)",
    "A | (A ; !B)",
    "(A ; !B) | (A ; !C)",
    "!A ; (B & C) : !D",
    "A : !(B & C) : D",
    "((A : B)+ , C){1,2}",
    "(A & B & (C | D)) ; (A & B)",
)

#: Whose operands share a key, so that one sees what the others bind.
OPERANDS = (
    "ALL(A ; !B ; C, D)",
    "ALL(A : !B : C, D)",
    "ALL(A ; B, D)",
    "ALL(!B ; A, D)",
    "E : ALL(A ; B : C, D)",
)

REPEATED = ("B+ ; C", "A ; B+ ; C", "B{2,}[:] : C", "(A ; B)+ : C", "A , B{1,3}[,] , C")


@unshrunk
@given(seeds, st.sampled_from([None, "BD"]))
def test_rare_sequences(seed: int, joined: str | None) -> None:
    rng = random.Random(seed)
    query = random_query(rng, sequences=RARE if joined is None else OPERANDS, joined=joined)
    for sample in samples(rng, query, 10):
        check(sample, "interpreter", "nfa")


@unshrunk
@given(seeds)
def test_aggregates(seed: int) -> None:
    """Which must count right when an iteration has several solutions."""
    rng = random.Random(f"aggregates {seed}")
    while True:
        query = random_query(rng, sequences=REPEATED, kernel=True)
        if re.search(r"(COUNT|SUM|AVG|MIN|MAX|FIRST|LAST|PREV)\(", query.text):
            break
    for sample in samples(rng, query, 10):
        check(sample, "interpreter", "nfa")


def samples(rng: random.Random, query: Query, count: int = STREAMS) -> Iterator[Sample]:
    return (random_sample(rng, query, EVENTS) for _ in range(count))


def check(sample: Sample, *matchers: str) -> None:
    """Fails, with the smallest case like this one, unless matchers give what the reference gives."""
    expected = by_reference(sample)
    for name in matchers:
        if name == "nfa" and (sample.query.misfit or sample.drops):
            continue
        if difference(sample, MATCHERS[name], expected) is not None:
            least = shrink(sample, lambda smaller, name=name: wrong(smaller, name) is not None)
            pytest.fail(f"{name}: {wrong(least, name)}\n{least}")


def wrong(sample: Sample, name: str) -> str | None:
    """How a matcher's answer differs from the reference's; None if it does not."""
    if name == "nfa" and sample.query.misfit:
        return None
    return difference(sample, MATCHERS[name], by_reference(sample))
