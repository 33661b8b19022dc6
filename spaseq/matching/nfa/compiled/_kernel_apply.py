"""Apply: runs take an event, complete, wait at the gates of their new place, or end."""

from __future__ import annotations

from typing import Final

from spaseq._jit import inlined, part, rare
from spaseq._kernel_events import reach_after, reach_before
from spaseq.matching.filters import batch
from spaseq.matching.filters._kernel_values import (
    BARS,
    FALSE,
    GAPS,
    HOLDS,
    LAST_VIEW,
    LIMIT,
    MANY,
    N_GAPS,
    SINCES,
    SINCES_END,
    SINGLE,
    SLOTS,
    TRAILS,
    TRUE,
    UNKNOWN,
    Floats,
    Ints,
    RunMachine,
)
from spaseq.matching.nfa.compiled._kernel_gaps import act, begin, blur, look_back, may_end, may_wait
from spaseq.matching.nfa.compiled._kernel_gather import bind_entries
from spaseq.matching.nfa.compiled._kernel_judge import belongs
from spaseq.matching.nfa.compiled._kernel_layout import (
    FIRST_GAP,
    IS_LED,
    LED,
    NOWHERE,
    SEVERAL,
    UNSURE,
    rows_of,
    value,
)
from spaseq.matching.nfa.compiled._kernel_memory import (
    copy_slots,
    forget,
    new_node,
    new_wait,
    release,
    remove,
)
from spaseq.matching.nfa.compiled._kernel_places import park, place, pop, unpark
from spaseq.matching.nfa.records import (
    accepts,
    candidates,
    decisions,
    entries,
    findings,
    gaps,
    gates,
    header,
    hold,
    nodes,
    partitions,
    parts,
    places,
    units,
    waits,
)

# Completed runs: matches at once, or when their window has ended.


@part
def _found(m: Ints, p: int, node: int, e: int, accept: int, unsure: int) -> int:
    """Record a match of a partition, by its last event; return where."""
    at = header.found(m) + header.found_count(m) * findings.SIZE
    header.set_found_count(m, header.found_count(m) + 1)
    findings.set_event(m, at, e)
    findings.set_partition(m, at, p)
    findings.set_node(m, at, node)
    findings.set_accept(m, at, accept)
    findings.set_unsure(m, at, unsure)
    hold(m, node)
    return int(at)


@inlined
def complete(m: Ints, p: int, node: int, e: int, accept: int, unsure: int) -> None:
    """Complete a run of a partition as a match, with an event."""
    at = _found(m, p, node, e, accept, unsure)
    findings.set_turn(m, at, e)
    findings.set_due(m, at, findings.LAST)
    findings.set_rank(m, at, findings.LAST)
    findings.set_waited(m, at, 0)


@rare
def _is_open(t: Ints, m: Ints, w: int) -> bool:
    """Return whether a gap of a wait is open, so that its negation must wait for the end of the window."""
    start = w + t[GAPS] + FIRST_GAP
    found = False
    for gap in range(start, start + t[N_GAPS] * gaps.SIZE, gaps.SIZE):
        found = found or gaps.forbidden(m, gap) != 0
    return found


@inlined
def end(t: Ints, m: Ints, w: int, e: int, accept: int) -> bool:
    """Complete a run, unless a forbidden event precedes it in its window; return whether it waits now."""
    unsure = 0
    if t[N_GAPS] != 0:
        if m[w + t[GAPS] + IS_LED] != 0 and m[w + t[GAPS] + LED] >= reach_before(header.now(m), t[LIMIT]):
            return False
        unsure = m[w + t[GAPS] + UNSURE]
        if t[HOLDS] != 0 or _is_open(t, m, w):
            waits.set_gate(m, w, accept)
            waits.set_due(m, w, header.now(m) if t[HOLDS] != 0 else waits.first(m, w))
            hold(m, waits.node(m, w))
            park(m, w)
            return True
    complete(m, waits.partition(m, w), waits.node(m, w), e, accepts.number(t, accept), unsure)
    return False


