"""What several queries have found is laid out for each of them: as sorting in Python says, whatever comes."""

from __future__ import annotations

from itertools import groupby
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spaseq.matching.columns.blocks.plain import EventSite, Sites
from spaseq.matching.sharing._kernel_given import FoundRows
from spaseq.matching.sharing.giving import Giving, Lot, PlainSites

_MEMBERS = 3
_SITES = 4
#: Of three batches: where they begin, and how many solutions of each GPM those before have.
_STARTS, _BEGINS = [10, 20, 40], [0, 10, 25, 40]
_BEFORE = [[0, 7, 9, 30], [0, 1, 5, 6]]

Step = tuple[int, int, int]

_steps = st.lists(
    st.tuples(st.sampled_from([10, 19, 20, 40]), st.integers(0, _SITES - 1), st.integers(0, 3)),
    min_size=1,
    max_size=2,
    unique_by=lambda step: step[0],
).map(sorted)
_alike = st.tuples(st.integers(10, 19), st.integers(20, 34)).map(
    lambda positions: [(position, site, 0) for site, position in enumerate(positions)]
)
_found = st.lists(
    # What it is, which end it has, whose it is.
    st.tuples(st.one_of(_steps, _alike), st.integers(0, 2), st.sets(st.integers(0, _MEMBERS - 1))),
    min_size=1,
    max_size=60,
)


class _History:
    """Three batches, those of which are given that are between two events."""

    def between(self, least: int, most: int, count: int) -> Any:
        del most, count
        first = sum(start <= least for start in _STARTS) - 1
        return SimpleNamespace(
            starts=_STARTS[first:],
            begins=np.array(_BEGINS[first:]) - _BEGINS[first],
            rows_before=lambda g: np.array(_BEFORE[g][first:]) - _BEFORE[g][first],
        )


def _plain(member: int) -> PlainSites:
    # One has other numbers for its sites, and the names of GPMs the other way round.
    own = np.arange(_SITES) if member != 1 else np.arange(_SITES)[::-1].copy()
    names = "pq" if member != 1 else "qp"
    sites = [EventSite(i // 2, names[i // 2]) for i in range(_SITES)]
    return PlainSites(own, Sites(sites, ("p", "q")))


def _chunk(position: int) -> int:
    """The batch that an event is in."""
    return sum(start <= position for start in _STARTS) - 1


def _path(plain: PlainSites, steps: list[Step]) -> list[tuple[int, str]]:
    return [(position, plain.sites.all[plain.own[site]].gpm) for position, site, _ in steps]


@given(_found, st.booleans())
@pytest.mark.slow
def test_matches_are_laid_out_by_member_in_the_order_of_delivery(
    found: list[tuple[list[Step], int, set[int]]], is_sorted: bool
) -> None:
    found = sorted(found, key=lambda match: match[1])  # those of one end are neighbours
    plain = [_plain(member) for member in range(_MEMBERS)]
    parts = [cast("Any", SimpleNamespace(seen=lambda stretch: stretch)) for _ in plain]
    gpms = np.array([0, 0, 1, 1])
    stops = np.cumsum([len(steps) for steps, _, _ in found])
    begins = stops - [len(steps) for steps, _, _ in found]
    flat = np.array([step for steps, _, _ in found for step in steps], dtype=np.int64)
    pairs = [(m, i) for i, (_, _, members) in enumerate(found) for m in sorted(members)]
    ends = np.array([[end, 0] for _, end, _ in found])
    lot = Lot(
        np.array([m for m, _ in pairs], dtype=np.int64),
        np.array([i for _, i in pairs], dtype=np.int64),
        None if is_sorted else ends,
    )
    keys = np.arange(len(found))[:, None]
    blocks = Giving(parts, plain, gpms).blocks(
        cast("Any", _History()), lot, FoundRows(flat, begins, stops), keys
    )
    given_to = {}
    for member, numbers, block in blocks:
        assert member not in given_to
        own = [i for m, i in pairs if m == member]
        paths = {i: _path(plain[member], found[i][0]) for i in own}
        of_end = [[*of] for _, of in groupby(own, key=lambda i: found[i][1])]
        assert sorted(numbers.tolist()) == own
        if block is None:
            assert not is_sorted
            # Some that end together are the same, for it or for another who has one of them.
            same = [(m, found[i][1], *_path(plain[m], found[i][0])) for m, i in pairs]
            assert len(set(same)) < len(same)
            given_to[member] = None
            continue
        expected = own if is_sorted else [i for of in of_end for i in sorted(of, key=lambda i: paths[i])]
        assert numbers.tolist() == expected == block.keys[:, 0].tolist()
        assert is_sorted or len({(found[i][1], *paths[i]) for i in own}) == len(own)
        assert len(block) == len(expected)
        assert block.offsets.tolist() == [0, *np.cumsum([len(found[i][0]) for i in expected]).tolist()]
        steps = [step for i in expected for step in found[i][0]]
        assert block.site.tolist() == [plain[member].own[site] for _, site, _ in steps]
        positions = [step[0] for i in {i for _, i in pairs} for step in found[i][0]]
        shift = _chunk(min(positions))
        chunks = [_chunk(position) for position, _, _ in steps]
        assert block.places.tolist() == [
            position - _STARTS[c] + _BEGINS[c] - _BEGINS[shift]
            for (position, _, _), c in zip(steps, chunks, strict=True)
        ]
        assert block.rows is not None
        assert block.rows.tolist() == [
            row + _BEFORE[gpms[site]][c] - _BEFORE[gpms[site]][shift]
            for (_, site, row), c in zip(steps, chunks, strict=True)
        ]
        given_to[member] = block
    assert given_to.keys() == {m for m, _ in pairs}


def test_very_many_of_one_end_are_sorted_too() -> None:
    count = 200
    plain = [_plain(0)]
    parts = [cast("Any", SimpleNamespace(seen=lambda stretch: stretch))]
    positions = np.arange(10 + count, 10, -1)
    steps = np.stack([positions, np.zeros_like(positions), np.zeros_like(positions)], axis=1)
    history = SimpleNamespace(
        between=lambda *_: SimpleNamespace(starts=[0], begins=np.array([0, 10 + count]))
    )
    begins = np.arange(count)
    lot = Lot(np.zeros(count, dtype=np.int64), np.arange(count), np.zeros((count, 1), dtype=np.int64))
    giving = Giving(parts, plain, np.zeros(_SITES, dtype=np.int64))
    keys = np.zeros((count, 0), dtype=np.int64)
    rows = FoundRows(steps, begins, begins + 1)
    ((member, numbers, block),) = giving.blocks(cast("Any", history), lot, rows, keys)
    assert (member, numbers.tolist()) == (0, list(range(count))[::-1])
    assert block is not None
    assert block.places.tolist() == sorted(positions.tolist())
    assert block.form == (0,)
