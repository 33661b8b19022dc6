"""``X & Y``: candidates that gather events of one time, one for each part; one event may serve several.

The rows of the parts' GPMs are entries, so the events of the time are found in their chains. A combination of
events is tried on a copy of the run: row by row, each part is judged and binds its slots.
"""

from __future__ import annotations

from spaseq._jit import inlined, part
from spaseq._kernel_events import reach_after
from spaseq.matching.filters._kernel_values import (
    BARS,
    FALSE,
    LIMIT,
    MANY,
    SLOTS,
    TRUE,
    UNKNOWN,
    Ints,
    RunMachine,
)
from spaseq.matching.nfa.compiled._kernel_judge import answer, at_entries, judge_row, meets
from spaseq.matching.nfa.compiled._kernel_layout import (
    GATHERED_SIZE,
    SEVERAL,
    value,
)
from spaseq.matching.nfa.compiled._kernel_memory import copy_slots, find_bucket, note
from spaseq.matching.nfa.records import (
    buckets,
    candidates,
    entries,
    header,
    partitions,
    parts,
    questions,
    units,
    waits,
)


@part
def _reach(m: Ints, w: int, x: int, time: int) -> int:
    """Return the first entry of this time after a run, searching back from an entry; 0 if there is none."""
    while x != 0 and entries.time(m, x) == time:
        follows = waits.time(m, w) != time or (
            entries.stream(m, x) == waits.stream(m, w) and entries.number(m, x) > waits.number(m, w)
        )
        if waits.node(m, w) == 0 or follows:
            return x
        x = entries.link(m, x)
    return 0


@part
def _next_event(m: Ints, w: int, x: int, time: int) -> int:
    position = entries.position(m, x)
    while x != 0 and entries.position(m, x) == position:
        x = entries.link(m, x)
    return _reach(m, w, x, time)


@inlined
def _next_row(m: Ints, y: int) -> int:
    """Return the next row of the same event."""
    link = entries.link(m, y)
    return link if link != 0 and entries.position(m, link) == entries.position(m, y) else 0


