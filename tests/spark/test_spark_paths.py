"""Path queries on Spark give the pairs that are found in this process."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed (the extra spark brings it)")

from hypothesis import given  # after the skip
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession
from typer.testing import CliRunner

import spaseq.paths
import spaseq.spark
from spaseq.cli import app
from spaseq.spark import path_pairs, path_pairs_of_edges
from tests.paths.strategies import ends, graphs, paths
from tests.spark.path_graphs import ENDS, EXPRESSIONS, PREFIXES, asked, expected, few, graph, shown

pytestmark = [
    # PySpark's sockets to its JVM and workers are closed when they are collected.
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def test_spark_finds_the_pairs(spark: SparkSession) -> None:
    for number, expression in list(enumerate(EXPRESSIONS))[1::3]:
        g, _ = graph(number)
        ends = ENDS[number % len(ENDS)]
        found = shown(path_pairs(spark, g, expression, *ends))
        assert found == expected(g, expression, *ends), expression


#: A join takes a while, whatever the graph: CI has a loop with counts and one with checks of places, the
#: others are ``long``.
JOINED = [2, 4, 5, 7, 8]


@pytest.mark.parametrize(
    "number", [n if n in (4, 7) else pytest.param(n, marks=pytest.mark.long) for n in JOINED]
)
def test_joins_find_the_pairs(spark: SparkSession, number: int) -> None:
    g, edges = graph(number)
    table = spark.createDataFrame(edges, "subject string, predicate string, object string")
    ends = ENDS[JOINED.index(number) % len(ENDS)]
    found = shown(path_pairs_of_edges(table, EXPRESSIONS[number], *ends, prefixes=PREFIXES))
    assert found == expected(g, EXPRESSIONS[number], *ends)


@few(1)
@given(triples=graphs(20), path=paths, sources=ends, targets=ends)
def test_every_way_finds_the_same(spark, triples, path, sources, targets) -> None:  # type: ignore[no-untyped-def]
    g, expression = asked(triples, path, sources, targets)
    wanted = expected(g, expression, sources, targets)
    assert shown(path_pairs(spark, g, expression, sources, targets)) == wanted
    rows = [tuple(map(str, triple)) for triple in triples]
    table = spark.createDataFrame(rows, "s string, p string, o string")
    assert shown(path_pairs_of_edges(table, expression, sources, targets)) == wanted


def test_terms_are_given_as_to_a_graph(spark: SparkSession) -> None:
    """One or several, with prefixes, as text or as terms."""
    g, edges = graph(0)
    table = spark.createDataFrame(edges, "s string, p string, o string")
    wanted = expected(g, ":a", "urn:1", None)
    assert wanted
    assert shown(path_pairs(spark, g, ":a", ":1")) == wanted
    assert shown(path_pairs_of_edges(table, ":a", ":1", prefixes=PREFIXES)) == wanted


def test_the_command_line(spark: SparkSession, tmp_path: Path) -> None:  # noqa: ARG001  # the session it uses
    file = tmp_path / "g.ttl"
    file.write_text('@prefix : <urn:> . :a :knows :b . :b :knows :c , "x"@en .')
    call = ["paths", ":knows+", "-g", str(file), "--from", ":a", "-f", "csv"]
    local = CliRunner().invoke(app, call)
    found = CliRunner().invoke(app, [*call, "--engine", "spark"])
    assert found.exit_code == local.exit_code == 0
    assert sorted(found.stdout.splitlines()) == sorted(local.stdout.splitlines())
    fewer = CliRunner().invoke(app, [*call, "--engine", "spark", "--max", "1"])
    assert (len(fewer.stdout.splitlines()), fewer.stderr) == (2, "there are more than 1\n")
    refused = CliRunner().invoke(app, [*call, "--engine", "spark", "--mode", "TRAIL"])
    assert refused.exit_code == 2
    assert "--engine spark finds pairs" in refused.output
    wrong = CliRunner().invoke(app, [*call, "--engine", "spark", "--to", "x y"])
    assert wrong.exit_code == 2


def test_without_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def session(_: str) -> None:
        raise PySparkRuntimeError(errorClass="JAVA_GATEWAY_EXITED", messageParameters={})

    monkeypatch.setattr(spaseq.spark, "session", session)
    file = tmp_path / "g.nt"
    file.write_text("<urn:a> <urn:knows> <urn:b> .\n")
    failed = CliRunner().invoke(app, ["paths", "<urn:knows>", "-g", str(file), "--engine", "spark"])
    assert (failed.exit_code, failed.stdout) == (2, "")
    assert "hint: it needs Java 17" in failed.stderr
