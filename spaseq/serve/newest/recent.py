"""The last events of each stream, kept to run queries over them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyoxigraph as ox

from spaseq.engine import Engine
from spaseq.events import EventBatch, concatenate
from spaseq.patterns.kb import KnowledgeBase
from spaseq.terms.dictionary import UNBOUND

#: The most events of each stream for a query, and the most triples unless the newest event has more.
EVENTS: Final = 2_000
TRIPLES: Final = 40_000

#: Triples kept per event that may be kept.
_TRIPLES: Final = 20

#: The most streams kept; a further stream replaces the one that was silent longest.
STREAMS: Final = 100

#: How many small batches are merged to one.
_PARTS: Final = 64


class RecentEvents:
    """The last events of each stream. The engine owns it: all calls are made in one of its turns."""

    def __init__(
        self,
        events: int = EVENTS,
        triples: int | None = None,
        streams: int = STREAMS,
        *,
        forgot: bool = False,
    ) -> None:
        """Keep ``events`` and ``triples`` of each stream. ``forgot``: there may have been earlier events."""
        self._events = events
        self._triples = events * _TRIPLES if triples is None else triples
        self._streams = streams
        self._forgot = forgot
        # By stream, the stream with the newest event last; each batch is of one stream.
        self._kept: dict[int, deque[EventBatch]] = {}
        self._cut: set[int] = set()

    def add(self, batch: EventBatch) -> None:
        """Add the next events of a stream, in the order of arrival."""
        if not len(batch):
            return
        stream = batch.stream.item(0)
        if stream not in self._kept and self._forgot:
            self._cut.add(stream)
        parts = self._kept.pop(stream, None) or deque()
        if parts and parts[-1].clock is not batch.clock:
            parts.clear()  # no query can read events of both clocks
        self._kept[stream] = parts
        parts.append(fitting := self._fitting(batch))
        if len(fitting) < len(batch):
            self._cut.add(stream)
        small = list(parts)[-_PARTS:]
        if len(small) == _PARTS and all(len(part) < _PARTS for part in small):
            for _ in small:
                parts.pop()
            parts.append(concatenate(small))
        if self._trim(parts):
            self._cut.add(stream)
        if len(self._kept) > self._streams:
            oldest = next(iter(self._kept))
            del self._kept[oldest]
            self._cut.discard(oldest)
            self._forgot = True

    def _fitting(self, batch: EventBatch) -> EventBatch:
        """Return the last events of a batch, as many as may be kept, but at least one."""
        begin = max(0, len(batch) - self._events)
        enough = int(np.searchsorted(batch.offset, batch.offset[-1] - self._triples, side="left"))
        begin = min(max(begin, enough), len(batch) - 1)
        return batch if begin == 0 else batch.take(np.arange(begin, len(batch)))

    def _trim(self, parts: deque[EventBatch]) -> bool:
        """Drop the oldest batches while the others suffice: at most twice the limit is kept."""
        spare = len(parts) - _enough(parts, self._events, self._triples)
        for _ in range(spare):
            parts.popleft()
        return spare > 0

    def of(
        self, streams: Sequence[str], events: int | None = None, triples: int = TRIPLES
    ) -> dict[str, list[EventBatch]]:
        """Return the events of these streams, by IRI, as a snapshot.

        With ``events``, return only the newest batches of each stream: enough for ``events`` events or for
        ``triples`` triples, whichever takes fewer batches.
        """
        found: dict[str, list[EventBatch]] = {iri: [] for iri in streams}
        for stream, parts in self._kept.items():
            iri = parts[0].dictionary.term(stream).value
            if iri in found:
                last = len(parts) if events is None else _enough(parts, events, triples)
                found[iri] = list(parts)[-last:]
        return found

    def cut(self, streams: Sequence[str]) -> frozenset[str]:
        """Return the streams that may have had earlier events that are no longer kept."""
        whole = {parts[0].dictionary.term(s).value for s, parts in self._kept.items() if s not in self._cut}
        known = {parts[0].dictionary.term(s).value for s, parts in self._kept.items()}
        return frozenset(iri for iri in streams if iri not in whole and (self._forgot or iri in known))


def _enough(parts: Sequence[EventBatch], most_events: int, most_triples: int) -> int:
    """Return how many of the newest batches are enough for so many events, or for so many triples."""
    events = triples = 0
    for count, part in enumerate(reversed(parts), 1):
        events, triples = events + len(part), triples + len(part.p)
        if events >= most_events or triples >= most_triples:
            return count
    return len(parts)


def now(
    engine: Engine, recent: RecentEvents, streams: Sequence[str]
) -> tuple[dict[str, list[EventBatch]], KnowledgeBase]:
    """Return the last events of streams and the background graphs, in the engine's turn."""
    engine.turn.flush()
    return recent.of(streams, EVENTS), engine.kb.unshared()


@dataclass(frozen=True, slots=True)
class KeptEvent:
    """One of the last events of a stream: its batch and index."""

    stream: str
    batch: EventBatch
    index: int

    @property
    def time(self) -> int:
        """Return the time on the clock of the batch."""
        return self.batch.time.item(self.index)

    @property
    def triples(self) -> int:
        """Return the number of triples."""
        return self.batch.offset.item(self.index + 1) - self.batch.offset.item(self.index)

    @property
    def name(self) -> ox.NamedNode | None:
        """Return the name of its graph, if that is an IRI."""
        graph = self.batch.graph.item(self.index)
        name = None if graph == UNBOUND else self.batch.dictionary.term(graph)
        return name if isinstance(name, ox.NamedNode) else None

    def terms(self) -> Iterator[ox.Triple]:
        """Yield its triples."""
        term: Callable[[int], Any] = self.batch.dictionary.term
        for s, p, o in self.batch.triples(self.index):
            yield ox.Triple(term(s), term(p), term(o))

    def push(self, engine: Engine) -> None:
        """Push it into another engine, which has its own dictionary."""
        name = None if self.name is None else self.name.value
        engine.push(self.stream, self.terms(), self.batch.clock.show(self.time), name)


def in_order(events: dict[str, list[EventBatch]]) -> list[KeptEvent]:
    """Return the events of all streams by time, then in the order of the streams, then of arrival."""
    every = [
        KeptEvent(stream, part, index)
        for stream, parts in events.items()
        for part in parts
        for index in range(len(part))
    ]
    return sorted(every, key=lambda kept: kept.time)
