"""A stateful operator of Spark's behind matches of a stream."""

from __future__ import annotations

from pathlib import Path

import pytest

import spaseq

pyspark = pytest.importorskip("pyspark", reason="PySpark is not installed (the extra spark brings it)")

from pyspark.sql import DataFrame, SparkSession  # noqa: E402  # after the skip
from pyspark.sql import functions as F  # noqa: E402, N812

from spaseq.spark import events, matches  # noqa: E402
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


def _found(rows: DataFrame) -> DataFrame:
    return matches(events(rows, stream=f"{NS}S", time="at", n="id", template=TEMPLATE), QUERY)


def _counted(found: DataFrame) -> DataFrame:
    return found.groupBy(F.window("end", "60 seconds")).count()


def test_aggregates_of_a_stream(spark: SparkSession, tmp_path: Path) -> None:
    """In append mode, each window once: those of the batch that the watermark has passed."""
    rows = spark.range(300).selectExpr(
        "id", "timestamp_seconds(1767225600 + id) AS at", "substr('aabxb', id % 5 + 1, 1) AS kind"
    )
    for part in range(2):
        rows.where(f"id div 150 = {part}").coalesce(1).write.parquet(f"{tmp_path}/in/{part}")
    whole = sorted(_counted(_found(spark.read.parquet(f"{tmp_path}/in/*"))).collect())
    assert len(whole) == 5
    reader = spark.readStream.schema(ROWS).option("maxFilesPerTrigger", 1)
    found = _found(reader.parquet(f"{tmp_path}/in/*"))
    counted = _counted(found).writeStream.format("memory").queryName("counted").outputMode("append")
    running = counted.option("checkpointLocation", f"{tmp_path}/one").start()
    running.processAllAvailable()
    running.stop()
    assert sorted(spark.table("counted").collect()) == whole[:-1]
    twice = _counted(found.withWatermark("end", "0 seconds")).writeStream.format("memory").queryName("twice")
    with pytest.warns(spaseq.SpaseqWarning, match="a watermark already, that of the events"):
        running = twice.option("checkpointLocation", f"{tmp_path}/two").start()
    running.stop()
