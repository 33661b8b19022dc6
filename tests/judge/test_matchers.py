"""Every matcher, compared with the reference on random queries of the whole language."""

from __future__ import annotations

import random
import warnings
from collections import Counter
from typing import Final

import pytest

from spaseq.errors import EngineError, QueryMeaningError, SpaseqWarning
from spaseq.language import Query, prepare
from tests.judge.compare import Answer, by_engine
from tests.judge.generate import Case, random_case, random_query
from tests.judge.volume import PARTS, SIZE

#: Which matchers a query is tried on, by the only operator it has: all that take the whole language, or
#: those that take a part of it.
TRIED: Final = {None: ("interpreter", "nfa"), ":": ("tecs", "lazy"), ",": ("kmp",)}

#: Which part of the random queries each matcher can run at least.
HELD: Final = {
    "interpreter": 0.55,
    "nfa": 0.35,
    "nfa, skip": 0.2,
    "tecs": 0.2,
    "lazy": 0.35,
    "kmp": 0.08,
}


def answers(case: Case, prepared: Query, matcher: str) -> list[Answer] | None:
    """What a matcher finds; None if it cannot run the query, and says so."""
    try:
        return by_engine(case, matcher.partition(",")[0], prepared)
    except EngineError as refusal:
        if matcher in ("interpreter", "nfa, skip") or "can run this query only if" not in str(refusal):
            raise
        return None


def compare(seed: int, operator: str | None) -> set[str]:
    """Which matchers could be asked; each finds what the reference finds."""
    rng = random.Random(seed)
    query = random_query(rng, operator)
    case = random_case(rng, query, rng.randrange(4, 12))
    try:
        with warnings.catch_warnings():
            # Random queries have vacuous negations, and filters that never hold.
            warnings.simplefilter("ignore", SpaseqWarning)
            prepared = prepare(query.text)
    except QueryMeaningError:
        return set()  # the static checks have the last word on what the generator writes
    tried = TRIED[operator] if query.skip is None else ("nfa, skip",)
    found = {name: got for name in tried if (got := answers(case, prepared, name)) is not None}
    if found:
        wanted = by_engine(case, "reference", prepared)
        for name, got in found.items():
            assert got == wanted, f"{name}, seed {seed}\n{case}"
    return set(found)


def compared(seeds: range, operator: str | None) -> None:
    """Each matcher could be asked often enough."""
    counts = Counter(name for seed in seeds for name in compare(seed, operator))
    for name in (*TRIED[operator], *(("nfa, skip",) if operator is None else ())):
        assert counts[name] >= HELD[name] * len(seeds), counts


@pytest.mark.slow
@pytest.mark.parametrize("operator", TRIED)
def test_some_queries(operator: str | None) -> None:
    compared(range(200), operator)


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("operator", TRIED)
def test_10_000_queries(operator: str | None, part: int) -> None:
    compared(range(1_000 + SIZE * part, 1_000 + SIZE * (part + 1)), operator)
