"""Which variables patterns, expressions, GPMs and sequences speak of."""

from __future__ import annotations

import pytest

from spaseq.language import scope
from spaseq.language import syntax as s
from spaseq.language.reading.parser import parse, parse_group
from spaseq.language.syntax.printing import print_expression
from tests.language.marked import asked

# A group, the variables in scope, and those that are certain.
PATTERNS = [
    ("{ ?x ?p [ <urn:q> ?y ] }", "p x y", "p x y"),
    ("{ ?x <urn:p>* ?y }", "x y", "x y"),
    ("{ ?x ?p 1 OPTIONAL { ?x ?q ?y } }", "p q x y", "p x"),
    ("{ { ?x ?p ?y } UNION { ?x ?q ?y } }", "p q x y", "x y"),
    ("{ ?x ?p 1 FILTER(?z > 1) MINUS { ?x ?q ?m } }", "p x", "p x"),
    ("{ ?x ?p ?y BIND(?y + 1 AS ?z) }", "p x y z", "p x y"),
    ("{ VALUES (?x ?y) { (1 2) (UNDEF 3) } }", "x y", "y"),
    ("{ VALUES ?x { } }", "x", "x"),
    ("{ GRAPH ?g { ?x ?p ?y } }", "g p x y", "g p x y"),
    ("{ SERVICE SILENT ?g { ?x ?p ?y } }", "g p x y", ""),
    ("{ SERVICE ?g { ?x ?p ?y } }", "g p x y", "g p x y"),
    ("{ { SELECT * { ?x ?p ?y } VALUES ?z { 1 } } }", "p x y z", "p x y z"),
    ("{ { SELECT ?x (1 AS ?one) ?u { ?x ?p ?y } } }", "one u x", "x"),
    ("{ { SELECT ?x { ?x ?p ?y } GROUP BY ?x } { ?z ?p ?x } }", "p x z", "p x z"),
    ("{ }", "", ""),
]


@pytest.mark.parametrize(("text", "in_scope", "certain"), PATTERNS)
def test_patterns(text: str, in_scope: str, certain: str) -> None:
    group = parse_group(text)
    assert scope.variables(group) == set(in_scope.split())
    assert scope.certain(group) == set(certain.split())


def condition(text: str) -> s.Expression:
    (found,) = parse_group(f"{{ FILTER({text}) }}").elements
    assert isinstance(found, s.Filter)
    return found.condition


EXPRESSIONS = [
    ("?a + ?b * -?c", "a b c", ""),
    ("?a IN (?b, 1) && IF(?c, <urn:f>(?d), 2)", "a b c d", ""),
    ("SUM(?a * ?b) > PREV(?c) && COUNT(*) > 1", "a b c", ""),
    ("?a = 1 && EXISTS { ?x <urn:p> ?y FILTER(?y > ?z) MINUS { ?m ?m ?m } }", "a", "m x y z"),
    (
        "NOT EXISTS { { SELECT ?x { ?x ?p ?y } } BIND(?u AS ?v) GRAPH ?g { } VALUES ?w { 1 } }",
        "",
        "g u v w x",
    ),
    ("EXISTS { { ?a ?a ?a } UNION { FILTER EXISTS { ?b ?b ?b } } OPTIONAL { ?c ?c ?c } }", "", "a b c"),
]


@pytest.mark.parametrize(("text", "itself", "in_exists"), EXPRESSIONS)
def test_expressions(text: str, itself: str, in_exists: str) -> None:
    assert scope.mentioned(condition(text), exists=False) == set(itself.split())
    assert scope.mentioned(condition(text)) == set(itself.split()) | set(in_exists.split())


def gpm(text: str) -> s.Gpm:
    return parse(asked(f"{{ SEQ(A) DEFINE GPM A ON S {text} }}")).gpm("A")


def test_gpms_bind_their_time_and_graph() -> None:
    found = gpm("AT ?t AS ?g { ?x :p ?y OPTIONAL { ?x :q ?z } }")
    assert scope.gpm_variables(found) == {"t", "g", "x", "y", "z"}
    assert scope.gpm_certain(found) == {"t", "g", "x", "y"}


def test_references_in_order() -> None:
    query = parse(asked("{ SEQ(A ; !(B | C) ; ALL(D+, (A & B)) | !E) DEFINE GPM A ON S { } }"))
    found = [(ref.name, negated) for ref, negated in scope.references(query.sequence)]
    assert found == [
        ("A", False), ("B", True), ("C", True), ("D", False), ("A", False), ("B", False), ("E", True),
    ]  # fmt: skip


SPLITS = [
    # filter, whether it is correlated
    ("?y > 1", False),
    ("?y > ?price", True),
    ("?y > ?nobody", False),
    ("?t > 5 && ?g != ?x", False),
    ("?z = 1", True),
    ("BOUND(?y) && COUNT(?y) > 1", True),
    ("?y > PREV(?y)", True),
    ("EXISTS { ?x :q ?own FILTER(?own > 1) }", False),
    ("EXISTS { ?x :q ?price }", True),
    ("EXISTS { ?x :q ?own FILTER(?own > ?price) }", True),
    ("EXISTS { { SELECT ?x { ?x :q ?price } } }", False),
]


@pytest.mark.parametrize(("text", "correlated"), SPLITS)
def test_split(text: str, correlated: bool) -> None:
    """Other GPMs bind ?price, ?x, ?y, ?z and ?t; here ?z is in an OPTIONAL."""
    found = gpm(f"AT ?t AS ?g {{ ?x :p ?y FILTER({text}) OPTIONAL {{ ?x :q ?z FILTER(?z > ?price) }} }}")
    stateless, filters = scope.split(found, frozenset(["price", "x", "y", "z", "t"]))
    kinds = [type(element) for element in stateless.elements]
    if correlated:
        assert kinds == [s.Triples, s.Optional]
        (only,) = filters
        assert print_expression(only.condition) == print_expression(
            found.pattern.elements[1].condition  # type: ignore[union-attr]  # the FILTER
        )
    else:
        assert (kinds, filters) == ([s.Triples, s.Filter, s.Optional], ())


def test_split_of_a_conjunction() -> None:
    """What the event alone decides is asked of it once; the rest is asked of each run."""
    found = gpm("{ ?x :p ?y FILTER(?y > ?price && ?y > 1 && REGEX(STR(?x), 'a') && ?price < 9) }")
    stateless, filters = scope.split(found, frozenset(["price", "x"]))
    own = [print_expression(e.condition) for e in stateless.elements if isinstance(e, s.Filter)]
    assert own == ["?y > 1", 'REGEX(STR(?x), "a")']
    assert [print_expression(f.condition) for f in filters] == ["?y > ?price", "?price < 9"]
