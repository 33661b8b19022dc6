"""Matches as columns: sorting those of one last event for delivery, and gathering their values."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from spaseq._jit import inlined, kernel

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@inlined
def _compare(paths: Ints, offsets: Ints, a: int, b: int) -> int:
    """Return below 0 if match a comes before b, 0 if they have the same events, above 0 otherwise."""
    i, j = offsets[a], offsets[b]
    last_a, last_b = offsets[a + 1], offsets[b + 1]
    while i < last_a and j < last_b:
        if paths[i] != paths[j]:
            return -1 if paths[i] < paths[j] else 1
        i += 1
        j += 1
    return int((last_a - i) - (last_b - j))


@kernel
def arrange(paths: Ints, offsets: Ints, groups: Ints, order: Ints, work: Ints, again: Ints) -> bool:
    """Sort the matches of each group by their paths; return whether any of them was out of order.

    ``paths`` are the events of the matches, one match after the other, as numbers that compare as the events
    do. Match i has those from ``offsets[i]`` to ``offsets[i + 1]``, which are sorted in place. ``groups`` is
    a number for each match, the same for neighbours of one group. Writes ``order``, the sorted matches, and
    in ``again`` 1 for all matches of a group in which two are the same. ``work`` is as long as ``order``.
    """
    moved = False
    for i in range(len(offsets) - 1):
        order[i] = i
        again[i] = 0
        for j in range(offsets[i] + 1, offsets[i + 1]):
            value = paths[j]
            k = j
            while k > offsets[i] and paths[k - 1] > value:
                paths[k] = paths[k - 1]
                k -= 1
            paths[k] = value
    begin = 0
    while begin < len(groups):
        end = begin + 1
        equal = sorted_so_far = 0
        while end < len(groups) and groups[end] == groups[begin]:
            compared = _compare(paths, offsets, end - 1, end)
            equal += compared == 0
            sorted_so_far += compared <= 0
            end += 1
        if sorted_so_far < end - begin - 1:
            moved = True
            width = 1
            while width < end - begin:
                for left in range(begin, end, 2 * width):
                    middle, right = min(left + width, end), min(left + 2 * width, end)
                    i, j = left, middle
                    for k in range(left, right):
                        if j >= right or (i < middle and _compare(paths, offsets, order[i], order[j]) <= 0):
                            work[k] = order[i]
                            i += 1
                        else:
                            work[k] = order[j]
                            j += 1
                for k in range(begin, end):
                    order[k] = work[k]
                width *= 2
            equal = 0
            for k in range(begin + 1, end):
                equal += _compare(paths, offsets, order[k - 1], order[k]) == 0
        if equal:
            for k in range(begin, end):
                again[k] = 1
        begin = end
    return moved


@kernel
def are_alike(offsets: Ints, site: Ints, size: int) -> bool:
    """Return whether all matches have ``size`` events each, taken at the same sites in turn."""
    for i in range(len(offsets) - 1):
        begin = offsets[i]
        if offsets[i + 1] - begin != size:
            return False
        for j in range(size):
            if site[begin + j] != site[j]:
                return False
    return True


@kernel
def pick(offsets: Ints, places: Ints, site: Ints, wanted: Mask, ends: Ints, out: Ints) -> int:
    """Write the places of the events that were taken at some sites, and where those of each match end.

    ``wanted``: for each site, whether it is one of them. Returns the number of these events.
    """
    count = 0
    for i in range(len(ends)):
        for j in range(offsets[i], offsets[i + 1]):
            if wanted[site[j]]:
                out[count] = places[j]
                count += 1
        ends[i] = count
    return count


@kernel
def gather(column: npt.NDArray[Any], at: Ints, first: int, step: int, out: npt.NDArray[Any]) -> None:
    """Write a column's values at the places ``at[first]``, ``at[first + step]`` and so on."""
    for i in range(len(out)):
        out[i] = column[at[first + i * step]]


@kernel
def gather_all(one: Ints, other: Ints, at: Ints, size: int, ones: Ints, others: Ints) -> None:
    """Do the same with two columns for each of the ``size`` places in turn, a row each."""
    for i in range(ones.shape[1]):
        for place in range(size):
            where = at[i * size + place]
            ones[place, i], others[place, i] = one[where], other[where]


@kernel
def gather_in_turn(one: Ints, first: int, at: Ints, size: int, ones: Ints, others: Ints) -> None:
    """Do the same where the other column counts from ``first`` on."""
    for i in range(ones.shape[1]):
        for place in range(size):
            where = at[i * size + place]
            ones[place, i], others[place, i] = one[where], first + where


@inlined
def _numbered(value: int, places: Ints, used: Ints) -> int:
    if value == 0:
        return -1
    number = places[value]
    if number == 0:
        used[places[0]] = value
        number = places[0] + 1
        places[0] = number
        places[value] = number
    return int(number - 1)


@kernel
def encode(column: Ints, places: Ints, used: Ints, out: npt.NDArray[np.int32]) -> None:
    """Write the number of each id, -1 for 0: ids are numbered in the order of their first occurrence.

    ``used`` are the numbered ids. ``places`` has the number of each id, counted from 1, and for 0 how many
    there are. So several columns are numbered together, one after the other.
    """
    for i in range(len(out)):
        out[i] = _numbered(column[i], places, used)


@kernel
def encode_at(
    column: npt.NDArray[Any],
    at: Ints,
    first: int,
    step: int,
    places: Ints,
    used: Ints,
    out: npt.NDArray[np.int32],
) -> None:
    """Do the same for the values that ``gather`` would write."""
    for i in range(len(out)):
        out[i] = _numbered(column[at[first + i * step]], places, used)


@kernel
def number(values: Ints, bounds: Ints, seen: Ints, used: Ints, ends: Ints, numbers: Any) -> None:
    """Number the values of each part separately, in the order of their first occurrence.

    ``values`` has a column in each row; part i is at the places from ``bounds[i]`` to ``bounds[i + 1]``.
    Writes ``used``, the values of one part after the other, ``ends``, where those of each end, and in
    ``numbers`` -1 for 0. ``seen`` is -1 for every value.
    """
    count = 0
    for i in range(len(ends)):
        begin = count
        for c in range(values.shape[0]):
            for j in range(bounds[i], bounds[i + 1]):
                value = values[c, j]
                if value == 0:
                    numbers[c, j] = -1
                    continue
                # A value of an earlier part has a place before this part's.
                if seen[value] < begin:
                    seen[value] = count
                    used[count] = value
                    count += 1
                numbers[c, j] = seen[value] - begin
        ends[i] = count
