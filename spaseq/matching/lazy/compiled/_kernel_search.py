"""The search for missing items of a partial match: the tree NFA, and the steps of a chain.

Each frame takes rows for one item; a Kleene's iterations are frames of one item, one after the other. The
whole state of a search is in arrays, so that it can stop for more room and continue.
"""

from __future__ import annotations

from spaseq._jit import part
from spaseq.matching.filters._kernel_values import FALSE, UNKNOWN, Codes, Floats, Ints
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
    BOUNDS,
    DEEPER,
    DONE,
    FULL,
    MORE_WAITS,
    NOTHING,
    T_KEYS,
    T_KEYS_END,
    T_PLANS,
)
from spaseq.matching.lazy.compiled._kernel_waiting import next_in_chain, wait
from spaseq.matching.lazy.records import (
    counter,
    element,
    frame,
    moment,
    ordering,
    outcome,
    passing,
    plan,
    stored,
)


@part
def completed(
    t: Ints, c: Ints, m: Ints, f: Floats, r: Ints, rows: Ints, ordered: Floats, at: int, width: int, d: int,
    floats: int, i: int, bound: int, numbers: Floats, codes: Codes,
) -> bool:  # fmt: skip
    """Return whether a partial match is valid now that item ``i`` is complete; the record is that
    of frame d.
    """
    item = plan.items(t, c[counter.PLAN]) + i * element.SIZE
    record, sums = at + frame.SIZE, sums_of(floats, d)
    verdict = meets(
        t, m, f, record, sums, element.conditions(t, item), element.conditions_end(t, item), bound, numbers,
        codes,
    )  # fmt: skip
    if verdict == FALSE:
        return False
    size = width - frame.SIZE
    nothing = absent(
        t, c, m, f, r, rows, ordered, c[counter.PLAN], i, bound, record, size, sums, floats, record + width,
        sums + floats, numbers, codes,
    )  # fmt: skip
    if verdict == UNKNOWN or nothing == UNKNOWN:
        frame.set_is_unsure(m, at, 1)
    return nothing != FALSE


@part
def take(
    t: Ints, c: Ints, m: Ints, f: Floats, r: Ints, rows: Ints, ordered: Floats, at: int, width: int, d: int,
    floats: int, numbers: Floats, codes: Codes,
) -> bool:  # fmt: skip
    """Add a frame's row to the partial match of the frame before it; return False if it does not fit."""
    i, count, bound = frame.item(m, at), frame.count(m, at), frame.bound(m, at)
    item = plan.items(t, c[counter.PLAN]) + i * element.SIZE
    row = place(t, r, element.gpm(t, item), frame.row(m, at))
    position, time, stream = stored.position(rows, row), stored.time(rows, row), stored.stream(rows, row)
    c[counter.TESTED] += 1
    before, after = bound & element.before(t, item), bound & element.after(t, item)
    if not c[counter.SINGLE]:
        if not apart(m, before, moment.LAST, time, stream) or not apart(m, after, moment.FIRST, time, stream):
            return False
        if count > 1:
            previous = place(t, r, element.gpm(t, item), frame.row(m, at - width))
            if stored.time(rows, previous) == time and stored.stream(rows, previous) != stream:
                return False
    others = bound & ~before & ~after
    if others:
        for k in range(d):
            other = frame.BEGIN + k * width
            j = frame.item(m, other)
            if j != NOTHING and others >> j & 1:
                g = element.gpm(t, plan.items(t, c[counter.PLAN]) + j * element.SIZE)
                if stored.position(rows, place(t, r, g, frame.row(m, other))) == position:
                    return False
    record, sums = at + frame.SIZE, sums_of(floats, d)
    copy(m, f, record, record - width, width - frame.SIZE, sums, sums - floats, floats)
    frame.set_is_unsure(m, at, frame.is_unsure(m, at - width) | stored.is_one_of_several(rows, row))
    if count > 1:
        end_iteration(t, m, f, record, sums, element.kleene(t, item), False, numbers, codes)
    if not bind(t, m, rows, record, element.binds(t, item), element.binds_end(t, item), row, True):
        return False
    put(m, rows, i, row, count == 1)
    if element.kleene(t, item):
        verdict = meets(
            t, m, f, record, sums, element.iteration(t, item), element.iteration_end(t, item), -1, numbers,
            codes,
        )  # fmt: skip
        if verdict == UNKNOWN:
            frame.set_is_unsure(m, at, 1)
        return verdict != FALSE
    return completed(
        t, c, m, f, r, rows, ordered, at, width, d, floats, i, bound | 1 << i, numbers, codes
    )  # fmt: skip


