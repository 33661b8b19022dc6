"""Path queries over GraphFrames: on a stand-in for it, and on GraphFrames itself where it can be had."""

from __future__ import annotations

import inspect
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock, patch

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed (the extra spark brings it)")
pytest.importorskip("graphframes", reason="graphframes-py is not installed (the extra graphframes)")

import graphframes as real  # after the skips
from graphframes.lib import Pregel as RealPregel
from hypothesis import given
from hypothesis import strategies as st
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession
from typer.testing import CliRunner

import spaseq.paths
from spaseq.cli import app
from spaseq.errors import EngineError
from spaseq.spark import graphframe, path_pairs_of_graphframe
from spaseq.spark.paths import graphframes
from tests.paths.strategies import ends, graphs, paths
from tests.spark import graphframes_double as double
from tests.spark.maven import jars, unavailable
from tests.spark.path_graphs import ENDS, EXPRESSIONS, PREFIXES, asked, expected, few, graph, shown

pytestmark = [
    # PySpark's sockets to its JVM and workers are closed when they are collected.
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

on_the_double = patch.object(real, "GraphFrame", double.GraphFrame)
by_pregel = patch.object(graphframes, "SHORT", 0)


@pytest.mark.parametrize(
    ("ours", "theirs"), [(double.GraphFrame, real.GraphFrame), (double.Pregel, RealPregel)]
)
def test_the_double_is_called_as_graphframes_is(ours: type, theirs: type) -> None:
    for name, member in inspect.getmembers(ours, inspect.isroutine):
        if not name.startswith("_") or name == "__init__":
            assert list(inspect.signature(member).parameters) == list(
                inspect.signature(getattr(theirs, name)).parameters
            ), name


@few(1)
@given(triples=graphs(20), path=paths, sources=ends, targets=ends, short=st.sampled_from([0, 3]))
def test_the_pairs_are_those_found_here(spark, triples, path, sources, targets, short) -> None:  # type: ignore[no-untyped-def]
    g, expression = asked(triples, path, sources, targets)
    with on_the_double, patch.object(graphframes, "SHORT", short):
        found = shown(path_pairs_of_graphframe(graphframe(spark, g), expression, sources, targets))
    assert found == expected(g, expression, sources, targets)


@pytest.mark.parametrize("number", [4, pytest.param(7, marks=pytest.mark.long)])
def test_pregel_and_motifs(spark: SparkSession, number: int) -> None:
    g, _ = graph(number)
    expression, given = EXPRESSIONS[number], ENDS[number % 3]
    wanted = expected(g, expression, *given)
    with on_the_double:
        frame = graphframe(spark, g)
        assert shown(path_pairs_of_graphframe(frame, expression, *given, prefixes=PREFIXES)) == wanted
        # As GraphFrames' documentation has it, activity is told from vertices as they are after a step.
        with by_pregel, patch.object(double.Pregel, "sees_what_is_new", True):
            assert shown(path_pairs_of_graphframe(frame, expression, *given, prefixes=PREFIXES)) == wanted


@contextmanager
def runs_of_pregel() -> Iterator[list[double.Pregel]]:
    """Those that are made meanwhile."""
    made: list[double.Pregel] = []
    kept = double.Pregel.__init__

    def keep(pregel: double.Pregel, graph: double.GraphFrame) -> None:
        kept(pregel, graph)
        made.append(pregel)

    with on_the_double, by_pregel, patch.object(double.Pregel, "__init__", keep):
        yield made


@pytest.mark.parametrize("words", [1, pytest.param(2, marks=pytest.mark.long)])
def test_more_than_64_sources(spark: SparkSession, words: int) -> None:
    """All bits of a mask's words, two steps to everything that is reached, and a run for each mask."""
    triples = [(f"urn:{i}", "urn:a", f"urn:hub{i % 3}") for i in range(70)]
    triples += [(f"urn:hub{i}", "urn:b", f"urn:end{i}") for i in range(3)]
    g = spaseq.paths.load(triples, PREFIXES)
    with runs_of_pregel() as made, patch.object(graphframes, "_WORDS", words):
        found = shown(path_pairs_of_graphframe(graphframe(spark, g), ":a/:b", prefixes=PREFIXES))
    assert found == sorted([f"<urn:{i}>", f"<urn:end{i % 3}>"] for i in range(70))
    assert len(made) == 2 // words


def test_the_search_begins_at_the_smaller_end(spark: SparkSession) -> None:
    triples = [(f"urn:{i}", "urn:a", f"urn:hub{i % 3}") for i in range(70)]
    g = spaseq.paths.load(triples, PREFIXES)
    sources, target = [f":{i}" for i in range(70)], ":hub1"
    with runs_of_pregel() as made, patch.object(graphframes, "_WORDS", 1):
        frame = graphframe(spark, g)
        found = shown(path_pairs_of_graphframe(frame, ":a+", sources, target, prefixes=PREFIXES))
    assert found == sorted([f"<urn:{i}>", "<urn:hub1>"] for i in range(1, 70, 3))
    assert len(made) == 1


def test_the_search_stops_and_only_what_is_new_is_sent(spark: SparkSession) -> None:
    """A cycle of four: each place is reached in four supersteps, after which nothing is sent."""
    g = spaseq.paths.load([(f"urn:{i}", "urn:a", f"urn:{(i + 1) % 4}") for i in range(4)], PREFIXES)
    with runs_of_pregel() as made:
        found = path_pairs_of_graphframe(graphframe(spark, g), ":a+", ":0", prefixes=PREFIXES)
        assert len(shown(found)) == 4
    (pregel,) = made
    assert pregel.supersteps <= 5  # the start itself is new once more when the cycle closes


def test_the_graph_for_other_uses(spark: SparkSession) -> None:
    g = spaseq.paths.load([("urn:a", "urn:knows", "urn:b"), ("urn:b", "urn:name", '"B"@en')])
    with on_the_double:
        frame = graphframe(spark, g)
    assert sorted(row.id for row in frame.vertices.collect()) == ['"B"@en', "<urn:a>", "<urn:b>"]
    assert sorted(map(tuple, frame.edges.select("src", "relationship", "dst").collect())) == [
        ("<urn:a>", "<urn:knows>", "<urn:b>"),
        ("<urn:b>", "<urn:name>", '"B"@en'),
    ]


def test_without_its_package(spark: SparkSession, tmp_path: Path) -> None:
    """This session has no jar of GraphFrames: the error says what to do."""
    g, _ = graph(0)
    with pytest.raises(
        EngineError,
        match=r"spark\.jars\.packages=io\.graphframes:graphframes-spark4_2\.13:0[.\d]+,"
        r"io\.graphframes:graphframes-graphx-spark4_2\.13:0",
    ):
        graphframe(spark, g)
    file = tmp_path / "g.nt"
    file.write_text("<urn:a> <urn:knows> <urn:b> .\n")
    failed = CliRunner().invoke(app, ["paths", "<urn:knows>", "-g", str(file), "--engine", "graphframes"])
    assert (failed.exit_code, failed.stdout) == (1, "")
    assert "spark.jars.packages=" in failed.stderr


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            "java.lang.NoClassDefFoundError: org/graphframes/graphx/lib/Pregel",
            r"does not go with .*NoClassDefFoundError: org/graphframes/graphx/lib/Pregel\).*"
            r"both modules, of one version and for Spark 4.*graphframes-graphx-spark4_2\.13",
        ),
        (
            "An error occurred while calling o7.requiredEdgeColumns. Trace:\npy4j.Py4JException: Method "
            "requiredEdgeColumns([class java.lang.String]) does not exist\n\tat py4j.x",
            rf"graphframes-0\.10\.jar, .*, {re.escape(real.__version__)}, and has no requiredEdgeColumns: ",
        ),
    ],
)
def test_a_package_of_another_kind_is_told_from_none(said: str, told: str) -> None:
    """By what the JVM says, on a session without one."""
    vertices, edges = Mock(), Mock()
    vertices.sparkSession.version = "4.1.1"
    found = vertices.sparkSession._jvm.Thread.currentThread().getContextClassLoader().loadClass()
    found.getPackage().getImplementationVersion.return_value = None
    where = found.getProtectionDomain().getCodeSource().getLocation()
    where.getPath.return_value = "/jars/graphframes-0.10.jar"
    with (
        patch.object(real, "GraphFrame", Mock(side_effect=Py4JError(said))),
        pytest.raises(EngineError, match=told),
    ):
        graphframes._made(vertices, edges)
    with (
        patch.object(real, "GraphFrame", Mock(side_effect=Py4JError("something else"))),
        pytest.raises(Py4JError, match="something else"),
    ):
        graphframes._made(vertices, edges)


