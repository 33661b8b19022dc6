"""The places of runs in the memory: lists, heaps, the heap of waiting matches; moving and dropping runs."""

from __future__ import annotations

from spaseq._jit import inlined, part, rare
from spaseq._kernel_events import reach_after
from spaseq.matching.filters._kernel_values import DOUBLE, SHORT, SLOTS, Codes, Floats, Ints
from spaseq.matching.nfa.compiled._kernel_layout import value
from spaseq.matching.nfa.compiled._kernel_memory import (
    find_bucket,
    forget,
    move_partition,
    new_node,
    new_wait,
)
from spaseq.matching.nfa.records import buckets, gates, header, hold, nodes, partitions, waits


@inlined
def _hang(m: Ints, w: int, head: int) -> None:
    """Put a wait in front of the list with its first wait at ``head``."""
    first = m[head]
    waits.set_back(m, w, 0)
    waits.set_link(m, w, first)
    if first != 0:
        waits.set_back(m, first, w)
    m[head] = w


@inlined
def bucket_of(t: Ints, m: Ints, w: int, p: int) -> int:
    """Return the bucket of a wait of a partition, by its gate and the bound values of the join key."""
    gate = waits.gate(m, w)
    start = gates.keys(t, gate)
    size = gates.keys_end(t, gate) - start
    slots = w + SLOTS
    k0 = m[slots + t[start]] if size > 0 else 0
    k1 = m[slots + t[start + 1]] if size > 1 else 0
    k2 = m[slots + t[start + 2]] if size > 2 else 0
    k3 = m[slots + t[start + 3]] if size > 3 else 0
    if (size > 0 and k0 <= 0) or (size > 1 and k1 <= 0) or (size > 2 and k2 <= 0) or (size > 3 and k3 <= 0):
        k0, k1, k2, k3 = -1, -1, -1, -1
        header.set_loose(m, 1)
    return find_bucket(m, gate, p, k0, k1, k2, k3, True)


@inlined
def bucket_of_row(t: Ints, m: Ints, b: Ints, gate: int, p: int, r: int, at: int) -> int:
    """Return the bucket at a gate for the key in a row's columns, which are listed from ``at`` on. Return 0
    if there is none.
    """
    size = gates.keys_end(t, gate) - gates.keys(t, gate)
    k0 = value(b, t[at], r)
    k1 = value(b, t[at + 1], r) if size > 1 else 0
    k2 = value(b, t[at + 2], r) if size > 2 else 0
    k3 = value(b, t[at + 3], r) if size > 3 else 0
    return find_bucket(m, gate, p, k0, k1, k2, k3, False)


@part
def place(t: Ints, m: Ints, w: int, numbers: Floats, codes: Codes) -> None:
    """Put a wait into its list or heap."""
    gate = waits.gate(m, w)
    if gates.operator(t, gate) == gates.STRICT:
        waits.set_bucket(m, w, 0)
        _hang(m, w, waits.partition(m, w) + partitions.HEAD)
        return
    bucket = bucket_of(t, m, w, waits.partition(m, w))
    waits.set_bucket(m, w, bucket)
    if gates.sign(t, gate) != 0 and buckets.key(m, bucket, 0) >= 0:
        identifier = waits.slot(m, w, gates.slot(t, gate))
        if identifier > 0 and is_orderly(codes[identifier]):
            waits.set_child(m, w, 0)
            waits.set_link(m, w, 0)
            buckets.set_root(m, bucket, _meld(t, m, buckets.root(m, bucket), w, numbers))
            return
    _hang(m, w, bucket + buckets.HEAD)


@inlined
def is_orderly(code: int) -> bool:
    """Return whether a term's double determines its order among such terms."""
    return code in (SHORT, DOUBLE)


@inlined
def bound(t: Ints, m: Ints, w: int, numbers: Floats) -> float:
    """Return the sort key of a wait in its heap; the wait with the least key leaves first."""
    gate = waits.gate(m, w)
    return float(numbers[waits.slot(m, w, gates.slot(t, gate))] * gates.sign(t, gate))


@part
def _meld(t: Ints, m: Ints, a: int, b: int, numbers: Floats) -> int:
    """Return two pairing heaps as one."""
    if a == 0:
        return b
    if b == 0:
        return a
    if bound(t, m, b, numbers) < bound(t, m, a, numbers):
        a, b = b, a
    waits.set_link(m, b, waits.child(m, a))
    waits.set_child(m, a, b)
    return a