@part
def is_due(t: Ints, m: Ints, axis: int) -> bool:
    """Return whether some waiting match is due at a place on the window's axis."""
    if t[TRAILS] == 0 or header.parked_count(m) == 0:
        return False
    return bool(axis > reach_after(waits.due(m, m[header.parked(m)]), t[LIMIT]))


@rare
def end_due(
    machine: RunMachine, axis: int, e: int, start: int,
    closes: bool,
) -> None:  # fmt: skip
    """End the waiting matches that are due at an event, or before it. Each becomes a finding, unless a
    forbidden event has occurred.

    ``start`` is the position of the batch's first event; ``closes``: no event will come, and all are due.
    There must be room for all waiting matches.
    """
    t, m = machine.t, machine.m
    while is_due(t, m, axis) or (closes and header.parked_count(m) != 0):
        w = unpark(m)
        knows = w + t[GAPS]
        first = knows + FIRST_GAP
        verdict, unsure, waited = FALSE, m[knows + UNSURE], 0
        for gap in range(first, first + t[N_GAPS] * gaps.SIZE, gaps.SIZE):
            if gaps.forbidden(m, gap) != 0 and verdict != TRUE:
                waited = 1
                verdict, _, _ = look_back(machine, w, gap, t[LAST_VIEW], True)
                if verdict == UNKNOWN:
                    unsure = 1
        if verdict != TRUE:
            node = waits.node(m, w)
            number = accepts.number(t, waits.gate(m, w))
            at = _found(m, waits.partition(m, w), node, nodes.position(m, node) - start, number, unsure)
            findings.set_turn(m, at, e)
            findings.set_due(m, at, waits.due(m, w))
            findings.set_rank(m, at, partitions.newest(m, waits.partition(m, w)))
            findings.set_waited(m, at, waited)
        forget(m, w)


# Apply: runs take an event, complete, wait at the gates of their new place, or end.

#: In place of a stream, if gathered events of several streams bar a run: only events of a later time are
#: excluded.
_NO_STREAM: Final = 62


@inlined
def begin_bounds(t: Ints, m: Ints, w: int, time: int) -> None:
    """Start the time bounds of a run that begin with this event."""
    count = t[SINCES_END] - t[SINCES]
    for j in range(w + t[SINCES], w + t[SINCES_END]):
        if m[j + count] != 0:
            m[j], m[j + count] = time, 0


@part
def copy(m: Ints, f: Floats, w: int, p: int) -> int:
    """Return a new wait of a partition, with the slots, first and last event of another."""
    new = new_wait(m)
    waits.set_partition(m, new, p)
    waits.set_first(m, new, waits.first(m, w))
    set_last(m, new, waits.time(m, w), waits.stream(m, w), waits.number(m, w))
    copy_slots(m, f, w, new)
    return new


@inlined
def set_last(m: Ints, w: int, time: int, stream: int, number: int) -> None:
    """Set the last event of a run."""
    waits.set_time(m, w, time)
    waits.set_stream(m, w, stream)
    waits.set_number(m, w, number)


@part
def bind(t: Ints, m: Ints, b: Ints, e: int, key: int, w: int, c: int, row: int) -> None:
    """Bind the slots of a run to an event's values."""
    unit, g = candidates.unit(t, c), candidates.gpm(t, c)
    for i in range(units.binds(t, unit), units.binds_end(t, unit), 2):
        slot, column = w + SLOTS + t[i], t[i + 1]
        if row >= 0:
            identifier = value(b, column, row)
            if identifier != 0:
                m[slot] = identifier
        elif m[slot] <= 0:
            same = -2
            first, last = rows_of(b, g, e)
            for r in range(first, last):
                if belongs(t, m, b, g, r, key):
                    identifier = value(b, column, r)
                    if same == -2:
                        same = identifier
                    elif same != identifier:
                        same = MANY
            if same != 0:
                m[slot] = same


