"""A match as users see it: its events, its rows, and the graph it constructs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np
import pyoxigraph as ox
import rdflib

from spaseq.alone import Single
from spaseq.events import Clock, EventBatch, Ids, Stamp
from spaseq.language.syntax import Query
from spaseq.terms.dictionary import UNBOUND, Dictionary, Term
from spaseq.terms.interop import RdflibTerm, from_rdflib, shown, to_rdflib

if TYPE_CHECKING:
    from spaseq.matching.columns.blocks.share import Moved
    from spaseq.results.batch import MatchBatch

#: A CONSTRUCT triple of one match.
ConstructedTriple = tuple[ox.NamedNode | ox.BlankNode, ox.NamedNode, Term]

#: Solutions as users see them.
Rows = list[dict[str, RdflibTerm]]


class TermView:
    """Terms as users see them, by id."""

    __slots__ = ("_named", "_term", "_written")

    def __init__(self, dictionary: Dictionary) -> None:
        self._written = dictionary.written
        self._term = dictionary.term
        # The IRIs of streams, by the ids that are read together; the ids are pinned.
        self._named: dict[tuple[int, ...], tuple[str, ...]] = {}

    def __call__(self, identifier: int) -> RdflibTerm:
        """Return the term of an id that is held."""
        return shown(self._written(identifier))

    def names(self, streams: Ids) -> tuple[str, ...]:
        """Return the IRIs of streams."""
        key = tuple(streams.tolist())
        if key not in self._named:
            self._named[key] = tuple([self._term(stream).value for stream in key])
        return self._named[key]


@dataclass(frozen=True, slots=True, order=True)
class Event:
    """An event that a match chose.

    ``time`` is a UTC datetime on a stream of instants, an int on a stream of ticks; ``n`` is the arrival
    number in the stream, from 0; ``graph`` is the name of the event's graph, None if it has none.
    """

    stream: rdflib.URIRef
    graph: RdflibTerm | None
    time: datetime | int
    n: int
    # Its batch, and its index there.
    _at: tuple[EventBatch, int] = field(compare=False, repr=False)

    def triples(self) -> rdflib.Graph:
        """Return the event's graph."""
        graph = rdflib.Graph(identifier=self.graph)
        batch, index = self._at
        term = batch.dictionary.term
        for s, p, o in batch.triples(index):
            graph.add((to_rdflib(term(s)), to_rdflib(term(p)), to_rdflib(term(o))))
        return graph

    def __reduce__(self) -> tuple[Callable[..., Event], tuple[Any, ...]]:
        """Pickle by terms, because ids have no meaning in other processes."""
        batch, index = self._at
        term = batch.dictionary.term
        terms = [term(i) for triple in batch.triples(index) for i in triple]
        graph = None if self.graph is None else from_rdflib(self.graph)
        return _event_again, (str(self.stream), graph, self.time, self.n, terms)

    def move(self, moved: Moved) -> None:
        """Move to a smaller batch, see ``cut_out``."""
        batch, index = self._at
        if id(batch) in moved:
            other, kept = moved[id(batch)]
            object.__setattr__(self, "_at", (other, int(np.searchsorted(kept, index))))


def event(batch: EventBatch, index: int, term: Callable[[int], RdflibTerm]) -> Event:
    """Return event ``index`` of a batch, as users see it."""
    graph = batch.graph.item(index)
    stream = term(batch.stream.item(index))
    assert isinstance(stream, rdflib.URIRef)
    return Event(
        stream=stream,
        graph=None if graph == UNBOUND else term(graph),
        time=batch.clock.show(batch.time.item(index)),
        n=batch.n.item(index),
        _at=(batch, index),
    )


