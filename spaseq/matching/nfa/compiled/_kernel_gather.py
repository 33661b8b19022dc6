"""``X & Y``: candidates that gather events of one time, one for each part; one event may serve several.

The rows of the parts' GPMs are entries, so the events of the time are found in their chains. A combination of
events is tried on a copy of the run: row by row, each part is judged and binds its slots.
"""

from __future__ import annotations

from spaseq._jit import inlined, part
from spaseq._kernel_events import reach_after
from spaseq.matching.filters._kernel_machine import holds
from spaseq.matching.filters._kernel_values import (
    BARS,
    FALSE,
    LIMIT,
    MANY,
    SLOTS,
    TRUE,
    UNKNOWN,
    Codes,
    Floats,
    Ints,
)
from spaseq.matching.nfa.compiled._kernel_judge import judge_row
from spaseq.matching.nfa.compiled._kernel_layout import (
    GATHERED_SIZE,
    SEVERAL,
    value,
)
from spaseq.matching.nfa.compiled._kernel_memory import (
    find_bucket,
)
from spaseq.matching.nfa.records import (
    buckets,
    candidates,
    decisions,
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
def _try(t: Ints, m: Ints, f: Floats, numbers: Floats, codes: Codes, w: int, c: int) -> int:
    """Return whether rows, one for each part, join with a run and each other, and the conditions hold."""
    trial, rows = header.trial(m), header.tried(m) + parts.LIMIT
    for j in range(SLOTS, header.width(m)):
        m[trial + j] = m[w + j]
    for j in range(int(f[0])):
        f[waits.sums(m, trial) + j] = f[waits.sums(m, w) + j]
    unknown = False
    for i in range((candidates.parts_end(t, c) - candidates.parts(t, c)) // parts.SIZE):
        unit, y = parts.unit(t, candidates.parts(t, c) + i * parts.SIZE), m[rows + i]
        # A part has no access to its siblings, except that it must join with them.
        verdict = judge_row(t, m, f, m, numbers, codes, w, unit, y)
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
        verdict = holds(
            t,
            candidates.code(t, c),
            candidates.code_end(t, c),
            m,
            header.kinds(m),
            f,
            trial,
            waits.sums(m, trial),
            m,
            0,
            numbers,
            codes,
        )
        if verdict != TRUE:
            return max(verdict, FALSE)
    return UNKNOWN if unknown else TRUE


@part
def _judge_events(
    t: Ints, m: Ints, f: Floats, numbers: Floats, codes: Codes, w: int, c: int, into: int
) -> int:
    """Return whether events, one for each part, are a match of a candidate; ``into`` gets what
    was gathered.
    """
    size = (candidates.parts_end(t, c) - candidates.parts(t, c)) // parts.SIZE
    events, rows = header.tried(m), header.tried(m) + parts.LIMIT
    for i in range(size):
        m[rows + i] = m[events + i]
        m[into + 1 + i] = m[events + i]
    true, unknown = 0, 0
    while true + unknown < 2 or true == 0:
        verdict = _try(t, m, f, numbers, codes, w, c)
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
    header.set_asked(m, asked + 1)
    if asked < header.answered(m):
        return int(m[header.answers(m) + asked])
    if asked < header.most_decisions(m):
        at = header.questions(m) + asked * questions.SIZE
        questions.set_wait(m, at, w)
        questions.set_number(m, at, candidates.number(t, c))
        for i in range(size):
            questions.set_position(m, at, i, entries.position(m, m[events + i]))
    return UNKNOWN


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
def gather(
    t: Ints,
    m: Ints,
    f: Floats,
    numbers: Floats,
    codes: Codes,
    position: int,
    time: int,
    p: int,
    w: int,
    c: int,
) -> int:
    """Record the combinations with an event that a run can take; return how relevant ones exclude later
    events.

    0: there are none; 1: all are of several streams; 2: some are of one stream.
    """
    size = (candidates.parts_end(t, c) - candidates.parts(t, c)) // parts.SIZE
    events = header.tried(m)
    heads = events + 2 * parts.LIMIT
    bars = 0
    for i in range(size):
        chain = parts.chain(t, candidates.parts(t, c) + i * parts.SIZE)
        bucket = find_bucket(m, chain, p, 0, 0, 0, 0, False)
        if bucket == 0:
            return 0
        head = buckets.head(m, bucket)
        m[heads + i] = _reach(m, w, head, time)
        if m[heads + i] == 0:
            return 0
        m[events + i] = m[heads + i]
    while True:
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
            if _judge_events(t, m, f, numbers, codes, w, c, into) == TRUE:
                bars = max(bars, 1 if stream == SEVERAL else 2)
                if candidates.place(t, c) != 0 and not _is_barred(t, m, w, size):
                    if header.decided(m) < header.most_decisions(m):
                        at = header.decisions(m) + header.decided(m) * decisions.SIZE
                        decisions.set_wait(m, at, w)
                        decisions.set_what(m, at, c)
                        decisions.set_row(m, at, into)
                    header.set_decided(m, header.decided(m) + 1)
        i = 0
        while i < size:
            m[events + i] = _next_event(m, w, m[events + i], time)
            if m[events + i] != 0:
                break
            m[events + i] = m[heads + i]
            i += 1
        if i == size:
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
