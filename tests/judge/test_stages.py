"""Spark's two stages, run by hand, against the embedded engine, on 10,000 queries of the whole language."""

from __future__ import annotations

import random

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed (the extra spark brings it)")

from tests.judge.volume import PARTS, SIZE
from tests.spark.cases import of_the_whole_language  # after the skip
from tests.spark.stages import Cluster, comparable, pushed


def compare(seed: int) -> bool:
    """Whether there was something to find; however events are cut and shuffled, it is the same."""
    rng = random.Random(seed)
    case = of_the_whole_language(rng)
    sizes = tuple(rng.randint(0, 5) for _ in range(rng.randint(0, 3)))
    cluster = Cluster(rng.randint(1, 3), sizes, cold=rng.random() < 0.5, seed=seed)
    wanted = comparable(pushed(case.text, case.events))
    assert comparable(cluster.run(case.text, case.events)) == wanted, f"seed {seed}: {cluster}\n{case}"
    return bool(wanted)


@pytest.mark.slow
def test_some_queries() -> None:
    assert sum(map(compare, range(60))) > 6


@pytest.mark.parametrize("part", PARTS)
def test_10_000_queries(part: int) -> None:
    assert sum(map(compare, range(1_000 + SIZE * part, 1_000 + SIZE * (part + 1)))) > 75
