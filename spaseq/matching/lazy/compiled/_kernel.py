"""The lazy kernel: events go into buffers, and one that may be a match's last starts a search.

What precedes it is taken from the buffers in the order of what is rarest then (the tree NFA of the paper,
section 6), so that nothing is done while some element of the sequence has no event.
"""

from __future__ import annotations

from spaseq._jit import kernel, part
from spaseq.matching.conditions._kernel_values import (
    B_AXIS,
    B_SIZE,
    B_START,
    N_GPMS,
    Codes,
    Floats,
    Ints,
    pointer,
)
from spaseq.matching.lazy.compiled._kernel_bind import bind, clear, put, sums_of
from spaseq.matching.lazy.compiled._kernel_buffers import (
    append,
    enter,
    expire,
    lacks_entries,
    lacks_room,
    place,
)
from spaseq.matching.lazy.compiled._kernel_layout import (
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
    FAR,
    FRAME,
    FRAMES,
    I_AFTER,
    I_BINDS,
    I_BINDS_END,
    I_BUFFER,
    I_KLEENE,
    I_SIZE,
    ITEM,
    LIMIT,
    MORE_KEYS,
    NOTHING,
    O_CHAIN,
    O_LISTS,
    O_ORDER,
    O_SIZE,
    OPEN,
    OVER,
    P_ITEMS,
    P_ITEMS_END,
    P_SIZE,
    PLAN,
    POSITION,
    R_HEAD,
    R_NOW,
    R_SIZE,
    R_TAIL,
    R_UNTIL,
    REPEATING,
    ROOM,
    ROW,
    SEVERAL,
    STAGE,
    T_PLANS,
    T_PLANS_END,
    TESTED,
    TRIGGER,
    WAIT,
)
from spaseq.matching.lazy.compiled._kernel_search import completed, search, take
from spaseq.matching.lazy.compiled._kernel_waiting import drop_old, next_waiting, resume


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
    t: Ints, c: Ints, m: Ints, f: Floats, r: Ints, rows: Ints, ordered: Floats, width: int, floats: int,
    numbers: Floats, codes: Codes,
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
    c[TRIGGER] = c[ITEM] if is_kleene else NOTHING
    if not bind(t, m, rows, record, t[item + I_BINDS], t[item + I_BINDS_END], row, not is_kleene):
        return
    bound = 0
    if not is_kleene:
        m[FRAMES + F_ITEM], m[FRAMES + F_ROW] = c[ITEM], c[ROW]
        put(m, rows, c[ITEM], row, True)
        bound = 1 << c[ITEM]
        if not completed(
            t, c, m, f, r, rows, ordered, FRAMES, width, 0, floats, c[ITEM], bound, numbers, codes
        ):
            return
    new = FRAMES + width
    m[new + F_PHASE], m[new + F_ITEM], m[new + F_BOUND] = OPEN, NOTHING, bound
    c[DEPTH] = 1


@part
def _chain(
    t: Ints, c: Ints, m: Ints, f: Floats, r: Ints, rows: Ints, ordered: Floats, width: int, floats: int,
    order: Ints, waits: Ints, size: int, numbers: Floats, codes: Codes,
) -> None:  # fmt: skip
    """Extends a partial match that waited, or begins one, with a row as the next item of a chain."""
    chain = (c[PLAN] - t[T_PLANS]) // P_SIZE * O_SIZE
    level = (t[c[PLAN] + P_ITEMS_END] - t[c[PLAN] + P_ITEMS]) // I_SIZE - 1 - c[ITEM]
    i = order[chain + O_ORDER + level]
    at = FRAMES + (level + 1) * width
    m[FRAMES + F_ITEM], m[FRAMES + F_PHASE], m[FRAMES + F_BOUND], m[FRAMES + F_UNSURE] = NOTHING, OVER, 0, 0
    if level == 0:
        clear(t, m, f, FRAMES + FRAME, width - FRAME, sums_of(floats, 0))
        m[at + F_BOUND] = 0
    else:
        resume(t, c, m, width, level + 1, order[chain + O_LISTS] + level, waits, size)
    m[at + F_ITEM], m[at + F_ROW], m[at + F_COUNT], m[at + F_PHASE] = i, c[ROW], 1, OVER
    if take(t, c, m, f, r, rows, ordered, at, width, level + 1, floats, numbers, codes):
        new = at + width
        m[new + F_PHASE], m[new + F_ITEM] = OPEN, NOTHING
        m[new + F_BOUND] = m[at + F_BOUND] | 1 << i
        c[DEPTH] = level + 2


@part
def _next_row(t: Ints, c: Ints, r: Ints, item: int) -> bool:
    """Goes on to the next row of the event for an item; False if there is none."""
    g = t[item + I_BUFFER]
    c[ROW] = max(c[ROW] + 1, r[g * R_SIZE + R_NOW])
    return bool(c[ROW] < r[g * R_SIZE + R_UNTIL])


