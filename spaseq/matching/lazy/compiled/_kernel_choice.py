"""Which item a partial match takes next, and from which rows of its buffer."""

from __future__ import annotations

from spaseq._jit import part
from spaseq.matching.conditions._kernel_values import Codes, Floats, Ints
from spaseq.matching.lazy.compiled._kernel_bind import (
    earliest,
    latest,
)
from spaseq.matching.lazy.compiled._kernel_buffers import find_entry, first_after, place
from spaseq.matching.lazy.compiled._kernel_layout import (
    AT,
    D_NEEDS,
    D_SIZE,
    E_COUNT,
    E_NEWEST,
    F_BOUND,
    F_COLUMN,
    F_COUNT,
    F_CURSOR,
    F_END,
    F_HIGH,
    F_ITEM,
    F_LINK,
    F_LOW,
    F_ROW,
    F_TRIGGER,
    G_INDEXES,
    G_INDEXES_END,
    G_SIZE,
    I_AFTER,
    I_BEFORE,
    I_BUFFER,
    I_CONDITIONS,
    I_CONDITIONS_END,
    I_KLEENE,
    I_MOST,
    I_RANGES,
    I_RANGES_END,
    I_SIZE,
    NOTHING,
    P_ITEMS,
    P_ITEMS_END,
    PLAN,
    POSITION,
    R_HEAD,
    R_MASK,
    R_SIZE,
    ROW,
    T_BUFFERS,
    T_VALUES,
    TRIGGER,
    VALUES,
    X_PAIRS,
    X_PAIRS_END,
    X_SIZE,
)
from spaseq.matching.lazy.compiled._kernel_ranges import beyond, bounded_column, column_of, set_bounds


@part
def find_rows(
    t: Ints, c: Ints, m: Ints, r: Ints, rows: Ints, index: Ints, at: int, record: int, item: int, low: int,
    high: int,
) -> int:  # fmt: skip
    """Where the rows for an item are, after a position and before another; about how many there are.

    Where that is written, for the frame ``at``.
    """
    g = t[item + I_BUFFER]
    first = first_after(t, r, rows, g, low + 1)
    end = first_after(t, r, rows, g, high)
    count = end - first
    m[at + F_CURSOR], m[at + F_END], m[at + F_LINK] = first, end, -1
    m[at + F_LOW], m[at + F_HIGH] = low, high
    if count <= 0:
        return 0
    buffer = t[T_BUFFERS] + g * G_SIZE
    link = 0
    for a in range(t[buffer + G_INDEXES], t[buffer + G_INDEXES_END], X_SIZE):
        size = 0
        known = True
        for pair in range(t[a + X_PAIRS], t[a + X_PAIRS_END], 2):
            m[size] = m[record + t[pair + 1]]
            known &= m[size] > 0
            size += 1
        if known:
            entry = find_entry(c, index, m, a, size)
            if entry < 0 or index[entry + E_COUNT] == 0:
                return 0
            if index[entry + E_COUNT] < count:
                count = index[entry + E_COUNT]
                m[at + F_CURSOR], m[at + F_LINK] = index[entry + E_NEWEST], link
        link += 2
    return count


@part
def bound_rows(
    t: Ints, m: Ints, f: Floats, item: int, at: int, record: int, limits: int, numbers: Floats, codes: Codes
) -> None:
    """Writes for the frame ``at`` between which bounds the values of its rows are: in ``f``,
    at ``limits``."""
    begin, end = t[item + I_RANGES], t[item + I_RANGES_END]
    m[at + F_COLUMN] = bounded_column(t, begin, end, m[at + F_BOUND])
    set_bounds(t, m, f, begin, end, m[at + F_BOUND], m[at + F_COLUMN], record, limits, numbers, codes)


@part
def choose(
    t: Ints, c: Ints, m: Ints, f: Floats, r: Ints, rows: Ints, index: Ints, at: int, width: int, record: int,
    limits: int, numbers: Floats, codes: Codes,
) -> bool:  # fmt: skip
    """Chooses the item for a frame: that of which there are the fewest; False if there is none of some.

    A Kleene comes after all other items, and the one of the event that started the search last of all.
    """
    items = t[c[PLAN] + P_ITEMS]
    count = (t[c[PLAN] + P_ITEMS_END] - items) // I_SIZE
    bound = m[at + F_BOUND]
    best, fewest, kleene = NOTHING, 0, NOTHING
    for i in range(count):
        if bound >> i & 1:
            continue
        item = items + i * I_SIZE
        if t[item + I_KLEENE]:
            if kleene == NOTHING or kleene == c[TRIGGER]:
                kleene = i
            continue
        low = latest(m, bound & t[item + I_BEFORE], -1)
        high = earliest(m, bound & t[item + I_AFTER], c[AT])
        # Written where the next frame will be, and found again below.
        number = find_rows(t, c, m, r, rows, index, at + width, record, item, low, high)
        if number == 0:
            return False
        for one in range(t[item + I_CONDITIONS], t[item + I_CONDITIONS_END], D_SIZE):
            if not t[one + D_NEEDS] & ~(bound | 1 << i) and t[one + D_NEEDS] & bound:
                number = (number + 3) >> 2  # so many are left, if nothing is known of a condition
        if best == NOTHING or number < fewest:
            best, fewest = i, number
    if best == NOTHING:
        best = kleene
    item = items + best * I_SIZE
    low = latest(m, bound & t[item + I_BEFORE], -1)
    high = earliest(m, bound & t[item + I_AFTER], c[AT])
    m[at + F_ITEM], m[at + F_COUNT] = best, 1
    m[at + F_TRIGGER] = best == c[TRIGGER]
    number = find_rows(t, c, m, r, rows, index, at, record, item, low, high)
    bound_rows(t, m, f, item, at, record, limits, numbers, codes)
    return bool(number > 0 or best == c[TRIGGER])


@part
def next_row(
    t: Ints, c: Ints, m: Ints, f: Floats, r: Ints, rows: Ints, ordered: Floats, at: int, limits: int
) -> bool:
    """Takes the next row of a frame that is within its bounds; False if there is none."""
    item = t[c[PLAN] + P_ITEMS] + m[at + F_ITEM] * I_SIZE
    if m[at + F_TRIGGER]:
        m[at + F_TRIGGER] = 0
        m[at + F_ROW] = c[ROW]
        return True
    if m[at + F_ITEM] == c[TRIGGER] and m[at + F_COUNT] == t[item + I_MOST]:
        return False  # the event that started the search is the last iteration
    g = t[item + I_BUFFER]
    number = m[at + F_CURSOR]
    column = m[at + F_COLUMN]
    low, high = f[limits], f[limits + 1]
    doubles, mask = column_of(t, r, g, column), r[g * R_SIZE + R_MASK]
    if m[at + F_LINK] < 0:
        end = m[at + F_END]
        if column != NOTHING:
            while number < end and beyond(ordered[doubles + (number & mask)], low, high):
                number += 1
        m[at + F_ROW] = number
        m[at + F_CURSOR] = number + 1
        return bool(number < end)
    while number >= r[g * R_SIZE + R_HEAD]:
        row = place(t, r, g, number)
        if rows[row + POSITION] <= m[at + F_LOW]:
            return False
        previous = rows[row + VALUES + t[T_VALUES] + m[at + F_LINK]]
        if rows[row + POSITION] < m[at + F_HIGH] and (
            column == NOTHING or not beyond(ordered[doubles + (number & mask)], low, high)
        ):
            m[at + F_ROW], m[at + F_CURSOR] = number, previous
            return True
        number = previous
    return False
