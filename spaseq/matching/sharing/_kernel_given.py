"""Group the matches of several queries, which were found together, by query."""

from __future__ import annotations

from typing import Final, NamedTuple

from spaseq._jit import inlined, kernel
from spaseq.events import Ids

#: Matches with the same last event are sorted by insertion if none is further than this from its place.
_FAR: Final = 32

#: The matches in this many rows are written for all members before the next ones: neighbours are near in
#: memory.
_NEAR: Final = 1 << 10


class FoundRows(NamedTuple):
    """Rows found: row i has the events ``begins[i]`` to ``stops[i]`` of ``steps``.

    A row of ``steps`` is a position, a site, and the number of one of the event's solutions.
    """

    steps: Ids
    begins: Ids
    stops: Ids


class SortedMatches(NamedTuple):
    """The matches of each member in ``order``, those of member i from ``bounds[i]`` on.

    ``sizes``: the number of events of each member's matches. ``widths``: events per match if all are taken at
    the same sites in turn, else 0. ``extent``: the least and the greatest position, and the least number of a
    solution. ``at``: scratch space, a number for each member.
    """

    bounds: Ids
    at: Ids
    order: Ids
    sizes: Ids
    widths: Ids
    extent: Ids


class EventBatches(NamedTuple):
    """Batches: batch c begins at position ``starts[c]`` and place ``firsts[c]``.

    ``before[g, c]`` solutions of GPM g are in the batches before it; ``gpms`` has the GPM of each site.
    """

    starts: Ids
    firsts: Ids
    gpms: Ids
    before: Ids


class MatchColumns(NamedTuple):
    """The events of each member's matches, by their ``places`` and ``rows``.

    ``offsets``: for member m, from ``bounds[m] + m`` on, where the events of each match begin among the
    member's events, and where the last match ends.
    """

    offsets: Ids
    places: Ids
    rows: Ids


@kernel
def tell_apart(members: Ids, numbers: Ids, last: Ids, apart: Ids) -> None:
    """Write a number for each match: the same for neighbours of one member with the same ``last``.

    ``numbers`` are the numbers of the matches; ``last`` has a row for each number.
    """
    for i in range(1, len(numbers)):
        same = members[i] == members[i - 1]
        for j in range(last.shape[1]):
            same = same and last[numbers[i], j] == last[numbers[i - 1], j]
        apart[i] = apart[i - 1] + (0 if same else 1)


@kernel
def number_paths(rows: FoundRows, numbers: Ids, members: Ids, ranks: Ids, ends: Ids, paths: Ids) -> None:
    """Write a number for each event of some matches. The numbers compare like the event's position, then its
    GPM's name.

    ``numbers`` are the matches, ``members`` the member of each. ``ranks``: for each member and site, the
    rank of its GPM's name. Writes to ``ends`` where the events of each match end.
    """
    to = 0
    for i in range(len(numbers)):
        for at in range(rows.begins[numbers[i]], rows.stops[numbers[i]]):
            paths[to] = rows.steps[at, 0] * ranks.shape[1] + ranks[members[i], rows.steps[at, 1]]
            to += 1
        ends[i] = to


