"""The chain NFA: items are taken in order of frequency, and partial matches wait for future events."""

from __future__ import annotations

from typing import Final

from spaseq._jit import part
from spaseq._kernel_events import LATEST
from spaseq.matching.filters._kernel_values import Floats, Ints
from spaseq.matching.lazy.compiled._kernel_bind import earliest, latest
from spaseq.matching.lazy.compiled._kernel_buffers import beyond, bounded_column, column_of, row_at
from spaseq.matching.lazy.compiled._kernel_choice import find_linked, find_rows
from spaseq.matching.lazy.compiled._kernel_layout import BOUNDS, NOTHING, LazyMachine, item_at, item_count
from spaseq.matching.lazy.compiled._kernel_passing import is_resumed, shows
from spaseq.matching.lazy.records import (
    counter,
    element,
    frame,
    moment,
    ordering,
    passing,
    ring,
    stored,
    waiting,
)

#: Fewer rows than this are tested one by one.
_FEW: Final = 32


@part
def next_in_chain(m: LazyMachine, at: int, i: int) -> bool:
    """Let a frame take an item; return False if no event for it has come yet."""
    t = m.tables
    item = item_at(m, i)
    low = latest(m.frames, frame.bound(m.frames, at) & element.before(t, item), -1)
    high = earliest(m.frames, frame.bound(m.frames, at) & element.after(t, item), m.counters[counter.AT])
    if low + 1 >= high:
        return False  # an event for the item can only come in the future
    frame.set_item(m.frames, at, i)
    frame.set_count(m.frames, at, 1)
    frame.set_is_trigger(m.frames, at, 0)
    frame.set_low(m.frames, at, low)
    frame.set_high(m.frames, at, high)
    # If few rows have the key, skipping some of them is faster than searching for the first and the last that
    # may be taken.
    linked = find_linked(m, at, at - m.width + frame.SIZE, element.gpm(t, item), _FEW)
    if linked >= 0:
        return linked > 0
    return find_rows(m, at, at - m.width + frame.SIZE, item, low, high) > 0


@part
def wait(m: LazyMachine, at: int, limits: int, number: int) -> bool:
    """Let the partial match before a frame wait for a future event; return False if there is no room."""
    c = m.counters
    room = c[counter.WAIT_ROOM]
    if m.lists[number] == room:
        return False
    one = (number * room + m.lists[number]) * m.size
    span = (number * room + m.lists[number]) * BOUNDS
    m.spans[span], m.spans[span + 1] = m.sums[limits], m.sums[limits + 1]
    m.lists[number] += 1
    count = item_count(m)
    waiting.set_bound(m.waits, one, frame.bound(m.frames, at))
    waiting.set_is_unsure(m.waits, one, frame.is_unsure(m.frames, at - m.width))
    to = one + waiting.RECORD
    for i in range(m.width - frame.SIZE):
        m.waits[to + i] = m.frames[at - m.width + frame.SIZE + i]
    to += m.width - frame.SIZE
    for i in range(count * moment.SIZE):
        m.waits[to + i] = m.frames[moment.BEGIN + i]
    to += count * moment.SIZE
    axis = LATEST
    for k in range(1, c[counter.DEPTH]):
        taken = frame.BEGIN + k * m.width
        m.waits[to] = frame.item(m.frames, taken)
        m.waits[to + 1] = frame.row(m.frames, taken)
        row = row_at(m, item_at(m, frame.item(m.frames, taken)), frame.row(m.frames, taken))
        axis = min(axis, stored.axis(m.rows, row))
        to += 2
    waiting.set_axis(m.waits, one, axis)
    total = 0
    for i in range(c[counter.LISTS]):
        total += m.lists[i]
    c[counter.PEAK] = max(c[counter.PEAK], total)
    return True


@part
def resume(m: LazyMachine, level: int, number: int) -> None:
    """Restore a partial match that waited, in the frames before frame ``level``."""
    c = m.counters
    one = (number * c[counter.WAIT_ROOM] + c[counter.WAIT]) * m.size
    count = item_count(m)
    at = frame.BEGIN + level * m.width
    frame.set_bound(m.frames, at, waiting.bound(m.waits, one))
    frame.set_is_unsure(m.frames, at - m.width, waiting.is_unsure(m.waits, one))
    to = one + waiting.RECORD
    for i in range(m.width - frame.SIZE):
        m.frames[at - m.width + frame.SIZE + i] = m.waits[to + i]
    to += m.width - frame.SIZE
    for i in range(count * moment.SIZE):
        m.frames[moment.BEGIN + i] = m.waits[to + i]
    to += count * moment.SIZE
    for k in range(1, level):
        taken = frame.BEGIN + k * m.width
        frame.set_item(m.frames, taken, m.waits[to])
        frame.set_row(m.frames, taken, m.waits[to + 1])
        frame.set_phase(m.frames, taken, frame.OVER)
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
def next_waiting(m: LazyMachine, chain: int, level: int, p: Ints | None) -> int:
    """Return the first partial match, from the current one on, with bounds that contain the current row; or
    the end of the list.
    """
    t, c = m.tables, m.counters
    item = item_at(m, ordering.item(m.orders, chain, level))
    bound = 0
    for i in range(level):
        bound |= 1 << ordering.item(m.orders, chain, i)
    number = ordering.first_list(m.orders, chain) + level
    one, end = c[counter.WAIT], m.lists[number]
    column = bounded_column(t, element.ranges(t, item), element.ranges_end(t, item), bound)
    value, spans_of = 0.0, number * c[counter.WAIT_ROOM] * BOUNDS
    if column != NOTHING:
        g = element.gpm(t, item)
        value = m.ordered[column_of(t, m.rings, g, column) + (c[counter.ROW] & ring.mask(m.rings, g))]
        while one < end and beyond(
            value, m.spans[spans_of + one * BOUNDS], m.spans[spans_of + one * BOUNDS + 1]
        ):
            one += 1
    if p is not None and p[passing.SHARE] < passing.SURE:
        p[passing.SHOWN] = shows(m, chain, level, p)
        while one < end and (
            (
                column != NOTHING
                and beyond(value, m.spans[spans_of + one * BOUNDS], m.spans[spans_of + one * BOUNDS + 1])
            )
            or not is_resumed(m, number, one, level, p)
        ):
            one += 1
    return int(one)