def test_an_older_python_package_is_told() -> None:
    """That called graphframes has no version, and Pregel had no such method before 0.12."""
    for older, lib, told in (
        (SimpleNamespace(GraphFrame=Mock()), None, "of a version that it does not tell"),
        (
            SimpleNamespace(GraphFrame=Mock(), __version__="0.11.0"),
            SimpleNamespace(Pregel=object),
            r"0\.11",
        ),
    ):
        with (
            patch.dict(sys.modules, {"graphframes": older, "graphframes.lib": lib}),
            pytest.raises(EngineError, match=rf"Python package, {told}.*, is older than 0\.12: pip install"),
        ):
            graphframes._made(Mock(), Mock())


#: Nothing here has imported graphframes.lib. Real is the Python package; what needs the JVM is a stand-in.
FRESH = """
import types
import graphframes
import spaseq.paths
from spaseq.spark import graphframe
assert not hasattr(graphframes, "lib")
graphframes.GraphFrame = lambda v, e: types.SimpleNamespace(vertices=v, edges=e)
session = types.SimpleNamespace(createDataFrame=lambda table: table)
frame = graphframe(session, spaseq.paths.load([("urn:a", "urn:b", "urn:c")]))
print(frame.edges.to_pylist())
"""


@pytest.mark.slow
def test_the_real_python_package_in_a_fresh_process() -> None:
    """A stand-in takes the place of the JVM part, and of the session."""
    done = subprocess.run([sys.executable, "-c", FRESH], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[{'src': '<urn:a>', 'dst': '<urn:c>', 'relationship': '<urn:b>'}]"


def test_the_command_line(spark: SparkSession, tmp_path: Path) -> None:  # noqa: ARG001  # the session it uses
    file = tmp_path / "g.ttl"
    file.write_text('@prefix : <urn:> . :a :knows :b . :b :knows :c , "x"@en .')
    call = ["paths", ":knows+", "-g", str(file), "--from", ":a", "-f", "csv"]
    local = CliRunner().invoke(app, call)
    with on_the_double:
        found = CliRunner().invoke(app, [*call, "--engine", "graphframes"])
    assert found.exit_code == local.exit_code == 0, found.output
    assert sorted(found.stdout.splitlines()) == sorted(local.stdout.splitlines())
    refused = CliRunner().invoke(app, [*call, "--engine", "graphframes", "--shortest", "2"])
    assert refused.exit_code == 2
    assert "--engine graphframes finds pairs" in refused.output


@pytest.mark.slow
def test_graphframes_itself() -> None:
    """In a process of its own: jars are given to a session when it starts."""
    found = jars("graphframes")
    if isinstance(found, str):
        unavailable("graphframes", found)
    script = Path(__file__).with_name("graphframes_session.py")
    done = subprocess.run(
        [sys.executable, str(script), ",".join(map(str, found))],
        capture_output=True,
        text=True,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4_000:]
    result = json.loads(done.stdout.splitlines()[-1])
    assert sum(map(len, result["expected"])) > 50
    assert result["pregel"] == result["expected"]
    assert result["default"] == result["expected"]
    assert len(result["ranked"]) > 5
