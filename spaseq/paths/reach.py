"""The nodes that paths lead to from each of many nodes, by breadth-first search of the product.

Few nodes are searched from one by one. Of many, those that a certain number of edges suffices for; if there
are more, 64 at a time, a bit each, and 512 if these look at enough edges together; and if the batches would
look at the same edges again and again, along the strongly connected components of the product.
"""

from __future__ import annotations

from typing import Final

import numpy as np

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
from spaseq.paths.middle import EVERYWHERE
from spaseq.paths.product import Arrays
from spaseq.paths.workspace import Workspace

#: Sources for each word of a mask.
_BITS: Final = 64

#: Words of a mask: a line of a cache.
_WORDS: Final = 8

#: From so many sources on it is worth to try them together.
_MANY: Final = 16

#: What looks at no more edges than that is done before a search with masks has begun.
_TRIED: Final = 1 << 14

#: An edge costs so many times more in a search with masks.
_MASK_COST: Final = 2

#: So many masks of places there are at most.
_MOST_MASKS: Final = 1 << 27

#: How often finding components looks at each edge, or takes as long as if it did.
_COMPONENT_COST: Final = 4

#: So many sources are searched one by one in one call.
_AT_ONCE: Final = 1 << 12

_UNLIMITED: Final = 1 << 62


class Search:
    """Nodes reached from each of many nodes: ``found[offsets[i]:offsets[i + 1]]`` from ``begins[i]``.

    Only those ``wanted``, unless that is of length 0; through places with ``inside`` not -1, unless that is.
    """

    def __init__(
        self,
        product: Arrays,
        workspace: Workspace,
        begins: Nodes,
        wanted: Flags,
        limit: int | None,
        inside: Nodes = EVERYWHERE,
    ) -> None:
        self._product = product
        self._workspace = workspace
        self._begins = begins
        self._wanted = wanted
        self._inside = inside
        self._limit = limit
        self._done = 0
        self._room = workspace.out
        self.found = self._room[:0]
        self.offsets = np.zeros(len(begins) + 1, dtype=np.int64)

    def run(self) -> None:
        """Fills ``found`` and ``offsets``; stops when there are more than ``limit``."""
        if len(self._begins) >= _MANY:
            self._one_by_one(_TRIED)
            if self._more():
                self._many()
        while self._more():
            self._one_by_one(_UNLIMITED)
        if self._done < len(self._begins):
            self.offsets[self._done + 1 :] = self.offsets[self._done]
        self.found = self._room[: self.offsets[self._done]]
        if self._room is self._workspace.out:  # which the next search writes to
            self.found = self.found.copy()

    def _many(self) -> None:
        """With masks, as long as that pays."""
        work = np.zeros(2, dtype=np.int64)
        words = 1
        while self._more() and work[SINGLE] >= _MASK_COST * work[SHARED]:
            if self._is_large(work):
                self._by_components()
            else:
                self._together(words, work)
                words = self._words()

    def _is_large(self, work: Ids) -> bool:
        """Whether the batches to come look at so many edges that components pay.

        Each batch looks at some of them again and again, as bits come in; to find the components takes about
        as long as to look at all the edges ``_COMPONENT_COST`` times.
        """
        if work[SHARED] == 0:
            return False
        product = self._product
        rows = product.moves[:, 0]
        edges = int((product.pointers[rows, -1] - product.pointers[rows, 0]).sum())
        batches = -(-(len(self._begins) - self._done) // (_BITS * self._words()))
        return batches * int(work[SHARED]) > _COMPONENT_COST * edges

    def _words(self) -> int:
        """How long masks are; shorter where there are very many places."""
        places = self._product.size * max(1, len(self._workspace.known))
        return max(1, min(_WORDS, _MOST_MASKS // places))

    def _more(self) -> bool:
        enough = self._limit is not None and self.offsets[self._done] > self._limit
        return self._done < len(self._begins) and not enough

    def _one_by_one(self, budget: int) -> None:
        product, workspace = self._product, self._workspace
        begins, offsets = self._begins[self._done : self._done + _AT_ONCE], self.offsets[self._done :]
        self._reserve(len(workspace.found), len(workspace.out) if self._limit is None else self._limit + 1)
        stamp = workspace.stamps(product.size, len(begins))
        self._done += one_by_one(
            product.pointers, product.targets, product.leaving, product.moves, product.ends,
            product.initial, product.empty, begins, self._wanted, self._inside, budget, stamp,
            workspace.seen, workspace.found, workspace.queue, offsets, self._room,
        )  # fmt: skip

    def _together(self, words: int, work: Ids) -> None:
        product, workspace = self._product, self._workspace
        workspace.masks(product.size, words)
        end = min(self._done + _BITS * words, len(self._begins))
        found = np.empty(len(workspace.known), dtype=np.int32)
        count = together(
            product.pointers, product.targets, product.leaving, product.moves, product.ends,
            product.initial, product.empty, self._begins, self._done, end, words, self._inside,
            workspace.visited, workspace.pending, np.zeros(words, dtype=np.uint64), workspace.waiting,
            workspace.queue, workspace.touched, workspace.reached, workspace.known, found, work,
        )  # fmt: skip
        self._unpacked(end, words, found, count)

    def _by_components(self) -> None:
        """All sources that are left. What is ``inside`` is not asked: it only saves ways."""
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
        offsets = self.offsets[self._done] + np.concatenate([[0], np.cumsum(counts)])
        masks = np.empty(count, dtype=np.uint64)
        self._reserve(int(offsets[-1] - offsets[0]) + 1, 0)
        unpack(
            words, workspace.reached, workspace.known, found, count, offsets[:-1].copy(), masks, self._room
        )  # fmt: skip
        self.offsets[self._done + 1 : end + 1] = offsets[1 : end - self._done + 1]
        self._done = end

    def _reserve(self, size: int, more: int) -> None:
        """Room for so many nodes after those found; if there is none, for ``more`` beside them.

        Memory that is not written to costs nothing.
        """
        used = int(self.offsets[self._done])
        if used + size > len(self._room):
            expected = used * len(self._begins) // max(1, self._done)
            enough = max(used + size + more, 2 * len(self._room), expected + expected // 8)
            grown = np.empty(enough, dtype=np.int32)
            grown[:used] = self._room[:used]
            self._room = grown
