"""The buffers of events, one for each GPM, the index of their rows by keys, and bounds of their values."""

from __future__ import annotations

from typing import Final

from spaseq._jit import inlined, part
from spaseq._kernel_events import reach_before
from spaseq.matching.filters import batch
from spaseq.matching.filters._kernel_values import DOUBLE, N_GPMS, SHORT, Codes, Ints
from spaseq.matching.lazy.compiled._kernel_layout import NOTHING, T_BUFFERS, T_ORDERED, T_VALUES, LazyMachine
from spaseq.matching.lazy.records import (
    counter,
    element,
    interval,
    kept,
    lookup,
    passing,
    posting,
    ring,
    stored,
    summand,
)

# The bounds of an item's values, and the columns of doubles that are compared with them.
#
# A value that cannot be ordered by its double is within all bounds: NaN stands for it. Bounds are computed
# with doubles, and a little too wide; rows within them are tested like all rows.

_FAR: Final = float("inf")
_NO_NUMBER: Final = float("nan")
#: The rounding error of a sum of doubles, relative to its terms; and the least margin.
_ROUNDED: Final = 1e-12
_LEAST: Final = 1e-290
#: Up to this size of a sum's terms, nothing becomes infinite.
_LARGEST: Final = 1e300


@inlined
def column_of(t: Ints, r: Ints, g: int, column: int) -> int:
    """Return where a column of a buffer's doubles begins; rows are placed in it as in the ring."""
    return int(ring.base(r, g) * t[T_ORDERED] + column * (ring.mask(r, g) + 1))


@inlined
def beyond(value: float, low: float, high: float) -> bool:
    """Return whether a row's double is beyond bounds; NaN is not beyond any.

    It takes only one comparison. With one for each bound it would be random which fails, and mispredicted
    branches take five times as long. A product that underflows is treated as within the bounds.
    """
    return (value - low) * (high - value) < 0.0


@inlined
def is_number(identifier: int, codes: Codes) -> bool:
    """Return whether a term can be ordered by its double."""
    return identifier > 0 and SHORT <= codes[identifier] <= DOUBLE


@part
def enter_doubles(m: LazyMachine, g: int, number: int, at: int) -> None:
    """Enter a row, which is at ``at``, in the columns of doubles."""
    t = m.tables
    buffer = t[T_BUFFERS] + g * kept.SIZE
    to = column_of(t, m.rings, g, 0) + (number & ring.mask(m.rings, g))
    for i in range(kept.ordered(t, buffer), kept.ordered_end(t, buffer)):
        identifier = stored.value(m.rows, at, t[i])
        plain = is_number(identifier, m.codes) and not stored.is_one_of_several(m.rows, at)
        m.ordered[to] = m.numbers[identifier] if plain else _NO_NUMBER
        to += ring.mask(m.rings, g) + 1


@part
def bounded_column(t: Ints, begin: int, end: int, bound: int) -> int:
    """Return the column of doubles for which ranges give bounds once the items ``bound`` are taken; NOTHING
    if there is none.
    """
    for q in range(begin, end, interval.SIZE):
        if not interval.needs(t, q) & ~bound:
            return int(interval.column(t, q))
    return NOTHING


@part
def set_bounds(m: LazyMachine, begin: int, end: int, bound: int, column: int, record: int, to: int) -> None:
    """Write the bounds of a column of doubles at ``sums[to]``. ``record``: the bindings so far."""
    t = m.tables
    low, high = -_FAR, _FAR
    for q in range(begin, end, interval.SIZE):
        if interval.column(t, q) != column or interval.needs(t, q) & ~bound:
            continue
        value = scale = 0.0
        for term in range(interval.terms(t, q), interval.terms_end(t, q), summand.SIZE):
            one = m.numbers[summand.factor(t, term)]
            if summand.slot(t, term) >= 0:
                identifier = m.frames[record + summand.slot(t, term)]
                one = one * m.numbers[identifier] if is_number(identifier, m.codes) else _NO_NUMBER
            value += one
            scale += abs(one)
        if not scale < _LARGEST:
            continue  # the sum is infinite, or no number: the condition decides
        room = scale * _ROUNDED + _LEAST
        if interval.sides(t, q) & interval.LEAST:
            low = max(low, value - room)
        if interval.sides(t, q) & interval.MOST:
            high = min(high, value + room)
    if low > high:
        low = high = _FAR  # all numbers are beyond these bounds
    m.sums[to], m.sums[to + 1] = low, high


