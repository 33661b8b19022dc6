"""Weights of edges, and the cheapest way to each place of the product."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from spaseq.errors import warn
from spaseq.paths.graph.snapshot import Snapshot
from spaseq.paths.language.transitions import Relation
from spaseq.paths.search._kernel import Ids, Machine, Nodes, point
from spaseq.paths.search._kernel_cheapest import Costs, cheapest
from spaseq.paths.search.product import Product
from spaseq.paths.search.running import Memory, current

#: Bytes of an edge in a weighted search: its target, its cost, an entry of the heap.
_EDGE_BYTES: Final = 28
#: Bytes of a place: its distance, and its number among those found.
_PLACE_BYTES: Final = 16


class Weights:
    """The costs of a graph's edges: ``costs``, in the order of ``graph.edges()``."""

    def __init__(self, graph: Snapshot, given: Any) -> None:
        """Read a mapping of predicates to costs (1 for others), or an array with the cost of each edge.

        Raises ValueError for costs that are not positive and finite, and for an array of another length.
        """
        self._edges = graph.contents.edges
        if isinstance(given, Mapping):
            self.costs = np.ones(len(self._edges))
            for predicate, cost in given.items():
                number = graph.predicate_number(predicate)
                if number is None:
                    warn(f"no edge has the predicate {predicate}")
                else:
                    self.costs[self._edges.begins[number] : self._edges.begins[number + 1]] = cost
        else:
            self.costs = np.asarray(given, dtype=np.float64)
        if self.costs.shape != (len(self._edges),):
            raise ValueError(
                f"weights of shape {self.costs.shape}: the graph has {len(self._edges):,} edges, so it is "
                f"({len(self._edges)},), in the order of graph.edges(), or a mapping of predicates to numbers"
            )
        if not (np.isfinite(self.costs) & (self.costs > 0)).all():
            raise ValueError("weights are positive numbers, so that a shortest path has an end")

    def cost(self, edge: tuple[int, int, int]) -> float:
        """Return the cost of an edge: subject, predicate, object."""
        s, p, o = edge
        subjects = self._edges.s[self._edges.begins[p] : self._edges.begins[p + 1]]
        low, high = np.searchsorted(subjects, np.int32(s)), np.searchsorted(subjects, np.int32(s), "right")
        first = int(self._edges.begins[p] + low)
        objects = self._edges.o[first : first + int(high - low)]
        return float(self.costs[first + np.searchsorted(objects, np.int32(o))])

    def bound(self, graph: Snapshot, product: Product) -> tuple[Machine, Costs]:
        """Return the product with an edge for each edge of the graph, and the costs of these edges."""
        relations = {product.relations.row(t.relation): t.relation for t in product.automaton.transitions}
        pointers = np.zeros((len(relations), graph.nodes + 1), dtype=np.int64)
        targets, costs, at = [np.zeros(0, dtype=np.int32)], [np.zeros(0)], 0
        for i, relation in enumerate(relations.values()):
            begin, end, cost = self._row(graph, product, relation)
            point(begin, 0, len(begin), at, pointers[i])
            targets.append(end)
            costs.append(cost)
            at += len(begin)
        numbers = {row: i for i, row in enumerate(relations)}
        transitions = product.transitions.copy()
        transitions[:, 0] = [numbers[row] for row in transitions[:, 0].tolist()]
        machine = product.machine._replace(
            pointers=pointers, targets=np.concatenate(targets), transitions=transitions
        )
        return machine, np.concatenate(costs)

    def _row(self, graph: Snapshot, product: Product, relation: Relation) -> tuple[Nodes, Nodes, Costs]:
        """Return where the edges of a relation begin, in order, where they end, and their costs."""
        begins = self._edges.begins
        numbers = graph.predicates_of(relation.step)
        ranges = [np.arange(begins[p], begins[p + 1]) for p in numbers]
        places = np.concatenate([np.zeros(0, dtype=np.int64), *ranges])
        begin, end = self._edges.s[places], self._edges.o[places]
        if relation.step.inverse:
            begin, end = end, begin
        passing = product.relations.passing
        passes = passing(relation.before)[begin] & passing(relation.after)[end]
        order = np.argsort(begin[passes], kind="stable")
        return begin[passes][order], end[passes][order], self.costs[places[passes][order]]


class Cheapest:
    """The cost of the cheapest path to each place from where a search begins; -1: out of reach.

    ``found`` is the number of places in reach.
    """

    def __init__(self, graph: Snapshot, product: Product, weights: Weights, memory: Memory) -> None:
        self._nodes = graph.nodes
        self._product = product
        self._machine, self._costs = weights.bound(graph, product)
        places = product.size * graph.nodes
        room = self._room()
        memory.take(_PLACE_BYTES * places + _EDGE_BYTES * room, "the weights of edges")
        self.distance: Costs = np.full(places, -1.0)
        self._places = np.empty(places, dtype=np.int64)
        self._keys, self._heap = np.empty(room), np.empty(room, dtype=np.int64)
        self.found = 0

    def _room(self) -> int:
        """Return how many entries the heap may have: the edges of all transitions, and the first places."""
        sizes = self._machine.pointers[:, -1] - self._machine.pointers[:, 0]
        return int(sizes[self._machine.transitions[:, 0]].sum()) + len(self._machine.initial)

    def measure(self, begins: Ids, _inside: Nodes) -> None:
        """Measure from some nodes, through all places. Distances measured before are forgotten."""
        self.distance[self._places[: self.found]] = -1.0
        stop = current()
        initial = self._machine.initial.astype(np.int64)
        places = (initial[:, None] * self._nodes + begins[None, :]).ravel()
        self.found = cheapest(
            self._machine, self._costs, places, self.distance, self._keys, self._heap, self._places, stop.flag
        )
        if self.found < 0:
            stop.check()

    def ended(self, root: int) -> list[int]:
        """Return the nodes where a path from the root may end: the root, then the others, cheapest first."""
        places = self._places[: self.found]
        nodes = places[self._product.ends[places // self._nodes] != 0] % self._nodes
        return list(dict.fromkeys([root, *nodes.tolist()]))
