"""The lazy kernel: events go into buffers, and an event that may be a match's last starts a search.

The search takes preceding events from the buffers, currently rarest first (the tree NFA of the paper, section
6), so that nothing is done while some element of the sequence has no event.
"""

from __future__ import annotations

from spaseq._jit import kernel, part
from spaseq._kernel_events import EARLIEST, LATEST, reach_before
from spaseq.matching.filters import batch
from spaseq.matching.filters._kernel_values import (
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
    DONE,
    MORE_KEYS,
    NOTHING,
    ROOM,
    T_PLANS,
    T_PLANS_END,
)
from spaseq.matching.lazy.compiled._kernel_passing import allow, pass_by, shows, spend
from spaseq.matching.lazy.compiled._kernel_search import completed, search, take
from spaseq.matching.lazy.compiled._kernel_waiting import drop_old, next_waiting, resume
from spaseq.matching.lazy.records import counter, element, frame, ordering, passing, plan, ring, stored


@part
def _lacks_some(t: Ints, c: Ints, r: Ints, rows: Ints) -> bool:
    """Return whether some item of a plan, other than the one that starts the search, has no event."""
    for i in range(plan.items(t, c[counter.PLAN]), plan.items_end(t, c[counter.PLAN]), element.SIZE):
        if i == plan.items(t, c[counter.PLAN]) + c[counter.ITEM] * element.SIZE:
            continue
        g = element.gpm(t, i)
        head = ring.head(r, g)
        if head == ring.tail(r, g) or stored.position(rows, place(t, r, g, head)) >= c[counter.AT]:
            return True
    return False


@part
def _begin(
    t: Ints, c: Ints, m: Ints, f: Floats, r: Ints, rows: Ints, ordered: Floats, width: int, floats: int,
    numbers: Floats, codes: Codes, p: Ints | None,
) -> None:  # fmt: skip
    """Begin a search with a row as the last event."""
    if _lacks_some(t, c, r, rows):
        return
    item = plan.items(t, c[counter.PLAN]) + c[counter.ITEM] * element.SIZE
    row = place(t, r, element.gpm(t, item), c[counter.ROW])
    c[counter.TESTED] += 1
    if p is not None:
        p[passing.SHOWN] = p[passing.SHARE]
    record = frame.BEGIN + frame.SIZE
    clear(t, m, f, record, width - frame.SIZE, sums_of(floats, 0))
    frame.set_phase(m, frame.BEGIN, frame.OVER)
    frame.set_item(m, frame.BEGIN, NOTHING)
    frame.set_count(m, frame.BEGIN, 1)
    frame.set_bound(m, frame.BEGIN, 0)
    frame.set_is_unsure(m, frame.BEGIN, stored.is_one_of_several(rows, row))
    is_kleene = element.kleene(t, item) != 0
    c[counter.TRIGGER] = c[counter.ITEM] if is_kleene else NOTHING
    if not bind(t, m, rows, record, element.binds(t, item), element.binds_end(t, item), row, not is_kleene):
        return
    bound = 0
    if not is_kleene:
        frame.set_item(m, frame.BEGIN, c[counter.ITEM])
        frame.set_row(m, frame.BEGIN, c[counter.ROW])
        put(m, rows, c[counter.ITEM], row, True)
        bound = 1 << c[counter.ITEM]
        if not completed(
            t, c, m, f, r, rows, ordered, frame.BEGIN, width, 0, floats, c[counter.ITEM], bound, numbers,
            codes,
        ):  # fmt: skip
            return
    new = frame.BEGIN + width
    frame.set_phase(m, new, frame.OPEN)
    frame.set_item(m, new, NOTHING)
    frame.set_bound(m, new, bound)
    c[counter.DEPTH] = 1


