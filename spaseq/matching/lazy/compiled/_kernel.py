"""The lazy kernel: events go into buffers, and an event that may be a match's last starts a search.

The search takes preceding events from the buffers, those of the currently rarest element first (the tree NFA
of the paper, section 6). So nothing is done while some element of the sequence has no event.
"""

from __future__ import annotations

from spaseq._jit import kernel, part
from spaseq._kernel_events import EARLIEST, LATEST, reach_before
from spaseq.matching.filters import batch
from spaseq.matching.filters._kernel_values import N_GPMS, Codes, Floats, Ints, pointer
from spaseq.matching.lazy.compiled._kernel_bind import bind, clear, put
from spaseq.matching.lazy.compiled._kernel_buffers import (
    append,
    enter,
    expire,
    lacks_entries,
    lacks_room,
    place,
    row_at,
)
from spaseq.matching.lazy.compiled._kernel_layout import (
    DONE,
    MORE_KEYS,
    NOTHING,
    ROOM,
    T_PLANS,
    T_PLANS_END,
    LazyMachine,
    chain_of,
    item_at,
    item_count,
    open_frame,
    opened,
)
from spaseq.matching.lazy.compiled._kernel_passing import allow, pass_by, shows, spend
from spaseq.matching.lazy.compiled._kernel_search import completed, search, take
from spaseq.matching.lazy.compiled._kernel_waiting import drop_old, next_waiting, resume
from spaseq.matching.lazy.records import counter, element, frame, ordering, passing, plan, ring, stored


@part
def _lacks_some(m: LazyMachine) -> bool:
    """Return whether some item of a plan, other than the one that starts the search, has no event."""
    t, c = m.tables, m.counters
    for i in range(item_count(m)):
        if i == c[counter.ITEM]:
            continue
        g = element.gpm(t, item_at(m, i))
        head = ring.head(m.rings, g)
        if (
            head == ring.tail(m.rings, g)
            or stored.position(m.rows, place(t, m.rings, g, head)) >= c[counter.AT]
        ):
            return True
    return False


@part
def _begin(m: LazyMachine, p: Ints | None) -> None:
    """Begin a search with a row as the last event."""
    t, c = m.tables, m.counters
    if _lacks_some(m):
        return
    i = c[counter.ITEM]
    item = item_at(m, i)
    row = row_at(m, item, c[counter.ROW])
    c[counter.TESTED] += 1
    if p is not None:
        p[passing.SHOWN] = p[passing.SHARE]
    _begin_frames(m, stored.is_one_of_several(m.rows, row))
    clear(m)
    frame.set_count(m.frames, frame.BEGIN, 1)
    is_kleene = element.kleene(t, item) != 0
    c[counter.TRIGGER] = i if is_kleene else NOTHING
    record = frame.BEGIN + frame.SIZE
    if not bind(
        t, m.frames, m.rows, record, element.binds(t, item), element.binds_end(t, item), row, not is_kleene
    ):
        return
    if is_kleene:
        open_frame(m, 1, 0)
        return
    frame.set_item(m.frames, frame.BEGIN, i)
    frame.set_row(m.frames, frame.BEGIN, c[counter.ROW])
    put(m.frames, m.rows, i, row, True)
    if completed(m, frame.BEGIN, 0, i, 1 << i):
        open_frame(m, 1, 1 << i)


@part
def _begin_frames(m: LazyMachine, is_unsure: int) -> None:
    """Make the first frame, which takes no item."""
    frame.set_phase(m.frames, frame.BEGIN, frame.OVER)
    frame.set_item(m.frames, frame.BEGIN, NOTHING)
    frame.set_bound(m.frames, frame.BEGIN, 0)
    frame.set_is_unsure(m.frames, frame.BEGIN, is_unsure)


