"""The search for missing items of a partial match: the tree NFA, and the steps of a chain.

Each frame takes rows for one item; a Kleene's iterations are frames of one item, one after the other. The
whole state of a search is in arrays, so that it can stop for more room and continue.
"""

from __future__ import annotations

from spaseq._jit import part
from spaseq.matching.filters._kernel_values import FALSE, UNKNOWN, Ints
from spaseq.matching.lazy.compiled._kernel_bind import (
    absent,
    apart,
    bind,
    copy,
    earliest,
    end_iteration,
    meets,
    put,
)
from spaseq.matching.lazy.compiled._kernel_buffers import row_at
from spaseq.matching.lazy.compiled._kernel_choice import bound_rows, choose, find_rows, next_row
from spaseq.matching.lazy.compiled._kernel_layout import (
    DEEPER,
    DONE,
    FULL,
    MORE_WAITS,
    NOTHING,
    T_KEYS,
    T_KEYS_END,
    LazyMachine,
    chain_of,
    item_at,
    item_count,
    limits_of,
    open_frame,
    sums_of,
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
def completed(m: LazyMachine, at: int, d: int, i: int, bound: int) -> bool:
    """Return whether a partial match is valid now that item ``i`` is complete; its record is that of frame
    ``d``.
    """
    item = item_at(m, i)
    record, sums = at + frame.SIZE, sums_of(m, d)
    verdict = meets(
        m, record, sums, element.conditions(m.tables, item), element.conditions_end(m.tables, item), bound
    )
    if verdict == FALSE:
        return False
    nothing = absent(m, i, bound, record, sums)
    if verdict == UNKNOWN or nothing == UNKNOWN:
        frame.set_is_unsure(m.frames, at, 1)
    return nothing != FALSE


@part
def take(m: LazyMachine, at: int, d: int) -> bool:
    """Add a frame's row to the partial match of the frame before it; return False if it does not fit."""
    t = m.tables
    i, count, bound = frame.item(m.frames, at), frame.count(m.frames, at), frame.bound(m.frames, at)
    item = item_at(m, i)
    row = row_at(m, item, frame.row(m.frames, at))
    time, stream = stored.time(m.rows, row), stored.stream(m.rows, row)
    m.counters[counter.TESTED] += 1
    before, after = bound & element.before(t, item), bound & element.after(t, item)
    if not m.counters[counter.SINGLE]:
        if not apart(m.frames, before, moment.LAST, time, stream) or not apart(
            m.frames, after, moment.FIRST, time, stream
        ):
            return False
        if count > 1:
            previous = row_at(m, item, frame.row(m.frames, at - m.width))
            if stored.time(m.rows, previous) == time and stored.stream(m.rows, previous) != stream:
                return False
    others = bound & ~before & ~after
    if others:
        for k in range(d):
            other = frame.BEGIN + k * m.width
            j = frame.item(m.frames, other)
            if j != NOTHING and others >> j & 1:
                taken = row_at(m, item_at(m, j), frame.row(m.frames, other))
                if stored.position(m.rows, taken) == stored.position(m.rows, row):
                    return False
    record, sums = at + frame.SIZE, sums_of(m, d)
    copy(m, record, record - m.width, sums, sums - m.floats)
    frame.set_is_unsure(
        m.frames, at, frame.is_unsure(m.frames, at - m.width) | stored.is_one_of_several(m.rows, row)
    )
    if count > 1:
        end_iteration(m, record, sums, element.kleene(t, item), False)
    if not bind(t, m.frames, m.rows, record, element.binds(t, item), element.binds_end(t, item), row, True):
        return False
    put(m.frames, m.rows, i, row, count == 1)
    if element.kleene(t, item):
        verdict = meets(m, record, sums, element.iteration(t, item), element.iteration_end(t, item), -1)
        if verdict == UNKNOWN:
            frame.set_is_unsure(m.frames, at, 1)
        return verdict != FALSE
    return completed(m, at, d, i, bound | 1 << i)


@part
def leave(m: LazyMachine, at: int, d: int) -> bool:
    """End a Kleene with the iteration of frame ``d``, and write the result to the next frame; return False if
    it may not end.
    """
    i = frame.item(m.frames, at)
    item = item_at(m, i)
    if frame.count(m.frames, at) < element.least(m.tables, item):
        return False
    if i == m.counters[counter.TRIGGER] and frame.row(m.frames, at) != m.counters[counter.ROW]:
        return False
    new = at + m.width
    sums = sums_of(m, d)
    copy(m, new + frame.SIZE, at + frame.SIZE, sums + m.floats, sums)
    end_iteration(m, new + frame.SIZE, sums + m.floats, element.kleene(m.tables, item), True)
    frame.set_item(m.frames, new, NOTHING)
    frame.set_phase(m.frames, new, frame.OVER)
    frame.set_is_unsure(m.frames, new, frame.is_unsure(m.frames, at))
    frame.set_bound(m.frames, new, frame.bound(m.frames, at))
    return completed(m, new, d + 1, i, frame.bound(m.frames, at) | 1 << i)


@part
def go_on(m: LazyMachine, at: int, limits: int) -> bool:
    """Make the frame of a further iteration; return False if there is none."""
    t, c = m.tables, m.counters
    i, count = frame.item(m.frames, at), frame.count(m.frames, at)
    item = item_at(m, i)
    if element.most(t, item) >= 0 and count >= element.most(t, item):
        return False
    if i == c[counter.TRIGGER] and frame.row(m.frames, at) == c[counter.ROW]:
        return False
    new = at + m.width
    low = stored.position(m.rows, row_at(m, item, frame.row(m.frames, at)))
    high = earliest(m.frames, frame.bound(m.frames, at) & element.after(t, item), c[counter.AT])
    frame.set_item(m.frames, new, i)
    frame.set_count(m.frames, new, count + 1)
    frame.set_phase(m.frames, new, frame.ROWS)
    frame.set_bound(m.frames, new, frame.bound(m.frames, at))
    frame.set_is_trigger(m.frames, new, i == c[counter.TRIGGER])
    some = find_rows(m, new, at + frame.SIZE, item, low, high) > 0
    bound_rows(m, item, new, at + frame.SIZE, limits)
    return some or i == c[counter.TRIGGER]


@part
def emit(m: LazyMachine, at: int, e: int, p: Ints | None) -> bool:
    """Write the match of the frames up to ``at``; return False if there is no room for it."""
    t, c = m.tables, m.counters
    d = c[counter.DEPTH]
    if c[counter.FOUND] == c[counter.FOUND_ROOM] or c[counter.CHOICES] + d > c[counter.CHOICE_ROOM]:
        return False
    begin = c[counter.CHOICES]
    end = begin
    for k in range(d):
        taken = frame.BEGIN + k * m.width
        if frame.item(m.frames, taken) == NOTHING:
            continue
        item = item_at(m, frame.item(m.frames, taken))
        row = row_at(m, item, frame.row(m.frames, taken))
        to = end
        while to > begin and m.choices[3 * to - 3] > stored.position(m.rows, row):
            for i in range(3):
                m.choices[3 * to + i] = m.choices[3 * to - 3 + i]
            to -= 1
        m.choices[3 * to] = stored.position(m.rows, row)
        m.choices[3 * to + 1] = element.site(t, item)
        m.choices[3 * to + 2] = stored.batch_row(m.rows, row)
        end += 1
    one = c[counter.FOUND] * outcome.SIZE
    outcome.set_event(m.found, one, e)
    outcome.set_is_unsure(
        m.found, one, frame.is_unsure(m.frames, at - m.width) or not plan.is_exact(t, c[counter.PLAN])
    )
    outcome.set_begin(m.found, one, begin)
    outcome.set_end(m.found, one, end)
    key = one + outcome.KEY
    for slot in range(t[T_KEYS], t[T_KEYS_END]):
        m.found[key] = m.frames[at - m.width + frame.SIZE + t[slot]]
        key += 1
    c[counter.FOUND] += 1
    if p is not None:
        outcome.set_shown(m.found, one, p[passing.SHOWN])
        p[passing.EMITTED] += 1
    c[counter.CHOICES] = end
    return True


@part
def search(m: LazyMachine, e: int, p: Ints | None) -> int:
    """Continue a search until it is over, or needs more room."""
    t, c = m.tables, m.counters
    chain, everything = chain_of(m), (1 << item_count(m)) - 1
    while c[counter.DEPTH] >= 0:
        d = c[counter.DEPTH]
        at = frame.BEGIN + d * m.width
        limits = limits_of(m, d)
        if at + 4 * m.width > c[counter.FRAMES_END]:
            return DEEPER
        phase = frame.phase(m.frames, at)
        child = NOTHING
        if phase == frame.OPEN:
            if frame.bound(m.frames, at) == everything:
                if not c[counter.REPEATING] and not emit(m, at, e, p):
                    return FULL
                c[counter.DEPTH] = d - 1
            elif ordering.is_chain(m.orders, chain):
                i = ordering.item(m.orders, chain, d - 1)
                item = item_at(m, i)
                bound_rows(m, item, at, at - m.width + frame.SIZE, limits)
                if not element.after(t, item) & frame.bound(m.frames, at) and not wait(
                    m, at, limits, ordering.first_list(m.orders, chain) + d - 1
                ):
                    return MORE_WAITS
                frame.set_phase(m.frames, at, frame.ROWS)
                if not next_in_chain(m, at, i):
                    c[counter.DEPTH] = d - 1
            elif choose(m, at, at - m.width + frame.SIZE, limits):
                frame.set_phase(m.frames, at, frame.ROWS)
            else:
                c[counter.DEPTH] = d - 1
        elif phase == frame.ROWS:
            if not next_row(m, at, limits, p):
                c[counter.DEPTH] = d - 1
            elif take(m, at, d):
                if element.kleene(t, item_at(m, frame.item(m.frames, at))):
                    frame.set_phase(m.frames, at, frame.LEAVING)
                else:
                    child = d + 1
        elif phase == frame.LEAVING:
            frame.set_phase(m.frames, at, frame.GOING_ON)
            if leave(m, at, d):
                child = d + 2
        elif phase == frame.GOING_ON:
            frame.set_phase(m.frames, at, frame.ROWS)
            if go_on(m, at, limits_of(m, d + 1)):
                c[counter.DEPTH] = d + 1
        else:
            c[counter.DEPTH] = d - 1
        if child != NOTHING:
            open_frame(m, child, frame.bound(m.frames, at) | 1 << frame.item(m.frames, at))
    return DONE
