"""The last events of each stream, kept to run queries over once more."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyoxigraph as ox

from spaseq.engine import Engine
from spaseq.events import EventBatch, concatenate
from spaseq.gpm.kb import KnowledgeBase
from spaseq.terms.dictionary import UNBOUND

#: A query is run over so many events of each stream, and so many triples if the newest event has fewer.
EVENTS: Final = 2_000
TRIPLES: Final = 40_000

#: So many triples are kept for each event that may be.
_TRIPLES: Final = 20

#: So many streams are kept; a further one takes the place of the one that was silent longest.
STREAMS: Final = 100

#: So many small batches are made one.
_PARTS: Final = 64


class Recent:
    """The last events of each stream. Its owner is the engine: all calls are made in one of its turns."""

    def __init__(
        self,
        events: int = EVENTS,
        triples: int | None = None,
        streams: int = STREAMS,
        *,
        forgot: bool = False,
    ) -> None:
        """``events`` and ``triples`` of each stream are kept; ``forgot``: there may have been others."""
        self._events = events
        self._triples = events * _TRIPLES if triples is None else triples
        self._streams = streams
        self._forgot = forgot
        # By stream, the one that had the newest event last; each batch is of one stream.
        self._kept: dict[int, deque[EventBatch]] = {}
        self._cut: set[int] = set()

    def add(self, batch: EventBatch) -> None:
        """The next events of a stream, in the order of arrival."""
        if not len(batch):
            return
        stream = batch.stream.item(0)
        if stream not in self._kept and self._forgot:
            self._cut.add(stream)
        parts = self._kept.pop(stream, None) or deque()
        if parts and parts[-1].clock is not batch.clock:
            parts.clear()  # no query can read both
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
        """The last events of a batch, as many as may be kept; one at least."""
        begin = max(0, len(batch) - self._events)
        enough = int(np.searchsorted(batch.offset, batch.offset[-1] - self._triples, side="left"))
        begin = min(max(begin, enough), len(batch) - 1)
        return batch if begin == 0 else batch.take(np.arange(begin, len(batch)))

    def _trim(self, parts: deque[EventBatch]) -> bool:
        """Forgets the oldest batches, as long as the others are enough: so at most twice as much is kept."""
        spare = len(parts) - _enough(parts, self._events, self._triples)
        for _ in range(spare):
            parts.popleft()
        return spare > 0

    def of(
        self, streams: Sequence[str], events: int | None = None, triples: int = TRIPLES
    ) -> dict[str, list[EventBatch]]:
        """The events of these streams, by IRI; they stay as they are, whatever comes.

        With ``events``, the newest batches that are enough for so many of each stream, or so many triples.
        """
        found: dict[str, list[EventBatch]] = {iri: [] for iri in streams}
        for stream, parts in self._kept.items():
            iri = parts[0].dictionary.term(stream).value
            if iri in found:
                last = len(parts) if events is None else _enough(parts, events, triples)
                found[iri] = list(parts)[-last:]
        return found

    def cut(self, streams: Sequence[str]) -> frozenset[str]:
        """Which of these streams may have had events that are no longer kept, before those that are."""
        whole = {parts[0].dictionary.term(s).value for s, parts in self._kept.items() if s not in self._cut}
        known = {parts[0].dictionary.term(s).value for s, parts in self._kept.items()}
        return frozenset(iri for iri in streams if iri not in whole and (self._forgot or iri in known))


def _enough(parts: Sequence[EventBatch], most_events: int, most_triples: int) -> int:
    """How many of the newest batches it takes to have so many events, or triples."""
    events = triples = 0
    for count, part in enumerate(reversed(parts), 1):
        events, triples = events + len(part), triples + len(part.s)
        if events >= most_events or triples >= most_triples:
            return count
    return len(parts)


def now(
    engine: Engine, recent: Recent, streams: Sequence[str]
) -> tuple[dict[str, list[EventBatch]], KnowledgeBase]:
    """The last events of streams and the background graphs as they are now; in the engine's turn."""
    engine.turn.flush()
    return recent.of(streams, EVENTS), engine.kb.unshared()


@dataclass(frozen=True, slots=True)
class Kept:
    """One of the last events of a stream: where it is."""

    stream: str
    batch: EventBatch
    index: int

    @property
    def time(self) -> int:
        """On the clock of the batch."""
        return self.batch.time.item(self.index)

    @property
    def triples(self) -> int:
        """How many it has."""
        return self.batch.offset.item(self.index + 1) - self.batch.offset.item(self.index)

    @property
    def name(self) -> ox.NamedNode | None:
        """The name of its graph, if that is an IRI."""
        graph = self.batch.graph.item(self.index)
        name = None if graph == UNBOUND else self.batch.dictionary.term(graph)
        return name if isinstance(name, ox.NamedNode) else None

    def terms(self) -> Iterator[ox.Triple]:
        """Its triples."""
        term: Callable[[int], Any] = self.batch.dictionary.term
        for s, p, o in self.batch.triples(self.index):
            yield ox.Triple(term(s), term(p), term(o))

    def push(self, engine: Engine) -> None:
        """Into another engine, which has a dictionary of its own."""
        name = None if self.name is None else self.name.value
        engine.push(self.stream, self.terms(), self.batch.clock.show(self.time), name)


def in_order(events: dict[str, list[EventBatch]]) -> list[Kept]:
    """The events of all streams by time; those of equal time in the order of the streams, and of arrival."""
    every = [
        Kept(stream, part, index)
        for stream, parts in events.items()
        for part in parts
        for index in range(len(part))
    ]
    return sorted(every, key=lambda kept: kept.time)
