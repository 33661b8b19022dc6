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
from spaseq.matching.lazy.compiled._kernel_layout import BOUNDS, NOTHING
from spaseq.matching.lazy.records import (
    absence,
    binding,
    condition,
    counter,
    iteration,
    moment,
    plan,
    ring,
    stored,
)


@inlined
def sums_of(floats: int, depth: int) -> int:
    """Return where the sums of a frame begin, after the stack of the conditions."""
    return 1 + 2 * DEEPEST + depth * floats


@part
def copy(m: Ints, f: Floats, to: int, source: int, size: int, sums: int, from_sums: int, floats: int) -> None:
    """Copy the bindings of a partial match."""
    for i in range(size):
        m[to + i] = m[source + i]
    for i in range(floats - BOUNDS):
        f[sums + i] = f[from_sums + i]


@part
def clear(t: Ints, m: Ints, f: Floats, record: int, size: int, sums: int) -> None:
    """Clear the bindings."""
    for i in range(size):
        m[record + i] = 0
    number = size - t[N_SLOTS] - 2 * t[N_KLEENES]
    for j in range(number):
        a = t[AGGREGATES] + j * A_SIZE
        if t[a + A_KIND] == ACC_SUM:
            clear_sum(f, sums + t[a + A_SUM])


@part
def bind(t: Ints, m: Ints, rows: Ints, record: int, begin: int, end: int, at: int, own_too: bool) -> bool:
    """Bind the values of a row; return False if it disagrees. ``own_too``: also the iteration's own
    variables.
    """
    for i in range(begin, end, binding.SIZE):
        slot = record + binding.slot(t, i)
        value = stored.value(rows, at, binding.place(t, i))
        if binding.is_own(t, i):
            if own_too:
                m[slot] = MANY if stored.is_one_of_several(rows, at) else value
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
    """Complete an iteration: aggregates take its values."""
    w = record - SLOTS
    completed = record + t[N_SLOTS] + t[N_KLEENES] + iteration.number(t, kleene)
    for j in range(iteration.aggregates(t, kleene), iteration.aggregates_end(t, kleene)):
        fold(t, m, f, w, sums, j, numbers, codes)
    m[completed] += 1
    if not last:
        for i in range(iteration.own(t, kleene), iteration.own_end(t, kleene)):
            m[record + t[i]] = 0


@part
def meets(
    t: Ints, m: Ints, f: Floats, record: int, sums: int, begin: int, end: int, bound: int, numbers: Floats,
    codes: Codes,
) -> int:  # fmt: skip
    """Return whether the conditions hold for which all items are there."""
    verdict = TRUE
    for i in range(begin, end, condition.SIZE):
        if condition.needs(t, i) & ~bound:
            continue
        machine = RunMachine(t, m, f, m, numbers, codes)
        found = holds(machine, 0, condition.code(t, i), condition.code_end(t, i), record - SLOTS, sums, 0)
        if found <= FALSE:
            return FALSE
        if found == UNKNOWN:
            verdict = UNKNOWN
    return verdict


@inlined
def item_place(i: int) -> int:
    """Return where the time of an item is."""
    return moment.BEGIN + i * moment.SIZE


@inlined
def _put(m: Ints, rows: Ints, at: int, row: int) -> None:
    moment.set_position(m, at, stored.position(rows, row))
    moment.set_time(m, at, stored.time(rows, row))
    moment.set_stream(m, at, stored.stream(rows, row))


@part
def put(m: Ints, rows: Ints, i: int, row: int, first: bool) -> None:
    """Set a row's event as the last one of an item, and perhaps as the first one."""
    at = item_place(i)
    _put(m, rows, at + moment.LAST, row)
    if first:
        _put(m, rows, at + moment.FIRST, row)


@part
def apart(m: Ints, items: int, end: int, time: int, stream: int) -> bool:
    """Return whether an event, which is before or after these items by position, also precedes or follows
    them.

    Events of one time are ordered only within a stream. ``end``: which of an item's events is the nearest.
    """
    i = 0
    while items:
        if items & 1:
            at = item_place(i) + end
            if moment.time(m, at) == time and moment.stream(m, at) != stream:
                return False
        items >>= 1
        i += 1
    return True


@part
def latest(m: Ints, items: int, low: int) -> int:
    """Return the position of the last of these items, or ``low``."""
    i = 0
    while items:
        if items & 1:
            low = max(low, moment.position(m, item_place(i) + moment.LAST))
        items >>= 1
        i += 1
    return low


@part
def earliest(m: Ints, items: int, high: int) -> int:
    """Return the position of the first of these items, or ``high``."""
    i = 0
    while items:
        if items & 1:
            high = min(high, moment.position(m, item_place(i) + moment.FIRST))
        items >>= 1
        i += 1
    return high


@part
def absent(
    t: Ints, c: Ints, m: Ints, f: Floats, r: Ints, rows: Ints, ordered: Floats, p: int, i: int, bound: int,
    record: int, size: int, sums: int, floats: int, spare: int, spare_sums: int, numbers: Floats,
    codes: Codes,
) -> int:  # fmt: skip
    """Return whether forbidden events are absent, as far as this can be decided once item ``i`` is complete.

    ``spare`` is room for a record.
    """
    verdict = TRUE
    for h in range(plan.checks(t, p), plan.checks_end(t, p), absence.SIZE):
        needs = absence.needs(t, h)
        if needs & ~bound or not needs >> i & 1:
            continue
        g = absence.gpm(t, h)
        after, before = absence.after(t, h), absence.before(t, h)
        high = earliest(m, before, LATEST)
        number = first_after(t, r, rows, g, latest(m, after, -1) + 1)
        end = first_after(t, r, rows, g, high)
        column = bounded_column(t, absence.ranges(t, h), absence.ranges_end(t, h), bound)
        limits = spare_sums + floats - BOUNDS
        doubles = 0
        if column != NOTHING:
            doubles = column_of(t, r, g, column)
            set_bounds(
                t, m, f, absence.ranges(t, h), absence.ranges_end(t, h), bound, column, record, limits,
                numbers, codes,
            )  # fmt: skip
        mask = ring.mask(r, g)
        while number < end:
            at, value = place(t, r, g, number), ordered[doubles + (number & mask)]
            number += 1
            if column != NOTHING and beyond(value, f[limits], f[limits + 1]):
                continue
            if not c[counter.SINGLE]:
                time, stream = stored.time(rows, at), stored.stream(rows, at)
                if not apart(m, after, moment.LAST, time, stream) or not apart(
                    m, before, moment.FIRST, time, stream
                ):
                    continue
            c[counter.TESTED] += 1
            copy(m, f, spare, record, size, spare_sums, sums, floats)
            # Variables that need not agree have the row's own values in its conditions.
            for j in range(absence.binds(t, h), absence.binds_end(t, h), binding.SIZE):
                if binding.is_own(t, j):
                    m[spare + binding.slot(t, j)] = stored.value(rows, at, binding.place(t, j))
            if not bind(t, m, rows, spare, absence.binds(t, h), absence.binds_end(t, h), at, False):
                continue
            machine = RunMachine(t, m, f, m, numbers, codes)
            found = holds(
                machine, 0, absence.code(t, h), absence.code_end(t, h), spare - SLOTS, spare_sums, 0
            )
            if found <= FALSE:
                continue
            if found == TRUE and absence.is_sure(t, h):
                return FALSE
            verdict = UNKNOWN
    return verdict
