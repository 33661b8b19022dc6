"""The evaluators that take the whole language, compared with the reference on random queries of it."""

from __future__ import annotations

import random

import pytest

from spaseq.errors import EngineError, QueryMeaningError
from tests.judge.compare import Answer, by_engine
from tests.judge.generate import Case, random_case, random_query

#: How many of the random queries the kernel's tables hold.
HELD = 0.4


def answers(case: Case, evaluator: str) -> list[Answer] | None:
    """What an evaluator finds; None if it is the kernel, and its tables do not hold the query."""
    try:
        return by_engine(case, evaluator)
    except EngineError as refusal:
        if evaluator != "kernel" or "can run this query only if" not in str(refusal):
            raise
        return None


def compare(seed: int) -> set[str]:
    """Which evaluators could be asked; each finds what the reference finds."""
    rng = random.Random(seed)
    query = random_query(rng)
    case = random_case(rng, query, rng.randrange(4, 12))
    try:
        wanted = by_engine(case)
    except QueryMeaningError:
        return set()  # the static checks have the last word on what the generator writes
    asked = {"ordered"} if query.skip is not None else {"runs", "kernel"}
    for name in sorted(asked):
        found = answers(case, name)
        if found is None:
            asked.remove(name)
        else:
            assert found == wanted, f"{name}, seed {seed}\n{case}"
    return asked


def compared(seeds: range) -> tuple[int, float]:
    """How many queries could be asked, and which part of those without SKIP the kernel holds."""
    asked = list(map(compare, seeds))
    runs = sum("runs" in names for names in asked)
    return sum(map(bool, asked)), sum("kernel" in names for names in asked) / runs


def test_some_queries() -> None:
    count, held = compared(range(300))
    assert count > 200
    assert held > HELD


@pytest.mark.long
@pytest.mark.parametrize("part", range(10))
def test_many_queries(part: int) -> None:
    count, held = compared(range(1_000 * (part + 1), 1_000 * (part + 2)))
    assert count > 700
    assert held > HELD
