"""From several streams to one: time order, the watermark, and what comes too late (semantics, 7)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import numpy as np
import numpy.typing as npt

from spaseq.events import Clock, EventBatch, Ids, concatenate

_NONE: Final[Ids] = np.zeros(0, dtype=np.int64)


@dataclass(slots=True)
class StreamClock:
    """How far one stream of a query has come.

    ``newest`` is the largest time seen (−∞ before the first event). A stream ``holds`` the others
    back while the engine pulls it (or derives it) and it has neither ended nor gone idle; a stream
    that is only pushed to does not.
    """

    rank: int
    newest: float = -math.inf
    holds: bool = False


class Reorder:
    """The events of one query's streams, held until its watermark reaches them."""

    def __init__(self, streams: Mapping[int, int], lateness: timedelta) -> None:
        """``streams``: the id of each stream, and its rank in the order of simultaneous events."""
        self.clocks = {stream: StreamClock(rank) for stream, rank in streams.items()}
        self.clock: Clock | None = None
        self.watermark: float = -math.inf
        self._allowed = lateness
        self._lateness = 0
        self._held: list[EventBatch] = []

    def fits(self, batch: EventBatch) -> bool:
        """Whether a batch is on the clock of the query's other events; the first one decides it."""
        if self.clock is None:
            self.clock = batch.clock
            self._lateness = self._allowed // batch.clock.unit
        return batch.clock is self.clock

    def add(self, batch: EventBatch) -> Ids:
        """Takes events of one stream in arrival order; returns the indices of those that are late."""
        clock = self.clocks[int(batch.stream[0])]
        if len(batch) == 1:
            return self._add_one(batch, int(batch.time[0]), clock)
        seen = np.concatenate(([clock.newest], np.maximum.accumulate(batch.time.astype(np.float64))))
        clock.newest = float(seen[-1])
        reached = np.minimum(seen[:-1] - self._lateness, self._others(clock))
        late = batch.time < np.maximum(reached, self.watermark)
        if late.any():
            kept = batch.take(np.flatnonzero(~late))
            if len(kept):
                self._held.append(kept)
        else:
            self._held.append(batch)
        return np.flatnonzero(late)

    def _add_one(self, batch: EventBatch, time: int, clock: StreamClock) -> Ids:
        """The same, without arrays: an event that is pushed comes alone."""
        reached = min(clock.newest - self._lateness, self._others(clock))
        clock.newest = max(clock.newest, float(time))
        if time < max(reached, self.watermark):
            return np.zeros(1, dtype=np.int64)
        self._held.append(batch)
        return _NONE

    def release(self) -> EventBatch | None:
        """The events that the watermark has reached, in order; moves the watermark."""
        holding = [clock for clock in self.clocks.values() if clock.holds]
        if holding:
            reached = min(clock.newest for clock in holding) - self._lateness
        else:
            reached = max(clock.newest for clock in self.clocks.values()) - self._lateness
        self.watermark = max(self.watermark, reached)
        # While several streams are pulled, one may still bring events simultaneous with another's.
        return self._take(lambda time: time < self.watermark if len(holding) > 1 else time <= self.watermark)

    def drain(self) -> EventBatch | None:
        """All events that are held: their streams have ended."""
        return self._take(lambda time: np.ones(len(time), dtype=bool))

    def _others(self, clock: StreamClock) -> float:
        """How far the other streams let the watermark come while ``clock``'s events arrive."""
        return min(
            (
                other.newest - self._lateness
                for other in self.clocks.values()
                if other.holds and other is not clock
            ),
            default=math.inf,
        )

    def _take(self, due: Callable[[Ids], npt.NDArray[np.bool_]]) -> EventBatch | None:
        if not self._held:
            return None
        batch = concatenate(self._held)
        order = None if _in_order(batch) else self._order(batch)
        ready = due(batch.time if order is None else batch.time[order])
        count = int(np.count_nonzero(ready))
        if count == len(batch):
            self._held = []
            return batch if order is None else batch.take(order)
        order = np.arange(len(batch)) if order is None else order
        self._held = [batch.take(order[count:])]
        return batch.take(order[:count]) if count else None

    def _order(self, batch: EventBatch) -> Ids:
        ranks = np.array([self.clocks[s].rank for s in batch.stream.tolist()], dtype=np.int64)
        return np.lexsort((batch.n, ranks, batch.time))


def _in_order(batch: EventBatch) -> bool:
    """Whether events that stand as they arrived stand in order: those of one stream, no time going back."""
    if len(batch) == 1:
        return True
    return bool((batch.time[1:] >= batch.time[:-1]).all() and (batch.stream == batch.stream[0]).all())
