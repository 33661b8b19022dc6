"""An automaton bound to a graph, as the arrays that the kernels take; and whether a path joins one pair."""

from __future__ import annotations

from functools import cached_property
from itertools import accumulate, chain
from typing import Any, Final

import numpy as np

from spaseq.paths.graph.relations import Pointers, Relations
from spaseq.paths.language.transitions import Automaton
from spaseq.paths.search._kernel import STOPPED, Flags, Ids, Machine, Nodes, count_edges
from spaseq.paths.search._kernel_pair import AHEAD, BEHIND, MET, Side, meet
from spaseq.paths.search.cut import Cut, cheapest_cut
from spaseq.paths.search.running import Memory
from spaseq.paths.search.workspace import Workspace
from spaseq.terms.dictionary import Term

#: Sources or targets: numbers of nodes, and terms that are no nodes of the graph.
Given = tuple[Ids, tuple[Term, ...]]

#: If first transitions have at most this many edges, the nodes where they begin are cached as a list.
_FEW: Final = 1 << 12

_NO_NODES: Final[Ids] = np.zeros(0, dtype=np.int64)


class Product:
    """The product of a graph with an automaton; transitions without an edge in the graph are left out.

    ``leaving``, ``transitions``, ``ends``, ``initial`` and ``empty`` are those of ``Machine``. ``anywhere``:
    a path without edges is a result at any node. ``readers`` is a cache of ``Expansion``, by sets of states.
    """

    def __init__(self, relations: Relations, found: Automaton, nodes: int, memory: Memory) -> None:
        self.relations = relations
        rows = [relations.row(transition.relation, memory) for transition in found.transitions]
        if not all(map(relations.size, rows)):
            found = found.only(
                transition
                for transition, row in zip(found.transitions, rows, strict=True)
                if relations.size(row)
            )
            rows = [relations.row(transition.relation) for transition in found.transitions]
        self.automaton = found
        self.size = max(1, found.size)
        by_source: list[list[tuple[int, int]]] = [[] for _ in range(self.size)]
        for transition, row in zip(found.transitions, rows, strict=True):
            by_source[transition.source].append((row, transition.target))
        self.leaving = np.array([0, *accumulate(map(len, by_source))], dtype=np.int32)
        self.transitions = np.array([*chain.from_iterable(by_source)], dtype=np.int32).reshape(-1, 2)
        self.ends = np.array([state in found.accepting for state in range(self.size)], dtype=np.uint8)
        self.initial = np.array(found.initial, dtype=np.int32)
        self.anywhere = frozenset() in found.empty
        self.empty: Flags = np.zeros(nodes if found.empty else 0, dtype=np.bool_)
        for tests in found.empty:
            self.empty |= relations.passing(tests)
        self.readers: dict[int, tuple[Any, ...]] = {}
        self._machine = self._bundle(relations.pointers, relations.targets, self.transitions)

    @property
    def machine(self) -> Machine:
        """The arrays that kernels take."""
        if self._machine.pointers is not self.pointers or self._machine.targets is not self.targets:
            self._machine = self._bundle(self.pointers, self.targets, self.transitions)
        return self._machine

    def alone(self) -> Machine:
        """Return copies of the arrays, with the rows of this product and no others."""
        pointers, targets, transitions = self.pointers, self.targets, self.transitions.copy()
        rows = np.unique(transitions[:, 0])
        transitions[:, 0] = np.searchsorted(rows, transitions[:, 0])
        parts = [targets[pointers[row, 0] : pointers[row, -1]] for row in rows]
        begins = np.cumsum([0, *map(len, parts)])[:-1]
        pointers = pointers[rows] - pointers[rows, :1] + begins[:, None]
        return self._bundle(pointers, np.concatenate([*parts, np.zeros(0, dtype=np.int32)]), transitions)

    def _bundle(self, pointers: Pointers, targets: Nodes, transitions: Nodes) -> Machine:
        return Machine(pointers, targets, self.leaving, transitions, self.ends, self.initial, self.empty)

    @property
    def pointers(self) -> Pointers:
        """The pointers of all CSR rows."""
        return self.relations.pointers

    @property
    def targets(self) -> Nodes:
        """The targets of all CSR rows."""
        return self.relations.targets

    @cached_property
    def starting(self) -> Ids:
        """The rows of the first transitions."""
        rows = [
            self.transitions[self.leaving[q] : self.leaving[q + 1], 0].tolist() for q in self.initial.tolist()
        ]
        return np.array(list(dict.fromkeys(row for found in rows for row in found)), dtype=np.int64)

    @cached_property
    def all_first_edges(self) -> int:
        """The number of edges that the first transitions look at, from all nodes."""
        return sum(map(self.relations.size, self.starting.tolist()))

    @cached_property
    def cut(self) -> Cut | None:
        """The cheapest cut: every path with edges takes exactly one of its transitions."""
        states = np.repeat(np.arange(self.size), np.diff(self.leaving)).tolist()
        transitions = [
            (state, row, reached)
            for state, (row, reached) in zip(states, self.transitions.tolist(), strict=True)
        ]
        starts, ends = self.automaton.initial, self.automaton.accepting
        return cheapest_cut(self.size, transitions, self.relations.size, starts, ends)

    @cached_property
    def _few_candidates(self) -> Ids:
        found = [self.relations.begins(row) for row in self.starting.tolist()]
        return found[0] if len(found) == 1 else np.unique(np.concatenate([_NO_NODES, *found]))

    def candidates(self) -> Ids:
        """Return the sorted nodes where a result can begin."""
        nodes = self.pointers.shape[1] - 1
        if not len(self.empty) and self.all_first_edges <= min(_FEW, nodes):
            return self._few_candidates
        flags = self.empty.copy() if len(self.empty) else np.zeros(nodes, dtype=np.bool_)
        for row in self.starting.tolist():
            flags |= self.relations.sources(row)
        return np.flatnonzero(flags)

    def strangers(self, given: Given | None, wanted: Given | None) -> tuple[Term, ...]:
        """Return the terms that are not nodes of the graph, but are joined with themselves."""
        if not self.anywhere:
            return ()
        if given is None or wanted is None:
            side = given if wanted is None else wanted
            return () if side is None else side[1]
        return tuple(term for term in given[1] if term in wanted[1])

    def first_edges(self, nodes: Ids | None) -> int:
        """Return how many edges the first transitions look at from ``nodes``, or from all nodes (None)."""
        if nodes is None:
            return self.all_first_edges
        return count_edges(self.pointers, self.starting, nodes)


