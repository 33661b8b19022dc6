"""Passes over the lazy kernel's buffers between two events: count rows, and remove some.

Rows have *classes*: their buffer, and the quantiles of some of their values (see ``buffers.BufferClasses``).
The rows of one event in a buffer are removed together. The input are the lazy kernel's arrays.
"""

from __future__ import annotations

from typing import Final

from spaseq._fields import reads_row
from spaseq._jit import kernel, part
from spaseq.matching.filters._kernel_values import N_GPMS, Codes, Floats, Ints, pointer
from spaseq.matching.lazy.compiled._kernel_buffers import column_of, enter, is_number, place, promise
from spaseq.matching.lazy.compiled._kernel_layout import BOUNDS, T_BUFFERS, T_ORDERED, T_VALUES
from spaseq.matching.lazy.compiled._kernel_passing import SAMPLED
from spaseq.matching.lazy.records import (
    counter,
    element,
    kept,
    lookup,
    outcome,
    passing,
    posting,
    ring,
    stored,
)
from spaseq.matching.nfa.compiled._kernel_memory import mix

#: The number of values of each feature kept to learn its edges, after a count of all values.
SAMPLE: Final = 256

# Of a buffer: whether rows may be removed, the first of its classes, and the range of its features.
B_GOES: Final = 0
B_CLASS: Final = 1
B_FEATURES: Final = 2
B_FEATURES_END: Final = 3
B_SIZE: Final = 4
goes = reads_row(B_GOES, B_SIZE)
first_class = reads_row(B_CLASS, B_SIZE)
features = reads_row(B_FEATURES, B_SIZE)
features_end = reads_row(B_FEATURES_END, B_SIZE)

# Of a feature: the place of its value in a row, where its edges begin, their number, and the number of
# levels: no number, and one more than the most edges.
F_VALUE: Final = 0
F_EDGES: Final = 1
F_COUNT: Final = 2
F_LEVELS: Final = 3
F_SIZE: Final = 4
f_value, f_edges = reads_row(F_VALUE, F_SIZE), reads_row(F_EDGES, F_SIZE)
f_count, f_levels = reads_row(F_COUNT, F_SIZE), reads_row(F_LEVELS, F_SIZE)

# Of a list of waiting partial matches: its plan's items, the number of rows of each, and where these are.
L_ITEMS: Final = 0
L_ROWS: Final = 1
L_PAIRS: Final = 2
L_SIZE: Final = 3
l_items, l_rows, l_pairs = reads_row(L_ITEMS, L_SIZE), reads_row(L_ROWS, L_SIZE), reads_row(L_PAIRS, L_SIZE)


@part
def _class_of(
    rows: Ints, at: int, g: int, buffers: Ints, told: Ints, edges: Floats, numbers: Floats, codes: Codes
) -> int:
    code = 0
    for j in range(features(buffers, g), features_end(buffers, g)):
        identifier = stored.value(rows, at, f_value(told, j))
        level = 0
        if is_number(identifier, codes):
            level = 1
            while level <= f_count(told, j) and edges[f_edges(told, j) + level - 1] < numbers[identifier]:
                level += 1
        code = code * f_levels(told, j) + level
    return int(first_class(buffers, g) + code)


@part
def _sampled(
    rows: Ints, at: int, g: int, buffers: Ints, told: Ints, samples: Floats, numbers: Floats, codes: Codes
) -> None:
    """Record a new row's values, from which edges are learned."""
    for j in range(features(buffers, g), features_end(buffers, g)):
        identifier = stored.value(rows, at, f_value(told, j))
        if is_number(identifier, codes):
            own = j * (SAMPLE + 1)
            samples[own + 1 + int(samples[own]) % SAMPLE] = numbers[identifier]
            samples[own] += 1


@part
def _lot(position: int, g: int) -> int:
    """Return a pseudo-random number below ``SURE`` for an event in a buffer, always the same.

    Its rows stay while that is below their probability of staying.
    """
    return int(mix(mix(mix(1, g), position), 7) >> 11 & (passing.SURE - 1))


@part
def _leave(t: Ints, rows: Ints, index: Ints, at: int, count: int) -> None:
    """Remove the newest row of a buffer from its ``count`` indexes."""
    links = at + stored.VALUES + t[T_VALUES]
    for _ in range(count):
        entry = rows[links + 1]
        posting.set_newest(index, entry, rows[links])
        posting.set_count(index, entry, posting.count(index, entry) - 1)
        links += 2


@part
def _move(t: Ints, r: Ints, rows: Ints, ordered: Floats, g: int, number: int, to: int, p: Ints) -> None:
    """Give a row a smaller, free number."""
    source, target = place(t, r, g, number), place(t, r, g, to)
    for i in range(stored.VALUES + t[T_VALUES]):
        rows[target + i] = rows[source + i]
    promised, now = promise(t, r, g, number), promise(t, r, g, to)
    for i in range(passing.ROW):
        p[now + i] = p[promised + i]
    for column in range(t[T_ORDERED]):
        doubles = column_of(t, r, g, column)
        ordered[doubles + (to & ring.mask(r, g))] = ordered[doubles + (number & ring.mask(r, g))]


