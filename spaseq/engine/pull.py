"""Reading several sources side by side, always the one that holds the others back."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta

from spaseq.engine.order import BEGINNING
from spaseq.events import Clock, EventBatch

#: What happened to one stream: a batch of its events, or None when it has ended, or IDLE.
Step = tuple[int, EventBatch | object | None]


def in_turn(sources: Mapping[int, Iterator[EventBatch]]) -> Iterator[Step]:
    """Batches of several sources, each time from the one whose newest event is the oldest.

    Sources are keyed by their stream; each ends with a ``None``. Reading waits for the source it needs.
    """
    newest = dict.fromkeys(sources, BEGINNING)
    while newest:
        stream = min(newest, key=newest.__getitem__)
        batch = next(sources[stream], None)
        if batch is None:
            del newest[stream]
        elif len(batch):
            newest[stream] = max(newest[stream], int(batch.time.max()))
        yield stream, batch


class _Reader:
    """A source read by a thread of its own, a few batches ahead."""

    def __init__(self, source: Iterator[EventBatch]) -> None:
        self._ready: queue.Queue[EventBatch | BaseException | None] = queue.Queue(maxsize=4)
        self.waiting_since = time.monotonic()
        threading.Thread(target=self._read, args=(source,), daemon=True).start()

    def _read(self, source: Iterator[EventBatch]) -> None:
        try:
            for batch in source:
                self._ready.put(batch)
        except BaseException as error:  # handed to the reading side, which raises it
            self._ready.put(error)
        else:
            self._ready.put(None)

    def take(self, patience: float) -> EventBatch | None:
        """The next batch, None at the end; ``queue.Empty`` when nothing comes within ``patience`` s."""
        item = self._ready.get(timeout=patience) if patience else self._ready.get_nowait()
        self.waiting_since = time.monotonic()
        if isinstance(item, BaseException):
            raise item
        return item


#: Marks a stream that has gone idle, until its next batch.
IDLE = object()


def with_idle(sources: Mapping[int, Iterator[EventBatch]], idle: timedelta, *, beats: bool) -> Iterator[Step]:
    """As ``in_turn``, but a source that brings nothing for ``idle`` does not keep the others waiting.

    Then ``(stream, IDLE)`` says so, with ``beats`` again and again; its next batch says that it is back.
    """
    limit = idle.total_seconds()
    readers = {stream: _Reader(source) for stream, source in sources.items()}
    newest = dict.fromkeys(sources, BEGINNING)
    resting: set[int] = set()
    while newest:
        # Streams at rest are asked without waiting; of the others the one that is furthest behind.
        active = [stream for stream in newest if stream not in resting]
        turn = [*resting, min(active, key=newest.__getitem__)] if active else list(resting)
        for stream in turn:
            reader = readers[stream]
            patience = 0.0 if stream in resting and active else 0.05
            try:
                batch = reader.take(patience)
            except queue.Empty:
                if stream not in resting and time.monotonic() - reader.waiting_since >= limit:
                    resting.add(stream)
                    yield stream, IDLE
                elif beats and stream in resting:
                    yield stream, IDLE
                continue
            resting.discard(stream)
            if batch is None:
                del newest[stream]
            elif len(batch):
                newest[stream] = max(newest[stream], int(batch.time.max()))
            yield stream, batch


class WallClock:
    """The times of idle streams, which go on from their newest events as a clock in seconds does."""

    def __init__(self, now: Callable[[], float], lateness: timedelta) -> None:
        self._now = now
        self._lateness = lateness
        # Per stream, its newest time, and when that came.
        self._seen: dict[int, tuple[Clock, int, float]] = {}

    def saw(self, stream: int, batch: EventBatch) -> None:
        """A stream brought events."""
        newest = int(batch.time.max())
        before = self._seen.get(stream)
        if before is None or newest >= before[1]:
            self._seen[stream] = batch.clock, newest, self._now()

    def time(self, stream: int) -> tuple[Clock, int] | None:
        """Before what time an idle stream's events would be late; None if there was no event yet."""
        if stream not in self._seen:
            return None
        clock, newest, at = self._seen[stream]
        gone = timedelta(seconds=max(0.0, self._now() - at))
        return clock, max(clock.least, newest + (gone - self._lateness) // clock.unit)
