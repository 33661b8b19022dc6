"""The search for what a partial match still lacks: the tree NFA, and the steps of a chain.

Each frame takes rows for one item; a Kleene's iterations are frames of one item, one after the other. The
whole state of a search is in arrays, so that it can stop for more room and go on.
"""

from __future__ import annotations

from spaseq._jit import part
from spaseq.matching.conditions._kernel_values import FALSE, UNKNOWN, Codes, Floats, Ints
from spaseq.matching.lazy.compiled._kernel_bind import (
    absent,
    apart,
    bind,
    copy,
    earliest,
    end_iteration,
    meets,
    put,
    sums_of,
)
from spaseq.matching.lazy.compiled._kernel_buffers import place
from spaseq.matching.lazy.compiled._kernel_choice import bound_rows, choose, find_rows, next_row
from spaseq.matching.lazy.compiled._kernel_layout import (
    AT,
    BATCH_ROW,
    BOUNDS,
    CHOICE_ROOM,
    CHOICES,
    DEEPER,
    DEPTH,
    DONE,
    F_BOUND,
    F_COUNT,
    F_ITEM,
    F_PHASE,
    F_ROW,
    F_TRIGGER,
    F_UNSURE,
    FIRST,
    FOUND,
    FOUND_BEGIN,
    FOUND_END,
    FOUND_EVENT,
    FOUND_KEY,
    FOUND_ROOM,
    FOUND_SIZE,
    FOUND_UNSURE,
    FRAME,
    FRAMES,
    FRAMES_END,
    FULL,
    GOING_ON,
    I_AFTER,
    I_BEFORE,
    I_BINDS,
    I_BINDS_END,
    I_BUFFER,
    I_CONDITIONS,
    I_CONDITIONS_END,
    I_ITERATION,
    I_ITERATION_END,
    I_KLEENE,
    I_LEAST,
    I_MOST,
    I_SITE,
    I_SIZE,
    LAST,
    LEAVING,
    MORE_WAITS,
    NOTHING,
    O_CHAIN,
    O_LISTS,
    O_ORDER,
    O_SIZE,
    OPEN,
    OVER,
    P_EXACT,
    P_ITEMS,
    P_ITEMS_END,
    P_SIZE,
    PLAN,
    POSITION,
    REPEATING,
    ROW,
    ROWS,
    SEVERAL,
    SINGLE,
    STREAM,
    T_KEYS,
    T_KEYS_END,
    T_PLANS,
    TESTED,
    TIME,
    TRIGGER,
)
from spaseq.matching.lazy.compiled._kernel_waiting import next_in_chain, wait


@part
def completed(
    t: Ints, c: Ints, m: Ints, f: Floats, r: Ints, rows: Ints, ordered: Floats, at: int, width: int, d: int,
    floats: int, i: int, bound: int, numbers: Floats, codes: Codes,
) -> bool:  # fmt: skip
    """Whether a partial match stands in which item ``i`` is complete now; the record is that of frame d."""
    item = t[c[PLAN] + P_ITEMS] + i * I_SIZE
    record, sums = at + FRAME, sums_of(floats, d)
    verdict = meets(
        t, m, f, record, sums, t[item + I_CONDITIONS], t[item + I_CONDITIONS_END], bound, numbers, codes
    )  # fmt: skip
    if verdict == FALSE:
        return False
    size = width - FRAME
    nothing = absent(
        t, c, m, f, r, rows, ordered, c[PLAN], i, bound, record, size, sums, floats, record + width,
        sums + floats, numbers, codes,
    )  # fmt: skip
    if verdict == UNKNOWN or nothing == UNKNOWN:
        m[at + F_UNSURE] = 1
    return nothing != FALSE


