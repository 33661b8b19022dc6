"""The command line: what it prints where, and its exit status."""

from __future__ import annotations

import gzip
import json
import re
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from spaseq.cli import app
from spaseq.matching.columns.blocks.plain import Columns
from tests.streams import before_totals

EX = "http://example.org/"
TIME = "http://www.w3.org/ns/prov#generatedAtTime"
INTEGER = "http://www.w3.org/2001/XMLSchema#integer"

QUERY = """PREFIX ex: <http://example.org/>
SELECT ?x ?v ?w WITHIN 10 SECONDS
FROM STREAM S1 <http://example.org/s>
WHERE {
  SEQ(A ; B)
  DEFINE GPM A ON S1 { ?x ex:v ?v }
  DEFINE GPM B ON S1 { ?x ex:w ?w }
}
"""
TWO_STREAMS = QUERY.replace("WHERE", "FROM STREAM Second <http://example.org/s?id=2>\nWHERE", 1).replace(
    "GPM B ON S1", "GPM B ON Second"
)
ASK = QUERY.replace("SELECT ?x ?v ?w", "ASK")
CONSTRUCT = QUERY.replace("SELECT ?x ?v ?w", "CONSTRUCT { ?x ex:both ?v , ?w }")
KB_QUERY = QUERY.replace("?x ex:v ?v }", "?x ex:v ?v . GRAPH <http://example.org/kb?x=y> { ?x a ex:Good } }")


def event(n: int, time: object, predicate: str, value: int, subject: str = "x") -> str:
    """An event as N-Quads."""
    stamp = time if isinstance(time, str) else f'"{time}"^^<{INTEGER}>'
    return (
        f"<{EX}g{n}> <{TIME}> {stamp} .\n"
        f'<{EX}{subject}> <{EX}{predicate}> "{value}"^^<{INTEGER}> <{EX}g{n}> .\n'
    )


STREAM = event(0, 1, "v", 10) + event(1, 2, "w", 20) + event(2, 3, "v", 30) + event(3, 4, "w", 40)
NO_TIME = f"<{EX}x> <{EX}v> <{EX}x> <{EX}timeless> .\n"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory with ``q.rq`` and the stream ``s.nq``."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    (tmp_path / "q.rq").write_text(QUERY)
    (tmp_path / "s.nq").write_text(STREAM)
    return tmp_path


def spaseq(*arguments: str, stdin: str | None = None) -> Result:
    result = CliRunner().invoke(app, arguments, input=stdin)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert "Traceback" not in result.stderr
    return result


def run(*arguments: str, query: str = "q.rq", stdin: str | None = None) -> Result:
    return spaseq("run", query, *arguments, stdin=stdin)


# --- run ----------------------------------------------------------------------------------------


@pytest.mark.usefixtures("here")
def test_the_default_is_a_table() -> None:
    result = run("-s", "S1=s.nq")
    assert result.stdout == "start  end  ?x    ?v  ?w\n1      2    ex:x  10  20\n3      4    ex:x  30  40\n"
    assert result.stderr.startswith("4 events, 2 matches in ")
    assert before_totals(result.stderr) == ""
    assert result.exit_code == 0


def test_a_run_says_that_matches_are_many_and_which_limit_is_near(here: Path) -> None:
    (here / "many.rq").write_text(
        f"PREFIX ex: <{EX}> SELECT ?a WITHIN 9 HOURS SLIDING FROM STREAM S1 <{EX}s> WHERE {{ SEQ(A : B : C) "
        "DEFINE GPM A ON S1 { [] ex:v ?a } DEFINE GPM B ON S1 { [] ex:v ?b } "
        "DEFINE GPM C ON S1 { [] ex:v ?c FILTER(?c >= ?b) } }"
    )
    (here / "s.nt").write_text(f'<{EX}x> <{EX}v> "1"^^<{INTEGER}> .\n' * 200)
    result = run("-s", "S1=s.nt?triples=1&time=arrival", "-f", "count", query="many.rq")
    many, totals = result.stderr.splitlines()
    assert re.fullmatch(
        r"1,\d{3},\d{3} matches so far, of 200 events; nearest limit: query-bytes, \d+% used", many
    )
    assert totals.startswith("200 events, 1,313,400 matches in ")


