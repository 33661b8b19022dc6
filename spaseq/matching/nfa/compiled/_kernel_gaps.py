"""Negations: the gaps of runs, the rows that a run looks back at, and whether a forbidden row is in a gap.

A gap opens after some event (or when the window begins), and closes before the first event of the element
that owns it. When that element is complete, nothing in the gap may be relevant for the forbidden unit, in the
context of the run then. So rows are kept as *entries*, in chains by partition and key, newest first, and a
run looks back over its gap. If the tables cannot decide, the run is ``UNSURE``: it continues, and if it
becomes a match, that is decided exactly.
"""

from __future__ import annotations

from spaseq._jit import inlined, part, rare
from spaseq._kernel_events import reach_after, reach_before
from spaseq.matching.filters import batch
from spaseq.matching.filters._kernel_aggregates import clear_sum, fold
from spaseq.matching.filters._kernel_values import (
    A_KIND,
    A_OFFSET,
    A_SIZE,
    A_SUM,
    ACC_COUNT,
    ACC_FIRST,
    ACC_LAST,
    ACC_SUM,
    AGGREGATES,
    BEYOND,
    CHAINS,
    CHAINS_END,
    FALSE,
    GAPS,
    LIMIT,
    MANY,
    N_GAPS,
    N_KLEENES,
    N_SLOTS,
    SINCES,
    SINCES_END,
    SLOTS,
    TRUE,
    UNKNOWN,
    Floats,
    Ints,
    RunMachine,
)
from spaseq.matching.nfa.compiled._kernel_judge import at_entries, belongs, judge_row, meets
from spaseq.matching.nfa.compiled._kernel_layout import (
    FIRST_GAP,
    FORBIDDEN_SIZE,
    IS_LED,
    LED,
    NOWHERE,
    UNSURE,
    rows_of,
    value,
)
from spaseq.matching.nfa.compiled._kernel_memory import find_bucket, move_partition
from spaseq.matching.nfa.records import (
    accepts,
    actions,
    buckets,
    chains,
    checks,
    entries,
    gaps,
    gates,
    header,
    kleenes,
    waits,
)

# --- what is remembered ---------------------------------------------------------------------------


@rare
def wanted(t: Ints, b: Ints, e: int) -> int:
    """Return the most entries that an event needs."""
    count = 0
    for chain in range(t[CHAINS], t[CHAINS_END], chains.SIZE):
        g = chains.gpm(t, chain)
        first, last = rows_of(b, g, e)
        count += last - first
    return count


@part
def _enter(t: Ints, m: Ints, x: int, p: int) -> None:
    """Put an entry at the head of its chain."""
    entries.set_partition(m, x, p)
    chain = entries.chain(m, x)
    at = chains.keys(t, chain)
    size = chains.keys_end(t, chain) - at
    k0 = value(m, t[at], x) if size > 0 else 0
    k1 = value(m, t[at + 1], x) if size > 1 else 0
    k2 = value(m, t[at + 2], x) if size > 2 else 0
    k3 = value(m, t[at + 3], x) if size > 3 else 0
    bucket = find_bucket(m, chain, p, k0, k1, k2, k3, True)
    entries.set_link(m, x, buckets.head(m, bucket))
    buckets.set_head(m, bucket, x)


@inlined
def _new_entry(m: Ints) -> int:
    x = header.next_entry(m)
    header.set_next_entry(m, header.next_entry(m) + header.entry_width(m))
    header.set_live_entries(m, header.live_entries(m) + 1)
    return int(x)


@rare
def remember(t: Ints, m: Ints, b: Ints, e: int, key: int, p: int) -> None:
    """Enter the rows of an event in the chains of a partition."""
    for chain in range(t[CHAINS], t[CHAINS_END], chains.SIZE):
        g = chains.gpm(t, chain)
        first, last = rows_of(b, g, e)
        for r in range(first, last):
            if not belongs(t, m, b, g, r, key):
                continue
            x = _new_entry(m)
            entries.set_chain(m, x, chain)
            entries.set_time(m, x, batch.time(b, e))
            entries.set_stream(m, x, batch.stream(b, e))
            entries.set_number(m, x, batch.number(b, e))
            entries.set_axis(m, x, batch.axis(b, e))
            entries.set_position(m, x, batch.start(b) + e)
            entries.set_row(m, x, r)
            start = chains.columns(t, chain)
            for j in range(chains.columns_end(t, chain) - start):
                entries.set_value(m, x, j, value(b, t[start + j], r))
            _enter(t, m, x, p)


@part
def move_entry(t: Ints, old: Ints, x: int, new: Ints) -> None:
    """Copy an entry into another memory."""
    to = _new_entry(new)
    for j in range(header.entry_width(old)):
        new[to + j] = old[x + j]
    _enter(t, new, to, move_partition(t, old, entries.partition(old, x), new))


# --- gaps -----------------------------------------------------------------------------------------


