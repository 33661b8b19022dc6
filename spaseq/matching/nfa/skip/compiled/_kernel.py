"""The kernel of AFTER MATCH SKIP: a priority simulation over columns, by tables.

The runs of a first event are a list in order of preference, like the threads of Pike's simulation of a
backtracking matcher. An event passes through the list from the front: a run that takes it is replaced by its
options in their order, and a complete match cuts all runs behind it. A run that agrees with an earlier one in
everything that the rest of the sequence reads can only find the same matches, less preferred, and is dropped.

If no run must see each event (``preferences.is_indexed``), an event passes only through families with a run
that waits for its keys.

Like the runs kernel, with which it shares memory and conditions, it first *decides* the effect of an event,
and can stop and be called again before it *applies* that.
"""

from __future__ import annotations

from spaseq._jit import kernel, part
from spaseq.matching.filters import batch
from spaseq.matching.filters._kernel_values import (
    N_GPMS,
    N_KEYS,
    WONDERS,
    Codes,
    Floats,
    Ints,
    RunMachine,
    pointer,
)
from spaseq.matching.nfa.compiled._kernel import find_keys, write_path
from spaseq.matching.nfa.compiled._kernel_layout import (
    ASK,
    DECISIONS_FULL,
    DONE,
    MORE_KEYS,
    ROOM,
    UNRANKED,
)
from spaseq.matching.nfa.compiled._kernel_memory import (
    find_partition,
    forget,
    move_partition,
)
from spaseq.matching.nfa.compiled._kernel_places import carry
from spaseq.matching.nfa.records import header, nodes, partitions, waits
from spaseq.matching.nfa.skip.compiled._kernel_apply import apply
from spaseq.matching.nfa.skip.compiled._kernel_decide import decide
from spaseq.matching.nfa.skip.compiled._kernel_deliver import (
    deliver_decided,
    expire,
    go_on,
    look_out,
    newest_place,
    see_partition,
)
from spaseq.matching.nfa.skip.compiled._kernel_families import (
    append,
    drop,
)
from spaseq.matching.nfa.skip.compiled._kernel_index import enter
from spaseq.matching.nfa.skip.records import (
    COMPLETED,
    SkipMachine,
    families,
    matches,
    preferences,
    results,
    roster,
)


@part
def _has_room(o: Ints, m: Ints, a: Ints) -> bool:
    """Return whether there is room to apply all decisions."""
    decided = header.decided(m)
    new = decided * (preferences.most(o) + 1) + 2
    return bool(
        header.live_waits(m) + new <= header.most_waits(m)
        and 2 * (header.live_buckets(m) + new) <= header.bucket_count(m)
        and header.live_nodes(m) + decided <= header.most_nodes(m)
        and (roster.free(a) != 0 or roster.next(a) < roster.end(a))
    )


@kernel
def run(skip: SkipMachine, floats: Floats, batch: Ints, numbers: Floats, codes: Codes) -> int:
    """Process a batch from event ``EVENT``, key ``EVENT_KEY`` on; return why it stopped."""
    return _run(pointer(RunMachine(skip.t, skip.m, floats, batch, numbers, codes)), pointer(skip))


@part
def _run(machine: RunMachine, skip: SkipMachine) -> int:
    t, m, o, a = skip.t, skip.m, skip.o, skip.a
    b = machine.b
    e = header.event(m)
    while e < batch.size(b):
        header.set_now(m, batch.axis(b, e))
        expire(skip, header.now(m), e, False)
        if batch.time(b, e) > roster.time(a):
            roster.set_time(a, batch.time(b, e))
            go_on(skip, roster.time(a), e)
        count = find_keys(t, m, b, e, True)
        if count < 0:
            return MORE_KEYS if count == -1 else UNRANKED
        for k in range(header.event_key(m), count):
            header.set_event_key(m, k)
            key = header.keys(m) + k * t[N_KEYS]
            p = find_partition(m, t[N_KEYS], key)
            if p == 0:
                header.set_decided(m, 0)
                return ROOM
            if count == 1 and t[N_KEYS] <= 1:
                key = 0
            decide(machine, skip, e, key, p)
            if m[header.kinds(m) + WONDERS] > 0:
                return ASK
            if header.decided(m) > header.most_decisions(m) or header.asked(m) > header.most_decisions(m):
                return DECISIONS_FULL
            if header.asked(m) > header.answered(m):
                return ASK
            see_partition(skip, b, e, key, p)
            # If runs are found by keys, an event that no run takes changes nothing.
            if header.decided(m) > 0 or (preferences.is_indexed(o) == 0 and partitions.head(m, p) != 0):
                if not _has_room(o, m, a):
                    header.set_answered(m, 0)
                    return ROOM
                changed = apply(machine, skip, e, key, p)
                deliver_decided(skip, p, changed, e, COMPLETED + k)
                if preferences.bounded(o) != 0:
                    look_out(t, o, m, a, p)
            header.set_answered(m, 0)
        header.set_event_key(m, 0)
        e += 1
        header.set_event(m, e)
    return DONE