@pytest.mark.parametrize(
    ("name", "expected"), [("csv", f"x,v,w\r\n{EX}x,10,20\r\n{EX}x,30,40\r\n"), ("ndjson", None)]
)
def test_formats_to_standard_output_and_to_a_file(here: Path, name: str, expected: str | None) -> None:
    printed = run("-s", "S1=s.nq", "-f", name)
    assert expected is None or printed.stdout_bytes.decode() == expected
    to_file = run("--stream", "S1=s.nq", "--format", name, "-o", "out")
    assert (to_file.stdout, to_file.exit_code) == ("", 0)
    assert (here / "out").read_bytes() == printed.stdout_bytes


@pytest.mark.usefixtures("here")
def test_ndjson_says_which_events_matched() -> None:
    lines = [json.loads(line) for line in run("-s", "S1=s.nq", "-f", "ndjson").stdout.splitlines()]
    assert [(line["start"], line["end"]) for line in lines] == [(1, 2), (3, 4)]
    assert lines[0]["events"]["A"][0]["graph"] == f"{EX}g0"


def test_counting_looks_at_no_match(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def looked(*_: object) -> None:
        raise AssertionError("somebody looked at a match")

    for made in ("solved", "chosen", "spans", "__getitem__"):
        monkeypatch.setattr(Columns, made, looked)
    (here / "construct.rq").write_text(CONSTRUCT)
    for name in ("q.rq", "construct.rq"):
        assert run("-s", "S1=s.nq", "-f", "count", query=name).stdout == "2\n"
    assert run("-s", "S1=s.nq", "-f", "count", "-o", "out").stdout == ""
    assert (here / "out").read_text() == "2\n"
    assert run("-s", "S1=-?format=nq", "-f", "count", stdin=event(0, 1, "v", 1)).stdout == "0\n"


def test_ask_and_construct(here: Path) -> None:
    (here / "ask.rq").write_text(ASK)
    (here / "construct.rq").write_text(CONSTRUCT)
    assert run("-s", "S1=s.nq", query="ask.rq").stdout == "true\n"
    assert run("-s", "S1=-?format=nq", query="ask.rq", stdin=event(0, 1, "v", 1)).stdout == "false\n"
    text = run("-s", "S1=s.nq", "-f", "trig", query="construct.rq").stdout
    assert text.startswith(f"@prefix ex: <{EX}> .\n_:match1 ")
    assert text.count("ex:x ex:both") == 2


def test_a_constructed_stream_is_a_source_again(here: Path) -> None:
    (here / "construct.rq").write_text(CONSTRUCT)
    assert run("-s", "S1=s.nq", "-f", "nquads", "-o", "both.nq", query="construct.rq").exit_code == 0
    (here / "next.rq").write_text(QUERY.replace("ex:v", "ex:both").replace("ex:w", "ex:both"))
    result = run("-s", "S1=both.nq", "-f", "csv", query="next.rq")
    rows = set(result.stdout_bytes.decode().splitlines()[1:])
    assert rows == {f"{EX}x,{v},{w}" for v in (10, 20) for w in (30, 40)}


@pytest.mark.parametrize("name", ["S1", f"{EX}s", f"<{EX}s>"])
@pytest.mark.usefixtures("here")
def test_a_stream_is_named_as_in_the_query_or_by_its_iri(name: str) -> None:
    assert run("-s", f"{name}=s.nq").stdout.count("ex:x") == 2


def test_an_iri_may_contain_the_equals_sign(here: Path) -> None:
    (here / "two.rq").write_text(TWO_STREAMS)
    result = run("-s", "S1=s.nq", "-s", f"{EX}s?id=2=s.nq?time={TIME}", query="two.rq")
    assert (result.exit_code, result.stdout.count("ex:x")) == (0, 2)


def test_sources_have_options_and_may_be_compressed_or_standard_input(here: Path) -> None:
    (here / "s.data").write_bytes(gzip.compress(STREAM.encode()))
    (here / "s.data").rename(here / "s.nq.gz")
    assert run("-s", "S1=s.nq.gz").stdout.count("ex:x") == 2
    arrival = run("-s", "S1=-?format=nq&time=arrival", "-f", "ndjson", stdin=STREAM).stdout
    assert [json.loads(line)["start"] for line in arrival.splitlines()] == [0, 2]


def test_streams_come_from_a_catalogue(here: Path) -> None:
    (here / "catalog.ttl").write_text(
        """@prefix vocals: <http://w3id.org/rsp/vocals#> . @prefix dcat: <http://www.w3.org/ns/dcat#> .
        <http://example.org/s> a vocals:RDFStream ; vocals:hasEndpoint [ dcat:accessURL <s.nq> ] .
        <http://example.org/t> a vocals:RDFStream ; vocals:hasEndpoint [ dcat:accessURL <t.nq> ] .
        """
    )
    assert run("--catalog", "catalog.ttl").stdout.count("ex:x") == 2
    assert run("--catalog", "catalog.ttl", "-s", "S1=-?format=nq", stdin="").stdout.count("ex:x") == 0
    (here / "two.rq").write_text(TWO_STREAMS)
    missing = run("--catalog", "catalog.ttl", query="two.rq")
    assert missing.exit_code == 2
    assert missing.stderr == (
        "error: no source for stream Second <http://example.org/s?id=2>\n"
        "hint: give each one with -s NAME=FILE; the catalogue has <http://example.org/s>, <http://example.org/t>\n"
    )


def test_background_graphs(here: Path) -> None:
    (here / "kb.rq").write_text(KB_QUERY)
    (here / "kb.ttl").write_text(f"<{EX}x> a <{EX}Good> .")
    for name in (f"{EX}kb?x=y", f"<{EX}kb?x=y>"):
        assert run("-s", "S1=s.nq", "--kb", f"{name}=kb.ttl", query="kb.rq").stdout.count("ex:x") == 2
    (here / "kb.ttl").write_text(f"<{EX}y> a <{EX}Good> .")
    assert run("-s", "S1=s.nq", "--kb", f"{EX}kb?x=y=kb.ttl", query="kb.rq").stdout.count("ex:x") == 0


# --- what is wrong with the command line or the query: 2 ------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            [],
            f"error: no source for stream S1 <{EX}s>\nhint: give each one with -s NAME=FILE, or",
        ),
        (["-s", "S=s.nq"], "error: -s S=s.nq: the query declares no stream S: did you mean S1?"),
        (["-s", "zzz=s.nq"], "declares no stream zzz: it declares S1"),
        (["-s", "s.nq"], "error: -s 's.nq' is not NAME=SOURCE or IRI=SOURCE"),
        (["-s", "S1="], "error: -s S1=: no location"),
        (["-s", "S1=s.nq", "-s", f"{EX}s=s.nq"], "this stream has a source already"),
        (["-s", "S1=s.nq?tiem=arrival"], "unknown option 'tiem': one of format, time"),
        (["-s", "S1=s.nq?triples=no"], "is not a number of triples"),
        (
            ["-s", "S1=s.nq", "-f", "trig"],
            "error: -f trig cannot hold the results of SELECT: use table, json",
        ),
        (["-s", "S1=s.nq", "-f", "yaml"], "'yaml' is not one of 'table', 'json'"),
        (["-s", "S1=s.nq", "--kb", "kb.ttl"], "error: --kb 'kb.ttl' is not IRI=FILE"),
        (["-s", "S1=s.nq", "--kb", "=kb.ttl"], "is not IRI=FILE"),
        (["-s", "S1=s.nq", "--kb", "urn:a=b", "--kb", "<urn:a>=c"], "error: --kb gives <urn:a> twice"),
        (["-s", "S1=s.nq", "--lateness", "5"], "'5' is not a duration: write a number and ms, s, m, h or d"),
        (["-s", "S1=s.nq", "--idle", "soon"], "'soon' is not a duration"),
        (["-s", "S1=s.nq", "--idle", "9999999999d"], "too long"),
        (["-s", "S1=s.nq", "--latency", "50"], "'50' is not a duration"),
        (["-s", "S1=s.nq", "--latency", "0ms"], "'0ms' is not a bound: it must be above 0"),
        (["-s", "S1=s.nq", "--policy", "selective"], "say --latency or --memory, too"),
        (["-s", "S1=s.nq", "--memory", "2G"], "'2G' is not a size: write a number and kB, MB, GB"),
        (["-s", "S1=s.nq", "--memory", "9" * 400 + "GB"], "is not a size"),
        (["-s", "S1=s.nq", "--no-such-option"], "No such option: --no-such-option"),
    ],
)
def test_usage_errors(here: Path, arguments: list[str], message: str) -> None:
    (here / "out").write_text("before")
    result = run(*arguments, "-o", "out")
    assert message in result.stderr
    assert (result.exit_code, result.stdout) == (2, "")
    assert (here / "out").read_text() == "before"


