"""The tECS on arrays: nodes, and the lists of nodes that stand for the runs of a state (CORE, section 5)."""

from __future__ import annotations

from spaseq._jit import inlined, part
from spaseq.matching.enumeration._kernel_layout import (
    FIRST_NODE,
    LABEL,
    LEFT,
    LENGTH,
    LIST,
    MADE,
    MASK,
    NEXT_NODE,
    POSITION,
    RIGHT,
    TOP,
    UNION,
    Ints,
)


@inlined
def node(nodes: Ints, c: Ints, label: int, position: int, left: int, right: int, top: int, axis: int) -> int:
    number = c[NEXT_NODE]
    c[NEXT_NODE] = number + 1
    at = number & c[MASK]
    nodes[at, LABEL] = label
    nodes[at, POSITION] = position
    nodes[at, LEFT] = left
    nodes[at, RIGHT] = right
    nodes[at, TOP] = top
    nodes[at, MADE] = axis
    return int(number)


@inlined
def top_of(nodes: Ints, c: Ints, number: int) -> int:
    return int(nodes[number & c[MASK], TOP])


@part
def union(nodes: Ints, c: Ints, a: int, b: int, axis: int) -> int:
    """Two nodes of the same top as one, from whose left side an output or bottom is near (CORE, 5.2)."""
    mask = c[MASK]
    top = nodes[a & mask, TOP]
    if nodes[a & mask, LABEL] != UNION:
        return node(nodes, c, UNION, 0, a, b, top, axis)
    if nodes[b & mask, LABEL] != UNION:
        return node(nodes, c, UNION, 0, b, a, top, axis)
    left, right = nodes[a & mask, RIGHT], nodes[b & mask, RIGHT]
    # What is before the ring's first node is over, and has no top any more.
    if right >= c[FIRST_NODE] and (
        left < c[FIRST_NODE] or nodes[right & mask, TOP] > nodes[left & mask, TOP]
    ):
        left, right = right, left
    if left < c[FIRST_NODE]:
        inner = nodes[b & mask, LEFT]
        return node(nodes, c, UNION, 0, nodes[a & mask, LEFT], inner, top, axis)
    second = node(nodes, c, UNION, 0, left, right, nodes[left & mask, TOP], axis)
    first = node(nodes, c, UNION, 0, nodes[b & mask, LEFT], second, top, axis)
    return node(nodes, c, UNION, 0, nodes[a & mask, LEFT], first, top, axis)


@part
def merge(nodes: Ints, c: Ints, block: Ints, entry: int, axis: int) -> int:
    """A node for all that an active state's list stands for."""
    at = entry + LIST + block[entry + LENGTH] - 1
    merged = block[at]
    while at > entry + LIST:
        at -= 1
        merged = node(nodes, c, UNION, 0, block[at], merged, top_of(nodes, c, block[at]), axis)
    return int(merged)


@part
def insert(nodes: Ints, c: Ints, block: Ints, entry: int, number: int, axis: int) -> None:
    """Puts a node into a list whose first one starts no earlier."""
    length = block[entry + LENGTH]
    at = entry + LIST + 1
    end = entry + LIST + length
    start = top_of(nodes, c, number)
    while at < end and top_of(nodes, c, block[at]) > start:
        at += 1
    if at < end and top_of(nodes, c, block[at]) == start:
        block[at] = union(nodes, c, block[at], number, axis)
        return
    for i in range(end, at, -1):
        block[i] = block[i - 1]
    block[at] = number
    block[entry + LENGTH] = length + 1


@inlined
def trim(nodes: Ints, c: Ints, block: Ints, entry: int, least: int) -> bool:
    """Drops what the window has left behind; False if nothing is left."""
    length = block[entry + LENGTH]
    while length > 0:
        number = block[entry + LIST + length - 1]
        if number >= c[FIRST_NODE] and top_of(nodes, c, number) >= least:
            break
        length -= 1
    block[entry + LENGTH] = length
    return bool(length > 0)
