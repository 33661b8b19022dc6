"""What ``spaseq run`` says when there is no match, and ``spaseq explain --analyze``."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner, Result

from spaseq.cli import app
from tests.streams import before_totals
from tests.why.streams import NS, query

CSV = "time,company,price\n1,acme,14\n2,acme,12\n12,acme,16\n"
VSHAPE = query("A ; B", {"A": "?s :price ?p", "B": "?s :price ?q"}).replace("SELECT *", "SELECT ?p ?q")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    integer = "http://www.w3.org/2001/XMLSchema#integer"
    context = {
        "@base": "urn:",
        "company": "@id",
        "price": {"@id": f"{NS}price", "@type": integer},
        "time": {"@id": f"{NS}time", "@type": integer},
    }
    (tmp_path / "good.jsonld").write_text(json.dumps({"@context": context}))
    context["prise"] = context.pop("price")
    (tmp_path / "bad.jsonld").write_text(json.dumps({"@context": context}))
    (tmp_path / "s.csv").write_text(CSV)
    (tmp_path / "q.rq").write_text(VSHAPE)
    return tmp_path


def spaseq(*arguments: str) -> Result:
    result = CliRunner().invoke(app, arguments)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def source(context: str) -> str:
    return f"S=s.csv?context={context}.jsonld&time={NS}time"


@pytest.mark.usefixtures("here")
def test_a_match_needs_no_reason() -> None:
    result = spaseq("run", "q.rq", "-s", source("good"))
    assert (before_totals(result.stderr), result.exit_code) == ("", 0)


@pytest.mark.usefixtures("here")
def test_a_context_whose_key_is_wrong() -> None:
    result = spaseq("run", "q.rq", "-s", source("bad"), "-f", "csv")
    assert before_totals(result.stderr) == (
        "no match: 3 events, of which GPM A matched none: no event has predicate :price, "
        "which bad.jsonld makes of prise; they have :time\n"
    )
    assert (result.stdout.strip(), result.exit_code) == ("p,q", 0)


def test_the_column_that_a_predicate_is_made_of(here: Path) -> None:
    (here / "typo.rq").write_text(VSHAPE.replace("B ON S { ?s :price", "B ON S { ?s :prices"))
    result = spaseq("run", "typo.rq", "-s", source("good"), "-f", "csv")
    assert before_totals(result.stderr) == (
        "no match: 3 events, of which GPM B matched none: no event has predicate :prices, "
        "which good.jsonld makes of nothing; did you mean :price (3 events, made of price)?\n"
    )


@pytest.mark.usefixtures("here")
def test_no_reason_is_looked_for_if_none_is_wanted() -> None:
    result = spaseq("run", "q.rq", "-s", source("bad"), "-f", "csv", "--no-why")
    said = before_totals(result.stderr)
    assert (result.stdout.strip(), said, result.exit_code) == ("p,q", "", 0)


def test_tumbling_windows_that_cut(here: Path) -> None:
    (here / "cut.rq").write_text(VSHAPE.replace("?q }", "?q . FILTER(?q > ?p) }"))
    result = spaseq("run", "cut.rq", "-s", source("good"), "-f", "csv")
    assert result.stderr.startswith("no match: 3 events, all ended in SEQ(A ; B): ")
    assert "TUMBLING" in result.stderr


def test_limit_0_and_ask_need_none_and_one(here: Path) -> None:
    (here / "none.rq").write_text(VSHAPE + " LIMIT 0")
    assert before_totals(spaseq("run", "none.rq", "-s", source("bad")).stderr) == ""
    (here / "ask.rq").write_text(VSHAPE.replace("SELECT ?p ?q", "ASK"))
    asked = spaseq("run", "ask.rq", "-s", source("bad"))
    assert asked.stdout == "false\n"
    assert asked.stderr.startswith("no match: ")


@pytest.mark.usefixtures("here")
def test_analyze_in_words_and_as_json() -> None:
    text = spaseq("explain", "q.rq", "--analyze", "-s", source("good")).stdout
    assert "3 events, 1 match" in text
    assert "GPM A: 3 of 3 events, 3 solutions" in text
    assert "0 → 1  A: 3×" in text
    values = json.loads(spaseq("explain", "q.rq", "--analyze", "-s", source("good"), "-f", "json").stdout)
    assert values["sequence"] == "A ; B"
    edge = values["analysis"]["edges"][1]
    assert edge == {"source": 1, "target": 2, "label": "; B", "taken": 1, "operands": []}
    assert values["analysis"]["states"][1] == {
        "state": 1,
        "came": 3,
        "went_on": 1,
        "ended": 0,
        "died": {"end of input": 1, "window": 1},
    }


@pytest.mark.usefixtures("here")
def test_analyze_draws_the_numbers() -> None:
    drawn = spaseq("explain", "q.rq", "--analyze", "-s", source("good"), "-f", "svg").stdout
    texts = {"".join(node.itertext()) for node in ElementTree.fromstring(drawn).iter() if "text" in node.tag}
    assert any(text.endswith("3×") for text in texts)
    assert "3 came, 1 went on, 2 died (end of input 1, window 1)" in texts


@pytest.mark.usefixtures("here")
def test_analyze_wants_streams_and_only_then() -> None:
    assert spaseq("explain", "q.rq", "--analyze").exit_code == 2
    without = spaseq("explain", "q.rq", "-s", source("good"))
    assert (without.exit_code, "--analyze" in without.stderr) == (2, True)