def test_two_streams_cannot_share_standard_input(here: Path) -> None:
    (here / "two.rq").write_text(TWO_STREAMS)
    result = run("-s", "S1=-?format=nq", "-s", "Second=-?format=nq", query="two.rq", stdin="")
    assert (result.exit_code, result.stderr) == (2, "error: standard input (-) can be one stream only\n")


def test_all_missing_streams_are_listed(here: Path) -> None:
    (here / "two.rq").write_text(TWO_STREAMS)
    result = run(query="two.rq")
    assert (
        "no source for stream S1 <http://example.org/s>, Second <http://example.org/s?id=2>\n"
        in result.stderr
    )


def test_a_background_graph_that_is_missing(here: Path) -> None:
    (here / "kb.rq").write_text(KB_QUERY)
    result = run("-s", "S1=s.nq", query="kb.rq")
    assert result.exit_code == 2
    assert result.stderr == f"error: no file for background graph <{EX}kb?x=y>: give it with --kb IRI=FILE\n"


@pytest.mark.parametrize("command", ["run", "check", "explain"])
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "error: the query bad.rq cannot be read: No such file or directory"),
        (b"\xff", "error: the query bad.rq is not UTF-8 text"),
        (QUERY.replace("WITHIN 10", "WITHIN ten").encode(), "bad.rq:2:24: "),
        (QUERY.replace("SEQ(A ; B)", "SEQ(A ; C)").encode(), "bad.rq:5:11: "),
    ],
)
@pytest.mark.few(1)
def test_a_query_that_is_wrong(here: Path, command: str, content: bytes | None, message: str) -> None:
    if content is not None:
        (here / "bad.rq").write_bytes(content)
    result = spaseq(command, "bad.rq")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(message)


