"""Active states, by their places in a partition: fields, and the union lists of their runs (CORE, 5.2)."""

from __future__ import annotations

from typing import Final

from spaseq._fields import reads, reads_item, writes, writes_item
from spaseq._jit import inlined, part
from spaseq.matching.tecs.compiled import _kernel_node as node
from spaseq.matching.tecs.compiled._kernel_layout import Ints, index
from spaseq.matching.tecs.records import counter

#: The state of the deterministic automaton.
state, _set_state = reads(0), writes(0)
#: The stream for which its runs are pending; -1 if none.
pending, _set_pending = reads(1), writes(1)
#: The offset of the active state that the last transition from here led to.
NEXT: Final = 2
set_next = writes(NEXT)
#: The length of the list, in nodes.
LENGTH: Final = 3
length, _set_length = reads(LENGTH), writes(LENGTH)
#: The node that the list was merged into; 0 if it has changed since.
_merged, _set_merged = reads(4), writes(4)
#: The list, in pairs of a node and its top.
LIST: Final = 5
_listed, _set_listed = reads_item(LIST, 2), writes_item(LIST, 2)
_top, _set_top = reads_item(LIST + 1, 2), writes_item(LIST + 1, 2)


@inlined
def size(block: Ints, at: int) -> int:
    """Return how many integers of an active state are in use."""
    return LIST + 2 * length(block, at)


@inlined
def latest(block: Ints, at: int) -> int:
    """Return the latest start of its runs. There must be a run."""
    return _top(block, at, 0)


@inlined
def make(block: Ints, at: int, number: int, stream: int) -> None:
    """Create a state without runs, pending for ``stream``."""
    _set_state(block, at, number)
    _set_pending(block, at, stream)
    set_next(block, at, 0)
    _set_length(block, at, 0)
    _set_merged(block, at, 0)


@inlined
def merge(nodes: Ints, c: Ints, block: Ints, at: int) -> int:
    """Return a node for the union of the list."""
    merged = _merged(block, at)
    if length(block, at) == 2:
        # The usual case. A node is made without asking whether the list was merged before: a branch that
        # cannot be predicted would cost more.
        made = node.make(
            nodes, c, node.UNION, _listed(block, at, 0), _listed(block, at, 1), _top(block, at, 0)
        )
        wanted = int(merged == 0)
        c[counter.NEXT_NODE] += wanted - 1
        merged += wanted * made
        _set_merged(block, at, merged)
        return int(merged)
    if merged:
        return int(merged)
    i = index(length(block, at) - 1)
    merged = _listed(block, at, i)
    while i > 0:
        i -= 1
        merged = node.make(nodes, c, node.UNION, _listed(block, at, i), merged, _top(block, at, i))
    _set_merged(block, at, merged)
    return int(merged)


@part
def insert(nodes: Ints, c: Ints, block: Ints, at: int, number: int, top: int) -> None:
    """Insert a node into a list; the first node of the list must start no earlier."""
    _set_merged(block, at, 0)
    count = length(block, at)
    i = 1
    while i < count and _top(block, at, i) > top:
        i += 1
    if i < count and _top(block, at, i) == top:
        _set_listed(block, at, i, node.union(nodes, c, _listed(block, at, i), number))
        return
    for j in range(count, i, -1):
        _set_listed(block, at, j, _listed(block, at, j - 1))
        _set_top(block, at, j, _top(block, at, j - 1))
    _set_listed(block, at, i, number)
    _set_top(block, at, i, top)
    _set_length(block, at, count + 1)
    c[counter.LONGEST] = max(c[counter.LONGEST], count + 1)


@inlined
def trim(block: Ints, at: int, least: int) -> bool:
    """Drop the nodes before the window; return False if none is left."""
    count = length(block, at)
    while count > 0 and _top(block, at, count - 1) < least:
        count -= 1
    _set_length(block, at, count)
    return bool(count > 0)


@inlined
def add(nodes: Ints, c: Ints, block: Ints, at: int, taken: int, top: int, least: int) -> None:
    """Add the runs of an output node to the state."""
    count = 1
    if trim(block, at, least):
        if _top(block, at, 0) > top:
            insert(nodes, c, block, at, taken, top)
            return
        # The list must begin with the latest start, and with a node that is not a union.
        _set_listed(block, at, 1, merge(nodes, c, block, at))
        _set_top(block, at, 1, _top(block, at, 0))
        count = 2
    _set_listed(block, at, 0, taken)
    _set_top(block, at, 0, top)
    _set_length(block, at, count)
    _set_merged(block, at, 0)
