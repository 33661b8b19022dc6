"""The arguments of ``push`` and similar calls: forms that callers pass, as terms, triples and times."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, Final

import numpy as np
import pyoxigraph as ox
import rdflib
from pyoxigraph import Triple
from rdflib.term import Node

from spaseq.errors import EngineError
from spaseq.events import EARLIEST, LATEST, Clock, is_instant, microseconds
from spaseq.limits import Limits
from spaseq.nesting import check_triple_terms, too_long
from spaseq.terms.interop import from_rdflib, to_triple

#: A name of a stream: an IRI as text, or as a term of rdflib or pyoxigraph.
StreamName = str | rdflib.URIRef | ox.NamedNode

#: An event's graph: an rdflib graph, triples of rdflib or pyoxigraph, or Turtle or N-Triples text.
EventGraph = rdflib.Graph | Iterable[ox.Triple | tuple[Node, Node, Node]] | str

#: The name of an event's graph.
GraphName = rdflib.URIRef | rdflib.BNode | str | None

#: A point in time: a datetime (pandas.Timestamp is one), or a tick.
GivenTime = datetime | int | np.integer[Any]

#: One of several events: its graph, its time, and optionally the graph's name.
GivenEvent = tuple[EventGraph, GivenTime] | tuple[EventGraph, GivenTime, GraphName]

_TURTLE: Final = ox.RdfFormat.TURTLE

#: Iterable types that are not the parts of an event in order.
_NO_PARTS: Final = (str, bytes, bytearray, Mapping, Set, rdflib.Graph)


class FarTimeError(EngineError):
    """A datetime with an instant outside the years 1 to 9999 of UTC: an event that has it is malformed."""


def event_given(event: GivenEvent) -> tuple[EventGraph, GivenTime, GraphName]:
    """Return the parts of an event; TypeError if it does not have them."""
    parts: tuple[Any, ...] = ()
    if isinstance(event, tuple):
        parts = event
    elif isinstance(event, Iterable) and not isinstance(event, _NO_PARTS):
        parts = tuple(islice(event, 4))
    if len(parts) == 2:
        return (*parts, None)
    if len(parts) != 3:
        raise TypeError("no event, which is a graph, its time and perhaps its name")
    return parts


def time_given(time: GivenTime) -> tuple[Clock, int]:
    """Return a time on its clock. Raises ``EngineError`` for other values, and for a tick beyond 64 bits.

    ``FarTimeError`` for an instant outside the years 1 to 9999.
    """
    if type(time) is int and EARLIEST <= time <= LATEST:
        return Clock.TICKS, time
    if isinstance(time, datetime):
        # pandas' NaT is a datetime that does not equal itself.
        if time != time:
            raise EngineError("NaT is not a time: leave such events out")
        moment: datetime = time
        if hasattr(time, "to_pydatetime"):
            moment = time.to_pydatetime(warn=False)  # nanoseconds are cut off, as in a literal
        value = microseconds(moment)
        if not is_instant(value):
            raise FarTimeError(f"its time is outside the years 1 to 9999: {str(moment)!r}")
        return Clock.INSTANTS, value
    if isinstance(time, bool) or not isinstance(time, int | np.integer) or isinstance(time, np.timedelta64):
        raise EngineError(
            f"a time is a datetime, a pandas.Timestamp, or an int or a numpy integer (a tick), not {time!r}"
        )
    if not EARLIEST <= time <= LATEST:
        raise EngineError(f"the tick {time} does not fit into 64 bits")
    return Clock.TICKS, int(time)


def duration_given(name: str, value: timedelta) -> timedelta:
    """Return the length of time of a parameter. Raises ``EngineError`` unless it is a timedelta of at least
    0.
    """
    if not isinstance(value, timedelta) or value < timedelta(0):
        raise EngineError(f"{name}={value!r}: give a timedelta that is not negative")
    return value


def stream_iri(name: StreamName) -> ox.NamedNode:
    """Return the IRI of a stream, or of a background graph. Raises ``EngineError`` for other values."""
    if isinstance(name, ox.NamedNode):
        return name
    try:
        return ox.NamedNode(str(name))
    except ValueError as error:
        raise EngineError(
            f"{str(name)!r:.100} is not an IRI ({error}): write it in full, such as 'http://example.org/s'; "
            "the name that a query gives to a stream is known to that query alone"
        ) from None


def graph_name(name: GraphName, graph: EventGraph) -> ox.NamedNode | ox.BlankNode | None:
    """Return the name given, or else an rdflib graph's own IRI."""
    if name is None and isinstance(graph, rdflib.Graph) and isinstance(graph.identifier, rdflib.URIRef):
        name = graph.identifier
    if name is None:
        return None
    if not isinstance(name, str | Node):
        raise TypeError(f"the name of a graph is an IRI, not {name!r:.60}")
    term = from_rdflib(name) if isinstance(name, Node) else ox.NamedNode(name)
    if isinstance(term, ox.Literal):
        raise TypeError(f"the name of a graph is an IRI, not {name!r:.60}")
    return term


def triples_given(graph: EventGraph, limits: Limits) -> Sequence[ox.Triple]:
    """Return the triples. Raises SyntaxError, ValueError or TypeError for other values, and for too deep
    nesting.

    ``EngineError`` for a mapping, since its keys would be taken for triples. The terms are checked by
    ``check_term``.
    """
    if isinstance(graph, str):
        return [quad.triple for quad in parsed(graph, limits)]
    # Mostly it is a list, for which the slow test for an iterable is not needed.
    if isinstance(graph, Mapping):
        raise EngineError(
            f"a graph is an rdflib.Graph, triples, Turtle or N-Triples text, not {type(graph).__name__}: "
            "rows become events by spaseq.table, or from a file by ?template= or ?context="
        )
    if type(graph) is not list and (isinstance(graph, bytes | bytearray) or not isinstance(graph, Iterable)):
        raise TypeError(f"a graph is an rdflib.Graph, triples, Turtle or N-Triples text, not {graph!r:.60}")
    try:
        return [triple if isinstance(triple, Triple) else to_triple(_three(triple)) for triple in graph]
    except MemoryError as error:
        raise ValueError(too_long(error)) from None


def parsed(graph: str, limits: Limits) -> Sequence[ox.Quad]:
    """Return the triples of a text, all in the default graph; raises as ``triples_given``."""
    try:
        text = graph.encode()
        check_triple_terms(text, limits)
        return list(ox.parse(text, format=_TURTLE))
    except MemoryError as error:
        raise ValueError(too_long(error)) from None


def _three(triple: tuple[Node, Node, Node]) -> tuple[Node, Node, Node]:
    if not isinstance(triple, tuple | list) or len(triple) != 3:
        raise TypeError(f"not an RDF triple: {triple!r:.60}")
    return triple
