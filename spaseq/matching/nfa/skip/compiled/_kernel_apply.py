"""Apply: an event passes through the runs of each family; a run that takes it is replaced by its options."""

from __future__ import annotations

from spaseq._jit import part
from spaseq.matching.filters import batch
from spaseq.matching.filters._kernel_values import BEYOND, MANY, SINGLE, START, Floats, Ints, RunMachine
from spaseq.matching.nfa.compiled._kernel_apply import copy, follow, set_last
from spaseq.matching.nfa.compiled._kernel_gaps import may_end, may_wait
from spaseq.matching.nfa.compiled._kernel_memory import forget, mix
from spaseq.matching.nfa.records import (
    candidates,
    decisions,
    gates,
    header,
    hold,
    partitions,
    places,
    waits,
)
from spaseq.matching.nfa.skip.compiled._kernel_decide import follows, takes
from spaseq.matching.nfa.skip.compiled._kernel_deliver import call_soon, is_past, pass_over
from spaseq.matching.nfa.skip.compiled._kernel_families import append, drop, forget_best, new_family
from spaseq.matching.nfa.skip.compiled._kernel_index import end_run, enter
from spaseq.matching.nfa.skip.records import (
    ALIKE_SIZE,
    AS_SUM,
    AS_TIME,
    EXACTLY,
    OPTION_SIZE,
    REFUSED,
    STEP_SIZE,
    SkipMachine,
    families,
    preferences,
    roster,
)

# Runs with the same future: they agree in everything that is read of them later.


@part
def _agree(o: Ints, m: Ints, f: Floats, w: int, x: int, start: int, end: int) -> bool:
    """Return whether two runs agree in everything that is read of them later."""
    for i in range(start, end, ALIKE_SIZE):
        at, limit = o[i], o[i + 1]
        if limit == AS_SUM:
            p, q = waits.sums(m, w) + at, waits.sums(m, x) + at
            if f[p] != f[q] or f[p + 1] != f[q + 1] or f[p + 2] != f[q + 2] or f[p + 2] == BEYOND:
                return False
            continue
        p, q = m[w + at], m[x + at]
        if limit == EXACTLY:
            if p != q or p == MANY:
                return False
        elif limit == AS_TIME:
            if p != q:
                return False
        elif min(p, limit) != min(q, limit):
            return False
    return True


@part
def _busy(m: Ints, a: Ints, w: int) -> int:
    """Return the stream of a run's last event if that event has the current time; -1 otherwise. Such a run
    takes no simultaneous event of another stream.
    """
    return int(waits.stream(m, w) if waits.time(m, w) == roster.time(a) else -1)


@part
def unknown(machine: RunMachine, skip: SkipMachine, w: int, members: int) -> int:
    """Return those of a run's members for which no earlier run in the list agrees with it.

    If there are such members, the run is added, as later runs may agree with it.

    With ``preferences.across``, an earlier run of another family also suffices for a member. The condition is
    that no family before that one has found a match for the member. A match of that run would skip this run's
    first event.
    """
    t, o, m, f, a, s, size = machine.t, skip.o, machine.m, machine.f, skip.a, skip.s, skip.size
    gate = waits.gate(m, w)
    live = preferences.gates(o) + 2 * gates.number(t, gate)
    start, end = o[live], o[live + 1]
    several = t[SINGLE] == 0
    code = mix(1, gate)
    if several:
        code = mix(mix(code, _busy(m, a, w)), waits.barred(m, w))
    for i in range(start, end, ALIKE_SIZE):
        at, limit = o[i], o[i + 1]
        if limit != AS_SUM:
            code = mix(code, m[w + at] if limit in (EXACTLY, AS_TIME) else min(m[w + at], limit))
    mask = size - 1
    at = code & mask
    # An item of the hash set is of this event only if it has the event's serial number.
    while s[2 * at] == header.serial(m):
        x = s[2 * at + 1]
        if (
            waits.gate(m, x) == gate
            and (
                not several or (_busy(m, a, x) == _busy(m, a, w) and waits.barred(m, x) == waits.barred(m, w))
            )
            and members & _known(o, m, a, w, x) != 0
            and _agree(o, m, f, w, x, start, end)
        ):
            members &= ~_known(o, m, a, w, x)
            if members == 0:
                return 0
        at = (at + 1) & mask
    s[2 * at] = header.serial(m)
    s[2 * at + 1] = w
    return members


