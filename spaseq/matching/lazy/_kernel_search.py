"""The tree NFA as a search: which item a partial match takes next, and from which rows.

Each frame takes rows for one item; a Kleene's iterations are frames of one item, one after the other. The
whole state of a search is in arrays, so that it can stop for more room and go on.
"""

from __future__ import annotations

from spaseq._jit import part
from spaseq.matching.kernel._kernel_values import FALSE, UNKNOWN, Codes, Floats, Ints
from spaseq.matching.lazy._kernel_bind import (
    absent,
    bind,
    copy,
    earliest,
    end_iteration,
    follows,
    latest,
    leads,
    meets,
    put,
    sums_of,
)
from spaseq.matching.lazy._kernel_buffers import find_entry, first_after, place
from spaseq.matching.lazy._kernel_layout import (
    AT,
    AXIS,
    BATCH_ROW,
    CHOICE_ROOM,
    CHOICES,
    D_NEEDS,
    D_SIZE,
    DEEPER,
    DEPTH,
    DONE,
    E_COUNT,
    E_NEWEST,
    F_BOUND,
    F_COUNT,
    F_CURSOR,
    F_END,
    F_HIGH,
    F_ITEM,
    F_LINK,
    F_LOW,
    F_PHASE,
    F_ROW,
    F_TRIGGER,
    F_UNSURE,
    FAR,
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
    G_INDEXES,
    G_INDEXES_END,
    G_SIZE,
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
    LEAVING,
    LISTS,
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
    PEAK,
    PLACE_SIZE,
    PLACES,
    PLAN,
    POSITION,
    R_HEAD,
    R_SIZE,
    REPEATING,
    ROW,
    ROWS,
    SEVERAL,
    SINGLE,
    STREAM,
    T_BUFFERS,
    T_KEYS,
    T_KEYS_END,
    T_PLANS,
    T_VALUES,
    TESTED,
    TIME,
    TRIGGER,
    VALUES,
    W_AXIS,
    W_BOUND,
    W_RECORD,
    W_UNSURE,
    WAIT,
    WAIT_ROOM,
    X_PAIRS,
    X_PAIRS_END,
    X_SIZE,
)


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
def choose(
    t: Ints, c: Ints, m: Ints, r: Ints, rows: Ints, index: Ints, at: int, width: int, record: int
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
    return bool(number > 0 or best == c[TRIGGER])


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


@part
def next_row(t: Ints, c: Ints, m: Ints, r: Ints, rows: Ints, at: int) -> bool:
    """Takes the next row of a frame; False if there is none."""
    item = t[c[PLAN] + P_ITEMS] + m[at + F_ITEM] * I_SIZE
    if m[at + F_TRIGGER]:
        m[at + F_TRIGGER] = 0
        m[at + F_ROW] = c[ROW]
        return True
    if m[at + F_ITEM] == c[TRIGGER] and m[at + F_COUNT] == t[item + I_MOST]:
        return False  # the event that started the search is the last iteration
    g = t[item + I_BUFFER]
    number = m[at + F_CURSOR]
    if m[at + F_LINK] < 0:
        m[at + F_ROW] = number
        m[at + F_CURSOR] = number + 1
        return bool(number < m[at + F_END])
    while number >= r[g * R_SIZE + R_HEAD]:
        row = place(t, r, g, number)
        if rows[row + POSITION] <= m[at + F_LOW]:
            return False
        previous = rows[row + VALUES + t[T_VALUES] + m[at + F_LINK]]
        if rows[row + POSITION] < m[at + F_HIGH]:
            m[at + F_ROW], m[at + F_CURSOR] = number, previous
            return True
        number = previous
    return False


@part
def completed(
    t: Ints, c: Ints, m: Ints, f: Floats, r: Ints, rows: Ints, at: int, width: int, d: int, floats: int,
    i: int, bound: int, numbers: Floats, codes: Codes,
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
        t, c, m, f, r, rows, c[PLAN], i, bound, record, size, sums, floats, record + width,
        sums + floats, numbers, codes,
    )  # fmt: skip
    if verdict == UNKNOWN or nothing == UNKNOWN:
        m[at + F_UNSURE] = 1
    return nothing != FALSE


@part
def take(
    t: Ints, c: Ints, m: Ints, f: Floats, r: Ints, rows: Ints, at: int, width: int, d: int, floats: int,
    numbers: Floats, codes: Codes,
) -> bool:  # fmt: skip
    """Adds a frame's row to the partial match of the frame before it; False if it does not fit."""
    i, count, bound = m[at + F_ITEM], m[at + F_COUNT], m[at + F_BOUND]
    item = t[c[PLAN] + P_ITEMS] + i * I_SIZE
    row = place(t, r, t[item + I_BUFFER], m[at + F_ROW])
    position, time, stream = rows[row + POSITION], rows[row + TIME], rows[row + STREAM]
    c[TESTED] += 1
    before, after = bound & t[item + I_BEFORE], bound & t[item + I_AFTER]
    if not c[SINGLE]:
        if not follows(m, before, time, stream) or not leads(m, after, time, stream):
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
        t, c, m, f, r, rows, at, width, d, floats, i, bound | 1 << i, numbers, codes
    )  # fmt: skip


