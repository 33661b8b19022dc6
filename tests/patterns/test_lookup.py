"""The index of a table finds what a look at every row finds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from spaseq.patterns.spectra.lookup import RowIndex

ids = st.sampled_from([1, 2, 3, 2**33, 2**62])
keys = st.lists(st.tuples(ids, ids), min_size=1, max_size=12)


def columns(rows: Sequence[tuple[int, ...]], width: int) -> list[np.ndarray]:
    return [np.array([row[i] for row in rows], dtype=np.int64) for i in range(width)]


@given(keys, keys, st.integers(1, 2))
def test_finds_the_rows_with_a_key(
    table: list[tuple[int, int]], asked: list[tuple[int, int]], width: int
) -> None:
    lookup = RowIndex(columns(table, width))
    expected = [
        (i, j) for i, key in enumerate(asked) for j, row in enumerate(table) if key[:width] == row[:width]
    ]
    left, right = lookup.pairs(columns(asked, width))
    assert list(zip(left.tolist(), right.tolist(), strict=True)) == expected
    assert [(i, j) for i, key in enumerate(asked) for j in lookup.rows(key[:width])] == expected


def test_of_an_empty_table() -> None:
    empty = RowIndex([np.zeros(0, dtype=np.int64)])
    assert empty.rows([5]) == []
    assert [len(side) for side in empty.pairs([np.array([5, 6])])] == [0, 0]