@kernel
def sort(rows: FoundRows, members: Ids, numbers: Ids, last: Ids, ranks: Ids, out: SortedMatches) -> bool:
    """Write the matches of each member in the order of delivery.

    ``members``: the member of each match in ``numbers``. If ``last`` has columns, matches of one member with
    the same ``last`` are sorted by their events. Returns False, and the result is invalid, if two such
    matches are the same, or if one is far from its place.
    """
    steps, begins, stops = rows
    bounds, at, order, sizes, widths, extent = out
    extent[0] = extent[1] = steps[begins[numbers[0]], 0]
    extent[2] = 0
    for m in range(len(sizes)):
        at[m], sizes[m] = bounds[m], 0
    for i in range(len(numbers)):
        m, number = members[i], numbers[i]
        begin, stop = begins[number], stops[number]
        if at[m] == bounds[m]:
            widths[m], order[at[m]] = stop - begin, number
        first = begins[order[bounds[m]]]
        if stop - begin != widths[m]:
            widths[m] = 0
        for j in range(begin, stop):
            extent[0], extent[1] = min(extent[0], steps[j, 0]), max(extent[1], steps[j, 0])
            extent[2] = min(extent[2], steps[j, 2])
            if widths[m] and steps[j, 1] != steps[first + j - begin, 1]:
                widths[m] = 0
            if j > begin and last.shape[1] and _compare(steps, j - 1, j, ranks[m]) >= 0:
                return False
        place = at[m]
        while place > bounds[m] and last.shape[1] and _is_same(last, number, order[place - 1]):
            before = order[place - 1]
            compared = _compare_all(steps, begins[before], stops[before], begin, stop, ranks[m])
            if compared < 0:
                break
            if compared == 0 or place < at[m] - _FAR:
                return False
            order[place] = before
            place -= 1
        order[place] = number
        at[m] += 1
        sizes[m] += stop - begin
    return True


@inlined
def _is_same(rows: Ids, i: int, j: int) -> bool:
    same = True
    for column in range(rows.shape[1]):
        same = same and rows[i, column] == rows[j, column]
    return same


@inlined
def _compare(steps: Ids, a: int, b: int, ranks: Ids) -> int:
    """Return below 0 if an event comes before another in a match, 0 if they are the same event and GPM."""
    apart = steps[a, 0] - steps[b, 0]
    return int(apart if apart else ranks[steps[a, 1]] - ranks[steps[b, 1]])


@inlined
def _compare_all(steps: Ids, i: int, last_i: int, j: int, last_j: int, ranks: Ids) -> int:
    """Do what ``_compare`` does for two matches with events in order."""
    while i < last_i and j < last_j:
        compared = _compare(steps, i, j, ranks)
        if compared:
            return compared
        i += 1
        j += 1
    return (last_i - i) - (last_j - j)


@kernel
def lay(
    found: FoundRows, bounds: Ids, order: Ids, at: Ids, to: Ids, chunks: EventBatches, columns: MatchColumns
) -> None:
    """Write the events of each member's matches, one match after the other, those of member m at ``to[m]``.

    ``bounds``, ``order``: see ``SortedMatches``. ``at``: a copy of ``bounds``; it and ``to`` are overwritten.
    """
    steps, begins, stops = found
    starts, firsts, gpms, before = chunks
    offsets, places, rows = columns
    chunk = near = 0
    for m in range(len(bounds) - 1):
        offsets[bounds[m] + m] = 0
    while near < len(begins):
        near += _NEAR
        for m in range(len(bounds) - 1):
            while at[m] < bounds[m + 1] and order[at[m]] < near:
                begin, stop = begins[order[at[m]]], stops[order[at[m]]]
                out = to[m]
                for j in range(begin, stop):
                    position = steps[j, 0]
                    while position < starts[chunk]:
                        chunk -= 1
                    while chunk + 1 < len(starts) and position >= starts[chunk + 1]:
                        chunk += 1
                    places[out] = position - starts[chunk] + firsts[chunk]
                    rows[out] = steps[j, 2] + before[gpms[steps[j, 1]], chunk]
                    out += 1
                offsets[at[m] + m + 1] = offsets[at[m] + m] + stop - begin
                to[m] = out
                at[m] += 1


@kernel
def lay_sites(steps: Ids, begins: Ids, stops: Ids, numbers: Ids, own: Ids, sites: Ids) -> None:
    """Write the sites of some matches' events, under the member's own numbers; ``own``: these numbers, by
    site.
    """
    to = 0
    for i in range(len(numbers)):
        for at in range(begins[numbers[i]], stops[numbers[i]]):
            sites[to] = own[steps[at, 1]]
            to += 1