# The buffers of events, one for each GPM, and the index of their rows by the values of keys.
#
# A row's number counts from the beginning of the stream; its place in its ring is ``number & mask``.

_MIX: Final = -7046029254386353131
_NO_ENTRY: Final = -1


@inlined
def place(t: Ints, r: Ints, g: int, number: int) -> int:
    """Return a row's place among all rows of all buffers."""
    size = stored.VALUES + t[T_VALUES] + 2 * stored.INDEX_LIMIT
    return int((ring.base(r, g) + (number & ring.mask(r, g))) * size)


@inlined
def row_at(m: LazyMachine, item: int, number: int) -> int:
    """Return the place of a row that an item takes."""
    return place(m.tables, m.rings, element.gpm(m.tables, item), number)


@inlined
def promise(t: Ints, r: Ints, g: int, number: int) -> int:
    """Return the place of a row's promise, under a bound."""
    return int(passing.SIZE + t[N_GPMS] + (ring.base(r, g) + (number & ring.mask(r, g))) * passing.ROW)


@part
def first_after(t: Ints, r: Ints, rows: Ints, g: int, position: int) -> int:
    """Return the number of the first row of a buffer that is not before a position."""
    low, high = ring.head(r, g), ring.tail(r, g)
    while low < high:
        middle = (low + high) >> 1
        if stored.position(rows, place(t, r, g, middle)) < position:
            low = middle + 1
        else:
            high = middle
    return int(low)


@part
def find_entry(c: Ints, index: Ints, key: Ints, number: int, size: int) -> int:
    """Return the entry of ``key`` in an index; if there is none, the free entry for it, as a
    negative number.
    """
    mask = int(c[counter.ENTRY_MASK])
    mixed = number * _MIX
    for i in range(size):
        mixed = (mixed ^ key[i]) * _MIX
        mixed ^= mixed >> 29
    at = (mixed >> 7) & mask
    while True:
        entry = at * posting.SIZE
        if posting.lookup(index, entry) == 0:
            return -entry - 1
        if posting.lookup(index, entry) == number:
            same = True
            for i in range(size):
                if posting.key(index, entry, i) != key[i]:
                    same = False
            if same:
                return entry
        at = (at + 1) & mask


@part
def enter(t: Ints, c: Ints, r: Ints, rows: Ints, index: Ints, key: Ints, g: int, number: int) -> None:
    """Enter a row in the indexes of its buffer."""
    buffer = t[T_BUFFERS] + g * kept.SIZE
    at = place(t, r, g, number)
    links = at + stored.VALUES + t[T_VALUES]
    for a in range(kept.indexes(t, buffer), kept.indexes_end(t, buffer), lookup.SIZE):
        size = 0
        for b in range(lookup.pairs(t, a), lookup.pairs_end(t, a), 2):
            key[size] = stored.value(rows, at, t[b])
            size += 1
        entry = find_entry(c, index, key, a, size)
        if entry < 0:
            entry = -entry - 1
            c[counter.ENTRIES] += 1
            posting.set_lookup(index, entry, a)
            posting.set_count(index, entry, 0)
            posting.set_newest(index, entry, -1)
            for i in range(size):
                posting.set_key(index, entry, i, key[i])
        rows[links] = posting.newest(index, entry)
        rows[links + 1] = entry
        posting.set_newest(index, entry, number)
        posting.set_count(index, entry, posting.count(index, entry) + 1)
        links += 2


