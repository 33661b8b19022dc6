"""The kernel of weighted shortest paths: Dijkstra's algorithm over the product of graph and automaton."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spaseq._jit import kernel
from spaseq.paths.search._kernel import STOPPED, Ids, Machine

Costs = npt.NDArray[np.float64]


@kernel
def _push(keys: Costs, places: Ids, size: int, key: float, place: int) -> None:
    """Add an entry to a binary heap of ``size`` entries."""
    at = size
    while at > 0 and keys[(at - 1) >> 1] > key:
        keys[at], places[at] = keys[(at - 1) >> 1], places[(at - 1) >> 1]
        at = (at - 1) >> 1
    keys[at], places[at] = key, place


@kernel
def _pop(keys: Costs, places: Ids, size: int) -> None:
    """Remove the first entry of a binary heap of ``size`` entries."""
    key, place, at = keys[size - 1], places[size - 1], 0
    while 2 * at + 1 < size - 1:
        child = 2 * at + 1
        if child + 1 < size - 1 and keys[child + 1] < keys[child]:
            child += 1
        if keys[child] >= key:
            break
        keys[at], places[at] = keys[child], places[child]
        at = child
    keys[at], places[at] = key, place


@kernel
def cheapest(
    machine: Machine,
    costs: Costs,
    sources: Ids,
    distance: Costs,
    keys: Costs,
    heap: Ids,
    found: Ids,
    stop: Ids,
) -> int:
    """Find the cost of the cheapest path from the source places to each place.

    ``costs`` are the costs of the edges in ``machine.targets``. ``distance`` must be -1 everywhere before.
    Writes the places found to ``found``, the cheapest first, and returns their number, or STOPPED once
    ``stop[0]`` is not 0. ``keys`` and ``heap`` need room for all edges of all transitions and the sources.
    """
    pointers, targets = machine.pointers, machine.targets
    leaving, transitions = machine.leaving, machine.transitions
    nodes = pointers.shape[1] - 1
    size = count = 0
    for place in sources:
        _push(keys, heap, size, 0.0, place)
        size += 1
    while size > 0:
        if stop[0] != 0:
            return STOPPED
        cost, place = keys[0], heap[0]
        _pop(keys, heap, size)
        size -= 1
        if distance[place] >= 0.0:
            continue
        distance[place] = cost
        found[count] = place
        count += 1
        state = place // nodes
        node = place - state * nodes
        for k in range(leaving[state], leaving[state + 1]):
            row, reached = transitions[k, 0], np.int64(transitions[k, 1])
            for e in range(pointers[row, node], pointers[row, node + 1]):
                there = reached * nodes + targets[e]
                if distance[there] < 0.0:
                    _push(keys, heap, size, cost + costs[e], there)
                    size += 1
    return count
