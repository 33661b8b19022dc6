"""``explain`` of several queries: it says what an engine does with them."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

import spaseq
from spaseq.automaton.normal import normalise
from spaseq.cli import app
from spaseq.language import checked
from spaseq.matching.planner import choose
from spaseq.matching.sharing.plan import explain_all

SVG = "{http://www.w3.org/2000/svg}"
EX = "http://example.org/"
TEXT = """PREFIX ex: <http://example.org/>
SELECT * WITHIN 10 SECONDS SLIDING FROM STREAM S <http://example.org/s> WHERE {
  SEQ(%s)
  DEFINE GPM A ON S { ?x ex:a ?a }
  DEFINE GPM B ON S { ?x ex:b ?b }
  %s
}"""
C = "DEFINE GPM C ON S { ?x ex:c ?c FILTER(?c > ?a) }"
D = "DEFINE GPM D ON S { ?x ex:d ?d FILTER(?d > ?a) }"
ALERT = """SELECT * WITHIN 10 SECONDS SLIDING FROM STREAM S <http://example.org/s> WHERE {
  SEQ(A ; B) DEFINE GPM A ON S { ?x <urn:p> %d } DEFINE GPM B ON S { ?x <urn:q> ?q FILTER(?q < %d) } }"""

TEXTS = {
    "abc.rq": TEXT % ("A ; B : C", C),
    "abd.rq": TEXT % ("A ; B : D", D),
    # The same under other names, in a longer window.
    "long.rq": (TEXT % ("A ; B : C", C)).replace("?a", "?price").replace("GPM A", "GPM Buy")
    .replace("A ;", "Buy ;").replace("10 SEC", "20 SEC"),
    "again.rq": TEXT % ("A ; B : D", D),
    "strict.rq": TEXT % ("A , B : C", C),
    "random.rq": (TEXT % ("A ; B : C", C)).replace("?c > ?a", "?c > RAND()"),
    "alert1.rq": ALERT % (1, 5),
    "alert2.rq": ALERT % (2, 5),
    "alert3.rq": ALERT % (3, 9),
}  # fmt: skip


def test_what_it_says_is_what_the_engine_does() -> None:
    plan = explain_all({name: checked(text) for name, text in TEXTS.items()})
    engine = spaseq.Engine()
    handles = {name: engine.register(text) for name, text in TEXTS.items()}
    engine.push(f"{EX}s", f"<urn:x> <{EX}a> 1 .", 1)
    as_one = {name: len(same.queries) - 1 for same in plan.same for name in same.queries}
    assert {name: handle.stats.shared_with for name, handle in handles.items()} == {
        name: as_one.get(name, 0) for name in TEXTS
    }
    (prefix,) = plan.prefixes
    paths = {name: [len(wanted) for wanted in prefix.wanted[1:] if name in wanted] for name in prefix.queries}
    assert {name: list(handle.stats.shared) for name, handle in handles.items()} == {
        name: paths.get(name, []) for name in TEXTS
    }
    assert paths["again.rq"] == [5, 5, 2]
    assert [alone.queries for alone in plan.alone] == [("strict.rq",)]
    handles["abd.rq"].cancel()
    assert handles["again.rq"].stats.shared == (4, 4, 1)
    assert handles["abd.rq"].stats.shared == ()


def test_each_state_has_the_queries_that_want_it() -> None:
    plan = explain_all({name: checked(text) for name, text in TEXTS.items()})
    (prefix,) = plan.prefixes
    every = ("abc.rq", "abd.rq", "again.rq", "long.rq", "random.rq")
    assert sorted(prefix.queries) == list(every)
    assert [tuple(sorted(wanted)) for wanted in prefix.wanted] == [
        *(every, every, every),
        *(("abc.rq", "long.rq"), ("abd.rq", "again.rq"), ("random.rq",)),
    ]
    assert prefix.ends == ((), (), (), *prefix.wanted[3:])
    assert [line.strip() for line in str(plan).splitlines() if " → " in line] == [
        "0 → 1  A/Buy",
        "1 → 2  ; B",
        "2 → 3  : C",
        "2 → 4  : D",
        "2 → 5  : C",
    ]


def test_it_says_what_those_that_lazy_runs_share() -> None:
    parts = [("C", "?c > ?a + ?b"), ("D", "?d > ?a + ?b"), ("C", "?c < ?a * ?b")]
    texts = {
        f"{number}.rq": TEXT
        % (f"A : B : {gpm}", f"DEFINE GPM {gpm} ON S {{ ?x ex:{gpm.lower()} ?{gpm.lower()} FILTER({than}) }}")
        for number, (gpm, than) in enumerate(parts)
    }
    queries = {name: checked(text) for name, text in texts.items()}
    assert {choose(normalise(query)).name for query in queries.values()} == {"lazy"}
    (prefix,) = explain_all(queries).prefixes
    engine = spaseq.Engine()
    handles = {name: engine.register(text) for name, text in texts.items()}
    for number, letter in enumerate("abcd", 1):
        engine.push(f"{EX}s", f"<urn:x> <{EX}{letter}> {number} .", number)
    for name, handle in handles.items():
        assert handle.stats.shared == tuple(len(of) for of in prefix.wanted[1:] if name in of) == (3, 3, 1)
    assert [handle.stats.matches for handle in handles.values()] == [0, 1, 0]


def test_it_says_whose_runs_are_shared_where_a_match_is_preferred() -> None:
    """What each must not skip is no hindrance: a run says whose it is."""
    skips = ["PAST LAST EVENT", "PAST LAST EVENT", "TO NEXT EVENT", "PAST LAST EVENT"]
    sequences = ["A ; B ; C", "A ; B ; D", "A ; B ; C", "A ; (B | C)"]
    texts = {
        f"{number}.rq": TEXT % (sequence, C * ("C" in sequence) + D * ("D" in sequence))
        + f" AFTER MATCH SKIP {skip}"
        for number, (sequence, skip) in enumerate(zip(sequences, skips, strict=True))
    }
    plan = explain_all({name: checked(text) for name, text in texts.items()})
    (prefix,) = plan.prefixes
    assert prefix.queries == ("0.rq", "1.rq")
    assert [line.strip() for line in str(plan).splitlines() if " → " in line] == [
        "0 → 1  A",
        "1 → 2  ; B",
        "2 → 3  ; C",
        "2 → 4  ; D",
    ]
    engine = spaseq.Engine()
    handles = {name: engine.register(text) for name, text in texts.items()}
    for number, letter in enumerate("abcd", 1):
        engine.push(f"{EX}s", f"<urn:x> <{EX}{letter}> {number} .", number)
    assert [handle.stats.shared for handle in handles.values()] == [(2, 2, 1), (2, 2, 1), (), ()]
    assert [handle.stats.matches for handle in handles.values()] == [1, 1, 1, 1]


def test_the_table_has_the_constants_that_differ() -> None:
    plan = explain_all({name: checked(text) for name, text in TEXTS.items()})
    (table,) = [same for same in plan.same if same.parameters]
    integer = "^^<http://www.w3.org/2001/XMLSchema#integer>"
    assert table.queries == ("alert1.rq", "alert2.rq", "alert3.rq")
    assert table.rows == tuple((f'"{a}"{integer}', f'"{b}"{integer}') for a, b in ((1, 5), (2, 5), (3, 9)))
    assert [f"?{name}" in table.text for name in table.parameters] == [True, True]
    assert "VALUES" not in table.text
    assert "alert3.rq" in str(plan)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.chdir(tmp_path)
    for name, text in TEXTS.items():
        (tmp_path / name).write_text(text)
    return list(TEXTS)


def test_the_command_line_has_it_as_text_json_and_svg(files: list[str]) -> None:
    said = CliRunner().invoke(app, ["explain", *files])
    assert said.exit_code == 0, said.stderr
    assert said.stdout.startswith("as one     abd.rq, again.rq: they ask the same\n")
    assert "\nalone      strict.rq  SEQ(A , B : C): only ; and : share" in said.stdout
    plan = json.loads(CliRunner().invoke(app, ["explain", *files, "-f", "json"]).stdout)
    assert plan["as one"][1]["constants"]["alert2.rq"].keys() == set(plan["as one"][1]["parameters"])
    assert plan["shared"][0]["wanted"][3]["queries"] == ["abc.rq", "long.rq"]
    drawing = ElementTree.fromstring(CliRunner().invoke(app, ["explain", *files, "-f", "svg"]).stdout)
    texts = [text.text or "" for text in drawing.iter(f"{SVG}text")]
    assert "all" in texts
    assert "abc.rq, long.rq" in texts
    assert sum("alert2.rq" in text for text in texts) == 2  # in the caption, and with its constants
    assert len(list(drawing.iter(f"{SVG}svg"))) == 1 + 3


@pytest.mark.parametrize(
    ("options", "message"),
    [(["-f", "dot"], "text, svg or json"), (["--analyze", "-s", "S=x.nq"], "--analyze runs one query")],
)
def test_what_is_for_one_query(files: list[str], options: list[str], message: str) -> None:
    result = CliRunner().invoke(app, ["explain", *files, *options])
    assert result.exit_code == 2
    assert message in result.stderr
