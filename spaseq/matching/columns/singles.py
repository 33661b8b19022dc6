"""Events that came alone, one after the other, until somebody asks for them: then they are a batch.

An event is done with in a few numbers, and most have no match that anybody reads. Some hundreds of them as
one batch cost what few of them cost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final

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


class Singles:
    """Events at positions that follow each other, from ``first``; ``end``: behind the last, None without any.

    ``names`` are the variables of each GPM; those of GPMs with the same number in ``questions`` are the same
    but for their names.
    """

    def __init__(self, names: Sequence[Sequence[str]], questions: Sequence[int]) -> None:
        self.end: int | None = None
        self._names = names
        self._questions = questions
        self._start()

    def _start(self) -> None:
        self.end = None
        self._events: list[Single] = []
        self._solved: list[Sequence[Values]] = []
        # Of each event, the first row of each GPM.
        self._firsts: list[list[int]] = []
        self.first = self._last = self._oldest = 0
        #: Of each GPM, the first row of the last event in the batch that they will be.
        self.begins = [0] * len(self._names)
        self._ends = self.begins

    @property
    def is_full(self) -> bool:
        """Whether they are enough."""
        return len(self._events) >= _MOST

    def add(self, position: int, event: Single, solved: Sequence[Values], axis: int, oldest: int) -> None:
        """One more, with its solutions by GPM, at its place on the axis, where ``oldest`` may still count."""
        if not self._events:
            self.first = position
        self._events.append(event)
        self._solved.append(solved)
        self._firsts.append(self._ends)
        self.begins = self._ends
        self._ends = [end + len(values) for end, values in zip(self._ends, solved, strict=True)]
        self.end, self._last, self._oldest = position + 1, axis, oldest

    def solution(self, position: int, g: int, row: int) -> tuple[Single, Callable[[], dict[str, int]]]:
        """An event of those that are there, and what makes a solution of a GPM in it."""
        i = position - self.first
        values = self._solved[i][g][row - self._firsts[i][g]]
        return self._events[i], partial(_bound, self._names[g], values)

    def live_ids(self) -> Iterator[Ints]:
        """The ids in the solutions; the events keep theirs."""
        for solved in self._solved:
            for values in solved:
                yield np.array(values, dtype=np.int64)

    def take(self) -> tuple[Chunk, int]:
        """They as a batch, and from where on the axis others may still count; none are left."""
        events, solved = self._events, self._solved
        batch: EventBatch = events[0] if len(events) == 1 else gathered(events)
        known: dict[int, tuple[Ints, Ints, Ints]] = {}
        tables, rows = [], []
        for g, names in enumerate(self._names):
            question = self._questions[g]
            if question not in known:
                known[question] = _table([values[g] for values in solved], len(names))
            at, columns, begins = known[question]
            tables.append(Solutions(len(at), at, dict(zip(names, columns, strict=True))))
            rows.append(begins)
        chunk = Chunk(self.first, batch, tuple(tables), self._last, np.array(rows, dtype=np.int64))
        oldest = self._oldest
        self._start()
        return chunk, oldest


def _bound(names: Sequence[str], values: Sequence[int]) -> dict[str, int]:
    """A solution, without what is unbound."""
    return {name: term for name, term in zip(names, values, strict=True) if term}


def _table(solved: Sequence[Values], width: int) -> tuple[Ints, Ints, Ints]:
    """The event of each row; the columns; and where the rows of each event begin."""
    counts = [len(values) for values in solved]
    rows = [row for values in solved for row in values]
    columns = np.ascontiguousarray(np.array(rows, dtype=np.int64).reshape(len(rows), width).T)
    return np.repeat(np.arange(len(counts)), counts), columns, np.cumsum([0, *counts])
