"""The chain NFA: partial matches that wait in the order of frequency for an event to come."""

from __future__ import annotations

from spaseq._jit import part
from spaseq.matching.conditions._kernel_values import Floats, Ints
from spaseq.matching.lazy.compiled._kernel_bind import (
    earliest,
    latest,
)
from spaseq.matching.lazy.compiled._kernel_buffers import place
from spaseq.matching.lazy.compiled._kernel_choice import find_rows
from spaseq.matching.lazy.compiled._kernel_layout import (
    AT,
    AXIS,
    BOUNDS,
    DEPTH,
    F_BOUND,
    F_COUNT,
    F_ITEM,
    F_PHASE,
    F_ROW,
    F_TRIGGER,
    F_UNSURE,
    FAR,
    FRAME,
    FRAMES,
    I_AFTER,
    I_BEFORE,
    I_BUFFER,
    I_RANGES,
    I_RANGES_END,
    I_SIZE,
    LISTS,
    NOTHING,
    O_LISTS,
    O_ORDER,
    OVER,
    P_ITEMS,
    P_ITEMS_END,
    PEAK,
    PLACE_SIZE,
    PLACES,
    PLAN,
    R_MASK,
    R_SIZE,
    ROW,
    W_AXIS,
    W_BOUND,
    W_RECORD,
    W_UNSURE,
    WAIT,
    WAIT_ROOM,
)
from spaseq.matching.lazy.compiled._kernel_ranges import beyond, bounded_column, column_of


@part
def next_in_chain(
    t: Ints, c: Ints, m: Ints, r: Ints, rows: Ints, index: Ints, at: int, width: int, i: int
) -> bool:
    """Lets a frame take an item; False if no event for it has been there yet."""
    item = t[c[PLAN] + P_ITEMS] + i * I_SIZE
    low = latest(m, m[at + F_BOUND] & t[item + I_BEFORE], -1)
    high = earliest(m, m[at + F_BOUND] & t[item + I_AFTER], c[AT])
    m[at + F_ITEM], m[at + F_COUNT], m[at + F_TRIGGER] = i, 1, 0
    return find_rows(t, c, m, r, rows, index, at, at - width + FRAME, item, low, high) > 0


@part
def wait(
    c: Ints, m: Ints, f: Floats, r: Ints, rows: Ints, t: Ints, at: int, width: int, limits: int, number: int,
    lists: Ints, waits: Ints, spans: Floats, size: int,
) -> bool:  # fmt: skip
    """Lets the partial match before a frame wait for an event that is to come; False if there is no room."""
    room = c[WAIT_ROOM]
    if lists[number] == room:
        return False
    one = (number * room + lists[number]) * size
    span = (number * room + lists[number]) * BOUNDS
    spans[span], spans[span + 1] = f[limits], f[limits + 1]
    lists[number] += 1
    items = t[c[PLAN] + P_ITEMS]
    count = (t[c[PLAN] + P_ITEMS_END] - items) // I_SIZE
    waits[one + W_BOUND] = m[at + F_BOUND]
    waits[one + W_UNSURE] = m[at - width + F_UNSURE]
    to = one + W_RECORD
    for i in range(width - FRAME):
        waits[to + i] = m[at - width + FRAME + i]
    to += width - FRAME
    for i in range(count * PLACE_SIZE):
        waits[to + i] = m[PLACES + i]
    to += count * PLACE_SIZE
    axis = FAR
    for k in range(1, c[DEPTH]):
        frame = FRAMES + k * width
        waits[to] = m[frame + F_ITEM]
        waits[to + 1] = m[frame + F_ROW]
        row = place(t, r, t[items + m[frame + F_ITEM] * I_SIZE + I_BUFFER], m[frame + F_ROW])
        axis = min(axis, rows[row + AXIS])
        to += 2
    waits[one + W_AXIS] = axis
    total = 0
    for i in range(c[LISTS]):
        total += lists[i]
    c[PEAK] = max(c[PEAK], total)
    return True


@part
def resume(t: Ints, c: Ints, m: Ints, width: int, level: int, number: int, waits: Ints, size: int) -> None:
    """Puts a partial match that waited back into the frames before frame ``level``."""
    one = (number * c[WAIT_ROOM] + c[WAIT]) * size
    items = t[c[PLAN] + P_ITEMS]
    count = (t[c[PLAN] + P_ITEMS_END] - items) // I_SIZE
    at = FRAMES + level * width
    m[at + F_BOUND] = waits[one + W_BOUND]
    m[at - width + F_UNSURE] = waits[one + W_UNSURE]
    to = one + W_RECORD
    for i in range(width - FRAME):
        m[at - width + FRAME + i] = waits[to + i]
    to += width - FRAME
    for i in range(count * PLACE_SIZE):
        m[PLACES + i] = waits[to + i]
    to += count * PLACE_SIZE
    for k in range(1, level):
        frame = FRAMES + k * width
        m[frame + F_ITEM], m[frame + F_ROW], m[frame + F_PHASE] = waits[to], waits[to + 1], OVER
        to += 2


@part
def drop_old(c: Ints, lists: Ints, waits: Ints, spans: Floats, size: int, number: int, least: int) -> None:
    """Takes out the partial matches that are over: those that begin before a place on the window's axis."""
    room = c[WAIT_ROOM]
    kept = 0
    for i in range(lists[number]):
        one = (number * room + i) * size
        if waits[one + W_AXIS] < least:
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
    t: Ints, c: Ints, r: Ints, ordered: Floats, order: Ints, lists: Ints, spans: Floats, chain: int,
    level: int,
) -> int:  # fmt: skip
    """The first partial match from here on within whose bounds the row is that is looked at; or the end."""
    item = t[c[PLAN] + P_ITEMS] + order[chain + O_ORDER + level] * I_SIZE
    bound = 0
    for i in range(level):
        bound |= 1 << order[chain + O_ORDER + i]
    number = order[chain + O_LISTS] + level
    one, end = c[WAIT], lists[number]
    column = bounded_column(t, t[item + I_RANGES], t[item + I_RANGES_END], bound)
    if column != NOTHING:
        g = t[item + I_BUFFER]
        value = ordered[column_of(t, r, g, column) + (c[ROW] & r[g * R_SIZE + R_MASK])]
        spans_of = number * c[WAIT_ROOM] * BOUNDS
        while one < end and beyond(value, spans[spans_of + one * BOUNDS], spans[spans_of + one * BOUNDS + 1]):
            one += 1
    return int(one)