@part
def _next_of_tree(t: Ints, c: Ints, r: Ints) -> bool:
    """Goes on to the next row of the event that may be the last of a match; False if there is none."""
    items = t[c[PLAN] + P_ITEMS]
    count = (t[c[PLAN] + P_ITEMS_END] - items) // I_SIZE
    while c[ITEM] < count:
        item = items + c[ITEM] * I_SIZE
        if t[item + I_AFTER] == 0 and not c[REPEATING] and _next_row(t, c, r, item):
            return True
        c[ITEM] += 1
        c[ROW] = -1
    return False


@part
def _next_of_chain(
    t: Ints, c: Ints, r: Ints, ordered: Floats, order: Ints, lists: Ints, waits: Ints, spans: Floats,
    size: int, axis: int,
) -> bool:  # fmt: skip
    """Goes on to the next partial match that the event may extend, from the longest on; False at the end.

    Those that an event makes are longer than the one it extends, so that it is shown to none of them.
    """
    items = t[c[PLAN] + P_ITEMS]
    chain = (c[PLAN] - t[T_PLANS]) // P_SIZE * O_SIZE
    count = (t[c[PLAN] + P_ITEMS_END] - items) // I_SIZE
    while c[ITEM] < count:
        level = count - 1 - c[ITEM]
        item = items + order[chain + O_ORDER + level] * I_SIZE
        g = t[item + I_BUFFER]
        number = order[chain + O_LISTS] + level
        if r[g * R_SIZE + R_NOW] < r[g * R_SIZE + R_UNTIL]:
            if c[ROW] == -1:
                c[ROW] = r[g * R_SIZE + R_NOW]
                if level:
                    drop_old(c, lists, waits, spans, size, number, axis - c[LIMIT])
            some = 1 if level == 0 else lists[number]
            while some and c[ROW] < r[g * R_SIZE + R_UNTIL]:
                c[WAIT] += 1
                if level:
                    c[WAIT] = next_waiting(t, c, r, ordered, order, lists, spans, chain, level)
                if c[WAIT] < some:
                    return True
                c[WAIT] = -1
                c[ROW] += 1
        c[ITEM] += 1
        c[ROW] = c[WAIT] = -1
    return False


