"""Batches for kernels: shares of events, written event by event where most have rows, and GPM by GPM where
few do; columns that are not copied, and not looked at twice; the room that queries lend each other.
"""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import Literal

from spaseq._fields import address, place, plain
from spaseq.matching.columns import _kernel_shares as k
from spaseq.matching.columns.batches import Spare
from spaseq.matching.filters import batch as heads
from spaseq.matching.filters.numbers import Numbers
from spaseq.terms._numbers_kernel import distinct_with
from spaseq.terms.dictionary import Dictionary


@st.composite
def _of_gpms(draw: st.DrawFn) -> tuple[int, list[list[int]]]:
    """How many events there are, and of each GPM the event of each row; some have one in each."""
    size = draw(st.integers(1, 30))
    some = st.lists(st.integers(0, size - 1), max_size=40).map(sorted)
    return size, draw(st.lists(st.one_of(st.just(list(range(size))), some), max_size=6))


@given(_of_gpms())
def test_shares_of_each_event(of_gpms: tuple[int, list[list[int]]]) -> None:
    size, events = of_gpms
    rows = [np.array(of_gpm, dtype=np.int64) for of_gpm in events]
    sizes = np.array([*map(len, events)], dtype=np.int64)
    at = 3
    batch = np.full(at + size + 2 + heads.SHARE * (int(sizes.sum()) + 1), -1, dtype=np.int64)
    places = [place(of_gpm, address(batch)) for of_gpm in rows]
    k.share(batch, np.array(places, dtype=np.int64), sizes, np.zeros_like(sizes), at, size)
    for e in range(size):
        first, end = batch[at + e : at + e + 2].tolist()
        assert batch[first:end].reshape(-1, heads.SHARE).tolist() == [
            [g, of_gpm.index(e), of_gpm.index(e) + of_gpm.count(e)]
            for g, of_gpm in enumerate(events)
            if e in of_gpm
        ]


_INTS = st.lists(st.integers(-5, 5), min_size=2, max_size=8).map(np.array)


@given(_INTS, st.sampled_from(["plain", "strided", "narrow", "unaligned", "read-only"]))
def test_columns_stand_wherever_they_are(column: heads.Ints, how: str) -> None:
    """A place is told of any column, after a copy of those whose integers do not stand side by side."""
    if how == "strided":
        column = np.repeat(column, 3)[::3]
    elif how == "narrow":
        column = column.astype(np.int32)
    elif how == "unaligned":
        column = np.frombuffer(b"." + column.tobytes(), dtype=np.int64, offset=1)
    elif how == "read-only":
        column.flags.writeable = False
    batch = np.zeros(3, dtype=np.int64)
    kept = plain(column)
    at = place(kept, address(batch))
    assert heads.values(batch, at, len(column)).tolist() == column.tolist()
    assert (kept is column) == (how in ("plain", "read-only"))


def test_room_is_lent_to_one_at_a_time() -> None:
    spare = Spare.of(Dictionary())
    first = spare.take(5_000)
    assert spare.take(5_000) is not first
    spare.give(first)
    assert spare.take(4_000) is first
    assert spare.take(4_000) is not first


def test_a_column_of_terms_that_were_forgotten_is_looked_at_anew() -> None:
    dictionary = Dictionary()
    numbers = Numbers.of(dictionary)
    column = np.array([dictionary.intern(Literal(i)) for i in range(2_000)])
    numbers.cover(column)
    numbers.cover(column)
    assert numbers.numbers[column].tolist() == [*range(2_000)]
    assert dictionary.sweep([column[:0]]) == 2_000
    anew = sorted((dictionary.intern(Literal(-i)), -i) for i in range(2_000))
    assert sorted(column.tolist()) == [identifier for identifier, _ in anew]
    numbers.cover(column)
    assert numbers.numbers[np.sort(column)].tolist() == [value for _, value in anew]


@given(st.lists(st.integers(-1, 2), min_size=1), st.data())
def test_terms_with_a_code(known: list[int], data: st.DataObject) -> None:
    codes = np.array(known, dtype=np.int8)
    listed = data.draw(st.lists(st.integers(0, len(codes) - 1), max_size=60))
    ids = np.array(listed, dtype=np.int64)
    found = np.empty(min(len(ids), len(codes)) + 1, dtype=np.int64)
    count = distinct_with(-1, ids, codes, np.zeros(len(codes), dtype=np.bool_), found)
    # In the order in which they come.
    assert found[:count].tolist() == [i for i in dict.fromkeys(listed) if codes[i] == -1]
