"""The rdflib store ``spaseq-window``: what is in a query's window now, as named graphs.

::

    window = Dataset(store="spaseq-window")
    window.open("falls")                     # the name of a service that spaseq.rdf.register made

The events of the query's streams, from then on, are its named graphs; the default graph says the
``prov:generatedAtTime`` and the stream (``dcterms:isPartOf``) of each. The window is the query's WITHIN, as
it lies at the newest event.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from rdflib.graph import DATASET_DEFAULT_GRAPH_ID
from rdflib.store import VALID_STORE
from rdflib.term import Node

from spaseq.engine import Handle
from spaseq.errors import EngineError
from spaseq.events import microseconds
from spaseq.language.syntax import Query
from spaseq.matching.model import Bounds, bounds
from spaseq.rdf._quads import Quad, QuadStore
from spaseq.rdf.description import event_name, time_literal
from spaseq.rdf.hook import SCHEME, SERVICES
from spaseq.rdf.vocabulary import GENERATED_AT, PART_OF
from spaseq.results.match import Match


@dataclass(frozen=True, slots=True)
class _Shown:
    """An event in the window: where it lies on the axis that the window measures, and its quads."""

    at: int
    quads: tuple[Quad, ...]


class WindowStore(QuadStore):
    """Read-only: whatever writes to it raises EngineError."""

    def __init__(self, configuration: str | None = None, identifier: Node | None = None) -> None:
        self._query: Query | None = None
        self._handle: Handle | None = None
        self._bounds: Bounds | None = None
        self._count = 0
        self._shown: deque[_Shown] = deque()
        super().__init__(configuration, identifier)

    def open(self, configuration: str | tuple[str, str], create: bool = False) -> int:  # noqa: ARG002
        """Shows the window of the service of that name; EngineError if there is none, or one is open."""
        name = str(configuration).removeprefix(SCHEME)
        service = SERVICES.get(name)
        if service is None:
            raise EngineError(
                f"no query is registered as {name!r}, whose window could be shown: use spaseq.rdf.register; "
                f"there are now: {', '.join(SERVICES) or 'none'}"
            )
        if self._handle is not None:
            raise EngineError("this store shows a window already: close it first, or make another Dataset")
        self._query = service.query
        self._handle = service.engine.register(_every_event(service.query), on_match=self._add)
        return VALID_STORE

    def close(self, commit_pending_transaction: bool = False) -> None:  # noqa: ARG002
        """Shows nothing any more."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = self._bounds = None
        while self._shown:
            self.take(self._shown.popleft().quads)

    def _add(self, match: Match) -> None:
        assert self._query is not None
        ((event,),) = match.events.values()
        ticks = isinstance(event.time, int)
        time = event.time if isinstance(event.time, int) else microseconds(event.time)
        if self._bounds is None:
            self._bounds = bounds(self._query.window, ticks, time)
        at = self._count if self._bounds.counted else time
        self._count += 1
        name = event_name(event)
        quads: list[Quad] = [((s, p, o), name) for s, p, o in event.triples()]
        quads.append(((name, GENERATED_AT, time_literal(event.time)), DATASET_DEFAULT_GRAPH_ID))
        quads.append(((name, PART_OF, event.stream), DATASET_DEFAULT_GRAPH_ID))
        self._shown.append(_Shown(at, tuple(quads)))
        self.put(quads)
        while not _together(self._bounds, self._shown[0].at, at):
            self.take(self._shown.popleft().quads)


def _together(window: Bounds, first: int, last: int) -> bool:
    return last - first <= window.size if window.sliding else window.index(first) == window.index(last)


def _every_event(query: Query) -> str:
    """A query that each event of the same streams matches by itself."""
    streams = list(dict.fromkeys(declaration.iri.value for declaration in query.streams))
    declared = " ".join(f"FROM STREAM S{n} <{iri}>" for n, iri in enumerate(streams))
    names = ", ".join(f"S{n}" for n in range(len(streams)))
    return (
        f"SELECT ?time WITHIN 1 EVENTS SLIDING {declared} "
        f"WHERE {{ SEQ(E) DEFINE GPM E ON {names} AT ?time {{}} }}"
    )
