"""Walks from topics along the automaton of several expressions, length by length, to a tree of paths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from spaseq.paths.language.modes import Mode
from spaseq.paths.language.transitions import Tests
from spaseq.paths.path import Path
from spaseq.paths.retrieval.frontier import PATH_BYTES, Frontier
from spaseq.paths.retrieval.prefixes import Prefixes
from spaseq.paths.search._kernel import Ids, Nodes
from spaseq.paths.search.running import Memory, current

Flags = npt.NDArray[np.bool_]

#: Bytes of a piece, and of a path that is kept.
_PIECE_BYTES: Final = 64
_COLUMN_BYTES: Final = 32

#: The value of ``Walks.before`` for topics.
_NOTHING: Final = -1


@dataclass(frozen=True, slots=True, eq=False)
class Walks:
    """The tree of paths from some nodes, as columns ``(len(self),)``, shorter paths first.

    The first paths are the topics themselves, without edges. ``before`` is the number of the path without its
    last edge, -1 for topics. ``topic`` is the path's first node, ``node`` its last. ``predicate`` and
    ``inverse`` are its last edge. ``state`` is the state of ``prefixes`` after reading it.

    ``looked`` is the number of edges looked at; ``truncated``: some paths were left out.
    """

    prefixes: Prefixes = field(repr=False)
    before: Ids = field(repr=False)
    topic: Nodes = field(repr=False)
    node: Nodes = field(repr=False)
    predicate: Nodes = field(repr=False)
    inverse: Flags = field(repr=False)
    state: Nodes = field(repr=False)
    looked: int
    truncated: bool

    def __len__(self) -> int:
        return len(self.node)

    def complete(self) -> Ids:
        """Return the numbers of the paths with edges that an expression accepts."""
        accepting = np.array([bool(self.prefixes.accepts(q)) for q in range(len(self.prefixes))])
        return np.flatnonzero(accepting[self.state] & (self.before != _NOTHING))

    def ends(self) -> tuple[Nodes, Nodes]:
        """Return the sorted distinct pairs of a topic and a node where a complete path from it ends."""
        complete = self.complete()
        nodes = self.prefixes.graph.nodes
        pairs = np.sort(self.topic[complete].astype(np.int64) * nodes + self.node[complete])
        pairs = pairs[np.diff(pairs, prepend=_NOTHING) != 0]  # np.unique hashes, which takes twice as long
        return (pairs // nodes).astype(np.int32), (pairs % nodes).astype(np.int32)

    def path(self, number: int) -> Path:
        """Return a path of the tree."""
        nodes, predicates, forward = [int(self.node[number])], list[int](), list[bool]()
        while (before := int(self.before[number])) != _NOTHING:
            predicates.append(int(self.predicate[number]))
            # A loop is the same edge whichever way it is taken.
            loop = self.node[before] == self.node[number]
            forward.append(bool(loop or not self.inverse[number]))
            nodes.append(int(self.node[before]))
            number = before
        return Path(self.prefixes.graph, tuple(nodes[::-1]), tuple(predicates[::-1]), tuple(forward[::-1]))


def walk(
    prefixes: Prefixes,
    topics: Ids,
    mode: Mode = Mode.TRAIL,
    *,
    returning: bool = False,
    most: int | None = None,
    memory: Memory | None = None,
    frontier: Frontier | None = None,
) -> Walks:
    """Return all paths of some expressions from some nodes, with all their prefixes.

    ``mode`` says what a path must not repeat. Paths of plain expressions (see ``Prefixes``) may repeat edges
    and nodes, but do not turn straight back along an edge. Without ``returning``, no path comes back to its
    topic. With WALK, an expression without a bound needs ``most`` if the graph has cycles.

    ``most`` bounds the number of paths, prefixes included. Paths of one length may use half of what is left,
    so that longer paths also get some. If there are more, as many are taken, evenly spread. ``frontier`` may
    leave out more paths, and chooses which. Raises LimitError if the paths take more than ``memory``.
    """
    tree = _Tree(prefixes, topics, memory or prefixes.graph.memory("walking together"), frontier)
    begin, stop = 0, current()
    while begin < tree.size:
        stop.check()
        end = tree.size
        room = None if most is None else (most - (end - len(topics)) + 1) // 2
        tree.extend(begin, end, mode, returning, room)
        begin = end
    return tree.walks()


class _Tree:
    """The columns of ``Walks`` while they grow, one length of paths at a time."""

    def __init__(self, prefixes: Prefixes, topics: Ids, memory: Memory, frontier: Frontier | None) -> None:
        self._prefixes = prefixes
        self._frontier = frontier
        self._memory = memory
        self._relations = prefixes.graph.relations
        none = np.zeros(len(topics), dtype=np.int32)
        begins = topics.astype(np.int32)
        self._columns = (
            np.full(len(topics), _NOTHING, dtype=np.int64), begins, begins, none, none.astype(np.bool_), none
        )  # fmt: skip
        self._depth = 0
        self._looked = 0
        self._truncated = False

    @property
    def size(self) -> int:
        return len(self._columns[0])

    def walks(self) -> Walks:
        return Walks(self._prefixes, *self._columns, self._looked, self._truncated)

    def extend(self, begin: int, end: int, mode: Mode, returning: bool, room: int | None) -> None:
        """Extend the longest paths by one edge in all ways, but look at ``room`` edges at most."""
        before, topic, node, predicate, inverse, state = self._columns
        numbers = np.arange(begin, end)
        if mode is Mode.SIMPLE and self._depth:  # a cycle is not extended
            numbers = numbers[node[begin:end] != topic[begin:end]]
        readings = _Table(self._prefixes, np.unique(state[numbers]).tolist())
        # A piece: the edges that can extend one path by one reading (a row of the table).
        pieces = _PIECE_BYTES * readings.count(state[numbers])
        self._memory.take(pieces, "the ways that paths may go on")
        path, reading = readings.pieces(numbers, state[numbers])
        passing = self._passing(readings.before, reading, node[path])
        path, reading = path[passing], reading[passing]
        low, high = self._rows(readings, reading, node[path])
        most = int((high - low).sum())
        more = PATH_BYTES * (most if room is None else min(most, room))
        self._memory.take(more, "more paths")
        taken, piece = self._choose(low, high, room, readings.target[reading])
        path, reading, reached = path[piece], reading[piece], self._relations.targets[taken]
        allowed = self._passing(readings.after, reading, reached)
        if not returning:
            allowed &= reached != topic[path]
        edge = path, readings.predicate[reading], readings.inverse[reading], reached
        target, within = readings.target[reading], self._allowed(mode, *edge)
        if mode is not Mode.WALK:
            target = np.where(within, target, readings.walked[reading])
            within |= (target >= 0) & ~self._turns_back(*edge)
        allowed &= within
        path, reading, reached, target = path[allowed], reading[allowed], reached[allowed], target[allowed]
        self._columns = (
            np.concatenate([before, path]),
            np.concatenate([topic, topic[path]]),
            np.concatenate([node, reached]),
            np.concatenate([predicate, readings.predicate[reading]]),
            np.concatenate([inverse, readings.inverse[reading]]),
            np.concatenate([state, target]),
        )
        self._depth += 1
        self._memory.give(pieces + more)
        self._memory.take(_COLUMN_BYTES * (self.size - end), f"{self.size:,} paths")

    def _rows(self, readings: _Table, reading: Ids, node: Nodes) -> tuple[Ids, Ids]:
        """Return where the edges of each piece begin and end in ``targets``."""
        rows = [
            self._relations.single(self._prefixes.graph.ox_predicate(p), inverse, self._memory)
            for p, inverse in zip(readings.predicate.tolist(), readings.inverse.tolist(), strict=True)
        ]
        row = np.array(rows, dtype=np.int64)[reading]
        pointers = self._relations.pointers
        return pointers[row, node], pointers[row, node + 1]

    def _choose(self, low: Ids, high: Ids, room: int | None, target: Nodes) -> tuple[Ids, Ids]:
        """Return the edges to take of all pieces, each with its piece."""
        begins = np.concatenate([[0], np.cumsum(high - low)])
        total = int(begins[-1])
        frontier = self._frontier
        best = None if frontier is None else frontier.room(total, self.size)
        if frontier is not None and best is not None and best < total and (room is None or best <= room):
            self._truncated = True
            chosen = frontier.chosen(target, high - low, best)
        elif room is None or total <= room:
            chosen = np.arange(total)
        else:
            self._truncated = True
            chosen = np.arange(room) * total // max(room, 1)
        self._looked += len(chosen)
        if frontier is not None:
            frontier.looked(len(chosen))
        piece = np.searchsorted(begins, chosen, side="right") - 1
        return low[piece] + chosen - begins[piece], piece

    def _passing(self, tests: Sequence[Tests], reading: Ids, nodes: Nodes) -> Flags:
        """Return whether each node passes the tests of its reading."""
        passing = np.ones(len(nodes), dtype=np.bool_)
        for number, wanted in enumerate(tests):
            if wanted:
                here = reading == number
                passing[here] = self._relations.passing(wanted)[nodes[here]]
        return passing

    def _allowed(self, mode: Mode, path: Ids, predicate: Nodes, inverse: Flags, reached: Nodes) -> Flags:
        """Return whether the mode lets each path take an edge to the node reached."""
        allowed = np.ones(len(path), dtype=np.bool_)
        if mode is Mode.WALK:
            return allowed
        before, _, node, predicates, inverses, _ = self._columns
        here = path
        if mode is Mode.TRAIL:
            edge = _edges(node[path], predicate, inverse, reached)
        for depth in range(self._depth, -1, -1):
            if mode is not Mode.TRAIL:
                if depth or mode is Mode.ACYCLIC:
                    allowed &= node[here] != reached
            elif depth:
                earlier = _edges(node[before[here]], predicates[here], inverses[here], node[here])
                allowed &= np.logical_or.reduce([a != b for a, b in zip(edge, earlier, strict=True)])
            here = before[here]
        return allowed

    def _turns_back(self, path: Ids, predicate: Nodes, inverse: Flags, reached: Nodes) -> Flags:
        """Return whether each path would go back along its last edge."""
        before, _, node, predicates, inverses, _ = self._columns
        same = (before[path] != _NOTHING) & (predicates[path] == predicate)
        back: Flags = same & (inverses[path] != inverse) & (node[before[path]] == reached)
        return back


def _edges(node: Nodes, predicate: Nodes, inverse: Flags, reached: Nodes) -> tuple[Nodes, Nodes, Nodes]:
    """Return edges in the direction of the graph: subjects, predicates, objects."""
    return np.where(inverse, reached, node), predicate, np.where(inverse, node, reached)


class _Table:
    """The kinds of edges that some states read (readings), as columns: a row for each state and reading."""

    def __init__(self, prefixes: Prefixes, states: Sequence[int]) -> None:
        rows = [(state, *found) for state in states for found in prefixes.leaving(state)]
        self._begin = np.zeros(len(prefixes), dtype=np.int64)
        self._count = np.zeros(len(prefixes), dtype=np.int64)
        at = 0
        for state in states:
            self._begin[state] = at
            self._count[state] = len(prefixes.leaving(state))
            at += len(prefixes.leaving(state))
        self.predicate = np.array([reading.predicate for _, reading, _ in rows], dtype=np.int32)
        self.inverse = np.array([reading.inverse for _, reading, _ in rows], dtype=np.bool_)
        self.target = np.array([target for _, _, target in rows], dtype=np.int32)
        self.walked = np.array([prefixes.walked(target) for _, _, target in rows], dtype=np.int32)
        self.before = [reading.before for _, reading, _ in rows]
        self.after = [reading.after for _, reading, _ in rows]

    def count(self, states: Nodes) -> int:
        """Return the number of pieces of paths in these states."""
        return int(self._count[states].sum())

    def pieces(self, paths: Ids, states: Nodes) -> tuple[Ids, Ids]:
        """Return pairs of a path and a reading of its state."""
        count = self._count[states]
        within = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
        return np.repeat(paths, count), np.repeat(self._begin[states], count) + within
