"""The command line with several queries: what it prints, and says of which, and its exit status."""

from __future__ import annotations

import csv
import json
from io import BytesIO
from pathlib import Path

import pytest
import rdflib
from rdflib.query import Result, ResultRow

from tests.streams import before_totals
from tests.test_cli import ASK, CONSTRUCT, EX, QUERY, STREAM, event, spaseq

#: As QUERY, with another constant; and with other columns, and fewer matches.
MORE = QUERY.replace("?w }", "?w FILTER(?w > 20) }")
OTHER = MORE.replace("?x ?v ?w W", "?w (?v + 1 AS ?more) W")
NEVER = QUERY.replace("ex:w ", "ex:wow ")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with queries and the stream ``s.nq``."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    texts = {"one": QUERY, "more": MORE, "other": OTHER, "never": NEVER, "ask": ASK, "construct": CONSTRUCT}
    for name, text in texts.items():
        (tmp_path / f"{name}.rq").write_text(text)
    (tmp_path / "s.nq").write_text(STREAM)
    return tmp_path


@pytest.mark.usefixtures("here")
def test_a_table_has_a_column_for_the_query() -> None:
    result = spaseq("run", "one.rq", "other.rq", "-s", "S1=s.nq")
    assert result.stdout == (
        "query     start  end  ?x    ?v  ?w  ?more\n"
        "one.rq    1      2    ex:x  10  20\n"
        "one.rq    3      4    ex:x  30  40\n"
        "other.rq  1      4              40  11\n"
        "other.rq  3      4              40  31\n"
    )
    assert (before_totals(result.stderr), result.exit_code) == ("", 0)


@pytest.mark.usefixtures("here")
@pytest.mark.slow
def test_each_line_of_ndjson_says_its_query_and_is_else_as_alone() -> None:
    names = ("one.rq", "more.rq", "other.rq", "ask.rq", "construct.rq")
    result = spaseq("run", *names, "-s", "S1=s.nq", "-f", "ndjson")
    assert result.exit_code == 0
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    for name in names:
        alone = spaseq("run", name, "-s", "S1=s.nq", "-f", "ndjson").stdout.splitlines()
        assert alone
        assert [line for line in lines if line["query"] == name] == [
            {"query": name, **json.loads(line)} for line in alone
        ]
    assert len({line["query"] for line in lines}) == len(names)


@pytest.mark.parametrize("name", ["json", "xml", "csv", "tsv"])
@pytest.mark.usefixtures("here")
@pytest.mark.few(1)
def test_other_tools_read_the_query_as_a_variable(name: str) -> None:
    result = spaseq("run", "one.rq", "other.rq", "-s", "S1=s.nq", "-f", name)
    rows = Result.parse(BytesIO(result.stdout_bytes), format=name)
    assert [str(variable) for variable in rows.vars or ()] == ["query", "x", "v", "w", "more"]
    found = [
        [None if row[name] in (None, rdflib.Literal("")) else str(row[name]) for name in rows.vars or ()]
        for row in rows
        if isinstance(row, ResultRow)
    ]
    assert found == [
        ["one.rq", f"{EX}x", "10", "20", None],
        ["one.rq", f"{EX}x", "30", "40", None],
        ["other.rq", None, None, "40", "11"],
        ["other.rq", None, None, "40", "31"],
    ]


def test_a_pattern_gives_each_query_the_file_that_it_writes_alone(here: Path) -> None:
    names = ("one", "other", "ask")
    assert (
        spaseq("run", *(f"{n}.rq" for n in names), "-s", "S1=s.nq", "-f", "csv", "-o", "{query}.csv").stdout
        == ""
    )
    for name in names:
        together = (here / f"{name}.csv").read_bytes()
        assert together
        assert together == spaseq("run", f"{name}.rq", "-s", "S1=s.nq", "-f", "csv").stdout_bytes
    spaseq("run", "one.rq", "-s", "S1=s.nq", "-f", "tsv", "-o", "{query}.tsv")
    assert (here / "one.tsv").exists()


def test_one_file_for_all(here: Path) -> None:
    printed = spaseq("run", "one.rq", "more.rq", "-s", "S1=s.nq", "-f", "csv")
    spaseq("run", "one.rq", "more.rq", "-s", "S1=s.nq", "-f", "csv", "-o", "all.csv")
    assert (here / "all.csv").read_bytes() == printed.stdout_bytes
    assert [row["query"] for row in csv.DictReader(printed.stdout.splitlines())].count("more.rq") == 2


@pytest.mark.usefixtures("here")
def test_counts_have_their_names() -> None:
    result = spaseq("run", "one.rq", "never.rq", "construct.rq", "-s", "S1=s.nq", "-f", "count", "--no-why")
    assert (result.stdout, result.exit_code) == ("2\tone.rq\n0\tnever.rq\n2\tconstruct.rq\n", 0)


@pytest.mark.usefixtures("here")
def test_why_a_query_has_no_match_is_said_of_it() -> None:
    result = spaseq("run", "one.rq", "never.rq", "-s", "S1=s.nq")
    assert result.exit_code == 0
    assert result.stderr.startswith("no match of never.rq: 4 events, of which GPM B matched none")
    assert "one.rq" not in result.stderr
    assert spaseq("run", "one.rq", "never.rq", "-s", "S1=s.nq", "--no-why").stderr.count("\n") == 1


