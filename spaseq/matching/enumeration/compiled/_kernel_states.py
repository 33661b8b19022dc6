"""The active states of a partition: what waits for events, each with the list of its runs."""

from __future__ import annotations

from spaseq._jit import inlined, part
from spaseq.matching.enumeration.compiled._kernel_bits import index, lowest
from spaseq.matching.enumeration.compiled._kernel_layout import (
    ACTIVE,
    ENTRIES,
    ENTRY_SIZE,
    LENGTH,
    LIST,
    MERGED,
    NEXT,
    PENDING,
    STATE,
    WAITING,
    WORDS,
    Ints,
)
from spaseq.matching.enumeration.compiled._kernel_nodes import insert, merge, trim


@inlined
def entry_of(c: Ints, i: int) -> int:
    """The place of an active state in its partition's block."""
    return index(c[ENTRIES] + i * c[ENTRY_SIZE])


@part
def find(c: Ints, outgoing: Ints, block: Ints, state: int, pending: int) -> int:
    """The place of an active state, new if need be."""
    active = block[ACTIVE]
    for i in range(active):
        at = entry_of(c, i)
        if block[at + STATE] == state and block[at + PENDING] == pending:
            return at
    block[ACTIVE] = active + 1
    at = entry_of(c, active)
    block[at + STATE] = state
    block[at + PENDING] = pending
    block[at + NEXT] = 0
    block[at + LENGTH] = 0
    block[at + MERGED] = 0
    words = c[WORDS]
    labels = outgoing[state]
    while labels:
        block[WAITING + lowest(labels) * words + (active >> 6)] |= 1 << (active & 63)
        labels &= labels - 1
    return at


@inlined
def step_to(c: Ints, outgoing: Ints, block: Ints, last: int, state: int, pending: int) -> int:
    """The same; ``last`` is where the place found the last time is kept, which mostly is it."""
    at = index(block[last])
    if at and block[at + STATE] == state and block[at + PENDING] == pending:
        return at
    at = find(c, outgoing, block, state, pending)
    block[last] = at
    return at


@part
def empty(c: Ints, block: Ints) -> None:
    """No state is active any more."""
    for i in range(ACTIVE, c[ENTRIES]):
        block[i] = 0


@inlined
def add(nodes: Ints, c: Ints, block: Ints, at: int, taken: int, top: int, least: int) -> None:
    """The runs of an output node reach an active state."""
    first = at + LIST
    length = 1
    if trim(block, at, least):
        if block[first + 1] > top:
            insert(nodes, c, block, at, taken, top)
            return
        # The list must begin with the latest start, and with a node that is no union.
        block[first + 2] = merge(nodes, c, block, at)
        block[first + 3] = block[first + 1]
        length = 2
    block[first] = taken
    block[first + 1] = top
    block[at + LENGTH] = length
    block[at + MERGED] = 0


@part
def settle(nodes: Ints, c: Ints, outgoing: Ints, block: Ints, work: Ints, least: int) -> None:
    """Time has moved on: nothing pends any more."""
    empty(c, work)
    for i in range(block[ACTIVE]):
        old = entry_of(c, i)
        if not trim(block, old, least):
            continue
        at = find(c, outgoing, work, block[old + STATE], -1)
        other = 0
        top = 0
        if work[at + LENGTH]:
            if work[at + LIST + 1] >= block[old + LIST + 1]:
                insert(nodes, c, work, at, merge(nodes, c, block, old), block[old + LIST + 1])
                continue
            other = merge(nodes, c, work, at)
            top = work[at + LIST + 1]
        for j in range(LENGTH, LIST + 2 * block[old + LENGTH]):
            work[at + j] = block[old + j]
        if other:
            insert(nodes, c, work, at, other, top)
    for i in range(ACTIVE, entry_of(c, work[ACTIVE])):
        block[i] = work[i]