@part
def _chain(
    t: Ints, c: Ints, m: Ints, f: Floats, r: Ints, rows: Ints, ordered: Floats, width: int, floats: int,
    order: Ints, waits: Ints, size: int, numbers: Floats, codes: Codes, p: Ints | None,
) -> None:  # fmt: skip
    """Extend a waiting partial match, or begin one, with a row as the next item of a chain."""
    chain = (c[counter.PLAN] - t[T_PLANS]) // plan.SIZE * ordering.SIZE
    items, items_end = plan.items(t, c[counter.PLAN]), plan.items_end(t, c[counter.PLAN])
    level = (items_end - items) // element.SIZE - 1 - c[counter.ITEM]
    i = ordering.item(order, chain, level)
    at = frame.BEGIN + (level + 1) * width
    if p is not None:
        is_part = p[passing.SHARE] < passing.SURE
        p[passing.SHOWN] = shows(t, c, order, chain, level, p) if is_part else passing.SURE
    frame.set_item(m, frame.BEGIN, NOTHING)
    frame.set_phase(m, frame.BEGIN, frame.OVER)
    frame.set_bound(m, frame.BEGIN, 0)
    frame.set_is_unsure(m, frame.BEGIN, 0)
    if level == 0:
        clear(t, m, f, frame.BEGIN + frame.SIZE, width - frame.SIZE, sums_of(floats, 0))
        frame.set_bound(m, at, 0)
    else:
        resume(t, c, m, width, level + 1, ordering.first_list(order, chain) + level, waits, size)
    frame.set_item(m, at, i)
    frame.set_row(m, at, c[counter.ROW])
    frame.set_count(m, at, 1)
    frame.set_phase(m, at, frame.OVER)
    if take(t, c, m, f, r, rows, ordered, at, width, level + 1, floats, numbers, codes):
        new = at + width
        frame.set_phase(m, new, frame.OPEN)
        frame.set_item(m, new, NOTHING)
        frame.set_bound(m, new, frame.bound(m, at) | 1 << i)
        c[counter.DEPTH] = level + 2


@part
def _next_row(t: Ints, c: Ints, r: Ints, item: int) -> bool:
    """Advance to the next row of the event for an item; return False if there is none."""
    g = element.gpm(t, item)
    c[counter.ROW] = max(c[counter.ROW] + 1, ring.now(r, g))
    return bool(c[counter.ROW] < ring.until(r, g))


@part
def _next_of_tree(t: Ints, c: Ints, r: Ints) -> bool:
    """Advance to the next row of the event that may be the last of a match; return False if there is none."""
    items = plan.items(t, c[counter.PLAN])
    count = (plan.items_end(t, c[counter.PLAN]) - items) // element.SIZE
    while c[counter.ITEM] < count:
        item = items + c[counter.ITEM] * element.SIZE
        if element.after(t, item) == 0 and not c[counter.REPEATING] and _next_row(t, c, r, item):
            return True
        c[counter.ITEM] += 1
        c[counter.ROW] = -1
    return False


@part
def _next_of_chain(
    t: Ints, c: Ints, r: Ints, rows: Ints, ordered: Floats, order: Ints, lists: Ints, waits: Ints,
    spans: Floats, size: int, axis: int, p: Ints | None,
) -> bool:  # fmt: skip
    """Advance to the next partial match that the event may extend, longest first; return False at the end.

    Partial matches made by an event are longer than the one it extends, so the event is shown to none of
    them.
    """
    items = plan.items(t, c[counter.PLAN])
    chain = (c[counter.PLAN] - t[T_PLANS]) // plan.SIZE * ordering.SIZE
    count = (plan.items_end(t, c[counter.PLAN]) - items) // element.SIZE
    while c[counter.ITEM] < count:
        level = count - 1 - c[counter.ITEM]
        item = items + ordering.item(order, chain, level) * element.SIZE
        g = element.gpm(t, item)
        number = ordering.first_list(order, chain) + level
        if ring.now(r, g) < ring.until(r, g):
            if c[counter.ROW] == -1:
                c[counter.ROW] = ring.now(r, g)
                if level:
                    drop_old(c, lists, waits, spans, size, number, reach_before(axis, c[counter.LIMIT]))
            some = 1 if level == 0 else lists[number]
            while some and c[counter.ROW] < ring.until(r, g):
                c[counter.WAIT] += 1
                if level:
                    c[counter.WAIT] = next_waiting(
                        t, c, r, rows, ordered, order, lists, waits, spans, size, chain, level, p
                    )
                if c[counter.WAIT] < some:
                    return True
                c[counter.WAIT] = -1
                c[counter.ROW] += 1
        c[counter.ITEM] += 1
        c[counter.ROW] = c[counter.WAIT] = -1
    return False