@pytest.mark.slow
def test_of_very_many_queries_without_a_match_the_first_are_looked_into(here: Path) -> None:
    names = [f"never{i}.rq" for i in range(7)]
    for i, name in enumerate(names):
        (here / name).write_text(NEVER.replace("?w }", f"?w FILTER(?w > {i}) }}"))
    lines = before_totals(spaseq("run", *names, "-s", "S1=s.nq").stderr).splitlines()
    assert [line.partition(":")[0] for line in lines[:-1]] == [f"no match of {name}" for name in names[:5]]
    assert lines[-1] == "no match of 2 further queries, such as never5.rq"


def test_all_that_is_wrong_with_queries_is_told_with_their_files(here: Path) -> None:
    (here / "typo.rq").write_text(QUERY.replace("(A ; B)", "(A ; C)"))
    (here / "word.rq").write_text("SELEC")
    result = spaseq("run", "one.rq", "typo.rq", "word.rq", "one.rq", "no.rq", "-s", "S1=s.nq")
    assert (result.stdout, result.exit_code) == ("", 2)
    places = [line.partition(" ")[0] for line in result.stderr.splitlines() if ".rq:" in line]
    assert places == ["typo.rq:5:11:", "word.rq:1:1:"]
    assert "one.rq is given twice" in result.stderr
    assert "no.rq cannot be read" in result.stderr


def test_a_query_over_a_limit_ends_alone(here: Path) -> None:
    (here / "long.rq").write_text(
        QUERY.replace("SEQ(A ; B)", "SEQ(A ; A2 ; B)").replace(
            "DEFINE GPM B", "DEFINE GPM A2 ON S1 { ?x ex:v ?v2 } DEFINE GPM B"
        )
    )
    (here / "s.nq").write_text("".join(event(i, i, "v", i) for i in range(9)) + event(9, 9, "w", 1))
    (here / "last.rq").write_text(
        QUERY.replace("SEQ(A ; B)", "SEQ(B)")
        .replace("DEFINE GPM A ON S1 { ?x ex:v ?v }", "")
        .replace("?x ?v ?w", "?x ?w")
    )
    limited = ("--matcher", "interpreter", "--limit", "partial-matches=3")
    result = spaseq("run", "long.rq", "last.rq", "-s", "S1=s.nq", "-f", "csv", *limited)
    assert result.exit_code == 1
    assert result.stdout.splitlines()[-1].startswith(f"last.rq,{EX}x")
    assert result.stderr.startswith("error: long.rq: ")
    assert "is over the limit partial_matches=3" in result.stderr


def test_a_stream_that_one_makes_is_read_by_another(here: Path) -> None:
    made = CONSTRUCT.replace("CONSTRUCT", "REGISTER STREAM <http://example.org/made> AS CONSTRUCT", 1)
    (here / "make.rq").write_text(made)
    (here / "read.rq").write_text(
        "PREFIX ex: <http://example.org/> SELECT ?x ?y WITHIN 9 SECONDS "
        "FROM STREAM M <http://example.org/made> WHERE { SEQ(A) DEFINE GPM A ON M { ?x ex:both ?y } }"
    )
    result = spaseq("run", "read.rq", "make.rq", "-s", "S1=s.nq", "-f", "ndjson")
    assert result.exit_code == 0, result.stderr
    ends = [line["end"] for line in map(json.loads, result.stdout.splitlines()) if line["query"] == "read.rq"]
    assert sorted(set(ends)) == [2, 4]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("one.rq", "ask.rq"), "table is for rows, and ask.rq is an ASK"),
        (("one.rq", "construct.rq", "-f", "csv"), "in construct.rq"),
        (("construct.rq", "construct2.rq", "-f", "trig"), "trig has no place for the query"),
        (("one.rq", "named.rq", "-f", "csv"), "named.rq has a variable ?query"),
        (("one.rq", "sub/one.rq", "-o", "{query}.txt"), "one.rq and sub/one.rq would both be"),
        (("one.rq", "elsewhere.rq"), "S1 is <http://example.org/s> in one.rq and <http://example.org/t> in"),
        (("one.rq", "more.rq", "-s", "S2=s.nq"), "no query declares a stream S2: they declare S1"),
        (("one.rq", "kb.rq"), "no file for background graph <http://example.org/kb> of kb.rq"),
        (("one.rq", "more.rq", "--engine", "spark"), "--engine spark runs one query"),
    ],
)  # fmt: skip
@pytest.mark.few(1)
def test_calls_that_cannot_be_done(here: Path, arguments: tuple[str, ...], message: str) -> None:
    (here / "sub").mkdir()
    (here / "sub" / "one.rq").write_text(QUERY)
    (here / "construct2.rq").write_text(CONSTRUCT)
    (here / "named.rq").write_text(QUERY.replace("?x", "?query"))
    (here / "elsewhere.rq").write_text(QUERY.replace("/s>", "/t>"))
    (here / "kb.rq").write_text(
        QUERY.replace("?x ex:v ?v }", "?x ex:v ?v . GRAPH <http://example.org/kb> { ?x a ex:Good } }")
    )
    result = spaseq("run", *arguments, "-s", "S1=s.nq")
    assert (result.stdout, result.exit_code) == ("", 2)
    assert message in result.stderr
