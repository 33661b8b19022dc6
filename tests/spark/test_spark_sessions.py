"""A session fills in what was left open, and overrides nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import spaseq

pyspark = pytest.importorskip("pyspark", reason="PySpark is not installed (the extra spark brings it)")

from pyspark.sql import SparkSession  # noqa: E402  # after the skip

from spaseq.spark import kafka_events, session  # noqa: E402

PROGRAM = """
import json, sys
from spaseq.spark import session
spark = session("local[1]", jars=[sys.argv[1]])
names = ["spark.sql.shuffle.partitions", "spark.sql.session.timeZone", "spark.driver.memory", "spark.jars",
         "spark.python.daemon.module"]
print(json.dumps([spark.conf.get(name) for name in names]))
spark.stop()
"""


@pytest.mark.slow
def test_what_was_submitted_stays(tmp_path: Path) -> None:
    jar = tmp_path / "mine.jar"
    jar.write_bytes(b"PK\5\6" + bytes(18))
    more = "--conf spark.sql.shuffle.partitions=7 --conf spark.sql.session.timeZone=Asia/Tokyo pyspark-shell"
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(jar)],
        env={**os.environ, "PYSPARK_SUBMIT_ARGS": more},
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(done.stdout.splitlines()[-1])
    assert found[:3] == ["7", "Asia/Tokyo", "2g"]
    assert found[3].endswith("mine.jar")
    assert found[4] == "spaseq.spark.daemon"


def test_an_active_session_takes_no_jars(spark: SparkSession) -> None:
    assert session() is spark
    with pytest.raises(spaseq.EngineError, match="the JVM runs already without org"):
        session(packages=["org.example:a:1"])


@pytest.mark.skipif(not pyspark.__version__.startswith("4.1."), reason="each minor version has its own")
def test_the_connector_that_is_named_can_restart(spark: SparkSession) -> None:
    with pytest.raises(spaseq.SourceError, match=r"spark-sql-kafka-0-10_2\.13:4\.1\.3$"):
        kafka_events(spark, "127.0.0.1:1", {"urn:s": "trades"})
