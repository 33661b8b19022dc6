"""The lazy matcher gives what the reference gives, and keeps no more than a window."""

from __future__ import annotations

import json
import random
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given

from spaseq.automaton.normal import normalise
from spaseq.errors import SpaseqWarning
from spaseq.language.reading.parser import parse
from spaseq.matching.lazy import memory
from spaseq.matching.lazy.matcher import LazyMatcher
from spaseq.matching.lazy.tables import fits
from spaseq.matching.obstacles import features
from tests.matching.kernel_cases import by_kernel, by_reference
from tests.matching.lazy_cases import random_lazy_query
from tests.matching.random_sequences import Sample, random_sample
from tests.matching.shrinking import shrink
from tests.matching.test_fuzz import EVENTS, PARTS, STREAMS, seeds, unshrunk
from tests.matching.test_vectors import run

by_lazy = partial(by_kernel, make=LazyMatcher)
by_tree = partial(by_kernel, make=partial(LazyMatcher, tree=True))


@pytest.fixture(autouse=True)
def little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets the memory grow where otherwise only long streams would make it."""
    for name, least in (("_ROWS", 1), ("_ENTRIES", 2), ("_FRAMES", 4), ("_FOUND", 1)):
        monkeypatch.setattr(memory, name, least)


def wrong(sample: Sample) -> str | None:
    """How the answer differs from the reference's; None if it does not."""
    if fits(sample.query.pattern) is not None:
        return None
    expected = by_reference(sample)
    for name, evaluate in (("chain", by_lazy), ("tree", by_tree)):
        try:
            found = evaluate(sample)
        except Exception as error:  # a crash is a difference, too
            return f"{name}: {type(error).__name__}: {error}"
        for i, (ours, theirs) in enumerate(zip(found, expected, strict=True)):
            if ours != theirs:
                lost, more = (
                    [m for m in one if m not in other] for one, other in ((theirs, ours), (ours, theirs))
                )
                return f"{name}, step {i}: missing {lost}\n  not expected {more}"
    return None


def check(sample: Sample) -> None:
    """Fails, with the smallest case like this one, unless the answer is the reference's."""
    if wrong(sample) is not None:
        least = shrink(sample, lambda smaller: wrong(smaller) is not None)
        pytest.fail(f"{wrong(least)}\n{least}")


@pytest.mark.few(1, ci=2)
@pytest.mark.parametrize("part", PARTS)
def test_any_query_that_fits(part: int) -> None:
    """Random queries, each on several streams."""

    @unshrunk
    @given(seeds)
    def compared(seed: int) -> None:
        rng = random.Random(f"lazy {part} {seed}")
        query = random_lazy_query(rng)
        for _ in range(STREAMS):
            check(replace(random_sample(rng, query, EVENTS), drops=frozenset()))

    compared()


@pytest.mark.parametrize("matcher", ["lazy", "tree"])
def test_vectors(shared: Callable[[str], Path], matcher: str) -> None:
    vectors = json.loads((shared("seq-vectors") / "vectors-2.json").read_text())["cases"][::4]
    held, alls, wrong = 0, 0, []
    for case in vectors:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SpaseqWarning)
            pattern = normalise(parse(str(case["query"])))
        if fits(pattern) is not None or any(features(pattern)):
            continue
        held += 1
        alls += "ALL(" in str(case["query"])
        expected = sorted(sorted((gpm, i) for gpm, i in match) for match in case["matches"])
        if run(case, matcher) != expected:
            wrong.append(case["seed"])
    assert wrong == []
    assert held > 120
    assert alls > 10
