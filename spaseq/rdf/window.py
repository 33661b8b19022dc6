"""The rdflib store ``spaseq-window``: the events in a query's current window, as named graphs.

::

    window = Dataset(store="spaseq-window")
    window.open("falls")                     # the name of a service that spaseq.rdf.register made

The events of the query's streams are its named graphs; the default graph has the ``prov:generatedAtTime`` and
the stream (``dcterms:isPartOf``) of each. The window is the query's WITHIN, up to the newest event or the
stream's time if that is later. It shows events from the registration of the service on, whenever the store is
opened.
"""

from __future__ import annotations

import threading
import warnings
from collections import deque
from collections.abc import Generator, Iterator
from dataclasses import dataclass

import numpy as np
from rdflib.graph import DATASET_DEFAULT_GRAPH_ID, Graph
from rdflib.store import VALID_STORE
from rdflib.term import Node

from spaseq.errors import EngineError, SpaseqWarning
from spaseq.events import EARLIEST, Clock, EventBatch
from spaseq.language.syntax import Window
from spaseq.matching.model import Ints, StreamWindow, stream_window
from spaseq.rdf._quads import Pattern, Quad, QuadStore, Triple
from spaseq.rdf.description import GENERATED_AT, PART_OF, event_name, time_literal
from spaseq.rdf.services import SCHEME, SERVICES, ServiceEntry, hint
from spaseq.results.event import event
from spaseq.terms.interop import to_rdflib


@dataclass(frozen=True, slots=True)
class _BatchPart:
    """A batch of events, the first at position ``start``, and their ``places`` on the window's axis."""

    start: int
    batch: EventBatch
    places: Ints


class Recent:
    """The events in a window, as batches of columns. A service keeps them, read or not.

    An engine adds events while other threads read.
    """

    def __init__(self, window: Window) -> None:
        self._declared = window
        self._window: StreamWindow | None = None
        self._parts: deque[_BatchPart] = deque()
        self._count = 0
        self._lock = threading.Lock()

    def add(self, batch: EventBatch) -> None:
        """Add the next events, in processing order; remove events that left the window."""
        with self._lock:
            if self._window is None:
                self._window = stream_window(self._declared, batch.clock is Clock.TICKS, int(batch.time[0]))
            part = _BatchPart(self._count, batch, self._window.places(batch, self._count))
            self._count += len(batch)
            self._parts.append(part)
            self._drop(int(part.places[-1]))

    def now(self, time: int | None) -> list[tuple[int, EventBatch, int]]:
        """Return the events in the window at ``time`` or the newest event: position, batch, index in it."""
        with self._lock:
            if self._window is None or not self._parts:
                return []
            place = int(self._parts[-1].places[-1])
            if time is not None and not self._window.counted:
                place = max(place, time if self._window.sliding else self._window.index(time))
            self._drop(place)
            oldest = max(EARLIEST, place - self._window.reach)
            return [
                (part.start + i, part.batch, i)
                for part in self._parts
                for i in range(int(np.searchsorted(part.places, oldest)), len(part.batch))
            ]

    def clear(self) -> None:
        """Remove everything."""
        with self._lock:
            self._parts.clear()

    def _drop(self, place: int) -> None:
        assert self._window is not None
        while self._parts and self._parts[0].places[-1] < place - self._window.reach:
            self._parts.popleft()


class WindowStore(QuadStore):
    """A read-only store: writing raises EngineError."""

    def __init__(self, configuration: str | None = None, identifier: Node | None = None) -> None:
        self._name: str | None = None
        self._service: ServiceEntry | None = None
        # The positions of the events that are shown.
        self._shown: deque[int] = deque()
        self._lock = threading.Lock()
        super().__init__(configuration, identifier)

    def open(self, configuration: str | tuple[str, str], create: bool = False) -> int:  # noqa: ARG002
        """Show the window of the service of that name; if there is none yet, show nothing and warn.

        Raises EngineError if the store shows one already.
        """
        if self._name is not None:
            raise EngineError("this store shows a window already: close it first, or make another Dataset")
        self._name = str(configuration).removeprefix(SCHEME)
        if self._name not in SERVICES:
            message = f"no query is registered as {self._name!r}, so its window is empty: {hint(self._name)}"
            warnings.warn(message, SpaseqWarning, stacklevel=3)
        return VALID_STORE

    def close(self, commit_pending_transaction: bool = False) -> None:  # noqa: ARG002
        """Show nothing any more."""
        self._name = None

    def triples(
        self, triple_pattern: Pattern, context: Graph | None = None
    ) -> Iterator[tuple[Triple, Iterator[Graph]]]:
        """Yield the triples of a pattern, in one graph or in all, each with its graphs."""
        self._look()
        return super().triples(triple_pattern, context)

    def contexts(self, triple: Pattern | None = None) -> Generator[Graph, None, None]:
        """Yield the graphs, or only the graphs of a triple."""
        self._look()
        return super().contexts(triple)

    def __len__(self, context: Graph | None = None) -> int:
        self._look()
        return super().__len__(context)

    def _look(self) -> None:
        """Show the current window."""
        with self._lock:
            self.mend()
            service = None if self._name is None else SERVICES.get(self._name)
            if service is not self._service:
                self._hide(None)
                self._service = service
            if service is None:
                return
            found = service.window()
            self._hide(found[0][0] if found else None)
            known = self._shown[-1] if self._shown else -1
            for position, batch, index in found:
                if position > known:
                    self.put(position, event_quads(batch, index))
                    self._shown.append(position)

    def _hide(self, before: int | None) -> None:
        """Hide the events before a position; None: all events."""
        while self._shown and (before is None or self._shown[0] < before):
            self.take(self._shown[0])
            self._shown.popleft()


def event_quads(batch: EventBatch, index: int) -> tuple[Quad, ...]:
    """Return an event as a named graph, with its time and its stream in the default graph."""
    term = batch.dictionary.term
    shown = event(batch, index, lambda identifier: to_rdflib(term(identifier)))
    name = event_name(shown)
    quads: list[Quad] = [(triple, name) for triple in shown.triples()]
    quads.append(((name, GENERATED_AT, time_literal(shown.time)), DATASET_DEFAULT_GRAPH_ID))
    quads.append(((name, PART_OF, shown.stream), DATASET_DEFAULT_GRAPH_ID))
    return tuple(quads)
