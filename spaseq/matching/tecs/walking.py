"""The matches of roots: walked some at a time, or those of several queries at once."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Final, NamedTuple

import numpy as np

from spaseq.matching.tecs.compiled import _kernel_layout as lay
from spaseq.matching.tecs.compiled import _kernel_walk as walk
from spaseq.matching.tecs.memory import Roots
from spaseq.matching.tecs.records import counter

#: Few matches are enumerated at first, since few may be read. If there are many roots, this many matches of
#: each are.
_MATCHES: Final = 1 << 6
_OF_A_ROOT: Final = 8
_MOST_AT_FIRST: Final = 1 << 14
_MOST_MATCHES: Final = 1 << 16
#: The room for events, per match.
_EVENTS: Final = 4
#: The room for the path to a match, and for nodes of the next roots that are read ahead.
_DEEP: Final = 1 << 6
_AHEAD: Final = 16 * walk.AHEAD
_AHEAD_TOGETHER: Final = 2 * walk.AHEAD
#: The room for matches of several queries that are walked together.
_MOST_TOGETHER: Final = 1 << 20


class WalkedRoots(NamedTuple):
    """Some matches: the positions and the labels of their events.

    Match i has the events from ``offsets[i]`` to ``offsets[i + 1]``, and belongs to root number ``roots[i]``.
    If all matches have the same labels in turn, ``labels`` has only those of one match, and ``ends`` is None.
    Otherwise ``ends`` has a 0, then the end of each match.
    """

    positions: lay.Ints
    labels: lay.Ints
    ends: lay.Ints | None
    roots: lay.Ints

    @property
    def are_alike(self) -> bool:
        """Whether each match has the same labels in turn."""
        return self.ends is None

    @property
    def offsets(self) -> lay.Ints:
        """Where the events of each match begin, and the last ones end."""
        if self.ends is not None:
            return self.ends
        return np.arange(0, len(self.positions) + 1, len(self.labels))

    @property
    def all_labels(self) -> lay.Ints:
        """The labels of all events."""
        return np.tile(self.labels, len(self.roots)) if self.are_alike else self.labels


class Walk:
    """The state of an enumeration."""

    def __init__(self) -> None:
        self._state, self._stack, self._path = lay.arrays((walk.SIZE,), (_DEEP, 2), (_DEEP, 2))
        self._matches = _MATCHES
        self._events = _EVENTS * _MATCHES
        # The matches of the first roots, if these were walked before, and the number of these roots.
        self._before: tuple[WalkedRoots, int] | None = None

    @property
    def has_begun(self) -> bool:
        """Whether some but not all matches of the first root were returned."""
        return bool(self._state[walk.STACK] > 0)

    def copy(self) -> Walk:
        """Return a copy in the same state."""
        other = copy(self)
        other._state, other._stack, other._path = self._state.copy(), self._stack.copy(), self._path.copy()
        return other

    def know(self, walked: WalkedRoots, roots: int) -> None:
        """Set the walked matches of the first roots of a memory."""
        self._before = walked, roots

    def forget(self) -> None:
        """Forget the walked matches, as other roots may become the first ones."""
        self._before = None

    def next(self, memory: Roots) -> WalkedRoots | None:
        """Return some more of the matches; None when there are no more."""
        if not memory.unread:
            return None
        state, c = self._state, memory.counters
        if self._before is not None:
            walked, c[counter.READ] = self._before
            self._before = None
            return walked
        state[walk.ROOT] = c[counter.READ]
        # Finding a root takes longer than enumerating a few of its matches.
        self._matches = max(self._matches, min(_OF_A_ROOT * memory.unread, _MOST_AT_FIRST))
        self._events = max(self._events, _EVENTS * self._matches)
        while True:
            # The arrays are new in each call, since matches are read while the walk goes on.
            positions, labels = (np.empty(self._events, dtype=np.int64) for _ in range(2))
            offsets, roots = np.empty((2, self._matches + 1), dtype=np.int64)
            offsets[0] = 0
            tree = walk.Tree(c, memory.nodes, memory.found)
            room = walk.WalkRoom(self._stack, self._path, np.empty((_AHEAD, 2), dtype=np.int64))
            out = walk.WalkedMatches(positions, labels, offsets[1:], roots)
            status = walk.enumerate_matches(tree, c.item(counter.FOUND_COUNT), state, room, out)
            c[counter.READ] = state[walk.ROOT]
            _, _, count, used, width, *_ = state.tolist()
            if count:
                if status == walk.FULL and self._matches < _MOST_MATCHES:
                    self._matches *= 4
                # The labels of one match are kept for a long time.
                return WalkedRoots(
                    positions[:used], labels[:width].copy() if width else labels[:used],
                    None if width else offsets[: count + 1].copy(), roots[:count],
                )  # fmt: skip
            if status == lay.DONE:
                return None
            if status == walk.DEEPER:
                self._stack = np.concatenate([self._stack, np.zeros_like(self._stack)])
                self._path = np.concatenate([self._path, np.zeros_like(self._path)])
            else:
                self._events *= 2


def walked_together(memory: Roots, found: Sequence[lay.Ints]) -> list[tuple[WalkedRoots, int] | None]:
    """Return matches of several parts of a memory's roots: for each part, the matches of its first roots, and
    the number of these roots.

    A result is None if there was no room for the part's first root. Each part must have roots.
    """
    sizes = np.array([len(roots) for roots in found])
    matches = np.minimum(_OF_A_ROOT * sizes, _MOST_AT_FIRST)
    bounds, rooms = (np.concatenate([[0], np.cumsum(counts)]) for counts in (sizes, matches))
    # Without this the last part would have no room.
    rooms = np.minimum(rooms, _MOST_TOGETHER)
    most = int(rooms[-1])
    state = np.zeros((len(found), walk.SIZE), dtype=np.int64)
    state[:, walk.ROOT] = bounds[:-1]
    stack, path = lay.arrays((_DEEP, 2), (_DEEP, 2))
    positions, labels = (np.empty(_EVENTS * most, dtype=np.int64) for _ in range(2))
    ends, roots = np.empty((2, most), dtype=np.int64)
    tree = walk.Tree(memory.counters, memory.nodes, np.concatenate(found))
    room = walk.WalkRoom(stack, path, np.empty((_AHEAD_TOGETHER, 2), dtype=np.int64))
    out = walk.WalkedMatches(positions, labels, ends, roots)
    walk.enumerate_together(tree, bounds, rooms, _EVENTS, state, room, out)
    given: list[tuple[WalkedRoots, int] | None] = []
    columns = [walk.ROOT, walk.WHOLE, walk.WHOLE_USED, walk.WIDTH]
    for (reached, count, used, width), begin, first in zip(
        state[:, columns].tolist(), rooms.tolist(), bounds.tolist(), strict=False
    ):
        if not count:
            given.append(None)
            continue
        # Copies, so that keeping one does not keep all.
        events = slice(_EVENTS * begin, _EVENTS * begin + used)
        of_one = labels[events][: width or used].copy()
        offsets = None if width else np.concatenate([[0], ends[begin : begin + count]])
        walked = WalkedRoots(positions[events].copy(), of_one, offsets, roots[begin : begin + count] - first)
        given.append((walked, reached - first))
    return given
