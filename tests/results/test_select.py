"""SELECT over a match: projection, expressions, aggregates, grouping and the modifiers."""

from __future__ import annotations

import pytest
import rdflib

from tests.streams import matches, query


def rows(text: str, events: str) -> list[list[dict[str, object]]]:
    """The rows of each match, as Python values."""
    return [
        [{name: value.toPython() for name, value in row.items()} for row in match.bindings]  # type: ignore[union-attr]
        for match in matches(text, events)
    ]


EVENTS = "a1=10 b2=3 b3=4 c4=9"
SEQ = "A ; B{2} ; C"


def select(items: str, tail: str = "") -> str:
    return query(SEQ, head=f"SELECT {items}", tail=tail)


CASES = [
    ("?av ?cv", "", [{"av": 10, "cv": 9}, {"av": 10, "cv": 9}]),
    ("?bv", "", [{"bv": 3}, {"bv": 4}]),
    ("DISTINCT ?av ?cv", "", [{"av": 10, "cv": 9}]),
    ("(?bv + ?cv AS ?sum)", "", [{"sum": 12}, {"sum": 13}]),
    ("(?bv + ?cv AS ?sum) (?sum * 2 AS ?twice)", "", [{"sum": 12, "twice": 24}, {"sum": 13, "twice": 26}]),
    ("(?av / 0 AS ?none) ?bv", "", [{"bv": 3}, {"bv": 4}]),
    # Aggregates over a group variable: all iterations; one row a match.
    ("(COUNT(?bv) AS ?n) (SUM(?bv) AS ?s)", "", [{"n": 2, "s": 7}]),
    ("(MIN(?bv) AS ?x) (MAX(?bv) AS ?y)", "", [{"x": 3, "y": 4}]),
    ("(FIRST(?bv) AS ?x) (LAST(?bv) AS ?y)", "", [{"x": 3, "y": 4}]),
    ("(COUNT(*) AS ?n)", "", [{"n": 2}]),
    ("(GROUP_CONCAT(?bv; SEPARATOR='+') AS ?all)", "", [{"all": "3+4"}]),
    # What has one value in the match can stand beside them.
    ("?av (SUM(?bv) AS ?s)", "", [{"av": 10, "s": 7}]),
    ("?bv (COUNT(*) AS ?n)", "GROUP BY ?bv", [{"bv": 3, "n": 1}, {"bv": 4, "n": 1}]),
    (
        "?odd (COUNT(*) AS ?n)",
        "GROUP BY (?bv - 2 * FLOOR(?bv / 2) AS ?odd) ORDER BY ?odd",
        [{"odd": 0, "n": 1}, {"odd": 1, "n": 1}],
    ),
    ("(SUM(?bv) AS ?s)", "HAVING (COUNT(?bv) > 2)", []),
    ("(SUM(?bv) AS ?s)", "HAVING (COUNT(?bv) = 2)", [{"s": 7}]),
    ("?bv", "ORDER BY DESC(?bv)", [{"bv": 4}, {"bv": 3}]),
    ("?bv", "ORDER BY ?av DESC(?bv) OFFSET 1", [{"bv": 3}]),
    ("?bv", "LIMIT 1", [{"bv": 3}]),
]


@pytest.mark.parametrize(("items", "tail", "expected"), CASES)
def test_rows(items: str, tail: str, expected: list[dict[str, object]]) -> None:
    assert rows(select(items, tail), EVENTS) == [expected]


def test_two_kleenes_do_not_multiply_each_others_sums() -> None:
    text = query("A{2} ; B{2}", head="SELECT (SUM(?av) AS ?x) (SUM(?bv) AS ?y) (COUNT(*) AS ?n)")
    assert rows(text, "a1=1 a2=2 b3=3 b4=4") == [[{"x": 3, "y": 7, "n": 4}]]


def test_iterations_do_not_multiply_what_has_one_value() -> None:
    head = "SELECT (SUM(?av) AS ?x) (COUNT(?av) AS ?n) (AVG(?av + ?cv) AS ?y) (GROUP_CONCAT(?cv) AS ?z)"
    text = query("A ; B{3} ; C", head=head)
    assert rows(text, "a1=10 b2=3 b3=4 b4=5 c5=9") == [[{"x": 10, "n": 1, "y": 19, "z": "9"}]]


def test_a_partition_variable_of_a_kleene_has_one_value() -> None:
    head = "SELECT (COUNT(?k) AS ?n) (COUNT(?bv) AS ?m) (COUNT(*) AS ?all)"
    text = query("B{2}", gpms={"B": "?b a ?k"}, head=head, partition="?k")
    assert rows(text, "b1=3 b2=4") == [[{"n": 1, "m": 2, "all": 2}]]


def test_solutions_count_once_whatever_is_repeated_beside_them() -> None:
    gpms = {"A": "VALUES ?k { 1 2 }", "B": "VALUES ?j { 5 6 }"}
    text = query("A ; B{2}", gpms=gpms, head="SELECT (SUM(?k) AS ?x) (COUNT(?j) AS ?n)")
    assert rows(text, "a1=3 b2=4 b3=4") == [[{"x": 3, "n": 4}]]
    # Nothing is repeated: all solutions, as in SPARQL.
    text = query("A ; B", gpms=gpms, head="SELECT (SUM(?k) AS ?x)")
    assert rows(text, "a1=3 b2=4") == [[{"x": 6}]]


def test_star_is_every_variable_outside_negations_in_order() -> None:
    (match,) = matches(query("A ; !B ; C"), "a1 c2")
    assert match.variables == ("a", "av", "c", "cv")


def test_an_optional_part_leaves_its_variables_unbound() -> None:
    with_, without = matches(query("A ; B? , C", head="SELECT ?av ?bv ?cv"), "a1 b2 c3 a4 c5")
    assert set(with_.bindings[0]) == {"av", "bv", "cv"}
    assert set(without.bindings[0]) == {"av", "cv"}
    assert (with_.events["B"][0].time, without.events["B"]) == (2, [])


def test_several_solutions_of_one_event_are_several_rows() -> None:
    text = query("A", gpms={"A": "VALUES ?x { 1 2 }"}, head="SELECT ?x")
    assert rows(text, "a1") == [[{"x": 1}, {"x": 2}]]


def test_time_and_graph_of_an_event() -> None:
    text = query("A", head="SELECT ?t ?g").replace("GPM A ON S", "GPM A ON S AT ?t AS ?g")
    (match,) = matches(text, "a7")
    assert match.bindings == [{"t": rdflib.Literal(7), "g": rdflib.URIRef("http://example.org/a7")}]


def test_construct_leaves_out_what_cannot_be_a_triple() -> None:
    text = query("A ; B?", head="CONSTRUCT { ?a :v ?av . ?av :v ?a . ?a :b ?bv . [] :is [] }")
    (match,) = matches(text, "a1 x20")
    graph = match.graph()
    assert len(graph) == 2
    assert {str(p).rpartition("/")[2] for p in graph.predicates()} == {"v", "is"}
