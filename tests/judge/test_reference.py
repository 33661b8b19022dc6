"""The reference and the second judge, on random queries of the whole language: matches and solutions.

2,000 queries on three streams each take a quarter of an hour, and are marked slow, but for a few.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterator

import pytest

import spaseq
from spaseq.language import prepare
from tests.judge.compare import by_engine, by_second_judge
from tests.judge.generate import Case, random_case, random_query
from tests.judge.pattern import Query

#: So many streams for each query, of so many events at most.
STREAMS, EVENTS = 3, 7


def allowed(query: Query) -> bool:
    """Whether a query passes the static checks."""
    with warnings.catch_warnings():
        # Random queries have vacuous negations, and filters that never hold.
        warnings.simplefilter("ignore", spaseq.SpaseqWarning)
        try:
            prepare(query.text)
        except spaseq.QueryError:
            return False
    return True


def cases(seeds: range) -> Iterator[Case]:
    """Random cases, always the same."""
    for seed in seeds:
        rng = random.Random(seed)
        query = random_query(rng)
        while not allowed(query):
            query = random_query(rng)
        yield from (random_case(rng, query, EVENTS) for _ in range(STREAMS))


def check(case: Case) -> None:
    expected, found = by_second_judge(case), by_engine(case)
    more = [match for match in found if match not in expected]
    lost = [match for match in expected if match not in found]
    assert found == expected, f"not expected {more}\nmissing {lost}\n{case}"


def test_some_queries() -> None:
    for case in cases(range(60)):
        check(case)


@pytest.mark.long
@pytest.mark.parametrize("part", range(9))
def test_many_queries(part: int) -> None:
    for case in cases(range(200 * (part + 1), 200 * (part + 2))):
        check(case)
