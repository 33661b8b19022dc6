"""The paths themselves, found when they are asked for.

All paths: depth first, over sets of states, and only into places from which the end can be reached. So every
step of a search for walks is part of an answer: the delay between two answers is linear in the longer one,
and memory holds one path, however many there are. For trails, simple and acyclic paths the search also
turns back where it would repeat what the mode forbids; then it may try much before it finds anything (the
problem is NP-hard).

The shortest: best first (A*), guided by the exact distances that one breadth-first search from one end
gives. For walks, each step lies on an answer, too; among equals the search goes on with the path that is
longest.

Where every path takes one of a few edges in the middle, only the ends of such paths are looked at, and what
lies between them, as for pairs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from spaseq.paths.language.expression import Expression
from spaseq.paths.language.modes import Choice, Mode, check_finite, read_mode
from spaseq.paths.path import Path
from spaseq.paths.search._kernel import Ids, Nodes, distances
from spaseq.paths.search.asked import Asked
from spaseq.paths.search.expansion import Expansion, Taken
from spaseq.paths.search.memory import Memory
from spaseq.paths.search.middle import EVERYWHERE, mark
from spaseq.paths.search.pairs import both, cheaper_end, rare_cut
from spaseq.paths.search.product import Product
from spaseq.paths.search.workspace import Workspace

if TYPE_CHECKING:
    from spaseq.paths.graph.snapshot import Snapshot


#: What a node takes on the path that is looked at, and a path in the making, with all that belongs to it.
_NODE_BYTES: Final = 400
_TRACE_BYTES: Final = 500


class Paths(Asked[Path]):
    """Paths, one after the other, for one thread or several: each comes once.

    ``truncated``, once it is exhausted: there are more than ``max_paths``. A search that an exception has
    broken off cannot go on: to ask for more is a SpaseqError.
    """

    def __init__(self, found: Iterator[Path], max_paths: int | None) -> None:
        super().__init__(found)
        self._left = max_paths
        self.truncated = False

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
    mode: str,
    shortest: int | None,
    max_paths: int | None,
) -> Paths:
    """The paths of an expression from sources to targets (terms, one or several, or None for all).

    ``mode`` as in GQL: ``[ALL | ANY | ANY SHORTEST | ALL SHORTEST | SHORTEST k] [WALK | TRAIL | SIMPLE |
    ACYCLIC]``, per pair of endpoints; ``shortest=k`` for SHORTEST k. A path counts once, however it is
    matched; two paths are the same if they have the same nodes and edges. Raises QueryMeaningError for ALL
    WALK with ``*``, ``+`` or ``{n,}``.
    """
    choice = read_mode(mode, shortest)
    compiled, memory = graph.compile(expression), graph.memory(expression)
    check_finite(compiled.expression, choice)
    forward, backward = graph.product(expression), graph.product(expression, backwards=True)
    given = None if sources is None else graph.numbers(sources)
    wanted = None if targets is None else graph.numbers(targets)
    strange = (Path(graph, (graph.nodes,), (), (), stranger) for stranger in forward.strangers(given, wanted))
    begins, ends = (None if side is None else side[0] for side in (given, wanted))

    def chained() -> Iterator[Path]:
        yield from strange
        with _between(graph, expression, memory, begins, ends) as between:
            if choice.everything:
                yield from _all(graph, forward, backward, memory, between, choice.mode)
            else:
                yield from _shortest(graph, forward, backward, memory, between, choice)

    return Paths(chained(), max_paths)


class _Between(NamedTuple):
    """Where paths may begin and end (None: anywhere), and the places on their way (see ``distances``)."""

    begins: Ids | None
    ends: Ids | None
    inside: Nodes


@contextmanager
def _between(
    graph: Snapshot,
    expression: str | Expression,
    memory: Memory,
    begins: Ids | None,
    ends: Ids | None,
) -> Iterator[_Between]:
    """The ends given, or fewer if there is a rare step in the middle. The places are a workspace's."""
    cost, _ = cheaper_end(graph, expression, begins, ends)
    forward, backward = graph.product(expression), graph.product(expression, backwards=True)
    cut = rare_cut(forward, cost)
    if cut is None:
        yield _Between(begins, ends, EVERYWHERE)
        return
    with graph.workspaces.borrow(memory) as workspace:
        marks = mark(forward, backward, cut, workspace)
        yield _Between(both(begins, marks.sources), both(ends, marks.targets), marks.inside)


