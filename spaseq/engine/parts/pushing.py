"""Events that are pushed: each arrives at once, or waits until somebody can tell the difference."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from itertools import chain
from typing import Final, NamedTuple

import pyoxigraph as ox

from spaseq.alone import Single
from spaseq.engine.arguments import (
    EventGraph,
    GivenEvent,
    GraphName,
    StreamName,
    event_given,
    graph_name,
    stream_iri,
    time_given,
    triples_given,
)
from spaseq.engine.inbox import row
from spaseq.engine.parts.core import Core
from spaseq.engine.rejects import Kind
from spaseq.errors import EngineError
from spaseq.events import Clock, Stamp, identified
from spaseq.sources import BadEvent
from spaseq.sources.assembly.sink import check_term, check_terms

#: What an event that is none raises.
_MALFORMED: Final = (ValueError, SyntaxError, TypeError)
#: Graphs that say no name.
_NAMELESS: Final = (str, list, tuple)


class _Bad(NamedTuple):
    """What was pushed and is no event: its stream, why, and what it is."""

    stream: int
    reason: str
    payload: str


class Pushing:
    """What an engine does with events that it is given one by one, or several at once."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._turn, self._inbox, self._flow = core.turn, core.inbox, core.flow
        self._dictionary, self._rejects, self._limits = core.dictionary, core.rejects, core.limits
        self._check = partial(check_term, limits=self._limits)
        # The ids of streams, which are pinned, by what they were called.
        self._streams: dict[StreamName, int] = {}

    def push(
        self, to: StreamName, graph: EventGraph, clock: Clock, value: int, name: GraphName = None
    ) -> None:
        """See ``Engine.push``."""
        core = self._core
        if to not in self._streams:
            stream_iri(to)  # or an error, before anything waits
        if self._turn.is_aside:
            # Dead letters may be told by a thread that has no turn, and must not wait for one.
            core.tasks.append(lambda: self._arrive(self._event(self._id(to), graph, clock, value, name)))
            return
        self._turn.check()
        with self._turn.lock:
            core.check_open()
            if core.built:
                core.arrive_built()
            event = self._event(self._id(to), graph, clock, value, name)
            if isinstance(event, _Bad):
                self._refuse(event)
            elif event is not None:
                core.step(event)
            elif self._inbox.is_full:
                core.catch_up(is_asked=False)
            core.commit_if_due()

    def push_many(self, iri: ox.NamedNode, events: Iterable[GivenEvent]) -> None:
        """See ``Engine.push_many``."""
        core = self._core
        self._turn.check()
        if isinstance(events, str | bytes):
            raise EngineError("push_many takes several events, each a graph, a time and perhaps a name")
        with self._turn.lock:
            core.check_open()
            core.catch_up()
            stream = self._dictionary.pin(iri)
            before, core.raised = core.raised, None
            try:
                try:
                    for event in events:
                        if core.is_closed:  # by what gives the events
                            core.check_open()
                        self._build(stream, iri, event)
                    if core.is_closed and core.built:
                        core.check_open()
                finally:
                    core.arrive_built()
            finally:
                raised, core.raised = core.raised, before
                if raised is not None:
                    raise raised
            if not core.is_closed:
                core.commit_if_due()

    def _build(self, stream: int, iri: ox.NamedNode, event: GivenEvent) -> None:
        """One event of several, which arrives with the others, or before anything else is done."""
        core = self._core
        try:
            graph, time, name = event_given(event)
        except TypeError as error:
            core.arrive_built()
            self._refuse(_Bad(stream, str(error), str(event)))
            return
        clock, value = time_given(time)
        builder = core.builder(stream, iri, clock)
        try:
            triples = triples_given(graph, self._limits)
            check_terms(triples, self._limits)
            builder.add(value, 0, triples, graph_name(name, graph))
        except _MALFORMED as error:
            core.arrive_built()
            self._refuse(_Bad(stream, str(error), str(graph)))

    def _id(self, to: StreamName) -> int:
        """That of a stream."""
        stream = self._streams.get(to)
        if stream is None:
            stream = self._streams[to] = self._dictionary.pin(stream_iri(to))
        return stream

    def _event(
        self, stream: int, graph: EventGraph, clock: Clock, time: int, name: GraphName
    ) -> Single | _Bad | None:
        """The event that was pushed, if it is to arrive now; None if it waits."""
        terms, inbox = self._dictionary, self._inbox
        try:
            triples = triples_given(graph, self._limits)
            # What most give is text, or a list, and has no name.
            named = None if name is None and type(graph) in _NAMELESS else graph_name(name, graph)
            with terms.lock:
                rows, graph_id = identified(terms, triples, named, self._check)
                if not self._may_wait(stream, clock, time):
                    stamp = Stamp(time, stream, self._flow.arrived(stream))
                    return Single(terms, clock, stamp, graph_id, tuple(chain.from_iterable(rows)))
                event = row(stream, time, graph_id, rows)
                # No interrupt comes between these: that takes a call, or a loop.
                inbox.newest, inbox.last, inbox.size = time, stream, inbox.size + 1
                self._turn.is_behind = self._turn.used = True
                inbox.events.extend(event)
        except _MALFORMED as error:
            return _Bad(stream, str(error), str(graph))
        return None

    def _arrive(self, event: Single | _Bad | None) -> None:
        if isinstance(event, _Bad):
            self._reject(event)
        elif event is not None:
            self._flow.arrive(event.at.stream, event)

    def _refuse(self, bad: _Bad) -> None:
        """Rejects what is no event, now or when those before it have arrived."""
        if self._core.is_working or self._core.tasks:
            self._core.do(partial(self._reject, bad))
        else:
            self._reject(bad)

    def _reject(self, bad: _Bad) -> None:
        iri = self._dictionary.term(bad.stream).value
        before = self._flow.arrived(bad.stream) + self._inbox.count(bad.stream) + self._rejects.pushed(iri)
        letter = BadEvent(iri, f"event {before + 1}", bad.reason, bad.payload)
        self._rejects.malformed(letter, Kind.PUSHED)

    def _may_wait(self, stream: int, clock: Clock, time: int) -> bool:
        """Whether nobody can tell if an event arrives now, or when somebody asks."""
        core, flow = self._core, self._flow
        if core.is_working or core.tasks or flow.arriving or not self._turn.may_wait:
            return False
        inbox = self._inbox
        if inbox.events:
            if not inbox.fits(stream, clock, time):
                return False
            if stream in inbox.streams:
                return True
        else:
            inbox.streams.clear()
        if not flow.is_smooth(stream, clock, time):
            return False
        inbox.clock = clock
        inbox.streams.add(stream)
        return True
