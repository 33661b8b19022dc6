"""Under a bound, where many events have the same time: what is said of recall is as true as elsewhere."""

from __future__ import annotations

import random
from datetime import timedelta

import pytest

from spaseq import Engine
from spaseq.effort import WorkClock

STREAM = "http://example.org/s"
EVENTS, WINDOW = 2_400, 600

pytestmark = pytest.mark.filterwarnings("ignore:SEQ.*:spaseq.errors.SpaseqWarning")


def _query(window: int) -> str:
    return f"""PREFIX : <http://example.org/>
        SELECT ?x ?y ?z WITHIN {window} SECONDS SLIDING FROM STREAM S <{STREAM}>
        WHERE {{ SEQ(A : B : C) DEFINE GPM A ON S {{ ?i :a ?x }}
          DEFINE GPM B ON S {{ ?i :b ?y FILTER(?y > ?x + 300) }}
          DEFINE GPM C ON S {{ ?i :c ?z FILTER(?z + ?x > ?y + 600) }} }}"""


def _stream(seed: int, at_once: int) -> list[tuple[str, int]]:
    """Events, of which so many have the same time."""
    rng = random.Random(seed)
    return [
        (
            f"<urn:{rng.randrange(10)}> <http://example.org/{rng.choice('abc')}> {rng.randrange(1_000)} .",
            n // at_once,
        )
        for n in range(EVENTS)
    ]


def _run(seed: int, at_once: int, latency: float) -> tuple[int, float, float, float]:
    """How many matches are found, what is said of recall, by how much that may be off; the units of work."""
    clock = WorkClock()
    engine = Engine(evaluator="kernel", latency=timedelta(microseconds=latency), clock=clock)
    handle = engine.register(_query(max(1, WINDOW // at_once)))
    events, count = _stream(seed, at_once), 0
    for first in range(0, EVENTS, 64):
        engine.push_many(STREAM, events[first : first + 64])
        count += sum(map(len, handle.batches()))
    engine.close()
    count += sum(map(len, handle.batches()))
    shed = handle.stats.shed
    assert shed is not None
    assert shed.recall is not None
    return count, shed.recall, shed.error, clock.units


@pytest.mark.few(0, ci=2)
@pytest.mark.parametrize("at_once", [50, 300, EVENTS])
@pytest.mark.parametrize("seed", [41, 42])
def test_recall_where_events_have_the_same_time(seed: int, at_once: int) -> None:
    """It was said to be .93 ± .15 where a fifth was found, and 1 ± 0 where time never moved."""
    every, recall, error, units = _run(seed, at_once, 1e9)
    assert (recall, error) == (1.0, 0.0)
    for part in (0.5, 0.1):
        found, recall, error, _ = _run(seed, at_once, part * units / EVENTS)
        assert found < every
        assert abs(found / every - recall) <= error
