"""Events that come alone, for the enumerating evaluator: each is a few numbers up to the kernel."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from spaseq.alone import Single
from spaseq.automaton.pattern import SequencePattern
from spaseq.events import Stamp
from spaseq.matching.columns.alone.taking import Taking
from spaseq.matching.enumeration.compiled._kernel_alone import spread
from spaseq.matching.enumeration.update import Columns, Update
from spaseq.matching.model import Bounds
from spaseq.terms.dictionary import Dictionary

Ints = npt.NDArray[np.int64]


class Alone:
    """Gives such events to an ``Update``, one by one; ``taking`` knows what is asked of them."""

    def __init__(
        self, pattern: SequencePattern, dictionary: Dictionary, bounds: Bounds, update: Update
    ) -> None:
        streams = map(dictionary.pin, dict.fromkeys(pattern.streams))
        ranks = {stream: rank for rank, stream in enumerate(streams)}
        read = [(g, key) for g in range(len(pattern.gpms)) for key in update.keys]
        self.taking = Taking(dictionary, ranks, read, update.history, ordered_by=update.partition)
        self._bounds, self._update = bounds, update
        self._n_keys, count = len(update.keys), len(pattern.gpms)
        # One event as the kernel reads it, written anew for each.
        self._label, self._axis, self._time, self._stream = np.zeros((4, 1), dtype=np.int64)
        self._cursors, self._ends = np.zeros((2, count), dtype=np.int64)
        self._make_room(count)

    def _make_room(self, rows: int) -> None:
        """Has room for so many solutions of an event."""
        self._events, self._ranks = np.zeros((2, rows), dtype=np.int64)
        self._keys = np.zeros(rows * self._n_keys, dtype=np.int64)

    def take(self, at: Stamp, graph: int, terms: Sequence[int], start: int, event: Single | None) -> bool:
        """Takes an event, of which nothing is enumerated; false, and nothing done, if it is large."""
        update, axis = self._update, self._bounds.place(at.time, start)
        update.memory.forget_read()
        batch = self.taking.take(at, graph, terms, start, axis, update.oldest(axis), event)
        if batch is None:
            return False
        rows = self._spread(batch)
        if abs(rows) > len(self._events):
            self._make_room(2 * abs(rows))
            rows = self._spread(batch)
        count = abs(rows)
        self._axis[0], self._time[0], self._stream[0] = axis, at.time, at.stream
        columns = Columns(
            self._label, self._axis, self._time, self._stream, self._events[:count],
            self._keys[: count * self._n_keys], self._ranks[: max(rows, 0)], self._cursors, self._ends,
        )  # fmt: skip
        update.go_on(columns, start)
        return True

    def _spread(self, batch: Ints) -> int:
        apart = self._update.apart
        return spread(
            batch, self._n_keys, apart, self._label, self._keys, self._ranks, self._cursors, self._ends
        )
