"""Events that came alone, one after the other, until somebody asks for them: then they are a batch.

An event is done with in a few numbers, and most have no match that anybody reads. Some hundreds of them as
one batch cost what few of them cost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spaseq.alone import Single, gathered
from spaseq.events import EventBatch
from spaseq.gpm.sharing import Values
from spaseq.gpm.spectra.solutions import Solutions
from spaseq.matching.columns.chunk import Chunk

Ints = npt.NDArray[np.int64]

#: So many are enough for a batch.
_MOST: Final = 256
#: So many solutions of a question have room from the beginning.
_ROWS: Final = 1_024


class Counts(NamedTuple):
    """In how many events some GPM has solutions; of each GPM, in how many it has, and how many these are."""

    relevant: int
    matched: Ints
    rows: Ints


class Singles:
    """Events at positions that follow each other, from ``first``; ``end``: behind the last, None without any.

    Several GPMs may ask the same question, but for the names of variables: ``asked`` says which each does,
    ``widths`` how many values a solution of each question has. ``firsts``: where the solutions of each event
    begin, shape ``(events + 1, questions)``. ``kept``: the solutions of each question, ``(rows, width)``;
    parts of ``values``, where they ``begin``, with so many ``rooms``.
    """

    def __init__(self, names: Sequence[Sequence[str]], asked: Sequence[int], told: Sequence[bool]) -> None:
        """``told``: of which GPMs it counts whether they have solutions."""
        self.end: int | None = None
        self.first = self._last = self._oldest = 0
        self.events: list[Single] = []
        self._names, self.asked, self._of = names, asked, np.array(asked, dtype=np.int64)
        self._told = np.array(told, dtype=np.bool_)
        width = dict(zip(asked, map(len, names), strict=True))
        self.widths = [width[question] for question in range(len(width))]
        self.firsts = np.zeros((_MOST + 1, len(width)), dtype=np.int64)
        self._place([_ROWS] * len(width))
        self._counted = 0
        self._counts = self._none()

    def _place(self, rooms: Sequence[int]) -> None:
        """Makes room for so many solutions of each question, one after the other in ``values``."""
        sizes = [room * width for room, width in zip(rooms, self.widths, strict=True)]
        self.rooms, self.begin = rooms, [sum(sizes[:q]) for q in range(len(sizes))]
        self.values = np.zeros(sum(sizes), dtype=np.int64)
        self.kept = [
            self.values[begin : begin + size].reshape(room, width)
            for begin, size, room, width in zip(self.begin, sizes, rooms, self.widths, strict=True)
        ]

    def _none(self) -> Counts:
        nothing = np.zeros(len(self.asked), dtype=np.int64)
        return Counts(0, nothing, nothing)

    @property
    def is_full(self) -> bool:
        """Whether they are enough."""
        return len(self.events) >= _MOST

    def solved(self, solutions: Sequence[Values]) -> bool:
        """Keeps what the GPMs of the next event have; false if there is no room for that."""
        begin = self.firsts[len(self.events)].tolist()
        end = list(begin)
        for question, values in zip(self.asked, solutions, strict=True):
            end[question] = begin[question] + len(values)
            if end[question] > len(self.kept[question]):
                return False
            if values and self.widths[question]:
                self.kept[question][begin[question] : end[question]] = values
        self.firsts[len(self.events) + 1] = end
        return True

    def widen(self, solutions: Sequence[Values]) -> None:
        """Makes room for all of these, while there are no events."""
        rooms = list(self.rooms)
        for question, values in zip(self.asked, solutions, strict=True):
            rooms[question] = max(rooms[question], len(values))
        self._place(rooms)

    def add(self, position: int, event: Single, axis: int, oldest: int) -> None:
        """An event whose solutions are kept, at its place on the axis, where ``oldest`` may still count."""
        if not self.events:
            self.first = position
        self.events.append(event)
        self.end, self._last, self._oldest = position + 1, axis, oldest

    def solution(self, position: int, g: int, row: int) -> tuple[Single, Callable[[], dict[str, int]]]:
        """An event of those that are there, and what makes a solution of a GPM in it."""
        values = self.kept[self.asked[g]][row].tolist()
        return self.events[position - self.first], partial(_bound, self._names[g], values)

    def live_ids(self) -> Iterator[Ints]:
        """The ids in the solutions; the events keep theirs."""
        for kept, end in zip(self.kept, self.firsts[len(self.events)].tolist(), strict=True):
            yield kept[:end]

    def counts(self) -> Counts:
        """What was counted since the last call."""
        begin, self._counted = self._counted, len(self.events)
        before, self._counts = self._counts, self._none()
        found = np.diff(self.firsts[begin : self._counted + 1], axis=0)[:, self._of]
        some = found > 0
        relevant = int(np.count_nonzero(some[:, self._told].any(axis=1)))
        return Counts(before.relevant + relevant, before.matched + some.sum(0), before.rows + found.sum(0))

    def take(self) -> tuple[Chunk, int]:
        """They as a batch, and from where on the axis others may still count; none are left."""
        self._counts = self.counts()
        events, count = self.events, len(self.events)
        batch: EventBatch = events[0] if count == 1 else gathered(events)
        tables, rows = [], []
        known: dict[int, tuple[Ints, Ints, Ints]] = {}
        for names, question in zip(self._names, self.asked, strict=True):
            if question not in known:
                begins = self.firsts[: count + 1, question].copy()
                at = np.repeat(np.arange(count), np.diff(begins))
                known[question] = at, self.kept[question][: begins[-1]].T.copy(), begins
            at, columns, begins = known[question]
            tables.append(Solutions(len(at), at, dict(zip(names, columns, strict=True))))
            rows.append(begins)
        chunk = Chunk(self.first, batch, tuple(tables), self._last, np.array(rows, dtype=np.int64))
        self.end, self.events, self._counted = None, [], 0
        return chunk, self._oldest


def _bound(names: Sequence[str], values: Sequence[int]) -> dict[str, int]:
    """A solution, without what is unbound."""
    return {name: term for name, term in zip(names, values, strict=True) if term}