def test_an_error_in_the_query_points_at_its_place(here: Path) -> None:
    (here / "bad.rq").write_text(QUERY.replace("?x ex:v ?v }", "?x foaf:v ?v }"))
    lines = spaseq("check", "bad.rq").stderr.splitlines()
    assert lines[0].startswith("bad.rq:6:27: ")
    assert lines[1].strip() == "DEFINE GPM A ON S1 { ?x foaf:v ?v }"
    assert lines[2].index("^") == lines[1].index("foaf:v")


@pytest.mark.usefixtures("here")
def test_no_command_shows_the_help() -> None:
    result = spaseq()
    assert result.exit_code == 2
    assert "explain" in result.output


# --- matchers ------------------------------------------------------------------------------------


def test_every_matcher_finds_the_same(here: Path) -> None:
    """``:`` for ``tecs``; what ``explain`` says is one of them."""
    (here / "any.rq").write_text(QUERY.replace("SEQ(A ; B)", "SEQ(A : B)"))
    found = {
        name: run("-s", "S1=s.nq", "-f", "csv", "--matcher", name, query="any.rq")
        for name in ("tecs", "lazy", "nfa", "interpreter", "reference")
    }
    assert {result.exit_code for result in found.values()} == {0}
    assert len({"".join(sorted(result.stdout.splitlines())) for result in found.values()}) == 1
    assert len(found["nfa"].stdout.splitlines()) > 1


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["magic"], "error: --matcher: no matcher is called 'magic': there are kmp, tecs, lazy, "),
        (["tecs"], "error: --matcher: the matcher 'tecs' can run this query only if "),
        (["nfa", "--engine", "spark"], "error: --matcher is for --engine local"),
    ],
)
def test_an_matcher_that_cannot(arguments: list[str], message: str) -> None:
    result = run("-s", "S1=s.nq", "--matcher", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(message)
    assert len(result.stderr.splitlines()) == 1


# --- what fails while running: 1 -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-s", "S1=none.nq"], "error: none.nq"),
        (["-s", "S1=s.unknown"], "error: s.unknown"),
        (["-s", "S1=s.nq", "--catalog", "none.ttl"], "error: the catalogue none.ttl cannot be read"),
        (["-s", "S1=s.nq", "--kb", "urn:kb=none.ttl"], "error: "),
        (["-s", "S1=s.nq", "-o", "none/out"], "error: "),
        (["-s", "S1=s.nq", "--dead-letters", "none/bad"], "error: "),
        (["-s", "S1=bad.nq", "--strict"], "error: http://example.org/s, "),
        (["-s", "S1=late.nq", "--strict"], "error: http://example.org/s, event 2: late"),
    ],
)
def test_failures(here: Path, arguments: list[str], message: str) -> None:
    (here / "bad.nq").write_text("no quad\n")
    (here / "late.nq").write_text(event(0, 5, "v", 1) + event(1, 4, "v", 1))
    result = run(*arguments)
    *totals, error = result.stderr.splitlines(keepends=True)
    assert error.startswith(message)
    assert not totals or before_totals("".join(totals)) == ""
    assert result.exit_code == 1


