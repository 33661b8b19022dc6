"""Nodes of the tECS, by their numbers: fields, creation, unions, and freeing those before the window."""

from __future__ import annotations

from typing import Final

from spaseq._fields import reads, writes
from spaseq._jit import inlined, part
from spaseq.matching.tecs.compiled._kernel_layout import Ints, index
from spaseq.matching.tecs.records import counter

# Labels that are not GPMs.
UNION: Final = -1
MARK: Final = -2

#: The latest start of a run below.
TOP: Final = 3
#: Two nodes fill a cache line.
SIZE: Final = 4

#: The GPM that an output's event was chosen as, or the kind of the node.
label, _set_label = reads(0), writes(0)
#: The node before an output; the left side of a union.
left, _set_left = reads(1), writes(1)
#: The position of an output's event; the right side of a union; the mark after a mark.
position = right = next_mark = reads(2)
_set_other = _set_next_mark = writes(2)
#: The latest start of a run below; of a mark, the time of its creation.
top, _set_top = reads(TOP), writes(TOP)

#: Nodes between marks.
_MARKED: Final = 256


@inlined
def make(nodes: Ints, c: Ints, label: int, left: int, other: int, top: int) -> int:
    """Return a new node; ``other`` is an output's position or a union's right side."""
    number = c[counter.NEXT_NODE]
    c[counter.NEXT_NODE] = number + 1
    at = index(number & c[counter.MASK])
    _set_label(nodes, at, label)
    _set_left(nodes, at, left)
    _set_other(nodes, at, other)
    _set_top(nodes, at, top)
    return int(number)


@inlined
def mark(nodes: Ints, c: Ints, axis: int) -> None:
    """Add a mark every ``_MARKED`` nodes: all nodes before it are older. Link it from the previous one."""
    if c[counter.NEXT_NODE] - c[counter.LAST_MARK] >= _MARKED:
        number = make(nodes, c, MARK, 0, 0, axis)
        _set_next_mark(nodes, c[counter.LAST_MARK] & c[counter.MASK], number)
        c[counter.LAST_MARK] = number


@part
def free(nodes: Ints, c: Ints, least: int) -> None:
    """Free the nodes that were made before the window; the first one kept is a mark."""
    mask = c[counter.MASK]
    following = next_mark(nodes, c[counter.FIRST_NODE] & mask)
    while following and top(nodes, following & mask) < least:
        c[counter.FIRST_NODE] = following
        following = next_mark(nodes, following & mask)


@part
def union(nodes: Ints, c: Ints, a: int, b: int) -> int:
    """Return the union of two nodes with the same top; from it, an output is near on the left side (CORE,
    5.2).
    """
    mask, oldest = c[counter.MASK], c[counter.FIRST_NODE]
    at, other = a & mask, b & mask
    latest = top(nodes, at)
    if label(nodes, at) != UNION:
        return make(nodes, c, UNION, a, b, latest)
    if label(nodes, other) != UNION:
        return make(nodes, c, UNION, b, a, latest)
    near, far = right(nodes, at), right(nodes, other)
    # Nodes before the first one of the ring have been freed: their tops cannot be read.
    if far >= oldest and (near < oldest or top(nodes, far & mask) > top(nodes, near & mask)):
        near, far = far, near
    if near < oldest:
        return make(nodes, c, UNION, left(nodes, at), left(nodes, other), latest)
    third = make(nodes, c, UNION, near, far, top(nodes, near & mask))
    second = make(nodes, c, UNION, left(nodes, other), third, latest)
    return make(nodes, c, UNION, left(nodes, at), second, latest)
