"""The embedded engine: registered queries, events pushed or pulled, matches delivered."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
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
from spaseq.engine.reading import Reading, Source, Steps, WallClock
from spaseq.engine.registry import Bounds, Registry
from spaseq.engine.rejects import DeadLetters
from spaseq.errors import EngineError, SourceError
from spaseq.events import Clock, EventBatch
from spaseq.language import as_query
from spaseq.language.syntax import Query
from spaseq.limits import Limits
from spaseq.patterns.kb import KnowledgeBase
from spaseq.patterns.kb import Source as Knowledge
from spaseq.results.match import Match
from spaseq.sources import BadEvent

if TYPE_CHECKING:
    from spaseq.engine.durable.outbox import Outbox


class Engine:
    """Runs SPAseq queries over streams of events, in this process.

    ``kb`` names background graphs: IRI → file, rdflib graph or Turtle text. ``lateness`` is how far
    behind the newest event another may come and still count; on ticks a second is one. ``idle``: a pulled
    stream that brings nothing for so long no longer holds the others back; with ``wall_clock``, a clock in
    seconds such as ``time.monotonic``, its time then goes on from its newest event as that clock does.
    ``max_ahead``: a pushed event whose instant is further ahead of the wall clock is a dead letter, and does
    not make later events late; sources have an option of this name (see ``SourceOptions``). With
    ``strict``, the first bad or late event raises; otherwise each goes to ``dead_letters`` (a callable, or
    the path of an NDJSON file; the newest are kept in ``rejected`` when it is None) and is counted in ``bad``
    or ``late``; unless a callable hears of it, the first of a stream and kind is a ``SpaseqWarning``.
    ``shapes``: SHACL shapes: a file, an rdflib graph or Turtle text. Events that do not conform to them are
    bad events, with SHACL's message; ``nonconforming`` counts them.
    ``matcher`` names the matcher to use instead of the planned one. A query that would take more than
    ``limits`` ends, and its handle says why. Before that, at a bound, it sheds partial matches, by
    ``policy``, and may find fewer matches, but no false ones: ``latency`` is for each query the time from
    when it turns to an event until all is found that this completes, on average over some events, by
    ``clock``, in seconds; ``memory`` are the bytes that all queries together may keep partial matches in.

    Several threads may use an engine: each call is one turn. A callback runs in the thread whose call found
    the match, in its turn: it may push (which is done after the event in hand), register and cancel, but not
    close the engine, nor wait for another thread that uses it. ``turn`` has the lock, for who must do
    several things in one turn.

    With ``state``, a file, what the engine does outlives the process: the next engine with this file goes on
    where the last ``commit`` was. That is made every ``commit_every``: a number of events, or a length of
    time; None leaves it to the caller. See ``docs/state.md``. Raises ``EngineError`` for a file that is no
    state, or in use.

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
        self._bounds = Bounds(latency, memory, policy, clock)
        idle = None if idle is None else duration_given("idle", idle)
        if wall_clock is not None and idle is None:
            raise EngineError("wall_clock moves the time of idle streams on: say idle=, too")
        self._kb = kb.unshared() if isinstance(kb, KnowledgeBase) else KnowledgeBase({} if kb is None else kb)
        self._core = core = Core(limits, lateness, dead_letters, strict)
        self.turn = core.turn
        self._dispatcher, self._rejects, self._dictionary = core.dispatcher, core.rejects, core.dictionary
        self._registry = Registry(core, self._kb, matcher)
        self._streams = Streams(core)
        self._pushing = Pushing(core, max_ahead)
        self._reading = Reading(core, idle, None if wall_clock is None else WallClock(wall_clock, lateness))
        if shapes is not None:
            # Here, because pyshacl takes a while to load.
            from spaseq.patterns.shapes import Shapes

            core.dispatcher.shapes = Shapes(shapes)
            self.turn.prompts(lambda: False)  # an event that does not conform is reported at once
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
        """Adds a query; it sees the events from now on.

        ``on_match`` is called with every match, in the thread that brought its last event. What it raises
        comes out at the end of that thread's call, when all else is done: the first exception, with a note of
        each other. Raises ``QueryError``; ``KnowledgeError`` for a background graph that the engine does not
        have; ``EngineError`` if its stream would, by REGISTER STREAM, feed itself. ``latency``: its own bound
        instead of the engine's; ``weight``: of the engine's ``memory`` it gets a part in proportion to that.
        One that could not keep its bound without false matches runs without, and a warning says so.

        ``name``: what ``queries`` has it under, which a ``state`` asks for. Of a query that is there under
        this name its handle is returned, which calls ``on_match`` from now on; another query of the name (or
        other bounds) is refused, or, with ``replace``, cancelled, and this one starts in its place.
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
            if handle is not None:  # the caller does not get it
                handle.cancel()
            raise
        return handle

    @property
    def queries(self) -> Mapping[str, Handle]:
        """The handles of the queries that were registered under a name, by these."""
        return MappingProxyType(self._registry.named)

    # --- events -------------------------------------------------------------------------------

    def push(self, stream: StreamName, graph: EventGraph, time: GivenTime, name: GraphName = None) -> None:
        """Adds one event; what it completes is delivered before the call returns.

        From a callback: as soon as the event in hand is done with. ``time``: a datetime (without a
        timezone: UTC) or pandas.Timestamp; or an int or numpy integer, a tick. ``name`` is the name of the
        event's graph, if it has one. Events are trusted to come in order, up to ``lateness``. An event that
        is malformed, or whose instant is outside the years 1 to 9999, is a dead letter. Raises
        ``EngineError`` for what is no time, a mapping instead of a graph, and a stream that is no IRI.
        """
        try:
            clock, value = time_given(time)
        except FarTimeError as error:
            self._pushing.refuse(stream, graph, str(error))
            return
        self._pushing.push(stream, graph, clock, value, name)

    def push_many(self, stream: StreamName, events: Iterable[GivenEvent]) -> None:
        """Adds the events of a stream, each a graph, a time and perhaps a name, as if each were pushed.

        What they complete is delivered before the call returns, some thousands of events at a time, which
        costs several times less than one by one; or before that, where there is a malformed one (as what is
        no graph, time and perhaps name), or ``events`` itself uses the engine. If Ctrl-C or an error ends it
        (``EngineError`` for what is no time, or where ``events`` has closed the engine; what ``events``
        raises; ``strict``), those before have arrived.
        """
        self._pushing.push_many(stream_iri(stream), events)

    def advance(self, time: GivenTime, stream: StreamName | None = None) -> None:
        """Says that no event before ``time`` will come, of a stream or of any.

        Windows that have ended by then end, and what waited for that is delivered before the call returns;
        an event before ``time`` is late. Queries on the other clock (instants, ticks) are not concerned.
        Streams that queries make by REGISTER STREAM move on by themselves.
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
        """Reads sources to their end, merged by time, and delivers what they complete.

        Sources given in one call are read side by side. Raises ``SourceError`` for one that cannot be read.
        """
        self._reading.feed(sources)

    def pull(self, *sources: Source) -> Steps:
        """As ``feed``, step by step: yields after each batch of events, its matches delivered.

        The sources are opened by the call itself, which raises what is wrong with them.
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
        """Reads a source as if each of its events were pushed; yields how many were taken of each batch.

        So it holds no other stream back, and several threads may each read one. ``time``, if given, is that
        of all its events, ``otherwise`` that of those which say none. With ``whole``, Turtle and N-Triples
        are one event. ``refused`` hears of its ``bad`` and ``late`` events, too. Raises ``SourceError`` for a
        source that cannot be read.
        """
        return self._reading.take(source, time, otherwise, whole, refused)

    def change(self, graph: str, triples: Sequence[ox.Triple] | None) -> None:
        """Gives a background graph other triples, or with None takes it away.

        The events that have come so far were matched with it as it was, those that come from now on, and
        those that ``lateness`` still holds back, are matched with it as it is then. With a state, the change
        is part of the next commit, and a restart has the graph as it is now, whatever ``kb`` says of it then.
        Raises EngineError inside of a callback.
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
        """Calls ``seen`` with all events from now on, late ones included, in the engine's turn.

        Each time with some of one stream, in the order of arrival. It must not raise.
        """
        self.turn.flush()
        with self.turn.deferral, self.turn.lock:
            self._dispatcher.seen = seen

    @property
    def kb(self) -> KnowledgeBase:
        """The background graphs, as they are now; only ``change`` may change them."""
        return self._kb

    def streams(self) -> Mapping[str, StreamStats]:
        """The streams that came or that a query reads, by IRI, and what there was of each."""
        self.turn.flush()
        with self.turn.deferral, self.turn.lock:
            return self._streams.stats()

    # --- what outlives the process, and the end -----------------------------------------------

    @property
    def is_durable(self) -> bool:
        """Whether it has a state that outlives the process."""
        return self._core.state is not None

    def commit(self, outputs: Mapping[str, IO[Any]] | None = None) -> None:
        """Makes all that happened so far part of the ``state``, in one transaction.

        That is what arrived, and that the matches taken so far were taken: the next engine does not give them
        again. ``outputs``: open files, by any names, whose lengths are part of it (``outputs`` has them
        again). In a callback it is done as soon as the event in hand is. Raises ``EngineError`` if it cannot
        be written; nothing is lost, and the next commit has all.
        """
        self.turn.check()
        with self.turn.deferral, self.turn.lock:
            self._core.commit(outputs or {})

    def outbox(self, url: str, media: str = "application/x-ndjson") -> Outbox:
        """Where matches go with the commits: ``write`` takes records, and each commit sends them to a URL.

        Into Kafka each comes exactly once, for who reads what is committed; by MQTT and HTTP at least once,
        under the same number. What is to be part of a commit with its matches has to be written before:
        in a callback, or with ``commit_every=None``. What the last engine could not send is sent by the
        call. ``media``: what the records are. Raises ``EngineError`` without a state, or if its records went
        elsewhere; ``SourceError`` for what is wrong in the URL; ``SinkError`` if nobody takes records there.
        """
        self.turn.check()
        with self.turn.deferral, self.turn.lock:
            self._core.check_open()
            if self._core.state is None:
                raise EngineError("an outbox is part of a state: Engine(state=FILE)")
            return self._core.state.send_to(url, media, self.turn.lock)

    @property
    def outputs(self) -> Mapping[str, int]:
        """How long each output was at the last commit: files in bytes, what goes to a URL in records."""
        state = self._core.state
        return {} if state is None else dict(state.outputs)

    @property
    def arrived(self) -> Mapping[str, int]:
        """How many events of each stream came so far, late and bad ones included.

        After a restart these are those of the last commit: whoever pushes goes on after them.
        """
        self.turn.flush()
        with self.turn.deferral, self.turn.lock:
            return self._streams.arrived()

    def close(self) -> None:
        """Says that no event will come: ends every window, delivers the rest, closes the dead letters.

        With a ``state``, more will come, to the next engine: so no window ends, and all is committed.
        """
        if not self.is_durable:
            self.finish()
            return
        self._end(self._core.close)

    def finish(self) -> None:
        """As ``close``; with a ``state``, too, every window ends. That is part of no commit.

        So the next engine with that state goes on as if it had not been, and gives what ended here anew.
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
        """Closes the engine as it is: what waits for a window's end is not delivered, nothing committed."""
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
        """Raises ``SourceError`` if there is a stream of which all events were malformed."""
        self._streams.check_read()

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
        """The newest bad and late events, if there is no sink for them."""
        return self._rejects.newest

    @property
    def watermark(self) -> datetime | int | None:
        """Up to where time is complete for the slowest query; None before the first event."""
        self.turn.flush()
        return self._streams.watermark()


