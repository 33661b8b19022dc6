"""What a partial match knows, and what an event adds to it or finds against it."""

from __future__ import annotations

from spaseq._jit import inlined, part
from spaseq.matching.conditions._kernel_machine import clear_sum, fold, holds
from spaseq.matching.conditions._kernel_values import (
    A_KIND,
    A_SIZE,
    A_SUM,
    ACC_SUM,
    AGGREGATES,
    DEEPEST,
    FALSE,
    MANY,
    N_KLEENES,
    N_SLOTS,
    SLOTS,
    TRUE,
    UNKNOWN,
    Codes,
    Floats,
    Ints,
)
from spaseq.matching.lazy.compiled._kernel_buffers import first_after, place
from spaseq.matching.lazy.compiled._kernel_layout import (
    BIND_OWN,
    BIND_PLACE,
    BIND_SIZE,
    BIND_SLOT,
    BOUNDS,
    D_CODE,
    D_CODE_END,
    D_NEEDS,
    D_SIZE,
    FIRST,
    H_AFTER,
    H_BEFORE,
    H_BINDS,
    H_BINDS_END,
    H_BUFFER,
    H_CODE,
    H_CODE_END,
    H_NEEDS,
    H_RANGES,
    H_RANGES_END,
    H_SIZE,
    H_SURE,
    K_AGGREGATES,
    K_AGGREGATES_END,
    K_NUMBER,
    K_OWN,
    K_OWN_END,
    LAST,
    NOTHING,
    P_CHECKS,
    P_CHECKS_END,
    PLACE_SIZE,
    PLACES,
    POSITION,
    R_MASK,
    R_SIZE,
    SEVERAL,
    SINGLE,
    STREAM,
    TESTED,
    TIME,
    VALUES,
)
from spaseq.matching.lazy.compiled._kernel_ranges import beyond, bounded_column, column_of, set_bounds


@inlined
def sums_of(floats: int, depth: int) -> int:
    """Where the sums of a frame begin, after those of the stack on which conditions are computed."""
    return 1 + 2 * DEEPEST + depth * floats


@part
def copy(m: Ints, f: Floats, to: int, source: int, size: int, sums: int, from_sums: int, floats: int) -> None:
    """Copies what a partial match knows."""
    for i in range(size):
        m[to + i] = m[source + i]
    for i in range(floats - BOUNDS):
        f[sums + i] = f[from_sums + i]


@part
def clear(t: Ints, m: Ints, f: Floats, record: int, size: int, sums: int) -> None:
    """Nothing is known."""
    for i in range(size):
        m[record + i] = 0
    number = size - t[N_SLOTS] - 2 * t[N_KLEENES]
    for j in range(number):
        a = t[AGGREGATES] + j * A_SIZE
        if t[a + A_KIND] == ACC_SUM:
            clear_sum(f, sums + t[a + A_SUM])


@part
def bind(t: Ints, m: Ints, rows: Ints, record: int, begin: int, end: int, at: int, own_too: bool) -> bool:
    """Binds the values of a row; False if it disagrees. ``own_too``: those of the iteration alone as well."""
    for i in range(begin, end, BIND_SIZE):
        slot = record + t[i + BIND_SLOT]
        value = rows[at + VALUES + t[i + BIND_PLACE]]
        if t[i + BIND_OWN]:
            if own_too:
                m[slot] = MANY if rows[at + SEVERAL] else value
        elif value != 0:
            if m[slot] == 0:
                m[slot] = value
            elif m[slot] != value:
                return False
    return True


@part
def end_iteration(
    t: Ints, m: Ints, f: Floats, record: int, sums: int, kleene: int, last: bool, numbers: Floats,
    codes: Codes,
) -> None:  # fmt: skip
    """An iteration is complete: aggregates take its values."""
    w = record - SLOTS
    completed = record + t[N_SLOTS] + t[N_KLEENES] + t[kleene + K_NUMBER]
    for j in range(t[kleene + K_AGGREGATES], t[kleene + K_AGGREGATES_END]):
        fold(t, m, f, w, sums, j, m[completed] == 0, numbers, codes)
    m[completed] += 1
    if not last:
        for i in range(t[kleene + K_OWN], t[kleene + K_OWN_END]):
            m[record + t[i]] = 0


@part
def meets(
    t: Ints, m: Ints, f: Floats, record: int, sums: int, begin: int, end: int, bound: int, numbers: Floats,
    codes: Codes,
) -> int:  # fmt: skip
    """Whether the conditions hold for which all items are there."""
    verdict = TRUE
    for i in range(begin, end, D_SIZE):
        if t[i + D_NEEDS] & ~bound:
            continue
        found = holds(
            t, t[i + D_CODE], t[i + D_CODE_END], m, 0, f, record - SLOTS, sums, m, 0, numbers, codes
        )  # fmt: skip
        if found <= FALSE:
            return FALSE
        if found == UNKNOWN:
            verdict = UNKNOWN
    return verdict