@part
def _chain(m: LazyMachine, p: Ints | None) -> None:
    """Extend a waiting partial match, or begin one, with a row as the next item of a chain."""
    c = m.counters
    chain = chain_of(m)
    level = item_count(m) - 1 - c[counter.ITEM]
    i = ordering.item(m.orders, chain, level)
    at = frame.BEGIN + (level + 1) * m.width
    if p is not None:
        is_part = p[passing.SHARE] < passing.SURE
        p[passing.SHOWN] = shows(m, chain, level, p) if is_part else passing.SURE
    _begin_frames(m, 0)
    if level == 0:
        clear(m)
        frame.set_bound(m.frames, at, 0)
    else:
        resume(m, level + 1, ordering.first_list(m.orders, chain) + level)
    frame.set_item(m.frames, at, i)
    frame.set_row(m.frames, at, c[counter.ROW])
    frame.set_count(m.frames, at, 1)
    frame.set_phase(m.frames, at, frame.OVER)
    if take(m, at, level + 1):
        open_frame(m, level + 2, frame.bound(m.frames, at) | 1 << i)


@part
def _next_row(m: LazyMachine, item: int) -> bool:
    """Advance to the next row of the event for an item; return False if there is none."""
    c = m.counters
    g = element.gpm(m.tables, item)
    c[counter.ROW] = max(c[counter.ROW] + 1, ring.now(m.rings, g))
    return bool(c[counter.ROW] < ring.until(m.rings, g))


@part
def _next_of_tree(m: LazyMachine) -> bool:
    """Advance to the next row of the event that may be the last of a match; return False if there is none."""
    c = m.counters
    count = item_count(m)
    while c[counter.ITEM] < count:
        item = item_at(m, c[counter.ITEM])
        if element.after(m.tables, item) == 0 and not c[counter.REPEATING] and _next_row(m, item):
            return True
        c[counter.ITEM] += 1
        c[counter.ROW] = -1
    return False


@part
def _next_of_chain(m: LazyMachine, axis: int, p: Ints | None) -> bool:
    """Advance to the next partial match that the event may extend, longest first; return False at the end.

    A partial match made by an event is longer than the one that the event extended. So the event is not shown
    to partial matches that it has made.
    """
    c = m.counters
    chain, count = chain_of(m), item_count(m)
    while c[counter.ITEM] < count:
        level = count - 1 - c[counter.ITEM]
        item = item_at(m, ordering.item(m.orders, chain, level))
        g = element.gpm(m.tables, item)
        number = ordering.first_list(m.orders, chain) + level
        if ring.now(m.rings, g) < ring.until(m.rings, g):
            if c[counter.ROW] == -1:
                c[counter.ROW] = ring.now(m.rings, g)
                if level:
                    drop_old(
                        c, m.lists, m.waits, m.spans, m.size, number, reach_before(axis, c[counter.LIMIT])
                    )
            some = 1 if level == 0 else m.lists[number]
            while some and c[counter.ROW] < ring.until(m.rings, g):
                c[counter.WAIT] += 1
                if level:
                    c[counter.WAIT] = next_waiting(m, chain, level, p)
                if c[counter.WAIT] < some:
                    return True
                c[counter.WAIT] = -1
                c[counter.ROW] += 1
        c[counter.ITEM] += 1
        c[counter.ROW] = c[counter.WAIT] = -1
    return False


@part
def _next_plan(m: LazyMachine, least: int) -> int:
    """Return the first plan from ``least`` on that the current event may continue; if there is none, the end
    of all plans.
    """
    c = m.counters
    first = m.tables[T_PLANS_END]
    for g in range(c[counter.FIRST_GPM], c[counter.LAST_GPM]):
        if ring.now(m.rings, g) < ring.until(m.rings, g):
            woken = c[counter.WOKEN] + 2 * g
            i = m.orders[woken]
            while i < m.orders[woken + 1] and m.orders[i] < least:
                i += 1
            if i < m.orders[woken + 1]:
                first = min(first, m.orders[i])
    return int(first)


@part
def _next_trigger(m: LazyMachine, axis: int, p: Ints | None) -> bool:
    """Advance to the next step that an event may take; return False if there is none."""
    c = m.counters
    while c[counter.PLAN] < m.tables[T_PLANS_END]:
        if ordering.is_chain(m.orders, chain_of(m)):
            if _next_of_chain(m, axis, p):
                return True
        elif _next_of_tree(m):
            return True
        c[counter.PLAN] = _next_plan(m, c[counter.PLAN] + plan.SIZE)
        c[counter.ITEM], c[counter.ROW], c[counter.WAIT] = 0, -1, -1
    return False


