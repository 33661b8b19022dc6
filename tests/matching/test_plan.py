"""``explain``: what a plan says, in words and as JSON."""

from __future__ import annotations

import json

import pytest

from spaseq.engine import Engine
from spaseq.errors import EngineError
from spaseq.language.reading.parser import parse
from spaseq.matching.plan import explain
from spaseq.matching.planner import check, choose
from tests.matching.random_sequences import pattern_of

QUERY = """
PREFIX : <http://example.org/>
SELECT * WITHIN 5 MINUTES SLIDING
FROM STREAM S1 <http://example.org/s1> FROM STREAM S2 <http://example.org/s2>
WHERE {
  SEQ(A ; !C ; B{2,})
  DEFINE GPM A ON S1 { ?a :k ?k ; :v ?v FILTER(?v > 3) }
  DEFINE GPM B ON S1, S2 { ?b :k ?k ; :w ?w FILTER(?w > ?v) }
  DEFINE GPM C ON S2 { ?c :next+ ?k }
  FILTER(?b != ?a)
}
"""


def test_words() -> None:
    text = str(explain(parse(QUERY)))
    assert "sequence   A ; !C ; B{2,}" in text
    assert "sliding: a match spans at most 5 minutes" in text
    assert "all GPMs bind ?k: PARTITION BY is possible" in text
    assert "GPM A on S1: SPECTRA" in text
    assert "per event  FILTER(?v > 3)" in text
    assert "per run    FILTER(?w > ?v)" in text
    assert "GPM C on S2: general (it has a property path with *, + or ?), only negated" in text
    assert "WHERE FILTER(?b != ?a) when the match ends" in text
    assert "1 → 2  !C ; B   runs found by ?k" in text
    assert "2 ends a match if ≥2×" in text
    assert "matcher    nfa: " in text


def test_partition() -> None:
    text = QUERY.replace("SLIDING", "SLIDING PARTITION BY ?k")
    assert "partition  by ?k\n" in str(explain(parse(text)))


def test_json() -> None:
    value = explain(parse(QUERY)).as_json()
    assert json.loads(json.dumps(value)) == value
    assert value["partition"] == {"by": [], "shared": ["k"]}
    assert [gpm["route"] for gpm in value["gpms"]] == ["SPECTRA", "SPECTRA", "general"]
    assert value["where"] == [{"filter": "?b != ?a", "at": "when the match ends"}]


def test_an_all_shows_the_automata_of_its_operands() -> None:
    lines = str(explain(parse(QUERY.replace("A ; !C ; B{2,}", "ALL(A : B, C)")))).splitlines()
    assert [line.strip() for line in lines if "states," in line] == [
        "automaton  2 states, 1 edge",
        "A : B:   3 states, 2 edges",
        "C:       2 states, 1 edge",
    ]


@pytest.mark.filterwarnings("ignore::spaseq.SpaseqWarning")
def test_an_matcher_that_is_not_there() -> None:
    with pytest.raises(EngineError, match="'kernel': there are kmp, tecs, lazy, tree, nfa, interpreter, "):
        Engine(matcher="kernel").register(QUERY)


@pytest.mark.filterwarnings("ignore::spaseq.SpaseqWarning")
def test_tree_is_for_who_asks_for_it() -> None:
    """It runs what ``lazy`` runs, and no query gets it by itself."""
    query = FORMS.format(seq="A : A : B", more="FILTER(?a < ?b)")
    assert check("tree", pattern_of(query)) == "tree"
    assert choose(pattern_of(query)).name == "lazy"
    engine = Engine(matcher="tree")
    handle = engine.register(query)
    for tick, (name, value) in enumerate([("a", 1), ("a", 1), ("b", 1), ("b", 3)]):
        triple = f"<http://example.org/{name}> <http://example.org/v> {value} ."
        engine.push("http://example.org/s", triple, tick)
    assert [(match.start, match.end) for match in handle.matches()] == [(0, 3)]
    with pytest.raises(EngineError, match="'tree' can run this query only if every operator is ':'"):
        Engine(matcher="tree").register(QUERY)


@pytest.mark.filterwarnings("ignore::spaseq.SpaseqWarning")
def test_an_matcher_that_cannot() -> None:
    with pytest.raises(EngineError, match="'tecs' can run this query only if nothing depends on"):
        Engine(matcher="tecs").register(QUERY)


FORMS = (
    "PREFIX : <http://example.org/> SELECT * WITHIN 9 SECONDS FROM STREAM S <http://example.org/s> "
    "WHERE {{ SEQ({seq}) DEFINE GPM A ON S {{ :a :v ?a }} DEFINE GPM B ON S {{ :b :v ?b . {more} }} }}"
)


