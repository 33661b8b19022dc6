"""The bindings of a partial match: adding an event, and testing conditions and absences."""

from __future__ import annotations

from spaseq._jit import inlined, part
from spaseq._kernel_events import LATEST
from spaseq.matching.filters._kernel_aggregates import clear_sum, fold
from spaseq.matching.filters._kernel_machine import holds
from spaseq.matching.filters._kernel_values import (
    A_KIND,
    A_SIZE,
    A_SUM,
    ACC_SUM,
    AGGREGATES,
    FALSE,
    MANY,
    N_KLEENES,
    N_SLOTS,
    SLOTS,
    TRUE,
    UNKNOWN,
    Ints,
    RunMachine,
)
from spaseq.matching.lazy.compiled._kernel_buffers import (
    beyond,
    bounded_column,
    column_of,
    first_after,
    place,
    set_bounds,
)
from spaseq.matching.lazy.compiled._kernel_layout import BOUNDS, NOTHING, LazyMachine, sums_of
from spaseq.matching.lazy.records import (
    absence,
    binding,
    condition,
    counter,
    frame,
    iteration,
    moment,
    plan,
    ring,
    stored,
)


@part
def copy(m: LazyMachine, to: int, source: int, sums: int, from_sums: int) -> None:
    """Copy the bindings of a partial match."""
    for i in range(m.width - frame.SIZE):
        m.frames[to + i] = m.frames[source + i]
    for i in range(m.floats - BOUNDS):
        m.sums[sums + i] = m.sums[from_sums + i]


@part
def clear(m: LazyMachine) -> None:
    """Clear the bindings of the first frame."""
    t, sums = m.tables, sums_of(m, 0)
    size = m.width - frame.SIZE
    for i in range(size):
        m.frames[frame.BEGIN + frame.SIZE + i] = 0
    number = size - t[N_SLOTS] - 2 * t[N_KLEENES]
    for j in range(number):
        a = t[AGGREGATES] + j * A_SIZE
        if t[a + A_KIND] == ACC_SUM:
            clear_sum(m.sums, sums + t[a + A_SUM])


@part
def bind(
    t: Ints, frames: Ints, rows: Ints, record: int, begin: int, end: int, at: int, own_too: bool
) -> bool:
    """Bind the values of a row; return False if it disagrees. ``own_too``: also the iteration's own
    variables.
    """
    for i in range(begin, end, binding.SIZE):
        slot = record + binding.slot(t, i)
        value = stored.value(rows, at, binding.place(t, i))
        if binding.is_own(t, i):
            if own_too:
                frames[slot] = MANY if stored.is_one_of_several(rows, at) else value
        elif value != 0:
            if frames[slot] == 0:
                frames[slot] = value
            elif frames[slot] != value:
                return False
    return True


@part
def end_iteration(m: LazyMachine, record: int, sums: int, kleene: int, last: bool) -> None:
    """Complete an iteration: aggregates take its values."""
    t = m.tables
    w = record - SLOTS
    completed = record + t[N_SLOTS] + t[N_KLEENES] + iteration.number(t, kleene)
    for j in range(iteration.aggregates(t, kleene), iteration.aggregates_end(t, kleene)):
        fold(t, m.frames, m.sums, w, sums, j, m.numbers, m.codes)
    m.frames[completed] += 1
    if not last:
        for i in range(iteration.own(t, kleene), iteration.own_end(t, kleene)):
            m.frames[record + t[i]] = 0


@inlined
def _holds(m: LazyMachine, code: int, end: int, record: int, sums: int) -> int:
    """Return the verdict of a program on the bindings of a record."""
    machine = RunMachine(m.tables, m.frames, m.sums, m.frames, m.numbers, m.codes)
    return holds(machine, 0, code, end, record - SLOTS, sums, 0)


@part
def meets(m: LazyMachine, record: int, sums: int, begin: int, end: int, bound: int) -> int:
    """Return whether the conditions hold that need only ``bound`` items."""
    t = m.tables
    verdict = TRUE
    for i in range(begin, end, condition.SIZE):
        if condition.needs(t, i) & ~bound:
            continue
        found = _holds(m, condition.code(t, i), condition.code_end(t, i), record, sums)
        if found <= FALSE:
            return FALSE
        if found == UNKNOWN:
            verdict = UNKNOWN
    return verdict