def test_what_was_found_before_a_failure_is_a_whole_document(here: Path) -> None:
    (here / "bad.nq").write_text(STREAM + "no quad\n")
    result = run("-s", "S1=bad.nq", "--strict", "-f", "json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["head"] == {"vars": ["x", "v", "w"]}


# --- bad and late events, and warnings --------------------------------------------------------------


def test_bad_and_late_events_are_summarised_with_their_reasons(here: Path) -> None:
    (here / "bad.nq").write_text(STREAM + NO_TIME + event(9, 1, "v", 1))
    result = run("-s", "S1=bad.nq")
    assert (result.exit_code, result.stdout.count("ex:x")) == (0, 2)
    said = before_totals(result.stderr, "; 1 malformed, 1 late: --dead-letters FILE keeps them")
    *reasons, hint = said.splitlines()
    assert len(reasons) == 2
    assert "--lateness" in hint
    assert "order=time" in hint
    assert any(line.startswith(f"refused: {EX}s, event 5: no time") for line in reasons)
    assert any(line.startswith(f"refused: {EX}s, event 5: late") for line in reasons)


def test_a_source_is_sorted_when_asked(here: Path) -> None:
    lines = STREAM.splitlines(keepends=True)
    (here / "turned.nq").write_text("".join(reversed(lines)))
    straight, turned = run("-s", "S1=s.nq"), run("-s", "S1=turned.nq?order=time")
    assert (turned.exit_code, turned.stdout, before_totals(turned.stderr)) == (0, straight.stdout, "")


def test_only_the_first_reasons_are_shown(here: Path) -> None:
    (here / "bad.nq").write_text("no quad\n" * 20)
    result = run("-s", "S1=bad.nq")
    said, error, _ = result.stderr.partition("error: ")
    reasons = before_totals(said, "; 20 malformed: --dead-letters FILE keeps them").splitlines()
    assert (len(reasons), {line.partition(":")[0] for line in reasons}) == (5, {"refused"})
    assert error
    assert "error: nothing of <http://example.org/s> could be read: all 20 events" in result.stderr
    assert result.exit_code == 1


def test_dead_letters_are_kept_in_a_file(here: Path) -> None:
    (here / "bad.nq").write_text(STREAM + NO_TIME + event(9, 1, "v", 1))
    result = run("-s", "S1=bad.nq", "--dead-letters", "dead.ndjson")
    assert before_totals(result.stderr, "; 1 malformed, 1 late: kept in dead.ndjson")
    letters = [json.loads(line) for line in (here / "dead.ndjson").read_text().splitlines()]
    assert {letter["stream"] for letter in letters} == {f"{EX}s"}
    assert len(letters) == 2


SHAPES = f"""@prefix sh: <http://www.w3.org/ns/shacl#> . @prefix ex: <{EX}> .
ex:Positive sh:targetSubjectsOf ex:v ; sh:property [ sh:path ex:v ; sh:minExclusive 0 ] ."""


def test_events_that_do_not_conform_are_dead_letters_and_counted(here: Path) -> None:
    (here / "shapes.ttl").write_text(SHAPES)
    (here / "bad.nq").write_text(STREAM + NO_TIME + event(8, 5, "v", -1) + event(9, 1, "v", 1))
    result = run("-s", "S1=bad.nq", "--shapes", "shapes.ttl", "--dead-letters", "dead.ndjson")
    assert (result.exit_code, result.stdout) == (0, run("-s", "S1=s.nq").stdout)
    totals = "; 1 malformed, 1 late, 1 not conforming: kept in dead.ndjson"
    assert f"refused: {EX}s, event 5: does not conform" in before_totals(result.stderr, totals)
    letters = [json.loads(line) for line in (here / "dead.ndjson").read_text().splitlines()]
    assert [letter["position"] for letter in letters if "not conform" in letter["reason"]] == ["event 5"]
    strict = run("-s", "S1=bad.nq", "--shapes", "shapes.ttl", "--strict")
    assert strict.exit_code == 1


def test_a_restart_does_not_validate_again(here: Path) -> None:
    (here / "shapes.ttl").write_text(SHAPES)
    kept = ["--shapes", "shapes.ttl", "--dead-letters", "dead.ndjson", "--state", "state", "-f", "ndjson"]
    for more in (event(0, 1, "v", 0) + event(1, 2, "v", 5), event(2, 3, "v", -1) + event(3, 4, "w", 6)):
        with (here / "s1.nq").open("a") as file:
            file.write(more)
        result = run("-s", "S1=s1.nq", *kept, "-o", "out.ndjson")
        assert result.exit_code == 0
    assert before_totals(result.stderr, "; 2 not conforming: kept in dead.ndjson")
    letters = [json.loads(line)["position"] for line in (here / "dead.ndjson").read_text().splitlines()]
    assert letters == ["event 1", "event 3"]
    assert len((here / "out.ndjson").read_text().splitlines()) == 1


def test_wrong_shapes(here: Path) -> None:
    (here / "shapes.ttl").write_text("\n<urn:a")
    result = run("-s", "S1=s.nq", "--shapes", "shapes.ttl")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("error: shapes.ttl, line 2: ")


def test_lateness(here: Path) -> None:
    (here / "late.nq").write_text(event(0, 2, "w", 20) + event(1, 1, "v", 10) + event(2, 3, "v", 0))
    assert run("-s", "S1=late.nq").stdout.count("ex:x") == 0
    result = run("-s", "S1=late.nq", "--lateness", "1s")
    assert (result.stdout.count("ex:x"), before_totals(result.stderr)) == (1, "")


def test_warnings_of_the_query_go_to_standard_error(here: Path) -> None:
    (here / "odd.rq").write_text(QUERY.replace("\n}", "\n  DEFINE GPM Unused ON S1 { ?x ex:v ?v }\n}"))
    checked = spaseq("check", "odd.rq")
    assert (checked.stdout, checked.exit_code) == ("ok\n", 0)
    assert checked.stderr.startswith("warning: ")
    assert "Unused" in checked.stderr
    assert before_totals(run("-s", "S1=s.nq", query="odd.rq").stderr) == checked.stderr


def test_warnings_of_sources_go_to_standard_error(here: Path) -> None:
    date = "http://www.w3.org/2001/XMLSchema#date"
    (here / "odd.nq").write_text(event(0, f'"1"^^<{date}>', "v", 1) + event(1, f'"2"^^<{date}>', "w", 1))
    result = run("-s", "S1=odd.nq")
    assert result.stdout.count("ex:x") == 1
    assert result.stderr.startswith("warning: ")
    assert len(before_totals(result.stderr).splitlines()) == 1


# --- check, explain, help -----------------------------------------------------------------------------


@pytest.mark.usefixtures("here")
def test_check() -> None:
    result = spaseq("check", "q.rq")
    assert (result.stdout, result.stderr, result.exit_code) == ("ok\n", "", 0)


def test_explain(here: Path) -> None:
    text = spaseq("explain", "q.rq")
    assert "A ; B" in text.stdout
    assert "matcher" in text.stdout
    assert json.loads(spaseq("explain", "q.rq", "-f", "json").stdout)["streams"] == {"S1": f"{EX}s"}
    assert spaseq("explain", "q.rq", "-f", "dot").stdout.startswith("digraph")
    assert spaseq("explain", "q.rq", "-f", "svg", "-o", "a.svg").stdout == ""
    assert "</svg>" in (here / "a.svg").read_text()


@pytest.mark.usefixtures("here")
def test_explain_into_a_folder_that_is_not_there() -> None:
    assert spaseq("explain", "q.rq", "-o", "none/a.svg").exit_code == 1


@pytest.mark.parametrize("command", ["run", "check", "explain"])
def test_help_has_examples(command: str) -> None:
    result = spaseq(command, "--help")
    assert result.exit_code == 0
    assert f"\n    spaseq {command} " in result.stdout


def test_version() -> None:
    try:
        expected = version("spaseq")
    except PackageNotFoundError:
        pytest.skip("spaseq is not installed here, so it has no version")
    assert spaseq("--version").stdout == f"spaseq {expected}\n"
