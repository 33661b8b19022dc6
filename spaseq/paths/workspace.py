"""The arrays that searches work in: one search has them at a time, and the next one finds them clean.

Clearing all of them costs more than a small search does, so a search clears what it has touched. One that
ends by an exception (no memory, Ctrl-C) may have touched anything: its arrays are never used again.
"""

from __future__ import annotations

from types import TracebackType
from typing import Final

import numpy as np

from spaseq.paths._kernel import Flags, Ids, Masks, Nodes

_LAST_STAMP: Final = 2**31 - 1

#: There is room for so many answers, beside those of one more search.
_ROOM: Final = 1 << 16

#: So many workspaces are kept for searches to come.
_SPARE: Final = 8

_NO_NODES: Final[Ids] = np.zeros(0, dtype=np.int64)


class Workspace:
    """The arrays of one search at a time; ``clear`` makes them as they were."""

    def __init__(self, nodes: int) -> None:
        self._nodes = nodes
        self._stamp = 0
        self._wanted = _NO_NODES
        self._marked = 0
        self.out: Nodes = np.empty(nodes + _ROOM, dtype=np.int32)
        self.wanted: Flags = np.zeros(max(1, nodes), dtype=np.bool_)  # of length 0 it would mean all
        self.inside: Nodes = np.zeros(0, dtype=np.int32)
        self.marked: Ids = np.zeros(0, dtype=np.int64)
        self.found: Nodes = np.zeros(nodes, dtype=np.int32)
        self.seen: Nodes = np.zeros(0, dtype=np.int32)
        self.queue: Ids = np.zeros(0, dtype=np.int64)
        self.visited: Masks = np.zeros(0, dtype=np.uint64)
        self.pending: Masks = np.zeros(0, dtype=np.uint64)
        self.reached: Masks = np.zeros(0, dtype=np.uint64)
        self.waiting: Flags = np.zeros(0, dtype=np.bool_)
        self.known: Flags = np.zeros(nodes, dtype=np.bool_)
        self.touched: Ids = np.zeros(0, dtype=np.int64)

    def want(self, nodes: Ids) -> Flags:
        """Flags of these nodes, until the workspace is cleared. To be called once before."""
        self._wanted = nodes
        self.wanted[nodes] = True
        return self.wanted

    def stamps(self, states: int, count: int) -> int:
        """Makes room for so many states and as many searches one by one; returns the stamp to start from."""
        places = states * self._nodes
        if len(self.seen) < places:
            self.seen = np.zeros(places, dtype=np.int32)
        if self._stamp + count > _LAST_STAMP:
            self.seen[:] = 0
            self.found[:] = 0
            self._stamp = 0
        self._queue(places + states)
        stamp, self._stamp = self._stamp, self._stamp + count
        return stamp

    def masks(self, states: int, words: int) -> None:
        """Makes room for a search with masks of so many words; all of them are 0 between searches."""
        places = states * self._nodes
        if len(self.visited) < words * places:
            self.visited, self.pending = np.zeros((2, words * places), dtype=np.uint64)
        if len(self.waiting) < places:
            self.waiting = np.zeros(places, dtype=np.bool_)
            self.touched = np.empty(places, dtype=np.int64)
        if len(self.reached) < words * self._nodes:
            self.reached = np.zeros(words * self._nodes, dtype=np.uint64)
        self._queue(places + states + 1)

    def marks(self, states: int) -> tuple[Nodes, Ids]:
        """Room to mark places: ``inside`` is -1 everywhere, and for a list of those that are marked."""
        places = states * self._nodes
        if len(self.inside) < places:
            self.inside = np.full(places, -1, dtype=np.int32)
            self.marked = np.empty(places, dtype=np.int64)
        return self.inside, self.marked

    def mark(self, count: int) -> None:
        """So many places stand in the list of those that are marked."""
        self._marked = count

    def unmark(self) -> None:
        """No place is marked any more."""
        self.inside[self.marked[: self._marked]] = -1
        self._marked = 0

    def clear(self) -> None:
        """Nothing is wanted or marked any more; a search clears the rest itself when it ends."""
        if len(self._wanted):
            self.wanted[self._wanted] = False
            self._wanted = _NO_NODES
        if self._marked:
            self.unmark()

    def _queue(self, size: int) -> None:
        if len(self.queue) < size:
            self.queue = np.empty(size, dtype=np.int64)


class Workspaces:
    """The workspaces of a graph. Several threads may borrow some; nobody else has the same one meanwhile."""

    def __init__(self, nodes: int) -> None:
        self._nodes = nodes
        self._spare: list[Workspace] = []

    def borrow(self) -> Borrowed:
        """A workspace for a ``with`` block: it comes back only from one that ends in order."""
        return Borrowed(self)

    # Without a lock: a list is popped from and appended to in one step, and what a generator has borrowed may
    # come back while garbage is collected, in whatever a thread is doing.

    def take(self) -> Workspace:
        """One that is clean."""
        try:
            return self._spare.pop()
        except IndexError:
            return Workspace(self._nodes)

    def give(self, workspace: Workspace) -> None:
        """Take back what a search has ended with in order."""
        workspace.clear()
        if len(self._spare) < _SPARE:
            self._spare.append(workspace)


class Borrowed:
    """A workspace as long as a ``with`` block lasts.

    After an exception it is dropped. That a generator is closed is none: it was waiting to be asked for more.
    """

    def __init__(self, owner: Workspaces) -> None:
        self._owner = owner

    def __enter__(self) -> Workspace:
        self._workspace = self._owner.take()
        return self._workspace

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None or issubclass(kind, GeneratorExit):
            self._owner.give(self._workspace)
