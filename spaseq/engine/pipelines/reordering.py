"""Merge several streams by time, with a watermark; find late events (semantics, 7).

Times are exact over all 64 bits, so nothing here is a float: two integers beyond the times of events stand
for before and after all times.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import islice
from typing import Any, Final

import numpy as np

from spaseq.alone import Single, gathered
from spaseq.events import BEGINNING, EARLIEST, END, LATEST, Clock, EventBatch, Ids, Stamp, concatenate

#: Up to this many held single events are handled one by one.
_FEW: Final = 64

_NONE: Final[Mapping[int, int]] = {}


@dataclass(slots=True)
class StreamClock:
    """How far one stream of a query has come.

    ``newest`` is the largest time seen; nothing before ``promised`` will come. A stream ``holds`` the others
    back while the engine pulls it (or derives it) and it has neither ended nor gone idle; a stream that is
    only pushed to does not. ``newest_n`` is the arrival number of the event with the time ``newest``, or -1
    if that is unknown.
    """

    rank: int
    newest: int = BEGINNING
    promised: int = BEGINNING
    holds: bool = False
    newest_n: int = field(default=-1, compare=False)


class Reordering:
    """The events of one query's streams, held until the watermark reaches them.

    ``clock`` is the clock of the first event, ``held`` how many events wait, ``lateness`` the allowed one on
    that clock.
    """

    def __init__(self, streams: Mapping[int, int], lateness: timedelta) -> None:
        """``streams``: the id of each stream, and its rank in the order of simultaneous events."""
        self.clocks = {stream: StreamClock(rank) for stream, rank in streams.items()}
        self.clock: Clock | None = None
        self.watermark = BEGINNING
        self.held = 0
        self._allowed = lateness
        self.lateness = 0
        self._least = EARLIEST
        #: The event that had moved the watermark when the first late event of the last ``add`` came, if
        #: known.
        self.moved_by: Stamp | None = None
        self._waiting: list[EventBatch] = []
        # Promises made before the first event, on either clock.
        self._promises: list[tuple[Clock, int, Sequence[int]]] = []

    @property
    def is_new(self) -> bool:
        """Whether no time is known yet: no event is late, on either clock."""
        return self.clock is None and not self._promises

    @property
    def time(self) -> int | None:
        """The time up to which the streams are complete; None before any time is known."""
        return self.watermark if BEGINNING < self.watermark < END else None

    def reached(self, stream: int) -> int | None:
        """Return the time before which events of a stream are late; None if unknown."""
        clock = self.clocks[stream]
        time = max(clock.newest - self.lateness, clock.promised)
        return time if EARLIEST <= time <= LATEST and clock.newest > BEGINNING else None

    def equals(self, other: Reordering) -> bool:
        """Return whether both treat all future events alike, and hold the same events back."""
        return (
            self.clock is other.clock
            and self.watermark == other.watermark
            and self.held == other.held
            and self.clocks == other.clocks
            and self._promises == other._promises
            and (not self.held or _same(concatenate(self._waiting), concatenate(other._waiting)))
        )

    def state(self) -> dict[str, object]:
        """Return the state for ``restore``, without the held events; streams in their order."""
        return {
            "clock": None if self.clock is None else self.clock.value,
            "watermark": self.watermark,
            "streams": [[c.newest, c.promised, c.holds] for c in self.clocks.values()],
            "promises": [
                [clock.value, time, [self.clocks[s].rank for s in streams]]
                for clock, time, streams in self._promises
            ],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore the state of another one of the same streams."""
        if state["clock"] is not None:
            self.fits(Clock(state["clock"]))
        self.watermark = state["watermark"]
        for clock, (newest, promised, holds) in zip(self.clocks.values(), state["streams"], strict=True):
            clock.newest, clock.promised, clock.holds = newest, promised, holds
        streams = {clock.rank: stream for stream, clock in self.clocks.items()}
        self._promises = [
            (Clock(clock), time, [streams[rank] for rank in ranks])
            for clock, time, ranks in state["promises"]
        ]

    def fits(self, clock: Clock) -> bool:
        """Return whether times are on the clock of the query's other events; the first event decides it."""
        if self.clock is None:
            self.clock = clock
            self.lateness = self._allowed // clock.unit
            self._least = clock.least
            for promised in self._promises:
                self.promise(*promised)
            self._promises.clear()
        return clock is self.clock

    def add(self, batch: EventBatch) -> Mapping[int, int]:
        """Add events of one stream in arrival order.

        Return the indices of late events, each with the watermark when it came: the message about an event
        must not depend on its batch.
        """
        clock = self.clocks[int(batch.stream[0])]
        if len(batch) == 1:
            return self._add_one(batch, int(batch.time[0]), clock)
        time = batch.time
        first = min(max(clock.newest, EARLIEST), LATEST)
        seen = np.maximum.accumulate(np.concatenate(([first], time)))
        # As unsigned numbers: the distance of two times may need 64 bits.
        behind = seen[:-1].view(np.uint64) - time.view(np.uint64)
        late = (seen[:-1] > time) & (behind > self.lateness) | (time < clock.promised)
        others = self._others(clock)
        late = late & (time < others) | (time < self.watermark)
        kept = batch.take(np.flatnonzero(~late)) if late.any() else batch
        indices = np.flatnonzero(late)
        reached = (max(newest - self.lateness, clock.promised) for newest in seen[indices].tolist())
        found = {
            index: max(min(own, others), self.watermark)
            for index, own in zip(indices.tolist(), reached, strict=True)
        }
        for first, watermark in islice(found.items(), 1):
            self.moved_by = self._moved_by(batch, first, watermark)
        if (last := int(seen[-1])) > clock.newest:
            clock.newest, clock.newest_n = last, int(batch.n[int(time.argmax())])
        self._hold(kept)
        return found

    def _moved_by(self, batch: EventBatch, before: int, watermark: int) -> Stamp | None:
        """Return the event that had moved the watermark to its place before a batch's ``before``-th event."""
        time = watermark + self.lateness
        if EARLIEST <= time <= LATEST and len(at := np.flatnonzero(batch.time[:before] == time)):
            return batch.stamp(int(at[0]))
        movers = ((stream, clock) for stream, clock in self.clocks.items() if clock.newest == time)
        return next((Stamp(time, stream, c.newest_n) for stream, c in movers if c.newest_n >= 0), None)

    def _add_one(self, batch: EventBatch, time: int, clock: StreamClock) -> Mapping[int, int]:
        """Do ``add`` for a single event, without arrays."""
        watermark = max(min(self._reached(clock), self._others(clock)), self.watermark)
        if time < watermark:
            self.moved_by = self._moved_by(batch, 0, watermark)
        if time > clock.newest:
            clock.newest, clock.newest_n = time, batch.n.item(0)
        if time < watermark:
            return {0: watermark}
        self._hold(batch)
        return _NONE

    def _hold(self, batch: EventBatch) -> None:
        if len(batch):
            self._waiting.append(batch)
            self.held += len(batch)

    def promise(self, clock: Clock, time: int, streams: Sequence[int]) -> None:
        """Promise that no event of these streams will come before ``time``, if that is on the
        query's clock.
        """
        if self.clock is None:
            self._promises.append((clock, time, streams))
        elif clock is self.clock:
            for stream in streams:
                self.clocks[stream].promised = max(self.clocks[stream].promised, time)

    def release(self) -> EventBatch | None:
        """Advance the watermark; return the events that it has reached, in order."""
        holding = [clock for clock in self.clocks.values() if clock.holds]
        if holding:
            reached = min(map(self._reached, holding))
        else:
            reached = max(map(self._reached, self.clocks.values()))
        self.watermark = max(self.watermark, reached)
        # While several streams are pulled, another may still bring events of the same time.
        return self._take(self.watermark - 1 if len(holding) > 1 else self.watermark)

    def drain(self) -> EventBatch | None:
        """Return all held events: their streams have ended."""
        return self._take(END)

    def _reached(self, clock: StreamClock) -> int:
        """Return the time up to which a stream is complete."""
        if clock.newest == BEGINNING:
            return clock.promised
        return max(clock.newest - self.lateness, clock.promised, self._least)

    def _others(self, clock: StreamClock) -> int:
        """Return how far the other streams let the watermark advance while events of ``clock`` arrive."""
        if len(self.clocks) == 1:
            return END
        others = (other for other in self.clocks.values() if other.holds and other is not clock)
        return min(map(self._reached, others), default=END)

    def _take(self, last: int) -> EventBatch | None:
        """Return the held events up to a time, in order."""
        if not self._waiting:
            return None
        if len(self._waiting) == self.held <= _FEW and all(isinstance(b, Single) for b in self._waiting):
            return self._take_few([event for event in self._waiting if isinstance(event, Single)], last)
        batch = concatenate(self._waiting)
        order = None if _in_order(batch) else self._order(batch)
        ready = (batch.time if order is None else batch.time[order]) <= last
        count = int(np.count_nonzero(ready))
        if count == len(batch):
            taken, left = batch if order is None else batch.take(order), []
        else:
            order = np.arange(len(batch)) if order is None else order
            taken, left = batch.take(order[:count]), [batch.take(order[count:])]
        self._waiting = left
        self.held = len(batch) - count
        return taken if count else None

    def _take_few(self, held: Sequence[Single], last: int) -> EventBatch | None:
        """Do the same for a few single events, without arrays; a single result stays a single event."""
        due = [event for event in held if event.at.time <= last]
        if not due:
            return None
        left: list[EventBatch] = [event for event in held if event.at.time > last]
        due.sort(key=lambda event: (event.at.time, self.clocks[event.at.stream].rank, event.at.n))
        batch, count = due[0] if len(due) == 1 else gathered(due), len(left)
        self._waiting, self.held = left, count
        return batch

    def _order(self, batch: EventBatch) -> Ids:
        ranks = np.array([self.clocks[s].rank for s in batch.stream.tolist()], dtype=np.int64)
        return np.lexsort((batch.n, ranks, batch.time))


def _in_order(batch: EventBatch) -> bool:
    """Return whether events in arrival order are in time order: those of one stream with ascending times."""
    if len(batch) == 1:
        return True
    return bool((batch.time[1:] >= batch.time[:-1]).all() and (batch.stream == batch.stream[0]).all())


def _same(left: EventBatch, right: EventBatch) -> bool:
    """Return whether two batches are of the same events, in the same order."""
    return bool(np.array_equal(left.stream, right.stream) and np.array_equal(left.n, right.n))
