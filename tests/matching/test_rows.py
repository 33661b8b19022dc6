"""The first rows of events are looked for from those of the events before, and are what sorting says."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from spaseq.matching.columns._kernel_shares import find_rows

_places = st.lists(st.integers(-1, 60), max_size=40)


@given(st.lists(st.integers(0, 60), max_size=60), st.one_of(_places, _places.map(sorted)))
def test_the_first_rows_of_events_are_found(events: list[int], places: list[int]) -> None:
    of_rows, wanted = np.array(sorted(events), dtype=np.int64), np.array(places, dtype=np.int64)
    rows = np.full(len(places), -7, dtype=np.int64)
    find_rows(of_rows, wanted, rows)
    assert rows.tolist() == np.searchsorted(of_rows, wanted).tolist()
