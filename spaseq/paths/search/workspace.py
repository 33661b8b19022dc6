"""The working arrays of searches. One search uses them at a time, and leaves them clean for the next.

Clearing whole arrays costs more than a small search, so a search only clears what it has touched. A search
that ends with an exception (no memory, Ctrl-C) may have touched anything: its arrays are not used again.
"""

from __future__ import annotations

from types import TracebackType
from typing import Final

import numpy as np

from spaseq.limits import Limits
from spaseq.paths.search._kernel import Flags, Ids, MaskRoom, Masks, Nodes
from spaseq.paths.search.running import Memory, current

_LAST_STAMP: Final = 2**31 - 1

#: ``out`` has room for this many results, besides those of one more search.
_ROOM: Final = 1 << 16

#: At most this many workspaces are kept for later searches.
_SPARE: Final = 8

_NO_NODES: Final[Ids] = np.zeros(0, dtype=np.int64)


#: The purposes of memory, for messages.
_PLACES: Final = "the places of a search"
_MASKS: Final = "the masks of a search"
_MARKS: Final = "the marks of a search"
_ENDS: Final = "the search from the other end"

#: Bytes for each place that a search with masks needs, beside those of the masks themselves.
_MASKED: Final = 17

#: The part of the memory left that masks may take.
_FOR_MASKS: Final = 0.75