@part
def _close_up(
    t: Ints, c: Ints, m: Ints, r: Ints, rows: Ints, ordered: Floats, index: Ints, g: int, begin: int,
    moved: Ints, offset: int, gone: int, p: Ints,
) -> None:  # fmt: skip
    """Give the rows of a buffer from ``begin`` on the numbers in ``moved``; those without one are removed."""
    tail = ring.tail(r, g)
    buffer = t[T_BUFFERS] + g * kept.SIZE
    indexes = (kept.indexes_end(t, buffer) - kept.indexes(t, buffer)) // lookup.SIZE
    for back in range(tail - begin):
        _leave(t, rows, index, place(t, r, g, tail - 1 - back), indexes)
    for number in range(begin, tail):
        to = moved[offset + number - begin]
        if to >= 0 and to != number:
            _move(t, r, rows, ordered, g, number, to, p)
    tail -= gone
    ring.set_tail(r, g, tail)
    ring.set_now(r, g, tail)
    ring.set_until(r, g, tail)
    for number in range(begin, tail):
        enter(t, c, r, rows, index, m, g, number)


@part
def _follow(
    t: Ints, c: Ints, lists: Ints, waits: Ints, spans: Floats, size: int, number: int, waiting: Ints,
    begins: Ints, moved: Ints, offsets: Ints, every: bool,
) -> None:  # fmt: skip
    """Remove from a list the partial matches with removed rows; renumber the rows of all others.

    If not ``every`` row may be removed, the partial matches with such rows are at the end: each has the event
    that made it.
    """
    room, count = c[counter.WAIT_ROOM], lists[number]
    first = count
    while first > 0:
        pairs = (number * room + first - 1) * size + l_pairs(waiting, number)
        some = False
        for k in range(l_rows(waiting, number)):
            item = waits[pairs + 2 * k]
            g = element.gpm(t, l_items(waiting, number) + item * element.SIZE)
            some |= waits[pairs + 2 * k + 1] >= begins[g]
        if not some and not every:
            break
        first -= 1
    to = first
    for i in range(first, count):
        one = (number * room + i) * size
        pairs = one + l_pairs(waiting, number)
        stays = True
        for k in range(l_rows(waiting, number)):
            item = waits[pairs + 2 * k]
            g = element.gpm(t, l_items(waiting, number) + item * element.SIZE)
            row = waits[pairs + 2 * k + 1]
            if row >= begins[g]:
                new = moved[offsets[g] + row - begins[g]]
                waits[pairs + 2 * k + 1] = new
                stays &= new >= 0
        if not stays:
            continue
        if to < i:
            for k in range(size):
                waits[(number * room + to) * size + k] = waits[one + k]
            for k in range(BOUNDS):
                spans[(number * room + to) * BOUNDS + k] = spans[(number * room + i) * BOUNDS + k]
        to += 1
    lists[number] = to


@kernel
def let_go(
    tables: Ints, counters: Ints, frames: Ints, rings: Ints, rows_: Ints, ordered_: Floats, index_: Ints,
    lists_: Ints, waits_: Ints, spans_: Floats, size: int, waiting_: Ints, begins_: Ints, offsets_: Ints,
    moved_: Ints, seen_: Ints, buffers_: Ints, told_: Ints, edges_: Floats, samples_: Floats, kept_: Floats,
    sampled_: Floats, came_: Floats, declined_: Floats, shed_: Floats, every: bool, numbers: Floats,
    codes_: Codes, passing_: Ints,
) -> int:  # fmt: skip
    """Remove rows from ``begins`` on, of each class all but the share ``kept``; return how many.

    Of these, the share ``sampled`` of all rows stays as a sample.

    Rows from ``seen`` on are new: ``came`` counts them by class, ``declined`` those removed of them, and
    ``shed`` all other removed rows. ``moved`` has room for a number for each row, from ``offsets`` on.
    ``every``: ``begins`` is at the first row that may be removed.
    """
    t, c, m, r = pointer(tables), pointer(counters), pointer(frames), pointer(rings)
    rows, ordered, index = pointer(rows_), pointer(ordered_), pointer(index_)
    lists, waits, spans, waiting = pointer(lists_), pointer(waits_), pointer(spans_), pointer(waiting_)
    begins, offsets, moved, seen = pointer(begins_), pointer(offsets_), pointer(moved_), pointer(seen_)
    buffers, told, edges, samples = pointer(buffers_), pointer(told_), pointer(edges_), pointer(samples_)
    kept_shares, came, declined, shed = pointer(kept_), pointer(came_), pointer(declined_), pointer(shed_)
    n, codes, sampled, p = pointer(numbers), pointer(codes_), pointer(sampled_), pointer(passing_)
    total = 0
    for g in range(t[N_GPMS]):
        begin, tail = begins[g], ring.tail(r, g)
        gone, position, of, chance = 0, -1, 0, passing.SURE
        for number in range(begin, tail):
            at = place(t, r, g, number)
            if stored.position(rows, at) != position:
                position = stored.position(rows, at)
                of = _class_of(rows, at, g, buffers, told, edges, n, codes)
                chance = passing.chance(p, promise(t, r, g, number))
                share = max(kept_shares[of], sampled[of] * passing.SURE / chance)
                chance = int(min(share, 1.0) * chance)
            stays = chance == passing.SURE or _lot(position, g) < chance
            passing.set_chance(p, promise(t, r, g, number), chance)
            if number >= seen[g]:
                came[of] += 1
                _sampled(rows, at, g, buffers, told, samples, n, codes)
                declined[of] += int(not stays)
            else:
                shed[of] += int(not stays)
            moved[offsets[g] + number - begin] = number - gone if stays else -1
            gone += int(not stays)
        if gone:
            _close_up(t, c, m, r, rows, ordered, index, g, begin, moved, offsets[g], gone, p)
        seen[g] = ring.tail(r, g)
        total += gone
    if total:
        for number in range(len(lists_)):
            _follow(t, c, lists, waits, spans, size, number, waiting, begins, moved, offsets, every)
    return total


