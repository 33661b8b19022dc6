"""Functions of the user's own on Spark: how they travel, and what is refused, without a JVM."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pyoxigraph as ox
import pytest

import spaseq
from spaseq.errors import EngineError
from spaseq.events import BatchBuilder, Clock
from spaseq.language import functions

pytest.importorskip("pyspark", reason="PySpark is not installed (the extra spark brings it)")

from spaseq.spark import _jobs  # after the skip
from spaseq.spark.stages import _job
from spaseq.spark.stages._bucket import Bucket
from spaseq.spark.stages._job import Job
from spaseq.spark.stages._stateless import Stateless

NS = "http://example.org/"
F = NS + "f"
TEXT = (
    f"PREFIX : <{NS}> SELECT ?v ?w (:f(?w) AS ?r) WITHIN 9 SECONDS SLIDING FROM STREAM S <{NS}s> "
    "WHERE { SEQ(A , B) DEFINE GPM A ON S { ?x :v ?v . FILTER(:f(?v) > 2) } "
    "DEFINE GPM B ON S { ?x :v ?w . FILTER(:f(?w) > ?v) } }"
)


@pytest.fixture(autouse=True)
def _as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(functions, "_own", {})


def job() -> Job:
    """The job of the query, in a process that does not know the function."""
    query = spaseq.prepare(TEXT)
    found = Job(str(query), Clock.TICKS, 0, (0,), functions=_job.pickled(query), is_stream=True)
    functions._own.clear()
    return found


def rows(job: Job, *values: int) -> tuple[list[list[str]], list[Any]]:
    """The values that the two stages find, and for each how many calls failed, and how the first did."""
    stage, bucket = Stateless(job), Bucket(job)
    builder = BatchBuilder(stage.dictionary, ox.NamedNode(NS + "s"), Clock.TICKS)
    for tick, value in enumerate(values):
        triple = ox.Triple(ox.NamedNode("urn:x"), ox.NamedNode(NS + "v"), ox.Literal(value))
        builder.add(tick, tick, [triple], None)
    failed: list[tuple[int, str]] = []
    for passed in stage.run([builder.build()], []):
        for piece in passed.pieces:
            bucket.add(piece.data, 0)
        failed += passed.failed.values()
    found = [json.loads(line)["bindings"] for line in bucket.close()]
    failed += [one for _, line in bucket.notices() for one in json.loads(line).values()]
    return [[term["value"] for _, term in sorted(row.items())] for some in found for row in some], failed


def test_a_closure_travels_with_the_query() -> None:
    factor = 2
    spaseq.function(F, lambda value: factor * value)
    assert rows(job(), 1, 2, 3, 1) == ([["6", "2", "3"]], [])


def test_a_vectorized_function_travels_with_the_query() -> None:
    spaseq.function(F, lambda values: 2 * np.asarray(values), vectorized=True)
    assert rows(job(), 1, 2, 3, 1) == ([["6.0E0", "2", "3"]], [])


def test_two_jobs_of_one_text_have_their_own_functions() -> None:
    spaseq.function(F, lambda value: 2 * value)
    first = job()
    spaseq.function(F, lambda value: 3 * value)
    second = job()
    assert rows(first, 1, 2, 3)[0] == [["6", "2", "3"]]
    assert rows(second, 1, 2, 3)[0] == [["6", "1", "2"], ["9", "2", "3"]]


def test_failed_calls_come_back_from_both_stages() -> None:
    def f(value: int) -> float:
        return 12 / (value - 3)

    spaseq.function(F, f)
    found, failed = rows(job(), 4, 3, 4, 5)
    assert found == [["6.0E0", "4", "5"]]
    assert [count for count, _ in failed] == [1, 1]
    assert all(f"<{F}> failed" in first and "ZeroDivisionError" in first for _, first in failed)


@pytest.mark.parametrize(
    ("f", "options", "is_stream", "error"),
    [
        (lambda value: value, {"deterministic": False}, True, "gives something else each time"),
        (threading.Lock().acquire, {}, False, "cannot be pickled for Spark's workers"),
    ],
)
def test_what_spark_refuses(f: Callable[..., Any], options: Any, is_stream: bool, error: str) -> None:
    spaseq.function(F, f, **options)
    query = spaseq.prepare(TEXT)
    with pytest.raises(EngineError, match=rf"<{F}>.* {error}"):
        _jobs.job_of(None, query, None, None, None, _jobs.Settings(), is_stream=is_stream)  # type: ignore[arg-type]


def test_a_function_that_cannot_be_loaded_in_a_worker() -> None:
    with pytest.raises(EngineError, match=r"a function of the query cannot be loaded here.*no_such_module"):
        _job.query_of(TEXT, b"cno_such_module\nf\n.")
