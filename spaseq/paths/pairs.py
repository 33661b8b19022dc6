"""Which nodes a path joins: pairs of endpoints, by breadth-first search of the product.

The pairs are distinct, as under SPARQL's DISTINCT, however many paths join them (SPARQL itself gives a bag
for ``/`` and ``|``). Where nothing repeats but ``?``, ``*`` and bounds from 0, a path may have no edge: it
joins a given source or target with itself, also one that is no node of the graph, and where neither is
given, every node (SPARQL 1.1, section 9.3).

The search begins at the end that is given; if both or none are, at the one whose first moves look at fewer
edges. Many sources are searched 512 at a time, a bit each, if the first 64 of them look at enough edges
together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from spaseq.interop import RdflibTerm, to_rdflib
from spaseq.paths._kernel import (
    SHARED,
    SINGLE,
    Flags,
    Ids,
    Nodes,
    count_bits,
    one_by_one,
    together,
    unpack,
)
from spaseq.paths._kernel_components import components, sweep
from spaseq.paths.expression import Expression
from spaseq.paths.product import Arrays, Product, Workspace
from spaseq.terms import Term

if TYPE_CHECKING:
    from spaseq.paths.knowledge import KnowledgeGraph

#: Sources for each word of a mask.
_BITS: Final = 64

#: Words of a mask: a line of a cache.
_WORDS: Final = 8

#: From so many sources on it is worth to try them together.
_MANY: Final = 16

#: An edge costs so many times more in a search with masks.
_MASK_COST: Final = 2

#: So many masks of places there are at most.
_MOST_MASKS: Final = 1 << 27

#: How often finding components looks at each edge, or takes as long as if it did.
_COMPONENT_COST: Final = 4

#: So many sources are searched one by one in one call.
_AT_ONCE: Final = 1 << 12

#: Room for so many answers is made at once, at least.
_ROOM: Final = 1 << 16

_NOTHING: Final[Flags] = np.zeros(0, dtype=np.bool_)


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Distinct pairs of a source and a target; iterating gives them as rdflib terms.

    As numbers they are grouped by the end where the search began: ``others[offsets[i]:offsets[i + 1]]``
    belong to ``begins[i]``; these are the targets if ``backwards``, else the sources. Numbers from
    ``graph.nodes`` on are ``strangers``: terms that were given and are no nodes of the graph.
    ``truncated``: there are more than ``limit``.
    """

    graph: KnowledgeGraph = field(repr=False)
    begins: Ids = field(repr=False)
    offsets: Ids = field(repr=False)
    others: Nodes = field(repr=False)
    backwards: bool
    truncated: bool
    strangers: tuple[Term, ...]

    def __len__(self) -> int:
        return len(self.others)

    def __iter__(self) -> Iterator[tuple[RdflibTerm, RdflibTerm]]:
        known: dict[int, RdflibTerm] = {}
        for i, begin in enumerate(self.begins.tolist()):
            row = self.others[self.offsets[i] : self.offsets[i + 1]].tolist()
            if row:
                one = self.term(begin)
                for other in row:
                    end = known.get(other)
                    if end is None:
                        end = known[other] = self.term(other)
                    yield (end, one) if self.backwards else (one, end)

    @property
    def arrays(self) -> tuple[Nodes, Nodes]:
        """The sources and the targets as numbers, each ``(len(self),)``."""
        begins = np.repeat(self.begins.astype(np.int32), np.diff(self.offsets))
        return (self.others, begins) if self.backwards else (begins, self.others)

    def term(self, number: int) -> RdflibTerm:
        """The term of a number in the arrays."""
        if number >= self.graph.nodes:
            return to_rdflib(self.strangers[number - self.graph.nodes])
        return self.graph.term(number)


@dataclass(frozen=True, slots=True, eq=False)
class PairsPlan:
    """From where to search for what: the nodes to begin at, and those wanted at the other end (all if empty).

    ``strangers`` are terms that are no nodes of the graph, and joined with themselves.
    """

    product: Product
    begins: Ids
    wanted: Flags
    backwards: bool
    strangers: tuple[Term, ...]


