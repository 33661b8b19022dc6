"""On Spark under a bound: no false match, what was shed is counted, and one warning says that it begins."""

from __future__ import annotations

import json
import random
import warnings
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

import spaseq
from spaseq.bounds import WorkClock
from spaseq.results.writers._json import line_of
from tests.spark.running import without_n
from tests.streams import NS, query

pyspark = pytest.importorskip("pyspark", reason="PySpark is not installed (the extra spark brings it)")

from pyspark.sql import SparkSession  # noqa: E402  # after the skip

from spaseq.spark import answers_of, drive, planned, save  # noqa: E402
from spaseq.spark.queries import Prepared  # noqa: E402
from spaseq.spark.stages._job import BucketBound  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

XSD = "http://www.w3.org/2001/XMLSchema#integer"
TEXT = spaseq.prepare(
    query(
        "A : B : C",
        "60 SECONDS SLIDING",
        {"A": "?a :k ?k .", "B": "?b :k ?k . FILTER(?bv > ?av)", "C": "?c :k ?k . FILTER(?cv < ?bv)"},
        partition="?k",
    )
)


def quads(path: Path, count: int = 300) -> str:
    rng, lines = random.Random(3), []
    for i in range(count):
        graph, node = f"<{NS}g{i}>", f"<{NS}e{i}>"
        lines += [
            f'{graph} <http://www.w3.org/ns/prov#generatedAtTime> "{i}"^^<{XSD}> .',
            f"{node} <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <{NS}{rng.choice('abc')}> {graph} .",
            f'{node} <{NS}v> "{rng.randint(0, 100)}"^^<{XSD}> {graph} .',
            f"{node} <{NS}k> <{NS}k{i % 2}> {graph} .",
        ]
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def bounded(plan: Prepared) -> Prepared:
    """The same under a bound in units of work."""
    assert plan.job.bound == BucketBound(latency=1e-3)
    return replace(plan, job=replace(plan.job, bound=BucketBound(latency=2e-5, clock=WorkClock())))


def check(some: list[str], every: list[str]) -> None:
    found = Counter(without_n(some))
    assert 0 < found.total() < len(every)
    assert not found - Counter(without_n(every))


@pytest.mark.parametrize("how", ["batch", "stream", "driver"])
def test_under_a_bound(spark: SparkSession, tmp_path: Path, how: str) -> None:
    streams = {"S": quads(tmp_path / "in.nq")}
    every = [line_of(match) for match in spaseq.run(TEXT, streams, matcher="nfa")]
    cut = {} if how == "batch" else {"checkpoint": tmp_path / "cp", "most_bytes": 40_000}
    ms = timedelta(milliseconds=1)
    plan = bounded(planned(spark, TEXT, streams, latency=ms, buckets=1, **cut))  # type: ignore[arg-type]
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", spaseq.SpaseqWarning)
        if how == "batch":
            rows = [(row.kind, row.json) for row in answers_of(plan).collect()]
        elif how == "driver":
            rows = []
            running = drive(plan, tmp_path / "cp", lambda _, some: rows.extend(some))
            running.processAllAvailable()
            running.stop()
        else:
            out = tmp_path / "out"
            saved = save(answers_of(plan), TEXT, out, checkpoint=tmp_path / "cp")
            assert saved is not None
            saved.processAllAvailable()
            counted = [
                p.observedMetrics["answers"] for p in saved.recentProgress if "answers" in p.observedMetrics
            ]
            saved.stop()
            rows = [("match", line) for f in out.glob("matches-*") for line in f.read_text().splitlines()]
            assert not list(out.glob("letters-*"))
            rows += [("shed", json.dumps({"partial_matches": c.shed})) for c in counted if c.shed]
            assert sum(c.matches for c in counted) == sum(kind == "match" for kind, _ in rows)
    check([line for kind, line in rows if kind == "match"], every)
    assert sum(json.loads(line)["partial_matches"] for kind, line in rows if kind == "shed") > 0
    # In the driver it is the matcher's own warning, which says what it sheds.
    what = "buffered events" if how == "driver" else "partial matches"
    begun = [str(w.message) for w in told if f"sheds {what}" in str(w.message)]
    assert len(begun) == 1
