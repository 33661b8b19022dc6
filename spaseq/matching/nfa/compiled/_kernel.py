"""The runs kernel: NFA_scep interpreted over columns, by tables (SPAseq paper, 6.3 and 7.2).

One call processes a batch as far as possible. Each event has two steps: *decide*, which changes no run,
determines the effect on each run that the event concerns; *apply* carries it out. Between the two the kernel
can stop, and be called again: if a condition is beyond the tables (``ASK``: the caller answers, and the same
decisions are made again), if an array is full (``ROOM``, ``DECISIONS``, ``MORE_KEYS``), or if an event has
several keys, and the caller must provide their order (``UNRANKED``).

Most functions take a ``RunMachine`` first: the addresses of all arrays. ``t`` are the tables (``tables``),
``m`` and ``f`` the memory (``_kernel_memory``), ``b`` the batch, ``n`` and ``c`` the id table (``numbers``).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spaseq._jit import inlined, kernel, part, rare
from spaseq._kernel_events import reach_before
from spaseq.matching.filters import batch
from spaseq.matching.filters._kernel_values import (
    APART,
    CHAINS,
    CHAINS_END,
    CONSUMES,
    LIMIT,
    MOST_ACCEPTS,
    MOST_GATES,
    MOST_PARTS,
    N_KEYS,
    PARTITION_COLUMNS,
    WONDERS,
    Codes,
    Floats,
    Ints,
    RunMachine,
    pointer,
)
from spaseq.matching.nfa.compiled._kernel_apply import apply, end_due, is_due
from spaseq.matching.nfa.compiled._kernel_decide import decide
from spaseq.matching.nfa.compiled._kernel_gaps import move_entry, remember, wanted
from spaseq.matching.nfa.compiled._kernel_layout import (
    ASK,
    CONSUME,
    DECISIONS_FULL,
    DONE,
    DRAIN,
    MORE_KEYS,
    ROOM,
    UNRANKED,
    value,
)
from spaseq.matching.nfa.compiled._kernel_memory import (
    find_partition,
    release,
)
from spaseq.matching.nfa.compiled._kernel_places import (
    drop,
    is_over,
    move,
)
from spaseq.matching.nfa.records import entries, findings, header, nodes, partitions, waits

Mask = npt.NDArray[np.bool_]


@rare
def find_keys(t: Ints, m: Ints, b: Ints, e: int, ranked: bool) -> int:
    """Write the partition keys of an event to ``KEYS``, and their ranks behind all keys; return the number of
    keys.

    With ``ranked``, the keys are in the order of their ranks. Returns -2 if ranks are needed but missing, and
    -1 if there is no room.
    """
    size = t[N_KEYS]
    if size == 0:
        return 1
    count = 0
    ranks = header.keys(m) + header.most_keys(m) * size
    for share in range(batch.shares(b, e), batch.shares(b, e + 1), batch.SHARE):
        g = batch.gpm(b, share)
        for r in range(batch.first(b, share), batch.end(b, share)):
            if count >= header.most_keys(m):
                return -1
            new = header.keys(m) + count * size
            whole = True
            for j in range(size):
                column = t[t[PARTITION_COLUMNS] + g * size + j]
                m[new + j] = value(b, column, r) if column >= 0 else 0
                if m[new + j] == 0:
                    whole = False
            if not whole or _is_known(m, size, new):
                continue
            if ranked and count > 0 and header.ranks(m) == 0 and not _is_alike(t, m, new):
                return -2
            rank = b[b[header.ranks(m) + g] + r] if ranked and header.ranks(m) != 0 else 0
            at = count
            while at > 0 and m[ranks + at - 1] > rank:
                m[ranks + at] = m[ranks + at - 1]
                at -= 1
            m[ranks + at] = rank
            for j in range(size):
                identifier = m[new + j]
                i = new + j
                while i > header.keys(m) + at * size + j:
                    m[i] = m[i - size]
                    i -= size
                m[i] = identifier
            count += 1
    return count


@inlined
def _is_known(m: Ints, size: int, new: int) -> bool:
    """Return whether the key at ``new`` equals a key before it."""
    at = header.keys(m)
    while at < new:
        same = True
        for j in range(size):
            if m[at + j] != m[new + j]:
                same = False
        if same:
            return True
        at += size
    return False


@inlined
def _is_alike(t: Ints, m: Ints, new: int) -> bool:
    """Return whether a key equals the event's first key in all variables by which keys are ordered."""
    alike = True
    for j in range(t[APART], t[N_KEYS]):
        alike = alike and m[new + j] == m[header.keys(m) + j]
    return alike


