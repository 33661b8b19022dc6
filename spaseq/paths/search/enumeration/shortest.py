"""The shortest paths between two nodes, best first (A*), guided by exact distances.

One breadth-first search from one end finds these distances. For the shortest paths between one pair of nodes,
two searches do, one from each end. If all walks are allowed, each step is part of a result. Among unfinished
paths with the same total length, the search extends the longest first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from heapq import heappop, heappush
from itertools import count
from typing import Final, NamedTuple

import numpy as np

from spaseq.paths.graph.snapshot import Snapshot
from spaseq.paths.language.modes import Choice, Mode
from spaseq.paths.path import Path
from spaseq.paths.search._kernel import Ids, Nodes
from spaseq.paths.search.enumeration.bounded import UNFINISHED, UNSEARCHED, Allowance
from spaseq.paths.search.enumeration.expansion import TRACE_BYTES, Distances, Expansion, Trace, allowed
from spaseq.paths.search.enumeration.weighted import Cheapest, Weights
from spaseq.paths.search.product import Product
from spaseq.paths.search.running import Memory, current

#: Costs are sums of floats in any order; costs within this factor are equal.
_ROUNDING: Final = 1 + 1e-9


class Between(NamedTuple):
    """The nodes where paths may begin and end (None: all), and the places that they may pass.

    ``inside`` is as for the kernel ``one_by_one``.
    """

    begins: Ids | None
    ends: Ids | None
    inside: Nodes


def _is_of_nearest(choice: Choice) -> bool:
    """Return whether only paths as short as the shortest are wanted."""
    return choice.ties or choice.count == 1


def is_nearest(choice: Choice, begins: Ids | None, ends: Ids | None) -> bool:
    """Return whether the shortest paths between one pair of nodes are wanted; both ends are then searched."""
    return (
        _is_of_nearest(choice) and begins is not None and ends is not None and len(begins) == len(ends) == 1
    )


def shortest_paths(
    graph: Snapshot,
    forward: Product,
    backward: Product,
    memory: Memory,
    between: Between,
    choice: Choice,
    allowance: Allowance | None,
    weights: Weights | None = None,
) -> Iterator[Path]:
    """Yield the shortest paths: measure distances from each node of one end, then search paths back to it.

    Distances are numbers of edges or, with ``weights``, costs. If the allowance runs out, the paths found
    until then are still among the shortest.
    """
    begins, ends, inside = between
    turned = ends is not None and (begins is None or len(ends) < len(begins))
    if turned:
        forward, backward, begins, ends = backward, forward, ends, begins
    wanted = None if ends is None else frozenset(ends.tolist())
    with graph.workspaces.borrow(memory) as workspace:
        measured = (
            Distances(graph, forward, workspace)
            if weights is None
            else Cheapest(graph, forward, weights, memory)
        )
        expansion = Expansion(graph, backward, measured.distance, memory, weights=weights)
        roots = (forward.candidates() if begins is None else begins).tolist()
        for done, root in enumerate(roots):
            if allowance is not None and allowance.room() < 1:
                allowance.give_up(len(roots) - done, UNSEARCHED)
                return
            is_empty = bool(len(forward.empty)) and bool(forward.empty[root])
            for node, longest in _nearest(measured, backward, root, is_empty, wanted, inside, choice):
                expansion.forget()
                if allowance is not None:
                    allowance.reached(measured.found)
                empty = is_empty and node == root
                found = _best_first(expansion, node, root, empty, choice, allowance, longest)
                any_found = False
                for path in found:
                    any_found = True
                    yield path if turned else _reversed(path)
                if any_found and longest is not None:
                    break


def _nearest(
    measured: Distances | Cheapest,
    backward: Product,
    root: int,
    is_empty: bool,
    wanted: frozenset[int] | None,
    inside: Nodes,
    choice: Choice,
) -> Iterator[tuple[int, float | None]]:
    """Measure how far places are from the root; yield the nodes to search from, and the longest path allowed.

    If only the shortest paths to a single node are wanted, the places on the shortest walks are measured
    first. If the mode allows none of these walks, all places are measured, and paths may have any length
    (None). ``is_empty``: a path from the root to itself may have no edge.
    """
    if isinstance(measured, Distances) and wanted is not None and len(wanted) == 1 and _is_of_nearest(choice):
        (node,) = wanted
        if is_empty and node == root:
            yield node, 0
            return
        every = choice.ties or choice.mode is not Mode.WALK
        length = measured.measure_pair(root, backward, node, every=every)
        if length is not None:
            yield node, length
        if length is None or choice.mode is Mode.WALK:
            return
    measured.measure(np.array([root]), inside)
    for node in measured.ended(root):
        if wanted is None or node in wanted:
            yield node, None


def _best_first(
    expansion: Expansion,
    start: int,
    end: int,
    empty: bool,
    choice: Choice,
    allowance: Allowance | None,
    longest: float | None,
) -> Iterator[Path]:
    """Yield the shortest paths from ``start`` to ``end``, in the direction of the expansion, by length.

    No path has more edges than ``longest``.
    """
    graph, memory = expansion.graph, expansion.memory
    left = 1 if choice.count is None else choice.count
    weighted = expansion.least == 0
    if empty:
        yield Path(graph, (start,), (), (), cost=0.0 if weighted else None)
        left -= 1
        if left == 0:
            return
    number = count()
    states = expansion.useful(start, expansion.initial)
    # (the least total length, the negative length so far, the order of insertion, the path, is it complete)
    waiting = [(0.0, 0.0, next(number), Trace(start, states, None, 0, True), False)]
    best = _Shortest(left, longest)
    most = memory.left // TRACE_BYTES
    stop = current()
    while waiting:
        stop.check()
        if not _has_room(allowance, len(waiting)):
            return
        if len(waiting) + len(best) > most:
            raise memory.error(len(waiting) * TRACE_BYTES, f"{len(waiting):,} paths in the making")
        _, _, _, trace, complete = heappop(waiting)
        if complete:
            found = trace.path(graph)
            yield replace(found, cost=trace.length) if weighted else found
            if not choice.ties:
                left -= 1
                if left == 0:
                    return
            continue
        edges = expansion.take(trace.node, trace.states)
        if allowance is not None:
            allowance.look(1 + len(edges))
        for taken in edges:
            may, closes = allowed(trace, taken, start, choice.mode)
            if not may:
                continue
            predicate, forward, node, states = taken
            further = Trace(node, states, trace, predicate, forward, expansion.cost(trace.node, taken))
            if node == end and states & expansion.accepting and _fits(further.length, best.longest):
                heappush(waiting, (further.length, -further.length, next(number), further, True))
                best.add(further.length)
            if not closes:
                least = further.length + max(expansion.least, expansion.remaining(node, states))
                if _fits(least, best.longest):
                    heappush(waiting, (least, -further.length, next(number), further, False))


class _Shortest:
    """The lengths of the ``count`` shortest complete paths so far; longer paths than these are not needed."""

    def __init__(self, count: int, longest: float | None) -> None:
        self._count = count
        self._negative: list[float] = []
        self.longest = longest

    def __len__(self) -> int:
        return len(self._negative)

    def add(self, length: float) -> None:
        """Add a complete path."""
        heappush(self._negative, -length)
        if len(self._negative) > self._count:
            heappop(self._negative)
        if len(self._negative) == self._count:
            self.longest = -self._negative[0]


def _has_room(allowance: Allowance | None, paths: int) -> bool:
    """Return whether the allowance lets the search go on; if not, record its ``paths`` as given up."""
    if allowance is None or (allowance.room() >= 1 and (allowance.paths is None or paths <= allowance.paths)):
        return True
    allowance.give_up(paths, UNFINISHED)
    return False


def _fits(length: float, longest: float | None) -> bool:
    return longest is None or length <= longest * _ROUNDING


def _reversed(path: Path) -> Path:
    """Return the path read from its end."""
    ahead = tuple(
        not forward or before == after
        for before, after, forward in zip(path.nodes, path.nodes[1:], path.forward, strict=False)
    )
    return replace(path, nodes=path.nodes[::-1], predicates=path.predicates[::-1], forward=ahead[::-1])
