"""``spaseq retrieve``: what it prints where, and its exit status."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import rdflib
from typer.testing import CliRunner, Result

from spaseq.cli import app

KB = """@prefix : <http://example.org/> .
:Kismet :starred_actors :Edward_Arnold ; :directed_by :William_Dieterle ; :release_year "1944" .
:Meet_Nero_Wolfe :starred_actors :Edward_Arnold ; :release_year "1936" .
"""
TOPIC = ("--topic", ":Edward_Arnold")


@pytest.fixture
def kb(tmp_path: Path) -> str:
    """A small graph as a file."""
    path = tmp_path / "kb.ttl"
    path.write_text(KB)
    return str(path)


def spaseq(*arguments: str, text: str | None = None) -> Result:
    return CliRunner().invoke(app, ["retrieve", *arguments], input=text)


def test_triples_for_a_prompt(kb: str) -> None:
    found = spaseq("-g", kb, *TOPIC, "^:starred_actors/:directed_by")
    assert (found.exit_code, found.stderr) == (0, "")
    assert found.stdout.splitlines() == [
        "(Kismet, starred actors, Edward Arnold)",
        "(Kismet, directed by, William Dieterle)",
    ]


def test_the_question_decides_what_is_first(kb: str) -> None:
    both = ('["^starred_actors", "release year"]', '["^starred_actors", "directed_by"]')
    for question, first in (
        ("In which year was Meet Nero Wolfe released?", "1936"),
        ("Who directed the film?", "Dieterle"),
    ):
        found = spaseq("-g", kb, *TOPIC, "-q", question, *both, "-f", "table", "-k", "2")
        head, best, _ = found.stdout.splitlines()
        assert head.split() == ["score", "path"]
        assert best.endswith(first)
        assert 0 < float(best.split()[0]) < 1


def test_formats(kb: str, tmp_path: Path) -> None:
    call = ("-g", kb, *TOPIC, "^:starred_actors/:release_year")
    plain = json.loads(spaseq(*call, "-f", "json").stdout)
    assert [path["text"][-4:] for path in plain["paths"]] == ["1944", "1936"]
    quads = rdflib.Graph().parse(data=spaseq(*call, "-f", "nquads").stdout, format="nt")
    assert len(quads) == 4
    out = tmp_path / "found.svg"
    assert spaseq(*call, "-f", "svg", "-o", str(out)).stdout == ""
    assert ">Meet Nero Wolfe</text>" in out.read_text()


def test_what_a_language_model_wrote(kb: str, tmp_path: Path) -> None:
    """A list of expressions as JSON, with weights or without, in a file or on standard input."""
    written = '[["^starred_actors", "directed_by"], [["^starred_actors", "release_year"], 0.5], ":nope"]'
    file = tmp_path / "paths.json"
    file.write_text(written)
    for given, text in ((str(file), None), ("-", written)):
        found = spaseq("-g", kb, *TOPIC, "--expressions", given, "-f", "table", text=text)
        assert [line.split()[0] for line in found.stdout.splitlines()] == ["score", "1.000", "0.500", "0.500"]
        assert "no edge has the predicate :nope" in found.stderr


def test_weights(kb: str) -> None:
    years, directors = '[":nope"]', '[["^starred_actors", "directed_by"], 0.25]'
    found = spaseq(
        "-g", kb, *TOPIC, years, directors, '["^:starred_actors/:release_year", 0.5]', "-f", "table"
    )
    assert [line.split()[0] for line in found.stdout.splitlines()] == ["score", "0.500", "0.500", "0.250"]


def test_budgets(kb: str) -> None:
    call = ("-g", kb, *TOPIC, "(.|^.){1,2}")
    few = spaseq(*call, "--budget-tokens", "10")
    assert 0 < len(few.stdout.splitlines()) < len(spaseq(*call).stdout.splitlines())
    cut = spaseq(*call, "--budget-paths", "1")
    assert "there are more paths than --budget-paths 1" in cut.stderr
    assert spaseq(*call, "-k", "0").stdout == ""


def test_what_cannot_be_used_is_told(kb: str) -> None:
    found = spaseq("-g", kb, *TOPIC, "--topic", ":nobody", '["acted_by"]', "^:starred_actors")
    assert (found.exit_code, len(found.stdout.splitlines())) == (0, 2)
    assert "left out acted_by" in found.stderr
    assert "no predicate of the graph is called acted_by" in found.stderr
    assert "the graph has no node :nobody" in found.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((*TOPIC, ":a"), "no graph: name its file with -g FILE"),
        (("-g", "KB", ":a"), "no topic"),
        (("-g", "KB", *TOPIC), "no expressions"),
        (("-g", "KB", *TOPIC, '["acted_by"]'), "none of the expressions can be used"),
        (("-g", "KB", *TOPIC, '["acted_by"'), "is not JSON"),
        (("-g", "KB", *TOPIC, "--expressions", "-"), "a list of expressions is wanted"),
        (("-g", "KB", *TOPIC, ":a+", "--mode", "walk"), "infinitely many"),
        (("-g", "KB", *TOPIC, ":a", "--mode", "any trail"), "all paths are ranked"),
        (("-g", "KB", "--topic", "x y", ":a"), "no node of the graph is called so"),
    ],
)
def test_wrong_calls(arguments: tuple[str, ...], message: str, kb: str) -> None:
    result = spaseq(*(kb if argument == "KB" else argument for argument in arguments), text='{"a": 1}')
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr


def test_files_that_cannot_be_read(kb: str, tmp_path: Path) -> None:
    missing = str(tmp_path / "nothing")
    for call in (("-g", kb, "--expressions", missing), ("-g", f"{missing}.ttl", ":a")):
        result = spaseq(*call, *TOPIC)
        assert (result.exit_code, "No such file" in result.stderr) == (1, True)


def test_best_effort_says_what_was_given_up(kb: str) -> None:
    call = ("-g", kb, *TOPIC, "^:starred_actors/:release_year")
    found = spaseq(*call, "--memory", "1kB", "--latency", "1h")
    assert (found.exit_code, len(found.stdout.splitlines())) == (0, 2)
    assert found.stderr.splitlines() == ["best effort: 1 edges not walked"]
    assert spaseq(*call, "--latency", "1h", "--memory", "1GB").stderr == ""
    wrong = spaseq(*call, "--latency", "5 parsecs")
    assert wrong.exit_code == 2
    assert "5 parsecs" in wrong.stderr
