"""Streams in a real Kafka broker, by Spark's connector."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed (the extra spark brings it)")

from tests.spark.broker import broker  # after the skip
from tests.spark.maven import jars, unavailable


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    found = jars("broker")
    if isinstance(found, str):
        unavailable("kafka", found)
    assert not isinstance(found, str)
    with broker(tmp_path_factory.mktemp("broker"), found) as address:
        yield address


@pytest.mark.slow
def test_streams_in_kafka(servers: str, tmp_path: Path) -> None:
    """In a process of its own: the connector's jars are given to a session when it starts."""
    connector = jars("connector")
    if isinstance(connector, str):
        unavailable("kafka", connector)
    script = Path(__file__).with_name("kafka_session.py")
    given = [servers, ",".join(map(str, connector)), str(tmp_path)]
    environment = {
        **os.environ,
        "PYSPARK_PYTHON": sys.executable,
    }
    done = subprocess.run(
        [sys.executable, str(script), *given], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr[-4_000:]
    result = json.loads(done.stdout.splitlines()[-1])
    assert len(result["expected"]) > 20
    # Everything there is, as a stream of micro-batches, and written to a topic by another query.
    assert result["batch"] == result["expected"]
    assert result["stream"] == result["expected"]
    assert result["derived"] == result["expected_derived"]
    assert len(result["derived"]) > 5
    assert result["written"] == result["expected"]
    (late,) = result["late"]
    assert re.fullmatch(r"topic trades, partition [01], offset \d+", late["position"])
    assert late["reason"].startswith("late: its time 1 is before")
    assert result["shown"]
    assert sorted(map(str, result["shown_bad"])) == sorted(map(str, result["bad"]))
    assert "write them to a topic (kafka_messages)" in result["chained"]
    assert result["missing"].endswith("has no topic 'trade'; did you mean 'trades'?")
    empty, nonsense = sorted(result["bad"], key=lambda letter: letter["payload"])
    assert nonsense["payload"] == "no quads at all"
    assert re.fullmatch(r"topic trades, partition [01], offset \d+", nonsense["position"])
    assert nonsense["reason"] == "The subject of a triple must be an IRI or a blank node"
    assert empty["reason"] == "nothing is in it: a message is an event at least"
