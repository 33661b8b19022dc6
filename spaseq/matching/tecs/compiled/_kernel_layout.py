"""The memory of enumeration, drawn; results of the loops; operations on bits.

*Nodes* are the tECS of CORE (section 5). An *output* is an event chosen as a GPM, after its left node. A
*union* has two alternatives. CORE's *bottom*, where runs start, is number 0. Each node has a *top*: the
latest start of a run below it, on the window's axis. A union's left side has the union's own top, and its
right side a top that is no later. So a subtree before the window is recognised at its root. Nodes are in a
ring in order of creation; a reference is a number that only grows. A node made before the window has no run
in it, so the ring is freed from the front: up to a *mark*, a node with the time of its creation as top.

A *partition* holds its active states of the deterministic automaton. Each active state has a *union list* of
nodes, the union of which is the state's runs. The first node is not a union and starts last; the others have
decreasing tops. Merging a list makes a node from which runs are enumerated with a bounded delay; it is kept
until the list changes. The lists also contain the tops, so that an update reads no nodes, which may be far
away.

A *root* is the node of the matches that an event completed, from which the walk enumerates them.

With several streams, a run that ends at the current time cannot continue with a simultaneous event of another
stream. Such runs are *pending* under the number of their stream until time advances. ::

    nodes      a row each: label, left, position or right or next mark, top
    parts      a row each: keys ... last, its time, active, start | who waits, as bits | active states
               an active state: state, pending, next, length, merged | node, top | node, top | ...
    found      a row each: node, least, position | keys ...
    counters   one of each: where the call stands, sizes, settings
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spaseq._fields import ints_at
from spaseq._jit import inlined

Ints = npt.NDArray[np.int64]

# The results of a call.
DONE: Final = 0
ASK: Final = 1
NODES_FULL: Final = 2
FOUND_FULL: Final = 3
PARTITIONS_FULL: Final = 4
WIDER: Final = 5
UNRANKED: Final = 6

# The space that WIDER needs more of.
MORE_ACTIVE: Final = 0
MORE_LIST: Final = 1
MORE_KEYS: Final = 2


def arrays(*shapes: tuple[int, ...]) -> Any:
    """Return empty memory of these shapes."""
    return tuple(np.zeros(shape, dtype=np.int64) for shape in shapes)


class TecsMachine(NamedTuple):
    """The memory, and the automaton: ``target[label, state]``, whether each state accepts, and its labels as
    bits.
    """

    counters: Ints
    nodes: Ints
    parts: Ints
    table: Ints
    found: Ints
    work: Ints
    seen: Ints
    target: Ints
    accepting: Ints
    outgoing: Ints


class LabelledEvents(NamedTuple):
    """A batch. ``labels`` are the GPMs that an event is relevant for, as bits.

    The rows of ``events`` and ``keys`` are grouped by GPM. The rows of a GPM go from its place in
    ``cursors``, which is advanced, to its place in ``ends``. The same holds for ``ranks``, if there are
    any.
    """

    labels: Ints
    axis: Ints
    time: Ints
    stream: Ints
    events: Ints
    keys: Ints
    ranks: Ints
    cursors: Ints
    ends: Ints
    size: int
    is_ranked: int
    start: int


#: The integers of ``columns`` in ``labelled``; the places of the last ones.
COLUMNS: Final = 12
IS_RANKED: Final = 10
START: Final = 11


@inlined
def labelled(columns: Ints) -> LabelledEvents:
    """Return the batch of a call. ``columns``: the addresses of its arrays, then its other fields."""
    a = columns
    return LabelledEvents(
        ints_at(a[0]), ints_at(a[1]), ints_at(a[2]), ints_at(a[3]), ints_at(a[4]), ints_at(a[5]),
        ints_at(a[6]), ints_at(a[7]), ints_at(a[8]), a[9], a[10], a[11],
    )  # fmt: skip


_LOW: Final = (1 << 32) - 1


@inlined
def lowest(bits: int) -> int:
    """Return the number of the lowest set bit: LLVM makes one instruction of this loop."""
    below = (bits & -bits) - 1
    count = 0
    while below:
        below &= below - 1
        count += 1
    return count


@inlined
def index(number: int) -> int:
    """Return a non-negative number in a form that lets LLVM omit the test for indexes from the end."""
    return number & _LOW