def plan_pairs(graph: KnowledgeGraph, expression: str | Expression, sources: Any, targets: Any) -> PairsPlan:
    """How to find the pairs of an expression; see ``find_pairs``."""
    forward = graph.product(expression)
    given = None if sources is None else graph.numbers(sources)
    wanted = None if targets is None else graph.numbers(targets)
    strangers = forward.strangers(given, wanted)
    source_ids = None if given is None else given[0]
    target_ids = None if wanted is None else wanted[0]
    backwards = _from_the_end(graph, expression, forward, source_ids, target_ids)
    product = graph.product(expression, backwards=True) if backwards else forward
    begins, ends = (target_ids, source_ids) if backwards else (source_ids, target_ids)
    if begins is None:
        begins = product.candidates()
    flags = graph.flags(ends)
    return PairsPlan(product, begins, _NOTHING if flags is None else flags, backwards, strangers)


def find_pairs(
    graph: KnowledgeGraph, expression: str | Expression, sources: Any, targets: Any, limit: int | None
) -> Pairs:
    """The distinct pairs that a path of the expression joins, at most ``limit`` of them.

    ``sources`` and ``targets`` are terms, one or several, or None for all. Raises QuerySyntaxError and
    QueryMeaningError with the place in the expression.
    """
    plan = plan_pairs(graph, expression, sources, targets)
    begins, backwards, strangers = plan.begins, plan.backwards, plan.strangers
    workspace = graph.take_workspace()
    try:
        search = Search(plan.product.arrays(), workspace, begins.astype(np.int32), plan.wanted, limit)
        search.run()
    finally:
        graph.give_workspace(workspace)
    alone = np.arange(graph.nodes, graph.nodes + len(strangers), dtype=np.int64)
    offsets = np.concatenate([search.offsets, search.offsets[-1] + 1 + np.arange(len(strangers))])
    others = np.concatenate([search.found, alone.astype(np.int32)]) if strangers else search.found
    truncated = limit is not None and len(others) > limit
    if truncated:
        others, offsets = others[:limit], np.minimum(offsets, limit or 0)
    begins = np.concatenate([begins, alone])
    return Pairs(graph, begins, offsets, others, backwards, truncated, strangers)


def _from_the_end(
    graph: KnowledgeGraph,
    expression: str | Expression,
    forward: Product,
    sources: Ids | None,
    targets: Ids | None,
) -> bool:
    """Whether to search backwards."""
    if (sources is None) != (targets is None):
        return sources is None
    backward = graph.product(expression, backwards=True)
    ahead = forward.first_edges(forward.candidates() if sources is None else sources)
    behind = backward.first_edges(backward.candidates() if targets is None else targets)
    return behind < ahead


