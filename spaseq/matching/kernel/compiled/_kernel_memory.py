"""The runs kernel's memory: one array of integers that holds all runs, and what is done to it.

References are places in the array, 0 is none. It begins with counters and with where the sections are;
then come, each with its fields in the module of ``records`` that is called like it,

- *waits*, runs in front of a gate: their fields and slots, then per Kleene the iterations
  begun and those completed, and the aggregates of completed iterations. The first wait is the empty run.
- *nodes*, the events of runs, as trees from the newest back; used by waits and by later
  nodes.
- *buckets*, an open hash table: the waits at a gate of ``;`` or ``:`` by partition and
  join key, as a list or (at a gate with one ordering filter) as a pairing heap. Waits at gates of ``,`` hang
  on their partition. Also the chains of entries, by partition and key.
- *entries*, rows that negations and ``&`` look back at.
- *partitions* and a hash table of them; scratch space.
"""

from __future__ import annotations

from typing import Final

from spaseq._jit import inlined, part
from spaseq.matching.conditions._kernel_values import (
    B_COLUMNS,
    N_KEYS,
    Ints,
)
from spaseq.matching.kernel.records import buckets, nodes, partitions, waits

# Counters.
EVENT: Final = 0
EVENT_KEY: Final = 1
ANSWERED: Final = 2
ASKED: Final = 3
DECIDED: Final = 4
FOUND_COUNT: Final = 5
SERIAL: Final = 6
OFFSETS: Final = B_COLUMNS
NEXT_WAIT: Final = 8
LIVE_WAITS: Final = 9
MOST_WAITS: Final = 10
FREE_NODE: Final = 11
NEXT_NODE: Final = 12
LIVE_NODES: Final = 13
MOST_NODES: Final = 14
LIVE_BUCKETS: Final = 15
BUCKET_COUNT: Final = 16
LIVE_PARTITIONS: Final = 17
MOST_PARTITIONS: Final = 18
TABLE_SIZE: Final = 19
MOST_FOUND: Final = 20
MOST_DECISIONS: Final = 21
MOST_KEYS: Final = 22
# Where sections begin.
WAITS: Final = 23
WIDTH: Final = 24
NODES: Final = 25
BUCKETS: Final = 26
PARTITIONS: Final = 27
TABLE: Final = 28
FOUND: Final = 29
DECISIONS: Final = 30
QUESTIONS: Final = 31
ANSWERS: Final = 32
KEYS: Final = 33
GATES_SEEN: Final = 34
KINDS: Final = 35
PARTITION_WIDTH: Final = 36
FREE_WAIT: Final = 37
NOW: Final = 38  # of the event, the place on the window's axis
ENTRIES: Final = 39
ENTRY_WIDTH: Final = 40
NEXT_ENTRY: Final = 41
MOST_ENTRIES: Final = 42
LIVE_ENTRIES: Final = 43
WANTED: Final = 44  # entries that the event needs
PARKED: Final = 45  # a binary heap of the matches that wait for the end of a window
PARKED_COUNT: Final = 46
ENTERED: Final = 47  # whether the event's rows are among the entries
GATHERED: Final = 48
TRIED: Final = 49  # of what is being gathered: events, then rows
TRIAL: Final = 50  # a wait to try it on
LEARNT: Final = 51  # answers to questions, and questions: see ``_kernel_memo``
ASKING: Final = 52
RANKS: Final = 53  # where the batch says, by GPM, where the ranks of its rows' keys begin; 0: nowhere yet
HEADER: Final = 56

_MULTIPLIER: Final = 0x2545F4914F6CDD1D


@inlined
def mix(code: int, value: int) -> int:
    code = (code ^ value) * _MULTIPLIER
    return code ^ (code >> 29)


# --- partitions -----------------------------------------------------------------------------------


