"""The choice of a partial match's next item, and of the rows of its buffer."""

from __future__ import annotations

from spaseq._jit import part
from spaseq.matching.filters._kernel_values import Ints
from spaseq.matching.lazy.compiled._kernel_bind import earliest, latest
from spaseq.matching.lazy.compiled._kernel_buffers import (
    beyond,
    bounded_column,
    column_of,
    find_entry,
    first_after,
    place,
    set_bounds,
)
from spaseq.matching.lazy.compiled._kernel_layout import (
    NOTHING,
    T_BUFFERS,
    T_VALUES,
    LazyMachine,
    item_at,
    item_count,
)
from spaseq.matching.lazy.compiled._kernel_passing import is_shown
from spaseq.matching.lazy.records import (
    condition,
    counter,
    element,
    frame,
    kept,
    lookup,
    passing,
    posting,
    ring,
    stored,
)


@part
def find_rows(m: LazyMachine, at: int, record: int, item: int, low: int, high: int) -> int:
    """Find the rows for an item, after a position and before another; return an estimate of their number.

    Where the rows are is written to the frame ``at``.
    """
    g = element.gpm(m.tables, item)
    first = first_after(m.tables, m.rings, m.rows, g, low + 1)
    end = first_after(m.tables, m.rings, m.rows, g, high)
    count = end - first
    frame.set_cursor(m.frames, at, first)
    frame.set_end(m.frames, at, end)
    frame.set_link(m.frames, at, -1)
    frame.set_low(m.frames, at, low)
    frame.set_high(m.frames, at, high)
    if count <= 0:
        return 0
    linked = find_linked(m, at, record, g, count)
    return int(count if linked < 0 else linked)


@part
def find_linked(m: LazyMachine, at: int, record: int, g: int, most: int) -> int:
    """Return how many rows of a buffer have a key that is known from the bindings, if they are fewer than
    ``most``.

    If they are not, return -1. Where the rows are is written to the frame ``at``. They include expired rows,
    and rows outside of the range of positions.
    """
    t = m.tables
    buffer = t[T_BUFFERS] + g * kept.SIZE
    link, fewest = 0, -1
    for a in range(kept.indexes(t, buffer), kept.indexes_end(t, buffer), lookup.SIZE):
        size = 0
        known = True
        for pair in range(lookup.pairs(t, a), lookup.pairs_end(t, a), 2):
            m.frames[size] = m.frames[record + t[pair + 1]]
            known &= m.frames[size] > 0
            size += 1
        if known:
            entry = find_entry(m.counters, m.postings, m.frames, a, size)
            if entry < 0 or posting.count(m.postings, entry) == 0:
                return 0
            if posting.count(m.postings, entry) < most:
                most = fewest = posting.count(m.postings, entry)
                frame.set_cursor(m.frames, at, posting.newest(m.postings, entry))
                frame.set_link(m.frames, at, link)
        link += 2
    return int(fewest)


@part
def bound_rows(m: LazyMachine, item: int, at: int, record: int, limits: int) -> None:
    """Write the bounds of the rows of the frame ``at`` to ``sums``, at ``limits``."""
    begin, end = element.ranges(m.tables, item), element.ranges_end(m.tables, item)
    frame.set_column(m.frames, at, bounded_column(m.tables, begin, end, frame.bound(m.frames, at)))
    set_bounds(m, begin, end, frame.bound(m.frames, at), frame.column(m.frames, at), record, limits)


@part
def choose(m: LazyMachine, at: int, record: int, limits: int) -> bool:
    """Choose a frame's next item: the one with the fewest rows. Return False if some item has no row.

    Kleene items are chosen after all others. The Kleene item of the event that started the search is last.
    """
    t, c = m.tables, m.counters
    bound = frame.bound(m.frames, at)
    best, fewest, kleene = NOTHING, 0, NOTHING
    for i in range(item_count(m)):
        if bound >> i & 1:
            continue
        item = item_at(m, i)
        if element.kleene(t, item):
            if kleene == NOTHING or kleene == c[counter.TRIGGER]:
                kleene = i
            continue
        low = latest(m.frames, bound & element.before(t, item), -1)
        high = earliest(m.frames, bound & element.after(t, item), c[counter.AT])
        # The rows found are written to the next frame, and found again below.
        number = find_rows(m, at + m.width, record, item, low, high)
        if number == 0:
            return False
        for one in range(element.conditions(t, item), element.conditions_end(t, item), condition.SIZE):
            if not condition.needs(t, one) & ~(bound | 1 << i) and condition.needs(t, one) & bound:
                number = (number + 3) >> 2  # assume that a condition leaves a quarter of the rows
        if best == NOTHING or number < fewest:
            best, fewest = i, number
    if best == NOTHING:
        best = kleene
    item = item_at(m, best)
    low = latest(m.frames, bound & element.before(t, item), -1)
    high = earliest(m.frames, bound & element.after(t, item), c[counter.AT])
    frame.set_item(m.frames, at, best)
    frame.set_count(m.frames, at, 1)
    frame.set_is_trigger(m.frames, at, best == c[counter.TRIGGER])
    number = find_rows(m, at, record, item, low, high)
    bound_rows(m, item, at, record, limits)
    return bool(number > 0 or best == c[counter.TRIGGER])


@part
def next_row(m: LazyMachine, at: int, limits: int, p: Ints | None) -> bool:
    """Advance to the next row of a frame that is within its bounds; return False if there is none."""
    t = m.tables
    item = item_at(m, frame.item(m.frames, at))
    if frame.is_trigger(m.frames, at):
        frame.set_is_trigger(m.frames, at, 0)
        frame.set_row(m.frames, at, m.counters[counter.ROW])
        return True
    is_last = frame.count(m.frames, at) == element.most(t, item)
    if is_last and frame.item(m.frames, at) == m.counters[counter.TRIGGER]:
        return False  # the event that started the search is the last iteration
    g = element.gpm(t, item)
    number = frame.cursor(m.frames, at)
    column = frame.column(m.frames, at)
    low, high = m.sums[limits], m.sums[limits + 1]
    doubles, mask = column_of(t, m.rings, g, column), ring.mask(m.rings, g)
    if frame.link(m.frames, at) < 0:
        end = frame.end(m.frames, at)
        if column != NOTHING:
            while number < end and beyond(m.ordered[doubles + (number & mask)], low, high):
                number += 1
        if p is not None and p[passing.SHOWN] < passing.SURE:
            while number < end and (
                (column != NOTHING and beyond(m.ordered[doubles + (number & mask)], low, high))
                or not is_shown(m, g, number, p)
            ):
                number += 1
        frame.set_row(m.frames, at, number)
        frame.set_cursor(m.frames, at, number + 1)
        return bool(number < end)
    while number >= ring.head(m.rings, g):
        row = place(t, m.rings, g, number)
        if stored.position(m.rows, row) <= frame.low(m.frames, at):
            return False
        previous = m.rows[row + stored.VALUES + t[T_VALUES] + frame.link(m.frames, at)]
        if (
            stored.position(m.rows, row) < frame.high(m.frames, at)
            and (column == NOTHING or not beyond(m.ordered[doubles + (number & mask)], low, high))
            and (p is None or p[passing.SHOWN] >= passing.SURE or is_shown(m, g, number, p))
        ):
            frame.set_row(m.frames, at, number)
            frame.set_cursor(m.frames, at, previous)
            return True
        number = previous
    return False