@inlined
def _precedes(time: int, stream: int, number: int, later: int, other: int, limit: int) -> bool:
    return time < later or (time == later and stream == other and number < limit)


@rare
def begin(t: Ints, m: Ints, w: int, time: int, stream: int, number: int) -> None:
    """Set the end of those gaps that have an owner but no end yet: they end before this event."""
    start = w + t[GAPS] + FIRST_GAP
    for gap in range(start, start + t[N_GAPS] * gaps.SIZE, gaps.SIZE):
        if gaps.forbidden(m, gap) != 0 and gaps.owner(m, gap) != 0 and gaps.before_stream(m, gap) == NOWHERE:
            gaps.set_before_time(m, gap, time)
            gaps.set_before_stream(m, gap, stream)
            gaps.set_before_number(m, gap, number)


@part
def _newest(t: Ints, m: Ints, w: int, check: int) -> int:
    """Return the newest entry that a run's check must look at; 0 if there is none."""
    at, slots = checks.keys(t, check), w + SLOTS
    size = checks.keys_end(t, check) - at
    k0 = m[slots + t[at]] if size > 0 else 0
    k1 = m[slots + t[at + 1]] if size > 1 else 0
    k2 = m[slots + t[at + 2]] if size > 2 else 0
    k3 = m[slots + t[at + 3]] if size > 3 else 0
    chain = checks.chain(t, check)
    if (size > 0 and k0 <= 0) or (size > 1 and k1 <= 0) or (size > 2 and k2 <= 0) or (size > 3 and k3 <= 0):
        k0, k1, k2, k3 = 0, 0, 0, 0
        chain = checks.every(t, check)
    bucket = find_bucket(m, chain, waits.partition(m, w), k0, k1, k2, k3, False)
    return buckets.head(m, bucket) if bucket != 0 else 0


@inlined
def _is_inside(m: Ints, gap: int, x: int, leads: bool) -> bool:
    """Return whether an entry is after the beginning of a gap."""
    time, stream, number = entries.time(m, x), entries.stream(m, x), entries.number(m, x)
    after = gaps.after_time(m, gap), gaps.after_stream(m, gap), gaps.after_number(m, gap)
    return leads or _precedes(after[0], after[1], after[2], time, stream, number)


@inlined
def _is_before(t: Ints, m: Ints, w: int, gap: int, x: int, end: bool) -> bool:
    """Return whether an entry is before the end of a gap, or with ``end``, before the end of the window."""
    if end:
        return entries.axis(m, x) <= reach_after(waits.first(m, w), t[LIMIT])
    time, stream, number = entries.time(m, x), entries.stream(m, x), entries.number(m, x)
    before = gaps.before_time(m, gap), gaps.before_stream(m, gap), gaps.before_number(m, gap)
    return _precedes(time, stream, number, before[0], before[1], before[2])


@part
def look_back(machine: RunMachine, w: int, gap: int, view: int, end: bool) -> tuple[int, bool, int]:
    """Return whether a forbidden row is in a gap. For a gap since the window began, also return whether a
    forbidden row precedes the match, and its latest place on the window's axis.

    ``end``: the gap lasts to the end of the window.
    """
    t, m = machine.t, machine.m
    forbidden = gaps.forbidden(m, gap) + view * FORBIDDEN_SIZE
    leads = gaps.after_stream(m, gap) == NOWHERE
    oldest = reach_before(header.now(m), t[LIMIT])
    unknown, led, latest = False, False, 0
    for check in range(t[forbidden], t[forbidden + 1], checks.SIZE):
        x = _newest(t, m, w, check)
        while x != 0:
            too_old = entries.axis(m, x) < oldest if leads else entries.time(m, x) < gaps.after_time(m, gap)
            if too_old:
                break
            if _is_inside(m, gap, x, leads) and _is_before(t, m, w, gap, x, end):
                verdict = judge_row(at_entries(machine), w, checks.unit(t, check), x)
                if verdict == TRUE and checks.sure(t, check) != 0:
                    if not leads:
                        return TRUE, False, 0
                    latest = max(latest, entries.axis(m, x)) if led else entries.axis(m, x)
                    led = True
                    break
                if verdict > FALSE:
                    unknown = True
            x = entries.link(m, x)
    return (UNKNOWN if unknown else FALSE), led, latest


