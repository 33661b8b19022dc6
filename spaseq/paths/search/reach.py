"""The nodes that paths lead to from each of many nodes, by breadth-first search of the product.

A few nodes are searched from one by one. From many nodes, the search also begins one by one, up to a number
of edges. It then goes on from up to 512 nodes at a time, with a bit mask, as long as they share enough edges.
If the batches would look at the same edges many times, one sweep over the strongly connected components of
the product searches from all nodes left.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Final, NamedTuple

import numpy as np

from spaseq.errors import LimitError
from spaseq.paths.search._kernel import (
    SHARED,
    SINGLE,
    Flags,
    Ids,
    Machine,
    Nodes,
    Room,
    SearchBounds,
    count_bits,
    one_by_one,
    together,
    unpack,
)
from spaseq.paths.search._kernel_components import Components, Tarjan, components, sweep
from spaseq.paths.search.rare_labels import EVERYWHERE
from spaseq.paths.search.workspace import Borrowed, Workspace

_WIDTH: Final = 64

#: Sources for each word of a mask.
_BITS: Final = _WIDTH

#: The most words of a mask: a cache line.
_WORDS: Final = 8

#: From this many sources on, masks are tried.
_MANY: Final = 16

#: Edges that are searched one by one before masks are tried.
_TRIED: Final = 1 << 14

#: An edge costs this many times more in a search with masks.
_MASK_COST: Final = 2

#: A search in parts yields a part once this many nodes are found.
_PART: Final = 1 << 16

#: Each part may be this many times larger than the one before.
_MORE: Final = 16

#: Bytes for each place that finding components takes.
_COMPONENT_BYTES: Final = 56

_NODE_BYTES: Final = 4

#: Finding components takes about as long as looking at each edge this many times.
_COMPONENT_COST: Final = 4

#: Threads of one search, at most: each has a workspace of its own.
_MOST_THREADS: Final = 8

#: Edges that a batch of 64 nodes looks at, from which on threads pay.
_WORTH_THREADS: Final = 1 << 16

#: Edges that the nodes left look at one by one, from which on threads pay: some 10 ms.
_WORTH_APART: Final = 1 << 18

#: One call searches from at most this many sources one by one.
_AT_ONCE: Final = 1 << 12

_UNLIMITED: Final = 1 << 62


class Part(NamedTuple):
    """Some results of a search: ``found[offsets[i]:offsets[i + 1]]`` are reached from ``begins[i]``."""

    begins: Nodes
    offsets: Ids
    found: Nodes


class Search:
    """A search for the nodes reached from each of many nodes, all at once or part by part.

    If ``wanted`` is not of length 0, only flagged nodes are results. If ``inside`` is not of length 0, only
    places where it is not -1 are searched.
    """

    def __init__(
        self,
        machine: Machine,
        workspace: Workspace,
        begins: Nodes,
        wanted: Flags,
        inside: Nodes = EVERYWHERE,
        borrow: Callable[[], Borrowed] | None = None,
    ) -> None:
        """Prepare a search; ``borrow`` returns a workspace for a thread. Without it, one thread searches."""
        self._borrow = borrow
        self._machine = machine
        self._workspace = workspace
        self._begins = begins
        self._wanted = wanted
        self._inside = inside
        self._limit: int | None = None
        self._in_parts = False
        self._apart = False
        self._each = 0  # edges that a node looks at alone, as seen by the search with masks
        self._first = 0
        self._done = 0
        self._room = workspace.out
        self._offsets = np.zeros(len(begins) + 1, dtype=np.int64)

    def run(self, limit: int | None = None) -> Part:
        """Return all results; with a ``limit``, the search may end once there are more results than that."""
        self._limit = limit
        for _ in self._steps():
            pass
        if self._done < len(self._begins):
            self._offsets[self._done + 1 :] = self._offsets[self._done]
        found = self._room[: self._offsets[self._done]]
        if self._room is self._workspace.out:  # which the next search writes to
            found = found.copy()
        return Part(self._begins, self._offsets, found)

    def parts(self) -> Iterator[Part]:
        """Yield all results as they are found; memory holds only some 2^16 of them at a time.

        If a batch of searches finds more, the nodes where it begins are in several parts.
        """
        self._in_parts = True
        enough = 1  # the first ones come at once
        for _ in self._steps():
            if self._apart or self._offsets[self._done] >= enough:
                enough = min(_PART, _MORE * enough)
                yield from self._taken()
        yield from self._taken()

    def _taken(self) -> Iterator[Part]:
        """Yield the results since the last part, if there are any."""
        first, done = self._first, self._done
        used = int(self._offsets[done])
        self._first = done
        if used:
            offsets = self._offsets[first : done + 1].copy()
            self._offsets[done] = 0
            yield Part(self._begins[first:done], offsets, self._room[:used].copy())

    def _steps(self) -> Iterator[None]:
        """Search from some nodes at a time. After each step, the results may be taken away."""
        if len(self._begins) >= _MANY:
            self._one_by_one(_TRIED)
            yield
            yield from self._many()
        edges = self._each * (len(self._begins) - self._done)
        if edges > _WORTH_APART and self._more() and self._in_threads(masks=False):
            yield
        while self._more():
            self._one_by_one(_UNLIMITED)
            yield

    def _many(self) -> Iterator[None]:
        """Search with masks, as long as that pays."""
        work, begin = np.zeros(2, dtype=np.int64), self._done
        words = min(1, self._words())
        while words and self._more() and work[SINGLE] >= _MASK_COST * work[SHARED]:
            if self._is_large(work):
                yield from self._by_components()
            elif work[SHARED] > _WORTH_THREADS and self._in_threads(masks=True):
                yield
            else:
                yield from self._together(words, work)
                words = self._words()
        self._each = int(work[SINGLE]) // max(1, self._done - begin)

    def _is_large(self, work: Ids) -> bool:
        """Return whether the remaining batches look at so many edges that finding components pays.

        Each batch looks at some edges many times, as bits arrive. Finding the components takes about as long
        as looking at all edges ``_COMPONENT_COST`` times.
        """
        machine = self._machine
        if work[SHARED] == 0 or self._component_bytes() > self._workspace.memory.left:
            return False
        rows = machine.transitions[:, 0]
        edges = int((machine.pointers[rows, -1] - machine.pointers[rows, 0]).sum())
        batches = -(-(len(self._begins) - self._done) // (_BITS * max(1, self._words())))
        return batches * int(work[SHARED]) > _COMPONENT_COST * edges

    def _component_bytes(self) -> int:
        return _COMPONENT_BYTES * self._machine.size * len(self._workspace.known)

    def _words(self) -> int:
        """Return the number of words of masks: fewer for very many places, 0 for too many."""
        return self._workspace.words(self._machine.size, _WORDS)

    def _more(self) -> bool:
        enough = self._limit is not None and self._offsets[self._done] > self._limit
        return self._done < len(self._begins) and not enough

    def _one_by_one(self, budget: int) -> None:
        machine, workspace = self._machine, self._workspace
        begins, offsets = self._begins[self._done : self._done + _AT_ONCE], self._offsets[self._done :]
        self._reserve(len(workspace.found))
        most = _UNLIMITED if self._limit is None else self._limit
        bounds = SearchBounds(budget, most, workspace.stamps(machine.size, len(begins)))
        room = Room(workspace.seen, workspace.found, workspace.queue, workspace.stop.flag)
        done = one_by_one(machine, begins, self._wanted, self._inside, bounds, room, offsets, self._room)
        if done < 0:
            workspace.stop.check()
        self._done += done

    def _together(self, words: int, work: Ids) -> Iterator[None]:
        machine, workspace = self._machine, self._workspace
        room = workspace.masks(machine.size, words)
        end = min(self._done + _BITS * words, len(self._begins))
        found = np.empty(len(workspace.known), dtype=np.int32)
        workspace.settled = False
        count = together(machine, self._begins[self._done : end], self._inside, room, found, work)
        if count < 0:
            workspace.stop.check()
        yield from self._unpacked(end, words, found[:count])

    def _by_components(self) -> Iterator[None]:
        """Search from all sources that are left. ``inside`` is ignored, because it only saves work."""
        machine, workspace, words = self._machine, self._workspace, max(1, self._words())
        workspace.memory.take(self._component_bytes(), "the components of the graph")
        room = workspace.masks(machine.size, words)
        places = machine.size * len(workspace.known)
        component, low, index, transition = np.zeros((4, places), dtype=np.int32)
        stack, path, edge, members, begins = np.empty((5, places + 1), dtype=np.int64)
        within, tarjan = (
            Components(component, members, begins),
            Tarjan(index, low, stack, path, transition, edge),
        )
        count = components(machine, self._begins[self._done :], tarjan, within, workspace.stop.flag)
        if count < 0:
            workspace.stop.check()
        found = np.empty(len(workspace.known), dtype=np.int32)
        while self._more():
            end = min(self._done + _BITS * words, len(self._begins))
            workspace.settled = False
            filled = sweep(machine, self._begins[self._done : end], within, count, room, found)
            if filled < 0:
                workspace.stop.check()
            yield from self._unpacked(end, words, found[:filled])
        workspace.memory.give(self._component_bytes())

    def _unpacked(self, end: int, words: int, found: Nodes) -> Iterator[None]:
        """Unpack the results of a search with masks for the sources up to ``end``."""
        counts = self._counted(words, found)
        if not self._in_parts or counts.sum() <= _PART:
            self._unpack(end, words, found, counts)
            self._workspace.settled = True
            yield
            return
        self._apart = True
        yield  # what was found before
        begin, size = self._done, max(1, _PART // (_BITS * words))
        for low in range(0, len(found), size):
            some = found[low : low + size]
            self._first = self._done = begin
            self._offsets[begin] = 0
            self._unpack(end, words, some, self._counted(words, some))
            self._workspace.settled = low + size >= len(found)
            yield
        self._apart = False

    def _in_threads(self, *, masks: bool) -> bool:
        """Search from the nodes that are left in several threads, with masks or one by one.

        Returns False, without results, if there are too few nodes, cores or bytes of memory.
        """
        rest = self._begins[self._done :]
        cores = min(_MOST_THREADS, _cores(), len(rest) // _BITS)
        borrow = self._borrow
        if borrow is None or cores < 2:
            return False

        def search(begins: Nodes) -> Part:
            with borrow() as workspace:
                part = Search(self._machine, workspace, begins, self._wanted, self._inside)
                while masks and (words := part._words()) and part._more():
                    for _ in part._together(words, np.zeros(2, dtype=np.int64)):
                        pass
                while part._more():
                    part._one_by_one(_UNLIMITED)
                return part.run()

        with ThreadPoolExecutor(cores) as pool:
            tasks = [pool.submit(copy_context().run, search, part) for part in np.array_split(rest, cores)]
        try:
            parts = [task.result() for task in tasks]
        except LimitError as error:
            if error.limit != "query_bytes":
                raise
            self._borrow = None
            return False
        self._reserve(sum(len(part.found) for part in parts))
        for part in parts:
            at, done = int(self._offsets[self._done]), self._done + len(part.begins)
            self._room[at : at + len(part.found)] = part.found
            self._offsets[self._done + 1 : done + 1] = at + part.offsets[1:]
            self._done = done
        return True

    def _counted(self, words: int, found: Nodes) -> Ids:
        counts = np.zeros(_WIDTH * words, dtype=np.int64)
        count_bits(words, self._workspace.reached, found, len(found), self._wanted, counts)
        return counts

    def _unpack(self, end: int, words: int, found: Nodes, counts: Ids) -> None:
        reached, known = self._workspace.reached, self._workspace.known
        offsets = self._offsets[self._done] + np.concatenate([[0], np.cumsum(counts)])
        masks = np.empty(len(found), dtype=np.uint64)
        self._reserve(int(offsets[-1] - offsets[0]) + 1)
        unpack(words, reached, known, found, len(found), offsets[:-1].copy(), masks, self._room)
        self._offsets[self._done + 1 : end + 1] = offsets[1 : end - self._done + 1]
        self._done = end

    def _reserve(self, size: int) -> None:
        """Make room for ``size`` more results. The array doubles, as far as the memory left allows."""
        used = int(self._offsets[self._done])
        least, before = used + size, len(self._room)
        if least <= before:
            return
        memory = self._workspace.memory
        enough = max(least, min(2 * before, memory.left // _NODE_BYTES))
        memory.take(_NODE_BYTES * enough, f"{enough:,} pairs")
        grown = np.empty(enough, dtype=np.int32)
        grown[:used] = self._room[:used]
        if self._room is not self._workspace.out:
            memory.give(_NODE_BYTES * before)
        self._room = grown


def _cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
