"""Passes over the lazy kernel's buffers between two events: count rows, and remove some.

Rows have *classes*: their buffer, and the quantiles of some of their values (see ``buffers.BufferClasses``).
The rows of one event in a buffer are removed together. The input are the lazy kernel's arrays.
"""

from __future__ import annotations

from typing import Final, NamedTuple

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

#: The number of latest values of a feature that are kept to learn its edges. Before them is the count of all
#: values.
SAMPLE: Final = 256

# Columns of a buffer: whether its rows may be removed, the first of its classes, and the range of its
# features.
B_GOES: Final = 0
B_CLASS: Final = 1
B_FEATURES: Final = 2
B_FEATURES_END: Final = 3
B_SIZE: Final = 4
goes = reads_row(B_GOES, B_SIZE)
first_class = reads_row(B_CLASS, B_SIZE)
features = reads_row(B_FEATURES, B_SIZE)
features_end = reads_row(B_FEATURES_END, B_SIZE)

# Columns of a feature: the place of its value in a row, where its edges begin, their number, and the number
# of levels. There is one level for values that are not numbers, and one more than the most edges.
F_VALUE: Final = 0
F_EDGES: Final = 1
F_COUNT: Final = 2
F_LEVELS: Final = 3
F_SIZE: Final = 4
f_value, f_edges = reads_row(F_VALUE, F_SIZE), reads_row(F_EDGES, F_SIZE)
f_count, f_levels = reads_row(F_COUNT, F_SIZE), reads_row(F_LEVELS, F_SIZE)

# Columns of a list of waiting partial matches: its plan's items, the number of rows of each partial match,
# and where these rows are.
L_ITEMS: Final = 0
L_ROWS: Final = 1
L_PAIRS: Final = 2
L_SIZE: Final = 3
l_items, l_rows, l_pairs = reads_row(L_ITEMS, L_SIZE), reads_row(L_ROWS, L_SIZE), reads_row(L_PAIRS, L_SIZE)


class Buffers(NamedTuple):
    """The lazy kernel's memory: arrays, or in compiled code their addresses.

    ``t``: tables; ``c``: counters; ``m``: frames; ``r``: rings; ``rows``, with their ``ordered`` values,
    ``postings`` and promises ``p``; the ``lists`` of waiting partial matches, which are in ``waits``, each of
    ``size`` integers, and their ``spans``; ``n`` and ``codes``: the id table.
    """

    t: Ints
    c: Ints
    m: Ints
    r: Ints
    rows: Ints
    ordered: Floats
    postings: Ints
    p: Ints
    lists: Ints
    waits: Ints
    spans: Floats
    size: int
    n: Floats
    codes: Codes


class RowClasses(NamedTuple):
    """The classes of rows: arrays, or in compiled code their addresses.

    ``buffers`` and ``features``: their records; ``edges`` and ``samples`` of features; ``sites``: the GPM of
    each item of all plans. By class: ``sampled``, the share of all rows that stays as a sample; how many rows
    ``came``, how many of these were ``declined``, how many older rows were ``shed``; and the credit for
    results, ``won``.
    """

    buffers: Ints
    features: Ints
    edges: Floats
    samples: Floats
    sites: Ints
    sampled: Floats
    came: Floats
    declined: Floats
    shed: Floats
    won: Floats


class Renumbered(NamedTuple):
    """New numbers of rows. The rows of a buffer from ``begins`` on have their new numbers in ``moved``, from
    ``offsets`` on: -1 for a removed row.
    """

    begins: Ints
    offsets: Ints
    moved: Ints


class CreditedResults(NamedTuple):
    """Results with their choices, and where buffers began when the results were found."""

    begins: Ints
    found: Ints
    choices: Ints


@part
def _class_of(x: Buffers, own: RowClasses, g: int, at: int) -> int:
    """Return the class of a row."""
    told, buffers, code = own.features, own.buffers, 0
    for j in range(features(buffers, g), features_end(buffers, g)):
        identifier = stored.value(x.rows, at, f_value(told, j))
        level = 0
        if is_number(identifier, x.codes):
            level = 1
            while level <= f_count(told, j) and own.edges[f_edges(told, j) + level - 1] < x.n[identifier]:
                level += 1
        code = code * f_levels(told, j) + level
    return int(first_class(buffers, g) + code)