# --- all paths


def _all(
    graph: Snapshot, forward: Product, backward: Product, memory: Memory, between: _Between, mode: Mode
) -> Iterator[Path]:
    begins, ends, inside = between
    with graph.workspaces.borrow(memory) as one, graph.workspaces.borrow(memory) as other:
        ahead, behind = _Distances(graph, forward, one), _Distances(graph, backward, other)
        if begins is not None:
            ahead.measure(begins, inside)
            inside = ahead.distance
        behind.measure(backward.candidates() if ends is None else ends, inside)
        wanted = None if ends is None else frozenset(ends.tolist())
        expansion = Expansion(graph, forward, behind.distance, memory)
        for source in _able(forward, behind.distance, forward.candidates() if begins is None else begins):
            if len(forward.empty) and forward.empty[source] and (wanted is None or source in wanted):
                yield Path(graph, (source,), (), ())
            yield from _from(graph, expansion, source, wanted, mode, memory)


def _able(product: Product, distance: Nodes, nodes: Ids) -> list[int]:
    """The nodes from which a path of edges leads to an end, or a path of none is an answer."""
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
    """All paths with edges from one node."""
    nodes, predicates, ahead = [source], list[int](), list[bool]()
    states, tried = expansion.useful(source, expansion.initial), 0
    visited, edges = {source}, set[tuple[int, int, int]]()
    # The states at each node before the last, and how many edges were tried from there. Not the edges: at
    # each place of the path there are as many as a node has.
    before: list[tuple[int, int]] = []
    longest = memory.left // _NODE_BYTES
    taken = expansion.take(source, states)
    while True:
        if tried == len(taken):
            if not before:
                return
            edges.discard(_edge(nodes[-2], predicates.pop(), ahead.pop(), nodes[-1]))
            visited.discard(nodes.pop())
            states, tried = before.pop()
            taken = expansion.take(nodes[-1], states)
            continue
        predicate, forward, node, reached = taken[tried]
        tried += 1
        closes = False
        if mode is Mode.TRAIL:
            if _edge(nodes[-1], predicate, forward, node) in edges:
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
            edges.add(_edge(nodes[-1], predicate, forward, node))
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


def _edge(before: int, predicate: int, forward: bool, after: int) -> tuple[int, int, int]:
    return (before, predicate, after) if forward else (after, predicate, before)


# --- the shortest paths


def _shortest(
    graph: Snapshot,
    forward: Product,
    backward: Product,
    memory: Memory,
    between: _Between,
    choice: Choice,
) -> Iterator[Path]:
    """From each node of one end a breadth-first search, then from what it has reached the paths back."""
    begins, ends, inside = between
    turned = ends is not None and (begins is None or len(ends) < len(begins))
    if turned:
        forward, backward, begins, ends = backward, forward, ends, begins
    wanted = None if ends is None else frozenset(ends.tolist())
    with graph.workspaces.borrow(memory) as workspace:
        measured = _Distances(graph, forward, workspace)
        expansion = Expansion(graph, backward, measured.distance, memory)
        for root in (forward.candidates() if begins is None else begins).tolist():
            measured.measure(np.array([root]), inside)
            expansion.forget()
            for node in measured.ended(root):
                if wanted is None or node in wanted:
                    empty = node == root and bool(len(forward.empty)) and bool(forward.empty[root])
                    for path in _best_first(graph, expansion, node, root, empty, choice, memory):
                        yield path if turned else _reversed(path)


class _Trace:
    """A path in the making: its last node, and what is before it."""

    __slots__ = ("before", "forward", "length", "node", "predicate", "states")

    def __init__(self, node: int, states: int, before: _Trace | None, predicate: int, forward: bool) -> None:
        self.node = node
        self.states = states
        self.before = before
        self.predicate = predicate
        self.forward = forward
        self.length: int = before.length + 1 if before else 0

    def path(self, graph: Snapshot) -> Path:
        traces = [self, *self.earlier()][::-1]
        return Path(
            graph,
            tuple(trace.node for trace in traces),
            tuple(trace.predicate for trace in traces[1:]),
            tuple(trace.forward for trace in traces[1:]),
        )

    def earlier(self) -> Iterator[_Trace]:
        trace = self.before
        while trace is not None:
            yield trace
            trace = trace.before


