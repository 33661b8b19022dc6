"""The choice of a partial match's next item, and of the rows of its buffer."""

from __future__ import annotations

from spaseq._jit import part
from spaseq.matching.filters._kernel_values import Codes, Floats, Ints
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
from spaseq.matching.lazy.compiled._kernel_layout import NOTHING, T_BUFFERS, T_VALUES
from spaseq.matching.lazy.compiled._kernel_passing import is_shown
from spaseq.matching.lazy.records import (
    condition,
    counter,
    element,
    frame,
    kept,
    lookup,
    passing,
    plan,
    posting,
    ring,
    stored,
)


@part
def find_rows(
    t: Ints, c: Ints, m: Ints, r: Ints, rows: Ints, index: Ints, at: int, record: int, item: int, low: int,
    high: int,
) -> int:  # fmt: skip
    """Find the rows for an item, after a position and before another; return an estimate of their number.

    Their place is written to the frame ``at``.
    """
    g = element.gpm(t, item)
    first = first_after(t, r, rows, g, low + 1)
    end = first_after(t, r, rows, g, high)
    count = end - first
    frame.set_cursor(m, at, first)
    frame.set_end(m, at, end)
    frame.set_link(m, at, -1)
    frame.set_low(m, at, low)
    frame.set_high(m, at, high)
    if count <= 0:
        return 0
    linked = find_linked(t, c, m, index, at, record, g, count)
    return int(count if linked < 0 else linked)


@part
def find_linked(t: Ints, c: Ints, m: Ints, index: Ints, at: int, record: int, g: int, most: int) -> int:
    """Return how many rows of a buffer have the known values of their keys, if fewer than ``most``.

    Otherwise -1. Their place is written to the frame ``at``. Expired rows, and rows outside of the positions
    they must be between, are included.
    """
    buffer = t[T_BUFFERS] + g * kept.SIZE
    link, fewest = 0, -1
    for a in range(kept.indexes(t, buffer), kept.indexes_end(t, buffer), lookup.SIZE):
        size = 0
        known = True
        for pair in range(lookup.pairs(t, a), lookup.pairs_end(t, a), 2):
            m[size] = m[record + t[pair + 1]]
            known &= m[size] > 0
            size += 1
        if known:
            entry = find_entry(c, index, m, a, size)
            if entry < 0 or posting.count(index, entry) == 0:
                return 0
            if posting.count(index, entry) < most:
                most = fewest = posting.count(index, entry)
                frame.set_cursor(m, at, posting.newest(index, entry))
                frame.set_link(m, at, link)
        link += 2
    return int(fewest)


@part
def bound_rows(
    t: Ints, m: Ints, f: Floats, item: int, at: int, record: int, limits: int, numbers: Floats, codes: Codes
) -> None:
    """Write the bounds of a frame's rows: for the frame ``at``, in ``f`` at ``limits``."""
    begin, end = element.ranges(t, item), element.ranges_end(t, item)
    frame.set_column(m, at, bounded_column(t, begin, end, frame.bound(m, at)))
    set_bounds(t, m, f, begin, end, frame.bound(m, at), frame.column(m, at), record, limits, numbers, codes)


@part
def choose(
    t: Ints, c: Ints, m: Ints, f: Floats, r: Ints, rows: Ints, index: Ints, at: int, width: int, record: int,
    limits: int, numbers: Floats, codes: Codes,
) -> bool:  # fmt: skip
    """Choose the item with the fewest rows for a frame; return False if some item has none.

    A Kleene comes after all other items, and the Kleene of the event that started the search comes last.
    """
    items = plan.items(t, c[counter.PLAN])
    count = (plan.items_end(t, c[counter.PLAN]) - items) // element.SIZE
    bound = frame.bound(m, at)
    best, fewest, kleene = NOTHING, 0, NOTHING
    for i in range(count):
        if bound >> i & 1:
            continue
        item = items + i * element.SIZE
        if element.kleene(t, item):
            if kleene == NOTHING or kleene == c[counter.TRIGGER]:
                kleene = i
            continue
        low = latest(m, bound & element.before(t, item), -1)
        high = earliest(m, bound & element.after(t, item), c[counter.AT])
        # Written to the place of the next frame, and found again below.
        number = find_rows(t, c, m, r, rows, index, at + width, record, item, low, high)
        if number == 0:
            return False
        for one in range(element.conditions(t, item), element.conditions_end(t, item), condition.SIZE):
            if not condition.needs(t, one) & ~(bound | 1 << i) and condition.needs(t, one) & bound:
                number = (number + 3) >> 2  # the estimated rest, if nothing is known of a condition
        if best == NOTHING or number < fewest:
            best, fewest = i, number
    if best == NOTHING:
        best = kleene
    item = items + best * element.SIZE
    low = latest(m, bound & element.before(t, item), -1)
    high = earliest(m, bound & element.after(t, item), c[counter.AT])
    frame.set_item(m, at, best)
    frame.set_count(m, at, 1)
    frame.set_is_trigger(m, at, best == c[counter.TRIGGER])
    number = find_rows(t, c, m, r, rows, index, at, record, item, low, high)
    bound_rows(t, m, f, item, at, record, limits, numbers, codes)
    return bool(number > 0 or best == c[counter.TRIGGER])


@part
def next_row(
    t: Ints, c: Ints, m: Ints, f: Floats, r: Ints, rows: Ints, ordered: Floats, at: int, limits: int,
    p: Ints | None,
) -> bool:  # fmt: skip
    """Advance to the next row of a frame that is within its bounds; return False if there is none."""
    item = plan.items(t, c[counter.PLAN]) + frame.item(m, at) * element.SIZE
    if frame.is_trigger(m, at):
        frame.set_is_trigger(m, at, 0)
        frame.set_row(m, at, c[counter.ROW])
        return True
    if frame.item(m, at) == c[counter.TRIGGER] and frame.count(m, at) == element.most(t, item):
        return False  # the event that started the search is the last iteration
    g = element.gpm(t, item)
    number = frame.cursor(m, at)
    column = frame.column(m, at)
    low, high = f[limits], f[limits + 1]
    doubles, mask = column_of(t, r, g, column), ring.mask(r, g)
    if frame.link(m, at) < 0:
        end = frame.end(m, at)
        if column != NOTHING:
            while number < end and beyond(ordered[doubles + (number & mask)], low, high):
                number += 1
        if p is not None and p[passing.SHOWN] < passing.SURE:
            while number < end and (
                (column != NOTHING and beyond(ordered[doubles + (number & mask)], low, high))
                or not is_shown(t, c, r, rows, g, number, p)
            ):
                number += 1
        frame.set_row(m, at, number)
        frame.set_cursor(m, at, number + 1)
        return bool(number < end)
    while number >= ring.head(r, g):
        row = place(t, r, g, number)
        if stored.position(rows, row) <= frame.low(m, at):
            return False
        previous = rows[row + stored.VALUES + t[T_VALUES] + frame.link(m, at)]
        if (
            stored.position(rows, row) < frame.high(m, at)
            and (column == NOTHING or not beyond(ordered[doubles + (number & mask)], low, high))
            and (p is None or p[passing.SHOWN] >= passing.SURE or is_shown(t, c, r, rows, g, number, p))
        ):
            frame.set_row(m, at, number)
            frame.set_cursor(m, at, previous)
            return True
        number = previous
    return False