@part
def gap_action(machine: RunMachine, w: int, action: int, about: int, number: int) -> bool:
    """Do an action of negations on a wait; return False if a forbidden event has surely occurred."""
    t, m = machine.t, machine.m
    knows = w + t[GAPS]
    for gap in range(knows + FIRST_GAP, knows + FIRST_GAP + t[N_GAPS] * gaps.SIZE, gaps.SIZE):
        forbidden = gaps.forbidden(m, gap)
        if action == actions.FORBID:
            if forbidden == 0:
                gaps.set_forbidden(m, gap, about)
                gaps.set_owner(m, gap, 0)
                gaps.set_after_time(m, gap, waits.time(m, w))
                gaps.set_after_stream(m, gap, waits.stream(m, w))
                gaps.set_after_number(m, gap, waits.number(m, w))
                gaps.set_before_stream(m, gap, NOWHERE)
                return True
        elif forbidden == 0:
            continue
        elif action == actions.AWAIT:
            if gaps.owner(m, gap) == 0:
                gaps.set_owner(m, gap, number)
        elif gaps.owner(m, gap) == number:
            verdict, led, latest = look_back(machine, w, gap, about, False)
            if verdict == UNKNOWN:
                m[knows + UNSURE] = 1
            if verdict == TRUE:
                return False
            if led:
                m[knows + LED] = max(m[knows + LED], latest) if m[knows + IS_LED] != 0 else latest
                m[knows + IS_LED] = 1
            gaps.set_forbidden(m, gap, 0)
    return True


# Actions: the effects of Kleenes, negations and time bounds on a wait, and whether it may continue.


@rare
def act(machine: RunMachine, w: int, start: int, end: int) -> bool:
    """Do actions on a wait; return False if one of them is impossible."""
    t, m, f, numbers, codes = machine.t, machine.m, machine.f, machine.n, machine.c
    begun = w + SLOTS + t[N_SLOTS]
    completed = begun + t[N_KLEENES]
    aggregates = completed + t[N_KLEENES]
    for i in range(start, end, actions.SIZE):
        action, kleene, most = actions.kind(t, i), actions.about(t, i), actions.number(t, i)
        if action == actions.SINCE:
            m[w + t[SINCES] + kleene], m[w + t[SINCES_END] + kleene] = 0, 1
            continue
        if action == actions.UNTIL:
            if waits.time(m, w) > reach_after(m[w + t[SINCES] + kleene], t[most]):
                return False
            continue
        if action >= actions.FORBID:
            if not gap_action(machine, w, action, kleene, most):
                return False
            continue
        number = kleenes.number(t, kleene)
        if action == actions.ENTER:
            m[begun + number] = 1
            m[completed + number] = 0
            for j in range(kleenes.aggregates(t, kleene), kleenes.aggregates_end(t, kleene)):
                m[aggregates + j] = 0
                if t[t[AGGREGATES] + j * A_SIZE + A_KIND] == ACC_SUM:
                    clear_sum(f, waits.sums(m, w) + t[t[AGGREGATES] + j * A_SIZE + A_SUM])
            continue
        iterations = m[begun + number]
        if action == actions.AGAIN and most >= 0 and iterations >= most:
            return False
        if action == actions.LEAVE and iterations < most:
            return False
        for j in range(kleenes.aggregates(t, kleene), kleenes.aggregates_end(t, kleene)):
            fold(t, m, f, w, waits.sums(m, w), j, numbers, codes)
        m[completed + number] += 1
        own = kleenes.own(t, kleene)
        if action == actions.AGAIN:
            m[begun + number] += 1
            for j in range(own, kleenes.own_end(t, kleene)):
                waits.set_slot(m, w, t[j], 0)
        elif m[completed + number] > 1:
            for j in range(own, kleenes.own_end(t, kleene)):
                waits.set_slot(m, w, t[j], MANY)
    return True


@part
def _may(machine: RunMachine, w: int, begin: int, end: int, code: int, code_end: int) -> bool:
    """Do actions on a wait; return whether it may continue: no condition decided here surely fails."""
    if begin < end and not act(machine, w, begin, end):
        return False
    return code == code_end or meets(machine, code, code_end, w, 0) > FALSE


@inlined
def may_wait(machine: RunMachine, w: int, gate: int) -> bool:
    """Do a gate's actions on a wait; return whether it may wait there."""
    t = machine.t
    begin, end = gates.actions(t, gate), gates.actions_end(t, gate)
    return _may(machine, w, begin, end, gates.code(t, gate), gates.code_end(t, gate))


@inlined
def may_end(machine: RunMachine, w: int, accept: int) -> bool:
    """Do an accept's actions on a wait; return whether it may be a match."""
    t = machine.t
    begin, end = accepts.actions(t, accept), accepts.actions_end(t, accept)
    return _may(machine, w, begin, end, accepts.code(t, accept), accepts.code_end(t, accept))


@rare
def blur(t: Ints, m: Ints, f: Floats, w: int, kleene: int) -> None:
    """Mark the aggregates of an iteration with several solutions: the tables cannot express their count and
    sum.
    """
    start = w + SLOTS + t[N_SLOTS] + 2 * t[N_KLEENES]
    for j in range(kleenes.aggregates(t, kleene), kleenes.aggregates_end(t, kleene)):
        a = t[AGGREGATES] + j * A_SIZE
        kind = t[a + A_KIND]
        further = t[a + A_OFFSET] > 0 and (kind == ACC_LAST or (kind == ACC_FIRST and m[start + j] == 0))
        if kind == ACC_COUNT or further:
            m[start + j] = MANY
        elif kind == ACC_SUM:
            f[waits.sums(m, w) + t[a + A_SUM] + 2] = BEYOND
