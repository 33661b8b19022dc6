"""The edges that a set of automaton states can take from a node, the basis of enumerating paths.

Sets of states are bits of an integer. Going from set to set instead of from state to state makes the
automaton deterministic on the fly, so a path is found once, however many runs accept it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from spaseq.paths.graph.snapshot import Snapshot
from spaseq.paths.language.expression import Step
from spaseq.paths.language.modes import Mode
from spaseq.paths.language.transitions import Tests, Transition
from spaseq.paths.path import Path
from spaseq.paths.search._kernel import Flags, Ids, Nodes, distances
from spaseq.paths.search._kernel_cheapest import Costs
from spaseq.paths.search.enumeration.weighted import Weights
from spaseq.paths.search.product import Product, length_between
from spaseq.paths.search.rare_labels import EVERYWHERE
from spaseq.paths.search.running import Memory
from spaseq.paths.search.workspace import Workspace

#: At most this many edges taken are cached; then the cache is cleared.
_KEPT: Final = 1 << 20

#: Bytes of a cached edge.
TAKEN_BYTES: Final = 200

#: Bytes of an unfinished path, with all that belongs to it.
TRACE_BYTES: Final = 500

#: (predicate, forward, node reached, states)
Taken = tuple[int, bool, int, int]


@dataclass(frozen=True, slots=True)
class _Guarded:
    """A transition between nodes that pass tests."""

    before: Flags | None
    after: Flags | None
    target: int


@dataclass(frozen=True, slots=True)
class _EdgeStep:
    """How a set of states reads the edges of one predicate in one direction; ``row`` is their CSR row.

    ``free`` are the states reached without tests, ``guarded`` the transitions with tests.
    """

    row: int
    predicate: int
    inverse: bool
    free: int
    guarded: tuple[_Guarded, ...]


class Expansion:
    """Takes edges by the transitions of an automaton, to places with a ``distance`` (not -1) to the end."""

    def __init__(
        self,
        graph: Snapshot,
        product: Product,
        distance: Nodes | Costs,
        memory: Memory,
        kept: int | None = None,
        weights: Weights | None = None,
    ) -> None:
        """``kept``: at most this many edges taken are kept. Without ``weights`` each edge costs 1."""
        self.graph = graph
        self._nodes = graph.nodes
        self.memory = memory
        self._room = min(_KEPT if kept is None else kept, _KEPT, memory.left // (2 * TAKEN_BYTES))
        self._product = product
        self._distance = distance
        self._weights = weights
        #: The least cost of extending a path that has already reached the end.
        self.least = 1 if weights is None else 0
        self._readers: dict[int, tuple[_EdgeStep, ...]] = product.readers
        self._kept: dict[tuple[int, int], list[Taken]] = {}
        self._count = 0
        self.accepting = sum(1 << state for state in product.automaton.accepting)
        self.initial = sum(1 << state for state in product.automaton.initial)

    def forget(self) -> None:
        """Clear the cache, because the distances have changed."""
        self._kept.clear()
        self._count = 0

    def useful(self, node: int, states: int) -> int:
        """Return those of ``states`` from which the end can be reached from this node."""
        nodes, distance, useful = self._nodes, self._distance, 0
        for state in bits(states):
            if distance[state * nodes + node] >= 0:
                useful |= 1 << state
        return useful

    def remaining(self, node: int, states: int) -> float:
        """Return the least cost from the node to the end in any of ``states``, which must all be useful."""
        nodes, distance = self._nodes, self._distance
        return min(distance.item(state * nodes + node) for state in bits(states))

    def cost(self, before: int, taken: Taken) -> float:
        """Return the cost of an edge that is taken from a node."""
        predicate, forward, after, _ = taken
        return 1 if self._weights is None else self._weights.cost(edge_of(before, predicate, forward, after))

    def degree(self, node: int, states: int) -> int:
        """Return how many edges of a node these states read."""
        pointers = self._product.relations.pointers
        rows = [reader.row for reader in self._reading(states)]
        return sum(int(pointers[row, node + 1]) - int(pointers[row, node]) for row in rows)

    def take(self, node: int, states: int) -> list[Taken]:
        """Return the distinct edges from a node that lead to useful states, each with these states."""
        key = (node, states)
        taken = self._kept.get(key)
        if taken is None:
            taken = list(self._take(node, states))
            if self._count > self._room:
                self.forget()
            self._count += 1 + len(taken)
            self._kept[key] = taken
        return taken

    def _take(self, node: int, states: int) -> Iterator[Taken]:
        relations = self._product.relations
        found: dict[tuple[int, bool, int], int] = {}
        for reader in self._reading(states):
            low, high = relations.pointers[reader.row, node : node + 2].tolist()
            if high - low > self._room:
                self.memory.take(TAKEN_BYTES * (high - low), f"the {high - low:,} edges of a node")
            for other in relations.targets[low:high].tolist():
                reached = reader.free
                for guard in reader.guarded:
                    if (guard.before is None or guard.before[node]) and (
                        guard.after is None or guard.after[other]
                    ):
                        reached |= guard.target
                if reached:
                    # A loop is the same edge whichever way it is taken.
                    key = (reader.predicate, not reader.inverse or other == node, other)
                    found[key] = found.get(key, 0) | reached
        for (predicate, forward, other), reached in found.items():
            useful = self.useful(other, reached)
            if useful:
                yield predicate, forward, other, useful

    def _reading(self, states: int) -> tuple[_EdgeStep, ...]:
        readers = self._readers.get(states)
        if readers is None:
            readers = self._readers[states] = tuple(self._make(states))
        return readers

    def _make(self, states: int) -> Iterator[_EdgeStep]:
        transitions: dict[tuple[int, bool], list[Transition]] = {}
        for transition in self._product.automaton.transitions:
            if states >> transition.source & 1:
                for predicate in self.graph.predicates_of(transition.relation.step):
                    transitions.setdefault((predicate, transition.relation.step.inverse), []).append(
                        transition
                    )
        for (predicate, inverse), found in transitions.items():
            free, guarded = 0, []
            for transition in found:
                before, after = (
                    self._flags(transition.relation.before),
                    self._flags(transition.relation.after),
                )
                if before is None and after is None:
                    free |= 1 << transition.target
                else:
                    guarded.append(_Guarded(before, after, 1 << transition.target))
            step = Step((self.graph.ox_predicate(predicate),), inverse=inverse)
            row = self._product.relations.step(step, self.memory)
            yield _EdgeStep(row, predicate, inverse, free, tuple(guarded))

    def _flags(self, tests: Tests) -> Flags | None:
        return self._product.relations.passing(tests) if tests else None


class Trace:
    """An unfinished path: its last edge and node, and the path before; ``length`` is its edges' cost."""

    __slots__ = ("before", "forward", "length", "node", "predicate", "states")

    def __init__(
        self,
        node: int,
        states: int,
        before: Trace | None,
        predicate: int,
        forward: bool,
        cost: float = 1,
    ) -> None:
        self.node = node
        self.states = states
        self.before = before
        self.predicate = predicate
        self.forward = forward
        self.length: float = before.length + cost if before else 0

    def path(self, graph: Snapshot) -> Path:
        """Return the path from its first node."""
        traces = [self, *self.earlier()][::-1]
        return Path(
            graph,
            tuple(trace.node for trace in traces),
            tuple(trace.predicate for trace in traces[1:]),
            tuple(trace.forward for trace in traces[1:]),
        )

    def earlier(self) -> Iterator[Trace]:
        """Yield the paths that this path begins with, the longest first."""
        trace = self.before
        while trace is not None:
            yield trace
            trace = trace.before