@part
def _known(o: Ints, m: Ints, a: Ints, w: int, x: int) -> int:
    """Return the members for which the earlier run ``x`` makes the run ``w`` needless, if the two agree."""
    known, family = waits.members(m, x), waits.partition(m, x)
    if family == waits.partition(m, w):
        return int(known)
    return int(known & families.foremost(a, family) if preferences.across(o) != 0 else 0)


# Apply: an event passes through the runs of each family; a run that takes it is replaced by its options.


@part
def _take(
    machine: RunMachine,
    skip: SkipMachine,
    e: int,
    key: int,
    family: int,
    last: int,
    decision: int,
    members: int,
) -> tuple[int, int]:
    """Let a run take the event for some members, as decided: append its options after ``last``.

    Returns the new last run, and the members for which one of the options is a match.
    """
    t, o, m, f, a, b = machine.t, skip.o, machine.m, machine.f, skip.a, machine.b
    at = header.decisions(m) + decision * decisions.SIZE
    w, c, row = decisions.wait(m, at), decisions.what(m, at), decisions.row(m, at)
    members &= o[preferences.steps(o) + STEP_SIZE * candidates.number(t, c)]
    if members == 0:
        return last, 0
    taken = copy(m, f, w, family)
    set_last(m, taken, batch.time(b, e), batch.stream(b, e), members)
    waits.set_first(m, taken, families.first(a, family))
    takes(machine, e, key, taken, c, row)
    before = waits.node(m, w)
    if before != 0:
        hold(m, before)
    waits.set_node(m, taken, follow(m, before, batch.start(b) + e, candidates.number(t, c), row))
    options = preferences.places(o) + 2 * ((candidates.place(t, c) - t[START]) // places.SIZE)
    refused, complete = _refused_then(m, decision + 1), 0
    for i in range(o[options], o[options + 1], OPTION_SIZE):
        mine = members & o[i + 2] & ~complete
        if mine == 0 or (refused >> ((i - o[options]) // OPTION_SIZE)) & 1:
            continue
        new = _chosen(machine, taken, o[i], o[i + 1] != 0)
        if new == 0:
            continue
        waits.set_members(m, new, mine)
        if o[i + 1] == 0:
            _is_match(m, f, a, family, new)
            complete |= mine
            continue
        mine = unknown(machine, skip, new, mine)
        if mine == 0:
            forget(m, new)
        else:
            waits.set_members(m, new, mine)
            last = append(m, a, family, last, new)
            if preferences.is_indexed(o) != 0:
                enter(t, m, a, new)
    forget(m, taken)
    return last, complete


@part
def _chosen(machine: RunMachine, taken: int, to: int, is_gate: bool) -> int:
    """Return a copy of a run that has chosen the gate or accept ``to``; 0 if the run may not choose it."""
    m = machine.m
    new = copy(m, machine.f, taken, waits.partition(m, taken))
    if not (may_wait(machine, new, to) if is_gate else may_end(machine, new, to)):
        forget(m, new)
        return 0
    waits.set_gate(m, new, to)
    waits.set_node(m, new, waits.node(m, taken))
    hold(m, waits.node(m, taken))
    waits.set_barred(m, new, 0)
    return new


@part
def _is_match(m: Ints, f: Floats, a: Ints, family: int, w: int) -> None:
    """Record a completed run as the best one so far of its members, for each separately."""
    members = waits.members(m, w)
    if families.has(a, family) & members != 0:
        forget_best(m, a, family, members)
    families.set_has(a, family, families.has(a, family) | members)
    while members != 0:
        one = members & -members
        members &= ~one
        best = w
        if members != 0:
            best = copy(m, f, w, family)
            waits.set_gate(m, best, waits.gate(m, w))
            waits.set_node(m, best, waits.node(m, w))
            hold(m, waits.node(m, w))
            waits.set_bucket(m, best, 0)
        waits.set_members(m, best, one)
        waits.set_link(m, best, families.best(a, family))
        families.set_best(a, family, best)


@part
def _refused_then(m: Ints, decision: int) -> int:
    """Return the options, as bits, that are refused to the decision before ``decision``."""
    at = header.decisions(m) + decision * decisions.SIZE
    if decision < header.decided(m) and decisions.what(m, at) == REFUSED:
        return decisions.row(m, at)
    return 0


@part
def _extend(
    machine: RunMachine, skip: SkipMachine,
    e: int, key: int, family: int, decision: int,
) -> tuple[int, int]:  # fmt: skip
    """Apply an event to the runs of a family, with the decisions from ``decision`` on. Return the next
    decision, and the members with a match.
    """
    t, o, m, a, b = machine.t, skip.o, machine.m, skip.a, machine.b
    w = families.head(a, family)
    families.set_head(a, family, 0)
    families.set_running(a, family, 0)
    last, complete = 0, 0
    time, stream = batch.time(b, e), batch.stream(b, e)
    while w != 0:
        following = waits.link(m, w)
        over = is_past(t, o, m, w, time)
        mine, bars = waits.members(m, w), 0
        if gates.operator(t, waits.gate(m, w)) == gates.STRICT and follows(t, m, w, time, stream):
            bars = mine
        while decision < header.decided(m):
            at = header.decisions(m) + decision * decisions.SIZE
            if decisions.wait(m, at) != w:
                break
            decision += 1
            what = decisions.what(m, at)
            if what == decisions.BAR:
                bars |= decisions.row(m, at)
            elif what != REFUSED and mine & ~complete != 0:
                taken = decision - 1
                last, matched = _take(machine, skip, e, key, family, last, taken, mine & ~complete)
                complete |= matched
        if bars != 0 and t[SINGLE] == 0:
            # With several streams, an event that bars further events for one member bars them for all members
            # of the run.
            bars = 0
            waits.set_barred(m, w, waits.barred(m, w) | (1 << stream))
            waits.set_bar_time(m, w, time)
            call_soon(a, family)
        mine &= ~(complete | bars)
        if mine != 0 and not over:
            mine = unknown(machine, skip, w, mine)
        if mine == 0 or over:
            end_run(m, w)
        else:
            waits.set_members(m, w, mine)
            last = append(m, a, family, last, w)
        w = following
    return decision, complete


@part
def apply(
    machine: RunMachine, skip: SkipMachine,
    e: int, key: int, p: int,
) -> int:  # fmt: skip
    """Pass an event through the families of a partition, and begin a family if possible.

    Returns the members for which a match may be decided now.
    """
    o, m, a, b = skip.o, machine.m, skip.a, machine.b
    decision, foremost, changed = 0, preferences.members(o), 0
    indexed = preferences.is_indexed(o) != 0
    family = roster.called(a) if indexed else partitions.head(m, p)
    while family != 0:
        families.set_foremost(a, family, foremost)
        before = families.running(a, family)
        decision, complete = _extend(machine, skip, e, key, family, decision)
        following = families.after(a, family) if indexed else families.next(a, family)
        changed |= complete | (before & ~families.running(a, family))
        foremost &= ~families.has(a, family)
        gone = families.members(a, family) & ~(families.running(a, family) | families.has(a, family))
        if gone != 0:
            drop(m, a, family, gone)
        family = following
    position = batch.start(b) + e
    wanted = preferences.members(o) & ~pass_over(o, m, a, p, changed, position)
    if decision == header.decided(m) or wanted == 0:
        return changed
    if changed != 0:
        # Dropped runs may be reused for new ones: the hash set starts empty.
        header.set_serial(m, header.serial(m) + 1)
    family = new_family(m, a, p, header.now(m), position, batch.time(b, e), wanted)
    families.set_foremost(a, family, foremost)
    last, complete = 0, 0
    while decision < header.decided(m) and wanted & ~complete != 0:
        at = header.decisions(m) + decision * decisions.SIZE
        decision += 1
        what = decisions.what(m, at)
        if what != REFUSED:
            taken = decision - 1
            last, matched = _take(machine, skip, e, key, family, last, taken, wanted & ~complete)
            complete |= matched
    gone = wanted & ~(families.running(a, family) | families.has(a, family))
    if gone != 0:
        drop(m, a, family, gone)
    return changed | complete
