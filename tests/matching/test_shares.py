"""The shares of events, written event by event where most have rows, and GPM by GPM where few do."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from spaseq.matching.columns import _kernel_shares as k
from spaseq.matching.conditions import batch as heads


@st.composite
def _of_gpms(draw: st.DrawFn) -> tuple[int, list[list[int]]]:
    """How many events there are, and of each GPM the event of each row; some have one in each."""
    size = draw(st.integers(1, 30))
    some = st.lists(st.integers(0, size - 1), max_size=40).map(sorted)
    return size, draw(st.lists(st.one_of(st.just(list(range(size))), some), max_size=6))


@given(_of_gpms())
def test_shares_of_each_event(of_gpms: tuple[int, list[list[int]]]) -> None:
    size, events = of_gpms
    bounds = np.cumsum([0, *map(len, events)])
    rows = np.array([event for of_gpm in events for event in of_gpm], dtype=np.int64)
    at = 3
    batch = np.full(at + size + 2 + heads.SHARE * len(rows), -1, dtype=np.int64)
    k.share(rows, bounds, bounds.copy(), at, size, batch)
    for e in range(size):
        first, end = batch[at + e : at + e + 2].tolist()
        assert batch[first:end].reshape(-1, heads.SHARE).tolist() == [
            [g, of_gpm.index(e), of_gpm.index(e) + of_gpm.count(e)]
            for g, of_gpm in enumerate(events)
            if e in of_gpm
        ]
