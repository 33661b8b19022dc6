"""The relational algebra on columns against its definition, row by row."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from spaseq.patterns.spectra.solutions import (
    UNIT,
    Solutions,
    distinct,
    group_codes,
    join,
    left_join,
    minus,
    table,
    union,
)

Row = Mapping[str, int]
EVENTS = np.arange(3)


@st.composite
def solutions(draw: st.DrawFn) -> Solutions:
    """A few rows over some of ?a ?b ?c, often unbound; often the same in every event, or one in each."""
    names = draw(st.lists(st.sampled_from("abc"), unique=True, max_size=3))
    values = st.integers(draw(st.integers(0, 1)), 2)
    rows = draw(st.lists(st.lists(values, min_size=len(names), max_size=len(names)), max_size=5))
    found = table(names, rows)
    if draw(st.booleans()):
        return found
    if len(rows) <= len(EVENTS) and draw(st.booleans()):
        events = sorted(draw(st.permutations(EVENTS.tolist()))[: len(rows)])
    else:
        events = draw(st.lists(st.integers(0, 2), min_size=len(rows), max_size=len(rows)))
    return Solutions(len(rows), np.array(events, dtype=np.int64), found.columns)


def rows(found: Solutions) -> list[list[Row]]:
    return [list(found.everywhere(EVENTS).rows(event)) for event in EVENTS.tolist()]


def bag(found: list[list[Row]]) -> list[list[list[tuple[str, int]]]]:
    return [sorted(sorted(row.items()) for row in event) for event in found]


def compatible(a: Row, b: Row) -> bool:
    return all(a[name] == b[name] for name in a.keys() & b.keys())


@given(solutions(), solutions())
def test_join(left: Solutions, right: Solutions) -> None:
    expected = [
        [{**a, **b} for a in first for b in second if compatible(a, b)]
        for first, second in zip(rows(left), rows(right), strict=True)
    ]
    assert rows(join(left, right)) == expected
    assert join(UNIT, left) is left


@given(solutions(), solutions(), st.booleans())
def test_left_join(left: Solutions, right: Solutions, conditional: bool) -> None:
    def holds(row: Row) -> bool:
        return not conditional or row.get("a", 0) <= 1

    def condition(joined: Solutions) -> np.ndarray:
        return np.array([holds(row) for row in joined.by_row()], dtype=np.bool_)

    expected = []
    for first, second in zip(rows(left), rows(right), strict=True):
        found: list[Row] = []
        for a in first:
            joined = [{**a, **b} for b in second if compatible(a, b)]
            found += [row for row in joined if holds(row)] or [a]
        expected.append(found)
    answer = left_join(left, right, EVENTS, condition if conditional else None)
    assert bag(rows(answer)) == bag(expected)


@given(solutions(), solutions())
def test_minus(left: Solutions, right: Solutions) -> None:
    expected = [
        [a for a in first if not any(compatible(a, b) and a.keys() & b.keys() for b in second)]
        for first, second in zip(rows(left), rows(right), strict=True)
    ]
    assert rows(minus(left, right, EVENTS)) == expected


@given(solutions(), solutions())
def test_union_and_distinct(left: Solutions, right: Solutions) -> None:
    both = union([left, right], EVENTS)
    expected = [first + second for first, second in zip(rows(left), rows(right), strict=True)]
    assert bag(rows(both)) == bag(expected)
    once = [[dict(items) for items in dict.fromkeys(tuple(sorted(r.items())) for r in e)] for e in expected]
    assert bag(rows(distinct(both))) == bag(once)


@given(st.lists(st.tuples(*[st.sampled_from([0, 1, 2**40, 2**61])] * 4), min_size=1, max_size=6))
def test_codes_are_equal_where_rows_are(data: list[tuple[int, ...]]) -> None:
    codes = group_codes([np.array(column, dtype=np.int64) for column in zip(*data, strict=True)]).tolist()
    for i, first in enumerate(data):
        for j, second in enumerate(data):
            assert (codes[i] == codes[j]) == (first == second)


def test_order_of_rows_is_that_of_the_left_side() -> None:
    left = Solutions(3, np.array([1, 0, 1]), {"a": np.array([5, 5, 6])})
    right = Solutions(3, np.array([1, 0, 1]), {"a": np.array([5, 5, 5]), "b": np.array([1, 2, 3])})
    joined = join(left, right)
    assert joined.event is not None
    assert joined.event.tolist() == [1, 1, 0]
    assert joined.columns["b"].tolist() == [1, 3, 2]
    kept = left_join(left, right, EVENTS)
    assert kept.columns["b"].tolist() == [1, 3, 2, 0]
    assert kept.by_event() == {1: ({"a": 5, "b": 1}, {"a": 5, "b": 3}, {"a": 6}), 0: ({"a": 5, "b": 2},)}
