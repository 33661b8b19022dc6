"""The buffers of events, one for each GPM, and the index of their rows by the values of keys.

A row's number counts from the beginning of the stream; it stands at ``number & mask`` of its ring.
"""

from __future__ import annotations

from typing import Final

from spaseq._jit import inlined, part
from spaseq._kernel_events import reach_before
from spaseq.matching.conditions import batch
from spaseq.matching.conditions._kernel_values import (
    N_GPMS,
    Codes,
    Floats,
    Ints,
)
from spaseq.matching.lazy.compiled._kernel_layout import T_BUFFERS, T_VALUES
from spaseq.matching.lazy.compiled._kernel_ranges import enter_doubles
from spaseq.matching.lazy.records import counter, passing, posting, ring, stored
from spaseq.matching.lazy.records.query import kept, lookup

_MIX: Final = -7046029254386353131
_NO_ENTRY: Final = -1


@inlined
def place(t: Ints, r: Ints, g: int, number: int) -> int:
    """Where a row stands among all rows of all buffers."""
    size = stored.VALUES + t[T_VALUES] + 2 * stored.INDEX_LIMIT
    return int((ring.base(r, g) + (number & ring.mask(r, g))) * size)


@inlined
def promise(t: Ints, r: Ints, g: int, number: int) -> int:
    """Where it stands what a row promises, under a bound."""
    return int(passing.SIZE + t[N_GPMS] + (ring.base(r, g) + (number & ring.mask(r, g))) * passing.ROW)


@part
def first_after(t: Ints, r: Ints, rows: Ints, g: int, position: int) -> int:
    """The number of the first row of a buffer that is not before a position."""
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
    """The entry of an index where ``key`` is; the free one for it, less than 0, if there is none."""
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
    """Enters a row in the indexes of its buffer."""
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
def append(
    t: Ints, c: Ints, r: Ints, rows: Ints, ordered: Floats, index: Ints, key: Ints, b: Ints, e: int,
    numbers: Floats, codes: Codes, p: Ints | None,
) -> bool:  # fmt: skip
    """Puts the rows of an event in the buffers; whether there are some. What is over has been taken out."""
    some = False
    axis = batch.axis(b, e)
    # Those of the event before: all others are where they end.
    for g in range(c[counter.FIRST_GPM], c[counter.LAST_GPM]):
        ring.set_now(r, g, ring.tail(r, g))
    c[counter.FIRST_GPM] = c[counter.LAST_GPM] = 0
    if batch.shares(b, e) < batch.shares(b, e + 1):
        c[counter.FIRST_GPM] = batch.gpm(b, batch.shares(b, e))
        c[counter.LAST_GPM] = batch.gpm(b, batch.shares(b, e + 1) - batch.SHARE) + 1
    for share in range(batch.shares(b, e), batch.shares(b, e + 1), batch.SHARE):
        g, begin, end = batch.gpm(b, share), batch.first(b, share), batch.end(b, share)
        ring.set_until(r, g, ring.tail(r, g) + end - begin)
        buffer = t[T_BUFFERS] + g * kept.SIZE
        for row in range(begin, end):
            number = ring.tail(r, g)
            at = place(t, r, g, number)
            some = True
            stored.set_position(rows, at, batch.start(b) + e)
            stored.set_axis(rows, at, axis)
            stored.set_time(rows, at, batch.time(b, e))
            stored.set_stream(rows, at, batch.stream(b, e))
            stored.set_batch_row(rows, at, row)
            stored.set_is_one_of_several(rows, at, end - begin > 1)
            if p is not None:
                passing.set_chance(p, promise(t, r, g, number), passing.SURE)
                passing.set_rank(p, promise(t, r, g, number), 0)
            value = at + stored.VALUES
            for column in range(kept.values(t, buffer), kept.values_end(t, buffer)):
                rows[value] = b[batch.column(b, t[column]) + row]
                value += 1
            ring.set_tail(r, g, number + 1)
            enter(t, c, r, rows, index, key, g, number)
            enter_doubles(t, r, rows, ordered, g, number, at, numbers, codes)
    return some


@part
def expire(t: Ints, c: Ints, r: Ints, rows: Ints, index: Ints, axis: int) -> None:
    """Takes out what is no longer in a window with an event at a place on the axis."""
    if c[counter.EXPIRED] == axis:
        return
    c[counter.EXPIRED] = axis
    least = reach_before(axis, c[counter.LIMIT])
    for g in range(t[N_GPMS]):
        head, tail = ring.head(r, g), ring.tail(r, g)
        # Of many GPMs, an event lets those of few go.
        if head == tail or stored.axis(rows, place(t, r, g, head)) >= least:
            continue
        buffer = t[T_BUFFERS] + g * kept.SIZE
        indexes = (kept.indexes_end(t, buffer) - kept.indexes(t, buffer)) // lookup.SIZE
        while head < tail:
            at = place(t, r, g, head)
            if stored.axis(rows, at) >= least:
                break
            for i in range(indexes):
                entry = rows[at + stored.VALUES + t[T_VALUES] + 2 * i + 1]
                posting.set_count(index, entry, posting.count(index, entry) - 1)
            head += 1
        ring.set_head(r, g, head)


@part
def lacks_room(r: Ints, b: Ints, e: int) -> bool:
    """Whether a buffer is too small for what it holds and the rows of an event."""
    for share in range(batch.shares(b, e), batch.shares(b, e + 1), batch.SHARE):
        g, new = batch.gpm(b, share), batch.end(b, share) - batch.first(b, share)
        if ring.tail(r, g) - ring.head(r, g) + new > ring.mask(r, g) + 1:
            return True
    return False


@part
def lacks_entries(c: Ints, b: Ints, e: int) -> bool:
    """Whether the index would be too full with the rows of an event."""
    new = 0
    for share in range(batch.shares(b, e), batch.shares(b, e + 1), batch.SHARE):
        new += batch.end(b, share) - batch.first(b, share)
    return bool(2 * (c[counter.ENTRIES] + stored.INDEX_LIMIT * new) > c[counter.ENTRY_MASK])
