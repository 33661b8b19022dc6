"""Reading several sources side by side, always the one that holds the others back."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import suppress
from datetime import timedelta

from spaseq.connect import Live
from spaseq.events import BEGINNING, Clock, EventBatch

#: What happened to one stream: a batch of its events, or None when it has ended, or IDLE.
Step = tuple[int, EventBatch | object | None]


def in_turn(
    sources: Mapping[int, Iterator[EventBatch]], newest: dict[int, int] | None = None
) -> Generator[Step, None, None]:
    """Batches of several sources, each time from the one whose newest event is the oldest.

    Sources are keyed by their stream; each ends with a ``None``. Reading waits for the source it needs.
    ``newest``: the times of events that were read before.
    """
    newest = dict.fromkeys(sources, BEGINNING) if newest is None else newest
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
        self._source = source
        self._ready: queue.Queue[EventBatch | BaseException | None] = queue.Queue(maxsize=4)
        self._is_over = threading.Event()
        self.waiting_since = time.monotonic()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        last: BaseException | None = None
        try:
            for batch in self._source:
                self._put(batch)
                if self._is_over.is_set():
                    break
        except BaseException as error:  # handed to the reading side, which raises it
            last = error
        finally:
            close(self._source)
        self._put(last)

    def _put(self, item: EventBatch | BaseException | None) -> None:
        while not self._is_over.is_set():
            with suppress(queue.Full):
                self._ready.put(item, timeout=0.1)
                return

    def take(self, patience: float) -> EventBatch | None:
        """The next batch, None at the end; ``queue.Empty`` when nothing comes within ``patience`` s."""
        item = self._ready.get(timeout=patience) if patience else self._ready.get_nowait()
        if not isinstance(item, EventBatch) or len(item):
            self.waiting_since = time.monotonic()
        if isinstance(item, BaseException):
            raise item
        return item

    def close(self) -> None:
        """Ends the thread: a live source at once; one that reads a file or a pipe after the read in hand."""
        self._is_over.set()
        if isinstance(self._source, Live):
            self._source.close()
            self._thread.join()


def close(source: Iterator[EventBatch]) -> None:
    """Ends a source that nobody reads any more, and what it has opened."""
    if isinstance(source, Live | Generator):
        with suppress(ValueError):  # a thread waits inside for a pipe or a file, and ends it then
            source.close()


#: Marks a stream that has gone idle, until its next batch.
IDLE = object()


def with_idle(
    sources: Mapping[int, Iterator[EventBatch]], idle: timedelta, *, beats: bool
) -> Generator[Step, None, None]:
    """As ``in_turn``, but a source that brings nothing for ``idle`` does not keep the others waiting.

    Then ``(stream, IDLE)`` says so, with ``beats`` again and again; its next batch says that it is back.
    """
    limit = idle.total_seconds()
    readers = {stream: _Reader(source) for stream, source in sources.items()}
    newest = dict.fromkeys(sources, BEGINNING)
    resting: set[int] = set()
    try:
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
                if batch is None or len(batch):
                    resting.discard(stream)
                if batch is None:
                    del newest[stream]
                elif len(batch):
                    newest[stream] = max(newest[stream], int(batch.time.max()))
                yield stream, batch
    finally:
        for reader in readers.values():
            reader.close()


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
