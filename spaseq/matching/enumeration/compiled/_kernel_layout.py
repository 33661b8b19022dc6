"""CORE's evaluation on arrays: constant work an event, matches as paths of a compact graph.

*Nodes* are the tECS of CORE (section 5): an *output* is an event chosen as a GPM and what came before it, a
*union* has two alternatives; CORE's *bottom*, where runs start, is number 0. Each node has its ``TOP``: the
latest start of a run below it, on the window's axis. A union's left side has the union's own top and its
right side no later one, so that what the window has left behind is cut off at sight. Nodes stand in a ring in
the order they were made; a reference is a number that only grows. A node made before the window has no run in
it, so the ring is freed from the front: up to a *mark*, whose ``TOP`` is when it was made.

A *partition* holds its active states of the deterministic automaton. Each has a *union list*: nodes of which
the first is no union and starts last, the others have decreasing tops, and all together stand for the state's
runs. Merging a list makes a node from which runs are enumerated with a bounded delay; it is kept until the
list changes. Tops stand in the lists too, so that an update reads no nodes, which may be far away.

Several streams: a run that ends at the current time cannot go on with a simultaneous event of another
stream. Such runs *pend* under the number of their stream until time moves on.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

# Columns of nodes: two of them fill a cache line. LABEL is that of an output, or UNION; LEFT is what comes
# before an output; OTHER is an output's event's position, a union's right side, the mark after a mark.
LABEL: Final = 0
LEFT: Final = 1
OTHER: Final = 2
TOP: Final = 3
NODE_SIZE: Final = 4
UNION: Final = -1
MARK: Final = -2

# Columns of partitions: the keys, the last event's place on the axis and its time, how many states are
# active, where the last run that started went, and for each label which active states wait for it, as bits.
KEY_LIMIT: Final = 4
LAST: Final = 4
LAST_TIME: Final = 5
ACTIVE: Final = 6
START: Final = 7
WAITING: Final = 8

# Then come the active states: number, what it pends under (-1: nothing), the place of the active state to
# which its last step led, and its list, in pairs of a node and its top.
STATE: Final = 0
PENDING: Final = 1
NEXT: Final = 2
LENGTH: Final = 3
MERGED: Final = 4
LIST: Final = 5

# Columns of what was found: the node, the least top in its window, the event's position, the keys.
FOUND_NODE: Final = 0
FOUND_LEAST: Final = 1
FOUND_POSITION: Final = 2
FOUND_KEY: Final = 3
FOUND_SIZE: Final = FOUND_KEY + KEY_LIMIT

# Counters and settings.
EVENT: Final = 0
KEY_NUMBER: Final = 1
FIRST_NODE: Final = 2
NEXT_NODE: Final = 3
MASK: Final = 4
PARTITIONS: Final = 5
FOUND_COUNT: Final = 6
N_KEYS: Final = 7
LIMIT: Final = 8
MOST_ACTIVE: Final = 9
MOST_LIST: Final = 10
SINGLE: Final = 11
CONSUME: Final = 12
LABELS: Final = 13
STATE_ASKED: Final = 14
LABEL_ASKED: Final = 15
KEYS_FOUND: Final = 16
WANTS: Final = 17
LONGEST: Final = 18
ENTRIES: Final = 19
ENTRY_SIZE: Final = 20
WORDS: Final = 21
LAST_MARK: Final = 22
KNOWN: Final = 23
# How much of what was found has been enumerated, and is wanted no more.
READ: Final = 24
COUNTERS: Final = 25

# What WIDER wants more of.
MORE_ACTIVE: Final = 0
MORE_LIST: Final = 1
MORE_KEYS: Final = 2

# How a call ends.
DONE: Final = 0
ASK: Final = 1
NODES_FULL: Final = 2
FOUND_FULL: Final = 3
PARTITIONS_FULL: Final = 4
WIDER: Final = 5

# A walk's counters.
W_ROOT: Final = 0
W_STACK: Final = 1
W_DEPTH: Final = 2
W_COUNT: Final = 3
W_USED: Final = 4
WALK: Final = 8

DEEPER: Final = 1
FULL: Final = 2


def arrays(*shapes: tuple[int, ...]) -> Any:
    """Empty memory of these shapes."""
    return tuple(np.zeros(shape, dtype=np.int64) for shape in shapes)