@part
def _next_plan(t: Ints, c: Ints, r: Ints, order: Ints, least: int) -> int:
    """Return the first plan, from one on, that the current event may continue; the end of all if there is
    none.
    """
    found = t[T_PLANS_END]
    for g in range(c[counter.FIRST_GPM], c[counter.LAST_GPM]):
        if ring.now(r, g) < ring.until(r, g):
            woken = c[counter.WOKEN] + 2 * g
            i = order[woken]
            while i < order[woken + 1] and order[i] < least:
                i += 1
            if i < order[woken + 1]:
                found = min(found, order[i])
    return int(found)


@part
def _next_trigger(
    t: Ints, c: Ints, r: Ints, rows: Ints, ordered: Floats, order: Ints, lists: Ints, waits: Ints,
    spans: Floats, size: int, axis: int, p: Ints | None,
) -> bool:  # fmt: skip
    """Advance to the next step that an event may take; return False if there is none."""
    while c[counter.PLAN] < t[T_PLANS_END]:
        if ordering.is_chain(order, (c[counter.PLAN] - t[T_PLANS]) // plan.SIZE * ordering.SIZE):
            if _next_of_chain(t, c, r, rows, ordered, order, lists, waits, spans, size, axis, p):
                return True
        elif _next_of_tree(t, c, r):
            return True
        c[counter.PLAN] = _next_plan(t, c, r, order, c[counter.PLAN] + plan.SIZE)
        c[counter.ITEM], c[counter.ROW], c[counter.WAIT] = 0, -1, -1
    return False


@part
def _look(
    t: Ints, c: Ints, m: Ints, f: Floats, r: Ints, rows: Ints, ordered: Floats, index: Ints, width: int,
    floats: int, order: Ints, lists: Ints, waits: Ints, spans: Floats, size: int, found: Ints, choices: Ints,
    e: int, axis: int, numbers: Floats, codes: Codes, p: Ints | None,
) -> int:  # fmt: skip
    """Do all steps of an event, from where the last call stopped."""
    while True:
        if c[counter.DEPTH] >= 0:
            status = search(
                t, c, m, f, r, rows, ordered, index, width, floats, order, lists, waits, spans, size, found,
                choices, e, numbers, codes, p,
            )  # fmt: skip
            if status != DONE:
                return status
        if not _next_trigger(t, c, r, rows, ordered, order, lists, waits, spans, size, axis, p):
            return DONE
        if ordering.is_chain(order, (c[counter.PLAN] - t[T_PLANS]) // plan.SIZE * ordering.SIZE):
            c[counter.TRIGGER] = NOTHING
            _chain(t, c, m, f, r, rows, ordered, width, floats, order, waits, size, numbers, codes, p)
        else:
            _begin(t, c, m, f, r, rows, ordered, width, floats, numbers, codes, p)


@part
def _run(
    t: Ints, c: Ints, m: Ints, f: Floats, r: Ints, rows: Ints, ordered: Floats, index: Ints, b: Ints,
    width: int, floats: int, order: Ints, lists: Ints, waits: Ints, spans: Floats, size: int, found: Ints,
    choices: Ints, numbers: Floats, codes: Codes, p: Ints | None,
) -> int:  # fmt: skip
    """See ``run``; all arrays as pointers, which a call passes in a register."""
    while c[counter.EVENT] < batch.size(b):
        e = c[counter.EVENT]
        axis = batch.axis(b, e)
        if c[counter.STAGE] == 0:
            if p is not None and p[passing.MOST]:
                pass_by(p, batch.start(b) + e)
            expire(t, c, r, rows, index, axis)
            if lacks_room(r, b, e):
                return ROOM
            if lacks_entries(c, b, e):
                return MORE_KEYS
            if not append(t, c, r, rows, ordered, index, m, b, e, numbers, codes, p):
                c[counter.EVENT] = e + 1
                continue
            _start(t, c, r, order, batch.start(b) + e)
            if p is not None and p[passing.MOST]:
                allow(c, p)
        status = _look(
            t, c, m, f, r, rows, ordered, index, width, floats, order, lists, waits, spans, size, found,
            choices, e, axis, numbers, codes, p,
        )  # fmt: skip
        if status != DONE:
            return status
        if p is not None and p[passing.MOST]:
            spend(c, p)
        c[counter.STAGE] = 0
        c[counter.EVENT] = e + 1
    return DONE


@part
def _start(t: Ints, c: Ints, r: Ints, order: Ints, position: int) -> None:
    """Begin with an event."""
    c[counter.AT] = position
    c[counter.PLAN], c[counter.ITEM] = _next_plan(t, c, r, order, t[T_PLANS]), 0
    c[counter.ROW] = c[counter.WAIT] = c[counter.DEPTH] = -1
    c[counter.STAGE] = 1


@part
def _repeat(
    t: Ints, c: Ints, m: Ints, f: Floats, r: Ints, rows: Ints, ordered: Floats, index: Ints, width: int,
    floats: int, order: Ints, lists: Ints, waits: Ints, spans: Floats, size: int, found: Ints, choices: Ints,
    numbers: Floats, codes: Codes, p: Ints | None,
) -> int:  # fmt: skip
    """See ``run``, if ``REPEATING``."""
    c[counter.FIRST_GPM], c[counter.LAST_GPM] = 0, t[N_GPMS]
    while True:
        if c[counter.STAGE] == 0:
            position = LATEST
            for g in range(t[N_GPMS]):
                ring.set_now(r, g, ring.until(r, g))
                if ring.until(r, g) < ring.tail(r, g):
                    position = min(position, stored.position(rows, place(t, r, g, ring.until(r, g))))
            if position == LATEST:
                return DONE
            for g in range(t[N_GPMS]):
                while ring.until(r, g) < ring.tail(r, g) and (
                    stored.position(rows, place(t, r, g, ring.until(r, g))) == position
                ):
                    ring.set_until(r, g, ring.until(r, g) + 1)
            _start(t, c, r, order, position)
        status = _look(
            t, c, m, f, r, rows, ordered, index, width, floats, order, lists, waits, spans, size, found,
            choices, 0, EARLIEST, numbers, codes, p,
        )  # fmt: skip
        if status != DONE:
            return status
        c[counter.STAGE] = 0


@kernel
def run(
    t: Ints, c: Ints, m: Ints, f: Floats, r: Ints, rows: Ints, ordered: Floats, index: Ints, b: Ints,
    width: int, floats: int, order: Ints, lists: Ints, waits: Ints, spans: Floats, size: int, found: Ints,
    choices: Ints, numbers: Floats, codes: Codes, p: Ints | None,
) -> int:  # fmt: skip
    """Process the events of a batch, from where the last call stopped; return what needs more room, if
    anything.

    If ``REPEATING``, process the events in the buffers again instead: their partial matches wait, and no
    matches are found; ``ring.until`` is at the beginnings of the buffers at first. Each frame has ``width``
    integers and ``floats`` floats; each waiting partial match has ``size``. Without a bound, ``p`` is None, a
    constant, so that code for bounds is not compiled.
    """
    if c[counter.REPEATING]:
        return _repeat(
            pointer(t), pointer(c), pointer(m), pointer(f), pointer(r), pointer(rows), pointer(ordered),
            pointer(index), width, floats, pointer(order), pointer(lists), pointer(waits), pointer(spans),
            size, pointer(found), pointer(choices), pointer(numbers), pointer(codes), pointer(p),
        )  # fmt: skip
    return _run(
        pointer(t), pointer(c), pointer(m), pointer(f), pointer(r), pointer(rows), pointer(ordered),
        pointer(index), pointer(b), width, floats, pointer(order), pointer(lists), pointer(waits),
        pointer(spans), size, pointer(found), pointer(choices), pointer(numbers), pointer(codes), pointer(p),
    )  # fmt: skip


@kernel
def drop_all_old(c: Ints, lists: Ints, waits: Ints, spans: Floats, size: int, least: int) -> None:
    """Remove all partial matches that begin before a place on the window's axis."""
    for number in range(len(lists)):
        drop_old(pointer(c), pointer(lists), pointer(waits), pointer(spans), size, number, least)


@kernel
def reindex(t: Ints, c: Ints, m: Ints, r: Ints, rows: Ints, index: Ints) -> None:
    """Enter all rows in an empty index."""
    c[counter.ENTRIES] = 0
    for g in range(t[N_GPMS]):
        for number in range(ring.head(r, g), ring.tail(r, g)):
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