@part
def take(
    t: Ints, c: Ints, m: Ints, f: Floats, r: Ints, rows: Ints, ordered: Floats, at: int, width: int, d: int,
    floats: int, numbers: Floats, codes: Codes,
) -> bool:  # fmt: skip
    """Adds a frame's row to the partial match of the frame before it; False if it does not fit."""
    i, count, bound = m[at + F_ITEM], m[at + F_COUNT], m[at + F_BOUND]
    item = t[c[PLAN] + P_ITEMS] + i * I_SIZE
    row = place(t, r, t[item + I_BUFFER], m[at + F_ROW])
    position, time, stream = rows[row + POSITION], rows[row + TIME], rows[row + STREAM]
    c[TESTED] += 1
    before, after = bound & t[item + I_BEFORE], bound & t[item + I_AFTER]
    if not c[SINGLE]:
        if not apart(m, before, LAST, time, stream) or not apart(m, after, FIRST, time, stream):
            return False
        if count > 1:
            previous = place(t, r, t[item + I_BUFFER], m[at - width + F_ROW])
            if rows[previous + TIME] == time and rows[previous + STREAM] != stream:
                return False
    others = bound & ~before & ~after
    if others:
        for k in range(d):
            other = FRAMES + k * width
            j = m[other + F_ITEM]
            if j != NOTHING and others >> j & 1:
                g = t[t[c[PLAN] + P_ITEMS] + j * I_SIZE + I_BUFFER]
                if rows[place(t, r, g, m[other + F_ROW]) + POSITION] == position:
                    return False
    record, sums = at + FRAME, sums_of(floats, d)
    copy(m, f, record, record - width, width - FRAME, sums, sums - floats, floats)
    m[at + F_UNSURE] = m[at - width + F_UNSURE] | rows[row + SEVERAL]
    if count > 1:
        end_iteration(t, m, f, record, sums, t[item + I_KLEENE], False, numbers, codes)
    if not bind(t, m, rows, record, t[item + I_BINDS], t[item + I_BINDS_END], row, True):
        return False
    put(m, rows, i, row, count == 1)
    if t[item + I_KLEENE]:
        verdict = meets(
            t, m, f, record, sums, t[item + I_ITERATION], t[item + I_ITERATION_END], -1, numbers, codes
        )  # fmt: skip
        if verdict == UNKNOWN:
            m[at + F_UNSURE] = 1
        return verdict != FALSE
    return completed(
        t, c, m, f, r, rows, ordered, at, width, d, floats, i, bound | 1 << i, numbers, codes
    )  # fmt: skip


@part
def leave(
    t: Ints, c: Ints, m: Ints, f: Floats, r: Ints, rows: Ints, ordered: Floats, at: int, width: int, d: int,
    floats: int, numbers: Floats, codes: Codes,
) -> bool:  # fmt: skip
    """Ends a Kleene with the iteration of frame d, in the frame after it; False if that does not fit."""
    i = m[at + F_ITEM]
    item = t[c[PLAN] + P_ITEMS] + i * I_SIZE
    if m[at + F_COUNT] < t[item + I_LEAST]:
        return False
    if i == c[TRIGGER] and m[at + F_ROW] != c[ROW]:
        return False
    new = at + width
    sums = sums_of(floats, d)
    copy(m, f, new + FRAME, at + FRAME, width - FRAME, sums + floats, sums, floats)
    end_iteration(t, m, f, new + FRAME, sums + floats, t[item + I_KLEENE], True, numbers, codes)
    m[new + F_ITEM], m[new + F_PHASE] = NOTHING, OVER
    m[new + F_UNSURE] = m[at + F_UNSURE]
    m[new + F_BOUND] = m[at + F_BOUND]
    bound = m[at + F_BOUND] | 1 << i
    return completed(
        t, c, m, f, r, rows, ordered, new, width, d + 1, floats, i, bound, numbers, codes
    )  # fmt: skip


@part
def go_on(
    t: Ints, c: Ints, m: Ints, f: Floats, r: Ints, rows: Ints, index: Ints, at: int, width: int, limits: int,
    numbers: Floats, codes: Codes,
) -> bool:  # fmt: skip
    """Makes the frame of a further iteration; False if there is none."""
    i, count = m[at + F_ITEM], m[at + F_COUNT]
    item = t[c[PLAN] + P_ITEMS] + i * I_SIZE
    if t[item + I_MOST] >= 0 and count >= t[item + I_MOST]:
        return False
    if i == c[TRIGGER] and m[at + F_ROW] == c[ROW]:
        return False
    new = at + width
    low = rows[place(t, r, t[item + I_BUFFER], m[at + F_ROW]) + POSITION]
    high = earliest(m, m[at + F_BOUND] & t[item + I_AFTER], c[AT])
    m[new + F_ITEM], m[new + F_COUNT], m[new + F_PHASE] = i, count + 1, ROWS
    m[new + F_BOUND] = m[at + F_BOUND]
    m[new + F_TRIGGER] = i == c[TRIGGER]
    some = find_rows(t, c, m, r, rows, index, new, at + FRAME, item, low, high) > 0
    bound_rows(t, m, f, item, new, at + FRAME, limits, numbers, codes)
    return some or i == c[TRIGGER]


