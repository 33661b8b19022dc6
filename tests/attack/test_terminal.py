"""The command line under odd circumstances: closed streams, output that cannot hold a term, terminals."""

from __future__ import annotations

import json
import subprocess
import sys
from io import BytesIO
from pathlib import Path

import pytest
from rdflib import Literal, URIRef
from rich.cells import cell_len

import spaseq
from spaseq.errors import FormatError, SourceError
from spaseq.results import writer
from tests.results.making import EX, events, match, query, select
from tests.test_cli import QUERY as CLI_QUERY
from tests.test_cli import STREAM as CLI_STREAM

from .test_bytes import QUERY, TIME, event, given, run

COMMAND = (sys.executable, "-c", "from spaseq.cli import main; main()")


class Terminal(BytesIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a query and a stream of three events, the second with an escape character."""
    (tmp_path / "q.rq").write_text(QUERY)
    (tmp_path / "s.nq").write_text(event(1) + event(2, '"\\u001B[31m"') + event(3))
    return tmp_path


def spaseq_run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, "run", "q.rq", "-s", *arguments], cwd=folder, capture_output=True, text=True, timeout=300
    )


# --- what a format cannot hold ------------------------------------------------------------------


@pytest.mark.slow
def test_a_match_that_xml_cannot_hold_is_a_dead_letter(folder: Path) -> None:
    done = spaseq_run(folder, "S=s.nq", "-f", "xml", "--dead-letters", "dead.ndjson")
    assert done.returncode == 0
    assert (done.stdout.count("<result>"), done.stdout.count("</sparql>")) == (2, 1)
    assert done.stderr.endswith("; 1 of 3 matches not writable: kept in dead.ndjson\n")
    (letter,) = map(json.loads, (folder / "dead.ndjson").read_text().splitlines())
    assert (letter["position"], letter["stream"]) == ("match 2", f"{EX}s")
    assert "U+001B" in letter["reason"]
    assert json.loads(letter["payload"])["bindings"][0]["v"]["value"] == "\x1b[31m"


@pytest.mark.slow
def test_strict_stops_there(folder: Path) -> None:
    done = spaseq_run(folder, "S=s.nq", "-f", "xml", "--strict")
    assert done.returncode == 1
    assert "U+001B" in done.stderr
    assert done.stdout.rstrip().endswith("</sparql>")


@pytest.mark.parametrize("form", ["table", "json", "xml", "csv", "tsv", "ndjson"])
@pytest.mark.parametrize("bad", ["\x00", "\x07", "\x1b", "\x7f", "\x9b", "\u202e", "\ufffe", "\uffff", "\r"])
def test_what_cannot_be_written_writes_nothing(form: str, bad: str) -> None:
    """Each writer holds a term, or says FormatError and leaves the document whole."""
    of = query(select("a"), {})
    out = BytesIO()
    results = writer(form, of, out)
    good, odd = (
        match(of, [{"a": Literal("good")}]),
        match(of, [{"a": Literal("x")}, {"a": Literal(f"{bad}")}]),
    )
    results.match(good)
    before = out.getvalue()
    try:
        results.match(odd)
    except FormatError:
        assert out.getvalue() == before
    results.match(good)
    results.close()
    assert out.getvalue().count(b"good") == 2


# --- streams that are closed --------------------------------------------------------------------


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize(
    "command",
    [
        "run q.rq -s S1=s.nq",
        "run q.rq -s 'S1=-?format=nq'",
        "run q.rq -s S1=s.nq -o out.txt --dead-letters dead.ndjson",
        "check q.rq",
        "explain q.rq",
        "--version",
        "paths '<urn:p>' -g kb.ttl",
        "retrieve -g kb.ttl --topic urn:a '<urn:p>'",
        "retrieve -g kb.ttl --topic urn:a --expressions -",
    ],
)
@pytest.mark.few(0, ci=2)
def test_closed_streams(closed: str, command: str, tmp_path: Path) -> None:
    (tmp_path / "q.rq").write_text(CLI_QUERY)
    (tmp_path / "s.nq").write_text(CLI_STREAM)
    (tmp_path / "kb.ttl").write_text("<urn:a> <urn:p> <urn:b> .")
    python = " ".join(f"'{part}'" for part in COMMAND)
    done = subprocess.run(
        f"{python} {command} {closed}",
        shell=True,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        input='["<urn:p>"]' if command.endswith(" -") else CLI_STREAM,
        timeout=300,
    )
    assert "Traceback" not in done.stderr + done.stdout
    reads = "-?" in command or command.endswith(" -")
    writes = command.startswith(("run", "explain", "paths", "retrieve")) and "-o" not in command
    if (">&-" in closed.split() and writes) or ("<&-" in closed and reads):
        assert done.returncode in (1, 2)
        if "2>&-" not in closed:
            assert "is closed" in done.stderr
    elif not reads:
        assert done.returncode == 0
    if "-o" in command:
        assert (tmp_path / "out.txt").read_text().count("\n") > 1
        assert (tmp_path / "dead.ndjson").read_text() == ""


# --- files of which nothing can be read ---------------------------------------------------------


def _context(folder: Path, **terms: object) -> Path:
    path = folder / "context.jsonld"
    path.write_text(json.dumps({"@context": {"x": "@id", "v": f"{EX}p"} | terms}))
    return path


@pytest.mark.parametrize(
    ("data", "terms", "hint"),
    [
        ("x;v;at\nurn:x;1;5\nurn:y;1;6\n", {"at": TIME}, "delimiter=%3B"),
        ("urn:x,1,5\nurn:y,1,6\nurn:z,1,7\n", {"at": TIME}, "is header= missing?"),
        (
            "x,v,at\nurn:x,1,200802010913\n",
            {"at": {"@id": TIME, "@type": f"{EX}t"}},
            "neither an xsd:dateTime",
        ),
        (
            "x,v,at\nurn:x,1,20080201T0913\n",
            {"at": {"@id": TIME, "@type": "http://www.w3.org/2001/XMLSchema#dateTime"}},
            "written like 2008-02-01T09:13:00Z",
        ),
        (
            "x,v,at\nurn:x,1,2008-02-01T09:13:00Z\n",
            {"at": {"@id": f"{EX}at", "@type": "http://www.w3.org/2001/XMLSchema#dateTime"}},
            f"time={EX}at",
        ),
        ("a,b,c\n1,2,3\n", {"at": TIME}, "it has a, b, c, and the context defines at, v, x"),
    ],
)
def test_a_file_of_bad_events_is_an_error_with_a_hint(
    data: str, terms: dict[str, object], hint: str, tmp_path: Path
) -> None:
    source = given(data, "csv", _context(tmp_path, **terms))
    found = spaseq.run(QUERY, {"S": source}, dead_letters=lambda _: None)
    with pytest.raises(SourceError, match=f"nothing of <{EX}s> could be read") as caught:
        next(found, None)
    assert hint in str(caught.value)


@pytest.mark.slow
def test_a_file_of_bad_events_ends_with_status_1(folder: Path) -> None:
    (folder / "s.csv").write_text("x;v;at\nurn:x;1;5\n")
    _context(folder, at=TIME)
    done = spaseq_run(folder, "S=s.csv?context=context.jsonld")
    assert done.returncode == 1
    assert "delimiter=%3B" in done.stderr
    assert "Traceback" not in done.stderr


def test_one_good_event_is_enough() -> None:
    found, letters = run("no quad\n" * 3 + event(1) + event(2), "nq")
    assert (len(found), len(letters)) == (1, 4)


# --- terminals ----------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["table", "json", "xml", "csv", "tsv", "ndjson"])
@pytest.mark.parametrize("character", ["\x07", "\x1b", "\x7f", "\x9b", "\u202e"])
def test_no_format_steers_a_terminal(form: str, character: str) -> None:
    of = query(select("a"), {})
    shown = match(of, [{"a": Literal(f"x{character}y")}])
    out = Terminal()
    try:
        writer(form, of, out).match(shown)
    except FormatError:
        assert form == "xml"
    assert character not in out.getvalue().decode().replace("\x1b[1m", "").replace("\x1b[0m", "")


def test_a_pipe_gets_what_the_format_says() -> None:
    of = query(select("a"), {})
    out = BytesIO()
    writer("csv", of, out).match(match(of, [{"a": Literal("x\x07\x1by")}]))
    assert out.getvalue() == b"a\r\nx\x07\x1by\r\n"


@pytest.mark.slow
def test_errors_and_warnings_do_not_steer_a_terminal(folder: Path) -> None:
    (folder / "q.rq").write_text(QUERY.replace("SEQ(A)", "SEQ(A ; \x07\x1b[31mB)"))
    done = spaseq_run(folder, "S=s.nq")
    assert done.returncode == 2
    assert "\x07" not in done.stderr
    assert "\\u0007\\u001B[31mB" in done.stderr
    (folder / "q.rq").write_text(QUERY)
    (folder / "bad.nq").write_text(event(1) + "\x1b[31m\x07\n" + event(2) + event(3))
    done = spaseq_run(folder, "S=bad.nq", "--dead-letters", "dead.ndjson")
    assert "\x1b" not in done.stderr


@pytest.mark.parametrize("columns", [40, 60, 80, 120])
def test_tables_break_no_name_and_no_time(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("NO_COLOR", "1")
    of = query(select("company", "price", "note"), {"ex": EX})
    out = Terminal()
    results = writer("table", of, out)
    names = ["ex:some-company", "http://other.org/", "companies/by-their-name", "#a-long-one-of-them"]
    row = {
        "company": URIRef("".join(names[1:])),
        "price": URIRef(f"{EX}some-company"),
        "note": Literal("several words that go on"),
    }
    results.match(match(of, [row], start=1_700_000_000_000_000_000, end=1_700_000_000_000_000_001))
    lines = out.getvalue().decode().splitlines()
    assert max(map(cell_len, lines)) <= columns
    words = " ".join(lines).split()
    assert {"1700000000000000000", "1700000000000000001", "ex:some-company", "words"} <= set(words)
    for name in ("by-their-name", "a-long-one-of-them"):
        assert any(name in line for line in lines)


def test_repr_of_a_match_is_a_line() -> None:
    of = query(select("a"), {})
    shown = repr(match(of, [{"a": Literal(1)}], chosen={"A": events(1, 2), "B": []}, start=1, end=2))
    assert shown == "<Match 1 to 2: A×2, 1 rows>"
    (found,) = run(event(7), "nq")[0]
    assert repr(found) == "<Match 7 to 7: A×1, 1 rows>"


def test_a_small_file_shows_its_progress(folder: Path) -> None:
    """Before the first event, and at the end: the last figures."""
    seen: list[int] = []
    found = spaseq.run(QUERY, {"S": str(folder / "s.nq")}, progress=lambda p: seen.append(p.events))
    next(found)
    assert seen[0] == 0
    list(found)
    assert seen[-1] == 3