@part
def _next_trigger(
    t: Ints, c: Ints, r: Ints, ordered: Floats, order: Ints, lists: Ints, waits: Ints, spans: Floats,
    size: int, axis: int,
) -> bool:  # fmt: skip
    """Goes on to the next thing that an event may do; False if there is none."""
    while c[PLAN] < t[T_PLANS_END]:
        if order[(c[PLAN] - t[T_PLANS]) // P_SIZE * O_SIZE + O_CHAIN]:
            if _next_of_chain(t, c, r, ordered, order, lists, waits, spans, size, axis):
                return True
        elif _next_of_tree(t, c, r):
            return True
        c[PLAN] += P_SIZE
        c[ITEM], c[ROW], c[WAIT] = 0, -1, -1
    return False


@part
def _look(
    t: Ints, c: Ints, m: Ints, f: Floats, r: Ints, rows: Ints, ordered: Floats, index: Ints, width: int,
    floats: int, order: Ints, lists: Ints, waits: Ints, spans: Floats, size: int, found: Ints, choices: Ints,
    e: int, axis: int, numbers: Floats, codes: Codes,
) -> int:  # fmt: skip
    """Does all that an event may do, from where the last call stopped."""
    while True:
        if c[DEPTH] >= 0:
            status = search(
                t, c, m, f, r, rows, ordered, index, width, floats, order, lists, waits, spans, size, found,
                choices, e, numbers, codes,
            )  # fmt: skip
            if status != DONE:
                return status
        if not _next_trigger(t, c, r, ordered, order, lists, waits, spans, size, axis):
            return DONE
        if order[(c[PLAN] - t[T_PLANS]) // P_SIZE * O_SIZE + O_CHAIN]:
            c[TRIGGER] = NOTHING
            _chain(t, c, m, f, r, rows, ordered, width, floats, order, waits, size, numbers, codes)
        else:
            _begin(t, c, m, f, r, rows, ordered, width, floats, numbers, codes)


@part
def _run(
    t: Ints, c: Ints, m: Ints, f: Floats, r: Ints, rows: Ints, ordered: Floats, index: Ints, b: Ints,
    width: int, floats: int, order: Ints, lists: Ints, waits: Ints, spans: Floats, size: int, found: Ints,
    choices: Ints, numbers: Floats, codes: Codes,
) -> int:  # fmt: skip
    """See ``run``; all arrays as pointers, which a call passes in a register."""
    while c[EVENT] < b[B_SIZE]:
        e = c[EVENT]
        axis = b[b[B_AXIS] + e]
        if c[STAGE] == 0:
            expire(t, c, r, rows, index, axis)
            if lacks_room(t, r, b, e):
                return ROOM
            if lacks_entries(t, c, b, e):
                return MORE_KEYS
            if not append(t, c, r, rows, ordered, index, m, b, e, numbers, codes):
                c[EVENT] = e + 1
                continue
            _start(t, c, b[B_START] + e)
        status = _look(
            t, c, m, f, r, rows, ordered, index, width, floats, order, lists, waits, spans, size, found,
            choices, e, axis, numbers, codes,
        )  # fmt: skip
        if status != DONE:
            return status
        c[STAGE] = 0
        c[EVENT] = e + 1
    return DONE


@part
def _start(t: Ints, c: Ints, position: int) -> None:
    """An event begins to be looked at."""
    c[AT] = position
    c[PLAN], c[ITEM], c[ROW], c[WAIT], c[DEPTH] = t[T_PLANS], 0, -1, -1, -1
    c[STAGE] = 1


@part
def _repeat(
    t: Ints, c: Ints, m: Ints, f: Floats, r: Ints, rows: Ints, ordered: Floats, index: Ints, width: int,
    floats: int, order: Ints, lists: Ints, waits: Ints, spans: Floats, size: int, found: Ints, choices: Ints,
    numbers: Floats, codes: Codes,
) -> int:  # fmt: skip
    """See ``run``, if ``REPEATING``."""
    while True:
        if c[STAGE] == 0:
            position = FAR
            for g in range(t[N_GPMS]):
                at = g * R_SIZE
                r[at + R_NOW] = r[at + R_UNTIL]
                if r[at + R_UNTIL] < r[at + R_TAIL]:
                    position = min(position, rows[place(t, r, g, r[at + R_UNTIL]) + POSITION])
            if position == FAR:
                return DONE
            for g in range(t[N_GPMS]):
                at = g * R_SIZE
                while r[at + R_UNTIL] < r[at + R_TAIL] and (
                    rows[place(t, r, g, r[at + R_UNTIL]) + POSITION] == position
                ):
                    r[at + R_UNTIL] += 1
            _start(t, c, position)
        status = _look(
            t, c, m, f, r, rows, ordered, index, width, floats, order, lists, waits, spans, size, found,
            choices, 0, -FAR, numbers, codes,
        )  # fmt: skip
        if status != DONE:
            return status
        c[STAGE] = 0


@kernel
def run(
    t: Ints, c: Ints, m: Ints, f: Floats, r: Ints, rows: Ints, ordered: Floats, index: Ints, b: Ints,
    width: int, floats: int, order: Ints, lists: Ints, waits: Ints, spans: Floats, size: int, found: Ints,
    choices: Ints, numbers: Floats, codes: Codes,
) -> int:  # fmt: skip
    """Takes the events of a batch, from where the last call stopped; says what it wants more of, if anything.

    If ``REPEATING``, looks at all events in the buffers again instead, lets their partial matches wait, and
    finds no matches; ``R_UNTIL`` is at the beginnings of the buffers at first. Of the frames, each has
    ``width`` integers and ``floats`` floats; of what waits, each has ``size``.
    """
    if c[REPEATING]:
        return _repeat(
            pointer(t), pointer(c), pointer(m), pointer(f), pointer(r), pointer(rows), pointer(ordered),
            pointer(index), width, floats, pointer(order), pointer(lists), pointer(waits), pointer(spans),
            size, pointer(found), pointer(choices), pointer(numbers), pointer(codes),
        )  # fmt: skip
    return _run(
        pointer(t), pointer(c), pointer(m), pointer(f), pointer(r), pointer(rows), pointer(ordered),
        pointer(index), pointer(b), width, floats, pointer(order), pointer(lists), pointer(waits),
        pointer(spans), size, pointer(found), pointer(choices), pointer(numbers), pointer(codes),
    )  # fmt: skip


@kernel
def drop_all_old(c: Ints, lists: Ints, waits: Ints, spans: Floats, size: int, least: int) -> None:
    """Takes out all partial matches that begin before a place on the window's axis."""
    for number in range(len(lists)):
        drop_old(pointer(c), pointer(lists), pointer(waits), pointer(spans), size, number, least)


@kernel
def reindex(t: Ints, c: Ints, m: Ints, r: Ints, rows: Ints, index: Ints) -> None:
    """Enters all rows in an empty index."""
    c[ENTRIES] = 0
    for g in range(t[N_GPMS]):
        for number in range(r[g * R_SIZE + R_HEAD], r[g * R_SIZE + R_TAIL]):
            enter(
                pointer(t),
                pointer(c),
                pointer(r),
                pointer(rows),
                pointer(index),
                pointer(m),
                g,
                number,
            )
