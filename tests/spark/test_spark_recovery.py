"""A crash while the driver hands on loses nothing and repeats nothing; processes: ``test_spark_kills``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

import spaseq
from spaseq.results.writers._json import line_of

pyspark = pytest.importorskip("pyspark", reason="PySpark is not installed (the extra spark brings it)")

from pyspark.errors import StreamingQueryException  # noqa: E402  # after the skip
from pyspark.sql import SparkSession  # noqa: E402

from spaseq.spark import drive, folder_sink, planned  # noqa: E402
from tests.spark.running import without_n  # noqa: E402
from tests.spark.test_spark import stocks  # noqa: E402

pytestmark = [
    # PySpark's sockets to its JVM and workers are closed when they are collected.
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


class _CrashError(Exception):
    pass


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_driver_hands_on_again_what_it_had_committed(spark: SparkSession, tmp_path: Path) -> None:
    text, streams = stocks(tmp_path, 120)
    checkpoint, out = tmp_path / "checkpoint", tmp_path / "out"
    write = folder_sink(out, text)
    given: list[int] = []

    def crashing(number: int, answers: Sequence[tuple[str, str]]) -> None:
        given.append(number)
        if number == 1 and given.count(1) == 1:
            raise _CrashError
        write(number, answers)

    def run() -> None:
        plan = planned(spark, text, streams, checkpoint=checkpoint, most_bytes=20_000, piece_bytes=10_000)
        running = drive(plan, checkpoint, crashing)
        try:
            running.processAllAvailable()
        finally:
            running.stop()

    with pytest.raises(StreamingQueryException):
        run()
    run()
    assert given.count(1) == 2
    lines = [line for file in sorted(out.glob("matches-*")) for line in file.read_text().splitlines()]
    assert without_n(lines) == without_n([line_of(match) for match in spaseq.run(text, streams)])
