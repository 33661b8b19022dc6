"""The chain NFA: partial matches that wait in the order of frequency for an event to come."""

from __future__ import annotations

from spaseq._jit import part
from spaseq.matching.kernel._kernel_values import Ints
from spaseq.matching.lazy._kernel_bind import (
    earliest,
    latest,
)
from spaseq.matching.lazy._kernel_buffers import place
from spaseq.matching.lazy._kernel_choice import find_rows
from spaseq.matching.lazy._kernel_layout import (
    AT,
    AXIS,
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
    I_SIZE,
    LISTS,
    OVER,
    P_ITEMS,
    P_ITEMS_END,
    PEAK,
    PLACE_SIZE,
    PLACES,
    PLAN,
    W_AXIS,
    W_BOUND,
    W_RECORD,
    W_UNSURE,
    WAIT,
    WAIT_ROOM,
)


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
    c: Ints, m: Ints, r: Ints, rows: Ints, t: Ints, at: int, width: int, number: int, lists: Ints,
    waits: Ints, size: int,
) -> bool:  # fmt: skip
    """Lets the partial match before a frame wait for an event that is to come; False if there is no room."""
    room = c[WAIT_ROOM]
    if lists[number] == room:
        return False
    one = (number * room + lists[number]) * size
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
def drop_old(c: Ints, lists: Ints, waits: Ints, size: int, number: int, least: int) -> None:
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
        kept += 1
    lists[number] = kept
