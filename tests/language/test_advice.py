"""What ``spaseq check`` advises: what it says of which query, and of which nothing."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from spaseq.cli import app
from spaseq.errors import QueryError
from spaseq.language import checked
from spaseq.language.checking.advice import advise
from tests.docs.blocks import PAGES, ROOT, blocks
from tests.streams import found, query

SKIP = "AFTER MATCH SKIP PAST LAST EVENT"


def advice(sequence: str, window: str = "1 HOUR SLIDING", **options: Any) -> str:
    """What is said of a sequence, without the place."""
    said = advise(checked(query(sequence, window, **options)))
    return " / ".join(re.sub(r"^<query>:\d+:\d+: ", "", line) for line in said)


@pytest.mark.parametrize(
    ("sequence", "instead"),
    [
        ("A ; B+ ; C", "A ; (B ; !C)+ ; C"),
        ("A ; B{2,} ; C", "A ; (B ; !C){2,} ; C"),
        ("A ; B* : C", "A ; (B ; !C)* : C"),
        ("A ; (B , D)+ ; C", "A ; (B , D ; !C)+ ; C"),
        ("A ; B+ ; (C | D)", "A ; (B ; !(C | D))+ ; (C | D)"),
    ],
)
def test_a_loop_that_runs_over_the_next_step(sequence: str, instead: str) -> None:
    said = advice(sequence, tail=SKIP)
    assert "can run over an event of C" in said or "can run over an event of (C | D)" in said
    (proposal,) = re.findall(r"iterations; (\S.*) stops at the first", said)
    assert proposal in instead
    assert advice(instead, tail=SKIP) == ""
    events = "a1 b2 d3 c4 b5 d6 c7" if "D)+" in sequence else "a1 b2 b3 c4 b5 c6"
    (over,) = found(query(sequence, "1 HOUR SLIDING", tail=SKIP), events)
    (first,) = found(query(instead, "1 HOUR SLIDING", tail=SKIP), events)
    assert (over[-2:], first[-2:]) == (events[-2:], "c4")


@pytest.mark.parametrize(
    "sequence", ["A ; B+[,] ; C", "A ; B+? ; C", "A ; B+", "A ; B ; C", "A ; B+ ; B ; C"]
)
def test_loops_that_do_not(sequence: str) -> None:
    assert advice(sequence, tail=SKIP) == ""


def test_without_skip_all_matches_are_found_anyway() -> None:
    assert advice("A ; B+ ; C") == ""


def test_combinations_without_a_key() -> None:
    said = advice("A : B : C")
    assert said.startswith("A : B : C has a match for each combination of events in a window")
    assert advice("A : B : C", "1000 EVENTS SLIDING") == said


@pytest.mark.parametrize(
    "options",
    [
        {"window": "10 SECONDS SLIDING"},
        {"window": "10 EVENTS"},
        {"head": "ASK"},
        {"tail": "LIMIT 5"},
        {"tail": "EMIT MAX"},
        {"tail": "CONSUME ANY"},
        {"tail": SKIP},
        {"where": "FILTER(?av = ?bv)"},
    ],
)
def test_combinations_that_are_few(options: dict[str, str]) -> None:
    assert advice("A : B : C", **options) == ""


@pytest.mark.parametrize("partition", ["", "?k"])
def test_combinations_with_a_key(partition: str) -> None:
    text = query("A : B : C", "1 HOUR SLIDING", dict.fromkeys("ABC", "[] :k ?k"), partition=partition)
    assert advise(checked(text)) == ()


def test_check_prints_it(tmp_path: Path) -> None:
    (tmp_path / "q.rq").write_text(query("A ; B+ ; C", "1 HOUR SLIDING", tail=SKIP))
    result = CliRunner().invoke(app, ["check", str(tmp_path / "q.rq")])
    assert (result.exit_code, result.stdout) == (0, "ok\n")
    assert "(B ; !C)+ stops at the first" in result.stderr


def _queries() -> list[str]:
    """The samples' queries, and those that stand as texts in the documentation."""
    texts = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "streams").glob("*.rq"))]
    for page in PAGES:
        for block in blocks(page.read_text(encoding="utf-8")):
            text = re.sub(r"(?m)^(?:>>>|\.\.\.) ?", "", block.text)
            texts += re.findall(r"(?s)'''(.*?)'''", text) + re.findall(r'(?s)"""(.*?)"""', text)
            texts += re.findall(r"(?s)<<'END'\n(.*?)\nEND", text)
    return texts


def test_nothing_is_said_of_the_samples_and_of_the_queries_in_the_documentation() -> None:
    read = 0
    for text in _queries():
        try:
            parsed = checked(f"PREFIX : <http://example.org/>\n{text}" if "PREFIX :" not in text else text)
        except QueryError:
            continue
        read += 1
        assert advise(parsed) == (), text
    assert read > 30