@part
def _try(machine: RunMachine, w: int, c: int) -> int:
    """Return whether rows, one for each part, join with a run and each other, and the conditions hold."""
    t, m = machine.t, machine.m
    trial, rows = header.trial(m), header.tried(m) + parts.LIMIT
    copy_slots(m, machine.f, w, trial)
    unknown = False
    for i in range((candidates.parts_end(t, c) - candidates.parts(t, c)) // parts.SIZE):
        unit, y = parts.unit(t, candidates.parts(t, c) + i * parts.SIZE), m[rows + i]
        # A part has no access to its siblings, except that it must join with them.
        verdict = judge_row(at_entries(machine), w, unit, y)
        if verdict <= FALSE:
            return FALSE
        if verdict == UNKNOWN:
            unknown = True
        for j in range(units.binds(t, unit), units.binds_end(t, unit), 2):
            identifier, slot = value(m, t[j + 1], y), trial + SLOTS + t[j]
            if identifier == 0:
                continue
            if m[slot] == MANY:
                unknown = True
            elif m[slot] != 0 and m[slot] != identifier:
                return FALSE
            m[slot] = identifier
    if candidates.code(t, c) < candidates.code_end(t, c):
        verdict = meets(at_entries(machine), candidates.code(t, c), candidates.code_end(t, c), trial, 0)
        if verdict != TRUE:
            return max(verdict, FALSE)
    return UNKNOWN if unknown else TRUE


@part
def _judge_events(machine: RunMachine, w: int, c: int, into: int) -> int:
    """Return whether events, one for each part, are relevant for a candidate. The gathered entries are
    written to ``into``.
    """
    t, m = machine.t, machine.m
    size = (candidates.parts_end(t, c) - candidates.parts(t, c)) // parts.SIZE
    events, rows = header.tried(m), header.tried(m) + parts.LIMIT
    for i in range(size):
        m[rows + i] = m[events + i]
        m[into + 1 + i] = m[events + i]
    true, unknown = 0, 0
    while true + unknown < 2 or true == 0:
        verdict = _try(machine, w, c)
        if verdict != FALSE:
            if verdict == TRUE:
                true += 1
            else:
                unknown += 1
            if true + unknown == 1:
                for i in range(size):
                    m[into + 1 + i] = m[rows + i]
        i = 0
        while i < size:
            m[rows + i] = _next_row(m, m[rows + i])
            if m[rows + i] != 0:
                break
            m[rows + i] = m[events + i]
            i += 1
        if i == size:
            break
    m[into] = 1 if true + unknown > 1 else 0
    if m[into] != 0:
        for i in range(size):
            m[into + 1 + i] = m[events + i]
    if true > 0:
        return TRUE
    if unknown == 0:
        return FALSE
    asked = header.asked(m)
    if header.answered(m) <= asked < header.most_decisions(m):
        at = header.questions(m) + asked * questions.SIZE
        for i in range(size):
            questions.set_position(m, at, i, entries.position(m, m[events + i]))
    return answer(m, w, candidates.number(t, c))


@part
def _is_barred(t: Ints, m: Ints, w: int, size: int) -> bool:
    """Return whether an event that must not be skipped precedes all the events tried."""
    events = header.tried(m)
    stream, least = entries.stream(m, m[events]), entries.number(m, m[events])
    for i in range(1, size):
        if entries.stream(m, m[events + i]) != stream:
            return False
        least = min(least, entries.number(m, m[events + i]))
    return bool((waits.barred(m, w) >> stream) & 1 and least > m[w + t[BARS] + stream])


@part
def _begin(t: Ints, m: Ints, p: int, w: int, c: int, time: int) -> bool:
    """Begin with the first combination: for each part, the newest event of a time that a run can take. Return
    whether every part has one.
    """
    events = header.tried(m)
    heads = events + 2 * parts.LIMIT
    for i in range((candidates.parts_end(t, c) - candidates.parts(t, c)) // parts.SIZE):
        chain = parts.chain(t, candidates.parts(t, c) + i * parts.SIZE)
        bucket = find_bucket(m, chain, p, 0, 0, 0, 0, False)
        head = _reach(m, w, buckets.head(m, bucket), time) if bucket != 0 else 0
        if head == 0:
            return False
        m[heads + i] = m[events + i] = head
    return True


@part
def _go_on(m: Ints, w: int, size: int, time: int) -> bool:
    """Go on to the next combination of events; return whether there is one."""
    events = header.tried(m)
    heads = events + 2 * parts.LIMIT
    for i in range(size):
        m[events + i] = _next_event(m, w, m[events + i], time)
        if m[events + i] != 0:
            return True
        m[events + i] = m[heads + i]
    return False


@part
def gather(machine: RunMachine, position: int, time: int, p: int, w: int, c: int) -> int:
    """Record the combinations with an event that a run can take. Return how the relevant combinations exclude
    later events.

    0: no combination is relevant; 1: each one has events of several streams; 2: some have events of one
    stream only.
    """
    t, m = machine.t, machine.m
    if not _begin(t, m, p, w, c, time):
        return 0
    size = (candidates.parts_end(t, c) - candidates.parts(t, c)) // parts.SIZE
    events, bars, goes = header.tried(m), 0, True
    while goes:
        has_it, first, stream = False, header.now(m), entries.stream(m, m[events])
        oldest = position
        for i in range(size):
            x = m[events + i]
            has_it = has_it or entries.position(m, x) == position
            first = min(first, entries.axis(m, x))
            oldest = min(oldest, entries.position(m, x))
            if entries.stream(m, x) != stream:
                stream = SEVERAL
        begins = header.now(m) <= reach_after(first, t[LIMIT]) and oldest > partitions.dropped(m, p)
        if has_it and (waits.node(m, w) != 0 or begins):
            into = header.gathered(m) + min(header.decided(m), header.most_decisions(m)) * GATHERED_SIZE
            if _judge_events(machine, w, c, into) == TRUE:
                bars = max(bars, 1 if stream == SEVERAL else 2)
                if candidates.place(t, c) != 0 and not _is_barred(t, m, w, size):
                    note(m, w, c, into)
        goes = _go_on(m, w, size, time)
    return bars


@part
def bind_entries(t: Ints, m: Ints, w: int, unit: int, x: int, several: bool) -> None:
    """Bind the slots to the values of a row, or to what all rows of its event agree on."""
    for i in range(units.binds(t, unit), units.binds_end(t, unit), 2):
        slot, column = w + SLOTS + t[i], t[i + 1]
        identifier = value(m, column, x)
        if several and m[slot] > 0:
            continue
        if several:
            y = _next_row(m, x)
            while y != 0:
                if value(m, column, y) != identifier:
                    identifier = MANY
                y = _next_row(m, y)
        if identifier != 0:
            m[slot] = identifier
