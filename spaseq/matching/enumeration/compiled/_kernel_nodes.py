"""The tECS on arrays: nodes, and the lists of nodes that stand for the runs of a state (CORE, section 5)."""

from __future__ import annotations

from typing import Final

from spaseq._jit import inlined, part
from spaseq.matching.enumeration.compiled._kernel_bits import index
from spaseq.matching.enumeration.compiled._kernel_layout import (
    FIRST_NODE,
    LABEL,
    LAST_MARK,
    LEFT,
    LENGTH,
    LIST,
    LONGEST,
    MARK,
    MASK,
    MERGED,
    NEXT_NODE,
    OTHER,
    TOP,
    UNION,
    Ints,
)

#: Nodes between marks.
_MARKED: Final = 256


@inlined
def node(nodes: Ints, c: Ints, label: int, left: int, other: int, top: int) -> int:
    number = c[NEXT_NODE]
    c[NEXT_NODE] = number + 1
    at = index(number & c[MASK])
    nodes[at, LABEL] = label
    nodes[at, LEFT] = left
    nodes[at, OTHER] = other
    nodes[at, TOP] = top
    return int(number)


@inlined
def mark(nodes: Ints, c: Ints, axis: int) -> None:
    """Now and then, a node that says that all before it are of the past, and where the one before is."""
    if c[NEXT_NODE] - c[LAST_MARK] >= _MARKED:
        number = node(nodes, c, MARK, 0, 0, axis)
        nodes[c[LAST_MARK] & c[MASK], OTHER] = number
        c[LAST_MARK] = number


@part
def free(nodes: Ints, c: Ints, least: int) -> None:
    """Frees the nodes that were made before the window; the first that is kept is a mark."""
    following = nodes[c[FIRST_NODE] & c[MASK], OTHER]
    while following and nodes[following & c[MASK], TOP] < least:
        c[FIRST_NODE] = following
        following = nodes[following & c[MASK], OTHER]


@part
def union(nodes: Ints, c: Ints, a: int, b: int) -> int:
    """Two nodes of the same top as one, from whose left side an output is near (CORE, 5.2)."""
    mask = c[MASK]
    top = nodes[a & mask, TOP]
    if nodes[a & mask, LABEL] != UNION:
        return node(nodes, c, UNION, a, b, top)
    if nodes[b & mask, LABEL] != UNION:
        return node(nodes, c, UNION, b, a, top)
    left, right = nodes[a & mask, OTHER], nodes[b & mask, OTHER]
    # What is before the ring's first node is over, and has no top any more.
    if right >= c[FIRST_NODE] and (
        left < c[FIRST_NODE] or nodes[right & mask, TOP] > nodes[left & mask, TOP]
    ):
        left, right = right, left
    if left < c[FIRST_NODE]:
        return node(nodes, c, UNION, nodes[a & mask, LEFT], nodes[b & mask, LEFT], top)
    second = node(nodes, c, UNION, left, right, nodes[left & mask, TOP])
    first = node(nodes, c, UNION, nodes[b & mask, LEFT], second, top)
    return node(nodes, c, UNION, nodes[a & mask, LEFT], first, top)


@inlined
def merge(nodes: Ints, c: Ints, block: Ints, entry: int) -> int:
    """A node for all that an active state's list stands for."""
    merged = block[entry + MERGED]
    first = entry + LIST
    if block[entry + LENGTH] == 2:
        # Mostly, and whether it was merged is anybody's guess: a branch would cost more than a node.
        made = node(nodes, c, UNION, block[first], block[first + 2], block[first + 1])
        wanted = int(merged == 0)
        c[NEXT_NODE] += wanted - 1
        merged += wanted * made
        block[entry + MERGED] = merged
        return int(merged)
    if merged:
        return int(merged)
    at = index(first + 2 * (block[entry + LENGTH] - 1))
    merged = block[at]
    while at > first:
        at -= 2
        merged = node(nodes, c, UNION, block[at], merged, block[at + 1])
    block[entry + MERGED] = merged
    return int(merged)


@part
def insert(nodes: Ints, c: Ints, block: Ints, entry: int, number: int, top: int) -> None:
    """Puts a node into a list whose first one starts no earlier."""
    block[entry + MERGED] = 0
    length = block[entry + LENGTH]
    at = entry + LIST + 2
    end = entry + LIST + 2 * length
    while at < end and block[at + 1] > top:
        at += 2
    if at < end and block[at + 1] == top:
        block[at] = union(nodes, c, block[at], number)
        return
    for i in range(end - 1, at - 1, -1):
        block[i + 2] = block[i]
    block[at] = number
    block[at + 1] = top
    block[entry + LENGTH] = length + 1
    c[LONGEST] = max(c[LONGEST], length + 1)


@inlined
def trim(block: Ints, entry: int, least: int) -> bool:
    """Drops what the window has left behind; False if nothing is left."""
    length = block[entry + LENGTH]
    while length > 0 and block[entry + LIST - 1 + index(2 * length)] < least:
        length -= 1
    block[entry + LENGTH] = length
    return bool(length > 0)