@part
def emit(
    t: Ints, c: Ints, m: Ints, r: Ints, rows: Ints, at: int, width: int, found: Ints, choices: Ints, e: int
) -> bool:  # fmt: skip
    """Writes the match of the frames up to ``at``; False if there is no room for it."""
    d = c[DEPTH]
    if c[FOUND] == c[FOUND_ROOM] or c[CHOICES] + d > c[CHOICE_ROOM]:
        return False
    begin = c[CHOICES]
    end = begin
    items = t[c[PLAN] + P_ITEMS]
    for k in range(d):
        frame = FRAMES + k * width
        if m[frame + F_ITEM] == NOTHING:
            continue
        item = items + m[frame + F_ITEM] * I_SIZE
        row = place(t, r, t[item + I_BUFFER], m[frame + F_ROW])
        to = end
        while to > begin and choices[3 * to - 3] > rows[row + POSITION]:
            for i in range(3):
                choices[3 * to + i] = choices[3 * to - 3 + i]
            to -= 1
        choices[3 * to] = rows[row + POSITION]
        choices[3 * to + 1] = t[item + I_SITE]
        choices[3 * to + 2] = rows[row + BATCH_ROW]
        end += 1
    one = c[FOUND] * FOUND_SIZE
    found[one + FOUND_EVENT] = e
    found[one + FOUND_UNSURE] = m[at - width + F_UNSURE] or not t[c[PLAN] + P_EXACT]
    found[one + FOUND_BEGIN] = begin
    found[one + FOUND_END] = end
    key = one + FOUND_KEY
    for slot in range(t[T_KEYS], t[T_KEYS_END]):
        found[key] = m[at - width + FRAME + t[slot]]
        key += 1
    c[FOUND] += 1
    c[CHOICES] = end
    return True


@part
def search(
    t: Ints, c: Ints, m: Ints, f: Floats, r: Ints, rows: Ints, ordered: Floats, index: Ints, width: int,
    floats: int, order: Ints, lists: Ints, waits: Ints, spans: Floats, size: int, found: Ints, choices: Ints,
    e: int, numbers: Floats, codes: Codes,
) -> int:  # fmt: skip
    """Goes on with a search until it is over, or wants more room."""
    items = t[c[PLAN] + P_ITEMS]
    chain = (c[PLAN] - t[T_PLANS]) // P_SIZE * O_SIZE
    everything = (1 << ((t[c[PLAN] + P_ITEMS_END] - items) // I_SIZE)) - 1
    while c[DEPTH] >= 0:
        d = c[DEPTH]
        at = FRAMES + d * width
        limits = sums_of(floats, d) + floats - BOUNDS
        if at + 4 * width > c[FRAMES_END]:
            return DEEPER
        phase = m[at + F_PHASE]
        child = NOTHING
        if phase == OPEN:
            if m[at + F_BOUND] == everything:
                if not c[REPEATING] and not emit(t, c, m, r, rows, at, width, found, choices, e):
                    return FULL
                c[DEPTH] = d - 1
            elif order[chain + O_CHAIN]:
                i = order[chain + O_ORDER + d - 1]
                item = items + i * I_SIZE
                bound_rows(t, m, f, item, at, at - width + FRAME, limits, numbers, codes)
                if not t[item + I_AFTER] & m[at + F_BOUND] and not wait(
                    c, m, f, r, rows, t, at, width, limits, order[chain + O_LISTS] + d - 1, lists, waits,
                    spans, size,
                ):  # fmt: skip
                    return MORE_WAITS
                m[at + F_PHASE] = ROWS
                if not next_in_chain(t, c, m, r, rows, index, at, width, i):
                    c[DEPTH] = d - 1
            elif choose(t, c, m, f, r, rows, index, at, width, at - width + FRAME, limits, numbers, codes):
                m[at + F_PHASE] = ROWS
            else:
                c[DEPTH] = d - 1
        elif phase == ROWS:
            if not next_row(t, c, m, f, r, rows, ordered, at, limits):
                c[DEPTH] = d - 1
            elif take(t, c, m, f, r, rows, ordered, at, width, d, floats, numbers, codes):
                if t[items + m[at + F_ITEM] * I_SIZE + I_KLEENE]:
                    m[at + F_PHASE] = LEAVING
                else:
                    child = d + 1
        elif phase == LEAVING:
            m[at + F_PHASE] = GOING_ON
            if leave(t, c, m, f, r, rows, ordered, at, width, d, floats, numbers, codes):
                child = d + 2
        elif phase == GOING_ON:
            m[at + F_PHASE] = ROWS
            if go_on(t, c, m, f, r, rows, index, at, width, limits + floats, numbers, codes):
                c[DEPTH] = d + 1
        else:
            c[DEPTH] = d - 1
        if child != NOTHING:
            new = FRAMES + child * width
            m[new + F_PHASE], m[new + F_ITEM] = OPEN, NOTHING
            m[new + F_BOUND] = m[at + F_BOUND] | 1 << m[at + F_ITEM]
            c[DEPTH] = child
    return DONE
