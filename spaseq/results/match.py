"""What a user gets: a match, its events, its rows, and the graph it constructs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Final, Self

import pyoxigraph as ox
import rdflib

from spaseq.events import EventBatch, Ids
from spaseq.language.syntax import Query
from spaseq.terms.dictionary import UNBOUND, Dictionary, Term
from spaseq.terms.interop import RdflibTerm, to_rdflib

if TYPE_CHECKING:
    from spaseq.results.batch import MatchBatch

#: A CONSTRUCT triple of one match.
ConstructedTriple = tuple[ox.NamedNode | ox.BlankNode, ox.NamedNode, Term]

#: So many terms are kept as users see them.
_KEPT: Final = 1 << 14


class Shown:
    """Terms as users see them, by id. Those that matches share are made once."""

    def __init__(self, dictionary: Dictionary) -> None:
        self._term = dictionary.term
        self._lock = dictionary.lock
        self._known: dict[int, RdflibTerm] = {}
        dictionary.hold(self)

    def __call__(self, identifier: int) -> RdflibTerm:
        """The term of an id that somebody holds."""
        term = self._known.get(identifier)
        if term is None:
            with self._lock:  # so that no sweep, which clears it, comes between
                if len(self._known) >= _KEPT:
                    self._known.clear()
                term = self._known[identifier] = to_rdflib(self._term(identifier))
        return term

    def live_ids(self) -> Iterable[Ids]:
        """No ids; asked when ids are about to be forgotten, which may then mean other terms."""
        self._known.clear()
        return ()


@dataclass(frozen=True, slots=True, order=True)
class Event:
    """An event that a match chose.

    ``time`` is a UTC datetime on a stream of instants, an int on one of ticks; ``n`` is the arrival
    number in the stream, from 0; ``graph`` is the name of the event's graph, None if it has none.
    """

    stream: rdflib.URIRef
    graph: RdflibTerm | None
    time: datetime | int
    n: int
    _batch: EventBatch = field(compare=False, repr=False)
    _index: int = field(compare=False, repr=False)

    def triples(self) -> rdflib.Graph:
        """The event's graph."""
        graph = rdflib.Graph(identifier=self.graph)
        term = self._batch.dictionary.term
        for s, p, o in self._batch.triples(self._index):
            graph.add((to_rdflib(term(s)), to_rdflib(term(p)), to_rdflib(term(o))))
        return graph


def event(batch: EventBatch, index: int, shown: Callable[[int], RdflibTerm]) -> Event:
    """Event ``index`` of a batch, as users see it."""
    graph = batch.graph.item(index)
    stream = shown(batch.stream.item(index))
    assert isinstance(stream, rdflib.URIRef)
    return Event(
        stream=stream,
        graph=None if graph == UNBOUND else shown(graph),
        time=batch.clock.show(batch.time.item(index)),
        n=batch.n.item(index),
        _batch=batch,
        _index=index,
    )


@dataclass(frozen=True)
class Match:
    """A match of a query (semantics, section 6).

    ``start`` and ``end`` are the times of its first and its last event: UTC datetimes, or ticks.
    ``events`` lists the chosen events per GPM, in order; a GPM that chose none has an empty list.
    ``bindings`` are the rows of SELECT (for ASK and CONSTRUCT: all solutions), each from variable name
    to rdflib term, an unbound variable absent; ``variables`` are their columns, in order.
    ``partition`` has the values of the PARTITION BY variables.

    The engine's matches are views of a row of a ``MatchBatch``: each field is made when it is first asked
    for, and then kept. A match that is kept keeps its batch, and so the events of all matches there. Two are
    equal if all their fields are, which are made for that; as they have lists, they have no hash. A match
    holds what is its engine's and cannot be pickled: pickle the fields that you need, or a batch's table.
    """

    query: Query
    start: datetime | int
    end: datetime | int
    events: dict[str, list[Event]]
    variables: tuple[str, ...]
    bindings: list[dict[str, RdflibTerm]]
    partition: dict[str, RdflibTerm]
    constructed: Sequence[ConstructedTriple] = field(default_factory=tuple, repr=False)

    @classmethod
    def view(cls, batch: MatchBatch, i: int) -> Self:
        """Match i of a batch."""
        match = object.__new__(cls)
        match.__dict__["_row"] = batch, i
        return match

    if not TYPE_CHECKING:  # where every name would be an attribute

        def __getattr__(self, name: str) -> object:
            known = self.__dict__
            row = known.get("_row")
            if row is None or name not in self.__dataclass_fields__:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            value = known[name] = row[0].read(row[1], name)
            return value

    def __repr__(self) -> str:
        chosen = " ".join(f"{name}×{len(events)}" for name, events in self.events.items() if events)
        of = "".join(f" ?{name}={term.n3()}" for name, term in self.partition.items())
        return f"<Match {self.start} to {self.end}{of}: {chosen}, {len(self.bindings)} rows>"

    def graph(self) -> rdflib.Graph:
        """The graph of CONSTRUCT; TypeError if the query has another form."""
        from spaseq.language.syntax import Construct

        if not isinstance(self.query.form, Construct):
            raise TypeError("only a CONSTRUCT query's matches have a graph; this one is not")
        graph = rdflib.Graph()
        for s, p, o in self.constructed:
            graph.add((to_rdflib(s), to_rdflib(p), to_rdflib(o)))
        return graph
