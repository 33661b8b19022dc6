"""Decide: the effect of an event on each run that it concerns. No run is changed."""

from __future__ import annotations

import numpy as np

from spaseq._jit import inlined, part, rare
from spaseq._kernel_events import reach_after
from spaseq.matching.filters import batch
from spaseq.matching.filters._kernel_values import (
    LIMIT,
    START,
    STRING,
    TRUE,
    WOKEN,
    WONDERS,
    Ints,
    RunMachine,
)
from spaseq.matching.filters._kernel_values import NODE as IS_NODE
from spaseq.matching.nfa.compiled._kernel_gather import gather
from spaseq.matching.nfa.compiled._kernel_judge import belongs, judge
from spaseq.matching.nfa.compiled._kernel_layout import (
    share_of,
    value,
)
from spaseq.matching.nfa.compiled._kernel_memory import find_bucket, note
from spaseq.matching.nfa.compiled._kernel_places import (
    bound,
    bucket_of_row,
    dissolve,
    is_orderly,
    is_over,
)
from spaseq.matching.nfa.records import (
    buckets,
    candidates,
    decisions,
    gates,
    header,
    partitions,
    parts,
    places,
    waits,
)


@rare
def _gather(machine: RunMachine, e: int, p: int, w: int, c: int) -> int:
    """Call ``gather``, unless the event has no row for any part; return 0 then."""
    t, b = machine.t, machine.b
    for j in range(candidates.parts(t, c), candidates.parts_end(t, c), parts.SIZE):
        g = parts.gpm(t, j)
        if share_of(b, g, e) != 0:
            return int(gather(machine, batch.start(b) + e, batch.time(b, e), p, w, c))
    return 0


@rare
def _show_gathering(machine: RunMachine, e: int, key: int, w: int) -> None:
    """Decide the effect of the event on a wait at a gate where several events may be gathered."""
    t, m, b = machine.t, machine.m, machine.b
    gate = waits.gate(m, w)
    barred = (waits.barred(m, w) >> batch.stream(b, e)) & 1
    bars = 2 if gates.operator(t, gate) == gates.STRICT else 0
    for c in range(gates.candidates(t, gate), gates.candidates_end(t, gate), candidates.SIZE):
        if candidates.parts(t, c) < candidates.parts_end(t, c):
            found = _gather(machine, e, waits.partition(m, w), w, c)
            if candidates.rival(t, c) != 0:
                bars = max(bars, found)
            continue
        share = share_of(b, candidates.gpm(t, c), e)
        if barred or share == 0:
            continue
        verdict, row = judge(machine, share, key, w, c)
        if verdict == TRUE:
            if candidates.place(t, c) != 0:
                note(m, w, c, row)
            if candidates.rival(t, c) != 0:
                bars = 2
    if bars > 0:
        note(m, w, decisions.BAR, bars)


@rare
def _show_parted(machine: RunMachine, e: int, key: int, w: int) -> None:
    """Decide the effect of the event on a wait at a gate of several queries: each waits for an element of its
    own, which it must not skip.
    """
    t, m, b = machine.t, machine.m, machine.b
    gate, bit, parts_with = waits.gate(m, w), 1, 0
    first, last, taken = batch.shares(b, e), batch.shares(b, e + 1), waits.taken(m, w)
    for c in range(gates.candidates(t, gate), gates.candidates_end(t, gate), candidates.SIZE):
        g, share = candidates.gpm(t, c), first
        while share < last and batch.gpm(b, share) != g:
            share += batch.SHARE
        if share < last and taken & bit == 0:
            verdict, row = judge(machine, share, key, w, c)
            if verdict == TRUE:
                note(m, w, c, row)
                parts_with |= bit
        bit <<= 1
    if parts_with != 0:
        note(m, w, decisions.PART, parts_with)


@part
def _show(machine: RunMachine, e: int, key: int, w: int) -> None:
    """Decide the effect of the event on one wait."""
    t, m, b = machine.t, machine.m, machine.b
    time, stream = batch.time(b, e), batch.stream(b, e)
    if is_over(m, w, t[LIMIT], batch.axis(b, e), time):
        note(m, w, decisions.DROP, 0)
        return
    if time == waits.time(m, w) and not (
        stream == waits.stream(m, w) and batch.number(b, e) > waits.number(m, w)
    ):
        return
    gate = waits.gate(m, w)
    if gates.gathers(t, gate) != 0:
        _show_gathering(machine, e, key, w)
        return
    if (waits.barred(m, w) >> stream) & 1:
        return
    if gates.parted(t, gate) != 0:
        _show_parted(machine, e, key, w)
        return
    bars = gates.operator(t, gate) == gates.STRICT
    for c in range(gates.candidates(t, gate), gates.candidates_end(t, gate), candidates.SIZE):
        share = share_of(b, candidates.gpm(t, c), e)
        if share == 0:
            continue
        verdict, row = judge(machine, share, key, w, c)
        if verdict == TRUE:
            if candidates.place(t, c) != 0:
                note(m, w, c, row)
            if candidates.rival(t, c) != 0:
                bars = True
    if bars:
        note(m, w, decisions.BAR, 0)


@part
def _is_of_bucket(t: Ints, m: Ints, b: Ints, bucket: int, gate: int, r: int) -> bool:
    """Return whether a row has the join key of a bucket at a gate with one candidate."""
    at = candidates.keys(t, gates.candidates(t, gate))
    for j in range(gates.keys_end(t, gate) - gates.keys(t, gate)):
        if value(b, t[at + j], r) != buckets.key(m, bucket, j):
            return False
    return True


