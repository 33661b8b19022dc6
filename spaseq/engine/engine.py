"""The embedded engine: registered queries, events pushed or pulled, matches delivered."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from operator import itemgetter
from pathlib import Path
from time import perf_counter
from types import MappingProxyType
from typing import IO, TYPE_CHECKING, Any

import pyoxigraph as ox

from spaseq.bounds import Policy
from spaseq.engine.arguments import (
    EventGraph,
    FarTimeError,
    GivenEvent,
    GivenTime,
    GraphName,
    StreamName,
    duration_given,
    stream_iri,
    time_given,
)
from spaseq.engine.core import Core
from spaseq.engine.handle import Handle
from spaseq.engine.pushing import Pushing
from spaseq.engine.reading import Source, SourceReading, Steps, WallClock
from spaseq.engine.registry import EngineBounds, Registry
from spaseq.engine.rejects import DeadLetters
from spaseq.errors import EngineError, SourceError
from spaseq.events import EARLIEST, LATEST, Clock, EventBatch
from spaseq.language import as_query
from spaseq.language.syntax import Query
from spaseq.limits import Limits
from spaseq.patterns.kb import KnowledgeBase
from spaseq.patterns.kb import Source as Knowledge
from spaseq.results.batch import Match
from spaseq.sources import BadEvent

if TYPE_CHECKING:
    from spaseq.engine.durable.outbox import Outbox


class Engine:
    """Runs SPAseq queries over streams of events, in this process.

    ``kb`` names background graphs: IRI → file, rdflib graph or Turtle text. ``lateness`` is how far behind
    the newest event another event may be and still count; on ticks a second is one tick. ``idle``: a pulled
    stream without events for this long no longer holds the others back. With ``wall_clock``, a clock in
    seconds such as ``time.monotonic``, its time then goes on from its newest event at the pace of that clock.
    ``max_ahead``: a pushed event with an instant further ahead of the wall clock is a dead letter, and does
    not make later events late; sources have an option of this name (see ``SourceOptions``).

    With ``strict``, the first bad or late event raises. Otherwise each goes to ``dead_letters`` (a callable,
    or the path of an NDJSON file; if None, the newest are kept in ``rejected``) and is counted in ``bad`` or
    ``late``. Unless ``dead_letters`` is a callable, the first of a stream and kind is a ``SpaseqWarning``.
    ``shapes``: SHACL shapes: a file, an rdflib graph or Turtle text. Events that do not conform to them are
    bad events, with SHACL's message; ``nonconforming`` counts them.

    ``matcher`` names the matcher to use instead of the planned one. A query that would exceed ``limits``
    ends, and its handle says why. At a bound, a query sheds partial matches by ``policy``: it may find fewer
    matches, but no false ones. ``latency`` bounds, for each query, the seconds by ``clock`` from the start of
    processing an event until all matches that it completes are found, on average over some events. ``memory``
    bounds the bytes of all partial matches of all queries.

    Several threads may use an engine: each call is one turn. A callback runs in the thread of the call that
    found the match, in its turn. It may push (the event is processed after the current one), register and
    cancel, but not close the engine, nor wait for another thread that uses it. ``turn`` has the lock, for
    callers that need several calls in one turn.

    With ``state``, a file, the engine's state outlives the process: the next engine with this file goes on
    from the last ``commit``. Commits are made every ``commit_every``: a number of events, or a length of
    time; with None, the caller commits. See ``docs/state.md``. Raises ``EngineError`` for a file that is not
    a state, or in use.

    >>> engine = Engine()
    >>> handle = engine.register('''
    ...     SELECT ?x WITHIN 10 SECONDS FROM STREAM S <http://example.org/s>
    ...     WHERE { SEQ(A) DEFINE GPM A ON S { ?x <http://example.org/v> 1 } }''')
    >>> engine.push("http://example.org/s", "<http://example.org/a> <http://example.org/v> 1 .", 7)
    >>> [match.start for match in handle.matches()]
    [7]
    """

    def __init__(
        self,
        kb: Mapping[str, Knowledge] | KnowledgeBase | None = None,
        *,
        lateness: timedelta = timedelta(0),
        idle: timedelta | None = None,
        wall_clock: Callable[[], float] | None = None,
        max_ahead: timedelta | None = None,
        strict: bool = False,
        dead_letters: DeadLetters | str | Path | None = None,
        matcher: str | None = None,
        limits: Limits = Limits(),
        latency: timedelta | None = None,
        memory: int | None = None,
        policy: Policy | str = Policy.SHARP,
        clock: Callable[[], float] = perf_counter,
        shapes: Knowledge | None = None,
        state: str | Path | None = None,
        commit_every: int | timedelta | None = timedelta(seconds=1),
    ) -> None:
        duration_given("lateness", lateness)
        if max_ahead is not None:
            duration_given("max_ahead", max_ahead)
        self._bounds = EngineBounds(latency, memory, policy, clock)
        idle = None if idle is None else duration_given("idle", idle)
        if wall_clock is not None and idle is None:
            raise EngineError("wall_clock moves the time of idle streams on: say idle=, too")
        self._kb = kb.unshared() if isinstance(kb, KnowledgeBase) else KnowledgeBase({} if kb is None else kb)
        self._core = core = Core(limits, lateness, dead_letters, strict)
        self.turn = core.turn
        self._dispatcher, self._rejects, self._dictionary = core.dispatcher, core.rejects, core.dictionary
        self._registry = Registry(core, self._kb, matcher)
        self._pushing = Pushing(core, max_ahead)
        self._reading = SourceReading(
            core, idle, None if wall_clock is None else WallClock(wall_clock, lateness)
        )
        if shapes is not None:
            # Imported here, because pyshacl takes a while to load.
            from spaseq.patterns.shapes import Shapes

            core.dispatcher.shapes = Shapes(shapes)
            self.turn.prompt += 1  # a nonconforming event is reported at once
        if state is not None:
            from spaseq.engine.durable.horizon import UNREPEATED

            if self._bounds.are_set:
                raise EngineError(UNREPEATED)
            core.state = self._registry.restore(state, commit_every, lateness)

    def __repr__(self) -> str:
        self.turn.flush()
        state = "closed" if self._core.is_closed else "open"
        return f"<Engine: {state}, {self._dispatcher.live} queries, {self.events} events>"

    # --- queries ------------------------------------------------------------------------------

    def register(
        self,
        query: Query | str,
        on_match: Callable[[Match], None] | None = None,
        *,
        name: str | None = None,
        replace: bool = False,
        latency: timedelta | None = None,
        weight: float = 1.0,
    ) -> Handle:
        """Add a query; it sees the events from now on.

        ``on_match`` is called with every match, in the thread that made the call which completed it. Its
        exceptions are raised at the end of that call, after everything else: the first one, with a note for
        each further one. ``latency``: the query's bound instead of the engine's. ``weight``: the query's
        share of the engine's ``memory`` is proportional to it. A query that cannot keep its bound without
        false matches runs without one, and a warning says so.

        ``name``: the key in ``queries``; a ``state`` needs it. If the same query is already registered under
        the name, its handle is returned and calls ``on_match`` from now on. If another query has the name, or
        the same one has other bounds, the call raises; with ``replace``, the old query is cancelled and the
        new one starts in its place.

        Raises ``QueryError``; ``KnowledgeError`` for a background graph that the engine does not have;
        ``EngineError`` if REGISTER STREAM would make the query read its own output.
        """
        bound = self._bounds.of(latency, weight)
        prepared = as_query(query, self._core.limits)
        self.turn.check()
        handle: Handle | None = None
        try:
            with self.turn.deferral, self.turn.lock:
                self._core.check_open()
                self._core.catch_up()
                if name is not None or self.is_durable:
                    named = self._registry.register(prepared, on_match, bound, name, replace)
                    self._core.end()
                    return named
                handle = self._registry.add(prepared, on_match, bound)
        except KeyboardInterrupt:
            if handle is not None:  # the caller does not get the handle
                handle.cancel()
            raise
        return handle

    @property
    def queries(self) -> Mapping[str, Handle]:
        """The handles of the queries that were registered under a name, by name."""
        return MappingProxyType(self._registry.named)

    # --- events -------------------------------------------------------------------------------

    def push(self, stream: StreamName, graph: EventGraph, time: GivenTime, name: GraphName = None) -> None:
        """Add one event; the matches that it completes are delivered before the call returns.

        In a callback, the event is processed after the current one. ``time``: a datetime (without a timezone:
        UTC) or pandas.Timestamp, or a tick as an int or numpy integer. ``name``: the name of the event's
        graph, if it has one. Events are expected in order, up to ``lateness``. An event that is malformed, or
        has an instant outside the years 1 to 9999, becomes a dead letter. Raises ``EngineError`` for an
        invalid time, a mapping instead of a graph, and an invalid stream IRI.
        """
        if type(time) is int and EARLIEST <= time <= LATEST:
            self._pushing.push(stream, graph, Clock.TICKS, time, name)
            return
        wrong: str | None = None
        try:
            clock, value = time_given(time)
        except FarTimeError as error:
            clock, value, wrong = Clock.INSTANTS, 0, str(error)
        self._pushing.push(stream, graph, clock, value, name, wrong)

    def push_many(self, stream: StreamName, events: Iterable[GivenEvent]) -> None:
        """Add the events of a stream as if each were pushed: each is a graph, a time and optionally a name.

        Their matches are delivered before the call returns, after every few thousand events. This is several
        times faster than single pushes. Matches are delivered earlier before a malformed event (also one
        without graph and time), and when ``events`` itself uses the engine. If Ctrl-C or an error ends the
        call, all events before that have arrived. Raises ``EngineError`` for an invalid time, or if
        ``events`` has closed the engine; the exceptions of ``events``; and those of ``strict``.
        """
        self._pushing.push_many(stream_iri(stream), events)

    def advance(self, time: GivenTime, stream: StreamName | None = None) -> None:
        """Declare that no event before ``time`` will come, of ``stream`` or, without it, of any stream.

        Windows that have ended by then are closed, and their matches are delivered before the call returns. A
        later event before ``time`` is late. Queries on the other clock (instants, ticks) are not affected.
        Streams that queries make by REGISTER STREAM advance by themselves.
        """
        clock, value = time_given(time)
        iri = None if stream is None else stream_iri(stream)
        core = self._core
        self.turn.check()
        with self.turn.deferral, self.turn.lock:
            core.check_open()
            identity = None if iri is None else core.dictionary.pin(iri)
            core.do(partial(core.dispatcher.promise, clock, value, identity))

    def feed(self, *sources: Source) -> None:
        """Read sources to their end, merged by time, and deliver the matches.

        Sources given in one call are read in parallel. Raises ``SourceError`` for one that cannot be read.
        """
        self._reading.feed(sources)

    def pull(self, *sources: Source) -> Steps:
        """Do ``feed`` step by step: yield after each batch of events, when its matches were delivered.

        The call itself opens the sources, and raises their errors.
        """
        return self._reading.pull(sources)

    def take(
        self,
        source: Source,
        *,
        time: GivenTime | None = None,
        otherwise: GivenTime | None = None,
        whole: bool = False,
        refused: Callable[[str, BadEvent], None] | None = None,
    ) -> Iterator[int]:
        """Read a source as if each of its events were pushed; yield the number of events of each batch.

        So the source does not hold other streams back, and several threads may each read one. ``time``, if
        given, is the time of all its events, ``otherwise`` the time of events without one. With ``whole``, a
        Turtle or N-Triples document is one event. ``refused`` is called with its ``bad`` and ``late`` events,
        besides ``dead_letters``. Raises ``SourceError`` for a source that cannot be read.
        """
        return self._reading.take(source, time, otherwise, whole, refused)

    def change(self, graph: str, triples: Sequence[ox.Triple] | None) -> None:
        """Replace the triples of a background graph, or remove it with None.

        Events processed so far were matched with the old graph. Later events are matched with the new one,
        also events that ``lateness`` still holds back. With a state, the change is part of the next commit.
        After a restart, the engine has the changed graph, whatever ``kb`` contains. Raises EngineError inside
        a callback.
        """
        self.turn.check()
        with self.turn.deferral, self.turn.lock:
            self._core.check_open()
            if self._core.is_working:
                raise EngineError("background graphs cannot be changed inside a callback")
            name = stream_iri(graph)
            self._core.catch_up()
            if self._dispatcher.journal is not None:
                self._dispatcher.journal.changed(name, triples)
            self._kb.change(name, triples)

    def follow(self, seen: Callable[[EventBatch], None]) -> None:
        """Call ``seen`` with all events from now on, late ones included, in the engine's turn.

        Each call has events of one stream, in the order of arrival. It must not raise.
        """
        self.turn.flush()
        with self.turn.deferral, self.turn.lock:
            self._dispatcher.seen = seen

    @property
    def kb(self) -> KnowledgeBase:
        """The background graphs as they are now; only ``change`` may change them."""
        return self._kb

    def streams(self) -> Mapping[str, StreamStats]:
        """Return the streams that have arrived or that a query reads, by IRI, with their counts."""
        self.turn.flush()
        found: dict[str, StreamStats] = {}
        with self.turn.deferral, self.turn.lock:
            for stream, (clock, time) in self._dispatcher.streams().items():
                iri = self._dictionary.term(stream).value
                watermark = None if time is None or clock is None else clock.show(time)
                counts = self._dispatcher.arrivals[stream], *self._rejects.of(iri)
                found[iri] = StreamStats(*counts, watermark)
        return found

    # --- what outlives the process, and the end -----------------------------------------------

    @property
    def is_durable(self) -> bool:
        """Whether the engine has a state that outlives the process."""
        return self._core.state is not None

    def commit(self, outputs: Mapping[str, IO[Any]] | None = None) -> None:
        """Make all that has happened so far part of the ``state``, in one transaction.

        It records which events arrived and which matches were taken, so that the next engine does not deliver
        these again. ``outputs``: open files by names of your choice; their lengths are recorded, and after a
        restart the property ``outputs`` has them. In a callback, the commit is made after the current event.
        Raises ``EngineError`` if the file cannot be written; then nothing is lost, and the next commit
        includes everything.
        """
        self.turn.check()
        with self.turn.deferral, self.turn.lock:
            self._core.commit(outputs or {})

    def outbox(self, url: str, media: str = "application/x-ndjson") -> Outbox:
        """Return an outbox, which sends matches to a URL: ``write`` adds records, each commit sends them.

        Kafka receives each record exactly once (for readers of committed records); MQTT and HTTP at least
        once, under the same number. A record is in the same commit as its match only if it is written in a
        callback, or with ``commit_every=None``. The call first sends records that the last engine could not
        send.

        ``media``: the records' media type. Raises ``EngineError`` without a state, or if the state's records
        went to another URL; ``SourceError`` for an invalid URL; ``SinkError`` if the destination does not
        accept records.
        """
        self.turn.check()
        with self.turn.deferral, self.turn.lock:
            self._core.check_open()
            if self._core.state is None:
                raise EngineError("an outbox is part of a state: Engine(state=FILE)")
            return self._core.state.send_to(url, media, self.turn.lock)

    @property
    def outputs(self) -> Mapping[str, int]:
        """The length of each output at the last commit: of files in bytes, of a URL in records."""
        state = self._core.state
        return {} if state is None else dict(state.outputs)

    @property
    def arrived(self) -> Mapping[str, int]:
        """How many events of each stream have arrived, late and bad ones included.

        After a restart, these are the numbers of the last commit: push the events after them.
        """
        self.turn.flush()
        with self.turn.deferral, self.turn.lock:
            counts, term = self._rejects.unnumbered(), self._dictionary.term
            counts.update({term(stream).value: n for stream, n in self._dispatcher.arrivals.items()})
        return dict(+counts)

    def close(self) -> None:
        """End every window, as no event will come; deliver the remaining matches, close the dead letters.

        With a ``state``, the next engine may get more events: so no window ends, and everything is committed.
        """
        if not self.is_durable:
            self.finish()
            return
        self._end(self._core.close)

    def finish(self) -> None:
        """Do ``close``, but end every window also with a ``state``; these endings are not committed.

        So the next engine with that state continues as if the windows were open, and delivers their matches
        again.
        """
        self._end(self._core.finish)

    def _end(self, end: Callable[[], None]) -> None:
        self.turn.check()
        with self.turn.deferral, self.turn.lock:
            if self._core.is_closed:
                return
            end()
            self._core.attempt(self._rejects.summarise)
            self._core.end()

    def abandon(self) -> None:
        """Close the engine as it is: matches that wait for a window's end are not delivered, nothing is
        committed.
        """
        self._core.abandon()

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            self.abandon()

    # --- what there was -----------------------------------------------------------------------

    @property
    def events(self) -> int:
        """How many events arrived, late ones included."""
        return self._dispatcher.events + self._core.waiting

    def check_read(self) -> None:
        """Raise ``SourceError`` if all events of some stream were malformed."""
        for stream, (count, letter) in self._rejects.first_bad().items():
            if not self._dispatcher.arrivals[self._dictionary.pin(ox.NamedNode(stream))]:
                many = f"all {count} events are malformed, first" if count > 1 else "its only event,"
                raise SourceError(
                    f"nothing of <{stream}> could be read: {many} {letter.position}: {letter.reason}"
                )

    @property
    def bad(self) -> int:
        """How many malformed events there were, and events that do not conform to ``shapes``."""
        return self._rejects.bad

    @property
    def nonconforming(self) -> int:
        """How many of the bad events do not conform to ``shapes``."""
        return self._rejects.nonconforming

    @property
    def late(self) -> int:
        """How many events came after the watermark."""
        return self._rejects.late

    @property
    def failed_calls(self) -> Mapping[str, int]:
        """How many calls of the user's functions failed (``spaseq.function``), by IRI."""
        return dict(self._dictionary.failed_calls)

    @property
    def rejected(self) -> Sequence[BadEvent]:
        """The newest bad and late events, unless ``dead_letters`` is given."""
        return self._rejects.newest

    @property
    def watermark(self) -> datetime | int | None:
        """The time up to which the slowest query is complete; None before the first event."""
        self.turn.flush()
        orders = [stream_set.order for stream_set in self._dispatcher.stream_sets]
        known = [(order.time, order.clock) for order in orders if order.time is not None]
        if not known:
            return None
        time, clock = min(known, key=itemgetter(0))
        return (clock or Clock.TICKS).show(time)


@dataclass(frozen=True, slots=True)
class StreamStats:
    """The counts of a stream: its ``events``, late ones included, malformed ones, late ones.

    ``watermark``: the UTC datetime or tick before which an event is late; None before the first event.
    """

    events: int
    bad: int
    late: int
    watermark: datetime | int | None
