"""The runs kernel's memory: one array of integers that holds all runs, and what is done to it.

References are places in the array, 0 is none. It begins with counters and with where the sections are;
then come

- *waits*, runs in front of a gate: the columns below, then the term ids of the slots (variables that
  conditions and joins read: 0 unbound, ``MANY`` if solutions differ), per Kleene the iterations begun and
  those completed, and the aggregates of completed iterations. The first wait is the empty run.
- *nodes*, the events of runs, as trees from the newest back; used by waits and by later nodes.
- *buckets*, an open hash table: the waits at a gate of ``;`` or ``:`` by partition and join key, as a list or
  (at a gate with one ordering filter) as a pairing heap. Waits at gates of ``,`` hang on their partition.
  Also the chains of entries, by partition and key.
- *entries*, rows that negations look back at: the columns below, then term ids. A header place says where
  in an entry a column stands, as that of a batch does, so that entries are read like the rows of a batch.
- *partitions* and a hash table of them; scratch space.
"""

from __future__ import annotations

from typing import Final

from spaseq._jit import inlined, part
from spaseq.matching.kernel._kernel_layout import (
    G_KEYS,
    G_KEYS_END,
    G_OPERATOR,
    G_SIGN,
    G_SLOT,
    STRICT,
)
from spaseq.matching.kernel._kernel_values import (
    B_COLUMNS,
    DOUBLE,
    N_KEYS,
    SHORT,
    SLOTS,
    Codes,
    Floats,
    Ints,
)

# Columns of waits. Of an unused one, the gate is 0 and LINK the next unused one.
GATE: Final = 0
PARTITION: Final = 1
NODE: Final = 2
FIRST: Final = 3  # of its first event, the place on the window's axis
TIME: Final = 4
STREAM: Final = 5
NUMBER: Final = 6
BAR_TIME: Final = 7
BARRED: Final = 8  # streams, as bits, whose further events at BAR_TIME come too late
LINK: Final = 9
BACK: Final = 10
BUCKET: Final = 11  # 0: hangs on its partition; IS_PARKED: a match, at an accept instead of a gate
CHILD: Final = 12
SUMS: Final = 13  # where its floats are
assert SUMS < SLOTS

IS_PARKED: Final = -1
DUE: Final = BAR_TIME  # of a parked one, from where on the window's axis the end of its window counts

# Columns of nodes. PREVIOUS links unused ones.
POSITION: Final = 0
PREVIOUS: Final = 1
WAY: Final = 2
USES: Final = 3
DEPTH: Final = 4
ROW: Final = 5  # of the event's solutions the one that joins; -1 if there are several
NODE_SIZE: Final = 6

# Columns of buckets: what they are of, then what they hold.
KEY_LIMIT: Final = 4
HEAD: Final = 2 + KEY_LIMIT
ROOT: Final = HEAD + 1
SEEN: Final = HEAD + 2
BUCKET_SIZE: Final = HEAD + 3

# The head of a partition's list, when it had its newest event, and the position up to which events begin no
# run any more, come before its key.
NEWEST: Final = 1
DROPPED: Final = 2
KEY: Final = 3

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
HEADER: Final = 56

# Columns of entries.
E_LINK: Final = 0  # the one before it in its chain
E_CHAIN: Final = 1
E_PARTITION: Final = 2
E_TIME: Final = 3
E_STREAM: Final = 4
E_NUMBER: Final = 5
E_AXIS: Final = 6
E_POSITION: Final = 7
E_ROW: Final = 8
E_VALUES: Final = 9


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
            if m[p + KEY + j] != m[key + j]:
                same = False
        if same:
            return int(p)
        at = (at + 1) & mask
    if m[LIVE_PARTITIONS] >= m[MOST_PARTITIONS]:
        return 0
    p = m[PARTITIONS] + m[LIVE_PARTITIONS] * (KEY + size)
    m[LIVE_PARTITIONS] += 1
    m[m[TABLE] + at] = p
    m[p] = 0
    m[p + NEWEST] = 0
    m[p + DROPPED] = -1
    for j in range(size):
        m[p + KEY + j] = m[key + j]
    return int(p)


# --- nodes and waits ------------------------------------------------------------------------------


@part
def new_wait(m: Ints) -> int:
    m[LIVE_WAITS] += 1
    w = m[FREE_WAIT]
    if w != 0:
        m[FREE_WAIT] = m[w + LINK]
    else:
        w = m[NEXT_WAIT]
        m[NEXT_WAIT] += m[WIDTH]
    m[w + NODE] = 0
    return int(w)


@part
def new_node(m: Ints) -> int:
    m[LIVE_NODES] += 1
    node = m[FREE_NODE]
    if node != 0:
        m[FREE_NODE] = m[node + PREVIOUS]
        return int(node)
    node = m[NEXT_NODE]
    m[NEXT_NODE] += NODE_SIZE
    return int(node)


