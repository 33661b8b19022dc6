"""The buffers of events, one for each GPM, and the index of their rows by the values of keys.

A row's number counts from the beginning of the stream; it stands at ``number & mask`` of its ring.
"""

from __future__ import annotations

from typing import Final

from spaseq._jit import inlined, part
from spaseq.matching.conditions._kernel_values import (
    B_AXIS,
    B_COLUMNS,
    B_START,
    B_STREAM,
    B_TIME,
    N_GPMS,
    Codes,
    Floats,
    Ints,
)
from spaseq.matching.kernel.compiled._kernel_layout import row_of
from spaseq.matching.lazy.compiled._kernel_layout import (
    AXIS,
    BATCH_ROW,
    E_COUNT,
    E_INDEX,
    E_KEY,
    E_NEWEST,
    E_SIZE,
    ENTRIES,
    ENTRY_MASK,
    G_INDEXES,
    G_INDEXES_END,
    G_SIZE,
    G_VALUES,
    G_VALUES_END,
    INDEX_LIMIT,
    LIMIT,
    POSITION,
    R_BASE,
    R_HEAD,
    R_MASK,
    R_NOW,
    R_SIZE,
    R_TAIL,
    R_UNTIL,
    SEVERAL,
    STREAM,
    T_BUFFERS,
    T_VALUES,
    TIME,
    VALUES,
    X_PAIRS,
    X_PAIRS_END,
    X_SIZE,
)
from spaseq.matching.lazy.compiled._kernel_ranges import enter_doubles

_MIX: Final = -7046029254386353131
_NO_ENTRY: Final = -1


@inlined
def place(t: Ints, r: Ints, g: int, number: int) -> int:
    """Where a row stands among all rows of all buffers."""
    size = VALUES + t[T_VALUES] + 2 * INDEX_LIMIT
    return int((r[g * R_SIZE + R_BASE] + (number & r[g * R_SIZE + R_MASK])) * size)


@part
def first_after(t: Ints, r: Ints, rows: Ints, g: int, position: int) -> int:
    """The number of the first row of a buffer that is not before a position."""
    low, high = r[g * R_SIZE + R_HEAD], r[g * R_SIZE + R_TAIL]
    while low < high:
        middle = (low + high) >> 1
        if rows[place(t, r, g, middle) + POSITION] < position:
            low = middle + 1
        else:
            high = middle
    return int(low)


@part
def find_entry(c: Ints, index: Ints, key: Ints, number: int, size: int) -> int:
    """The entry of an index where ``key`` is; the free one for it, less than 0, if there is none."""
    mask = int(c[ENTRY_MASK])
    mixed = number * _MIX
    for i in range(size):
        mixed = (mixed ^ key[i]) * _MIX
        mixed ^= mixed >> 29
    at = (mixed >> 7) & mask
    while True:
        entry = at * E_SIZE
        if index[entry + E_INDEX] == 0:
            return -entry - 1
        if index[entry + E_INDEX] == number:
            same = True
            for i in range(size):
                if index[entry + E_KEY + i] != key[i]:
                    same = False
            if same:
                return entry
        at = (at + 1) & mask


@part
def enter(t: Ints, c: Ints, r: Ints, rows: Ints, index: Ints, key: Ints, g: int, number: int) -> None:
    """Enters a row in the indexes of its buffer."""
    buffer = t[T_BUFFERS] + g * G_SIZE
    at = place(t, r, g, number)
    links = at + VALUES + t[T_VALUES]
    for a in range(t[buffer + G_INDEXES], t[buffer + G_INDEXES_END], X_SIZE):
        size = 0
        for b in range(t[a + X_PAIRS], t[a + X_PAIRS_END], 2):
            key[size] = rows[at + VALUES + t[b]]
            size += 1
        entry = find_entry(c, index, key, a, size)
        if entry < 0:
            entry = -entry - 1
            c[ENTRIES] += 1
            index[entry + E_INDEX] = a
            index[entry + E_COUNT] = 0
            index[entry + E_NEWEST] = -1
            for i in range(size):
                index[entry + E_KEY + i] = key[i]
        rows[links] = index[entry + E_NEWEST]
        rows[links + 1] = entry
        index[entry + E_NEWEST] = number
        index[entry + E_COUNT] += 1
        links += 2


@part
def append(
    t: Ints, c: Ints, r: Ints, rows: Ints, ordered: Floats, index: Ints, key: Ints, b: Ints, e: int,
    numbers: Floats, codes: Codes,
) -> bool:  # fmt: skip
    """Puts the rows of an event in the buffers; whether there are some. What is over has been taken out."""
    some = False
    axis = b[b[B_AXIS] + e]
    for g in range(t[N_GPMS]):
        begin, end = row_of(b, g, e), row_of(b, g, e + 1)
        r[g * R_SIZE + R_NOW] = r[g * R_SIZE + R_TAIL]
        r[g * R_SIZE + R_UNTIL] = r[g * R_SIZE + R_TAIL] + end - begin
        buffer = t[T_BUFFERS] + g * G_SIZE
        for row in range(begin, end):
            number = r[g * R_SIZE + R_TAIL]
            at = place(t, r, g, number)
            some = True
            rows[at + POSITION] = b[B_START] + e
            rows[at + AXIS] = axis
            rows[at + TIME] = b[b[B_TIME] + e]
            rows[at + STREAM] = b[b[B_STREAM] + e]
            rows[at + BATCH_ROW] = row
            rows[at + SEVERAL] = end - begin > 1
            value = at + VALUES
            for column in range(t[buffer + G_VALUES], t[buffer + G_VALUES_END]):
                rows[value] = b[b[b[B_COLUMNS] + t[column]] + row]
                value += 1
            r[g * R_SIZE + R_TAIL] = number + 1
            enter(t, c, r, rows, index, key, g, number)
            enter_doubles(t, r, rows, ordered, g, number, at, numbers, codes)
    return some


@part
def expire(t: Ints, c: Ints, r: Ints, rows: Ints, index: Ints, axis: int) -> None:
    """Takes out what is no longer in a window with an event at a place on the axis."""
    for g in range(t[N_GPMS]):
        buffer = t[T_BUFFERS] + g * G_SIZE
        indexes = (t[buffer + G_INDEXES_END] - t[buffer + G_INDEXES]) // X_SIZE
        head, tail = r[g * R_SIZE + R_HEAD], r[g * R_SIZE + R_TAIL]
        while head < tail:
            at = place(t, r, g, head)
            if rows[at + AXIS] >= axis - c[LIMIT]:
                break
            for i in range(indexes):
                index[rows[at + VALUES + t[T_VALUES] + 2 * i + 1] + E_COUNT] -= 1
            head += 1
        r[g * R_SIZE + R_HEAD] = head


@part
def lacks_room(t: Ints, r: Ints, b: Ints, e: int) -> bool:
    """Whether a buffer is too small for what it holds and the rows of an event."""
    for g in range(t[N_GPMS]):
        at = g * R_SIZE
        new = row_of(b, g, e + 1) - row_of(b, g, e)
        if new and r[at + R_TAIL] - r[at + R_HEAD] + new > r[at + R_MASK] + 1:
            return True
    return False


@part
def lacks_entries(t: Ints, c: Ints, b: Ints, e: int) -> bool:
    """Whether the index would be too full with the rows of an event."""
    new = 0
    for g in range(t[N_GPMS]):
        new += row_of(b, g, e + 1) - row_of(b, g, e)
    return bool(2 * (c[ENTRIES] + INDEX_LIMIT * new) > c[ENTRY_MASK])
