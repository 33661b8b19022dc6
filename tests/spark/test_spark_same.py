"""Spark gives the answers of the embedded engine: for random queries, the use cases, and real trades."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, reduce
from pathlib import Path

import pytest
from hypothesis import settings

import spaseq
from spaseq.engine.running import StreamSource
from spaseq.events import Clock
from spaseq.language import checked
from spaseq.results.writers._json import line_of
from spaseq.spark.sinks._lines import match_of
from tests.benchmarks.realdata import HOME_KB, home_streams, trade_streams
from tests.spark.cases import Case, drawn, write
from tests.spark.running import finished, without_n
from tests.spark.stages import comparable, pushed
from tests.streams import NS

pyspark = pytest.importorskip("pyspark", reason="PySpark is not installed (the extra spark brings it)")

from pyspark.sql import DataFrame, SparkSession  # noqa: E402  # after the skip
from pyspark.sql import functions as F  # noqa: E402, N812  # Spark's own name for it

from spaseq.spark import answers, drive, planned, run  # noqa: E402
from spaseq.spark.source._rows import EVENTS  # noqa: E402

ROOT = Path(__file__).parents[2]
Shared = Callable[[str], Path]
IS_LONG = (settings.default or settings()).max_examples > 1_000

#: How many random cases run in batches, and how many of them as streams and in the driver.
BATCHES, STREAMS = (1_000, 60) if IS_LONG else (6, 1)

#: So many queries make one job: planning one costs more than running it.
TOGETHER = 24

pytestmark = [
    # PySpark's sockets to its JVM and workers are closed when they are collected.
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    # Most of these queries run as one group.
    pytest.mark.filterwarnings("ignore::spaseq.SpaseqWarning"),
]


@cache
def cases() -> list[Case]:
    """Always the same ones in CI, new ones in the long profile."""
    return drawn(8 * BATCHES, derandomized=not IS_LONG)


# --- random queries -------------------------------------------------------------------------------


def test_random_queries_in_batches(spark: SparkSession) -> None:
    """The events of each come in any order, over several partitions."""
    wanted = 0
    for begin in range(0, BATCHES, TOGETHER):
        chosen = by_matches()[begin : begin + TOGETHER]
        got = in_one_job(spark, chosen)
        for number, case in enumerate(chosen):
            want = pushed(case.text, case.events)
            wanted += len(want)
            assert without_n(got[number]) == without_n(want), case
    assert wanted > BATCHES // 2


def in_one_job(spark: SparkSession, chosen: Sequence[Case]) -> Mapping[int, list[str]]:
    """The answers of each case; anything but matches is none."""
    rows = [row for number, case in enumerate(chosen) for row in rows_of(case, number)]
    random.Random(len(rows)).shuffle(rows)
    events = spark.createDataFrame(rows, f"case int, {EVENTS}")
    parts = [
        answers(
            events.where(F.col("case") == number).drop("case"),
            checked(case.text),
            clock=Clock.TICKS,
            start=case.start,
        ).withColumn("case", F.lit(number))
        for number, case in enumerate(chosen)
    ]
    found: dict[int, list[str]] = defaultdict(list)
    for row in reduce(DataFrame.union, parts).collect():
        assert row.kind == "match", row
        found[row.case].append(row.json)
    return found


def rows_of(case: Case, number: int) -> Iterable[tuple[object, ...]]:
    for n, event in enumerate(case.events):
        graph, payload = f"{NS}{event.name}", event.triples.encode()
        yield number, NS + event.stream, Clock.TICKS.value, event.time, n, graph, payload, None


@pytest.mark.parametrize("number", range(STREAMS))
def test_random_queries_as_streams(spark: SparkSession, tmp_path: Path, number: int) -> None:
    case = longest(number)
    streams = write(case, tmp_path / "in")
    checkpoint = tmp_path / "cp"
    frame = run(spark, checked(case.text), streams, checkpoint=checkpoint, most_bytes=800, piece_bytes=400)
    rows, _ = finished(frame, checkpoint)
    assert {row.kind for row in rows} <= {"match"}
    assert without_n(row.json for row in rows) == without_n(pushed(case.text, case.events)), case


@pytest.mark.parametrize("number", range(STREAMS))
def test_random_queries_in_the_driver(spark: SparkSession, tmp_path: Path, number: int) -> None:
    case = longest(number)
    streams = write(case, tmp_path / "in")
    query = checked(case.text)
    plan = planned(spark, query, streams, checkpoint=tmp_path / "cp", most_bytes=800, piece_bytes=400)
    got: list[tuple[str, str]] = []
    running = drive(plan, tmp_path / "cp", lambda _, answers: got.extend(answers))
    try:
        running.processAllAvailable()
    finally:
        running.stop()
    assert {kind for kind, _ in got} <= {"match"}
    assert without_n(line for _, line in got) == without_n(pushed(case.text, case.events)), case


def longest(number: int) -> Case:
    """The cases with the most matches come first."""
    return by_matches()[number]


@cache
def by_matches() -> list[Case]:
    return sorted(cases(), key=lambda case: len(pushed(case.text, case.events)), reverse=True)


# --- use cases ------------------------------------------------------------------------------------

#: Their streams are real ones, which are not in this repository.
REAL = {"smart-grid-home", "stocks-trades"}

SAMPLES = sorted({path.stem for path in (ROOT / "streams").glob("*.rq")} - REAL)


#: Those in CI: a loop with a background graph, and negation.
FEW = {"smart-grid-advice", "trajectories-overdue"}


def prepared(name: str) -> spaseq.Query:
    return spaseq.prepare((ROOT / "streams" / f"{name}.rq").read_text())


def sources(query: spaseq.Query) -> dict[str, StreamSource]:
    """The streams of a use case, from the catalogue."""
    catalog = spaseq.sources.load_catalog(ROOT / "streams" / "catalog.ttl")
    entries = {stream.iri.value: catalog[stream.iri] for stream in query.streams}
    return {iri: spaseq.Source(iri, entry.location, entry.options) for iri, entry in entries.items()}


def background(name: str) -> dict[str, Path]:
    """Its background graph."""
    file = max((ROOT / "kb").glob("*.ttl"), key=lambda path: name.startswith(path.stem) * len(path.stem))
    return {iri.value: file for iri in spaseq.KnowledgeBase({}).missing(prepared(name))}


def local(name: str, streams: Mapping[str, StreamSource], kb: Mapping[str, str | Path]) -> list[str]:
    return [line_of(match) for match in spaseq.run(prepared(name), streams, kb)]


@pytest.mark.parametrize(
    "name", [n if n in FEW else pytest.param(n, marks=pytest.mark.long) for n in SAMPLES]
)
def test_use_cases_in_a_batch(spark: SparkSession, name: str) -> None:
    query, kb = prepared(name), background(name)
    want = local(name, sources(query), kb)
    got = run(spark, query, sources(query), kb).collect()
    assert {row.kind for row in got} == {"match"}
    assert comparable(row.json for row in got) == comparable(want)
    assert [line_of(match_of(line, query)) for line in want] == want


@pytest.mark.parametrize("name", SAMPLES if IS_LONG else ["smart-grid"])
def test_use_cases_as_streams(spark: SparkSession, tmp_path: Path, name: str) -> None:
    query, kb = prepared(name), background(name)
    frame = run(spark, query, sources(query), kb, checkpoint=tmp_path, most_bytes=100_000, piece_bytes=50_000)
    rows, _ = finished(frame, tmp_path)
    assert {row.kind for row in rows} == {"match"}
    assert without_n(row.json for row in rows) == without_n(local(name, sources(query), kb))


# --- real streams ---------------------------------------------------------------------------------


def test_real_trades(spark: SparkSession, shared: Shared, tmp_path: Path) -> None:
    streams = trade_streams(shared("stock-inet-ticks").parent, tmp_path)
    want = local("stocks-trades", streams, {})
    assert len(want) > 400
    got = run(spark, prepared("stocks-trades"), streams).collect()
    assert comparable(row.json for row in got) == comparable(want)


def test_a_real_home(spark: SparkSession, shared: Shared, tmp_path: Path) -> None:
    streams = home_streams(shared("umass-smart-homeC").parent, tmp_path)
    want = local("smart-grid-home", streams, HOME_KB)
    assert len(want) > 20
    got = run(spark, prepared("smart-grid-home"), streams, HOME_KB).collect()
    assert comparable(row.json for row in got) == comparable(want)
