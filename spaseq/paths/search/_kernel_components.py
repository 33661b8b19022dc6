"""Closures from many sources: the product's strongly connected components, found once, and swept in order.

A source that reaches one place of a component reaches all its places, so a component needs only one mask. In
topological order, each edge is looked at once for each batch of sources. Arrays are as in ``_kernel``.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from spaseq._jit import inlined, kernel
from spaseq.paths.search._kernel import STOPPED, Ids, Machine, MaskRoom, Nodes, add_node, begin_empty

_NONE: Final = np.uint64(0)
_ONE: Final = np.uint64(1)


class Components(NamedTuple):
    """Components: ``c`` has the places ``members[begins[c]:begins[c + 1]]``, whose ``component`` is ``c``.

    Edges between components only lead to smaller numbers.
    """

    component: Nodes
    members: Ids
    begins: Ids


class Tarjan(NamedTuple):
    """The working arrays of Tarjan's algorithm; ``numbers`` must be all 0 before.

    ``path`` has the places in progress; ``transition`` and ``edge`` say how far each of them has come.
    """

    numbers: Nodes
    low: Nodes
    stack: Ids
    path: Ids
    transition: Nodes
    edge: Ids


@inlined
def _open(place: int, first: int, depth: int, time: int, room: Tarjan, component: Nodes) -> None:
    """Begin to search a place; its transitions begin at ``first``."""
    room.numbers[place] = room.low[place] = time
    component[place] = -1
    room.path[depth] = place
    room.transition[depth] = first - 1  # which has no edges, so that all begin alike
    room.edge[depth] = 0


@inlined
def _close(
    place: int, number: int, stack: Ids, waiting: int, found: Components, tail: int
) -> tuple[int, int]:
    """End the component of a place: all places on the stack down to it; return the ends of both arrays."""
    while True:
        waiting -= 1
        other = stack[waiting]
        found.component[other] = number
        found.members[tail] = other
        tail += 1
        if other == place:
            found.begins[number + 1] = tail
            return waiting, tail


@kernel
def components(machine: Machine, sources: Nodes, room: Tarjan, found: Components, stop: Ids) -> int:
    """Find the components reached from the sources (Tarjan's algorithm); return their number.

    Returns STOPPED once ``stop[0]`` is not 0.
    """
    pointers, targets, leaving, transitions, _, initial, _ = machine
    index, low, stack, path, transition, edge = room
    component = found.component
    nodes = pointers.shape[1] - 1
    count = tail = waiting = time = 0
    found.begins[0] = 0
    for i in range(len(sources)):
        for k in range(len(initial)):
            root = np.int64(initial[k]) * nodes + sources[i]
            if index[root] != 0:
                continue
            depth = 0
            time += 1
            _open(root, leaving[initial[k]], depth, time, room, component)
            stack[waiting] = root
            waiting += 1
            while depth >= 0:
                if stop[0] != 0:
                    return STOPPED
                place = path[depth]
                state = place // nodes
                node = place - state * nodes
                deeper = False
                while True:
                    m = transition[depth]
                    if m < leaving[state] or edge[depth] == pointers[transitions[m, 0], node + 1]:
                        if m + 1 >= leaving[state + 1]:
                            break
                        transition[depth] = m + 1
                        edge[depth] = pointers[transitions[m + 1, 0], node]
                        continue
                    after = np.int64(transitions[m, 1]) * nodes + targets[edge[depth]]
                    edge[depth] += 1
                    if index[after] == 0:
                        time += 1
                        depth += 1
                        _open(after, leaving[after // nodes], depth, time, room, component)
                        stack[waiting] = after
                        waiting += 1
                        deeper = True
                        break
                    if component[after] < 0:
                        low[place] = min(low[place], index[after])
                if deeper:
                    continue
                if low[place] == index[place]:
                    waiting, tail = _close(place, count, stack, waiting, found, tail)
                    count += 1
                depth -= 1
                if depth >= 0:
                    low[path[depth]] = min(low[path[depth]], low[place])
    return count


@kernel
def sweep(
    machine: Machine, sources: Nodes, within: Components, count: int, room: MaskRoom, found: Nodes
) -> int:
    """Do what ``together`` does, by going through all ``count`` components in order.

    Here ``visited`` and ``pending`` are masks of components: of the sources that begin there, and of the
    sources that reach them by an edge. Returns STOPPED once ``stop[0]`` is not 0.
    """
    pointers, targets, leaving, transitions, ends, initial, _ = machine
    component, members, begins = within
    started, arrived, total = room.visited, room.pending, room.bits
    reached, known, stop = room.reached, room.known, room.stop
    words, nodes = len(total), len(known)
    filled = begin_empty(machine, sources, room, found)
    for i in range(len(sources)):
        for k in range(len(initial)):
            c = component[initial[k] * nodes + np.int64(sources[i])]
            started[words * c + (i >> 6)] |= _ONE << np.uint64(i & 63)
    for c in range(count - 1, -1, -1):
        some = _NONE
        for w in range(words):
            total[w] = started[words * c + w] | arrived[words * c + w]
            some |= total[w]
            started[words * c + w] = _NONE
        if some == _NONE:
            continue
        inside = False  # whether an edge leads from the component to itself
        for k in range(begins[c], begins[c + 1]):
            if stop[0] != 0:
                return STOPPED
            state = members[k] // nodes
            node = members[k] - state * nodes
            for m in range(leaving[state], leaving[state + 1]):
                row, base = transitions[m, 0], np.int64(transitions[m, 1]) * nodes
                for e in range(pointers[row, node], pointers[row, node + 1]):
                    other = component[base + targets[e]]
                    if other == c:
                        inside = True
                    else:
                        for w in range(words):
                            arrived[words * other + w] |= total[w]
        if inside:
            for w in range(words):
                arrived[words * c + w] = total[w]
        some = _NONE
        for w in range(words):
            total[w] = arrived[words * c + w]
            arrived[words * c + w] = _NONE
            some |= total[w]
        if some == _NONE:
            continue
        for k in range(begins[c], begins[c + 1]):
            state = members[k] // nodes
            if ends[state] != 0:
                node = members[k] - state * nodes
                filled = add_node(node, known, found, filled)
                for w in range(words):
                    reached[words * node + w] |= total[w]
    return filled
