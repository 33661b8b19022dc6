"""Whom events of several streams may concern: an index of ``discrimination`` for each stream.

What stands here is found by the streams that its graph patterns read, so that the same triple in another
stream is no reason to ask it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, Generic, TypeVar

import numpy as np

from spaseq.events import EventBatch, Ids
from spaseq.gpm.discrimination import Discrimination, Needs

#: Up to so many events are looked at one by one.
_FEW: Final = 256

_Item = TypeVar("_Item")


class ByStream(Generic[_Item]):
    """Items by the streams that they read and the triples that they need of an event."""

    def __init__(self, streams: Iterable[int]) -> None:
        self._of: dict[int, Discrimination[_Item]] = {stream: Discrimination() for stream in streams}

    def add(self, item: _Item, streams: Iterable[int] | None, needed: Needs) -> None:
        """One item more, which needs this of an event of these streams; None: of any."""
        for stream in self._of if streams is None else streams:
            self._of[stream].add(item, needed)

    def of_single(self, stream: int, terms: Sequence[int]) -> list[_Item]:
        """The items that an event may concern which came alone; ``terms``: those of its triples."""
        return self._of[stream].of_single(terms)

    def of_batch(self, batch: EventBatch) -> list[_Item]:
        """The items that some event of a batch may concern, perhaps more than once."""
        if len(batch) == 1:
            return self._of[int(batch.stream[0])].of_event(batch.triples(0))
        if len(self._of) == 1:
            (index,) = self._of.values()
            return index.of_batch(batch)
        found = []
        for stream, index in self._of.items():
            events = np.flatnonzero(batch.stream == stream)
            if len(events):
                found += index.of_batch(batch.take(events))
        return found

    def by_item(self, batch: EventBatch, asks: Callable[[_Item], bool]) -> dict[_Item, Ids | None]:
        """The items that events of a batch may concern, each with the numbers of these, in order.

        ``asks``: whether an item is to have these; None for others.
        """
        if len(batch) <= _FEW:
            return {**self._one_by_one(batch)}
        if len(self._of) == 1:
            (index,) = self._of.values()
            return index.by_item(batch, asks)
        found: dict[_Item, list[Ids]] = {}
        for stream, index in self._of.items():
            events = np.flatnonzero(batch.stream == stream)
            if len(events):
                for item, numbers in index.by_item(batch.take(events), asks).items():
                    found.setdefault(item, []).append(events if numbers is None else events[numbers])
        return {
            item: np.sort(np.concatenate(numbers)) if asks(item) else None for item, numbers in found.items()
        }

    def _one_by_one(self, batch: EventBatch) -> dict[_Item, Ids]:
        found: dict[_Item, list[int]] = {}
        for event, stream in enumerate(batch.stream.tolist()):
            for item in self._of[stream].of_event(batch.triples(event)):
                numbers = found.setdefault(item, [])
                if not numbers or numbers[-1] != event:
                    numbers.append(event)
        return {item: np.array(numbers) for item, numbers in found.items()}