class Workspace:
    """The working arrays of one search at a time; ``clear`` resets them.

    ``size`` is the number of their bytes. The bytes that a search needs count against its ``memory`` even if
    the arrays exist already, so that a query's limit does not depend on earlier queries. ``stop`` ends the
    search from outside.
    """

    def __init__(self, nodes: int, memory: Memory) -> None:
        self._nodes = nodes
        self._needed: dict[str, int] = {}
        self.memory = memory
        self.stop = current()
        self._stamp = 0
        self._wanted = _NO_NODES
        self._marked = 0
        self.settled = True  # False while masks are not 0, because their results are not fully read
        self.out: Nodes = np.empty(nodes + _ROOM, dtype=np.int32)
        self.wanted: Flags = np.zeros(max(1, nodes), dtype=np.bool_)  # length 0 would mean all
        self.inside: Nodes = np.zeros(0, dtype=np.int32)
        self.ahead: Nodes = np.zeros(0, dtype=np.int32)
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
        self._measure()

    def _measure(self) -> None:
        self.size = sum(value.nbytes for value in vars(self).values() if isinstance(value, np.ndarray))

    def begin(self, memory: Memory) -> None:
        """Begin a query with its memory."""
        self.memory = memory
        self.stop = current()
        self._needed = {}

    def want(self, nodes: Ids) -> Flags:
        """Flag nodes as wanted until the workspace is cleared. Call it at most once before ``clear``."""
        self._wanted = nodes
        self.wanted[nodes] = True
        return self.wanted

    def stamps(self, states: int, count: int) -> int:
        """Make room for ``count`` searches one by one with ``states`` states; return the first stamp."""
        places = states * self._nodes
        self._need(_PLACES, 12 * places)
        if len(self.seen) < places:
            self.seen = np.zeros(places, dtype=np.int32)
            self._measure()
        if self._stamp + count > _LAST_STAMP:
            self.seen[:] = 0
            self.found[:] = 0
            self._stamp = 0
        self._queue(places + states)
        stamp, self._stamp = self._stamp, self._stamp + count
        return stamp

    def masks(self, states: int, words: int) -> MaskRoom:
        """Return arrays for a search with masks of this many words; all are 0 between searches."""
        places = states * self._nodes
        self._need(_MASKS, (_MASKED + 16 * words) * places + 8 * words * self._nodes)
        if len(self.visited) < words * places:
            self.visited, self.pending = np.zeros((2, words * places), dtype=np.uint64)
            self._measure()
        if len(self.waiting) < places:
            self.waiting = np.zeros(places, dtype=np.bool_)
            self.touched = np.empty(places, dtype=np.int64)
            self._measure()
        if len(self.reached) < words * self._nodes:
            self.reached = np.zeros(words * self._nodes, dtype=np.uint64)
        self._queue(places + states + 1)
        bits = np.zeros(words, dtype=np.uint64)
        return MaskRoom(
            self.visited, self.pending, bits, self.waiting, self.queue, self.touched, self.reached,
            self.known, self.stop.flag,
        )  # fmt: skip

    def words(self, states: int, most: int) -> int:
        """Return how many words masks may have, at most ``most``; 0 if there is no memory for masks."""
        places = states * self._nodes
        spare = int((self.memory.left + self._needed.get(_MASKS, 0)) * _FOR_MASKS)
        return max(0, min(most, (spare - _MASKED * places) // max(1, 16 * places + 8 * self._nodes)))

    def marks(self, states: int) -> tuple[Nodes, Ids]:
        """Return arrays to mark places: ``inside``, -1 everywhere, and a list for the marked places."""
        places = states * self._nodes
        self._need(_MARKS, 12 * places)
        if len(self.inside) < places:
            self.inside = np.full(places, -1, dtype=np.int32)
            self.marked = np.empty(places, dtype=np.int64)
            self._measure()
        return self.inside, self.marked

    def ends(self, states: int) -> tuple[Nodes, Ids]:
        """Return arrays to search a pair from the other end: distances, -1 everywhere, and a queue."""
        places = states * self._nodes
        self._need(_ENDS, 12 * places)
        if len(self.ahead) < places:
            self.ahead = np.full(places, -1, dtype=np.int32)
            self._measure()
        self._queue(places)
        return self.ahead, self.queue

    def mark(self, count: int) -> None:
        """Note how many places are in the list of marked places."""
        self._marked = count

    @property
    def marked_places(self) -> int:
        """How many places are marked."""
        return self._marked

    def unmark(self) -> None:
        """Reset ``inside`` at all marked places."""
        self.inside[self.marked[: self._marked]] = -1
        self._marked = 0

    def clear(self) -> None:
        """Reset wanted nodes and marked places; a search resets the other arrays itself when it ends."""
        if len(self._wanted):
            self.wanted[self._wanted] = False
            self._wanted = _NO_NODES
        if self._marked:
            self.unmark()

    def _need(self, what: str, size: int) -> None:
        more = size - self._needed.get(what, 0)
        if more > 0:
            self.memory.take(more, what)
            self._needed[what] = size

    def _queue(self, size: int) -> None:
        if len(self.queue) < size:
            self.queue = np.empty(size, dtype=np.int64)


class Workspaces:
    """The workspaces of a graph. A workspace is lent to one thread at a time."""

    def __init__(self, nodes: int, limits: Limits) -> None:
        self._nodes = nodes
        self._most = limits.query_bytes
        self._spare: list[Workspace] = []

    def borrow(self, memory: Memory) -> Borrowed:
        """Return a workspace for a ``with`` block; it is reused only if the block raises no error."""
        return Borrowed(self, memory)

    # No lock is needed, because popping from and appending to a list are atomic. A lock could also deadlock:
    # garbage collection may return a generator's workspace at any point in a thread.

    def take(self, memory: Memory) -> Workspace:
        """Return a clean workspace for a query."""
        try:
            workspace = self._spare.pop()
        except IndexError:
            return Workspace(self._nodes, memory)
        workspace.begin(memory)
        return workspace

    def give(self, workspace: Workspace) -> None:
        """Take back the workspace of a search that ended without an error."""
        if not workspace.settled:  # a search in parts, closed before the last one
            return
        workspace.clear()
        if not self._spare or (len(self._spare) < _SPARE and self._is_small(workspace)):
            self._spare.append(workspace)

    def _is_small(self, workspace: Workspace) -> bool:
        """Return whether several unused workspaces of this size may be kept."""
        return self._most is None or _SPARE * workspace.size <= self._most


class Borrowed:
    """A workspace for a ``with`` block.

    After an exception it is dropped. Closing a generator does not count as an exception, because the search
    was paused between results.
    """

    def __init__(self, owner: Workspaces, memory: Memory) -> None:
        self._owner = owner
        self._memory = memory

    def __enter__(self) -> Workspace:
        self._workspace = self._owner.take(self._memory)
        return self._workspace

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None or issubclass(kind, GeneratorExit):
            self._owner.give(self._workspace)