@kernel
def finish(skip: SkipMachine, axis: int, time: int, closes: bool) -> None:
    """End the families with windows that end before a place on the axis, and runs that no event can extend.

    ``closes``: no event will come, and all end.
    """
    s: SkipMachine = pointer(skip)
    expire(s, axis, 0, closes)
    if time > roster.time(s.a):
        roster.set_time(s.a, time)
        go_on(s, time, 0)


@kernel
def leave(ints: Ints, alive: Ints, members: int) -> None:
    """Remove members: they need no more matches."""
    m: Ints = pointer(ints)
    a: Ints = pointer(alive)
    family = roster.oldest(a)
    while family != 0:
        following = families.later(a, family)
        if families.members(a, family) & members != 0:
            drop(m, a, family, members)
        family = following


@kernel
def oldest(alive: Ints, members: int) -> int:
    """Return the oldest family that one of these members needs; 0 if there is none."""
    a: Ints = pointer(alive)
    family = roster.oldest(a)
    while family != 0 and families.members(a, family) & members == 0:
        family = families.later(a, family)
    return int(family)


@kernel
def found(ints: Ints, alive: Ints, rows: Ints) -> None:
    """Write the matches found since the last call, a row each."""
    m: Ints = pointer(ints)
    a: Ints = pointer(alive)
    w, at = roster.found(a), 0
    while at < roster.count(a) * results.SIZE:
        node = waits.node(m, w)
        results.set_turn(rows, at, matches.turn(m, w))
        results.set_rank(rows, at, matches.rank(m, w))
        results.set_last(rows, at, nodes.position(m, node))
        results.set_first(rows, at, matches.position(m, w))
        results.set_node(rows, at, node)
        results.set_accept(rows, at, waits.gate(m, w))
        results.set_partition(rows, at, matches.partition(m, w))
        results.set_member(rows, at, waits.members(m, w))
        w = matches.link(m, w)
        at += results.SIZE


@kernel
def unroll(ints: Ints, newest: Ints, paths: Ints) -> None:
    """Write position, candidate and row of the events of some runs, one run after the other."""
    m: Ints = pointer(ints)
    at = 0
    for i in range(len(newest)):
        at = write_path(m, newest[i], paths, at)


@kernel
def forget_found(ints: Ints, alive: Ints) -> None:
    """Free the matches found."""
    m: Ints = pointer(ints)
    a: Ints = pointer(alive)
    w = roster.found(a)
    for _ in range(roster.count(a)):
        following = matches.link(m, w)
        waits.set_bucket(m, w, 0)
        forget(m, w)
        w = following
    roster.set_count(a, 0)
    roster.set_found(a, 0)


@kernel
def sweep(
    tables: Ints, ints: Ints, floats: Floats, alive: Ints, newest: Ints, new_ints: Ints, new_floats: Floats,
    new_newest: Ints,
) -> None:  # fmt: skip
    """Move all families to an empty memory, which replaces the old one. There must be no
    undelivered matches.
    """
    t: Ints = pointer(tables)
    old: Ints = pointer(ints)
    old_f: Floats = pointer(floats)
    new: Ints = pointer(new_ints)
    new_f: Floats = pointer(new_floats)
    a: Ints = pointer(alive)
    family = roster.oldest(a)
    while family != 0:
        if families.partition(a, family) > 0:
            # The first one of its partition; the others of it follow.
            p = families.partition(a, family)
            to = move_partition(t, old, p, new)
            new[to] = family
            for g in range(t[N_GPMS] if len(newest) > 0 else 0):
                new_newest[newest_place(t, new, to) + g] = newest[newest_place(t, old, p) + g]
            x = family
            while x != 0:
                families.set_partition(a, x, -to)
                x = families.next(a, x)
        families.set_partition(a, family, -families.partition(a, family))
        w = families.best(a, family)
        families.set_best(a, family, 0)
        while w != 0:
            following = waits.link(old, w)
            best = carry(old, old_f, w, new, new_f)
            waits.set_link(new, best, families.best(a, family))
            families.set_best(a, family, best)
            w = following
        last, w = 0, families.head(a, family)
        families.set_head(a, family, 0)
        while w != 0:
            following = waits.link(old, w)
            last = append(new, a, family, last, carry(old, old_f, w, new, new_f))
            if waits.bucket(new, last) != 0:
                enter(t, new, a, last)
            w = following
        family = families.later(a, family)