@inlined
def _has_room(t: Ints, m: Ints) -> bool:
    """Return whether there is room to apply all decisions."""
    decided = header.decided(m)
    new = decided * t[MOST_GATES] + 2
    return bool(
        header.live_waits(m) + new <= header.most_waits(m)
        and header.live_nodes(m) + decided * max(1, t[MOST_PARTS]) <= header.most_nodes(m)
        and 2 * (header.live_buckets(m) + new) <= header.bucket_count(m)
        and header.found_count(m) + decided * t[MOST_ACCEPTS] <= header.most_found(m)
    )


@inlined
def _has_room_for_entries(m: Ints) -> bool:
    return bool(
        header.live_entries(m) + header.wanted(m) <= header.most_entries(m)
        and 2 * (header.live_buckets(m) + header.wanted(m)) <= header.bucket_count(m)
    )


@kernel
def run(tables: Ints, ints: Ints, floats: Floats, batch: Ints, numbers: Floats, codes: Codes) -> int:
    """Process a batch from event ``EVENT``, key ``EVENT_KEY`` on; return why it stopped."""
    return _run(pointer(RunMachine(tables, ints, floats, batch, numbers, codes)))


@part
def _run(machine: RunMachine) -> int:
    t, m, b = machine.t, machine.m, machine.b
    e = header.event(m)
    header.set_wanted(m, 0)
    while e < batch.size(b):
        header.set_now(m, batch.axis(b, e))
        if t[CHAINS] < t[CHAINS_END]:
            header.set_wanted(m, wanted(t, b, e))
        if is_due(t, m, header.now(m)):
            if header.found_count(m) + header.parked_count(m) > header.most_found(m):
                return DRAIN
            end_due(machine, header.now(m), e, batch.start(b), False)
        count = find_keys(t, m, b, e, True) if t[N_KEYS] > 0 else 1
        if count < 0:
            return MORE_KEYS if count == -1 else UNRANKED
        for k in range(header.event_key(m), count):
            header.set_event_key(m, k)
            key = header.keys(m) + k * t[N_KEYS]
            p = find_partition(m, t[N_KEYS], key) if t[N_KEYS] > 0 else header.partitions(m)
            if p == 0:
                header.set_decided(m, 0)
                return ROOM
            if count == 1 and t[N_KEYS] <= 1:
                key = 0
            if header.wanted(m) > 0 and header.entered(m) == 0:
                if not _has_room_for_entries(m):
                    header.set_decided(m, 0)
                    return ROOM
                remember(t, m, b, e, key, p)
                header.set_entered(m, 1)
            decide(machine, e, key, p)
            partitions.set_newest(m, p, header.serial(m))
            if m[header.kinds(m) + WONDERS] > 0:
                return ASK
            if header.decided(m) > header.most_decisions(m) or header.asked(m) > header.most_decisions(m):
                return DECISIONS_FULL
            if header.asked(m) > header.answered(m):
                return ASK
            if header.decided(m) > 0:
                if header.found_count(m) > 0 and header.found_count(m) + header.decided(m) * t[
                    MOST_ACCEPTS
                ] > header.most_found(m):
                    return DRAIN
                if not _has_room(t, m):
                    header.set_answered(m, 0)  # applying decisions changes the order of runs
                    return ROOM
                apply(machine, e, key, p)
            header.set_answered(m, 0)
            header.set_entered(m, 0)
            if t[CONSUMES] != 0 and header.found_count(m) > 0:
                header.set_event_key(m, k + 1)
                return CONSUME
        header.set_event_key(m, 0)
        e += 1
        header.set_event(m, e)
    return DONE