@inlined
def item_place(i: int) -> int:
    """Where the place in time of an item is."""
    return PLACES + i * PLACE_SIZE


@part
def put(m: Ints, rows: Ints, i: int, row: int, first: bool) -> None:
    """A row's event is the last one of an item, and perhaps the first one."""
    at = item_place(i)
    m[at + LAST], m[at + LAST + 1] = rows[row + POSITION], rows[row + TIME]
    m[at + LAST + 2] = rows[row + STREAM]
    if first:
        for k in range(LAST - FIRST):
            m[at + FIRST + k] = m[at + LAST + k]


@part
def apart(m: Ints, items: int, end: int, time: int, stream: int) -> bool:
    """Whether an event, which comes before or after these items, also precedes or follows them.

    Of one time are only events of one stream in order. ``end``: which of an item's events is the nearest.
    """
    i = 0
    while items:
        if items & 1:
            at = item_place(i) + end
            if m[at + 1] == time and m[at + 2] != stream:
                return False
        items >>= 1
        i += 1
    return True


@part
def latest(m: Ints, items: int, low: int) -> int:
    """The position of the last of these items, or ``low``."""
    i = 0
    while items:
        if items & 1:
            low = max(low, m[item_place(i) + LAST])
        items >>= 1
        i += 1
    return low


@part
def earliest(m: Ints, items: int, high: int) -> int:
    """The position of the first of these items, or ``high``."""
    i = 0
    while items:
        if items & 1:
            high = min(high, m[item_place(i) + FIRST])
        items >>= 1
        i += 1
    return high


@part
def absent(
    t: Ints, c: Ints, m: Ints, f: Floats, r: Ints, rows: Ints, ordered: Floats, plan: int, i: int, bound: int,
    record: int, size: int, sums: int, floats: int, spare: int, spare_sums: int, numbers: Floats,
    codes: Codes,
) -> int:  # fmt: skip
    """Whether nothing is there that must not be: of what can be checked now that item ``i`` is complete.

    ``spare`` is room for a record.
    """
    verdict = TRUE
    for h in range(t[plan + P_CHECKS], t[plan + P_CHECKS_END], H_SIZE):
        needs = t[h + H_NEEDS]
        if needs & ~bound or not needs >> i & 1:
            continue
        g = t[h + H_BUFFER]
        after, before = t[h + H_AFTER], t[h + H_BEFORE]
        high = earliest(m, before, 1 << 62)
        number = first_after(t, r, rows, g, latest(m, after, -1) + 1)
        end = first_after(t, r, rows, g, high)
        column = bounded_column(t, t[h + H_RANGES], t[h + H_RANGES_END], bound)
        limits = spare_sums + floats - BOUNDS
        doubles = 0
        if column != NOTHING:
            doubles = column_of(t, r, g, column)
            set_bounds(
                t, m, f, t[h + H_RANGES], t[h + H_RANGES_END], bound, column, record, limits, numbers, codes
            )  # fmt: skip
        mask = r[g * R_SIZE + R_MASK]
        while number < end:
            at, value = place(t, r, g, number), ordered[doubles + (number & mask)]
            number += 1
            if column != NOTHING and beyond(value, f[limits], f[limits + 1]):
                continue
            if not c[SINGLE]:
                time, stream = rows[at + TIME], rows[at + STREAM]
                if not apart(m, after, LAST, time, stream) or not apart(m, before, FIRST, time, stream):
                    continue
            c[TESTED] += 1
            copy(m, f, spare, record, size, spare_sums, sums, floats)
            # What need not agree is the row's own in its conditions.
            for j in range(t[h + H_BINDS], t[h + H_BINDS_END], BIND_SIZE):
                if t[j + BIND_OWN]:
                    m[spare + t[j + BIND_SLOT]] = rows[at + VALUES + t[j + BIND_PLACE]]
            if not bind(t, m, rows, spare, t[h + H_BINDS], t[h + H_BINDS_END], at, False):
                continue
            found = holds(
                t, t[h + H_CODE], t[h + H_CODE_END], m, 0, f, spare - SLOTS, spare_sums, m, 0, numbers, codes
            )  # fmt: skip
            if found <= FALSE:
                continue
            if found == TRUE and t[h + H_SURE]:
                return FALSE
            verdict = UNKNOWN
    return verdict