@dataclass(frozen=True, slots=True)
class StreamStats:
    """What there was of a stream: its ``events``, late ones included, malformed ones, late ones.

    ``watermark``: the UTC datetime or tick before which an event is late; None before the first event.
    """

    events: int
    bad: int
    late: int
    watermark: datetime | int | None


class Streams:
    """Return the streams that arrived or that a query reads. Must be called with the lock held."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def stats(self) -> Mapping[str, StreamStats]:
        """The streams that came or that a query reads, by IRI, and what there was of each."""
        found: dict[str, StreamStats] = {}
        for stream, (clock, time) in self._core.dispatcher.streams().items():
            iri = self._core.dictionary.term(stream).value
            watermark = None if time is None or clock is None else clock.show(time)
            found[iri] = StreamStats(
                self._core.dispatcher.arrived(stream), *self._core.rejects.of(iri), watermark
            )
        return found

    def arrived(self) -> Mapping[str, int]:
        """How many events of each stream came so far, late and malformed ones included."""
        counts = self._core.rejects.unnumbered()
        counts.update(
            {self._core.dictionary.term(s).value: n for s, n in self._core.dispatcher.arrivals.items()}
        )
        return dict(+counts)

    def watermark(self) -> datetime | int | None:
        """Up to where time is complete for the slowest query; None before the first event."""
        reached = [
            (stream_set.order.time, stream_set.order.clock)
            for stream_set in self._core.dispatcher.stream_sets
        ]
        known = [(time, clock) for time, clock in reached if time is not None]
        if not known:
            return None
        time, clock = min(known, key=lambda pair: pair[0])
        return (clock or Clock.TICKS).show(time)

    def check_read(self) -> None:
        """Raises ``SourceError`` if there is a stream of which all events were malformed."""
        for stream, (count, letter) in self._core.rejects.first_bad().items():
            if not self._core.dispatcher.arrived(self._core.dictionary.pin(ox.NamedNode(stream))):
                many = f"all {count} events are malformed, first" if count > 1 else "its only event,"
                raise SourceError(
                    f"nothing of <{stream}> could be read: {many} {letter.position}: {letter.reason}"
                )
