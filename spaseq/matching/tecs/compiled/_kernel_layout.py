"""The memory of enumeration, drawn, and how a call of its loops ends; bits of integers.

*Nodes* are the tECS of CORE (section 5): an *output* is an event chosen as a GPM and what came before it, a
*union* has two alternatives; CORE's *bottom*, where runs start, is number 0. Each node has its top: the
latest start of a run below it, on the window's axis. A union's left side has the union's own top and its
right side no later one, so that what the window has left behind is cut off at sight. Nodes stand in a ring in
the order they were made; a reference is a number that only grows. A node made before the window has no run in
it, so the ring is freed from the front: up to a *mark*, whose top is when it was made.

A *partition* holds its active states of the deterministic automaton. Each has a *union list*: nodes of which
the first is no union and starts last, the others have decreasing tops, and all together stand for the state's
runs. Merging a list makes a node from which runs are enumerated with a bounded delay; it is kept until the
list changes. Tops stand in the lists too, so that an update reads no nodes, which may be far away.

A *root* is what an event completed: a node, from which the walk enumerates the matches.

Several streams: a run that ends at the current time cannot go on with a simultaneous event of another
stream. Such runs *pend* under the number of their stream until time moves on. ::

    nodes      a row each: label, left, position or right or next mark, top
    parts      a row each: keys ... last, its time, active, start | who waits, as bits | active states
               an active state: state, pending, next, length, merged | node, top | node, top | ...
    found      a row each: node, least, position | keys ...
    counters   one of each: where the call stands, sizes, settings
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from spaseq._jit import inlined

Ints = npt.NDArray[np.int64]

# How a call ends.
DONE: Final = 0
ASK: Final = 1
NODES_FULL: Final = 2
FOUND_FULL: Final = 3
PARTITIONS_FULL: Final = 4
WIDER: Final = 5
UNRANKED: Final = 6

# What WIDER wants more of.
MORE_ACTIVE: Final = 0
MORE_LIST: Final = 1
MORE_KEYS: Final = 2


def arrays(*shapes: tuple[int, ...]) -> Any:
    """Empty memory of these shapes."""
    return tuple(np.zeros(shape, dtype=np.int64) for shape in shapes)


_LOW: Final = (1 << 32) - 1


@inlined
def lowest(bits: int) -> int:
    """The number of the lowest bit of some: LLVM knows this loop, and makes one instruction of it."""
    below = (bits & -bits) - 1
    count = 0
    while below:
        below &= below - 1
        count += 1
    return count


@inlined
def index(number: int) -> int:
    """A number that is not negative, in words for LLVM, which then need not think of places from the end."""
    return number & _LOW