@part
def append(m: LazyMachine, e: int, p: Ints | None) -> bool:
    """Append the rows of an event to the buffers; return whether it has any. Expired rows must have been
    removed.
    """
    t, c = m.tables, m.counters
    some = False
    axis = batch.axis(m.batch, e)
    # Empty the ranges of rows of the event before; the ranges of other GPMs are empty already.
    for g in range(c[counter.FIRST_GPM], c[counter.LAST_GPM]):
        ring.set_now(m.rings, g, ring.tail(m.rings, g))
    c[counter.FIRST_GPM] = c[counter.LAST_GPM] = 0
    if batch.shares(m.batch, e) < batch.shares(m.batch, e + 1):
        c[counter.FIRST_GPM] = batch.gpm(m.batch, batch.shares(m.batch, e))
        c[counter.LAST_GPM] = batch.gpm(m.batch, batch.shares(m.batch, e + 1) - batch.SHARE) + 1
    for share in range(batch.shares(m.batch, e), batch.shares(m.batch, e + 1), batch.SHARE):
        g, begin, end = batch.gpm(m.batch, share), batch.first(m.batch, share), batch.end(m.batch, share)
        ring.set_until(m.rings, g, ring.tail(m.rings, g) + end - begin)
        buffer = t[T_BUFFERS] + g * kept.SIZE
        for row in range(begin, end):
            number = ring.tail(m.rings, g)
            at = place(t, m.rings, g, number)
            some = True
            stored.set_position(m.rows, at, batch.start(m.batch) + e)
            stored.set_axis(m.rows, at, axis)
            stored.set_time(m.rows, at, batch.time(m.batch, e))
            stored.set_stream(m.rows, at, batch.stream(m.batch, e))
            stored.set_batch_row(m.rows, at, row)
            stored.set_is_one_of_several(m.rows, at, end - begin > 1)
            if p is not None:
                passing.set_chance(p, promise(t, m.rings, g, number), passing.SURE)
                passing.set_rank(p, promise(t, m.rings, g, number), 0)
            value = at + stored.VALUES
            for column in range(kept.values(t, buffer), kept.values_end(t, buffer)):
                m.rows[value] = m.batch[batch.column(m.batch, t[column]) + row]
                value += 1
            ring.set_tail(m.rings, g, number + 1)
            enter(t, c, m.rings, m.rows, m.postings, m.frames, g, number)
            enter_doubles(m, g, number, at)
    return some


@part
def expire(m: LazyMachine, axis: int) -> None:
    """Remove rows that are not in a window with an event at a place on the axis."""
    t, c = m.tables, m.counters
    if c[counter.EXPIRED] == axis:
        return
    c[counter.EXPIRED] = axis
    least = reach_before(axis, c[counter.LIMIT])
    for g in range(t[N_GPMS]):
        head, tail = ring.head(m.rings, g), ring.tail(m.rings, g)
        # Few of many GPMs have rows that expire with an event.
        if head == tail or stored.axis(m.rows, place(t, m.rings, g, head)) >= least:
            continue
        buffer = t[T_BUFFERS] + g * kept.SIZE
        indexes = (kept.indexes_end(t, buffer) - kept.indexes(t, buffer)) // lookup.SIZE
        while head < tail:
            at = place(t, m.rings, g, head)
            if stored.axis(m.rows, at) >= least:
                break
            for i in range(indexes):
                entry = m.rows[at + stored.VALUES + t[T_VALUES] + 2 * i + 1]
                posting.set_count(m.postings, entry, posting.count(m.postings, entry) - 1)
            head += 1
        ring.set_head(m.rings, g, head)


@part
def lacks_room(m: LazyMachine, e: int) -> bool:
    """Return whether a buffer is too small for what it holds and the rows of an event."""
    for share in range(batch.shares(m.batch, e), batch.shares(m.batch, e + 1), batch.SHARE):
        g, new = batch.gpm(m.batch, share), batch.end(m.batch, share) - batch.first(m.batch, share)
        if ring.tail(m.rings, g) - ring.head(m.rings, g) + new > ring.mask(m.rings, g) + 1:
            return True
    return False


@part
def lacks_entries(m: LazyMachine, e: int) -> bool:
    """Return whether the index would be too full with the rows of an event."""
    new = 0
    for share in range(batch.shares(m.batch, e), batch.shares(m.batch, e + 1), batch.SHARE):
        new += batch.end(m.batch, share) - batch.first(m.batch, share)
    return bool(2 * (m.counters[counter.ENTRIES] + stored.INDEX_LIMIT * new) > m.counters[counter.ENTRY_MASK])
