"""Quads or triples in order of arrival → events: which belong together, and when one is complete.

*Named graphs.* A graph begins with its first quad. It is complete, and gets its arrival number, once its time
is known and another graph has begun, or at the end of the input. A graph without a known time waits for it
while others pass it. Reported instead of delivered: a graph without a time at the end (or when ``HELD``
triples wait), a graph with two different times or an invalid one, and quads of a graph that was already
delivered. A time of a graph that never begins is metadata. Memory is bounded: waiting triples, times that
precede their graphs, and remembered names.

A source that is read whole before its events are sorted has none of these bounds.

*Triples.* Every ``size`` triples are an event, including repeated ones.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

from pyoxigraph import DefaultGraph, Quad, Triple

from spaseq.sources.assembly.delivered import Delivered
from spaseq.sources.assembly.sink import EventSink, Name
from spaseq.terms.dictionary import Ids, Term
from spaseq.terms.identified import Row

#: The most triples that wait for the times of their graphs, or belong to one event.
HELD: Final = 1 << 18

#: The most graphs remembered because their times precede them, or because a part of them was lost.
REMEMBERED: Final = 1 << 16

#: The most graphs that ``started`` returns.
_FEW: Final = 64


@dataclass(slots=True)
class _Graph:
    """A graph that is being read, or waits for its time."""

    name: Name
    number: int
    rows: list[Row] = field(default_factory=list)
    times: list[Term] = field(default_factory=list)
    problem: str = ""
    #: How many of the rows are known to hold no time.
    searched: int = 0
    #: The times of an earlier, complete graph of this name.
    before: list[Term] = field(default_factory=list)


class GraphAssembler:
    """Named graphs → events."""

    def __init__(self, sink: EventSink) -> None:
        self._sink = sink
        self._most = sys.maxsize if sink.is_whole else HELD
        self._remembered = sys.maxsize if sink.is_whole else REMEMBERED
        self._begun = 0
        self._held = 0
        self._has_default = False
        self._lost = ""
        self._name: Name | None = None  # of the current graph, unless a quad was lost after it
        self._current: _Graph | None = None
        self._open: dict[Name, _Graph] = {}
        self._early: dict[Name, list[Term]] = {}
        self._spoiled: dict[Name, str] = {}
        self.delivered = Delivered(sink.dictionary)

    def quads(self, quads: Iterable[Quad]) -> None:
        """Take the next quads of the stream."""
        predicate = self._sink.predicate
        for s, p, o, graph in quads:
            if isinstance(graph, DefaultGraph):
                self._has_default = True
                if p == predicate and not isinstance(s, Triple) and not isinstance(o, Triple):
                    self._timed(s, o)
                continue
            if graph != self._name:
                self._begin(graph)
            assert self._current is not None
            self._current.rows.append((s, p, o))
            self._held += 1
            if self._held > self._most:
                self._make_room()

    def spoil(self, graph: Name | None, reason: str, *, certain: bool) -> None:
        """Mark a graph as damaged: a part of it was lost, so it is not delivered.

        Unless ``certain``, the lost part may also have belonged to the current graph, and if ``graph`` is
        None, to the graph that begins with the next quad.
        """
        if graph is not None:
            self._spoil(graph, reason)
        if not certain and self._current is not None:
            self._spoil(self._current.name, reason)
        if not certain and graph not in self._open and graph not in self._early:
            self._lost = reason
            self._name = None  # so that the next quad goes to _begin

    def _spoil(self, graph: Name, reason: str) -> None:
        event = self._open.get(graph)
        if event is not None:
            event.problem = event.problem or reason
        elif graph not in self.delivered:
            self._remember(self._spoiled, graph, reason)

    def close(self) -> None:
        """Deliver or report everything that is open at the end of the input."""
        for graph in list(self._open):
            self._finish(graph)
        self._name = self._current = None
        if self._has_default and not self._begun and not self._spoiled and not self._lost:
            self._sink.bad("event 1", "there is no named graph in all of the input: each one is an event")

    def started(self) -> list[Name] | None:
        """Return the graphs that are not delivered, but have quads, a time or a lost part already.

        Return None if this assembler must go on reading: a graph waits for its time while others pass, a part
        was lost, or there are too many graphs.
        """
        known = [*self._open, *self._early, *self._spoiled]
        waiting = len(self._open) > (self._current is not None)
        return None if waiting or self._lost or len(known) > _FEW else known

    def settle(self) -> bool:
        """Deliver the current graph before another one begins. Return whether nothing is open then."""
        if self._current is not None and self._is_complete(self._current):
            self._finish(self._current.name)
            self._name = self._current = None
        return not self._open

    def passed(self, graphs: Ids, times: Ids) -> None:
        """Note graphs that the kernel delivered, each with one time (0 if none was asked for)."""
        self._begun += len(graphs)
        self.delivered.extend(graphs, times)

    def _begin(self, graph: Name) -> None:
        before, lost, self._lost = self._current, self._lost, ""
        if before is not None and before.name != graph and self._is_complete(before):
            self._finish(before.name)
        if graph not in self._open:
            self._begun += 1
            begun = _Graph(graph, self._begun, times=self._early.pop(graph, []))
            begun.problem = self._spoiled.pop(graph, "")
            if graph in self.delivered:
                begun.problem = f"{graph} goes on after it was complete: a graph's quads must stand together"
                begun.before = self.delivered.times(graph)
            self._open[graph] = begun
        self._name, self._current = graph, self._open[graph]
        self._current.problem = self._current.problem or lost

    def _is_complete(self, event: _Graph) -> bool:
        sink = self._sink
        if event.problem or event.times or sink.is_arrival:
            return True
        # Only new rows, unless a path may lead through old ones: graphs that alternate are checked at each
        # turn.
        begin, event.searched = 0 if sink.path else event.searched, len(event.rows)
        return bool(sink.times_inside(event.rows[begin:], event.name))

    def _timed(self, graph: Any, time: Term) -> None:
        """Note the time that the default graph gives for a graph."""
        event = self._open.get(graph)
        if event is not None:
            if time not in event.times:
                event.times.append(time)
            if event is not self._current:
                self._finish(graph)
        elif graph not in self.delivered:
            times = self._early.get(graph)
            if times is None:
                self._remember(self._early, graph, [time])
            elif time not in times:
                times.append(time)
        elif time not in self.delivered.times(graph):
            assert self._sink.predicate is not None
            line = f"{graph} {self._sink.predicate} {time} ."
            self._sink.bad(f"event {self._begun}", f"a further time for {graph}, which was complete", line)

    def _finish(self, graph: Name) -> None:
        event = self._open.pop(graph)
        self._held -= len(event.rows)
        times = event.times or self._sink.times_inside(event.rows, graph)
        self.delivered.add(graph, times)
        if event.before and set(times) == set(event.before):
            event.problem = (
                f"{graph} was complete before, with the same time: the event came twice, as after a "
                "reconnect, or its quads do not stand together"
            )
        self._sink.add(event.rows, graph, event.times, f"event {event.number}", event.problem)

    def _make_room(self) -> None:
        """Drop the oldest waiting graph, or, if none waits, the current graph, which is too large."""
        for name, event in self._open.items():
            if event is not self._current:
                event.problem = event.problem or f"no time within the {HELD} triples that may wait for one"
                self._finish(name)
                return
        assert self._current is not None
        self._current.problem = f"more than {HELD} triples in one event"
        del self._current.rows[1000:]
        self._held = len(self._current.rows)

    def _remember(self, memory: dict[Name, Any], name: Name, value: object) -> None:
        memory[name] = value
        if len(memory) > self._remembered:
            del memory[next(islice(memory, 1))]


class TripleGroups:
    """Every ``size`` triples → an event."""

    def __init__(self, sink: EventSink, size: int) -> None:
        self._sink = sink
        self.size = sink.group = size
        self._rows: list[Row] = []
        self._lost = 0
        self._number = 1
        self._problem = ""

    def quads(self, quads: Iterable[Quad]) -> None:
        """Take the next quads of the stream."""
        for s, p, o, _ in quads:
            self._rows.append((s, p, o))
            if len(self._rows) + self._lost == self.size:
                self._finish()

    def spoil(self, _graph: Name | None, reason: str, *, certain: bool) -> None:
        """Count a lost triple, so that later events stay whole."""
        del certain  # a lost triple always belongs to the current event
        self._problem = self._problem or reason
        self._lost += 1
        if len(self._rows) + self._lost == self.size:
            self._finish()

    def close(self) -> None:
        """Report an incomplete event at the end of the input."""
        count = len(self._rows) + self._lost
        if count:
            self._problem = self._problem or f"the input ends after {count} of its {self.size} triples"
            self._finish()

    @property
    def missing(self) -> int:
        """Return how many triples the current event lacks."""
        count = len(self._rows) + self._lost
        return self.size - count if count else 0

    def passed(self, count: int) -> None:
        """Count events that the kernel delivered."""
        self._number += count

    def _finish(self) -> None:
        if self._rows:  # an event that lost all its triples is already reported
            self._sink.add(self._rows, None, (), f"event {self._number}", self._problem)
        self._rows, self._lost, self._problem = [], 0, ""
        self._number += 1
