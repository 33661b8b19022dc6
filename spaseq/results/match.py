"""What a user gets: a match, its events, its rows, and the graph it constructs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

import pyoxigraph as ox
import rdflib

from spaseq.events import EventBatch, Stamp
from spaseq.interop import RdflibTerm, to_rdflib
from spaseq.language.syntax import Query
from spaseq.terms import UNBOUND, Term

#: A CONSTRUCT triple of one match.
ConstructedTriple = tuple[Term, ox.NamedNode, Term]


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


def event(batch: EventBatch, index: int) -> Event:
    """Event ``index`` of a batch, as users see it."""
    term = batch.dictionary.term
    graph = int(batch.graph[index])
    stamp: Stamp = batch.stamp(index)
    return Event(
        stream=rdflib.URIRef(term(stamp.stream).value),
        graph=None if graph == UNBOUND else to_rdflib(term(graph)),
        time=batch.clock.show(stamp.time),
        n=stamp.n,
        _batch=batch,
        _index=index,
    )


@dataclass(frozen=True, slots=True)
class Match:
    """A match of a query (semantics, section 6).

    ``events`` lists the chosen events per GPM, in order; a GPM that chose none has an empty list.
    ``bindings`` are the rows of SELECT (for ASK and CONSTRUCT: all solutions), each from variable name
    to rdflib term, an unbound variable absent; ``variables`` are their columns, in order.
    ``partition`` has the values of the PARTITION BY variables.
    """

    query: Query
    start: datetime | int
    end: datetime | int
    events: dict[str, list[Event]]
    variables: tuple[str, ...]
    bindings: list[dict[str, RdflibTerm]]
    partition: dict[str, RdflibTerm]
    constructed: Sequence[ConstructedTriple] = field(default=(), repr=False)

    def graph(self) -> rdflib.Graph:
        """The graph of CONSTRUCT; TypeError if the query has another form."""
        from spaseq.language.syntax import Construct

        if not isinstance(self.query.form, Construct):
            raise TypeError("only a CONSTRUCT query's matches have a graph; this one is not")
        graph = rdflib.Graph()
        for s, p, o in self.constructed:
            graph.add((to_rdflib(s), to_rdflib(p), to_rdflib(o)))
        return graph