@part
def leave(
    t: Ints, c: Ints, m: Ints, f: Floats, r: Ints, rows: Ints, ordered: Floats, at: int, width: int, d: int,
    floats: int, numbers: Floats, codes: Codes,
) -> bool:  # fmt: skip
    """End a Kleene with the iteration of frame d, in the frame after it; return False if that
    does not fit.
    """
    i = frame.item(m, at)
    item = plan.items(t, c[counter.PLAN]) + i * element.SIZE
    if frame.count(m, at) < element.least(t, item):
        return False
    if i == c[counter.TRIGGER] and frame.row(m, at) != c[counter.ROW]:
        return False
    new = at + width
    sums = sums_of(floats, d)
    copy(m, f, new + frame.SIZE, at + frame.SIZE, width - frame.SIZE, sums + floats, sums, floats)
    end_iteration(t, m, f, new + frame.SIZE, sums + floats, element.kleene(t, item), True, numbers, codes)
    frame.set_item(m, new, NOTHING)
    frame.set_phase(m, new, frame.OVER)
    frame.set_is_unsure(m, new, frame.is_unsure(m, at))
    frame.set_bound(m, new, frame.bound(m, at))
    bound = frame.bound(m, at) | 1 << i
    return completed(
        t, c, m, f, r, rows, ordered, new, width, d + 1, floats, i, bound, numbers, codes
    )  # fmt: skip


@part
def go_on(
    t: Ints, c: Ints, m: Ints, f: Floats, r: Ints, rows: Ints, index: Ints, at: int, width: int, limits: int,
    numbers: Floats, codes: Codes,
) -> bool:  # fmt: skip
    """Make the frame of a further iteration; return False if there is none."""
    i, count = frame.item(m, at), frame.count(m, at)
    item = plan.items(t, c[counter.PLAN]) + i * element.SIZE
    if element.most(t, item) >= 0 and count >= element.most(t, item):
        return False
    if i == c[counter.TRIGGER] and frame.row(m, at) == c[counter.ROW]:
        return False
    new = at + width
    low = stored.position(rows, place(t, r, element.gpm(t, item), frame.row(m, at)))
    high = earliest(m, frame.bound(m, at) & element.after(t, item), c[counter.AT])
    frame.set_item(m, new, i)
    frame.set_count(m, new, count + 1)
    frame.set_phase(m, new, frame.ROWS)
    frame.set_bound(m, new, frame.bound(m, at))
    frame.set_is_trigger(m, new, i == c[counter.TRIGGER])
    some = find_rows(t, c, m, r, rows, index, new, at + frame.SIZE, item, low, high) > 0
    bound_rows(t, m, f, item, new, at + frame.SIZE, limits, numbers, codes)
    return some or i == c[counter.TRIGGER]


@part
def emit(
    t: Ints, c: Ints, m: Ints, r: Ints, rows: Ints, at: int, width: int, found: Ints, choices: Ints, e: int,
    p: Ints | None,
) -> bool:  # fmt: skip  # fmt: skip
    """Write the match of the frames up to ``at``; return False if there is no room for it."""
    d = c[counter.DEPTH]
    if c[counter.FOUND] == c[counter.FOUND_ROOM] or c[counter.CHOICES] + d > c[counter.CHOICE_ROOM]:
        return False
    begin = c[counter.CHOICES]
    end = begin
    items = plan.items(t, c[counter.PLAN])
    for k in range(d):
        taken = frame.BEGIN + k * width
        if frame.item(m, taken) == NOTHING:
            continue
        item = items + frame.item(m, taken) * element.SIZE
        row = place(t, r, element.gpm(t, item), frame.row(m, taken))
        to = end
        while to > begin and choices[3 * to - 3] > stored.position(rows, row):
            for i in range(3):
                choices[3 * to + i] = choices[3 * to - 3 + i]
            to -= 1
        choices[3 * to] = stored.position(rows, row)
        choices[3 * to + 1] = element.site(t, item)
        choices[3 * to + 2] = stored.batch_row(rows, row)
        end += 1
    one = c[counter.FOUND] * outcome.SIZE
    outcome.set_event(found, one, e)
    outcome.set_is_unsure(found, one, frame.is_unsure(m, at - width) or not plan.is_exact(t, c[counter.PLAN]))
    outcome.set_begin(found, one, begin)
    outcome.set_end(found, one, end)
    key = one + outcome.KEY
    for slot in range(t[T_KEYS], t[T_KEYS_END]):
        found[key] = m[at - width + frame.SIZE + t[slot]]
        key += 1
    c[counter.FOUND] += 1
    if p is not None:
        outcome.set_shown(found, one, p[passing.SHOWN])
        p[passing.EMITTED] += 1
    c[counter.CHOICES] = end
    return True


