"""The table of the constants in which queries of a template differ."""

from __future__ import annotations

from pyoxigraph import Literal, NamedNode

from spaseq.matching.templates.parameters import Parameters
from spaseq.terms.dictionary import Dictionary, Term


def test_queries_of_equal_constants_have_a_row_in_common() -> None:
    shares: list[Term] = [NamedNode(f"urn:s{i}") for i in (1, 0, 1, 1, 0, 1)]
    bounds: list[Term] = [Literal(bound) for bound in (5, 5, 7, 5, 5, 7)]
    dictionary = Dictionary()
    # Two GPMs name the share.
    table = Parameters(["a", "b", "c"], "row", [shares, [*shares], bounds], dictionary)
    assert table.of_queries == [0, 1, 2, 0, 1, 2]
    assert len(table) == len(table.rows) == 3
    found = {name: [*map(dictionary.term, table.column(name).tolist())] for name in "abc"}
    assert found == {"a": shares[:3], "b": shares[:3], "c": bounds[:3]}
    assert [table.is_same_term(name) for name in "abc"] == [True, True, False]


def test_most_constants_may_differ() -> None:
    own: list[Term] = [Literal(str(i)) for i in range(10)]
    dictionary = Dictionary()
    table = Parameters(["a"], "row", [own], dictionary)
    assert table.of_queries == [*range(10)]
    assert [*map(dictionary.term, table.column("a").tolist())] == own