@part
def leave(
    t: Ints, c: Ints, m: Ints, f: Floats, r: Ints, rows: Ints, at: int, width: int, d: int, floats: int,
    numbers: Floats, codes: Codes,
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
        t, c, m, f, r, rows, new, width, d + 1, floats, i, bound, numbers, codes
    )  # fmt: skip


@part
def go_on(t: Ints, c: Ints, m: Ints, r: Ints, rows: Ints, index: Ints, at: int, width: int) -> bool:
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
    return find_rows(t, c, m, r, rows, index, new, at + FRAME, item, low, high) > 0 or i == c[TRIGGER]


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
    t: Ints, c: Ints, m: Ints, f: Floats, r: Ints, rows: Ints, index: Ints, width: int, floats: int,
    order: Ints, lists: Ints, waits: Ints, size: int, found: Ints, choices: Ints, e: int, numbers: Floats,
    codes: Codes,
) -> int:  # fmt: skip
    """Goes on with a search until it is over, or wants more room."""
    items = t[c[PLAN] + P_ITEMS]
    chain = (c[PLAN] - t[T_PLANS]) // P_SIZE * O_SIZE
    everything = (1 << ((t[c[PLAN] + P_ITEMS_END] - items) // I_SIZE)) - 1
    while c[DEPTH] >= 0:
        d = c[DEPTH]
        at = FRAMES + d * width
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
                if not t[items + i * I_SIZE + I_AFTER] & m[at + F_BOUND] and not wait(
                    c, m, r, rows, t, at, width, order[chain + O_LISTS] + d - 1, lists, waits, size
                ):
                    return MORE_WAITS
                m[at + F_PHASE] = ROWS
                if not next_in_chain(t, c, m, r, rows, index, at, width, i):
                    c[DEPTH] = d - 1
            elif choose(t, c, m, r, rows, index, at, width, at - width + FRAME):
                m[at + F_PHASE] = ROWS
            else:
                c[DEPTH] = d - 1
        elif phase == ROWS:
            if not next_row(t, c, m, r, rows, at):
                c[DEPTH] = d - 1
            elif take(t, c, m, f, r, rows, at, width, d, floats, numbers, codes):
                if t[items + m[at + F_ITEM] * I_SIZE + I_KLEENE]:
                    m[at + F_PHASE] = LEAVING
                else:
                    child = d + 1
        elif phase == LEAVING:
            m[at + F_PHASE] = GOING_ON
            if leave(t, c, m, f, r, rows, at, width, d, floats, numbers, codes):
                child = d + 2
        elif phase == GOING_ON:
            m[at + F_PHASE] = ROWS
            if go_on(t, c, m, r, rows, index, at, width):
                c[DEPTH] = d + 1
        else:
            c[DEPTH] = d - 1
        if child != NOTHING:
            new = FRAMES + child * width
            m[new + F_PHASE], m[new + F_ITEM] = OPEN, NOTHING
            m[new + F_BOUND] = m[at + F_BOUND] | 1 << m[at + F_ITEM]
            c[DEPTH] = child
    return DONE
