"""Bounds by a clock that a caller gives: what it may give, and what none of it may do to the bound."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import count
from typing import Any

import pytest

from spaseq import Engine
from spaseq.bounds import Shed
from spaseq.errors import EngineError, RetrievalError, SpaseqWarning
from spaseq.paths import Budget, load, retrieve
from tests.matching.test_shedding_shared import events, query

_STREAM = "http://example.org/s"


def shed(clock: Callable[[], Any], *, one_by_one: bool) -> Shed:
    """What a query gives up under a bound of a tenth of the time between two readings of a clock."""
    engine = Engine(matcher="nfa", latency=timedelta(microseconds=1), clock=clock)
    handle = engine.register(query("A : B : C"))
    came = events(1_000, seed=5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SpaseqWarning)
        if one_by_one:
            for graph, time in came:
                engine.push(_STREAM, graph, time)
        else:
            for at in range(0, len(came), 4):
                engine.push_many(_STREAM, came[at : at + 4])
        engine.close()
    assert handle.error is None
    assert handle.stats.shed is not None
    return handle.stats.shed


@pytest.mark.parametrize("one_by_one", [False, True])
@pytest.mark.parametrize(
    "reading",
    [
        pytest.param(lambda n: n * 1e-5, id="steady"),
        pytest.param(lambda n: math.nan if n == 25 else n * 1e-5, id="nan once"),
        pytest.param(lambda n: math.inf if n == 25 else n * 1e-5, id="infinite once"),
        pytest.param(lambda n: 10**400 if n == 25 else n * 1e-5, id="no float once"),
        pytest.param(lambda n: n * 1e-5 - 3_600 * (n > 25), id="an hour back"),
        pytest.param(lambda n: Decimal(n) / 100_000, id="decimal"),
        pytest.param(lambda n: Fraction(n, 100_000), id="fraction"),
    ],
)
@pytest.mark.few(1, ci=4)
def test_a_reading_that_is_no_time_does_not_end_the_bound(
    reading: Callable[[int], Any], one_by_one: bool
) -> None:
    """One made all that was counted since no number, or less than nothing: nothing was ever shed again."""
    readings = count()
    told = shed(lambda: reading(next(readings)), one_by_one=one_by_one)
    assert told.partial_matches > 0
    assert told.latency is not None
    assert 0 < told.latency < 1e-3


def _raises() -> float:
    raise RuntimeError("no battery")


@pytest.mark.parametrize(
    ("clock", "why"),
    [
        (lambda: "5", "this one gave '5'"),
        (lambda: None, "this one gave None"),
        (lambda zone: zone, "this one raised TypeError"),
        (_raises, "this one raised RuntimeError: no battery"),
    ],
)
def test_what_is_no_clock_is_said_at_once(clock: Any, why: str) -> None:
    """It was said of the query, which was over, in the midst of the first event."""
    with pytest.raises(EngineError, match=f"a clock is called, and gives seconds, .*; {why}"):
        Engine(latency=timedelta(milliseconds=1), clock=clock)
    with pytest.raises(RetrievalError, match=f"a clock is called, and gives seconds, .*; {why}"):
        Budget(latency=timedelta(milliseconds=1), clock=clock)


def test_a_question_whose_clock_gives_no_number_is_answered() -> None:
    readings = count()
    budget = Budget(latency=timedelta(seconds=1), clock=lambda: math.nan if next(readings) > 1 else 0.0)
    films = load(
        [("urn:Kismet", "urn:starred_actors", "urn:Edward_Arnold"), ("urn:Kismet", "urn:year", "1944")]
    )
    found = retrieve(films, [["^starred_actors", "year"]], "urn:Edward_Arnold", budget=budget)
    assert found.paths
