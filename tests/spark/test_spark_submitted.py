"""``session`` overrides nothing that was submitted."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed (the extra spark brings it)")

from pyspark.sql import SparkSession  # after the skip

from spaseq import EngineError
from spaseq.spark import session, sessions

SUBMITTED = "--master local[3] --conf spark.sql.shuffle.partitions=77 --driver-memory 5g pyspark-shell"
DEFAULTS = """\
# A comment
spark.ui.enabled            true
spark.driver.memory         3g
spark.sql.session.timeZone=Europe/Vienna
"""


class _Builder:
    """Notes what it is told."""

    def __init__(self) -> None:
        self.told: dict[str, str] = {}

    def config(self, option: str, value: str) -> _Builder:
        self.told[option] = value
        return self

    def getOrCreate(self) -> None:  # noqa: N802  # Spark's name
        raise LookupError


def told(monkeypatch: pytest.MonkeyPatch, **given: object) -> dict[str, str]:
    """What a new session is told."""
    builder = _Builder()
    monkeypatch.setattr(SparkSession, "builder", builder)
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    with pytest.raises(LookupError):
        session(**given)  # type: ignore[arg-type]
    return builder.told


def test_only_what_is_unset_is_filled_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    monkeypatch.delenv("PYSPARK_SUBMIT_ARGS", raising=False)
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    alone = told(monkeypatch, master="local[2]")
    assert (alone["spark.master"], alone["spark.driver.memory"]) == ("local[2]", "2g")
    assert ("spark.ui.enabled" in alone, alone["spark.sql.session.timeZone"]) == (False, "UTC")

    (tmp_path / "spark-defaults.conf").write_text(DEFAULTS)
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", SUBMITTED)
    filled = told(monkeypatch)
    said = "master", "sql.shuffle.partitions", "driver.memory", "ui.enabled", "sql.session.timeZone"
    assert not {f"spark.{option}" for option in said} & set(filled)
    assert filled["spark.python.daemon.module"] == "spaseq.spark.daemon"
    assert told(monkeypatch, partitions=4, memory="1g").items() >= {
        ("spark.sql.shuffle.partitions", "4"),
        ("spark.driver.memory", "1g"),
    }


def test_a_folder_conf_where_one_happens_to_be_says_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-defaults.conf").write_text(DEFAULTS)
    monkeypatch.chdir(tmp_path)
    for name in ("SPARK_CONF_DIR", "SPARK_HOME", "PYSPARK_SUBMIT_ARGS", "PYSPARK_GATEWAY_PORT"):
        monkeypatch.delenv(name, raising=False)
    assert told(monkeypatch)["spark.driver.memory"] == "2g"


def test_packages_are_added(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--packages a:b:1 pyspark-shell")
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    filled = told(monkeypatch, packages=["c:d:2"], jars=[Path("/x.jar")])
    assert (filled["spark.jars.packages"], filled["spark.jars"]) == ("a:b:1,c:d:2", "/x.jar")
    # Under spark-submit, the JVM has what it has.
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    monkeypatch.setattr(sessions, "_of_jvm", lambda: {"spark.jars.packages": "a:b:1"})
    assert "spark.jars.packages" not in told(monkeypatch, packages=["a:b:1"])
    with pytest.raises(EngineError, match=r"without c:d:2: .*packages=a:b:1,c:d:2"):
        session(packages=["c:d:2"])


def test_graphframes_is_compiled_by_the_best_compiler(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its work is the JVM's, which otherwise only keeps the books."""
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    monkeypatch.delenv("PYSPARK_SUBMIT_ARGS", raising=False)
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    option, quick = "spark.driver.extraJavaOptions", "TieredStopAtLevel"
    assert quick in told(monkeypatch)[option]
    assert quick in told(monkeypatch, packages=["org.apache.spark:spark-avro_2.13:4.1.1"])[option]
    assert quick not in told(monkeypatch, packages=["io.graphframes:graphframes-spark4_2.13:0.12.3"])[option]
    assert quick not in told(monkeypatch, jars=["/jars/graphframes-graphx-spark4_2.13-0.12.3.jar"])[option]
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--packages io.graphframes:graphframes-spark4_2.13:0.12.3 x")
    assert quick not in told(monkeypatch)[option]