@part
def search(
    t: Ints, c: Ints, m: Ints, f: Floats, r: Ints, rows: Ints, ordered: Floats, index: Ints, width: int,
    floats: int, order: Ints, lists: Ints, waits: Ints, spans: Floats, size: int, found: Ints, choices: Ints,
    e: int, numbers: Floats, codes: Codes, p: Ints | None,
) -> int:  # fmt: skip
    """Continue a search until it is over, or needs more room."""
    items = plan.items(t, c[counter.PLAN])
    chain = (c[counter.PLAN] - t[T_PLANS]) // plan.SIZE * ordering.SIZE
    everything = (1 << ((plan.items_end(t, c[counter.PLAN]) - items) // element.SIZE)) - 1
    while c[counter.DEPTH] >= 0:
        d = c[counter.DEPTH]
        at = frame.BEGIN + d * width
        limits = sums_of(floats, d) + floats - BOUNDS
        if at + 4 * width > c[counter.FRAMES_END]:
            return DEEPER
        phase = frame.phase(m, at)
        child = NOTHING
        if phase == frame.OPEN:
            if frame.bound(m, at) == everything:
                if not c[counter.REPEATING] and not emit(
                    t, c, m, r, rows, at, width, found, choices, e, p
                ):  # fmt: skip
                    return FULL
                c[counter.DEPTH] = d - 1
            elif ordering.is_chain(order, chain):
                i = ordering.item(order, chain, d - 1)
                item = items + i * element.SIZE
                bound_rows(t, m, f, item, at, at - width + frame.SIZE, limits, numbers, codes)
                if not element.after(t, item) & frame.bound(m, at) and not wait(
                    c, m, f, r, rows, t, at, width, limits, ordering.first_list(order, chain) + d - 1, lists,
                    waits, spans, size,
                ):  # fmt: skip
                    return MORE_WAITS
                frame.set_phase(m, at, frame.ROWS)
                if not next_in_chain(t, c, m, r, rows, index, at, width, i):
                    c[counter.DEPTH] = d - 1
            elif choose(
                t, c, m, f, r, rows, index, at, width, at - width + frame.SIZE, limits, numbers, codes
            ):
                frame.set_phase(m, at, frame.ROWS)
            else:
                c[counter.DEPTH] = d - 1
        elif phase == frame.ROWS:
            if not next_row(t, c, m, f, r, rows, ordered, at, limits, p):
                c[counter.DEPTH] = d - 1
            elif take(t, c, m, f, r, rows, ordered, at, width, d, floats, numbers, codes):
                if element.kleene(t, items + frame.item(m, at) * element.SIZE):
                    frame.set_phase(m, at, frame.LEAVING)
                else:
                    child = d + 1
        elif phase == frame.LEAVING:
            frame.set_phase(m, at, frame.GOING_ON)
            if leave(t, c, m, f, r, rows, ordered, at, width, d, floats, numbers, codes):
                child = d + 2
        elif phase == frame.GOING_ON:
            frame.set_phase(m, at, frame.ROWS)
            if go_on(t, c, m, f, r, rows, index, at, width, limits + floats, numbers, codes):
                c[counter.DEPTH] = d + 1
        else:
            c[counter.DEPTH] = d - 1
        if child != NOTHING:
            new = frame.BEGIN + child * width
            frame.set_phase(m, new, frame.OPEN)
            frame.set_item(m, new, NOTHING)
            frame.set_bound(m, new, frame.bound(m, at) | 1 << frame.item(m, at))
            c[counter.DEPTH] = child
    return DONE