def edge_of(before: int, predicate: int, forward: bool, after: int) -> tuple[int, int, int]:
    """Return an edge in the direction of the graph: subject, predicate, object."""
    return (before, predicate, after) if forward else (after, predicate, before)


def allowed(trace: Trace, taken: Taken, start: int, mode: Mode) -> tuple[bool, bool]:
    """Return whether the mode lets a path take an edge, and whether the path must end there."""
    predicate, forward, node, _ = taken
    if mode is Mode.WALK:
        return True, False
    if mode is Mode.TRAIL:
        edge = edge_of(trace.node, predicate, forward, node)
        there: Trace | None = trace
        while there is not None and there.before is not None:
            if edge_of(there.before.node, there.predicate, there.forward, there.node) == edge:
                return False, False
            there = there.before
        return True, False
    if node == start:
        return mode is Mode.SIMPLE, True
    return node != trace.node and all(node != there.node for there in trace.earlier()), False


class Distances:
    """The number of edges to each place from the places where a search begins; -1: out of reach.

    ``found`` is the number of places in reach. The arrays belong to the workspace, which marks these places.
    """

    def __init__(self, graph: Snapshot, product: Product, workspace: Workspace) -> None:
        self._graph = graph
        self._product = product
        self._workspace = workspace
        self.found = 0
        self.distance, self._queue = workspace.marks(product.size)

    def measure(self, begins: Ids, inside: Nodes = EVERYWHERE) -> None:
        """Measure from some nodes; earlier distances are dropped. ``inside`` is as for ``distances``."""
        self._workspace.unmark()
        product = self._product
        places = (product.initial.astype(np.int64)[:, None] * self._graph.nodes + begins[None, :]).ravel()
        stop = self._workspace.stop.flag
        self.found = distances(product.machine, places, inside, self.distance, self._queue, stop)
        if self.found < 0:
            self._workspace.stop.check()
        self._workspace.mark(self.found)

    def measure_pair(self, begin: int, other: Product, end: int, *, every: bool) -> int | None:
        """Measure from one node, only on shortest paths to another, and return their number of edges.

        ``other`` reads the paths from the other node; see ``length_between``.
        """
        self._workspace.unmark()
        length = length_between(other, end, self._product, begin, self._workspace, every=every)
        self.found = self._workspace.marked_places
        return length

    def ended(self, root: int) -> list[int]:
        """Return the nodes where a path from the root may end: the root, then the others, nearest first."""
        places = self._queue[: self.found]
        states = places // self._graph.nodes
        nodes = places[self._product.ends[states] != 0] % self._graph.nodes
        return list(dict.fromkeys([root, *nodes.tolist()]))


def bits(states: int) -> Iterator[int]:
    """Yield the numbers of the bits that are 1.

    >>> list(bits(0b10110))
    [1, 2, 4]
    """
    while states:
        low = states & -states
        yield low.bit_length() - 1
        states ^= low
