"""The edges of a graph as CSR arrays, with a row for each relation, made when a query first needs it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
from pyoxigraph import NamedNode

from spaseq.paths.language.expression import Condition, Step
from spaseq.paths.language.transitions import Relation, Tests
from spaseq.paths.search._kernel import Flags, Ids, Nodes, point, sort_by
from spaseq.paths.search.running import Memory
from spaseq.terms.dictionary import Term

Pointers = npt.NDArray[np.int64]

_POINTER_BYTES: Final = 8


def sort_edges(*keys: tuple[Nodes, int]) -> Ids:
    """Return the order of edges by several keys, first key first; a key is (column, number of values)."""
    order = np.arange(len(keys[0][0]), dtype=np.int64)
    for column, values in reversed(keys):
        result = np.empty_like(order)
        sort_by(column, order, np.zeros(values + 1, dtype=np.int64), result)
        order = result
    return order


@dataclass(frozen=True, slots=True, eq=False)
class Edges:
    """Distinct edges as columns of numbers: ``s``, ``p``, ``o``, sorted by (p, s, o).

    The edges of predicate ``p`` are the rows ``begins[p]`` to ``begins[p + 1]``, exclusive.
    """

    s: Nodes
    p: Nodes
    o: Nodes
    nodes: int
    predicates: int
    begins: Ids

    @classmethod
    def of(cls, s: Nodes, p: Nodes, o: Nodes, nodes: int, predicates: int) -> Edges:
        """Make edges of columns in any order, which may have duplicates."""
        order = sort_edges((p, predicates), (s, nodes), (o, nodes))
        s, p, o = s[order], p[order], o[order]
        new = np.ones(len(s), dtype=np.bool_)
        new[1:] = (s[1:] != s[:-1]) | (p[1:] != p[:-1]) | (o[1:] != o[:-1])
        s, p, o = s[new], p[new], o[new]
        return cls(s, p, o, nodes, predicates, np.searchsorted(p, np.arange(predicates + 1, dtype=p.dtype)))

    def __len__(self) -> int:
        return len(self.s)

    def objects(self, s: int, p: int) -> Nodes:
        """Return the sorted objects of the edges with subject ``s`` and predicate ``p``."""
        low, high = self.begins[p : p + 2].tolist()
        # The same type as the column's: otherwise searchsorted would copy the column.
        wanted, subjects = np.int32(s), self.s[low:high]
        return self.o[low + subjects.searchsorted(wanted) : low + subjects.searchsorted(wanted, "right")]


def both_ways(edges: Edges) -> tuple[Nodes, Nodes]:
    """Return ``heads``, the objects sorted by (p, o, s), and ``targets``: all objects, then the subjects.

    In ``targets``, the objects are in the order of ``edges``, the subjects sorted by (p, o, s).
    """
    # Equal keys stay in the order of the edges, which is that of the subjects.
    backwards = sort_edges((edges.p, edges.predicates), (edges.o, edges.nodes))
    return edges.o[backwards], np.concatenate([edges.o, edges.s[backwards]])


class Relations:
    """CSR arrays: ``pointers[row(relation)]`` and ``targets`` are those of a relation (see ``_kernel``).

    Threads may share it: existing rows never change, and arrays are replaced by longer ones. A row exists
    once ``_rows`` has it, which is the last step of making it. So a row that an exception leaves unfinished
    is overwritten.
    """

    def __init__(
        self,
        edges: Edges,
        ways: tuple[Nodes, Nodes],
        predicate: Callable[[NamedNode], int | None],
        node: Callable[[Term], int | None],
        compare: Callable[[Condition, Nodes], Flags],
    ) -> None:
        """Take the edges both ways (``both_ways``), and functions that read terms.

        ``predicate`` and ``node`` return the numbers of terms, or None; ``compare`` returns which nodes a
        condition with an operator admits as values.
        """
        self._edges = edges
        self._predicate = predicate
        self._node = node
        self._compare = compare
        self._lock = threading.RLock()
        self._heads, self._targets = ways  # by the heads, the backward rows are sorted
        self._own = self._used = len(self._targets)
        self._row_bytes = _POINTER_BYTES * (edges.nodes + 1)
        self._pointers: Pointers = np.empty((4, edges.nodes + 1), dtype=np.int64)
        self._rows: dict[Relation, int] = {}
        self._sizes: dict[int, int] = {}
        self._passing: dict[Condition, Flags] = {}

    @property
    def ways(self) -> tuple[Nodes, Nodes]:
        """The result of ``both_ways`` for the edges."""
        return self._heads, self._targets[: self._own]

    @property
    def added(self) -> int:
        """The number of bytes that rows and tests for queries have added to the edges."""
        targets = self._targets.itemsize * (len(self._targets) - self._own)
        return self._row_bytes * len(self._pointers) + targets + self._edges.nodes * len(self._passing)

    @property
    def pointers(self) -> Pointers:
        """A row of offsets into ``targets`` for each relation used so far; shape (≥ rows, nodes + 1)."""
        return self._pointers

    @property
    def targets(self) -> Nodes:
        """The nodes that edges lead to, row after row."""
        return self._targets

    def row(self, relation: Relation, memory: Memory | None = None) -> int:
        """Return the number of a relation's row; making a new row takes ``memory`` of the query."""
        row = self._rows.get(relation)
        if row is None:
            with self._lock:
                row = self._rows.get(relation)
                if row is None:
                    if memory is not None:
                        memory.take(self._row_bytes, f"the index of {len(self._rows) + 1:,} relations")
                    row = self._rows[relation] = self._add(relation)
        return row

    def single(self, predicate: NamedNode, inverse: bool, memory: Memory | None = None) -> int:
        """Return the number of the row of one predicate's edges."""
        return self.step(Step((predicate,), inverse=inverse), memory)

    def step(self, step: Step, memory: Memory | None = None) -> int:
        """Return the number of the row of a step without tests of nodes."""
        return self.row(Relation(step, frozenset(), frozenset()), memory)

    def size(self, row: int) -> int:
        """Return how many edges a row has."""
        return self._sizes[row]

    def sources(self, row: int) -> Flags:
        """Return a flag for each node: whether an edge of the row leaves it."""
        flags: Flags = self._pointers[row, 1:] > self._pointers[row, :-1]
        return flags

    def begins(self, row: int) -> Ids:
        """Return the sorted nodes that edges of the row leave."""
        low, high = int(self._pointers[row, 0]), int(self._pointers[row, -1])
        edges = len(self._edges)
        if high > 2 * edges:  # added rows have no column of sources
            return np.flatnonzero(self.sources(row))
        nodes = self._edges.s[low:high] if low < edges else self._heads[low - edges : high - edges]
        new = np.ones(len(nodes), dtype=np.bool_)
        np.not_equal(nodes[1:], nodes[:-1], out=new[1:])
        return nodes[new].astype(np.int64)

    def ends(self, row: int) -> Nodes:
        """Return the nodes that edges of the row lead to, with duplicates."""
        return self._targets[self._pointers[row, 0] : self._pointers[row, -1]]

    def passing(self, tests: Tests) -> Flags:
        """Return a flag for each node: whether it passes all tests."""
        flags = np.ones(self._edges.nodes, dtype=np.bool_)
        for test in tests:
            for condition in test.conditions:
                flags &= self._condition(condition)
        return flags

    def _condition(self, condition: Condition) -> Flags:
        flags = self._passing.get(condition)
        if flags is None:
            step = Step((condition.predicate,), inverse=condition.inverse)
            flags = np.zeros(self._edges.nodes, dtype=np.bool_)
            if condition.value is None:
                flags = self.sources(self.step(step))
            elif condition.operator:
                pointers = self._pointers[self.step(step)]
                others = self._targets[pointers[0] : pointers[-1]]
                values, place = np.unique(others, return_inverse=True)
                nodes = np.repeat(np.arange(self._edges.nodes), np.diff(pointers))
                flags[nodes[self._compare(condition, values)[place]]] = True
            elif (value := self._node(condition.value)) is not None:
                back = Step(step.predicates, inverse=not step.inverse)
                row = self.step(back)
                flags[self._targets[self._pointers[row, value] : self._pointers[row, value + 1]]] = True
            self._passing[condition] = flags
        return flags

    # --- making rows

    def _add(self, relation: Relation) -> int:
        if relation.before or relation.after:
            pointers = self._filtered(relation)
        elif relation.step.negated:
            pointers = self._all_but(relation.step)
        else:
            pointers = self._single(relation.step)
        row = len(self._rows)
        while row >= len(self._pointers):
            grown = np.empty((2 * len(self._pointers), self._pointers.shape[1]), dtype=np.int64)
            grown[: len(self._pointers)] = self._pointers
            self._pointers = grown
        self._pointers[row] = pointers
        self._sizes[row] = int(pointers[-1] - pointers[0])
        return row

    def _single(self, step: Step) -> Pointers:
        """Return the pointers of one predicate; ``targets`` has its edges in both directions."""
        pointers = np.zeros(self._edges.nodes + 1, dtype=np.int64)
        number = self._predicate(step.predicates[0])
        if number is None:
            return pointers
        begin, end = self._edges.begins[number : number + 2].tolist()
        if step.inverse:
            point(self._heads, begin, end, len(self._edges) + begin, pointers)
        else:
            point(self._edges.s, begin, end, begin, pointers)
        return pointers

    def _all_but(self, step: Step) -> Pointers:
        """Add the edges of any predicate but those of a step, without duplicates; return the pointers."""
        excluded = [number for p in step.predicates if (number := self._predicate(p)) is not None]
        taken = ~np.isin(self._edges.p, excluded)
        source, target = self._edges.s[taken], self._edges.o[taken]
        if step.inverse:
            source, target = target, source
        order = sort_edges((source, self._edges.nodes), (target, self._edges.nodes))
        source, target = source[order], target[order]
        new = np.ones(len(source), dtype=np.bool_)
        new[1:] = (source[1:] != source[:-1]) | (target[1:] != target[:-1])
        return self._extend(source[new], target[new])

    def _filtered(self, relation: Relation) -> Pointers:
        """Add the edges of the step between nodes that pass the tests; return the pointers."""
        row = self.step(relation.step)
        pointers = self._pointers[row]
        source = np.repeat(np.arange(self._edges.nodes, dtype=np.int32), np.diff(pointers))
        target = self._targets[pointers[0] : pointers[-1]]
        taken = self.passing(relation.before)[source] & self.passing(relation.after)[target]
        return self._extend(source[taken], target[taken])

    def _extend(self, source: Nodes, target: Nodes) -> Pointers:
        """Add edges, which are sorted by source, to ``targets``; return their pointers."""
        begin = self._used
        end = begin + len(target)
        if end > len(self._targets):
            grown = np.empty(2 * end, dtype=np.int32)
            grown[:begin] = self._targets[:begin]
            self._targets = grown
        self._targets[begin:end] = target
        self._used = end
        pointers = np.zeros(self._edges.nodes + 1, dtype=np.int64)
        point(source, 0, len(source), begin, pointers)
        return pointers