@part
def _look(m: LazyMachine, e: int, axis: int, p: Ints | None) -> int:
    """Do all steps of an event, from where the last call stopped."""
    while True:
        if m.counters[counter.DEPTH] >= 0:
            status = search(m, e, p)
            if status != DONE:
                return status
        if not _next_trigger(m, axis, p):
            return DONE
        if ordering.is_chain(m.orders, chain_of(m)):
            m.counters[counter.TRIGGER] = NOTHING
            _chain(m, p)
        else:
            _begin(m, p)


@part
def _run(m: LazyMachine, p: Ints | None) -> int:
    """See ``run``."""
    c = m.counters
    while c[counter.EVENT] < batch.size(m.batch):
        e = c[counter.EVENT]
        axis = batch.axis(m.batch, e)
        if c[counter.STAGE] == 0:
            if p is not None and p[passing.MOST]:
                pass_by(p, batch.start(m.batch) + e)
            expire(m, axis)
            if lacks_room(m, e):
                return ROOM
            if lacks_entries(m, e):
                return MORE_KEYS
            if not append(m, e, p):
                c[counter.EVENT] = e + 1
                continue
            _start(m, batch.start(m.batch) + e)
            if p is not None and p[passing.MOST]:
                allow(m, p)
        status = _look(m, e, axis, p)
        if status != DONE:
            return status
        if p is not None and p[passing.MOST]:
            spend(m, p)
        c[counter.STAGE] = 0
        c[counter.EVENT] = e + 1
    return DONE


@part
def _start(m: LazyMachine, position: int) -> None:
    """Begin with an event."""
    c = m.counters
    c[counter.AT] = position
    c[counter.PLAN], c[counter.ITEM] = _next_plan(m, m.tables[T_PLANS]), 0
    c[counter.ROW] = c[counter.WAIT] = c[counter.DEPTH] = -1
    c[counter.STAGE] = 1


@part
def _repeat(m: LazyMachine, p: Ints | None) -> int:
    """See ``run``, if ``REPEATING``."""
    t, c = m.tables, m.counters
    c[counter.FIRST_GPM], c[counter.LAST_GPM] = 0, t[N_GPMS]
    while True:
        if c[counter.STAGE] == 0:
            position = LATEST
            for g in range(t[N_GPMS]):
                ring.set_now(m.rings, g, ring.until(m.rings, g))
                if ring.until(m.rings, g) < ring.tail(m.rings, g):
                    position = min(
                        position, stored.position(m.rows, place(t, m.rings, g, ring.until(m.rings, g)))
                    )
            if position == LATEST:
                return DONE
            for g in range(t[N_GPMS]):
                while ring.until(m.rings, g) < ring.tail(m.rings, g) and (
                    stored.position(m.rows, place(t, m.rings, g, ring.until(m.rings, g))) == position
                ):
                    ring.set_until(m.rings, g, ring.until(m.rings, g) + 1)
            _start(m, position)
        status = _look(m, 0, EARLIEST, p)
        if status != DONE:
            return status
        c[counter.STAGE] = 0


@kernel
def run(machine: Ints, batch: Ints, numbers: Floats, codes: Codes, p: Ints | None) -> int:
    """Process the events of a batch, from where the last call stopped; return what needs more room, if
    anything.

    ``machine``: see ``_kernel_layout.opened``. If ``REPEATING``, process the events in the buffers again
    instead: their partial matches wait, and no matches are found. ``ring.until`` must be at the beginning of
    each buffer then. Without a bound, ``p`` is the constant None, so that code for bounds is not compiled.
    """
    m = opened(machine, pointer(batch), pointer(numbers), pointer(codes))
    if m.counters[counter.REPEATING]:
        return _repeat(m, pointer(p))
    return _run(m, pointer(p))


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
            enter(pointer(t), pointer(c), pointer(r), pointer(rows), pointer(index), pointer(m), g, number)
