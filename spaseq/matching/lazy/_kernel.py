"""The lazy kernel: events go into buffers, and one that may be a match's last starts a search.

What precedes it is taken from the buffers in the order of what is rarest then (the tree NFA of the paper,
section 6), so that nothing is done while some element of the sequence has no event.
"""

from __future__ import annotations

from spaseq._jit import kernel, part
from spaseq.matching.kernel._kernel_layout import row_of
from spaseq.matching.kernel._kernel_values import (
    B_AXIS,
    B_SIZE,
    B_START,
    N_GPMS,
    Codes,
    Floats,
    Ints,
)
from spaseq.matching.lazy._kernel_bind import bind, clear, put, sums_of
from spaseq.matching.lazy._kernel_buffers import append, enter, expire, lacks_entries, lacks_room, place
from spaseq.matching.lazy._kernel_layout import (
    AT,
    DEPTH,
    DONE,
    ENTRIES,
    EVENT,
    F_BOUND,
    F_COUNT,
    F_ITEM,
    F_PHASE,
    F_ROW,
    F_UNSURE,
    FRAME,
    FRAMES,
    I_AFTER,
    I_BINDS,
    I_BINDS_END,
    I_BUFFER,
    I_KLEENE,
    I_SIZE,
    ITEM,
    MORE_KEYS,
    NOTHING,
    OPEN,
    OVER,
    P_ITEMS,
    P_ITEMS_END,
    P_SIZE,
    PLAN,
    POSITION,
    R_HEAD,
    R_SIZE,
    R_TAIL,
    ROOM,
    ROW,
    SEVERAL,
    STAGE,
    T_PLANS,
    T_PLANS_END,
    TESTED,
)
from spaseq.matching.lazy._kernel_search import completed, search


@part
def _lacks_some(t: Ints, c: Ints, r: Ints, rows: Ints) -> bool:
    """Whether there is no event for some item of a plan but the one that starts the search."""
    for i in range(t[c[PLAN] + P_ITEMS], t[c[PLAN] + P_ITEMS_END], I_SIZE):
        if i == t[c[PLAN] + P_ITEMS] + c[ITEM] * I_SIZE:
            continue
        g = t[i + I_BUFFER]
        head = r[g * R_SIZE + R_HEAD]
        if head == r[g * R_SIZE + R_TAIL] or rows[place(t, r, g, head) + POSITION] >= c[AT]:
            return True
    return False


@part
def _begin(
    t: Ints, c: Ints, m: Ints, f: Floats, r: Ints, rows: Ints, width: int, floats: int, numbers: Floats,
    codes: Codes,
) -> None:  # fmt: skip
    """Begins a search with a row as the last event."""
    if _lacks_some(t, c, r, rows):
        return
    item = t[c[PLAN] + P_ITEMS] + c[ITEM] * I_SIZE
    row = place(t, r, t[item + I_BUFFER], c[ROW])
    c[TESTED] += 1
    record = FRAMES + FRAME
    clear(t, m, f, record, width - FRAME, sums_of(floats, 0))
    m[FRAMES + F_PHASE], m[FRAMES + F_ITEM], m[FRAMES + F_COUNT] = OVER, NOTHING, 1
    m[FRAMES + F_BOUND] = 0
    m[FRAMES + F_UNSURE] = rows[row + SEVERAL]
    is_kleene = t[item + I_KLEENE] != 0
    if not bind(t, m, rows, record, t[item + I_BINDS], t[item + I_BINDS_END], row, not is_kleene):
        return
    bound = 0
    if not is_kleene:
        m[FRAMES + F_ITEM], m[FRAMES + F_ROW] = c[ITEM], c[ROW]
        put(m, rows, c[ITEM], row, True)
        bound = 1 << c[ITEM]
        if not completed(t, c, m, f, r, rows, FRAMES, width, 0, floats, c[ITEM], bound, numbers, codes):
            return
    new = FRAMES + width
    m[new + F_PHASE], m[new + F_ITEM], m[new + F_BOUND] = OPEN, NOTHING, bound
    c[DEPTH] = 1


@part
def _next_trigger(t: Ints, c: Ints, r: Ints, b: Ints) -> bool:
    """Finds the next row of the event that may be the last of a match; False if there is none."""
    e = c[EVENT]
    while c[PLAN] < t[T_PLANS_END]:
        items = t[c[PLAN] + P_ITEMS]
        count = (t[c[PLAN] + P_ITEMS_END] - items) // I_SIZE
        while c[ITEM] < count:
            item = items + c[ITEM] * I_SIZE
            g = t[item + I_BUFFER]
            tail = r[g * R_SIZE + R_TAIL]
            first = tail - (row_of(b, g, e + 1) - row_of(b, g, e))
            c[ROW] = max(c[ROW] + 1, first)
            if t[item + I_AFTER] == 0 and c[ROW] < tail:
                return True
            c[ITEM] += 1
            c[ROW] = -1
        c[PLAN] += P_SIZE
        c[ITEM] = 0
        c[ROW] = -1
    return False


@kernel
def run(
    t: Ints, c: Ints, m: Ints, f: Floats, r: Ints, rows: Ints, index: Ints, b: Ints, width: int, floats: int,
    found: Ints, choices: Ints, numbers: Floats, codes: Codes,
) -> int:  # fmt: skip
    """Takes the events of a batch, from where the last call stopped; says what it wants more of, if anything.

    Of the frames, each has ``width`` integers and ``floats`` floats.
    """
    while c[EVENT] < b[B_SIZE]:
        e = c[EVENT]
        if c[STAGE] == 0:
            expire(t, c, r, rows, index, b[b[B_AXIS] + e])
            if lacks_room(t, r, b, e):
                return ROOM
            if lacks_entries(t, c, index, b, e):
                return MORE_KEYS
            append(t, c, r, rows, index, m, b, e)
            c[AT] = b[B_START] + e
            c[PLAN], c[ITEM], c[ROW], c[DEPTH] = t[T_PLANS], 0, -1, -1
            c[STAGE] = 1
        while True:
            if c[DEPTH] >= 0:
                status = search(
                    t, c, m, f, r, rows, index, width, floats, found, choices, e, numbers, codes
                )  # fmt: skip
                if status != DONE:
                    return status
            if not _next_trigger(t, c, r, b):
                break
            _begin(t, c, m, f, r, rows, width, floats, numbers, codes)
        c[STAGE] = 0
        c[EVENT] = e + 1
    return DONE


@kernel
def reindex(t: Ints, c: Ints, m: Ints, r: Ints, rows: Ints, index: Ints) -> None:
    """Enters all rows in an empty index."""
    c[ENTRIES] = 0
    for g in range(t[N_GPMS]):
        for number in range(r[g * R_SIZE + R_HEAD], r[g * R_SIZE + R_TAIL]):
            enter(t, c, r, rows, index, m, g, number)
