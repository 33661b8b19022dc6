"""The kernel for one pair of nodes: breadth-first searches of the product from both ends.

Arrays are as in ``_kernel``. Each step searches a whole level, on the side with fewer edges in its next level
(Pohl, *Bi-directional search*, 1971). An edge joins the searches if it leads from the last level ahead to the
last level behind. All shorter paths with edges have been ruled out by then, so the edge is on a shortest
path.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spaseq._jit import kernel, part
from spaseq.paths.search._kernel import STOPPED, Ids, Nodes

#: The result of ``meet`` if no path joins the ends.
NO_PATH: Final = -1

#: Indexes into ``counts``: the number of places reached ahead and behind, and whether an edge joins them.
AHEAD: Final = 0
BEHIND: Final = 1
MET: Final = 2


class Side(NamedTuple):
    """One of the two searches.

    ``leaving`` and ``transitions`` are the automaton as read from this end. ``distance``, ``(places,)``, is
    the number of edges from this end, or -1. ``queue``, ``(places,)``, has the places with a distance, level
    by level, beginning with those where the search begins.
    """

    leaving: Nodes
    transitions: npt.NDArray[np.int32]
    distance: Nodes
    queue: Ids


@part
def _cost(pointers: npt.NDArray[np.int64], side: Side, low: int, high: int) -> int:
    """Return how many edges leave the places ``queue[low:high]``."""
    nodes = pointers.shape[1] - 1
    count = 0
    for i in range(low, high):
        state = side.queue[i] // nodes
        node = side.queue[i] - state * nodes
        for k in range(side.leaving[state], side.leaving[state + 1]):
            row = side.transitions[k, 0]
            count += pointers[row, node + 1] - pointers[row, node]
    return count


@part
def _advance(
    pointers: npt.NDArray[np.int64],
    targets: Nodes,
    ahead: Side,
    behind: Side,
    low: int,
    every: bool,
    counts: Ids,
    stop: Ids,
) -> bool:
    """Search one more level ahead. Places where the searches join get their distance from the end behind.

    Returns False if the search was stopped. Without ``every``, the first edge that joins the searches is
    enough.
    """
    nodes = pointers.shape[1] - 1
    high, tail, joined = counts[AHEAD], counts[AHEAD], counts[BEHIND]
    last = behind.distance[behind.queue[joined - 1]]
    for i in range(low, high):
        if stop[0] != 0:
            return False
        place = ahead.queue[i]
        state = place // nodes
        node = place - state * nodes
        for k in range(ahead.leaving[state], ahead.leaving[state + 1]):
            row, reached = ahead.transitions[k, 0], ahead.transitions[k, 1]
            base = np.int64(reached) * nodes
            goes_on = ahead.leaving[reached] < ahead.leaving[reached + 1]
            for e in range(pointers[row, node], pointers[row, node + 1]):
                after = base + targets[e]
                if behind.distance[after] == last:
                    counts[MET] = 1
                    if behind.distance[place] < 0:
                        behind.distance[place] = last + 1
                        behind.queue[counts[BEHIND]] = place
                        counts[BEHIND] += 1
                    if not every:
                        counts[AHEAD] = tail
                        return True
                if goes_on and ahead.distance[after] < 0:
                    ahead.distance[after] = ahead.distance[place] + 1
                    ahead.queue[tail] = after
                    tail += 1
    counts[AHEAD] = tail
    return True


@part
def _advance_behind(
    pointers: npt.NDArray[np.int64],
    targets: Nodes,
    ahead: Side,
    behind: Side,
    low: int,
    every: bool,
    counts: Ids,
    stop: Ids,
) -> bool:
    """Search one more level behind; see ``_advance``."""
    nodes = pointers.shape[1] - 1
    high, tail = counts[BEHIND], counts[BEHIND]
    last = ahead.distance[ahead.queue[counts[AHEAD] - 1]]
    for i in range(low, high):
        if stop[0] != 0:
            return False
        place = behind.queue[i]
        state = place // nodes
        node = place - state * nodes
        for k in range(behind.leaving[state], behind.leaving[state + 1]):
            row, reached = behind.transitions[k, 0], behind.transitions[k, 1]
            base = np.int64(reached) * nodes
            goes_on = behind.leaving[reached] < behind.leaving[reached + 1]
            for e in range(pointers[row, node], pointers[row, node + 1]):
                before = base + targets[e]
                meets = ahead.distance[before] == last
                if (goes_on or meets) and behind.distance[before] < 0:
                    behind.distance[before] = behind.distance[place] + 1
                    behind.queue[tail] = before
                    tail += 1
                if meets:
                    counts[MET] = 1
                    if not every:
                        counts[BEHIND] = tail
                        return True
    counts[BEHIND] = tail
    return True


@part
def _lead_back(
    pointers: npt.NDArray[np.int64],
    targets: Nodes,
    ahead: Side,
    behind: Side,
    low: int,
    length: int,
    counts: Ids,
) -> None:
    """Also give the places ahead that are on paths of this length their distance from the end behind."""
    nodes = pointers.shape[1] - 1
    head = low
    while head < counts[BEHIND]:
        place = behind.queue[head]
        head += 1
        far = ahead.distance[place]
        if far < 1 or far + behind.distance[place] != length:
            continue
        state = place // nodes
        node = place - state * nodes
        for k in range(behind.leaving[state], behind.leaving[state + 1]):
            row, base = behind.transitions[k, 0], np.int64(behind.transitions[k, 1]) * nodes
            for e in range(pointers[row, node], pointers[row, node + 1]):
                before = base + targets[e]
                if ahead.distance[before] == far - 1 and behind.distance[before] < 0:
                    behind.distance[before] = behind.distance[place] + 1
                    behind.queue[counts[BEHIND]] = before
                    counts[BEHIND] += 1


@kernel
def meet(
    pointers: npt.NDArray[np.int64],
    targets: Nodes,
    ahead: Side,
    behind: Side,
    every: bool,
    counts: Ids,
    stop: Ids,
) -> int:
    """Return the number of edges, at least 1, of the shortest paths between two nodes; NO_PATH or STOPPED.

    Afterwards, ``behind.distance`` is exact where it is not -1. It has at least the places of one shortest
    path or, with ``every``, of all; ``behind.queue[:counts[BEHIND]]`` lists the places. ``counts``, ``(3,)``,
    is before the call the number of places in each queue, and 0. Both distances must be -1 everywhere before;
    ``ahead.distance`` is reset afterwards, unless the search was stopped.
    """
    for i in range(counts[AHEAD]):
        ahead.distance[ahead.queue[i]] = 0
    for i in range(counts[BEHIND]):
        behind.distance[behind.queue[i]] = 0
    low, far, length = 0, 0, 0
    near_cost, far_cost = _cost(pointers, ahead, 0, counts[AHEAD]), _cost(pointers, behind, 0, counts[BEHIND])
    begun = counts[BEHIND]
    while counts[MET] == 0 and low < counts[AHEAD] and far < counts[BEHIND]:
        length += 1
        begun = counts[BEHIND]
        if near_cost <= far_cost:
            end = counts[AHEAD]
            if not _advance(pointers, targets, ahead, behind, low, every, counts, stop):
                return STOPPED
            low = end
            near_cost = _cost(pointers, ahead, low, counts[AHEAD])
        else:
            if not _advance_behind(pointers, targets, ahead, behind, far, every, counts, stop):
                return STOPPED
            far = begun
            far_cost = _cost(pointers, behind, far, counts[BEHIND])
    if counts[MET] != 0:
        _lead_back(pointers, targets, ahead, behind, begun, length, counts)
    for i in range(counts[AHEAD]):
        ahead.distance[ahead.queue[i]] = -1
    return length if counts[MET] != 0 else NO_PATH