@part
def release(m: Ints, node: int) -> None:
    """One use of a node less; nodes without uses are free."""
    while node != 0:
        m[node + USES] -= 1
        if m[node + USES] > 0:
            return
        before = m[node + PREVIOUS]
        m[node + PREVIOUS] = m[FREE_NODE]
        m[FREE_NODE] = node
        m[LIVE_NODES] -= 1
        node = before


@part
def forget(m: Ints, w: int) -> None:
    """A wait that hangs nowhere is free."""
    release(m, m[w + NODE])
    m[w + GATE] = 0
    m[w + LINK] = m[FREE_WAIT]
    m[FREE_WAIT] = w
    m[LIVE_WAITS] -= 1


@part
def remove(m: Ints, w: int) -> None:
    """Takes a wait out of its list and frees it."""
    back, link = m[w + BACK], m[w + LINK]
    if link != 0:
        m[link + BACK] = back
    if back != 0:
        m[back + LINK] = link
    elif m[w + BUCKET] == 0:
        m[m[w + PARTITION]] = link
    else:
        m[m[w + BUCKET] + HEAD] = link
    forget(m, w)


# --- buckets --------------------------------------------------------------------------------------


@part
def find_bucket(m: Ints, gate: int, p: int, k0: int, k1: int, k2: int, k3: int, make: bool) -> int:
    """The bucket of a gate, partition and key; 0 if there is none and none is to be made."""
    code = mix(mix(mix(mix(mix(mix(1, gate), p), k0), k1), k2), k3)
    mask = m[BUCKET_COUNT] - 1
    at = code & mask
    while True:
        bucket = m[BUCKETS] + at * BUCKET_SIZE
        if m[bucket] == 0:
            break
        if (
            m[bucket] == gate
            and m[bucket + 1] == p
            and m[bucket + 2] == k0
            and m[bucket + 3] == k1
            and m[bucket + 4] == k2
            and m[bucket + 5] == k3
        ):
            return int(bucket)
        at = (at + 1) & mask
    if not make:
        return 0
    m[bucket] = gate
    m[bucket + 1] = p
    m[bucket + 2] = k0
    m[bucket + 3] = k1
    m[bucket + 4] = k2
    m[bucket + 5] = k3
    m[LIVE_BUCKETS] += 1
    return int(bucket)


@inlined
def _hang(m: Ints, w: int, head: int) -> None:
    """Puts a wait in front of the list whose first one stands at ``head``."""
    first = m[head]
    m[w + BACK] = 0
    m[w + LINK] = first
    if first != 0:
        m[first + BACK] = w
    m[head] = w


@part
def place(t: Ints, m: Ints, w: int, numbers: Floats, codes: Codes) -> None:
    """Puts a wait where it is found."""
    gate = m[w + GATE]
    if t[gate + G_OPERATOR] == STRICT:
        m[w + BUCKET] = 0
        _hang(m, w, m[w + PARTITION])
        return
    start = t[gate + G_KEYS]
    size = t[gate + G_KEYS_END] - start
    slots = w + SLOTS
    k0 = m[slots + t[start]] if size > 0 else 0
    k1 = m[slots + t[start + 1]] if size > 1 else 0
    k2 = m[slots + t[start + 2]] if size > 2 else 0
    k3 = m[slots + t[start + 3]] if size > 3 else 0
    if (size > 0 and k0 <= 0) or (size > 1 and k1 <= 0) or (size > 2 and k2 <= 0) or (size > 3 and k3 <= 0):
        k0, k1, k2, k3 = -1, -1, -1, -1
    bucket = find_bucket(m, gate, m[w + PARTITION], k0, k1, k2, k3, True)
    m[w + BUCKET] = bucket
    if t[gate + G_SIGN] != 0 and k0 >= 0:
        identifier = m[slots + t[gate + G_SLOT]]
        if identifier > 0 and is_orderly(codes[identifier]):
            m[w + CHILD] = 0
            m[w + LINK] = 0
            m[bucket + ROOT] = _meld(t, m, m[bucket + ROOT], w, numbers)
            return
    _hang(m, w, bucket + HEAD)


@inlined
def is_orderly(code: int) -> bool:
    """Whether a term's double says all about its order among such terms."""
    return code in (SHORT, DOUBLE)


@inlined
def bound(t: Ints, m: Ints, w: int, numbers: Floats) -> float:
    """What orders a wait in its heap: the least leave first."""
    gate = m[w + GATE]
    return float(numbers[m[w + SLOTS + t[gate + G_SLOT]]] * t[gate + G_SIGN])


@part
def _meld(t: Ints, m: Ints, a: int, b: int, numbers: Floats) -> int:
    """Two pairing heaps as one."""
    if a == 0:
        return b
    if b == 0:
        return a
    if bound(t, m, b, numbers) < bound(t, m, a, numbers):
        a, b = b, a
    m[b + LINK] = m[a + CHILD]
    m[a + CHILD] = b
    return a


