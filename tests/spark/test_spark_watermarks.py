"""Several streams in one streaming DataFrame: the one that lags holds the watermark, as section 7 has it."""

from __future__ import annotations

import os
from pathlib import Path

import pyoxigraph as ox
import pytest

from tests.spark.running import finished, without_n
from tests.spark.stages import pushed
from tests.streams import NS, Letter, letters, query

pyspark = pytest.importorskip("pyspark", reason="PySpark is not installed (the extra spark brings it)")

from pyspark.sql import SparkSession  # noqa: E402  # after the skip

from spaseq.spark import answers  # noqa: E402
from spaseq.spark.source._rows import EVENTS  # noqa: E402

pytestmark = [
    # PySpark's sockets to its JVM and workers are closed when they are collected.
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

#: Of each key, what is on the left, and then on the right.
PAIRS = query(
    "A ; B",
    "9 SECONDS SLIDING",
    {"A": "?a :k ?k .", "B": "?b :k ?k ."},
    partition="?k",
    streams=["left", "right"],
)


def row(letter: Letter) -> tuple[object, ...]:
    lines = ox.serialize(ox.parse(letter.turtle, format=ox.RdfFormat.TURTLE), format=ox.RdfFormat.N_TRIPLES)
    graph = f"{NS}{letter.name}"
    return NS + letter.stream, "ticks", letter.time, letter.time, graph, lines, None


def test_the_stream_that_lags_holds_the_watermark(spark: SparkSession, tmp_path: Path) -> None:
    """One stream is read up to its end before the other begins, in one DataFrame."""
    left = letters(" ".join(f"left.a{time}/k{time % 3}" for time in range(1, 200)))
    right = letters(" ".join(f"right.b{time}/k{time % 3}" for time in range(1, 200)))
    ends = [letters(f"{stream}.x900") for stream in ("left", "right")]
    folder = tmp_path / "in"
    for number, some in enumerate([left, right[:50], right[50:], *ends]):
        spark.createDataFrame(map(row, some), EVENTS).coalesce(1).write.mode("append").parquet(str(folder))
        (new,) = folder.glob("part-*")
        os.utime(new.rename(folder / f"{number}.parquet"), (1_000 * (number + 1),) * 2)
    events = spark.readStream.schema(EVENTS).option("maxFilesPerTrigger", 1).parquet(str(folder))
    found, _ = finished(answers(events, PAIRS, clock="ticks"), tmp_path / "cp")
    want = pushed(PAIRS, sorted(left + right, key=lambda letter: (letter.time, letter.stream)))
    assert len(want) > 90
    assert without_n(line.json for line in found if line.kind == "match") == without_n(want)
    assert {line.kind for line in found} == {"match"}


def test_options_by_topic_are_those_of_the_topics_read() -> None:
    from spaseq.spark.source.kafka import _of_topics

    said = '{"left": {"0": 5}, "right": {"0": 7}}'
    assert _of_topics(said, ["left"]) == '{"left": {"0": 5}}'
    assert _of_topics("earliest", ["left"]) == "earliest"
