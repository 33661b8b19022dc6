"""Ids of terms as numbers of those that are there: all at once, and of many parts each by itself."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from spaseq.matching.columns.blocks.values import numbered, numbered_by_part
from spaseq.terms.dictionary import distinct, in_order
from spaseq.terms.dictionary import numbered as numbers

_IDS = st.lists(st.integers(0, 40), max_size=30)


@given(_IDS, st.sampled_from([41, 10_000]))
def test_each_id_once(ids: list[int], limit: int) -> None:
    given_ids = np.array(ids, dtype=np.int64)
    found, places = numbers(given_ids, limit)
    assert found.tolist() == distinct(given_ids, limit).tolist() == sorted(set(ids))
    assert in_order(given_ids).tolist() == sorted(set(ids))
    assert found[places].tolist() == ids


@given(st.lists(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=6), max_size=6))
def test_parts_are_numbered_as_if_each_were_alone(parts: list[list[tuple[int, int]]]) -> None:
    bounds = np.cumsum([0, *map(len, parts)])
    rows = np.array([row for part in parts for row in part], dtype=np.int64).reshape(-1, 2)
    columns = [rows[:, 0].copy(), rows[:, 1].copy()]
    used, ends, found = numbered_by_part(columns, bounds, 10)
    for i, part in enumerate(parts):
        own, cut = used[ends[i] : ends[i + 1]], slice(bounds[i], bounds[i + 1])
        alone, _ = numbered([column[cut] for column in columns], 10)
        assert own.tolist() == alone.tolist()
        for column, number, values in zip(columns, found, zip(*part, strict=True), strict=False):
            assert column[cut].tolist() == list(values)
            assert [0 if n < 0 else own[n] for n in number[cut]] == list(values)