def _best_first(
    graph: Snapshot,
    expansion: Expansion,
    start: int,
    end: int,
    empty: bool,
    choice: Choice,
    memory: Memory,
) -> Iterator[Path]:
    """The shortest paths between two nodes, in the direction of the expansion, by length."""
    left = 1 if choice.count is None else choice.count
    if empty:
        yield Path(graph, (start,), (), ())
        left -= 1
        if left == 0:
            return
    number = count()
    states = expansion.useful(start, expansion.initial)
    # (edges at least, the longest first among equals, the first found, the path, whether it is complete)
    waiting = [(0, 0, next(number), _Trace(start, states, None, 0, True), False)]
    wanted = left
    lengths: list[int] = []  # of the shortest complete ones so far, negative: what is longer is of no use
    most = memory.left // _TRACE_BYTES
    while waiting:
        if len(waiting) + len(lengths) > most:
            raise memory.error(len(waiting) * _TRACE_BYTES, f"{len(waiting):,} paths in the making")
        _, _, _, trace, complete = heappop(waiting)
        if complete:
            yield trace.path(graph)
            if not choice.ties:
                left -= 1
                if left == 0:
                    return
            continue
        for taken in expansion.take(trace.node, trace.states):
            allowed, closes = _allowed(trace, taken, start, choice.mode)
            if not allowed:
                continue
            predicate, forward, node, states = taken
            further = _Trace(node, states, trace, predicate, forward)
            longest = -lengths[0] if len(lengths) == wanted else None
            if node == end and states & expansion.accepting and _fits(further.length, longest):
                heappush(waiting, (further.length, -further.length, next(number), further, True))
                heappush(lengths, -further.length)
                if len(lengths) > wanted:
                    heappop(lengths)
            if not closes:
                least = further.length + max(1, expansion.remaining(node, states))
                if _fits(least, longest):
                    heappush(waiting, (least, -further.length, next(number), further, False))


def _fits(length: int, longest: int | None) -> bool:
    return longest is None or length <= longest


def _allowed(trace: _Trace, taken: Taken, start: int, mode: Mode) -> tuple[bool, bool]:
    """Whether the mode lets a path take an edge, and whether it must end there."""
    predicate, forward, node, _ = taken
    if mode is Mode.WALK:
        return True, False
    if mode is Mode.TRAIL:
        edge = _edge(trace.node, predicate, forward, node)
        there: _Trace | None = trace
        while there is not None and there.before is not None:
            if _edge(there.before.node, there.predicate, there.forward, there.node) == edge:
                return False, False
            there = there.before
        return True, False
    if node == start:
        return mode is Mode.SIMPLE, True
    return node != trace.node and all(node != there.node for there in trace.earlier()), False


def _reversed(path: Path) -> Path:
    """The path read from its end."""
    ahead = tuple(
        not forward or before == after
        for before, after, forward in zip(path.nodes, path.nodes[1:], path.forward, strict=False)
    )
    return Path(path.graph, path.nodes[::-1], path.predicates[::-1], ahead[::-1])


class _Distances:
    """How far each place is from the places where an automaton begins at some nodes; -1: out of reach.

    The arrays are the workspace's, where what is near is marked.
    """

    def __init__(self, graph: Snapshot, product: Product, workspace: Workspace) -> None:
        self._graph = graph
        self._product = product
        self._workspace = workspace
        self._found = 0
        self.distance, self._queue = workspace.marks(product.size)

    def measure(self, begins: Ids, inside: Nodes = EVERYWHERE) -> None:
        """From these nodes; what was measured before is forgotten. See ``distances`` for ``inside``."""
        self._workspace.unmark()
        product = self._product
        places = (product.initial.astype(np.int64)[:, None] * self._graph.nodes + begins[None, :]).ravel()
        self._found = distances(
            product.pointers, product.targets, product.leaving, product.moves,
            places, inside, self.distance, self._queue,
        )  # fmt: skip
        self._workspace.mark(self._found)

    def ended(self, root: int) -> list[int]:
        """The nodes at which a path from the root may end, the nearest first, the root among them."""
        places = self._queue[: self._found]
        states = places // self._graph.nodes
        nodes = places[self._product.ends[states] != 0] % self._graph.nodes
        return list(dict.fromkeys([root, *nodes.tolist()]))