class Search:
    """Nodes reached from each of many nodes: ``found[offsets[i]:offsets[i + 1]]`` from ``begins[i]``."""

    def __init__(
        self, product: Arrays, workspace: Workspace, begins: Nodes, wanted: Flags, limit: int | None
    ) -> None:
        self._product = product
        self._workspace = workspace
        self._begins = begins
        self._wanted = wanted
        self._limit = limit
        self._done = 0
        self._room: Nodes = np.empty(0, dtype=np.int32)
        self.offsets = np.zeros(len(begins) + 1, dtype=np.int64)

    @property
    def found(self) -> Nodes:
        """What was found so far."""
        return self._room[: self.offsets[self._done]]

    def run(self) -> None:
        """Fills ``found`` and ``offsets``; stops when there are more than ``limit``."""
        if len(self._begins) >= _MANY:
            work = np.zeros(2, dtype=np.int64)
            words = 1
            while self._more() and work[SINGLE] >= _MASK_COST * work[SHARED]:
                if self._is_large(work):
                    self._by_components()
                else:
                    self._together(words, work)
                    words = self._words()
        while self._more():
            self._one_by_one()
        self.offsets[self._done + 1 :] = self.offsets[self._done]

    def _is_large(self, work: Ids) -> bool:
        """Whether the batches to come look at so many edges that components pay.

        Each batch looks at some of them again and again, as bits come in; to find the components takes about
        as long as to look at all the edges ``_COMPONENT_COST`` times.
        """
        product = self._product
        rows = product.moves[:, 0]
        edges = int((product.pointers[rows, -1] - product.pointers[rows, 0]).sum())
        batches = -(-(len(self._begins) - self._done) // (_BITS * self._words()))
        return self._done > 0 and batches * int(work[SHARED]) > _COMPONENT_COST * edges

    def _words(self) -> int:
        """How long masks are; shorter where there are very many places."""
        places = self._product.size * max(1, len(self._workspace.known))
        return max(1, min(_WORDS, _MOST_MASKS // places))

    def _more(self) -> bool:
        enough = self._limit is not None and self.offsets[self._done] > self._limit
        return self._done < len(self._begins) and not enough

    def _one_by_one(self) -> None:
        product, workspace = self._product, self._workspace
        nodes = len(workspace.found)
        room = max(nodes, _ROOM) if self._limit is None else self._limit + 1
        begins = self._begins[self._done : self._done + _AT_ONCE]
        left = len(begins)
        stamp = workspace.stamps(product.size, left)
        offsets = np.zeros(left + 1, dtype=np.int64)
        done = one_by_one(
            product.pointers, product.targets, product.leaving, product.moves, product.ends,
            product.initial, product.empty, begins, 0, self._wanted, stamp, workspace.seen,
            workspace.found, workspace.queue, offsets, self._free(nodes + min(room, nodes * left)),
        )  # fmt: skip
        self._advance(done, offsets)

    def _together(self, words: int, work: Ids) -> None:
        product, workspace = self._product, self._workspace
        workspace.masks(product.size, words)
        end = min(self._done + _BITS * words, len(self._begins))
        found = np.empty(len(workspace.known), dtype=np.int32)
        count = together(
            product.pointers, product.targets, product.leaving, product.moves, product.ends,
            product.initial, product.empty, self._begins, self._done, end, words,
            workspace.visited, workspace.pending, np.zeros(words, dtype=np.uint64), workspace.waiting,
            workspace.queue, workspace.touched, workspace.reached, workspace.known, found, work,
        )  # fmt: skip
        self._unpacked(end, words, found, count)

    def _by_components(self) -> None:
        """All sources that are left."""
        product, workspace, words = self._product, self._workspace, self._words()
        workspace.masks(product.size, words)
        places = product.size * len(workspace.known)
        component, low, index, move = np.zeros((4, places), dtype=np.int32)
        stack, path, edge, members, begins = np.empty((5, places + 1), dtype=np.int64)
        count = components(
            product.pointers, product.targets, product.leaving, product.moves, product.initial,
            self._begins[self._done :], index, low, component, stack, path, move, edge, members, begins,
        )  # fmt: skip
        total, found = np.zeros(words, dtype=np.uint64), np.empty(len(workspace.known), dtype=np.int32)
        while self._more():
            end = min(self._done + _BITS * words, len(self._begins))
            filled = sweep(
                product.pointers, product.targets, product.leaving, product.moves, product.ends,
                product.initial, product.empty, self._begins, self._done, end, words,
                component, members, begins, count, workspace.visited, workspace.pending, total,
                workspace.reached, workspace.known, found,
            )  # fmt: skip
            self._unpacked(end, words, found, filled)

    def _unpacked(self, end: int, words: int, found: Nodes, count: int) -> None:
        """Take what a search with masks has found for the sources up to ``end``."""
        workspace = self._workspace
        counts = np.zeros(64 * words, dtype=np.int64)
        count_bits(words, workspace.reached, found, count, self._wanted, counts)
        offsets = np.concatenate([[0], np.cumsum(counts)])
        masks, out = np.empty(count, dtype=np.uint64), self._free(int(offsets[-1]) + 1)
        unpack(words, workspace.reached, workspace.known, found, count, offsets[:-1].copy(), masks, out)
        self._advance(end - self._done, offsets)

    def _advance(self, done: int, offsets: npt.NDArray[np.int64]) -> None:
        """So many more sources are searched."""
        start = self.offsets[self._done]
        self.offsets[self._done + 1 : self._done + done + 1] = start + offsets[1 : done + 1]
        self._done += done

    def _free(self, size: int) -> Nodes:
        """Room for so many nodes after those found; memory that is not written to costs nothing."""
        used = int(self.offsets[self._done])
        if used + size > len(self._room):
            expected = used * len(self._begins) // max(1, self._done)
            grown = np.empty(max(used + size, 2 * len(self._room), expected + expected // 8), dtype=np.int32)
            grown[:used] = self._room[:used]
            self._room = grown
        return self._room[used:]