@part
def _sampled(x: Buffers, own: RowClasses, g: int, at: int) -> None:
    """Record a new row's values, from which edges are learned."""
    samples = own.samples
    for j in range(features(own.buffers, g), features_end(own.buffers, g)):
        identifier = stored.value(x.rows, at, f_value(own.features, j))
        if is_number(identifier, x.codes):
            ring_of = j * (SAMPLE + 1)
            samples[ring_of + 1 + int(samples[ring_of]) % SAMPLE] = x.n[identifier]
            samples[ring_of] += 1


@part
def _lot(position: int, g: int) -> int:
    """Return a pseudo-random number below ``SURE`` for an event in a buffer, always the same.

    The event's rows stay as long as this number is below their probability of staying.
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
def _move(x: Buffers, g: int, number: int, to: int) -> None:
    """Give a row a smaller, free number."""
    t, r, p = x.t, x.r, x.p
    source, target = place(t, r, g, number), place(t, r, g, to)
    for i in range(stored.VALUES + t[T_VALUES]):
        x.rows[target + i] = x.rows[source + i]
    promised, now = promise(t, r, g, number), promise(t, r, g, to)
    for i in range(passing.ROW):
        p[now + i] = p[promised + i]
    for column in range(t[T_ORDERED]):
        doubles = column_of(t, r, g, column)
        x.ordered[doubles + (to & ring.mask(r, g))] = x.ordered[doubles + (number & ring.mask(r, g))]


@part
def _close_up(x: Buffers, moves: Renumbered, g: int, gone: int) -> None:
    """Renumber the rows of a buffer, of which ``gone`` are removed."""
    t, r, rows, index = x.t, x.r, x.rows, x.postings
    begin, offset, tail = moves.begins[g], moves.offsets[g], ring.tail(r, g)
    buffer = t[T_BUFFERS] + g * kept.SIZE
    indexes = (kept.indexes_end(t, buffer) - kept.indexes(t, buffer)) // lookup.SIZE
    for back in range(tail - begin):
        _leave(t, rows, index, place(t, r, g, tail - 1 - back), indexes)
    for number in range(begin, tail):
        to = moves.moved[offset + number - begin]
        if to >= 0 and to != number:
            _move(x, g, number, to)
    tail -= gone
    ring.set_tail(r, g, tail)
    ring.set_now(r, g, tail)
    ring.set_until(r, g, tail)
    for number in range(begin, tail):
        enter(t, x.c, r, rows, index, x.m, g, number)


@part
def _follow(x: Buffers, moves: Renumbered, waiting: Ints, number: int, every: bool) -> None:
    """Remove from a list the partial matches with removed rows; renumber the rows of all others.

    If not ``every`` row may be removed, the partial matches with rows that may are at the end of the list:
    each partial match has the event that made it.
    """
    t, waits, spans, size = x.t, x.waits, x.spans, x.size
    room, count, begins = x.c[counter.WAIT_ROOM], x.lists[number], moves.begins
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
                new = moves.moved[moves.offsets[g] + row - begins[g]]
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
    x.lists[number] = to


@part
def _choose(x: Buffers, own: RowClasses, moves: Renumbered, seen: int, g: int, shares: Floats) -> int:
    """Choose the rows of a buffer to remove, and give the others new numbers; return how many are removed."""
    t, r, p = x.t, x.r, x.p
    begin, offset = moves.begins[g], moves.offsets[g]
    gone, position, of, chance = 0, -1, 0, passing.SURE
    for number in range(begin, ring.tail(r, g)):
        at = place(t, r, g, number)
        if stored.position(x.rows, at) != position:
            position = stored.position(x.rows, at)
            of = _class_of(x, own, g, at)
            chance = passing.chance(p, promise(t, r, g, number))
            share = max(shares[of], own.sampled[of] * passing.SURE / chance)
            chance = int(min(share, 1.0) * chance)
        stays = chance == passing.SURE or _lot(position, g) < chance
        passing.set_chance(p, promise(t, r, g, number), chance)
        if number >= seen:
            own.came[of] += 1
            _sampled(x, own, g, at)
            own.declined[of] += int(not stays)
        else:
            own.shed[of] += int(not stays)
        moves.moved[offset + number - begin] = number - gone if stays else -1
        gone += int(not stays)
    return gone


@kernel
def let_go(
    buffers: Buffers, classes: RowClasses, moves_: Renumbered, seen_: Ints, waiting_: Ints, shares_: Floats,
    every: bool,
) -> int:  # fmt: skip
    """Remove all rows of each class but its share; return how many are removed.

    A sample of the rows stays in any case. Rows from ``seen`` on are new. ``every``: old rows may be removed,
    too.
    """
    x: Buffers = pointer(buffers)
    own: RowClasses = pointer(classes)
    moves: Renumbered = pointer(moves_)
    seen, waiting, shares = pointer(seen_), pointer(waiting_), pointer(shares_)
    total = 0
    for g in range(x.t[N_GPMS]):
        gone = _choose(x, own, moves, seen[g], g, shares)
        if gone:
            _close_up(x, moves, g, gone)
        seen[g] = ring.tail(x.r, g)
        total += gone
    if total:
        for number in range(len(buffers.lists)):
            _follow(x, moves, waiting, number, every)
    return total


@kernel
def count(
    buffers: Buffers, classes: RowClasses, low_: Floats, high_: Floats, alive_: Floats, least_: Floats
) -> None:
    """Count all rows by class in ``alive``, and the rows that stay as a sample in ``least``. Set the rank of
    each row.

    The ranks of a class are between its ``low`` and its ``high``.
    """
    x: Buffers = pointer(buffers)
    own: RowClasses = pointer(classes)
    low, high, alive, least = pointer(low_), pointer(high_), pointer(alive_), pointer(least_)
    t, r, p = x.t, x.r, x.p
    for g in range(t[N_GPMS]):
        position, of, rank = -1, 0, 0
        for number in range(ring.head(r, g), ring.tail(r, g)):
            at = place(t, r, g, number)
            if stored.position(x.rows, at) != position:
                position = stored.position(x.rows, at)
                of = _class_of(x, own, g, at)
                drawn = min(1.0, _lot(position, g) / passing.chance(p, promise(t, r, g, number)))
                rank = int(passing.SURE * (low[of] + drawn * (high[of] - low[of])))
            passing.set_rank(p, promise(t, r, g, number), rank)
            alive[of] += 1
            chance = passing.chance(p, promise(t, r, g, number))
            least[of] += min(1.0, own.sampled[of] * passing.SURE / chance)


@part
def _first_after(x: Buffers, g: int, position: int, begins: Ints) -> int:
    """Return the number of the first row of a buffer that is not before a position.

    Rows count from ``begins`` on, even if they have left the window: their data is valid until it is
    overwritten.
    """
    t, r = x.t, x.r
    low, high = max(begins[g], ring.tail(r, g) - ring.mask(r, g) - 1), ring.tail(r, g)
    while low < high:
        middle = (low + high) >> 1
        if stored.position(x.rows, place(t, r, g, middle)) < position:
            low = middle + 1
        else:
            high = middle
    return int(low)


@kernel
def credit(
    buffers: Buffers, classes: RowClasses, results: CreditedResults, step: int, weight: float,
    weights: Floats, missed: Floats,
) -> None:  # fmt: skip
    """Count, by class, the rows of every ``step``-th match among results, except the rows of its last event.

    A row counts ``step`` times ``weight`` times the match's ``weights`` (by its first item). ``weight`` is
    small for many matches of one event, which say little more than one match. ``missed`` gets the estimated
    number of missing matches, by first item. If one in three such matches still has all its rows, two are
    missing for each one found.
    """
    x: Buffers = pointer(buffers)
    own: RowClasses = pointer(classes)
    begins, found, choices = results
    t, r, p = x.t, x.r, x.p
    for i in range(0, len(found), step):
        every, first = 1.0, choices[found[i, outcome.BEGIN], 1]
        for j in range(found[i, outcome.BEGIN], found[i, outcome.END] - 1):
            position, g = choices[j, 0], own.sites[choices[j, 1]]
            if not goes(own.buffers, g):
                continue
            number = _first_after(x, g, position, begins)
            if number < ring.tail(r, g):
                at = place(t, r, g, number)
                if stored.position(x.rows, at) == position:
                    every *= passing.SURE / passing.chance(p, promise(t, r, g, number))
                    if passing.rank(p, promise(t, r, g, number)) > found[i, outcome.SHOWN]:
                        every *= SAMPLED
                    own.won[_class_of(x, own, g, at)] += step * weight * weights[first]
        missed[first] += step * (every - 1.0)