def length_between(
    ahead: Product, start: int, behind: Product, end: int, workspace: Workspace, *, every: bool = False
) -> int | None:
    """Return the number of edges, at least 1, of the shortest paths between two nodes; None without one.

    ``ahead`` and ``behind`` read the same paths, from ``start`` and from ``end``. Until the workspace is
    unmarked, its ``inside`` has the distances from ``end`` of the places on one shortest path or, with
    ``every``, on all of them.
    """
    nodes = ahead.pointers.shape[1] - 1
    distance, marked = workspace.marks(ahead.size)
    near, queue = workspace.ends(ahead.size)
    counts = np.zeros(3, dtype=np.int64)
    counts[AHEAD], counts[BEHIND] = len(ahead.initial), len(behind.initial)
    queue[: counts[AHEAD]] = ahead.initial.astype(np.int64) * nodes + start
    marked[: counts[BEHIND]] = behind.initial.astype(np.int64) * nodes + end
    length = meet(
        ahead.pointers, ahead.targets,
        Side(ahead.leaving, ahead.transitions, near, queue),
        Side(behind.leaving, behind.transitions, distance, marked),
        every, counts, workspace.stop.flag,
    )  # fmt: skip
    if length == STOPPED:
        workspace.stop.check()
    workspace.mark(int(counts[BEHIND]))
    return length if counts[MET] else None
