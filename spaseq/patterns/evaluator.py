"""A GPM's stateless part, evaluated on batches of events; the entry point of the package."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Final

import numpy as np
from pyoxigraph import Literal, NamedNode

from spaseq.alone import Single
from spaseq.errors import KnowledgeError, LimitError
from spaseq.events import Clock, EventBatch, Ids
from spaseq.language.scope import occurring, variables
from spaseq.language.syntax import Gpm, Graph, Group
from spaseq.patterns.algebra import Row, Rows
from spaseq.patterns.expressions.compiled import ExistsCallback
from spaseq.patterns.expressions.walk import exists_in, expressions, patterns
from spaseq.patterns.oxigraph import BackgroundGraphs, General, prepare
from spaseq.patterns.sharing import (
    FEW_TRIPLES,
    ByEvent,
    PatternPart,
    Sharing,
    Values,
    graphs,
    question,
    renamed_columns,
    renamed_rows,
)
from spaseq.patterns.spectra.joins import NO_CONTEXT, Route, Spectra, Views, covers, exists_on
from spaseq.patterns.spectra.rowwise import Facts, NotByRows, Rowwise
from spaseq.patterns.spectra.single import SingleJoin, joined
from spaseq.patterns.spectra.solutions import UNIT, Solutions, from_rows, union
from spaseq.terms.dictionary import UNBOUND, Dictionary
from spaseq.terms.values import DATETIME_TYPE, XSD

#: The limits of one event.
_OF_ONE: Final = frozenset({"solutions", "event_seconds"})
_NO_EVENTS: Final[Ids] = np.zeros(0, dtype=np.int64)
_INTEGER_TYPE = NamedNode(XSD + "integer")


class GpmEvaluator:
    """Evaluates one GPM without its correlated filters (semantics, section 3).

    ``stateless`` is the GPM's pattern without these filters (``language.scope.split``). ``streams`` are the
    ids of the streams on which the GPM is defined, None for any. All GPMs that get the same batches use one
    ``sharing``. ``route`` is ``"spectra"`` or ``"general"``; ``reason`` says why. Raises ``KnowledgeError``
    if the pattern has a GRAPH and there is no knowledge base.
    """

    def __init__(
        self,
        gpm: Gpm,
        stateless: Group,
        dictionary: Dictionary,
        kb: BackgroundGraphs | None = None,
        streams: frozenset[int] | None = None,
        sharing: Sharing | None = None,
    ) -> None:
        if kb is None and any(isinstance(inner, Graph) for inner in patterns(gpm.pattern)):
            raise KnowledgeError(f"GPM {gpm.name} asks a background graph, and none was supplied")
        self._time = None if gpm.time is None else gpm.time.name
        self._graph = None if gpm.graph is None else gpm.graph.name
        self._dictionary = dictionary
        self._kb = kb
        #: The ids of the streams it is evaluated on, None for any.
        self.streams = streams
        self._sharing = sharing or Sharing()
        self._prepared: dict[Group, Route] = {}
        self._names = sorted(variables(stateless) | {n for n in (self._time, self._graph) if n})
        asked = question(gpm, stateless)
        #: Equal for GPMs with equal patterns up to variables' names; ``names`` are the variables in the order
        #: of the solutions.
        self.number = self._sharing.number((asked.key, streams, kb))
        self.names = asked.names
        reason = covers(stateless) or self._event_in_graph(stateless)
        self.route = "spectra" if reason is None else "general"
        self.reason = reason or "joins of views cover the pattern"
        self._plan: Spectra | General
        self._rowwise: Rowwise | None = None
        bare = self._time is self._graph is None
        #: The pattern, if it only joins an event's triples and background graphs and filters the result.
        self.join: SingleJoin | None = None
        if reason is None:
            self._plan = Spectra(stateless, dictionary, kb)
            self.join = joined(stateless, self.names, dictionary, kb) if bare else None
            with suppress(NotByRows):
                bound = frozenset() if self._time is None else frozenset([self._time])
                self._rowwise = Rowwise(stateless, dictionary, kb, bound)
        else:
            self._plan = General(stateless, dictionary, kb)
            # The row-wise matcher cannot start a path that may take no step at a variable that EXISTS
            # replaces.
            asks = any(exists_in(expression) for expression in expressions(stateless))
            if bare and not asks and covers(stateless, is_few=True) is None:
                with suppress(NotByRows):
                    self._rowwise = Rowwise(stateless, dictionary, kb)

    def evaluate(self, batch: EventBatch) -> Solutions:
        """Return the solutions of each event of the GPM's streams. ``event`` is the position in ``batch``."""
        shared = self._sharing.of(batch)
        known = shared.columns.get(self.number)
        if known is not None:
            return renamed_columns(known[1], known[0], self.names)
        if shared.few and self._rowwise is not None:
            found = from_rows(self._names, self.by_event(batch))
        else:
            found = self._by_columns(shared.part(self.streams))
        shared.columns[self.number] = self.names, found
        return found

    def by_event(self, batch: EventBatch) -> ByEvent:
        """Return the solutions of each event that has some."""
        shared = self._sharing.of(batch)
        known = shared.rows.get(self.number)
        if known is not None:
            return renamed_rows(known[1], known[0], self.names)
        if shared.few and self._rowwise is not None:
            of_events = self._by_rows(batch, shared.events, self._rowwise)
            found = {event: tuple(rows) for event, rows in of_events.items()}
        else:
            found = self.evaluate(batch).by_event()
        shared.rows[self.number] = self.names, found
        return found

    @property
    def is_for_one(self) -> bool:
        """Whether ``of_one`` may be called."""
        return self._rowwise is not None

    def of_one(self, event: Single) -> Values | None:
        """Return the solutions of a single event, their values in the order of ``names``; None for a large
        event.
        """
        shared = self._sharing.of(event)
        found = shared.values.get(self.number)
        if found is None and shared.few and self._rowwise is not None:
            rows = self._by_rows(event, shared.events, self._rowwise).get(0, ())
            found = shared.values[self.number] = self._in_order(rows)
        return found

    def _in_order(self, rows: Sequence[Row]) -> Values:
        """Return solutions in the order of ``names``."""
        names = self.names
        return tuple([tuple([row.get(name, UNBOUND) for name in names]) for row in rows])

    def _by_columns(self, part: PatternPart) -> Solutions:
        found = self._of_batch(part.batch, part.views)
        if part.positions is None:
            return found
        return Solutions(len(found), part.positions[found.events], found.columns)

    def _of_batch(self, batch: EventBatch, views: Views | None = None) -> Solutions:
        """Return the solutions of some events.

        The limits are those of one event. If all events together exceed a limit, each half of them is
        evaluated by itself.
        """
        spending = self._dictionary.spending
        try:
            return self._of_all(batch, views)
        except LimitError as error:
            if len(batch) < 2 or error.limit not in _OF_ONE:
                raise
        halves = []
        for begin, end in ((0, len(batch) // 2), (len(batch) // 2, len(batch))):
            spending.restart()
            half = self._of_batch(batch.take(np.arange(begin, end)))
            halves.append(Solutions(len(half), half.events + begin, half.columns))
        spending.size(sum(map(len, halves)), len(halves[0].columns) + 1)
        return union(halves, _NO_EVENTS)

    def _of_all(self, batch: EventBatch, views: Views | None) -> Solutions:
        initial = self._event_columns(batch)
        if self.route == "general" and self._rowwise is not None and _is_of_small(batch):
            return from_rows(self._names, self._by_rows(batch, graphs(batch), self._rowwise))
        if isinstance(self._plan, Spectra):
            found = self._plan.evaluate(batch, NO_CONTEXT, initial, views)
        else:
            found = self._plan.evaluate(batch, NO_CONTEXT, initial)
        return found.everywhere(np.arange(len(batch)), self._dictionary.spending)

    def _by_rows(
        self, batch: EventBatch, events: Iterable[tuple[int, Facts]], rowwise: Rowwise
    ) -> dict[int, Rows]:
        """Return the solutions of each event that has some; ``events`` are the streams and graphs of all."""
        found: dict[int, Rows] = {}
        for event, (stream, facts) in enumerate(events):
            if self.streams is None or stream in self.streams:
                if event:
                    self._dictionary.spending.restart()
                rows = rowwise.rows(facts, self._ambient(batch, event))
                if len(rows) > 1 and self.route == "general":
                    # In the order of that route: walks have none.
                    rows.sort(key=lambda row: [row.get(name, UNBOUND) for name in self._names])
                if rows:
                    found[event] = rows
        return found

    def _ambient(self, batch: EventBatch, event: int) -> Row:
        """Return the values of the variables of AT and AS."""
        ambient: Row = {}
        if self._time is not None:
            moment = time_literal(int(batch.time[event]), batch.clock)
            ambient[self._time] = self._dictionary.intern(moment)
        if self._graph is not None and batch.graph[event] != UNBOUND:
            ambient[self._graph] = int(batch.graph[event])
        return ambient

    def exists(self, batch: EventBatch, event: int) -> ExistsCallback:
        """Return the callback that decides EXISTS in a correlated filter: on this event's graph and the
        knowledge base.
        """
        return exists_on(batch, event, self._prepare)

    def _prepare(self, pattern: Group) -> Route:
        found = self._prepared.get(pattern)
        if found is None:
            found = self._prepared[pattern] = prepare(pattern, self._dictionary, self._kb)
        return found

    def _event_in_graph(self, pattern: Group) -> str | None:
        """Return why the pattern needs the general route, if a GRAPH in it depends on the event's time or
        graph.

        The knowledge base is evaluated once for all events, so that it cannot depend on the event.
        """
        names = {self._time, self._graph}
        if any(isinstance(inner, Graph) and names & occurring(inner) for inner in patterns(pattern)):
            return "the event's time or graph in a GRAPH pattern"
        return None

    def _event_columns(self, batch: EventBatch) -> Solutions:
        """Return one row per event: its time as a literal, and its graph's name."""
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


def _is_of_small(batch: EventBatch) -> bool:
    """Return whether no event has many triples.

    Walking a path in events of four triples takes 9 to 21 µs of CPU an event; Oxigraph takes 34 to 47.
    """
    return int(np.diff(batch.offset).max(initial=0)) <= FEW_TRIPLES


def time_literal(time: int, clock: Clock) -> Literal:
    """Return an event's time as AT binds it: ``xsd:dateTime`` in UTC, ``xsd:integer`` for ticks.

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


# Literals outside their datatype's lexical space lose matches: they are reported with stream and predicate.

#: A stream and a predicate, as N-Triples terms.
Where = tuple[str, str]


class IllTyped:
    """Finds, for each stream and predicate, the first literal that a filter could not read.

    If a filter reads ``"14,0"^^xsd:decimal``, SPARQL has an error, so the event does not match.
    """

    def __init__(self, dictionary: Dictionary) -> None:
        self._dictionary = dictionary
        self._reported: set[Where] = set()

    def found(self, batch: EventBatch) -> dict[Where, str]:
        """Return a warning for each new place of ill-typed literals that were read since the last call.

        Must be called with the batch that was evaluated since then.
        """
        ids, self._dictionary.ill_typed = self._dictionary.ill_typed, set()
        warnings: dict[Where, str] = {}
        term = self._dictionary.term
        for row in np.flatnonzero(np.isin(batch.o, list(ids))).tolist():
            event = int(np.searchsorted(batch.offset, row, side="right")) - 1
            where = str(term(int(batch.stream[event]))), str(term(int(batch.p[row])))
            if where not in self._reported:
                self._reported.add(where)
                warnings[where] = (
                    f"{where[0]}, event {batch.n[event] + 1}: {where[1]} is {term(int(batch.o[row]))}, which "
                    "is ill-typed: a FILTER that reads it is an error, so its event does not match (further "
                    "ones of this predicate are not reported)"
                )
        return warnings
