"""What docs/capacity.md says of plans and of hot keys."""

from __future__ import annotations

import pytest

pyspark = pytest.importorskip("pyspark", reason="PySpark is not installed (the extra spark brings it)")

from pyspark.sql import SparkSession  # noqa: E402  # after the skip
from pyspark.sql import functions as F  # noqa: E402, N812

from spaseq.spark import events, matches  # noqa: E402

pytestmark = [
    # PySpark's sockets to its JVM and workers are closed when they are collected.
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore:.*order.*"),
]

QUERY = """SELECT * WITHIN 20 SECONDS SLIDING PARTITION BY ?k{key} FROM STREAM S <urn:s>
WHERE {{ SEQ(A ; B)
  DEFINE GPM A ON S {{ ?k <urn:v> ?a {asks} . FILTER(?a > 500) }}
  DEFINE GPM B ON S {{ ?k <urn:v> ?b {asks} . FILTER(?b < 500) }} }}"""


def test_a_hot_key_split_by_time(spark: SparkSession) -> None:
    """The same matches, each once, and some that cross the border of two slices."""
    size, window = 100, 20
    df = spark.range(500).select(F.col("id").alias("at"), F.abs(F.xxhash64("id") % 1000).alias("v"))
    template = "<urn:k> <urn:v> ?v"
    whole = events(df, stream="urn:s", time="at", template=f"{template} .")
    want = matches(whole, QUERY.format(key="", asks=""), start=0)
    slices = F.array(F.floor(F.col("at") / size), F.floor((F.col("at") - window) / size))
    sliced = df.withColumn("slice", F.explode(F.array_distinct(slices)))
    parts = events(sliced, stream="urn:s", time="at", template=f"{template} ; <urn:slice> ?slice .")
    found = matches(parts, QUERY.format(key=" ?slice", asks="; <urn:slice> ?slice"), start=0)
    own = F.floor(F.col("start") / size) == F.expr("cast(partition['slice'].value as bigint)")
    rows = [(row.start, row.end) for row in found.where(own).collect()]
    assert sorted(rows) == sorted((row.start, row.end) for row in want.collect())
    assert len(rows) > 100
    assert any(start // size < end // size for start, end in rows)
    assert found.count() > len(rows)
    assert "REPARTITION_BY_NUM" in found._jdf.queryExecution().toString()