@part
def pop(t: Ints, m: Ints, bucket: int, numbers: Floats) -> int:
    """Remove the least wait from a heap."""
    least = buckets.root(m, bucket)
    pairs = 0
    child = waits.child(m, least)
    while child != 0:
        second = waits.link(m, child)
        after = 0
        if second != 0:
            after = waits.link(m, second)
            waits.set_link(m, second, 0)
        waits.set_link(m, child, 0)
        pair = _meld(t, m, child, second, numbers)
        waits.set_link(m, pair, pairs)
        pairs = pair
        child = after
    root = 0
    while pairs != 0:
        after = waits.link(m, pairs)
        waits.set_link(m, pairs, 0)
        root = _meld(t, m, root, pairs, numbers)
        pairs = after
    buckets.set_root(m, bucket, root)
    return int(least)


@rare
def dissolve(m: Ints, bucket: int) -> None:
    """Turn a heap into a list, for an event with a value that cannot be ordered by its double alone."""
    stack = buckets.root(m, bucket)
    buckets.set_root(m, bucket, 0)
    while stack != 0:
        w = stack
        stack = waits.link(m, w)
        child = waits.child(m, w)
        while child != 0:
            after = waits.link(m, child)
            waits.set_link(m, child, stack)
            stack = child
            child = after
        _hang(m, w, bucket + buckets.HEAD)


@rare
def park(m: Ints, w: int) -> None:
    """Let a match wait, ordered by ``DUE``."""
    waits.set_bucket(m, w, waits.IS_PARKED)
    heap, i = header.parked(m), header.parked_count(m)
    header.set_parked_count(m, header.parked_count(m) + 1)
    while i > 0:
        up = (i - 1) // 2
        if waits.due(m, m[heap + up]) <= waits.due(m, w):
            break
        m[heap + i] = m[heap + up]
        i = up
    m[heap + i] = w


@part
def unpark(m: Ints) -> int:
    """Remove and return the match that is due first."""
    heap = header.parked(m)
    first = m[heap]
    header.set_parked_count(m, header.parked_count(m) - 1)
    count = header.parked_count(m)
    w = m[heap + count]
    i = 0
    while 2 * i + 1 < count:
        down = 2 * i + 1
        if down + 1 < count and waits.due(m, m[heap + down + 1]) < waits.due(m, m[heap + down]):
            down += 1
        if waits.due(m, w) <= waits.due(m, m[heap + down]):
            break
        m[heap + i] = m[heap + down]
        i = down
    m[heap + i] = w
    return int(first)


@inlined
def is_over(m: Ints, w: int, limit: int, axis: int, time: int) -> bool:
    """Return whether a wait is unused, or cannot continue at a place on the window's axis and a time."""
    if waits.gate(m, w) == 0 or axis > reach_after(waits.first(m, w), limit):
        return True
    return bool(waits.barred(m, w) != 0 and time > waits.bar_time(m, w))


@part
def carry(old: Ints, old_f: Floats, w: int, new: Ints, new_f: Floats) -> int:
    """Copy a wait into another memory. In ``old``, USES of a moved node is its new place, negated."""
    to = new_wait(new)
    for j in range(header.width(old)):
        if j != waits.SUMS:
            new[to + j] = old[w + j]
    for j in range(int(old_f[0])):
        new_f[waits.sums(new, to) + j] = old_f[waits.sums(old, w) + j]
    waits.set_node(new, to, 0)
    node = waits.node(old, w)
    child = to + waits.NODE
    while node != 0:
        known = nodes.uses(old, node) < 0
        copy = -nodes.uses(old, node) if known else new_node(new)
        if not known:
            nodes.set_uses(old, node, -copy)
            for j in range(nodes.SIZE):
                new[copy + j] = old[node + j]
            nodes.set_previous(new, copy, 0)
            nodes.set_uses(new, copy, 0)
        hold(new, copy)
        new[child] = copy
        if known:
            break
        child = copy + nodes.PREVIOUS
        node = nodes.previous(old, node)
    return to


@part
def move(
    t: Ints, old: Ints, old_f: Floats, w: int, new: Ints, new_f: Floats, numbers: Floats, codes: Codes
) -> None:
    """Move a wait into another memory, where it waits as before."""
    to = carry(old, old_f, w, new, new_f)
    waits.set_partition(new, to, move_partition(t, old, waits.partition(old, w), new))
    if waits.bucket(old, w) == waits.IS_PARKED:
        park(new, to)
    else:
        place(t, new, to, numbers, codes)


@part
def drop(m: Ints, p: int, position: int) -> None:
    """End the runs of a partition; events up to ``position`` begin no later run."""
    partitions.set_head(m, p, 0)
    partitions.set_dropped(m, p, position)
    for w in range(header.waits(m) + header.width(m), header.next_wait(m), header.width(m)):
        if waits.gate(m, w) != 0 and waits.partition(m, w) == p:
            if waits.bucket(m, w) != 0:
                buckets.set_head(m, waits.bucket(m, w), 0)
                buckets.set_root(m, waits.bucket(m, w), 0)
            forget(m, w)