@kernel
def count(
    tables: Ints, rings: Ints, rows_: Ints, buffers_: Ints, told_: Ints, edges_: Floats, sampled_: Floats,
    low_: Floats, high_: Floats, alive_: Floats, least_: Floats, numbers: Floats, codes_: Codes,
    passing_: Ints,
) -> None:  # fmt: skip
    """Count all rows by class, in ``alive``; and in ``least`` the rows that stay as a sample.

    Their ranks are between ``low`` and ``high``, those of their classes.
    """
    t, r, rows = pointer(tables), pointer(rings), pointer(rows_)
    buffers, told, edges, alive = pointer(buffers_), pointer(told_), pointer(edges_), pointer(alive_)
    n, codes, least, sampled = pointer(numbers), pointer(codes_), pointer(least_), pointer(sampled_)
    low, high, p = pointer(low_), pointer(high_), pointer(passing_)
    for g in range(t[N_GPMS]):
        position, of, rank = -1, 0, 0
        for number in range(ring.head(r, g), ring.tail(r, g)):
            at = place(t, r, g, number)
            if stored.position(rows, at) != position:
                position = stored.position(rows, at)
                of = _class_of(rows, at, g, buffers, told, edges, n, codes)
                drawn = min(1.0, _lot(position, g) / passing.chance(p, promise(t, r, g, number)))
                rank = int(passing.SURE * (low[of] + drawn * (high[of] - low[of])))
            passing.set_rank(p, promise(t, r, g, number), rank)
            alive[of] += 1
            least[of] += min(1.0, sampled[of] * passing.SURE / passing.chance(p, promise(t, r, g, number)))


@part
def _first_after(t: Ints, r: Ints, rows: Ints, g: int, position: int, begins: Ints) -> int:
    """Return the number of the first row of a buffer that is not before a position.

    Rows count from ``begins`` on, even if they have left the window: their data is valid until it is
    overwritten.
    """
    low, high = max(begins[g], ring.tail(r, g) - ring.mask(r, g) - 1), ring.tail(r, g)
    while low < high:
        middle = (low + high) >> 1
        if stored.position(rows, place(t, r, g, middle)) < position:
            low = middle + 1
        else:
            high = middle
    return int(low)


@kernel
def credit(
    tables: Ints, rings: Ints, rows_: Ints, begins: Ints, found: Ints, choices: Ints, step: int,
    weight: float, sites: Ints, buffers_: Ints, told_: Ints, edges_: Floats, won_: Floats, weights: Floats,
    missed: Floats, numbers: Floats, codes_: Codes, passing_: Ints,
) -> None:  # fmt: skip
    """Count by class the rows of results, of every ``step``-th match; all except the last event's.

    Each counts ``weight`` times ``step``, since the many matches of an event say little more than one, times
    ``weights`` of its first item. ``missed``: how many matches are estimated to be missing, by their first
    items: if one in three such matches still has all its rows, two for each.
    """
    t, r, rows = pointer(tables), pointer(rings), pointer(rows_)
    buffers, told, edges, won = pointer(buffers_), pointer(told_), pointer(edges_), pointer(won_)
    n, codes, p = pointer(numbers), pointer(codes_), pointer(passing_)
    for i in range(0, len(found), step):
        every, first = 1.0, choices[found[i, outcome.BEGIN], 1]
        for j in range(found[i, outcome.BEGIN], found[i, outcome.END] - 1):
            position, g = choices[j, 0], sites[choices[j, 1]]
            if not goes(buffers, g):
                continue
            number = _first_after(t, r, rows, g, position, begins)
            if number < ring.tail(r, g):
                at = place(t, r, g, number)
                if stored.position(rows, at) == position:
                    every *= passing.SURE / passing.chance(p, promise(t, r, g, number))
                    if passing.rank(p, promise(t, r, g, number)) > found[i, outcome.SHOWN]:
                        every *= SAMPLED
                    won[_class_of(rows, at, g, buffers, told, edges, n, codes)] += (
                        step * weight * weights[first]
                    )
        missed[first] += step * (every - 1.0)
