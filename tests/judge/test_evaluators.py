"""The evaluators that take the whole language, compared with the reference on random queries of it."""

from __future__ import annotations

import random

import pytest

from spaseq.errors import QueryMeaningError
from tests.judge.compare import by_engine
from tests.judge.generate import random_case, random_query


def compare(seed: int) -> bool:
    """Whether a query could be asked; if so, its evaluator finds what the reference finds."""
    rng = random.Random(seed)
    query = random_query(rng)
    case = random_case(rng, query, rng.randrange(4, 12))
    try:
        wanted = by_engine(case)
    except QueryMeaningError:
        return False  # the static checks have the last word on what the generator writes
    found = by_engine(case, "runs" if query.skip is None else "ordered")
    assert found == wanted, f"seed {seed}\n{case}"
    return True


def compared(seeds: range) -> int:
    return sum(map(compare, seeds))


def test_some_queries() -> None:
    assert compared(range(300)) > 200


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_many_queries(part: int) -> None:
    assert compared(range(1_000 * (part + 1), 1_000 * (part + 2))) > 700
