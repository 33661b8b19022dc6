"""``spaseq paths``: what it prints where, and its exit status."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from pyoxigraph import RdfFormat, parse
from typer.testing import CliRunner, Result

from spaseq.cli import app

KB = """@prefix : <http://example.org/> .
:a :knows :b, :c . :b :knows :c . :c :knows :a, :d . :d :name "D\\n" ; :year 1999 .
"""


@pytest.fixture
def kb(tmp_path: Path) -> str:
    """A small graph as a file."""
    path = tmp_path / "kb.ttl"
    path.write_text(KB)
    return str(path)


def spaseq(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["paths", *arguments])


def test_pairs(kb: str) -> None:
    result = spaseq(":knows+/[:year 1999]", "-g", kb, "--from", ":a", "--from", ":b")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.splitlines() == ["source  target", ":a      :d", ":b      :d"]
    result = spaseq(":knows/:name", "-g", kb, "--to", '"D\\n"', "-f", "csv")
    assert list(csv.reader(io.StringIO(result.stdout))) == [
        ["source", "target"],
        ["http://example.org/c", "D\n"],
    ]
    result = spaseq("^:year", "-g", kb, "-f", "ndjson")
    (line,) = result.stdout.splitlines()
    assert json.loads(line)["source"] == {
        "type": "literal",
        "value": "1999",
        "datatype": "http://www.w3.org/2001/XMLSchema#integer",
    }


def test_best_effort(kb: str) -> None:
    asked = (":knows+", "-g", kb, "--mode", "TRAIL")
    every = spaseq(*asked).stdout.splitlines()
    result = spaseq(*asked, "--latency", "1h", "--memory", "1GB")
    assert (sorted(result.stdout.splitlines()), result.stderr) == (sorted(every), "")
    result = spaseq(*asked, "--latency", "0.001ms")
    assert result.exit_code == 0
    assert set(result.stdout.splitlines()) < set(every)
    assert "not all paths are walked, as that would break the bound" in result.stderr
    assert "best effort: " in result.stderr
    result = spaseq(":knows+", "-g", kb, "--memory", "1MB")
    assert (result.exit_code, "bound the search for paths" in result.stderr) == (2, True)


def test_paths(kb: str, tmp_path: Path) -> None:
    result = spaseq(":knows+", "-g", kb, "--from", ":a", "--to", ":d", "--mode", "acyclic")
    assert result.exit_code == 0
    assert sorted(result.stdout.splitlines()) == [
        "2       :a -:knows-> :c -:knows-> :d",
        "3       :a -:knows-> :b -:knows-> :c -:knows-> :d",
        "length  path",
    ]
    out = tmp_path / "paths.nq"
    result = spaseq(
        ":knows+", "-g", kb, "--from", ":a", "--to", ":d", "--shortest", "5", "-f", "nquads", "-o", str(out)
    )
    assert result.stdout == ""
    graphs = [str(quad.graph_name) for quad in parse(out.read_bytes(), RdfFormat.N_QUADS)]
    assert len(set(graphs)) == 5
    result = spaseq(":knows{2}", "-g", kb, "--mode", "walk", "-f", "csv")
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    assert {row["length"] for row in rows} == {"2"}
    result = spaseq(":knows", "-g", kb, "--mode", "walk", "-f", "ndjson", "--max", "1")
    (line,) = result.stdout.splitlines()
    found = json.loads(line)
    assert found["triples"] == [[found["source"], found["triples"][0][1], found["target"]]]
    assert result.stderr == "there are more than 1\n"


def test_explained(kb: str) -> None:
    result = spaseq(":knows+/:nam", "-g", kb, "--explain")
    assert "    1 → 1  :knows" in result.stdout.splitlines()
    assert "no edge has the predicate :nam: did you mean :name?" in result.stdout
    for form, start in (("dot", "digraph"), ("svg", "<svg"), ("json", "{")):
        result = spaseq("foaf:knows+", "--explain", "-f", form)
        assert (result.exit_code, result.stdout[: len(start)]) == (0, start)


def test_doubtful_predicates_are_warned_of(kb: str) -> None:
    result = spaseq(":nows", "-g", kb)
    assert (result.exit_code, result.stdout) == (0, "source  target\n")
    assert "did you mean :knows?" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((":knows+",), "no graph: name its file with -g FILE"),
        ((":knows/", "-g", "KB"), "found the end"),
        ((":knows+", "-g", "KB", "--mode", "walk"), "infinitely many walks"),
        ((":knows+", "-g", "KB", "--mode", "trial"), "did you mean TRAIL?"),
        ((":knows", "-g", "KB", "-f", "nquads"), "pairs have none"),
        ((":knows", "-g", "KB", "-f", "dot"), "is for --explain"),
        ((":knows", "-g", "KB", "--explain", "-f", "csv"), "is for answers"),
        ((":knows", "-g", "KB", "--from", "x y"), "expected"),
        ((":knows", "-g", "KB", "--to", "x :y"), "this is not an IRI"),
        ((":knows", "-g", "KB", "--to", "ex:y y"), "hint: the graph declares :"),
    ],
)
def test_wrong_calls(arguments: tuple[str, ...], message: str, kb: str) -> None:
    result = spaseq(*(kb if argument == "KB" else argument for argument in arguments))
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr


def test_a_graph_that_cannot_be_read(tmp_path: Path) -> None:
    result = spaseq(":knows", "-g", str(tmp_path / "nothing.ttl"))
    assert (result.exit_code, "No such file" in result.stderr) == (1, True)


def test_a_graph_whose_name_does_not_say_its_format(tmp_path: Path) -> None:
    path = tmp_path / "kb.dat"
    path.write_text(KB)
    result = spaseq(":year", "-g", str(path))
    assert (result.exit_code, "--graph-format" in result.stderr) == (1, True)
    result = spaseq(":year", "-g", str(path), "--graph-format", "ttl", "-f", "csv")
    assert (result.exit_code, len(result.stdout.splitlines())) == (0, 2)
    result = spaseq(":year", "-g", str(path), "--graph-format", "ttl", "--explain")
    assert "step       :year: 1 edge" in result.stdout.splitlines()


def test_an_undeclared_prefix(kb: str) -> None:
    result = spaseq(":knows*", "-g", kb, "--from", "ex:kismet")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "the prefix 'ex:' is not declared" in result.stderr
    assert "an IRI is written <ex:kismet>" in result.stderr