@kernel
def finish(
    tables: Ints, ints: Ints, floats: Floats, axis: int, closes: bool, numbers: Floats, codes: Codes
) -> None:
    """End the matches that are due before a place on the window's axis, or all. No findings may be unread."""
    end_due(pointer(RunMachine(tables, ints, floats, ints, numbers, codes)), axis, 0, 0, closes)


@kernel
def consume(ints: Ints, p: int, position: int) -> None:
    """See ``drop``."""
    drop(pointer(ints), p, position)


@part
def write_path(m: Ints, node: int, paths: Ints, at: int) -> int:
    """Write position, candidate and row of the events of a run to ``paths``, from ``at`` on. Return the place
    behind them.
    """
    at += 3 * nodes.depth(m, node)
    j = at
    while node != 0:
        j -= 3
        paths[j], paths[j + 1], paths[j + 2] = nodes.position(m, node), nodes.way(m, node), nodes.row(m, node)
        node = nodes.previous(m, node)
    return at


@kernel
def unroll(ints: Ints, paths: Ints) -> None:
    """Write position, candidate and row of the events of the runs found, one run after the other; forget the
    runs.
    """
    m: Ints = pointer(ints)
    at = 0
    for i in range(header.found_count(m)):
        node = findings.node(m, header.found(m) + i * findings.SIZE)
        at = write_path(m, node, paths, at)
        release(m, node)
    header.set_found_count(m, 0)


@kernel
def look(ints: Ints, simple: Mask, simple_ends: Mask, paths: Ints) -> int:
    """Write the events of the runs found to ``paths``, as ``unroll`` does, and keep the runs.

    Returns how many events were written; 0 if ``paths`` is too short, or if a run has an event with several
    solutions or ends in a way that ``simple_ends`` excludes.
    """
    m: Ints = pointer(ints)
    at = 0
    for i in range(header.found_count(m)):
        found = header.found(m) + i * findings.SIZE
        node = findings.node(m, found)
        at += 3 * nodes.depth(m, node)
        if at > len(paths) or not simple_ends[findings.accept(m, found)]:
            return 0
        j = at
        while node != 0:
            way, row = nodes.way(m, node), nodes.row(m, node)
            if row < 0 or not simple[way]:
                return 0
            j -= 3
            paths[j], paths[j + 1], paths[j + 2] = nodes.position(m, node), way, row
            node = nodes.previous(m, node)
    return at // 3


@kernel
def keep(ints: Ints, kept: npt.NDArray[np.bool_]) -> None:
    """Forget some of the runs found."""
    m: Ints = pointer(ints)
    count = 0
    for i in range(header.found_count(m)):
        at = header.found(m) + i * findings.SIZE
        if kept[i]:
            for j in range(findings.SIZE):
                m[header.found(m) + count * findings.SIZE + j] = m[at + j]
            count += 1
        else:
            release(m, findings.node(m, at))
    header.set_found_count(m, count)


@kernel
def sweep(machine: RunMachine, new_ints: Ints, new_floats: Floats, axis: int, time: int) -> tuple[int, int]:
    """Move live waits and entries to an empty memory, which replaces the old one.

    If the new memory is too short, only count them.
    """
    t, old, old_f, _, numbers, codes = pointer(machine)
    new, new_f = pointer(new_ints), pointer(new_floats)
    wait_count, entry_count = 0, 0
    oldest = reach_before(axis, t[LIMIT])
    if header.parked_count(old) != 0:
        oldest = min(oldest, reach_before(waits.due(old, old[header.parked(old)]), t[LIMIT]))
    for x in range(header.entries(old), header.next_entry(old), header.entry_width(old)):
        if entries.axis(old, x) >= oldest:
            entry_count += 1
            if len(new_ints) > 0:
                move_entry(t, old, x, new)
    for w in range(header.waits(old) + header.width(old), header.next_wait(old), header.width(old)):
        parked = waits.gate(old, w) != 0 and waits.bucket(old, w) == waits.IS_PARKED
        if parked or not is_over(old, w, t[LIMIT], axis, time):
            wait_count += 1
            if len(new_ints) > 0:
                move(t, old, old_f, w, new, new_f, numbers, codes)
    return wait_count, entry_count