@pytest.mark.parametrize(
    ("seq", "more", "matcher"),
    [
        ("A , B", "", "kmp"),
        ("A , B", "FILTER(?a != ?b)", "kmp"),
        ("A : B", "", "tecs"),
        ("A : B+[:]", "", "tecs"),
        ("A ; B", "", "nfa"),
        ("A , B", "FILTER(?a < ?b)", "nfa"),
        ("A : B", "FILTER(?a < ?b)", "nfa"),
        ("A | B", "FILTER(?a < ?b)", "nfa"),
        ("A : A : B", "FILTER(?a < ?b)", "lazy"),
        ("A : A : B", "FILTER(REGEX(STR(?a), STR(?b)))", "nfa"),
        ("A : A : B", "FILTER(STRLEN(STR(?a)) < STRLEN(STR(?b)))", "lazy"),
        ("A : A : B", "FILTER(EXISTS { ?a :v ?b })", "interpreter"),
        ("ALL(A, B)", "", "lazy"),
        ("ALL(A, B)", "FILTER(REGEX(STR(?a), STR(?b)))", "interpreter"),
        ("ALL(A, B : B)", "FILTER(?a < ?b)", "lazy"),
        ("ALL(A, B ; B)", "", "interpreter"),
    ],
)
def test_which_query_gets_which_matcher(seq: str, more: str, matcher: str) -> None:
    plan = explain(parse(FORMS.format(seq=seq, more=more)))
    assert plan.matcher == matcher
    better = ["kmp", "tecs", "lazy", "nfa"]
    assert [name for name, _ in plan.otherwise] == better[: [*better, "interpreter"].index(matcher)]
    assert all(obstacles for _, obstacles in plan.otherwise)


CHANGES = """
PREFIX : <http://example.org/>
SELECT * WITHIN 5 MINUTES FROM STREAM S <http://example.org/s>
WHERE {
  SEQ(A : B : C)
  DEFINE GPM A ON S { ?a :v ?v }
  DEFINE GPM B ON S { ?b :w ?w
    FILTER(?w > ?v) }
  DEFINE GPM C ON S { ?c :x ?x FILTER(?x > 1 || EXISTS { ?x :y ?v }) }
} CONSUME ANY
"""


def test_what_would_change_its_mind() -> None:
    """The words, and that the query gets a better matcher when they are heeded."""
    text = str(explain(parse(CHANGES)))
    assert "\notherwise  tecs, if\n    no filter compares events; here FILTER(?w > ?v) (8:5), " in text
    assert "\n    no filter between GPMs asks EXISTS; here EXISTS { ?x :y ?v } (9:49)" in text
    assert "\n    nothing is consumed; here CONSUME ANY\n" in text
    tables = CHANGES.replace("?x > 1 || EXISTS { ?x :y ?v }", "?x > ?v")
    assert explain(parse(tables)).matcher == "nfa"
    free = tables.replace("FILTER(?w > ?v)", "").replace("FILTER(?x > ?v)", "")
    plan = explain(parse(free))
    assert plan.matcher == "tecs"
    assert "every operator is ','; here ':' before B (5:11), ':' before C (5:15)" in str(plan)
    strict = explain(parse(free.replace("A : B : C", "A , B , C").replace("CONSUME ANY", "")))
    assert strict.matcher == "kmp"
    assert not strict.otherwise
    assert "otherwise" not in str(strict)


def test_what_keeps_a_query_from_lazy() -> None:
    asked = str(explain(parse(CHANGES.replace("CONSUME ANY", ""))))
    demand = "tables hold all conditions, or each candidate is asked them"
    assert f"    {demand}; here ?x > 1 || EXISTS {{ ?x :y ?v }} (9:39)\n" in asked
    some = str(explain(parse(CHANGES.replace("A : B : C", "ALL(A ; B, C)").replace("CONSUME ANY", ""))))
    assert "\notherwise  lazy, if\n    every operator is ':'; here ';' before B (5:15)\n" in some
    text = str(explain(parse(CHANGES.replace("A : B : C", "ALL(A, B, C)"))))
    assert "    a match can be put together in any order; here CONSUME ANY drops partial matches" in text


def test_many_places_of_a_kind_are_counted() -> None:
    text = str(explain(parse(CHANGES.replace("A : B : C", "A ; B ; C ; A ; B"))))
    assert "here ';' before B (5:11), ';' before C (5:15), ';' before A (5:19) and 1 more\n" in text


def test_the_same_as_json() -> None:
    better = {each["matcher"]: each["if"] for each in explain(parse(CHANGES)).as_json()["otherwise"]}
    demand = "no filter compares events"
    assert better["tecs"][0] == {"demand": demand, "here": "FILTER(?w > ?v)", "line": 8, "column": 5}
    assert better["kmp"][0] == {"demand": "nothing is consumed", "here": "CONSUME ANY"}
