"""Reading several sources side by side, always the one that holds the others back."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterator, Mapping
from datetime import timedelta

from spaseq.events import EventBatch

#: What happened to one stream: a batch of its events, or None when it has ended, or IDLE.
Step = tuple[int, EventBatch | None]


def in_turn(sources: Mapping[int, Iterator[EventBatch]]) -> Iterator[Step]:
    """Batches of several sources, each time from the one whose newest event is the oldest.

    Sources are keyed by their stream; each ends with a ``None``. Reading waits for the source it needs.
    """
    newest: dict[int, float] = dict.fromkeys(sources, float("-inf"))
    while newest:
        stream = min(newest, key=newest.__getitem__)
        batch = next(sources[stream], None)
        if batch is None:
            del newest[stream]
        elif len(batch):
            newest[stream] = max(newest[stream], float(batch.time.max()))
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


def with_idle(
    sources: Mapping[int, Iterator[EventBatch]], idle: timedelta
) -> Iterator[tuple[int, EventBatch | object | None]]:
    """As ``in_turn``, but a source that brings nothing for ``idle`` does not keep the others waiting.

    Then ``(stream, IDLE)`` says so; its next batch says that it is back.
    """
    limit = idle.total_seconds()
    readers = {stream: _Reader(source) for stream, source in sources.items()}
    newest: dict[int, float] = dict.fromkeys(sources, float("-inf"))
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
                continue
            resting.discard(stream)
            if batch is None:
                del newest[stream]
            elif len(batch):
                newest[stream] = max(newest[stream], float(batch.time.max()))
            yield stream, batch
