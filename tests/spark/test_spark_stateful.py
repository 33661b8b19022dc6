"""Stateful operators of Spark's behind matches of a stream, and what the stream itself holds."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

import spaseq

pyspark = pytest.importorskip("pyspark", reason="PySpark is not installed (the extra spark brings it)")

from pyspark.sql import DataFrame, Row, SparkSession  # noqa: E402  # after the skip
from pyspark.sql import functions as F  # noqa: E402, N812

from spaseq.spark import analyze, events, matches, state  # noqa: E402
from tests.spark.running import finished  # noqa: E402
from tests.streams import NS, query  # noqa: E402

pytestmark = [
    # PySpark's sockets to its JVM and workers are closed when they are collected.
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore:the query runs as one group"),
]

QUERY = query("A ; B", "4 SECONDS SLIDING")
ROWS = "id BIGINT, at TIMESTAMP, kind STRING"
TEMPLATE = f"<urn:{{id}}> a <{NS}{{kind}}> ; <{NS}v> ?id ."


def _found(rows: DataFrame, text: str = QUERY, observed: str = "answers") -> DataFrame:
    lifted = events(rows, stream=f"{NS}S", time="at", n="id", template=TEMPLATE)
    return matches(lifted, text, observed=observed)


def _counted(found: DataFrame) -> DataFrame:
    return found.groupBy(F.window("end", "60 seconds")).count().select("window.start", "count", "window.end")


def _distinct(found: DataFrame) -> DataFrame:
    return found.dropDuplicates(["end"]).select("end")


@pytest.fixture(scope="module")
def folder(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two files of 150 events each, a second apart."""
    made = tmp_path_factory.mktemp("in")
    rows = spark.range(300).selectExpr(
        "id", "timestamp_seconds(1767225600 + id) AS at", "substr('aabxb', id % 5 + 1, 1) AS kind"
    )
    for part in range(2):
        rows.where(f"id div 150 = {part}").coalesce(1).write.parquet(f"{made}/{part}")
    return made


def _stream(spark: SparkSession, folder: Path) -> DataFrame:
    return spark.readStream.schema(ROWS).option("maxFilesPerTrigger", 1).parquet(f"{folder}/*")


@pytest.mark.parametrize("operator", [_counted, _distinct])
def test_operators_behind_matches(
    spark: SparkSession, folder: Path, tmp_path: Path, operator: Callable[[DataFrame], DataFrame]
) -> None:
    """In append mode: the rows of the batch, each once, up to the watermark of the last events."""
    batch = operator(_found(spark.read.parquet(f"{folder}/*"))).collect()
    rows, _ = finished(operator(_found(_stream(spark, folder))), tmp_path)
    _require_same(rows, batch)


def _require_same(stream: list[Row], batch: list[Row]) -> None:
    got, whole = (sorted(rows, key=lambda row: (row[-1], *row)) for rows in (stream, batch))
    assert got == whole[: len(got)]
    assert whole[-1][-1] - got[-1][-1] <= timedelta(seconds=60)


def _joined(first: DataFrame, second: DataFrame) -> DataFrame:
    """Matches, each with those that begin five seconds after it, and with the end of these."""
    later = second.select(F.col("start").alias("next"), F.col("end").alias("over"))
    near = "next = start + INTERVAL 5 SECONDS AND over >= end AND over <= end + INTERVAL 9 SECONDS"
    return first.join(later, F.expr(near)).select("start", "end", "next", "over")


def test_a_join_of_matches(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    one = _found(spark.read.parquet(f"{folder}/*"))
    two = [_found(_stream(spark, folder), observed=name) for name in ("answers", "later")]
    rows, running = finished(_joined(*two), tmp_path)
    _require_same(rows, _joined(one, one).collect())
    metrics = [progress.observedMetrics for progress in running.recentProgress]
    for name in ("answers", "later"):
        assert sum(of[name].matches for of in metrics) == 120


def test_matches_used_twice(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    """Spark reuses the shuffle before the second use, and finds no watermark behind that."""
    found = _found(_stream(spark, folder))
    writer = _joined(found, found).writeStream.format("noop").option("checkpointLocation", str(tmp_path))
    with pytest.warns(spaseq.SpaseqWarning, match="uses the matches of one DataFrame twice"):
        running = writer.start()
    running.stop()


def test_a_second_watermark(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    found = _found(_stream(spark, folder)).withWatermark("end", "0 seconds")
    twice = _counted(found).writeStream.format("noop").option("checkpointLocation", str(tmp_path))
    with pytest.warns(spaseq.SpaseqWarning, match="a watermark already, that of the events"):
        running = twice.start()
    running.stop()


def test_what_a_running_stream_holds(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    """A chunk stays while one of its events may be in a match; partial matches end with their windows."""
    with pytest.raises(spaseq.EngineError, match="no micro-batch of matches has ended here"):
        state(spark, tmp_path)
    found = _found(_stream(spark, folder), query("A ; C", "4 SECONDS SLIDING"))
    running = found.writeStream.format("noop").option("checkpointLocation", str(tmp_path)).start()
    try:
        running.processAllAvailable()
        rows = state(spark, tmp_path).collect()
    finally:
        running.stop()
    # The As of the second file, and those of its last four seconds.
    assert rows == [Row(bucket=0, events=60, partial_matches=2)]


def test_counts_of_a_batch(spark: SparkSession, folder: Path) -> None:
    """As the embedded engine counts them (``test_stages`` compares all); of a stream there are none."""
    rows = events(spark.read.parquet(f"{folder}/*"), stream=f"{NS}S", time="at", n="id", template=TEMPLATE)
    counts = {(row.part, row.what): row["count"] for row in analyze(rows, QUERY).collect()}
    assert counts["events", "all"] == 300
    assert (counts["GPM A", "events"], counts["GPM B", "solutions"]) == (120, 120)
    assert counts["state 1", "went on"] == counts["state 2", "ended"] == 120
    assert counts["events", "traced"] == 240
    with pytest.raises(spaseq.EngineError, match="counts a batch"):
        analyze(_stream(spark, folder), QUERY)
