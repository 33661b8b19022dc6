"""A stateful operator of Spark's behind matches of a stream: the two ways that the documentation gives."""

from __future__ import annotations

from pathlib import Path

import pytest

pyspark = pytest.importorskip("pyspark", reason="PySpark is not installed (the extra spark brings it)")

from pyspark.sql import DataFrame, SparkSession  # noqa: E402  # after the skip
from pyspark.sql import functions as F  # noqa: E402, N812
from pyspark.sql.streaming.query import StreamingQuery  # noqa: E402

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


def _ended(started: StreamingQuery) -> None:
    started.awaitTermination()
    assert started.exception() is None


def test_a_table_between_and_for_each_batch(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.range(300).selectExpr(
        "id", "timestamp_seconds(1767225600 + id) AS at", "substr('aabxb', id % 5 + 1, 1) AS kind"
    )
    places = {name: str(tmp_path / name) for name in ("in", "found", "one", "two", "parts", "three")}
    rows.coalesce(1).write.parquet(places["in"])
    whole = _counted(_found(spark.read.parquet(places["in"]))).collect()
    assert len(whole) == 5

    stream = _found(spark.readStream.schema(ROWS).parquet(places["in"]))
    once = {"availableNow": True}
    to_table = stream.writeStream.format("parquet").option("checkpointLocation", places["one"])
    _ended(to_table.trigger(**once).start(places["found"]))
    between = spark.readStream.schema(stream.schema).parquet(places["found"])
    counted = _counted(between.withWatermark("end", "0 seconds"))
    kept = counted.writeStream.format("memory").queryName("counted").outputMode("complete")
    _ended(kept.option("checkpointLocation", places["two"]).trigger(**once).start())
    assert sorted(spark.table("counted").collect()) == sorted(whole)

    def take(batch: DataFrame, number: int) -> None:
        _counted(batch).write.mode("overwrite").parquet(f"{places['parts']}/batch={number}")

    each = stream.writeStream.foreachBatch(take).option("checkpointLocation", places["three"])
    _ended(each.trigger(**once).start())
    parts = spark.read.parquet(places["parts"]).groupBy("window").agg(F.sum("count").alias("count"))
    assert sorted(parts.collect()) == sorted(whole)
