"""The chain NFA: items are taken in order of frequency, and partial matches wait for future events."""

from __future__ import annotations

from typing import Final

from spaseq._jit import part
from spaseq._kernel_events import LATEST
from spaseq.matching.filters._kernel_values import Floats, Ints
from spaseq.matching.lazy.compiled._kernel_bind import earliest, latest
from spaseq.matching.lazy.compiled._kernel_buffers import beyond, bounded_column, column_of, place
from spaseq.matching.lazy.compiled._kernel_choice import find_linked, find_rows
from spaseq.matching.lazy.compiled._kernel_layout import BOUNDS, NOTHING
from spaseq.matching.lazy.compiled._kernel_passing import is_resumed, shows
from spaseq.matching.lazy.records import (
    counter,
    element,
    frame,
    moment,
    ordering,
    passing,
    plan,
    ring,
    stored,
    waiting,
)

#: Fewer rows than this are tested one by one.
_FEW: Final = 32


@part
def next_in_chain(
    t: Ints, c: Ints, m: Ints, r: Ints, rows: Ints, index: Ints, at: int, width: int, i: int
) -> bool:
    """Let a frame take an item; return False if no event for it has come yet."""
    item = plan.items(t, c[counter.PLAN]) + i * element.SIZE
    low = latest(m, frame.bound(m, at) & element.before(t, item), -1)
    high = earliest(m, frame.bound(m, at) & element.after(t, item), c[counter.AT])
    if low + 1 >= high:
        return False  # the last item is still to come
    frame.set_item(m, at, i)
    frame.set_count(m, at, 1)
    frame.set_is_trigger(m, at, 0)
    frame.set_low(m, at, low)
    frame.set_high(m, at, high)
    # Skipping a few rows is faster than searching for the first and the last that may be taken.
    linked = find_linked(t, c, m, index, at, at - width + frame.SIZE, element.gpm(t, item), _FEW)
    if linked >= 0:
        return linked > 0
    return find_rows(t, c, m, r, rows, index, at, at - width + frame.SIZE, item, low, high) > 0


@part
def wait(
    c: Ints, m: Ints, f: Floats, r: Ints, rows: Ints, t: Ints, at: int, width: int, limits: int, number: int,
    lists: Ints, waits: Ints, spans: Floats, size: int,
) -> bool:  # fmt: skip
    """Let the partial match before a frame wait for a future event; return False if there is no room."""
    room = c[counter.WAIT_ROOM]
    if lists[number] == room:
        return False
    one = (number * room + lists[number]) * size
    span = (number * room + lists[number]) * BOUNDS
    spans[span], spans[span + 1] = f[limits], f[limits + 1]
    lists[number] += 1
    items = plan.items(t, c[counter.PLAN])
    count = (plan.items_end(t, c[counter.PLAN]) - items) // element.SIZE
    waiting.set_bound(waits, one, frame.bound(m, at))
    waiting.set_is_unsure(waits, one, frame.is_unsure(m, at - width))
    to = one + waiting.RECORD
    for i in range(width - frame.SIZE):
        waits[to + i] = m[at - width + frame.SIZE + i]
    to += width - frame.SIZE
    for i in range(count * moment.SIZE):
        waits[to + i] = m[moment.BEGIN + i]
    to += count * moment.SIZE
    axis = LATEST
    for k in range(1, c[counter.DEPTH]):
        taken = frame.BEGIN + k * width
        waits[to] = frame.item(m, taken)
        waits[to + 1] = frame.row(m, taken)
        row = place(t, r, element.gpm(t, items + frame.item(m, taken) * element.SIZE), frame.row(m, taken))
        axis = min(axis, stored.axis(rows, row))
        to += 2
    waiting.set_axis(waits, one, axis)
    total = 0
    for i in range(c[counter.LISTS]):
        total += lists[i]
    c[counter.PEAK] = max(c[counter.PEAK], total)
    return True


@part
def resume(t: Ints, c: Ints, m: Ints, width: int, level: int, number: int, waits: Ints, size: int) -> None:
    """Restore a partial match that waited, in the frames before frame ``level``."""
    one = (number * c[counter.WAIT_ROOM] + c[counter.WAIT]) * size
    items = plan.items(t, c[counter.PLAN])
    count = (plan.items_end(t, c[counter.PLAN]) - items) // element.SIZE
    at = frame.BEGIN + level * width
    frame.set_bound(m, at, waiting.bound(waits, one))
    frame.set_is_unsure(m, at - width, waiting.is_unsure(waits, one))
    to = one + waiting.RECORD
    for i in range(width - frame.SIZE):
        m[at - width + frame.SIZE + i] = waits[to + i]
    to += width - frame.SIZE
    for i in range(count * moment.SIZE):
        m[moment.BEGIN + i] = waits[to + i]
    to += count * moment.SIZE
    for k in range(1, level):
        taken = frame.BEGIN + k * width
        frame.set_item(m, taken, waits[to])
        frame.set_row(m, taken, waits[to + 1])
        frame.set_phase(m, taken, frame.OVER)
        to += 2


@part
def drop_old(c: Ints, lists: Ints, waits: Ints, spans: Floats, size: int, number: int, least: int) -> None:
    """Remove the partial matches that begin before a place on the window's axis."""
    room = c[counter.WAIT_ROOM]
    kept = 0
    for i in range(lists[number]):
        one = (number * room + i) * size
        if waiting.axis(waits, one) < least:
            continue
        if kept < i:
            to = (number * room + kept) * size
            for k in range(size):
                waits[to + k] = waits[one + k]
            for k in range(BOUNDS):
                spans[(number * room + kept) * BOUNDS + k] = spans[(number * room + i) * BOUNDS + k]
        kept += 1
    lists[number] = kept


@part
def next_waiting(
    t: Ints, c: Ints, r: Ints, rows: Ints, ordered: Floats, order: Ints, lists: Ints, waits: Ints,
    spans: Floats, size: int, chain: int, level: int, p: Ints | None,
) -> int:  # fmt: skip
    """Return the first partial match from here on with bounds that contain the current row; or the end."""
    item = plan.items(t, c[counter.PLAN]) + ordering.item(order, chain, level) * element.SIZE
    bound = 0
    for i in range(level):
        bound |= 1 << ordering.item(order, chain, i)
    number = ordering.first_list(order, chain) + level
    one, end = c[counter.WAIT], lists[number]
    column = bounded_column(t, element.ranges(t, item), element.ranges_end(t, item), bound)
    value, spans_of = 0.0, number * c[counter.WAIT_ROOM] * BOUNDS
    if column != NOTHING:
        g = element.gpm(t, item)
        value = ordered[column_of(t, r, g, column) + (c[counter.ROW] & ring.mask(r, g))]
        while one < end and beyond(value, spans[spans_of + one * BOUNDS], spans[spans_of + one * BOUNDS + 1]):
            one += 1
    if p is not None and p[passing.SHARE] < passing.SURE:
        p[passing.SHOWN] = shows(t, c, order, chain, level, p)
        while one < end and (
            (
                column != NOTHING
                and beyond(value, spans[spans_of + one * BOUNDS], spans[spans_of + one * BOUNDS + 1])
            )
            or not is_resumed(t, c, r, rows, waits, size, number, one, level, p)
        ):
            one += 1
    return int(one)
