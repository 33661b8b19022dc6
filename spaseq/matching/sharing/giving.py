"""What members of a group have found → a block of matches for each of them: cut for all of them at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spaseq.matching.columns.blocks._kernel_found import arrange
from spaseq.matching.columns.blocks.plain import Columns, Sites
from spaseq.matching.columns.history import History
from spaseq.matching.sharing import _kernel_given as k
from spaseq.matching.sharing.part import Part

Ints = npt.NDArray[np.int64]

#: Where matches have events of more batches, each member looks for those of its own.
_FEW: Final = 16


class Plain(NamedTuple):
    """What makes a member's matches where these are events with one solution each, and nothing else.

    ``own``: of each of the group's sites the member's, among its ``sites``; -1 for those of others.
    """

    own: Ints
    sites: Sites


class Lot(NamedTuple):
    """Matches of several members, those of each together: whose each is, and which of the rows found.

    ``last`` has, of each row found, what is the same for neighbours that are delivered in the order of their
    events; None where they are in order. Shape ``(rows, any)``.
    """

    members: Ints
    numbers: Ints
    last: Ints | None


class Giving:
    """Makes the blocks; ``plain`` has what makes those of each member, None where its matches are not plain.

    ``gpms``: of each of the group's sites the number of its GPM.
    """

    def __init__(self, parts: Sequence[Part], plain: Sequence[Plain | None], gpms: Ints) -> None:
        self._parts = parts
        self._plain = plain
        self._gpms = gpms
        self._ranks = np.zeros((len(parts), len(gpms)), dtype=np.int64)
        for ranks, of in zip(self._ranks, plain, strict=True):
            if of is not None:
                ranks[:] = np.where(of.own < 0, 0, of.sites.ranks[of.own])

    def order(self, members: Ints) -> Ints:
        """What sorts matches by whose they are, those of each in their order."""
        # Short numbers are sorted by their digits.
        kind = np.int16 if len(self._parts) < 1 << 15 else np.int64
        return np.argsort(members.astype(kind), kind="stable")

    def blocks(
        self, history: History, lot: Lot, begins: Ints, stops: Ints, steps: Ints, keys: Ints
    ) -> Iterator[tuple[int, Ints, Columns | None]]:
        """Of each member that has some its number, its rows, and their block; None if it makes that itself.

        Row i has the events ``begins[i]`` to ``stops[i]`` of ``steps``: position, site, and which of its
        event's solutions; and the partition ``keys[i]``.
        """
        members, numbers, last = lot
        if not len(members):
            return
        cuts = np.flatnonzero(np.diff(members)) + 1
        bounds = [0, *cuts.tolist(), len(members)]
        named = members[bounds[:-1]].tolist()
        ends = np.zeros(len(numbers) + 1, dtype=np.int64)
        size = int((stops[numbers] - begins[numbers]).sum())
        again, order = np.zeros(len(numbers), dtype=np.int64), numbers
        if last is not None:
            apart, placed, work = np.zeros((3, len(numbers)), dtype=np.int64)
            paths = np.empty(size, dtype=np.int64)
            k.tell_apart(members, numbers, last, apart)
            k.number_paths(steps, begins, stops, numbers, members, self._ranks, ends[1:], paths)
            if arrange(paths, ends, apart, placed, work, again):
                order = numbers[placed]
        positions, sites, rows = (np.empty(size, dtype=np.int64) for _ in range(3))
        least = k.lay(steps, begins, stops, order, ends[1:], positions, sites, rows)
        stretch, places = history.stretch(positions)
        if least < 0 or len(stretch.chunks) > _FEW:
            yield from self._apart(named, bounds, numbers)
            return
        if len(stretch.chunks) > 1:
            before = np.array([stretch.rows_before(g) for g in range(int(self._gpms.max()) + 1)])
            rows += before[self._gpms[sites], stretch.where(places)]
        events = ends[bounds].tolist()
        for i, (begin, end), (first, last) in zip(named, pairwise(bounds), pairwise(events), strict=True):
            plain = self._plain[i]
            if plain is None or again[begin:end].any():
                yield i, numbers[begin:end], None
                continue
            # Copies: what a match holds must not be what all the others have found, too.
            seen, of_events = self._parts[i].seen(stretch), slice(first, last)
            block = Columns(
                plain.sites, seen, keys[order[begin:end]], ends[begin : end + 1] - first,
                places[of_events].copy(), plain.own[sites[of_events]], rows[of_events].copy(),
            )  # fmt: skip
            yield i, numbers[begin:end], block

    @staticmethod
    def _apart(
        named: Sequence[int], bounds: Sequence[int], numbers: Ints
    ) -> Iterator[tuple[int, Ints, None]]:
        for i, (begin, end) in zip(named, pairwise(bounds), strict=True):
            yield i, numbers[begin:end], None