@inlined
def _extend(
    machine: RunMachine, e: int, key: int, p: int,
    w: int, c: int, row: int,
) -> None:  # fmt: skip
    """Let a run take the event: it completes if possible, and waits at the gates of its new place."""
    t, m, f, b = machine.t, machine.m, machine.f, machine.b
    before = waits.node(m, w)
    if before != 0:
        hold(m, before)
    node = follow(m, before, batch.start(b) + e, candidates.number(t, c), row)
    if _just_ends(t, candidates.place(t, c)):
        _end_all(t, m, e, p, candidates.place(t, c), node)
        return
    time, stream, number = batch.time(b, e), batch.stream(b, e), batch.number(b, e)
    taken = copy(m, f, w, p)
    if before == 0:
        waits.set_first(m, taken, batch.axis(b, e))
    bind(t, m, b, e, key, taken, c, row)
    if candidates.actions(t, c) < candidates.actions_end(t, c):
        act(machine, taken, candidates.actions(t, c), candidates.actions_end(t, c))
    begin_bounds(t, m, taken, time)
    if row < 0 and units.counting(t, candidates.unit(t, c)) != 0:
        blur(t, m, f, taken, units.counting(t, candidates.unit(t, c)))
    if t[N_GAPS] != 0:
        begin(t, m, taken, time, stream, number)
    set_last(m, taken, time, stream, number)
    _arrive(machine, e, candidates.place(t, c), taken, node)


@inlined
def _just_ends(t: Ints, place: int) -> bool:
    """Return whether a run in a place can only complete, regardless of its bindings."""
    if t[N_GAPS] != 0 or places.gates(t, place) < places.gates_end(t, place):
        return False
    for a in range(places.accepts(t, place), places.accepts_end(t, place), accepts.SIZE):
        acts = accepts.actions(t, a) < accepts.actions_end(t, a)
        if acts or accepts.code(t, a) < accepts.code_end(t, a):
            return False
    return True


@inlined
def _end_all(t: Ints, m: Ints, e: int, p: int, place: int, node: int) -> None:
    """Complete a run in a place where ``_just_ends`` holds; only its events are kept."""
    for a in range(places.accepts(t, place), places.accepts_end(t, place), accepts.SIZE):
        complete(m, p, node, e, accepts.number(t, a), 0)
    release(m, node)


@part
def follow(m: Ints, before: int, position: int, way: int, row: int) -> int:
    """Return a new node that follows the node ``before``; the caller's use of ``before`` becomes the new
    node's.
    """
    node = new_node(m)
    nodes.set_position(m, node, position)
    nodes.set_previous(m, node, before)
    nodes.set_way(m, node, way)
    nodes.set_row(m, node, row)
    nodes.set_uses(m, node, 1)
    nodes.set_depth(m, node, 1 + (nodes.depth(m, before) if before != 0 else 0))
    return node


