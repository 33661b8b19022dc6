"""Make a block of matches for each member of a group, from what the group has found, all at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spaseq.matching.columns.blocks._kernel_found import arrange
from spaseq.matching.columns.blocks.plain import Columns, Sites
from spaseq.matching.columns.history import History
from spaseq.matching.sharing import _kernel_given as k
from spaseq.matching.sharing.member import GroupPart

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

#: If matches have events of more batches than this, each member searches its own.
_FEW: Final = 16


class PlainSites(NamedTuple):
    """How a member's matches are made if each consists of events with one solution each.

    ``own``: for each site of the group, the number of the site among the member's ``sites``; -1 for sites of
    other members.
    """

    own: Ints
    sites: Sites


class Lot(NamedTuple):
    """Matches of several members: the member of each, and the number of the row found.

    ``last`` has a key for each row found: neighbours with an equal key are delivered in the order of their
    events. It is None if the rows are in order. Shape ``(rows, any)``.
    """

    members: Ints
    numbers: Ints
    last: Ints | None


class Giving:
    """Makes the blocks; ``plain`` has the ``PlainSites`` of each member, None if its matches are not plain.

    ``gpms``: for each of the group's sites the number of its GPM.
    """

    def __init__(self, parts: Sequence[GroupPart], plain: Sequence[PlainSites | None], gpms: Ints) -> None:
        self._parts = parts
        self._plain = plain
        self._gpms = gpms
        self._ranks = np.zeros((len(parts), len(gpms)), dtype=np.int64)
        for ranks, of in zip(self._ranks, plain, strict=True):
            if of is not None:
                ranks[:] = np.where(of.own < 0, 0, of.sites.ranks[of.own])

    def blocks(
        self, history: History, lot: Lot, given: k.FoundRows, keys: Ints
    ) -> Iterator[tuple[int, Ints, Columns | None]]:
        """Yield, for each member with matches, its number, its rows, and the block of their matches. The
        block is None if the member must make it itself.

        Row i of ``given`` has the partition ``keys[i]``.
        """
        if not len(lot.numbers):
            return
        by_member, again = self._sorted(lot, given)
        bounds, _, order, sizes, widths, extent = by_member
        least, most, row = extent.tolist()
        stretch = None if row < 0 else history.between(least, most, _FEW)
        found = [i for i, size in enumerate(sizes.tolist()) if size]
        cuts = bounds.tolist()
        if stretch is None:
            for i in found:
                yield i, order[cuts[i] : cuts[i + 1]], None
            return
        starts = np.array(stretch.starts, dtype=np.int64)
        before = np.zeros((int(self._gpms.max()) + 1, len(starts)), dtype=np.int64)
        if len(starts) > 1:
            before = np.array([stretch.rows_before(g)[:-1] for g in range(len(before))])
        ends = np.concatenate([[0], np.cumsum(sizes)])
        offsets = np.empty(len(order) + len(bounds), dtype=np.int64)
        places, rows = (np.empty(int(ends[-1]), dtype=np.int64) for _ in range(2))
        chunks = k.EventBatches(starts, stretch.begins, self._gpms, before)
        laid = k.MatchColumns(offsets, places, rows)
        k.lay(given, bounds, order, bounds.copy(), ends[:-1].copy(), chunks, laid)
        events, width_of = ends.tolist(), widths.tolist()
        for i in found:
            begin, end, plain = cuts[i], cuts[i + 1], self._plain[i]
            own = order[begin:end]
            if plain is None or (again is not None and again[own].any()):
                yield i, own, None
                continue
            # Copies: a kept match must not keep the matches of all others.
            held = slice(events[i], events[i + 1])
            seen, partitions = self._parts[i].seen(stretch), keys[own]
            of_events = places[held].copy(), rows[held].copy()
            if width_of[i]:
                first = given.begins.item(own.item(0))
                form = tuple(plain.own[given.steps[first : first + width_of[i], 1]].tolist())
                yield i, own, Columns.alike(plain.sites, seen, partitions, of_events[0], form, of_events[1])
                continue
            sites = np.empty(events[i + 1] - events[i], dtype=np.int64)
            k.lay_sites(*given, own, plain.own, sites)
            own_offsets = offsets[begin + i : end + i + 1].copy()
            yield (
                i,
                own,
                Columns(plain.sites, seen, partitions, own_offsets, of_events[0], sites, of_events[1]),
            )

    def _sorted(self, lot: Lot, given: k.FoundRows) -> tuple[k.SortedMatches, Mask | None]:
        """Return the matches of each member in the order of delivery.

        Also return, for all rows by number, whether a row is in a group in which two matches are the same;
        None if there is no such group.
        """
        members, numbers, last = lot
        count = len(self._parts)
        bounds = np.concatenate([[0], np.cumsum(np.bincount(members, minlength=count))])
        order, extent = np.empty(len(numbers), dtype=np.int64), np.zeros(3, dtype=np.int64)
        at, sizes, widths = np.zeros((3, count), dtype=np.int64)
        out = k.SortedMatches(bounds, at, order, sizes, widths, extent)
        none = np.zeros((0, 0), dtype=np.int64)
        again = None
        if not k.sort(given, members, numbers, none if last is None else last, self._ranks, out):
            assert last is not None
            # Many matches have the same last event, so that insertion is slow, or two are the same.
            lot, again = self._arranged(lot, last, given)
            k.sort(given, lot.members, lot.numbers, none, self._ranks, out)
        return out, again

    def _arranged(self, lot: Lot, last: Ints, given: k.FoundRows) -> tuple[Lot, Mask | None]:
        """Return the matches grouped by member, in the order of delivery; see ``_sorted`` for the second
        result.
        """
        together = np.argsort(lot.members, kind="stable")
        members, numbers = lot.members[together], lot.numbers[together]
        ends = np.zeros(len(numbers) + 1, dtype=np.int64)
        apart, placed, work, again = np.zeros((4, len(numbers)), dtype=np.int64)
        paths = np.empty(int((given.stops[numbers] - given.begins[numbers]).sum()), dtype=np.int64)
        k.tell_apart(members, numbers, last, apart)
        k.number_paths(given, numbers, members, self._ranks, ends[1:], paths)
        if arrange(paths, ends, apart, placed, work, again):
            ordered = Lot(members, numbers[placed], None)
        else:
            ordered = Lot(members, numbers, None)
        if not again.any():
            return ordered, None
        same = np.zeros(len(given.begins), dtype=np.bool_)
        same[numbers[again != 0]] = True
        return ordered, same
