"""``spaseq context``: what is guessed of rows lifts them, and the query over them runs."""

from __future__ import annotations

import csv
import json
import re
import shlex
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

import spaseq
from spaseq.cli import app
from spaseq.errors import SourceError
from spaseq.sources import SourceOptions
from spaseq.sources.proposal import propose

TRADES = """at,id,price,note
2026-06-04T08:00:00Z,acme,14.0,
2026-06-04T08:05:00Z,duna,7.5,"a, b"
2026-06-04T08:10:00Z,acme,12.5,
2026-06-04T08:20:00Z,duna,8.0,
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "trades.csv").write_text(TRADES)
    return tmp_path


def context(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["context", *arguments])


def test_a_context_and_a_query_that_run(here: Path) -> None:
    done = context("trades.csv", "-o", "trades.jsonld", "--query", "trades.rq")
    assert done.exit_code == 0
    assert "next: spaseq run trades.rq -s 'S=trades.csv?context=trades.jsonld'" in done.stderr
    run = CliRunner().invoke(
        app, ["run", "trades.rq", "-s", "S=trades.csv?context=trades.jsonld", "-f", "csv"]
    )
    assert run.exit_code == 0
    assert run.stdout.splitlines()[1:] == ["acme,14.0,12.5"]
    assert json.loads((here / "trades.jsonld").read_text())["@context"]["price"]["@type"].endswith("#decimal")


def test_nothing_is_written_over(here: Path) -> None:
    (here / "mine.jsonld").write_text("{}")
    done = context("trades.csv", "-o", "mine.jsonld", "--query", "new.rq")
    assert done.exit_code == 2
    assert "mine.jsonld exists already" in done.stderr
    assert (here / "mine.jsonld").read_text() == "{}"
    assert not (here / "new.rq").exists()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nope.csv"], "no such file"),
        (["trades.trig"], "which is RDF already"),
        (["trades.csv?delimitr=;"], "delimiter"),
        (["empty.csv"], "no row has a value"),
        (["bad.ndjson"], "bad.ndjson: no row has a value (line 1: a row must be a JSON object)"),
        (["trades.csv", "--namespace", "no iri"], "is not an IRI"),
    ],
)
def test_what_cannot_be(here: Path, arguments: list[str], says: str) -> None:
    (here / "trades.trig").write_text("")
    (here / "empty.csv").write_text("a,b\n")
    (here / "bad.ndjson").write_text("[1]\n")
    done = context(*arguments)
    assert done.exit_code == 2
    assert says in done.stderr
    assert not done.stdout


def kinds(path: Path) -> dict[str, str]:
    return {column.name: column.kind for column in propose(path).columns}


def test_kinds_of_columns(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(
        "i,d,f,b,t,day,iri,s,mixed\n1,.5,1e3,true,2026-01-01T00:00:00.5Z,2026-01-01,urn:x,x,1\n"
        "-2,3,2,false,2026-01-01T00:00:01+01:00,2026-01-02,http://a/b,y y,x\n"
    )
    expected = ["integer", "decimal", "double", "boolean", "dateTime", "date", "iri", "text", "text"]
    assert list(kinds(path).values()) == expected


def test_numbers_of_json_with_a_fraction_are_doubles(tmp_path: Path) -> None:
    path = tmp_path / "rows.ndjson"
    path.write_text('{"n": 1, "x": 1.5, "y": "1.5", "nothing": null}\n\n{"n": 2, "x": 2, "y": "2"}\n')
    assert kinds(path) == {"n": "integer", "x": "double", "y": "decimal"}


@pytest.mark.parametrize(
    ("header", "rows", "time"),
    [
        ("day,eventTime", ["2026-01-01,2026-01-01T00:00:00Z"], "eventTime"),
        ("count,tick", ["7,1"], "tick"),
        ("count,size", ["7,1"], None),
        ("at,x", ["2026-01-01T00:00:00Z,1", ",2"], None),
        ("value,Timestamp", ["2,17"], "Timestamp"),
    ],
)
def test_the_column_of_time(tmp_path: Path, header: str, rows: Sequence[str], time: str | None) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("\n".join([header, *rows, ""]))
    found = propose(path).time
    assert (found.name if found else None) == time


@pytest.mark.parametrize(
    ("times", "window"),
    [
        ([1, 2, 3, 4], "10 SECONDS"),
        ([1_700_000_000 + 60 * i for i in range(4)], "1 HOURS"),
        ([1_700_000_000_000 + 60_000 * i for i in range(4)], "1 HOURS"),
        ([100 * i for i in range(4)], "2000 SECONDS"),
        ([f"2026-01-0{i}T00:00:00Z" for i in range(1, 5)], "20 DAYS"),
        ([f"2026-01-01T00:0{i}:00Z" for i in range(4)], "1 HOURS"),
        (["2026-01-01", "2026-01-02", "2026-01-03", "2026-01-04"], "7 DAYS"),
        (["2026-01-01", "2026-02-01", "2026-03-01", "2026-04-01"], "1000 DAYS"),
        ([7, 7, 7, 7], "10 SECONDS"),
    ],
)
def test_the_window_holds_some_events_of_a_key(tmp_path: Path, times: list[object], window: str) -> None:
    path = tmp_path / "rows.csv"
    rows = [f"{time},{i % 2},{9 - i}" for i, time in enumerate(times)]
    path.write_text("\n".join(["ts,sensor,x", *rows, ""]))
    found = propose(path)
    assert found.key is not None
    assert (found.key.name, found.measure and found.measure.name) == ("sensor", "x")
    assert f"WITHIN {window} SLIDING" in found.query()
    (tmp_path / "c.jsonld").write_text(found.context())
    assert list(spaseq.run(found.query(), {"S": found.source(str(path), tmp_path / "c.jsonld")}))


@pytest.mark.parametrize(
    ("header", "row", "key", "measure"),
    [
        ("at,user_id,size", "{i},{k},{i}", "user_id", "size"),
        ("at,size,userId", "{i},{k},{k}", "userId", "size"),
        ("at,size,count", "{i},{k},{i}", None, "size"),
        ("at,user,name", "{i},{k},n{k}", "name", "user"),
        ("at,user,size", "{i},7,{k}", None, "size"),
    ],
)
def test_the_key_and_the_number(
    tmp_path: Path, header: str, row: str, key: str | None, measure: str | None
) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("\n".join([header, *(row.format(i=i, k=i % 2) for i in range(4)), ""]))
    found = propose(path)
    assert (found.key and found.key.name, found.measure and found.measure.name) == (key, measure)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("when,x\n2026-06-04 08:00:00,1\n,2\n", "looks like times"),
        ("name,x\na,b\n", "of 'name', 'x': say ?time=COLUMN"),
        ("a;b\n1;2\n", "delimiter=%3B"),
        ("x\n1\n", "time=arrival"),
        ("a/b,c\n1,2\n", "'a/b' is left out"),
        ("tick\n1\n", "a second is one of them"),
        ("ts\n1700000000000\n", "milliseconds since 1970, by their size"),
    ],
)
def test_doubts_are_told(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(text)
    assert any(says in warning for warning in propose(path).warnings)


def test_a_quoted_cell_may_span_lines_and_a_file_be_compressed(tmp_path: Path) -> None:
    import gzip

    path = tmp_path / "rows.csv.gz"
    path.write_bytes(gzip.compress(b'\xef\xbb\xbfid,text\r\n1,"a\nb"\r\n2,c\r\n'))
    (first, second) = propose(path).columns
    assert (first.name, first.cells) == ("id", ("1", "2"))
    assert second.cells == ("a\nb", "c")


def test_a_folder_is_told(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="cannot be read"):
        propose(tmp_path, SourceOptions(format="csv"))


names = st.text(st.characters(codec="utf-8", exclude_characters='@"\0\r\n,'), min_size=1, max_size=8)
cells = st.sampled_from(
    ["1", "-2.5", "1e9", "true", "x", "two words", "urn:a", "2026-01-01T00:00:00Z", "é", "0"]
)


@given(
    header=st.lists(names.filter(str.strip), min_size=2, max_size=4, unique=True),
    data=st.data(),
)
@pytest.mark.slow
def test_every_row_is_lifted_and_every_query_is_well_formed(
    tmp_path_factory: pytest.TempPathFactory, header: list[str], data: st.DataObject
) -> None:
    row = st.lists(cells, min_size=len(header), max_size=len(header))
    rows = data.draw(st.lists(row, min_size=1, max_size=4))
    folder = tmp_path_factory.mktemp("rows")
    with open(folder / "rows.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])
    try:
        found = propose(folder / "rows.csv")
    except SourceError:
        assert all(set(name) & {":", "/"} for name in header)
        return
    (folder / "rows.jsonld").write_text(found.context(), encoding="utf-8")
    every = "WHERE { SEQ(A) DEFINE GPM A ON S { ?s ?p ?o } }"
    query = spaseq.prepare(f"SELECT * WITHIN 5 DAYS FROM STREAM S <{found.stream}> {every}")
    spaseq.prepare(found.query())
    run = spaseq.run(query, {"S": found.source(f"{folder}/rows.csv", folder / "rows.jsonld")})
    matches = list(run)
    lifted = [column for column in found.columns if column is not found.time]
    expected = len(rows) + ("header" in dict(found.options)) if lifted else 0
    assert len(matches) == expected


def test_rows_that_a_run_refuses_are_left_out(here: Path) -> None:
    """Neither a ``null`` nor a line that is no JSON stops it, as neither stops a run."""
    rows = ['{"at": 1, "v": 2}', "null", '{"at": 2, "v": 3}', "oops", "[1]"]
    (here / "rows.ndjson").write_text("\n".join(rows))
    done = context("rows.ndjson", "-o", "c.jsonld", "--query", "q.rq")
    assert done.exit_code == 0
    assert "3 of the first 5 rows are refused; line 2: a row must be a JSON object" in done.stderr
    assert "next: spaseq run" in done.stderr
    (here / "none.ndjson").write_text("null\n")
    done = context("none.ndjson")
    assert done.exit_code == 2
    assert "line 1: a row must be a JSON object" in done.stderr


def test_rows_that_name_a_context(here: Path) -> None:
    """Rows with a remote context of their own, as ActivityStreams has them."""
    row = '{"@context": "https://www.w3.org/ns/activitystreams", "v": 1, "published": "%s"}\n'
    (here / "as.ndjson").write_text("".join(row % f"2024-01-05T10:00:0{n}Z" for n in range(3)))
    done = context("as.ndjson", "-o", "c.jsonld", "--query", "q.rq")
    assert done.exit_code == 0
    assert "the rows name the context https://www.w3.org/ns/activitystreams" in done.stderr
    assert "save it there as activitystreams.jsonld" in done.stderr
    assert "spaseq run q.rq -s 'S=as.ndjson?contexts=FOLDER&time=published'" in done.stderr
    (here / "FOLDER").mkdir()
    (here / "FOLDER" / "activitystreams.jsonld").write_text(
        '{"@context": {"@vocab": "https://www.w3.org/ns/activitystreams#", "id": "@id"}}'
    )
    run = CliRunner().invoke(
        app, ["run", "q.rq", "-s", "S=as.ndjson?contexts=FOLDER&time=published", "-f", "count"]
    )
    assert (run.exit_code, run.stdout.strip()) == (0, "2"), run.stderr
    done = context("as.ndjson?contexts=FOLDER", "-o", "c2.jsonld", "--query", "q2.rq")
    assert "next: spaseq run q2.rq -s 'S=as.ndjson?contexts=FOLDER&time=published'" in done.stderr


def follow(name: str) -> Result:
    """Do what the last line of ``spaseq context`` says."""
    done = context(name, "-o", "c.jsonld", "--query", "q.rq")
    assert done.exit_code == 0, done.stderr
    command = done.stderr.strip().splitlines()[-1]
    assert "next: spaseq run " in command, done.stderr
    words = shlex.split(command.partition("next: spaseq ")[2])
    for path in ("c.jsonld", "q.rq"):
        assert Path(path).exists()
    return CliRunner().invoke(app, [*words, "-f", "csv"])


PRICES = ("14.5", "7.5", "12.5", "8.5")


@pytest.mark.parametrize(
    ("header", "times"),
    [
        ("at,user_id,price", ["2018-04-01 00:00:31", "2018-04-01 00:00:32", "2018-04-01 00:00:33"]),
        ("at,user_id,price", ["25/03/2018 10:00", "25/03/2018 10:01", "25/03/2018 10:02"]),
        ("at,user_id,price", ["03/25/2018 1:00:00 PM", "03/25/2018 1:00:01 PM", "03/25/2018 1:00:02 PM"]),
        ("at,userId,price", ["01.02.2018", "02.02.2018", "03.02.2018"]),
        ("at,userid,price", ["1780560000.25", "1780560001.5", "1780560002.0"]),
        ("at,user_id,price", ["1780560000", "1780560001", "1780560002"]),
        ("at,user_id,price", ["1780560000000", "1780560001000", "1780560002000"]),
        ("at,user_id,price", ["1780560000000000", "1780560001000000", "1780560002000000"]),
        ("seen,user_id,price", ["1780560000", "1780560001", "1780560002"]),
        ("# at,user_id,price", ["2018-04-01 00:00:31", "2018-04-01 00:00:32", "2018-04-01 00:00:33"]),
        ("", ["2018-04-01 00:00:31", "2018-04-01 00:00:32", "2018-04-01 00:00:33"]),
        ("", ["1780560000", "1780560001", "1780560002"]),
    ],
)
@pytest.mark.few(1, ci=4)
def test_the_command_that_is_proposed_works(here: Path, header: str, times: list[str]) -> None:
    """The key is the id: user 7 falls from 14.5 to 12.5, user 8 rises."""
    users = ("7", "8", "7")
    rows = [f"{time},{user},{price}" for time, user, price in zip(times, users, PRICES, strict=False)]
    (here / "rows.csv").write_text("\n".join([*([header] if header else []), *rows]) + "\n")
    run = follow("rows.csv")
    assert run.exit_code == 0, run.stderr
    shown = run.stdout.splitlines()[1:]
    if header:
        assert shown == ["7,14.5,12.5"]
        assert "PARTITION BY" in (here / "q.rq").read_text()
    else:
        assert "14.5,7.5" in shown[0]


def test_day_and_month_that_are_ambiguous_are_both_shown(here: Path) -> None:
    (here / "rows.csv").write_text("at,id,price\n04/06/2026 8:00,a,5\n04/06/2026 8:05,a,4\n")
    done = context("rows.csv", "-o", "c.jsonld", "--query", "q.rq")
    assert "4 June 2026 with time_format=%d/%m/%Y %H:%M or 6 April 2026 with" in done.stderr
    proposed = re.findall(r"next, if it is ([^:]+): spaseq (run .*)", done.stderr)
    assert [date for date, _ in proposed] == ["4 June 2026", "6 April 2026"]
    for _, command in proposed:
        run = CliRunner().invoke(app, [*shlex.split(command), "-f", "csv"])
        assert run.stdout.splitlines()[1:] == ["a,5,4"], run.stderr
    for path in ("c.jsonld", "q.rq"):
        (here / path).unlink()
    run = follow("rows.csv?time=at&time_format=%m/%d/%Y %H:%M")
    assert run.exit_code == 0, run.stderr
    assert run.stdout.splitlines()[1:] == ["a,5,4"]


def test_an_array_of_objects_may_be_events(here: Path) -> None:
    (here / "f.ndjson").write_text('{"entity": [{"at": 1, "v": 2}, {"at": 2, "v": 1}]}\n')
    assert "next, if each is: spaseq context 'f.ndjson?items=entity'" in context("f.ndjson").stderr
    run = follow("f.ndjson?items=entity")
    assert run.stdout.splitlines()[1:] == ["2,1"]


@pytest.mark.usefixtures("here")
def test_without_files_the_command_that_writes_them_is_proposed() -> None:
    done = context("trades.csv")
    assert "next: spaseq context trades.csv -o trades.jsonld --query trades.rq" in done.stderr


@pytest.mark.usefixtures("here")
def test_a_column_of_times_that_is_not_there() -> None:
    done = context("trades.csv?time=att")
    assert done.exit_code == 2
    assert "did you mean 'at'? there are 'at', 'id', 'price'" in done.stderr


@pytest.mark.parametrize(
    ("header", "key"), [("bid,user_id,status", "user_id"), ("id,bid,status", "status"), ("id,paid,n", None)]
)
def test_ids_by_name_before_cardinality(tmp_path: Path, header: str, key: str | None) -> None:
    path = tmp_path / "rows.csv"
    last = ("x", "y") if "status" in header else ("1", "2")
    path.write_text(f"{header}\n" + "".join(f"{n},{9 - n // 5},{last[n % 2]}\n" for n in range(6)))
    found = propose(path).key
    assert (found.name if found else None) == key
