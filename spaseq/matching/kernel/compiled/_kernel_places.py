"""Where runs stand in the memory: lists, heaps, the heap of matches that wait; moving and dropping them."""

from __future__ import annotations

from spaseq._jit import inlined, part
from spaseq.matching.conditions._kernel_values import DOUBLE, SHORT, SLOTS, Codes, Floats, Ints
from spaseq.matching.kernel.compiled._kernel_layout import (
    G_KEYS,
    G_KEYS_END,
    G_OPERATOR,
    G_SIGN,
    G_SLOT,
    STRICT,
)
from spaseq.matching.kernel.compiled._kernel_memory import (
    BACK,
    BAR_TIME,
    BARRED,
    BUCKET,
    CHILD,
    DROPPED,
    DUE,
    FIRST,
    GATE,
    HEAD,
    IS_PARKED,
    LINK,
    NEXT_WAIT,
    NODE,
    NODE_SIZE,
    PARKED,
    PARKED_COUNT,
    PARTITION,
    PREVIOUS,
    ROOT,
    SUMS,
    USES,
    WAITS,
    WIDTH,
    find_bucket,
    forget,
    move_partition,
    new_node,
    new_wait,
)


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


@inlined
def is_over(m: Ints, w: int, limit: int, axis: int, time: int) -> bool:
    """Whether a wait is none, or can never go on at a place on the window's axis and a time."""
    if m[w + GATE] == 0 or axis - m[w + FIRST] > limit:
        return True
    return bool(m[w + BARRED] != 0 and time > m[w + BAR_TIME])


@part
def carry(old: Ints, old_f: Floats, w: int, new: Ints, new_f: Floats) -> int:
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
    return to


@part
def move(
    t: Ints, old: Ints, old_f: Floats, w: int, new: Ints, new_f: Floats, numbers: Floats, codes: Codes
) -> None:
    """Moves a wait into another memory, where it waits as before."""
    to = carry(old, old_f, w, new, new_f)
    new[to + PARTITION] = move_partition(t, old, old[w + PARTITION], new)
    if old[w + BUCKET] == IS_PARKED:
        park(new, to)
    else:
        place(t, new, to, numbers, codes)


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
