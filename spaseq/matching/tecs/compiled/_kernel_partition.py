"""Partitions: their fields, and their active states by state and pending stream."""

from __future__ import annotations

from typing import Final

from spaseq._jit import inlined, part
from spaseq.matching.tecs.compiled import _kernel_active as active
from spaseq.matching.tecs.compiled._kernel_layout import Ints, index, lowest
from spaseq.matching.tecs.records import counter

# A partition begins with its keys. Then come the last event's place on the axis and its time, the number of
# active states, the state that the last started run went to, and for each label the active states that wait
# for it, as bits. The active states follow, from the counter ENTRIES on.
LAST: Final = 4
LAST_TIME: Final = 5
ACTIVE: Final = 6
START: Final = 7
WAITING: Final = 8


@inlined
def entry(c: Ints, i: int) -> int:
    """Return the place of an active state in its partition."""
    return index(c[counter.ENTRIES] + i * c[counter.ENTRY_SIZE])


@part
def find(c: Ints, outgoing: Ints, block: Ints, state: int, pending: int) -> int:
    """Return the place of an active state; make it if there is none."""
    count = block[ACTIVE]
    for i in range(count):
        at = entry(c, i)
        if active.state(block, at) == state and active.pending(block, at) == pending:
            return at
    block[ACTIVE] = count + 1
    at = entry(c, count)
    active.make(block, at, state, pending)
    words = c[counter.WORDS]
    labels = outgoing[state]
    while labels:
        block[WAITING + lowest(labels) * words + (count >> 6)] |= 1 << (count & 63)
        labels &= labels - 1
    return at


@inlined
def step_to(c: Ints, outgoing: Ints, block: Ints, last: int, state: int, pending: int) -> int:
    """Return what ``find`` does. ``last`` is where the place that was found the last time is kept, which
    mostly is the right one.
    """
    at = index(block[last])
    if at and active.state(block, at) == state and active.pending(block, at) == pending:
        return at
    at = find(c, outgoing, block, state, pending)
    block[last] = at
    return at


@inlined
def waiting(c: Ints, block: Ints, labels: int, work: Ints) -> int:
    """Write the numbers of the active states that wait for one of ``labels``; return how many."""
    count = 0
    words = c[counter.WORDS]
    for word in range(words):
        bits = 0
        rest = labels
        while rest:
            bits |= block[index(WAITING + lowest(rest) * words + word)]
            rest &= rest - 1
        while bits:
            work[count] = (word << 6) + lowest(bits)
            count = index(count + 1)
            bits &= bits - 1
    return count


@part
def empty(c: Ints, block: Ints) -> None:
    """Deactivate all states."""
    for i in range(ACTIVE, c[counter.ENTRIES]):
        block[i] = 0


@part
def end_pending(nodes: Ints, c: Ints, outgoing: Ints, block: Ints, work: Ints, least: int) -> None:
    """Let pending runs continue, as time has advanced: merge their states with states that are not
    pending.
    """
    empty(c, work)
    for i in range(block[ACTIVE]):
        old = entry(c, i)
        if not active.trim(block, old, least):
            continue
        at = find(c, outgoing, work, active.state(block, old), -1)
        earlier = 0
        top = 0
        if active.length(work, at):
            if active.latest(work, at) >= active.latest(block, old):
                merged = active.merge(nodes, c, block, old)
                active.insert(nodes, c, work, at, merged, active.latest(block, old))
                continue
            earlier = active.merge(nodes, c, work, at)
            top = active.latest(work, at)
        for j in range(active.LENGTH, active.size(block, old)):
            work[at + j] = block[old + j]
        if earlier:
            active.insert(nodes, c, work, at, earlier, top)
    for i in range(ACTIVE, entry(c, work[ACTIVE])):
        block[i] = work[i]
