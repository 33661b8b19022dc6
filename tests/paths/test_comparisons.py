"""Comparisons in node tests: ``[:year > 1960]``, against Oxigraph's filters, and as triples come."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode, QuerySolutions, Store

from spaseq.errors import QuerySyntaxError
from spaseq.paths import load
from spaseq.paths.language.expression import NodeTest
from spaseq.paths.language.parser import parse

_XSD = "http://www.w3.org/2001/XMLSchema#"
_VALUES = st.one_of(
    st.integers(-3, 3).map(str).map(lambda text: Literal(text, datatype=NamedNode(f"{_XSD}integer"))),
    st.sampled_from(["1.0", "1.5", "-2.25", "9007199254740993"]).map(
        lambda text: Literal(text, datatype=NamedNode(f"{_XSD}decimal"))
    ),
    st.sampled_from(["1e0", "NaN", "INF", "-0.0", "9007199254740992"]).map(
        lambda text: Literal(text, datatype=NamedNode(f"{_XSD}double"))
    ),
    st.sampled_from(["0.1", "1"]).map(lambda text: Literal(text, datatype=NamedNode(f"{_XSD}float"))),
    st.sampled_from(["2020-01-01", "2021-02-03Z"]).map(
        lambda text: Literal(text, datatype=NamedNode(f"{_XSD}date"))
    ),
    st.sampled_from(["", "a", "b"]).map(Literal),
)


@given(
    st.lists(st.tuples(st.integers(0, 3), _VALUES), min_size=1, max_size=8),
    st.sampled_from(["<", "<=", "=", "!=", ">=", ">"]),
    _VALUES,
)
@example(
    [(0, Literal("9007199254740993", datatype=NamedNode(f"{_XSD}integer")))],
    ">",
    Literal("9007199254740992", datatype=NamedNode(f"{_XSD}decimal")),
)
def test_comparisons_are_those_of_sparql(
    values: list[tuple[int, Literal | NamedNode]], operator: str, constant: Literal | NamedNode
) -> None:
    triples = [(NamedNode(f"urn:n{node}"), NamedNode("urn:v"), value) for node, value in values]
    found = load(triples).pairs(f"[<urn:v> {operator} {constant}]{{1}}", sources=["<urn:n0>", "<urn:n1>"])
    store = Store()
    for number in (0, 1):
        query = f"SELECT ?x {{ VALUES ?v {{ {' '.join(str(v) for n, v in values if n == number)} }} "
        answers = store.query(f"{query} FILTER(?v {operator} {constant}) }}")
        assert isinstance(answers, QuerySolutions)
        is_there = any(str(source) == f"urn:n{number}" for source, _ in found)
        assert is_there == (next(iter(answers), None) is not None), number


def test_comparisons_beside_other_conditions_and_backwards() -> None:
    films = load("spaseq/samples/films.ttl")
    early = films.pairs("^:starred/[:release_year < 1960 ; :directed_by]/:release_year")
    assert {int(str(year)) for _, year in early} <= set(range(1960))
    assert len(films.pairs("[^:born_in != <urn:x>]{0,1}/^:born_in")) == len(films.pairs("^:born_in"))


def test_how_comparisons_are_written() -> None:
    test = parse("[:y>=1 ; ^:p = 'x'@en]", {"": "urn:"})
    assert str(test) == '[:y >= 1 ; ^:p = "x"@en]'
    assert parse(str(test), {"": "urn:"}) == test == pickle.loads(pickle.dumps(test))
    assert isinstance(test.root, NodeTest)
    with pytest.raises(QuerySyntaxError):
        parse("[:y >]", {"": "urn:"})


def test_watches_see_nodes_begin_to_pass() -> None:
    graph = load([("a", "knows", "b"), ("b", "age", "5")], base="urn:")
    watch = graph.watch(":knows/[:age > 17]")
    assert not len(list(watch.pairs()))
    graph.add([("urn:b", "urn:age", 18)])
    assert [str(end) for _, end in watch.new()] == ["urn:b"]