@rare
def _visit_heap(machine: RunMachine, e: int, key: int, bucket: int) -> None:
    """Visit the waits of a heap with a bound that the event's value passes. If the value has no order, make
    the heap a list.
    """
    t, m, b, numbers, codes = machine.t, machine.m, machine.b, machine.n, machine.c
    root = buckets.root(m, bucket)
    gate = waits.gate(m, root)
    c = gates.candidates(t, gate)
    g = candidates.gpm(t, c)
    most = -np.inf
    share = share_of(b, g, e)
    if share == 0:
        return
    for r in range(batch.first(b, share), batch.end(b, share)):
        if not belongs(t, m, b, g, r, key) or not _is_of_bucket(t, m, b, bucket, gate, r):
            continue
        identifier = value(b, gates.column(t, gate), r)
        if identifier == 0 or codes[identifier] == IS_NODE or codes[identifier] == STRING:
            continue  # comparing it with a number is an error
        if not is_orderly(codes[identifier]):
            dissolve(m, bucket)
            return
        most = max(most, gates.sign(t, gate) * numbers[identifier])
    closed = gates.closed(t, gate) != 0
    x = bound(t, m, root, numbers)
    if not (x < most or (closed and x == most)):
        return
    begin = header.decided(m)
    note(m, root, c, -1)
    i = begin
    while i < header.decided(m) and i < header.most_decisions(m):
        at = header.decisions(m) + i * decisions.SIZE
        w = decisions.wait(m, at)
        child = waits.child(m, w)
        while child != 0:
            x = bound(t, m, child, numbers)
            if x < most or (closed and x == most):
                note(m, child, c, -1)
            child = waits.link(m, child)
        if batch.axis(b, e) > reach_after(waits.first(m, w), t[LIMIT]):
            decisions.set_what(m, at, decisions.SKIP)
        else:
            decisions.set_row(m, at, judge(machine, share, key, w, c)[1])
        i += 1
    note(m, bucket, decisions.POP, i - begin)
    note(m, begin, decisions.FORGET, i - begin)


@part
def _visit(machine: RunMachine, e: int, key: int, bucket: int) -> None:
    """Visit the waits of a bucket, once per event."""
    m = machine.m
    if bucket == 0 or buckets.seen(m, bucket) == header.serial(m):
        return
    buckets.set_seen(m, bucket, header.serial(m))
    if buckets.root(m, bucket) != 0:
        _visit_heap(machine, e, key, bucket)
    w = buckets.head(m, bucket)
    while w != 0:
        _show(machine, e, key, w)
        w = waits.link(m, w)


@part
def _visit_keys(
    machine: RunMachine, e: int, key: int, p: int, gate: int,
    share: int, at: int,
) -> None:  # fmt: skip
    """Visit the waits at a gate that have the join key of a row of a share; ``at``: offset of the key
    columns.
    """
    t, m, b = machine.t, machine.m, machine.b
    g = batch.gpm(b, share)
    for r in range(batch.first(b, share), batch.end(b, share)):
        if not belongs(t, m, b, g, r, key):
            continue
        _visit(machine, e, key, bucket_of_row(t, m, b, gate, p, r, at))


@inlined
def _visit_gate(machine: RunMachine, e: int, key: int, p: int, gate: int) -> None:
    """Visit the waits at a gate that the event may concern."""
    t, m, b = machine.t, machine.m, machine.b
    if gates.keys_end(t, gate) == gates.keys(t, gate):
        _visit(machine, e, key, find_bucket(m, gate, p, 0, 0, 0, 0, False))
        return
    c = gates.candidates(t, gate)
    while c < gates.candidates_end(t, gate):
        j = candidates.parts(t, c)
        if j == candidates.parts_end(t, c):
            share = share_of(b, candidates.gpm(t, c), e)
            if share != 0:
                _visit_keys(machine, e, key, p, gate, share, candidates.keys(t, c))
        while j < candidates.parts_end(t, c):
            share = share_of(b, parts.gpm(t, j), e)
            if share != 0:
                _visit_keys(machine, e, key, p, gate, share, parts.keys(t, j))
            j += parts.SIZE
        c += candidates.SIZE
    if header.is_loose(m) != 0:
        _visit(machine, e, key, find_bucket(m, gate, p, -1, -1, -1, -1, False))


@inlined
def decide(machine: RunMachine, e: int, key: int, p: int) -> None:
    t, m, b = machine.t, machine.m, machine.b
    header.set_decided(m, 0)
    header.set_asked(m, 0)
    m[header.kinds(m) + WONDERS] = 0
    header.set_serial(m, header.serial(m) + 1)
    # This is a while loop because a range with a step would cost a division for each event.
    gate, last = places.gates(t, t[START]), places.gates_end(t, t[START])
    while gate < last:
        c = gates.candidates(t, gate)
        while c < gates.candidates_end(t, gate):
            if candidates.parts(t, c) < candidates.parts_end(t, c):
                _gather(machine, e, p, header.waits(m), c)
            else:
                share = share_of(b, candidates.gpm(t, c), e)
                if share != 0:
                    verdict, row = judge(machine, share, key, header.waits(m), c)
                    if verdict == TRUE:
                        note(m, header.waits(m), c, row)
            c += candidates.SIZE
        gate += gates.SIZE
    w = partitions.head(m, p)
    while w != 0:
        _show(machine, e, key, w)
        w = waits.link(m, w)
    share, last = batch.shares(b, e), batch.shares(b, e + 1)
    while share < last:
        woken = t[WOKEN] + 2 * batch.gpm(b, share)
        for i in range(t[woken], t[woken + 1]):
            gate = t[i]
            seen = header.gates_seen(m) + gates.number(t, gate)
            if m[seen] != header.serial(m):
                m[seen] = header.serial(m)
                _visit_gate(machine, e, key, p, gate)
        share += batch.SHARE
