"""The events and terms of matches, as users see them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import pyoxigraph as ox
import rdflib

from spaseq.alone import Single
from spaseq.events import Clock, EventBatch, Ids, Stamp
from spaseq.terms.dictionary import UNBOUND, Dictionary, Term
from spaseq.terms.interop import RdflibTerm, from_rdflib, shown, to_rdflib

if TYPE_CHECKING:
    from spaseq.matching.columns.blocks.share import Moved

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


def _event_again(
    stream: str, graph: Term | None, time: datetime | int, n: int, terms: Sequence[Term]
) -> Event:
    """Unpickle an event; ``terms`` are the terms of its triples, one after the other."""
    dictionary = Dictionary()
    ids = [dictionary.intern(term) for term in terms]
    batch = Single(dictionary, Clock.TICKS, Stamp(0, UNBOUND, n), UNBOUND, ids)
    return Event(rdflib.URIRef(stream), None if graph is None else to_rdflib(graph), time, n, (batch, 0))
