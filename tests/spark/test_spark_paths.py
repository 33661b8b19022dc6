"""Path queries on Spark give the pairs that are found in this process."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed (the extra spark brings it)")

from pyspark.sql import DataFrame, SparkSession  # after the skip
from typer.testing import CliRunner

import spaseq.paths
from spaseq.cli import app
from spaseq.interop import from_rdflib
from spaseq.spark import path_pairs, path_pairs_of_edges

pytestmark = [
    # PySpark's sockets to its JVM and workers are closed when they are collected.
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

PREFIXES = {"": "urn:"}

EXPRESSIONS = [
    ":a",
    "^:b/:a",
    ":a/(:b|:c)*/:a",
    ":a+",
    "(:a|^:b){2,3}",
    "!(:a|^:b)",
    "./:c?",
    "[:b]/:a*/[:c <urn:1>]",
    ":b*",
    "(:a/:b)+|:c",
]


def graph(seed: int) -> tuple[spaseq.paths.KnowledgeGraph, list[tuple[str, str, str]]]:
    """A small random graph, and its edges as N-Triples."""
    rng = random.Random(seed)
    triples = {
        (f"urn:{rng.randrange(12)}", f"urn:{rng.choice('abc')}", f"urn:{rng.randrange(12)}")
        for _ in range(24)
    }
    edges = sorted((f"<{s}>", f"<{p}>", f"<{o}>") for s, p, o in triples)
    return spaseq.paths.load(sorted(triples), PREFIXES), edges


def shown(rows: DataFrame) -> list[tuple[str, str]]:
    return sorted((row.source, row.target) for row in rows.collect())


ENDS = [(None, None), (["urn:1", "urn:none"], None), (None, ["urn:2"]), (["urn:1"], ["urn:2", "urn:3"])]


def test_spark_finds_the_pairs(spark: SparkSession) -> None:
    for number, expression in enumerate(EXPRESSIONS):
        g, _ = graph(number)
        sources, targets = ENDS[number % len(ENDS)]
        local = g.pairs(expression, sources, targets)
        expected = sorted((str(from_rdflib(s)), str(from_rdflib(t))) for s, t in local)
        assert shown(path_pairs(spark, g, expression, sources, targets)) == expected, expression


#: A join takes a while, whatever the graph.
JOINED = [2, 4, 5, 7, 8]


@pytest.mark.parametrize("number", JOINED)
def test_joins_find_the_pairs(spark: SparkSession, number: int) -> None:
    g, edges = graph(number)
    table = spark.createDataFrame(edges, "subject string, predicate string, object string")
    expression = EXPRESSIONS[number]
    sources, targets = ENDS[JOINED.index(number) % len(ENDS)]
    expected = sorted(
        (str(from_rdflib(s)), str(from_rdflib(t))) for s, t in g.pairs(expression, sources, targets)
    )
    found = path_pairs_of_edges(table, expression, sources, targets, prefixes=PREFIXES)
    assert shown(found) == expected


def test_the_command_line(spark: SparkSession, tmp_path: Path) -> None:  # noqa: ARG001  # the session it uses
    file = tmp_path / "g.ttl"
    file.write_text('@prefix : <urn:> . :a :knows :b . :b :knows :c , "x"@en .')
    call = ["paths", ":knows+", "-g", str(file), "--from", ":a", "-f", "csv"]
    local = CliRunner().invoke(app, call)
    found = CliRunner().invoke(app, [*call, "--engine", "spark"])
    assert found.exit_code == local.exit_code == 0
    assert sorted(found.stdout.splitlines()) == sorted(local.stdout.splitlines())
    refused = CliRunner().invoke(app, [*call, "--engine", "spark", "--mode", "TRAIL"])
    assert refused.exit_code == 2
    assert "--engine spark finds pairs" in refused.output
