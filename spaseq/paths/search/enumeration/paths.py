"""Enumeration of paths; each path is found when it is read.

All paths are found depth first, over sets of states. The search only enters places from which the end can be
reached. So every step of a search for walks is part of a result: the delay between two paths is linear in the
longer one, and memory holds one path. For trails, simple and acyclic paths, the search also turns back where
it would repeat a node or edge against the mode. It may then take many steps before it finds a path (the
problem is NP-hard).

The shortest paths are found best first (``shortest``), and so are all paths under a bound (``bounded``).

If every path takes one of a few edges in the middle, the search is restricted to the ends of such paths and
the places between them, as for pairs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from spaseq.bounds import Shed
from spaseq.paths.graph.snapshot import Snapshot
from spaseq.paths.language.expression import Expression
from spaseq.paths.language.modes import Choice, Mode, check_finite
from spaseq.paths.path import Path
from spaseq.paths.retrieval.budget import Budget
from spaseq.paths.search._kernel import Ids, Nodes
from spaseq.paths.search.enumeration.bounded import Allowance, some_paths
from spaseq.paths.search.enumeration.expansion import Distances, Expansion, edge_of
from spaseq.paths.search.enumeration.shortest import Between, is_nearest, shortest_paths
from spaseq.paths.search.enumeration.weighted import Weights
from spaseq.paths.search.pairs import both, cheaper_end, rare_cut
from spaseq.paths.search.product import Product
from spaseq.paths.search.rare_labels import EVERYWHERE, mark
from spaseq.paths.search.running import AnswerIterator, Memory, current

#: Bytes that a node takes on the current path.
_NODE_BYTES: Final = 400


class Paths(AnswerIterator[Path]):
    """An iterator over paths. Several threads may share it; each path is returned once.

    When it is exhausted, ``truncated`` says whether there are more than ``max_paths``. ``shed`` reports what
    was dropped so far under a latency or a memory, and is None without one. After an exception the search
    cannot go on: reading more raises SpaseqError.
    """

    def __init__(self, found: Iterator[Path], max_paths: int | None, shed: Shed | None = None) -> None:
        super().__init__(found)
        self._left = max_paths
        self.truncated = False
        self.shed = shed

    def _next(self) -> Path:
        path = next(self._found)
        if self._left is not None:
            if self._left == 0:
                self.truncated = True
                self._found = iter(())
                raise StopIteration
            self._left -= 1
        return path


def find_paths(
    graph: Snapshot,
    expression: str | Expression,
    sources: Any,
    targets: Any,
    choice: Choice,
    max_paths: int | None = None,
    budget: Budget | None = None,
    weights: Any = None,
) -> Paths:
    """Return the paths of an expression from sources to targets (terms, one or several, or None for all).

    ``choice`` is what ``read_mode`` returns; it applies to each pair of endpoints. A path is returned once,
    however it is matched. Two paths are the same if they have the same nodes and edges.

    With ``budget.latency`` or ``budget.memory``, the search is best effort. It finds some of the paths that
    it finds without a bound; if all paths are wanted, in another order. ``shed`` reports what was dropped,
    and a warning says so once. The time between two reads of paths does not count. ``budget.paths`` and
    ``budget.tokens`` are for ``retrieve`` only.

    Raises QueryMeaningError for ALL WALK with ``*``, ``+`` or ``{n,}``.
    """
    costs = None
    if weights is not None:
        if choice.everything:
            raise ValueError("weights are for the shortest paths: ask for mode='ANY SHORTEST', or shortest=k")
        costs = Weights(graph, weights)
    compiled, memory = graph.compile(expression), graph.memory(expression)
    check_finite(compiled.expression, choice)
    forward, backward = graph.product(expression), graph.product(expression, backwards=True)
    given = None if sources is None else graph.numbers(sources)
    wanted = None if targets is None else graph.numbers(targets)
    allowance = Allowance(budget, f"paths {expression}") if budget is not None and budget.is_bound else None
    nothing = None if costs is None else 0.0
    strange = (
        Path(graph, (graph.nodes,), (), (), stranger, nothing)
        for stranger in forward.strangers(given, wanted)
    )
    begins, ends = (None if side is None else side[0] for side in (given, wanted))

    def chained() -> Iterator[Path]:
        yield from strange
        if is_nearest(choice, begins, ends):  # searched from both ends: the middle is of no use
            between = Between(begins, ends, EVERYWHERE)
            yield from shortest_paths(graph, forward, backward, memory, between, choice, allowance, costs)
            return
        with _between(graph, expression, memory, begins, ends) as between:
            if choice.everything:
                yield from _all(graph, forward, backward, memory, between, choice.mode, allowance)
            else:
                yield from shortest_paths(graph, forward, backward, memory, between, choice, allowance, costs)

    if allowance is None:
        return Paths(chained(), max_paths)
    return Paths(allowance.timed(chained()), max_paths, allowance.shed)


@contextmanager
def _between(
    graph: Snapshot,
    expression: str | Expression,
    memory: Memory,
    begins: Ids | None,
    ends: Ids | None,
) -> Iterator[Between]:
    """Yield the given ends, or fewer if there is a rare step in the middle; ``inside`` is only lent."""
    cost, _ = cheaper_end(graph, expression, begins, ends)
    forward, backward = graph.product(expression), graph.product(expression, backwards=True)
    cut = rare_cut(forward, cost)
    if cut is None:
        yield Between(begins, ends, EVERYWHERE)
        return
    with graph.workspaces.borrow(memory) as workspace:
        marks = mark(forward, backward, cut, workspace)
        yield Between(both(begins, marks.sources), both(ends, marks.targets), marks.inside)


# --- all paths


def _all(
    graph: Snapshot,
    forward: Product,
    backward: Product,
    memory: Memory,
    between: Between,
    mode: Mode,
    allowance: Allowance | None,
) -> Iterator[Path]:
    begins, ends, inside = between
    with graph.workspaces.borrow(memory) as one, graph.workspaces.borrow(memory) as other:
        ahead, behind = Distances(graph, forward, one), Distances(graph, backward, other)
        if begins is not None:
            ahead.measure(begins, inside)
            inside = ahead.distance
        behind.measure(backward.candidates() if ends is None else ends, inside)
        wanted = None if ends is None else frozenset(ends.tolist())
        sources = _able(forward, behind.distance, forward.candidates() if begins is None else begins)
        empty = frozenset(s for s in sources if len(forward.empty) and forward.empty[s])
        if allowance is not None:
            allowance.reached(ahead.found + behind.found)
            expansion = Expansion(graph, forward, behind.distance, memory, allowance.edges)
            yield from some_paths(graph, expansion, sources, empty, wanted, mode, memory, allowance)
            return
        expansion = Expansion(graph, forward, behind.distance, memory)
        for source in sources:
            if source in empty and (wanted is None or source in wanted):
                yield Path(graph, (source,), (), ())
            yield from _from(graph, expansion, source, wanted, mode, memory)


def _able(product: Product, distance: Nodes, nodes: Ids) -> list[int]:
    """Return the nodes from which a path leads to an end, or where a path without edges is a result."""
    able = product.empty[nodes] if len(product.empty) else np.zeros(len(nodes), dtype=np.bool_)
    for state in product.initial.tolist():
        able |= distance[state * (product.pointers.shape[1] - 1) + nodes] >= 0
    found: list[int] = nodes[able].tolist()
    return found


def _from(
    graph: Snapshot,
    expansion: Expansion,
    source: int,
    wanted: frozenset[int] | None,
    mode: Mode,
    memory: Memory,
) -> Iterator[Path]:
    """Yield all paths with edges from one node."""
    nodes, predicates, ahead = [source], list[int](), list[bool]()
    states, tried = expansion.useful(source, expansion.initial), 0
    visited, edges = {source}, set[tuple[int, int, int]]()
    # The states at each node before the last, and how many of its edges were tried. The edges are not kept,
    # because each node of the path may have many.
    before: list[tuple[int, int]] = []
    longest = memory.left // _NODE_BYTES
    stop = current()
    taken = expansion.take(source, states)
    while True:
        stop.check()
        if tried == len(taken):
            if not before:
                return
            edges.discard(edge_of(nodes[-2], predicates.pop(), ahead.pop(), nodes[-1]))
            visited.discard(nodes.pop())
            states, tried = before.pop()
            taken = expansion.take(nodes[-1], states)
            continue
        predicate, forward, node, reached = taken[tried]
        tried += 1
        closes = False
        if mode is Mode.TRAIL:
            if edge_of(nodes[-1], predicate, forward, node) in edges:
                continue
        elif mode is not Mode.WALK and node in visited:
            closes = mode is Mode.SIMPLE and node == source
            if not closes:
                continue
        if reached & expansion.accepting and (wanted is None or node in wanted):
            yield Path(graph, (*nodes, node), (*predicates, predicate), (*ahead, forward))
        if closes:
            continue
        if mode is Mode.TRAIL:
            edges.add(edge_of(nodes[-1], predicate, forward, node))
        elif mode is not Mode.WALK:
            visited.add(node)
        if len(nodes) > longest:
            raise memory.error(len(nodes) * _NODE_BYTES, f"a path of {len(nodes):,} edges")
        nodes.append(node)
        predicates.append(predicate)
        ahead.append(forward)
        before.append((states, tried))
        states, tried = reached, 0
        taken = expansion.take(node, states)
