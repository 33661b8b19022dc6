"""Events that are pushed: each arrives at once, or waits until somebody can tell the difference."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from functools import partial
from itertools import chain

import pyoxigraph as ox

from spaseq.alone import Single
from spaseq.engine.given import (
    EventGraph,
    GivenTime,
    GraphName,
    StreamName,
    graph_name,
    stream_iri,
    time_given,
    triples_given,
)
from spaseq.engine.inbox import row
from spaseq.engine.parts.core import Core
from spaseq.errors import EngineError
from spaseq.events import BatchBuilder, Clock, Stamp, identified
from spaseq.sources import BadEvent
from spaseq.sources.assembly.sink import check_term, check_terms


class Pushing:
    """What an engine does with events that it is given one by one, or several at once."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._turn, self._inbox, self._flow = core.turn, core.inbox, core.flow
        self._dictionary, self._rejects, self._limits = core.dictionary, core.rejects, core.limits
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
            event = self._event(self._id(to), graph, clock, value, name)
            if event is not None:
                core.do(partial(self._arrive, event))
            elif self._inbox.is_full:
                core.catch_up(is_asked=False)
            core.commit_if_due()

    def push_many(
        self,
        iri: ox.NamedNode,
        events: Iterable[tuple[EventGraph, GivenTime] | tuple[EventGraph, GivenTime, GraphName]],
    ) -> None:
        """See ``Engine.push_many``."""
        core = self._core
        self._turn.check()
        with self._turn.lock:
            core.check_open()
            core.catch_up()
            identity = self._dictionary.pin(iri)
            before = self._flow.arrived(identity)
            builders: list[tuple[Clock, BatchBuilder]] = []
            count = 0
            try:
                for event in events:
                    try:
                        graph, time, *name = event
                    except (TypeError, ValueError):
                        raise EngineError(
                            f"event {before + count + 1} of push_many is no graph, time and perhaps name: "
                            f"{event!r:.60}"
                        ) from None
                    clock, value = time_given(time)
                    if not builders or builders[-1][0] is not clock:
                        builders.append((clock, BatchBuilder(self._dictionary, iri, clock)))
                    try:
                        triples = triples_given(graph, self._limits)
                        check_terms(triples, self._limits)
                        named = graph_name(name[0] if name else None, graph)
                        builders[-1][1].add(value, 0, triples, named)
                        count += 1
                    except (ValueError, SyntaxError, TypeError) as error:
                        position = f"event {before + count + 1}"
                        self._rejects.malformed(BadEvent(iri.value, position, str(error), str(graph)))
            finally:
                # All arrive, whatever the callbacks of one part raise.
                with ExitStack() as arriving:
                    for _, builder in reversed(builders):
                        arriving.callback(self._arrive_built, identity, builder)
            core.commit_if_due()

    def _arrive_built(self, stream: int, builder: BatchBuilder) -> None:
        self._core.do(partial(self._flow.arrive, stream, builder.build()))

    def _id(self, to: StreamName) -> int:
        """That of a stream."""
        stream = self._streams.get(to)
        if stream is None:
            stream = self._streams[to] = self._dictionary.pin(stream_iri(to))
        return stream

    def _event(
        self, stream: int, graph: EventGraph, clock: Clock, time: int, name: GraphName
    ) -> Single | None:
        """The event that was pushed, if it is to arrive now; None if it waits, or is none and is rejected."""
        terms, inbox, limits = self._dictionary, self._inbox, self._limits
        try:
            triples, named = triples_given(graph, limits), graph_name(name, graph)
            with terms.lock:
                rows, graph_id = identified(terms, triples, named, lambda term: check_term(term, limits))
                if not self._may_wait(stream, clock, time):
                    stamp = Stamp(time, stream, self._flow.arrived(stream))
                    return Single(terms, clock, stamp, graph_id, tuple(chain.from_iterable(rows)))
                event = row(stream, time, graph_id, rows)
                # No interrupt comes between these: that takes a call, or a loop.
                inbox.newest, inbox.last, inbox.size = time, stream, inbox.size + 1
                self._turn.is_behind = self._turn.used = True
                inbox.events.extend(event)
        except (ValueError, SyntaxError, TypeError) as error:
            position = self._flow.arrived(stream) + inbox.count(stream) + 1
            iri = terms.term(stream).value
            self._rejects.malformed(BadEvent(iri, f"event {position}", str(error), str(graph)))
        return None

    def _arrive(self, event: Single | None) -> None:
        if event is not None:
            self._flow.arrive(event.at.stream, event)

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