@inlined
def item_place(i: int) -> int:
    """Return the place of an item's moment."""
    return moment.BEGIN + i * moment.SIZE


@inlined
def _put(frames: Ints, rows: Ints, at: int, row: int) -> None:
    moment.set_position(frames, at, stored.position(rows, row))
    moment.set_time(frames, at, stored.time(rows, row))
    moment.set_stream(frames, at, stored.stream(rows, row))


@part
def put(frames: Ints, rows: Ints, i: int, row: int, first: bool) -> None:
    """Set a row's event as the last one of an item, and perhaps as the first one."""
    at = item_place(i)
    _put(frames, rows, at + moment.LAST, row)
    if first:
        _put(frames, rows, at + moment.FIRST, row)


@part
def apart(frames: Ints, items: int, end: int, time: int, stream: int) -> bool:
    """Return whether an event that is before or after these items by position also precedes or follows them
    in time.

    Events of one time are ordered only within a stream. ``end``: which of an item's events is the nearest.
    """
    i = 0
    while items:
        if items & 1:
            at = item_place(i) + end
            if moment.time(frames, at) == time and moment.stream(frames, at) != stream:
                return False
        items >>= 1
        i += 1
    return True


@part
def latest(frames: Ints, items: int, low: int) -> int:
    """Return the position of the last of these items, or ``low``."""
    i = 0
    while items:
        if items & 1:
            low = max(low, moment.position(frames, item_place(i) + moment.LAST))
        items >>= 1
        i += 1
    return low


@part
def earliest(frames: Ints, items: int, high: int) -> int:
    """Return the position of the first of these items, or ``high``."""
    i = 0
    while items:
        if items & 1:
            high = min(high, moment.position(frames, item_place(i) + moment.FIRST))
        items >>= 1
        i += 1
    return high


@part
def absent(m: LazyMachine, i: int, bound: int, record: int, sums: int) -> int:
    """Return whether forbidden events are absent, as far as this can be decided once item ``i`` is complete.

    The next frame is used as scratch space for a record.
    """
    t, p = m.tables, m.counters[counter.PLAN]
    spare, spare_sums = record + m.width, sums + m.floats
    limits = spare_sums + m.floats - BOUNDS
    verdict = TRUE
    for h in range(plan.checks(t, p), plan.checks_end(t, p), absence.SIZE):
        needs = absence.needs(t, h)
        if needs & ~bound or not needs >> i & 1:
            continue
        g = absence.gpm(t, h)
        after, before = absence.after(t, h), absence.before(t, h)
        high = earliest(m.frames, before, LATEST)
        number = first_after(t, m.rings, m.rows, g, latest(m.frames, after, -1) + 1)
        end = first_after(t, m.rings, m.rows, g, high)
        column = bounded_column(t, absence.ranges(t, h), absence.ranges_end(t, h), bound)
        doubles = 0
        if column != NOTHING:
            doubles = column_of(t, m.rings, g, column)
            set_bounds(m, absence.ranges(t, h), absence.ranges_end(t, h), bound, column, record, limits)
        mask = ring.mask(m.rings, g)
        while number < end:
            at, value = place(t, m.rings, g, number), m.ordered[doubles + (number & mask)]
            number += 1
            if column != NOTHING and beyond(value, m.sums[limits], m.sums[limits + 1]):
                continue
            if not m.counters[counter.SINGLE]:
                time, stream = stored.time(m.rows, at), stored.stream(m.rows, at)
                if not apart(m.frames, after, moment.LAST, time, stream) or not apart(
                    m.frames, before, moment.FIRST, time, stream
                ):
                    continue
            m.counters[counter.TESTED] += 1
            copy(m, spare, record, spare_sums, sums)
            # In the row's conditions, variables that need not agree with the match have the row's own values.
            for j in range(absence.binds(t, h), absence.binds_end(t, h), binding.SIZE):
                if binding.is_own(t, j):
                    m.frames[spare + binding.slot(t, j)] = stored.value(m.rows, at, binding.place(t, j))
            if not bind(t, m.frames, m.rows, spare, absence.binds(t, h), absence.binds_end(t, h), at, False):
                continue
            found = _holds(m, absence.code(t, h), absence.code_end(t, h), spare, spare_sums)
            if found <= FALSE:
                continue
            if found == TRUE and absence.is_sure(t, h):
                return FALSE
            verdict = UNKNOWN
    return verdict
