"""The runs kernel's memory: one array of integers that holds all runs, and the operations on it.

References are places in the array, 0 is none. It begins with the *header*: counters, and the places of the
sections. The sections follow, each with its fields in the class of ``records`` of its name:

- *waits*, runs before a gate: their fields and slots, then per Kleene the iterations
  begun and those completed, and the aggregates of completed iterations. The first wait is the empty run.
- *nodes*, the events of runs, as trees from the newest back; used by waits and by later
  nodes.
- *buckets*, an open hash table: the waits at a gate of ``;`` or ``:`` by partition and
  join key, as a list or (at a gate with one ordering filter) as a pairing heap. Waits at gates of ``,`` are
  listed at their partition. Also the chains of entries, by partition and key.
- *entries*, rows that negations and ``&`` look back at.
- *partitions* and a hash table of them; scratch space.
"""

from __future__ import annotations

from typing import Final

from spaseq._jit import inlined, part
from spaseq.matching.filters._kernel_values import (
    N_KEYS,
    SLOTS,
    Floats,
    Ints,
)
from spaseq.matching.nfa.records import buckets, decisions, header, nodes, partitions, waits

_MULTIPLIER: Final = 0x2545F4914F6CDD1D
#: The multipliers of a bucket's hash, all applied at once: mixing one part after the other takes longer.
_ODD_0: Final = 0x1E3779B97F4A7C15
_ODD_1: Final = 0x3F58476D1CE4E5B9
_ODD_2: Final = 0x14D049BB133111EB
_ODD_3: Final = 0x2C62272E07BB0143
_ODD_4: Final = 0x51AFD7ED558CCDCD
_ODD_5: Final = 0x0EB9FE1A85EC53FB


@inlined
def mix(code: int, value: int) -> int:
    code = (code ^ value) * _MULTIPLIER
    return code ^ (code >> 29)


# --- partitions -----------------------------------------------------------------------------------


@part
def find_partition(m: Ints, size: int, key: int) -> int:
    """Return the partition with the ``size`` key ids at ``key``; make it if it does not exist. Return 0 if
    there is no room.
    """
    if size == 0:
        return int(header.partitions(m))
    code = 1
    for j in range(size):
        code = mix(code, m[key + j])
    mask = header.table_size(m) - 1
    at = code & mask
    while m[header.table(m) + at] != 0:
        p = m[header.table(m) + at]
        same = True
        for j in range(size):
            if partitions.key(m, p, j) != m[key + j]:
                same = False
        if same:
            return int(p)
        at = (at + 1) & mask
    if header.live_partitions(m) >= header.most_partitions(m):
        return 0
    p = header.partitions(m) + header.live_partitions(m) * (partitions.KEY + size)
    header.set_live_partitions(m, header.live_partitions(m) + 1)
    m[header.table(m) + at] = p
    partitions.set_head(m, p, 0)
    partitions.set_newest(m, p, 0)
    partitions.set_dropped(m, p, -1)
    for j in range(size):
        partitions.set_key(m, p, j, m[key + j])
    return int(p)


# --- nodes and waits ------------------------------------------------------------------------------


@part
def new_wait(m: Ints) -> int:
    header.set_live_waits(m, header.live_waits(m) + 1)
    w = header.free_wait(m)
    if w != 0:
        header.set_free_wait(m, waits.link(m, w))
    else:
        w = header.next_wait(m)
        header.set_next_wait(m, w + header.width(m))
        waits.set_sums(m, w, header.next_sums(m))
        header.set_next_sums(m, header.next_sums(m) + header.sums_width(m))
    waits.set_node(m, w, 0)
    return int(w)


@part
def copy_slots(m: Ints, f: Floats, w: int, to: int) -> None:
    """Copy the slots and floats of a wait to another."""
    for j in range(SLOTS, header.width(m)):
        m[to + j] = m[w + j]
    for j in range(int(f[0])):
        f[waits.sums(m, to) + j] = f[waits.sums(m, w) + j]


