"""A history in files followed by the same stream live, without duplicate events.

An event is identified by its graph's IRI and its time. The history's last ``REMEMBERED`` events are
remembered, and equal events of the live stream are skipped.
"""

from __future__ import annotations

from collections import deque
from typing import Final

import numpy as np
from pyoxigraph import NamedNode

from spaseq.events import Clock, EventBatch
from spaseq.terms.dictionary import UNBOUND

#: The number of last events of a history that are remembered.
REMEMBERED: Final = 1 << 16


class Seam:
    """The last events of a history."""

    def __init__(self) -> None:
        self._last: deque[EventBatch] = deque()
        self._count = 0
        self._newest: tuple[Clock, int] | None = None
        self._names: set[tuple[str, int]] | None = None

    def passed(self, batch: EventBatch) -> None:
        """Add events of the history, in order."""
        newest = int(batch.time.max())
        if self._newest is None or newest > self._newest[1]:
            self._newest = batch.clock, newest
        self._last.append(batch)
        self._count += len(batch)
        while self._count - len(self._last[0]) >= REMEMBERED:
            self._count -= len(self._last.popleft())

    @property
    def since(self) -> int | None:
        """Return the newest time of the history, in milliseconds since 1970; None for ticks or no event."""
        if self._newest is None or self._newest[0] is not Clock.INSTANTS:
            return None
        return self._newest[1] // 1_000

    def without_known(self, batch: EventBatch) -> EventBatch:
        """Return the events of the live stream that were not in the history."""
        if self._names is None:
            self._names = {name for known in self._last for name in _names(known) if name is not None}
            self._last.clear()
        if not self._names:
            return batch
        is_new = [name not in self._names for name in _names(batch)]
        return batch if all(is_new) else batch.take(np.flatnonzero(is_new))


def _names(batch: EventBatch) -> list[tuple[str, int] | None]:
    """Return the identity of each event; None if its graph has no IRI."""
    found: list[tuple[str, int] | None] = []
    for graph, time in zip(batch.graph.tolist(), batch.time.tolist(), strict=True):
        term = batch.dictionary.term(graph) if graph != UNBOUND else None
        found.append((term.value, time) if isinstance(term, NamedNode) else None)
    return found