class Match:
    """A match of a query (semantics, section 6).

    ``start`` and ``end`` are the times of its first and its last event: UTC datetimes, or ticks. ``events``
    lists the chosen events per GPM, in order; a GPM that chose none has an empty list. ``bindings`` are the
    rows of SELECT (for ASK and CONSTRUCT: all solutions), each from variable name to rdflib term, an unbound
    variable absent; ``variables`` are their columns, in order. ``partition`` has the values of the PARTITION
    BY variables.

    The engine's matches are views of a row of a ``MatchBatch``: each field is made on first access and
    cached. A kept match keeps its batch, and so the events of all matches there. Two matches are equal if all
    their fields are. They are not hashable, because fields are lists. A pickled match has all its fields, its
    query and its events' triples, and nothing of its engine.
    """

    # Made by the hundred thousand a second: plain slots, without a lookup of missing attributes.
    __slots__ = ("__weakref__", "_at", "_batch", "_bindings", "_events", "_known")
    _batch: MatchBatch | None
    _at: int
    _events: dict[str, list[Event]] | None
    _bindings: Rows | None
    #: The other fields, once they are made.
    _known: dict[str, Any] | None

    def __init__(
        self,
        query: Query,
        start: datetime | int,
        end: datetime | int,
        events: dict[str, list[Event]],
        variables: tuple[str, ...],
        bindings: Rows,
        partition: dict[str, RdflibTerm],
        constructed: Sequence[ConstructedTriple] = (),
    ) -> None:
        self._batch, self._at = None, 0
        self._events, self._bindings = events, bindings
        self._known = {
            "query": query,
            "start": start,
            "end": end,
            "variables": variables,
            "partition": partition,
            "constructed": constructed,
        }

    @property
    def query(self) -> Query:
        """Return the query, as prepared."""
        return cast("Query", self._field("query"))

    @property
    def start(self) -> datetime | int:
        """Return the time of its first event."""
        return cast("datetime | int", self._field("start"))

    @property
    def end(self) -> datetime | int:
        """Return the time of its last event."""
        return cast("datetime | int", self._field("end"))

    @property
    def events(self) -> dict[str, list[Event]]:
        """Return the chosen events per GPM, in order."""
        events = self._events
        if events is None:
            assert self._batch is not None
            events = self._events = self._batch.events_of(self._at)
        return events

    @property
    def variables(self) -> tuple[str, ...]:
        """Return the columns of its rows, in order."""
        return cast("tuple[str, ...]", self._field("variables"))

    @property
    def bindings(self) -> Rows:
        """Return its rows."""
        rows = self._bindings
        if rows is None:
            assert self._batch is not None
            rows = self._bindings = self._batch.rows_of(self._at)
        return rows

    @property
    def partition(self) -> dict[str, RdflibTerm]:
        """Return the values of the PARTITION BY variables."""
        return cast("dict[str, RdflibTerm]", self._field("partition"))

    @property
    def constructed(self) -> Sequence[ConstructedTriple]:
        """Return the triples of CONSTRUCT; none for other forms."""
        return cast("Sequence[ConstructedTriple]", self._field("constructed"))

    def _field(self, name: str) -> object:
        known = self._known
        if known is None:
            known = self._known = {}
        if name not in known:
            assert self._batch is not None
            known[name] = self._batch.read(self._at, name)
        return known[name]

    def _fields(self) -> tuple[Any, ...]:
        """Return all fields, as ``__init__`` takes them."""
        before = self.query, self.start, self.end, self.events, self.variables
        return *before, self.bindings, self.partition, self.constructed

    def __eq__(self, other: object) -> bool:
        return self._fields() == other._fields() if isinstance(other, Match) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # as of lists

    def __reduce__(self) -> tuple[Callable[..., Match], tuple[Any, ...]]:
        """Pickle by pyoxigraph's terms: rdflib's terms would change their lexical forms."""
        *before, rows, partition, constructed = self._fields()
        terms = [_from_rdflib(row) for row in rows], _from_rdflib(partition)
        return _match_again, (*before, *terms, tuple(constructed))

    def __repr__(self) -> str:
        chosen = " ".join(f"{name}×{len(events)}" for name, events in self.events.items() if events)
        of = "".join(f" ?{name}={term.n3()}" for name, term in self.partition.items())
        return f"<Match {self.start} to {self.end}{of}: {chosen}, {len(self.bindings)} rows>"

    def graph(self) -> rdflib.Graph:
        """Return the graph of CONSTRUCT. Raises TypeError if the query has another form."""
        from spaseq.language.syntax import Construct

        if not isinstance(self.query.form, Construct):
            raise TypeError("only a CONSTRUCT query's matches have a graph; this one is not")
        graph = rdflib.Graph()
        for s, p, o in self.constructed:
            graph.add((to_rdflib(s), to_rdflib(p), to_rdflib(o)))
        return graph


def view(batch: MatchBatch, i: int) -> Match:
    """Return match i of a batch."""
    match: Match = _new(Match)
    match._batch = batch
    match._at = i
    match._events = match._bindings = match._known = None
    return match


def alone(match: Match) -> MatchBatch:
    """Return a batch of one of the engine's matches."""
    assert match._batch is not None
    return match._batch.part(match._at, match._at + 1)


_new: Final = object.__new__


def _from_rdflib(row: Mapping[str, RdflibTerm]) -> dict[str, Term]:
    return {name: from_rdflib(term) for name, term in row.items()}


def _to_rdflib(row: Mapping[str, Term]) -> dict[str, RdflibTerm]:
    return {name: to_rdflib(term) for name, term in row.items()}


def _match_again(
    query: Query,
    start: datetime | int,
    end: datetime | int,
    events: dict[str, list[Event]],
    variables: tuple[str, ...],
    rows: Sequence[Mapping[str, Term]],
    partition: Mapping[str, Term],
    constructed: Sequence[ConstructedTriple],
) -> Match:
    """Unpickle a match."""
    bindings, keys = [_to_rdflib(row) for row in rows], _to_rdflib(partition)
    return Match(query, start, end, events, variables, bindings, keys, constructed)


def _event_again(
    stream: str, graph: Term | None, time: datetime | int, n: int, terms: Sequence[Term]
) -> Event:
    """Unpickle an event; ``terms`` are the terms of its triples, one after the other."""
    dictionary = Dictionary()
    ids = [dictionary.intern(term) for term in terms]
    batch = Single(dictionary, Clock.TICKS, Stamp(0, UNBOUND, n), UNBOUND, ids)
    return Event(rdflib.URIRef(stream), None if graph is None else to_rdflib(graph), time, n, (batch, 0))