@part
def new_node(m: Ints) -> int:
    header.set_live_nodes(m, header.live_nodes(m) + 1)
    node = header.free_node(m)
    if node != 0:
        header.set_free_node(m, nodes.previous(m, node))
        return int(node)
    node = header.next_node(m)
    header.set_next_node(m, header.next_node(m) + (nodes.SIZE))
    return int(node)


@part
def release(m: Ints, node: int) -> None:
    """Remove one use of a node; nodes without uses are freed."""
    while node != 0:
        nodes.set_uses(m, node, nodes.uses(m, node) - 1)
        if nodes.uses(m, node) > 0:
            return
        before = nodes.previous(m, node)
        nodes.set_previous(m, node, header.free_node(m))
        header.set_free_node(m, node)
        header.set_live_nodes(m, header.live_nodes(m) - 1)
        node = before


@part
def forget(m: Ints, w: int) -> None:
    """Free a wait that is in no list."""
    release(m, waits.node(m, w))
    waits.set_gate(m, w, 0)
    waits.set_link(m, w, header.free_wait(m))
    header.set_free_wait(m, w)
    header.set_live_waits(m, header.live_waits(m) - 1)


@part
def unlink(m: Ints, w: int) -> None:
    """Remove a wait from its list."""
    back, link = waits.back(m, w), waits.link(m, w)
    if link != 0:
        waits.set_back(m, link, back)
    if back != 0:
        waits.set_link(m, back, link)
    elif waits.bucket(m, w) == 0:
        partitions.set_head(m, waits.partition(m, w), link)
    else:
        buckets.set_head(m, waits.bucket(m, w), link)


@part
def remove(m: Ints, w: int) -> None:
    """Remove a wait from its list and free it."""
    unlink(m, w)
    forget(m, w)


# --- buckets --------------------------------------------------------------------------------------


@part
def find_bucket(m: Ints, gate: int, p: int, k0: int, k1: int, k2: int, k3: int, make: bool) -> int:
    """Return the bucket of a gate, partition and key. If there is none, make it if ``make`` is set, else
    return 0.
    """
    code = gate * _ODD_0 + p * _ODD_1 + k0 * _ODD_2 + k1 * _ODD_3 + k2 * _ODD_4 + k3 * _ODD_5
    code = (code ^ (code >> 29)) * _MULTIPLIER
    mask = header.bucket_count(m) - 1
    at = (code ^ (code >> 32)) & mask
    while True:
        bucket = header.buckets(m) + at * buckets.SIZE
        if buckets.gate(m, bucket) == 0:
            break
        if (
            buckets.gate(m, bucket) == gate
            and buckets.partition(m, bucket) == p
            and buckets.key(m, bucket, 0) == k0
            and buckets.key(m, bucket, 1) == k1
            and buckets.key(m, bucket, 2) == k2
            and buckets.key(m, bucket, 3) == k3
        ):
            return int(bucket)
        at = (at + 1) & mask
    if not make:
        return 0
    buckets.set_gate(m, bucket, gate)
    buckets.set_partition(m, bucket, p)
    buckets.set_key(m, bucket, 0, k0)
    buckets.set_key(m, bucket, 1, k1)
    buckets.set_key(m, bucket, 2, k2)
    buckets.set_key(m, bucket, 3, k3)
    header.set_live_buckets(m, header.live_buckets(m) + 1)
    return int(bucket)


@part
def move_partition(t: Ints, old: Ints, p: int, new: Ints) -> int:
    """Copy a partition into another memory, without its runs."""
    for j in range(t[N_KEYS]):
        new[header.keys(new) + j] = partitions.key(old, p, j)
    to = find_partition(new, t[N_KEYS], header.keys(new))
    partitions.set_newest(new, to, partitions.newest(old, p))
    partitions.set_dropped(new, to, partitions.dropped(old, p))
    return to


# --- decisions ------------------------------------------------------------------------------------


@inlined
def note(m: Ints, w: int, c: int, row: int) -> None:
    """Record a decision; if there is no room, only count it."""
    count = header.decided(m)
    if count < header.most_decisions(m):
        at = header.decisions(m) + count * decisions.SIZE
        decisions.set_wait(m, at, w)
        decisions.set_what(m, at, c)
        decisions.set_row(m, at, row)
    header.set_decided(m, count + 1)
