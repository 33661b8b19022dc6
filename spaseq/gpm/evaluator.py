"""The door of this room: a GPM's stateless part, evaluated on batches of events."""

from __future__ import annotations

import numpy as np
from pyoxigraph import Literal, NamedNode

from spaseq.errors import KnowledgeError
from spaseq.events import Clock, EventBatch, Ids
from spaseq.gpm.expressions import ExistsCallback
from spaseq.gpm.general import Background, General
from spaseq.gpm.routes import prepare
from spaseq.gpm.solutions import UNIT, Solutions
from spaseq.gpm.spectra import NO_CONTEXT, Route, Spectra, covers, exists_on
from spaseq.gpm.walk import patterns
from spaseq.language.scope import occurring
from spaseq.language.syntax import Gpm, Graph, Group
from spaseq.terms import Dictionary
from spaseq.values import DATETIME_TYPE, XSD

_INTEGER_TYPE = NamedNode(XSD + "integer")


class GpmEvaluator:
    """Evaluates one GPM, without its correlated filters (semantics, section 3).

    ``stateless`` is the GPM's pattern without them (``language.scope.split``), ``streams`` the ids of
    the streams it is defined on, None for any. ``route`` is ``"spectra"`` or ``"general"``; ``reason``
    says why. Raises ``KnowledgeError`` if the pattern has a GRAPH and there is no knowledge base.
    """

    def __init__(
        self,
        gpm: Gpm,
        stateless: Group,
        dictionary: Dictionary,
        kb: Background | None = None,
        streams: frozenset[int] | None = None,
    ) -> None:
        if kb is None and any(isinstance(inner, Graph) for inner in patterns(gpm.pattern)):
            raise KnowledgeError(f"GPM {gpm.name} asks a background graph, and none was supplied")
        self._time = None if gpm.time is None else gpm.time.name
        self._graph = None if gpm.graph is None else gpm.graph.name
        self._dictionary = dictionary
        self._kb = kb
        self._streams = None if streams is None else np.array(sorted(streams), dtype=np.int64)
        self._prepared: dict[Group, Route] = {}
        reason = covers(stateless) or self._event_in_graph(stateless)
        self.route = "spectra" if reason is None else "general"
        self.reason = reason or "joins of views cover the pattern"
        route = Spectra if reason is None else General
        self._plan: Route = route(stateless, dictionary, kb)

    def evaluate(self, batch: EventBatch) -> Solutions:
        """The solutions of every event of the GPM's streams; ``event`` counts in ``batch``."""
        positions: Ids = np.arange(len(batch))
        if self._streams is not None:
            positions = np.flatnonzero(np.isin(batch.stream, self._streams))
        part = batch if len(positions) == len(batch) else batch.take(positions)
        found = self._plan.evaluate(part, NO_CONTEXT, self._event_columns(part))
        found = found.everywhere(np.arange(len(part)))
        assert found.event is not None
        return Solutions(len(found), positions[found.event], found.columns)

    def exists(self, batch: EventBatch, event: int) -> ExistsCallback:
        """What decides EXISTS in a correlated filter: on this event's graph and the knowledge base."""
        return exists_on(batch, event, self._prepare)

    def _prepare(self, pattern: Group) -> Route:
        found = self._prepared.get(pattern)
        if found is None:
            found = self._prepared[pattern] = prepare(pattern, self._dictionary, self._kb)
        return found

    def _event_in_graph(self, pattern: Group) -> str | None:
        """The knowledge base is asked once for all events: it cannot depend on the event."""
        names = {self._time, self._graph}
        if any(isinstance(inner, Graph) and names & occurring(inner) for inner in patterns(pattern)):
            return "the event's time or graph in a GRAPH pattern"
        return None

    def _event_columns(self, batch: EventBatch) -> Solutions:
        """One row per event: its time as a literal, and its graph's name."""
        columns: dict[str, Ids] = {}
        if self._time is not None:
            columns[self._time] = self._times(batch)
        if self._graph is not None:
            columns[self._graph] = batch.graph
        return Solutions(len(batch), np.arange(len(batch)), columns) if columns else UNIT

    def _times(self, batch: EventBatch) -> Ids:
        moments, inverse = np.unique(batch.time, return_inverse=True)
        ids = [self._dictionary.intern(time_literal(moment, batch.clock)) for moment in moments.tolist()]
        return np.array(ids, dtype=np.int64)[inverse]


def time_literal(time: int, clock: Clock) -> Literal:
    """An event's time as AT binds it: ``xsd:dateTime`` in UTC, ``xsd:integer`` for ticks.

    >>> time_literal(1_700_000_000_500_000, Clock.INSTANTS).value
    '2023-11-14T22:13:20.5Z'
    """
    if clock is Clock.TICKS:
        return Literal(str(time), datatype=_INTEGER_TYPE)
    seconds, fraction = divmod(time, 1_000_000)
    text = str(np.datetime64(seconds, "s"))
    if fraction:
        text += f".{fraction:06d}".rstrip("0")
    return Literal(text + "Z", datatype=DATETIME_TYPE)