@rare
def _extend_all(
    machine: RunMachine, e: int, p: int,
    w: int, c: int, gathered: int,
) -> None:  # fmt: skip
    """Let a run take the gathered events."""
    t, m, f, b = machine.t, machine.m, machine.f, machine.b
    before = waits.node(m, w)
    first = waits.first(m, w) if before != 0 else header.now(m)
    several = m[gathered] != 0
    time, stream, least, most = batch.time(b, e), NOWHERE, 0, 0
    taken = copy(m, f, w, p)
    start = candidates.parts(t, c)
    size = (candidates.parts_end(t, c) - start) // parts.SIZE
    for i in range(size):
        x = m[gathered + 1 + i]
        bind_entries(t, m, taken, parts.unit(t, start + i * parts.SIZE), x, several)
        number = entries.number(m, x)
        least = number if stream == NOWHERE else min(least, number)
        most = number if stream == NOWHERE else max(most, number)
        stream = entries.stream(m, x) if stream in (NOWHERE, entries.stream(m, x)) else SEVERAL
        if before == 0:
            first = min(first, entries.axis(m, x))
    act(machine, taken, candidates.actions(t, c), candidates.actions_end(t, c))
    begin_bounds(t, m, taken, time)
    for i in range(size):
        counting = units.counting(t, parts.unit(t, start + i * parts.SIZE))
        if several and counting != 0:
            blur(t, m, f, taken, counting)
    if t[N_GAPS] != 0:
        begin(t, m, taken, time, stream, least)
    if before != 0:
        hold(m, before)
    node = before
    # Nodes are added in the order in which the events came.
    last = NOWHERE
    for _ in range(size):
        chosen = -1
        for i in range(size):
            at = entries.position(m, m[gathered + 1 + i]) * parts.LIMIT + i
            if at > last and (chosen < 0 or at < chosen):
                chosen = at
        last = chosen
        i = chosen % parts.LIMIT
        row = -1 if several else entries.row(m, m[gathered + 1 + i])
        node = follow(m, node, chosen // parts.LIMIT, candidates.number(t, c) + i, row)
    waits.set_first(m, taken, first)
    set_last(m, taken, time, stream, most)
    _arrive(machine, e, candidates.place(t, c), taken, node)


@part
def _arrive(machine: RunMachine, e: int, to: int, taken: int, node: int) -> None:
    """Let a run with its last event enter a place: it completes if possible, and waits at the outgoing
    gates.
    """
    t, m, f = machine.t, machine.m, machine.f
    p = waits.partition(m, taken)
    for a in range(places.accepts(t, to), places.accepts_end(t, to), accepts.SIZE):
        new = copy(m, f, taken, p)
        stays = False
        if may_end(machine, new, a):
            waits.set_node(m, new, node)
            stays = end(t, m, new, e, a)
            if not stays:
                waits.set_node(m, new, 0)
        if not stays:
            forget(m, new)
    last = places.gates_end(t, to) - gates.SIZE
    for gate in range(places.gates(t, to), places.gates_end(t, to), gates.SIZE):
        # The last one needs no copy.
        new = copy(m, f, taken, p) if gate < last else taken
        if may_wait(machine, new, gate):
            waits.set_gate(m, new, gate)
            waits.set_node(m, new, node)
            hold(m, node)
            waits.set_barred(m, new, 0)
            waits.set_taken(m, new, 0)
            place(t, m, new, machine.n, machine.c)
        else:
            forget(m, new)
    if places.gates(t, to) == places.gates_end(t, to):
        forget(m, taken)
    release(m, node)


@inlined
def apply(machine: RunMachine, e: int, key: int, p: int) -> None:
    # Waits leave heaps before anything is added: their decision has only their number, best first.
    t, m, b, numbers = machine.t, machine.m, machine.b, machine.n
    for i in range(header.decided(m)):
        at = header.decisions(m) + i * decisions.SIZE
        if decisions.what(m, at) == decisions.POP:
            for _ in range(decisions.row(m, at)):
                pop(t, m, decisions.wait(m, at), numbers)
    for i in range(header.decided(m)):
        at = header.decisions(m) + i * decisions.SIZE
        w, c, row = decisions.wait(m, at), decisions.what(m, at), decisions.row(m, at)
        if c > 0 and candidates.parts(t, c) < candidates.parts_end(t, c):
            _extend_all(machine, e, p, w, c, row)
        elif c > 0:
            _extend(machine, e, key, p, w, c, row)
        elif c == decisions.FORGET:
            for j in range(w, w + row):
                forget(m, decisions.wait(m, header.decisions(m) + j * decisions.SIZE))
        elif c == decisions.BAR and gates.gathers(t, waits.gate(m, w)) != 0:
            stream = batch.stream(b, e)
            if row == 1:
                stream = _NO_STREAM
            elif (waits.barred(m, w) >> stream) & 1 == 0:
                m[w + t[BARS] + stream] = batch.number(b, e)
            waits.set_bar_time(m, w, batch.time(b, e))
            waits.set_barred(m, w, waits.barred(m, w) | (1 << stream))
        elif c == decisions.PART:
            gate = waits.gate(m, w)
            count = (gates.candidates_end(t, gate) - gates.candidates(t, gate)) // candidates.SIZE
            waits.set_taken(m, w, waits.taken(m, w) | row)
            if waits.taken(m, w) == (1 << count) - 1:
                remove(m, w)
        elif c == decisions.DROP or (c == decisions.BAR and t[SINGLE] != 0):
            remove(m, w)
        elif c == decisions.BAR:
            waits.set_bar_time(m, w, batch.time(b, e))
            waits.set_barred(m, w, waits.barred(m, w) | (1 << batch.stream(b, e)))
