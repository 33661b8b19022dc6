"""The first events of a query, kept as columns for a diagnosis."""

from __future__ import annotations

from typing import Final

import numpy as np

from spaseq.alone import Single, gathered
from spaseq.events import EventBatch, concatenate

#: The most events, and the most triples unless the first event has more.
EVENTS: Final = 2_000
TRIPLES: Final = 20_000

#: How many batches are merged to one.
_PARTS: Final = 64

#: How many events that arrived one by one are merged to a batch.
_SINGLES: Final = 64


class Sample:
    """Takes batches until it is full; then ``open`` is false."""

    def __init__(self, events: int = EVENTS, triples: int = TRIPLES) -> None:
        self.open = True
        self._events = events
        self._triples = triples
        self._parts: list[EventBatch] = []
        self._singles: list[Single] = []

    def add(self, batch: EventBatch) -> None:
        """Add the next events, in processing order."""
        is_begun = bool(self._parts or self._singles)
        if isinstance(batch, Single) and is_begun and self._events > 0:
            triples = len(batch.terms) // 3  # ``len(batch.p)`` would make columns
            if triples <= self._triples:
                self._events -= 1
                self._triples -= triples
                self._keep(batch)
                return
        fitting = int(np.searchsorted(batch.offset, self._triples, side="right")) - 1
        count = min(len(batch), self._events, max(fitting, 0 if is_begun else 1))
        if count < len(batch):
            self.open = False
            batch = batch.take(np.arange(count))
        self._events -= len(batch)
        self._triples -= len(batch.p)
        if len(batch):
            self._keep(batch)

    def _keep(self, batch: EventBatch) -> None:
        if isinstance(batch, Single):
            self._singles.append(batch)
            if len(self._singles) == _SINGLES:
                self._gather_singles()
            return
        self._gather_singles()
        self._put(batch)

    def _gather_singles(self) -> None:
        """Merge the events that arrived one by one to one batch."""
        if self._singles:
            self._put(gathered(self._singles))
            self._singles = []

    def _put(self, batch: EventBatch) -> None:
        self._parts.append(batch)
        if len(self._parts) == _PARTS:
            self._parts = [concatenate(self._parts)]

    def copy(self) -> Sample:
        """Return a copy, to which nothing is added."""
        copied = Sample(0, 0)
        self._gather_singles()
        copied.open, copied._parts = False, list(self._parts)
        return copied

    def batch(self) -> EventBatch | None:
        """Return the sample as one batch; None if it is empty."""
        self._gather_singles()
        if not self._parts:
            return None
        self._parts = [concatenate(self._parts)]
        return self._parts[0]