@part
def pop(t: Ints, m: Ints, bucket: int, numbers: Floats) -> int:
    """Takes the least wait out of a heap."""
    least = m[bucket + ROOT]
    pairs = 0
    child = m[least + CHILD]
    while child != 0:
        second = m[child + LINK]
        after = 0
        if second != 0:
            after = m[second + LINK]
            m[second + LINK] = 0
        m[child + LINK] = 0
        pair = _meld(t, m, child, second, numbers)
        m[pair + LINK] = pairs
        pairs = pair
        child = after
    root = 0
    while pairs != 0:
        after = m[pairs + LINK]
        m[pairs + LINK] = 0
        root = _meld(t, m, root, pairs, numbers)
        pairs = after
    m[bucket + ROOT] = root
    return int(least)


@part
def dissolve(m: Ints, bucket: int) -> None:
    """Makes a list of a heap: for an event whose value has no plain place in the order."""
    stack = m[bucket + ROOT]
    m[bucket + ROOT] = 0
    while stack != 0:
        w = stack
        stack = m[w + LINK]
        child = m[w + CHILD]
        while child != 0:
            after = m[child + LINK]
            m[child + LINK] = stack
            stack = child
            child = after
        _hang(m, w, bucket + HEAD)


# --- matches that wait ------------------------------------------------------------------------------


@part
def park(m: Ints, w: int) -> None:
    """Lets a match wait, in the order of ``DUE``."""
    m[w + BUCKET] = IS_PARKED
    heap, i = m[PARKED], m[PARKED_COUNT]
    m[PARKED_COUNT] += 1
    while i > 0:
        up = (i - 1) // 2
        if m[m[heap + up] + DUE] <= m[w + DUE]:
            break
        m[heap + i] = m[heap + up]
        i = up
    m[heap + i] = w


@part
def unpark(m: Ints) -> int:
    """Takes the match out that has waited most."""
    heap = m[PARKED]
    first = m[heap]
    m[PARKED_COUNT] -= 1
    count = m[PARKED_COUNT]
    w = m[heap + count]
    i = 0
    while 2 * i + 1 < count:
        down = 2 * i + 1
        if down + 1 < count and m[m[heap + down + 1] + DUE] < m[m[heap + down] + DUE]:
            down += 1
        if m[w + DUE] <= m[m[heap + down] + DUE]:
            break
        m[heap + i] = m[heap + down]
        i = down
    m[heap + i] = w
    return int(first)


# --- moving -----------------------------------------------------------------------------------------


@inlined
def is_over(m: Ints, w: int, limit: int, axis: int, time: int) -> bool:
    """Whether a wait is none, or can never go on at a place on the window's axis and a time."""
    if m[w + GATE] == 0 or axis - m[w + FIRST] > limit:
        return True
    return bool(m[w + BARRED] != 0 and time > m[w + BAR_TIME])


@part
def move(
    t: Ints, old: Ints, old_f: Floats, w: int, new: Ints, new_f: Floats, numbers: Floats, codes: Codes
) -> None:
    """Copies a wait into another memory. In ``old``, USES of a moved node says where it is (negated)."""
    to = new_wait(new)
    for j in range(old[WIDTH]):
        if j != SUMS:
            new[to + j] = old[w + j]
    for j in range(int(old_f[0])):
        new_f[new[to + SUMS] + j] = old_f[old[w + SUMS] + j]
    new[to + NODE] = 0
    node = old[w + NODE]
    child = to + NODE
    while node != 0:
        known = old[node + USES] < 0
        copy = -old[node + USES] if known else new_node(new)
        if not known:
            old[node + USES] = -copy
            for j in range(NODE_SIZE):
                new[copy + j] = old[node + j]
            new[copy + PREVIOUS] = 0
            new[copy + USES] = 0
        new[copy + USES] += 1
        new[child] = copy
        if known:
            break
        child = copy + PREVIOUS
        node = old[node + PREVIOUS]
    new[to + PARTITION] = move_partition(t, old, old[w + PARTITION], new)
    if old[w + BUCKET] == IS_PARKED:
        park(new, to)
    else:
        place(t, new, to, numbers, codes)


@part
def move_partition(t: Ints, old: Ints, p: int, new: Ints) -> int:
    """Copies a partition into another memory, but for its runs."""
    for j in range(t[N_KEYS]):
        new[new[KEYS] + j] = old[p + KEY + j]
    to = find_partition(new, t[N_KEYS], new[KEYS])
    new[to + NEWEST] = old[p + NEWEST]
    new[to + DROPPED] = old[p + DROPPED]
    return to


@part
def drop(m: Ints, p: int, position: int) -> None:
    """Ends the runs of a partition; those to come begin after a position."""
    m[p] = 0
    m[p + DROPPED] = position
    for w in range(m[WAITS] + m[WIDTH], m[NEXT_WAIT], m[WIDTH]):
        if m[w + GATE] != 0 and m[w + PARTITION] == p:
            if m[w + BUCKET] != 0:
                m[m[w + BUCKET] + HEAD] = 0
                m[m[w + BUCKET] + ROOT] = 0
            forget(m, w)