@part
def find_partition(m: Ints, size: int, key: int) -> int:
    """The partition whose key of so many ids stands at ``key``, new if need be; 0 if there is no room."""
    if size == 0:
        return int(m[PARTITIONS])
    code = 1
    for j in range(size):
        code = mix(code, m[key + j])
    mask = m[TABLE_SIZE] - 1
    at = code & mask
    while m[m[TABLE] + at] != 0:
        p = m[m[TABLE] + at]
        same = True
        for j in range(size):
            if partitions.key(m, p, j) != m[key + j]:
                same = False
        if same:
            return int(p)
        at = (at + 1) & mask
    if m[LIVE_PARTITIONS] >= m[MOST_PARTITIONS]:
        return 0
    p = m[PARTITIONS] + m[LIVE_PARTITIONS] * (partitions.KEY + size)
    m[LIVE_PARTITIONS] += 1
    m[m[TABLE] + at] = p
    partitions.set_head(m, p, 0)
    partitions.set_newest(m, p, 0)
    partitions.set_dropped(m, p, -1)
    for j in range(size):
        partitions.set_key(m, p, j, m[key + j])
    return int(p)


# --- nodes and waits ------------------------------------------------------------------------------


@part
def new_wait(m: Ints) -> int:
    m[LIVE_WAITS] += 1
    w = m[FREE_WAIT]
    if w != 0:
        m[FREE_WAIT] = waits.link(m, w)
    else:
        w = m[NEXT_WAIT]
        m[NEXT_WAIT] += m[WIDTH]
    waits.set_node(m, w, 0)
    return int(w)


@part
def new_node(m: Ints) -> int:
    m[LIVE_NODES] += 1
    node = m[FREE_NODE]
    if node != 0:
        m[FREE_NODE] = nodes.previous(m, node)
        return int(node)
    node = m[NEXT_NODE]
    m[NEXT_NODE] += nodes.SIZE
    return int(node)


@part
def release(m: Ints, node: int) -> None:
    """One use of a node less; nodes without uses are free."""
    while node != 0:
        nodes.set_uses(m, node, nodes.uses(m, node) - 1)
        if nodes.uses(m, node) > 0:
            return
        before = nodes.previous(m, node)
        nodes.set_previous(m, node, m[FREE_NODE])
        m[FREE_NODE] = node
        m[LIVE_NODES] -= 1
        node = before


@part
def forget(m: Ints, w: int) -> None:
    """A wait that hangs nowhere is free."""
    release(m, waits.node(m, w))
    waits.set_gate(m, w, 0)
    waits.set_link(m, w, m[FREE_WAIT])
    m[FREE_WAIT] = w
    m[LIVE_WAITS] -= 1


@part
def remove(m: Ints, w: int) -> None:
    """Takes a wait out of its list and frees it."""
    back, link = waits.back(m, w), waits.link(m, w)
    if link != 0:
        waits.set_back(m, link, back)
    if back != 0:
        waits.set_link(m, back, link)
    elif waits.bucket(m, w) == 0:
        partitions.set_head(m, waits.partition(m, w), link)
    else:
        buckets.set_head(m, waits.bucket(m, w), link)
    forget(m, w)


# --- buckets --------------------------------------------------------------------------------------


@part
def find_bucket(m: Ints, gate: int, p: int, k0: int, k1: int, k2: int, k3: int, make: bool) -> int:
    """The bucket of a gate, partition and key; 0 if there is none and none is to be made."""
    code = mix(mix(mix(mix(mix(mix(1, gate), p), k0), k1), k2), k3)
    mask = m[BUCKET_COUNT] - 1
    at = code & mask
    while True:
        bucket = m[BUCKETS] + at * buckets.SIZE
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
    m[LIVE_BUCKETS] += 1
    return int(bucket)


@part
def move_partition(t: Ints, old: Ints, p: int, new: Ints) -> int:
    """Copies a partition into another memory, but for its runs."""
    for j in range(t[N_KEYS]):
        new[new[KEYS] + j] = partitions.key(old, p, j)
    to = find_partition(new, t[N_KEYS], new[KEYS])
    partitions.set_newest(new, to, partitions.newest(old, p))
    partitions.set_dropped(new, to, partitions.dropped(old, p))
    return to
