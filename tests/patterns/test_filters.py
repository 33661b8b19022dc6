"""Filters over columns keep what the same filter keeps row by row, also where doubles are too coarse."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode

from spaseq.language.syntax import Binary, Call, Constant, Expression, Var
from spaseq.patterns.expressions.columns import ColumnFilter
from spaseq.patterns.expressions.compiled import compile_filter
from spaseq.patterns.spectra.solutions import table
from spaseq.terms.dictionary import UNBOUND, Dictionary
from spaseq.terms.values import XSD


def xsd(text: str, name: str) -> Literal:
    return Literal(text, datatype=NamedNode(XSD + name))


#: Numbers that are hard to tell apart, and some that are none.
TERMS = [
    *(xsd(str(2**53 + i), "integer") for i in range(3)),
    *(xsd(f"{2**53 + i}", "double") for i in range(3)),
    *(xsd(text, "decimal") for text in ("0.1", "0.10", "0.1000000000000000055511151231257827", "1")),
    *(xsd(text, "double") for text in ("0.1", "NaN", "INF", "-0", "1e0")),
    *(xsd(text, "float") for text in ("0.1", "16777216", "NaN")),
    *(xsd("1" + "0" * 400, "integer"), xsd("1" + "0" * 399 + "1", "integer"), xsd("16777217", "integer")),
    *(Literal("x"), Literal("x", language="en"), xsd("x", "integer"), NamedNode("http://e.org/a")),
    *(xsd("2024-01-01T00:00:00Z", "dateTime"), xsd("2024-01-01T00:00:00.0Z", "dateTime")),
]

rows = st.lists(st.tuples(*[st.sampled_from([None, *TERMS])] * 2), max_size=30)


def _check(expression: Expression, pairs: list[tuple[object, ...]]) -> None:
    dictionary = Dictionary()
    ids = [[UNBOUND if term is None else dictionary.intern(term) for term in pair] for pair in pairs]
    solutions = table(["a", "b"], ids)
    expected = [compile_filter(expression, dictionary)(row) for row in solutions.by_row()]
    column_filter = ColumnFilter(expression, dictionary)
    assert column_filter(solutions, {}).tolist() == expected
    for row, kept in zip(solutions.by_row(), expected, strict=True):  # and with ?a from the context
        context = {name: identifier for name, identifier in row.items() if name == "a"}
        one = table(["b"], [[row.get("b", UNBOUND)]])
        assert column_filter(one, context).tolist() == [kept]


@given(st.sampled_from(["=", "!=", "<", "<=", ">", ">="]), rows)
def test_two_variables(operator: str, pairs: list[tuple[object, ...]]) -> None:
    _check(Binary(operator, Var("a"), Var("b")), pairs)


@given(st.sampled_from(["=", "<", ">="]), st.sampled_from(TERMS), rows)
def test_a_constant(operator: str, term: Literal, pairs: list[tuple[object, ...]]) -> None:
    _check(Binary(operator, Constant(term), Var("b")), pairs)


@given(rows)
def test_anything_else(pairs: list[tuple[object, ...]]) -> None:
    bound = Call("BOUND", (Var("b"),))
    _check(Binary("||", Binary("<", Var("a"), Var("b")), bound), pairs)


def test_what_is_random_is_asked_row_by_row() -> None:
    column_filter = ColumnFilter(Binary("<", Call("RAND", ()), Constant(Literal(0.5))), Dictionary())
    kept = column_filter(table(["a"], [[1]] * 200), {})
    assert 0 < np.count_nonzero(kept) < 200
