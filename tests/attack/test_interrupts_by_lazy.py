"""Ctrl-C at any call of ``lazy`` under a bound: nothing false, nothing twice, nothing lost unsaid."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

import pytest

from spaseq import Engine
from spaseq.effort import WorkClock
from tests.attack.test_interrupts import AFTER, BEFORE, LAZY, WORK, AtCall, Run, query

pytestmark = pytest.mark.filterwarnings(
    "ignore::spaseq.SpaseqWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)
ALONE = (query("A : B : C", "FILTER(?a > -1)"),)
#: Units that an event may take: all that it wants, or so few that most is shed.
WIDE, TIGHT = 1e9, 2.0


def bounded(called_back: bool, queries: tuple[str, ...], units: float) -> Run:
    engine = Engine(latency=timedelta(microseconds=units), clock=WorkClock(), evaluator="lazy")
    return Run(called_back, queries, engine)


@pytest.mark.few(0, ci=3)
@pytest.mark.parametrize("units", [WIDE, TIGHT])
@pytest.mark.parametrize(
    ("what", "called_back", "file", "queries"),
    [
        ("push", True, "buffered/evaluator.py", ALONE),
        ("push_many", True, "buffered/rows.py", ALONE),
        ("push", False, "buffered/worth.py", ALONE),
        ("push_many", False, "bounded/by_lazy.py", LAZY),
        ("push_many", True, "bounded/ledgers.py", LAZY),
        ("push", True, "buffered/evaluator.py", LAZY),
    ],
)
def test_an_interrupt_at_any_call_under_a_bound(
    what: str, called_back: bool, file: str, queries: tuple[str, ...], units: float
) -> None:
    whole = Run(called_back, queries)
    whole.push(range(BEFORE + AFTER))
    expected = [Counter(found) for found, _ in whole.finish()]
    number, was_interrupted, shed = 0, True, 0
    while was_interrupted:
        number += 1
        run = bounded(called_back, queries, units)
        was_interrupted = AtCall(file, number).during(lambda: WORK[what](run))  # noqa: B023  # called at once
        for text, found, (given, is_over) in zip(queries, expected, run.finish(), strict=True):
            where = f"{text}, interrupted at call {number}"
            assert not Counter(given) - found, where
            assert is_over or units == TIGHT or Counter(given) == found, where
        shed += sum(
            handle.stats.shed.partial_matches for handle in run.handles if handle.stats.shed is not None
        )
    assert number > 1
    assert bool(shed) == (units == TIGHT)
