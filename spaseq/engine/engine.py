"""The embedded engine: registered queries, events pushed or pulled, matches delivered."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from itertools import chain
from pathlib import Path
from time import perf_counter
from types import MappingProxyType
from typing import IO, TYPE_CHECKING, Any, Final

import numpy as np
import pyoxigraph as ox

from spaseq.connect import Live, LiveSource, Location, open_source, resolved
from spaseq.effort import Effort, Policy, Pool, latency_given, policy_given
from spaseq.engine.given import (
    EventGraph,
    GivenTime,
    GraphName,
    StreamName,
    duration_given,
    graph_name,
    stream_iri,
    time_given,
    triples_given,
)
from spaseq.engine.handle import Handle
from spaseq.engine.inbox import Inbox, row
from spaseq.engine.pipelines.flow import Flow
from spaseq.engine.pipelines.order import BEGINNING
from spaseq.engine.pipelines.pipeline import Pipeline
from spaseq.engine.pull import IDLE, WallClock, close, in_turn, with_idle
from spaseq.engine.rejects import DeadLetters, Rejects
from spaseq.engine.turn import Turn
from spaseq.errors import EngineError, SourceError, warn
from spaseq.events import BatchBuilder, Clock, EventBatch, Single, Stamp, identified
from spaseq.gpm.kb import KnowledgeBase
from spaseq.gpm.kb import Source as Knowledge
from spaseq.gpm.sharing import Sharing
from spaseq.language import prepare
from spaseq.language.syntax import Query
from spaseq.limits import Limits
from spaseq.matching.templates.form import form
from spaseq.results.match import Match
from spaseq.sources import BadEvent, SourceOptions
from spaseq.sources import open_source as read_source
from spaseq.sources.assembly.sink import check_term, check_terms
from spaseq.terms.dictionary import Dictionary, Term

if TYPE_CHECKING:
    from spaseq.engine.durable.resume import Position
    from spaseq.engine.durable.state import State

#: So many new terms are not worth looking for old ones.
_SWEEP_AFTER: Final = 25_000


@dataclass(frozen=True, slots=True)
class Source:
    """A stream and where to read it.

    ``location``: a path, ``-`` for standard input, an open binary file, a table, or a live source, which may
    be given as its URL (see ``spaseq.connect``).
    """

    stream: StreamName
    location: Location
    options: SourceOptions = field(default_factory=SourceOptions)


@dataclass(frozen=True, slots=True)
class StreamStats:
    """What there was of a stream: its ``events``, late ones included, malformed ones, late ones.

    ``watermark``: before that, a UTC datetime or a tick, an event would be late; None if nobody knows.
    """

    events: int
    bad: int
    late: int
    watermark: datetime | int | None


class Engine:
    """Runs SPAseq queries over streams of events, in this process.

    ``kb`` names background graphs: IRI → file, rdflib graph or Turtle text. ``lateness`` is how far
    behind the newest event another may come and still count; on ticks a second is one. ``idle``: a pulled
    stream that brings nothing for so long no longer holds the others back; with ``wall_clock``, a clock in
    seconds such as ``time.monotonic``, its time then goes on from its newest event as that clock does. With
    ``strict``, the first bad or late event raises; otherwise each goes to ``dead_letters`` (a callable, or
    the path of an NDJSON file; the newest are kept in ``rejected`` when it is None) and is counted in ``bad``
    or ``late``; unless a callable hears of it, the first of a stream and kind is a ``SpaseqWarning``.
    ``evaluator`` names the evaluator to use instead of the planned one. A query that would take more than
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
        strict: bool = False,
        dead_letters: DeadLetters | str | Path | None = None,
        evaluator: str | None = None,
        limits: Limits = Limits(),
        latency: timedelta | None = None,
        memory: int | None = None,
        policy: Policy | str = Policy.SHARP,
        clock: Callable[[], float] = perf_counter,
        state: str | Path | None = None,
        commit_every: int | timedelta | None = timedelta(seconds=1),
    ) -> None:
        duration_given("lateness", lateness)
        self._latency = None if latency is None else latency_given(latency)
        self._pool = None if memory is None else Pool(memory)
        self._policy, self._clock = policy_given(policy), clock
        self._idle = None if idle is None else duration_given("idle", idle)
        if wall_clock is not None and idle is None:
            raise EngineError("wall_clock moves the time of idle streams on: say idle=, too")
        self._wall_clock = None if wall_clock is None else WallClock(wall_clock, lateness)
        self._kb = kb.unshared() if isinstance(kb, KnowledgeBase) else KnowledgeBase(kb or {})
        self._evaluator = evaluator
        self._limits = limits
        self.turn = Turn()
        self._contexts: dict[Term, Path] = {}
        self._rejects = Rejects(dead_letters, strict, self.turn)
        self._dictionary = Dictionary(limits)
        self._sharing = Sharing()
        self._flow = Flow(self._dictionary, self._sharing, self._rejects, limits, lateness)
        # What is still to be done, in order: callbacks add to it while it is worked on.
        self._tasks: deque[Callable[[], None]] = deque()
        # What comes before them.
        self._inbox = Inbox(self._dictionary)
        self.turn.catch_up = self._catch_up
        self._working = False
        self._closing = False
        self._closed = False
        self._queries: dict[str, Handle] = {}
        self._state = None if state is None else self._opened(state, commit_every, lateness)

    def _opened(self, path: str | Path, every: int | timedelta | None, lateness: timedelta) -> State:
        """The state in a file; the engine becomes what it says."""
        # Here, because compiled code takes a while to load.
        from spaseq.engine.durable.checks import every_given
        from spaseq.engine.durable.replay import Settings
        from spaseq.engine.durable.state import State

        if self._latency is not None or self._pool is not None:
            raise EngineError("a query under a bound sheds as the clock says, which no restart repeats")
        settings = Settings(str(lateness), self._evaluator or "")
        self.turn.used = True  # a file that is open is not for a process that is forked off
        state = State(path, every_given(every), settings, self._flow, self._rejects, self._dictionary)
        try:
            with self.turn.lock:
                state.open(lambda query, start: self._add(query, None, None, start, True), self._forget)
        except BaseException:
            state.close()
            raise
        self._queries = state.handles
        return state

    def __repr__(self) -> str:
        self.turn.settle()
        state = "closed" if self._closed else "open"
        return f"<Engine: {state}, {self._flow.live} queries, {self.events} events>"

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
        comes out of that thread's call, when the other queries have had the event. Raises ``QueryError``;
        ``KnowledgeError`` for a background graph that the engine does not have; ``EngineError`` if its
        stream would, by REGISTER STREAM, feed itself. ``latency``: its own bound instead of the engine's;
        ``weight``: of the engine's ``memory`` it gets a part in proportion to that. A query with a bound runs
        alone; one that could not keep it without false matches runs without, and a warning says so.

        ``name``: what ``queries`` has it under, which a ``state`` asks for. Of a query that is there under
        this name its handle is returned, which calls ``on_match`` from now on; another query of the name is
        refused, or, with ``replace``, cancelled, and this one starts in its place.
        """
        effort = self._effort(latency, weight)
        prepared = prepare(query) if isinstance(query, str) else query
        self.turn.check()
        with self.turn.lock:
            self._check_open()
            self._catch_up()
            if name is None and self._state is None:
                return self._add(prepared, on_match, effort)
            return self._named(prepared, on_match, effort, name, replace)

    @property
    def queries(self) -> Mapping[str, Handle]:
        """The handles of the queries that were registered under a name, by these."""
        return MappingProxyType(self._queries)

    def _named(
        self,
        query: Query,
        on_match: Callable[[Match], None] | None,
        effort: Effort | None,
        name: str | None,
        is_replaced: bool,
    ) -> Handle:
        from spaseq.engine.durable.checks import name_given, repeatable

        name, state = name_given(name), self._state
        known = self._queries.get(name)
        if known is not None and not known.is_cancelled:
            if known.query == query and not (is_replaced and known.is_over):
                known.call(on_match)
                return known
            if not is_replaced:
                raise EngineError(
                    f"there is another query of the name {name!r}, {known.name}: take another name, or say "
                    "replace=True to end that one and start this one in its place"
                )
        if state is not None:
            if effort is not None:
                raise EngineError("a query under a bound sheds as the clock says, which no restart repeats")
            repeatable(query)
        before = known if known is not None and not known.is_cancelled else None
        if state is None:
            handle = self._queries[name] = self._add(query, on_match, effort)
        else:
            handle = state.register(name, query, lambda: self._add(query, on_match, None, None, True))
        if before is not None:
            before.cancel()
        return handle

    def _add(
        self,
        prepared: Query,
        on_match: Callable[[Match], None] | None,
        effort: Effort | None,
        start: int | None = None,
        is_counted: bool = False,
    ) -> Handle:
        """One query more. ``start``: when its first window began; ``is_counted`` as for a handle."""
        self._kb.require(prepared)
        kb = self._kb.restrict(prepared.knowledge)
        own = form(prepared) if self._evaluator is None and effort is None else None
        key = None if own is None else (*own.key, start)
        if own is not None and key is not None and (crowd := self._flow.crowd(key, kb)) is not None:
            handle = Handle(crowd.seat(prepared), on_match, self.turn, self._limits, self._contexts)
            crowd.join(handle, own.constants)
            return handle
        pipeline = Pipeline(
            prepared,
            self._dictionary,
            kb,
            self._evaluator,
            self._sharing,
            start,
            limits=self._limits,
            effort=effort,
        )
        handle = Handle(pipeline, on_match, self.turn, self._limits, self._contexts, is_counted=is_counted)
        if pipeline.unkept is not None:
            warn(f"query {handle.name} {pipeline.unkept}")
        self._flow.add(pipeline, handle, key)
        return handle

    def _effort(self, latency: timedelta | None, weight: float) -> Effort | None:
        """The bounds of a query; None if it has none."""
        if not weight > 0:
            raise EngineError(f"weight={weight!r}: a weight is a number above 0")
        bound = self._latency if latency is None else latency_given(latency)
        if bound is None and self._pool is None:
            return None
        return Effort(bound, self._pool, weight, self._policy, self._clock)

    # --- events -------------------------------------------------------------------------------

    def push(
        self,
        stream: StreamName,
        graph: EventGraph,
        time: GivenTime,
        name: GraphName = None,
    ) -> None:
        """Adds one event; what it completes is delivered before the call returns.

        From a callback: as soon as the event in hand is done with. ``time``: a datetime (without a
        timezone: UTC) or pandas.Timestamp; or an int or numpy integer, a tick. ``name`` is the name of the
        event's graph, if it has one. Events are trusted to come in order, up to ``lateness``. Raises
        ``EngineError`` for what is no time.
        """
        clock, value = time_given(time)
        iri = stream_iri(stream)
        if self.turn.is_aside:
            # Dead letters may be told by a thread that has no turn, and must not wait for one.
            self._tasks.append(lambda: self._arrive(self._event(iri, graph, clock, value, name)))
            return
        self.turn.check()
        with self.turn.lock:
            self._check_open()
            event = self._event(iri, graph, clock, value, name)
            if event is not None:
                self._do(partial(self._arrive, event))
            elif self._inbox.is_full:
                self._catch_up(is_asked=False)
            self._commit_if_due()

    def push_many(
        self,
        stream: StreamName,
        events: Iterable[tuple[EventGraph, GivenTime] | tuple[EventGraph, GivenTime, GraphName]],
    ) -> None:
        """Adds the events of a stream, each a graph, a time and perhaps a name, as if each were pushed.

        What they complete is delivered before the call returns, when the last of them is there, which costs
        several times less than one by one. If an error ends it (``EngineError`` for what is no event or
        no time, what ``events`` raises, ``strict``), those before have arrived.
        """
        iri = stream_iri(stream)
        self.turn.check()
        with self.turn.lock:
            self._check_open()
            self._catch_up()
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
                for _, builder in builders:
                    self._do(partial(self._flow.arrive, identity, builder.build()))
            self._commit_if_due()

    def advance(self, time: GivenTime, stream: StreamName | None = None) -> None:
        """Says that no event before ``time`` will come, of a stream or of any.

        Windows that have ended by then end, and what waited for that is delivered before the call returns;
        an event before ``time`` is late. Queries on the other clock (instants, ticks) are not concerned.
        Streams that queries make by REGISTER STREAM move on by themselves.
        """
        clock, value = time_given(time)
        iri = None if stream is None else stream_iri(stream)
        self.turn.check()
        with self.turn.lock:
            self._check_open()
            identity = None if iri is None else self._dictionary.pin(iri)
            self._do(partial(self._flow.promise, clock, value, identity))
            self._commit_if_due()

    def feed(self, *sources: Source) -> None:
        """Reads sources to their end, merged by time, and delivers what they complete.

        Sources given in one call are read side by side. Raises ``SourceError`` for one that cannot be read.
        """
        for _ in self.pull(*sources):
            pass

    def pull(self, *sources: Source) -> Iterator[None]:
        """As ``feed``, step by step: yields after each batch of events, its matches delivered.

        The sources are opened by the call itself, which raises what is wrong with them.
        """
        self.turn.check()
        with self.turn.lock:
            self._check_open()
            if self._working:
                raise EngineError("sources cannot be read inside a callback: push their events")
            self._catch_up()
            self.turn.used = True  # readers of a process are not in its children
            opened: dict[int, Iterator[EventBatch]] = {}
            for source in sources:
                stream = stream_iri(source.stream)
                identity = self._dictionary.pin(stream)
                if identity in opened:
                    raise EngineError(
                        f"two sources for stream {stream} in one call: feed one after the other"
                    )
                location, options = resolved(source.location, source.options)
                if options.context is not None:
                    self._contexts[stream] = options.context
                opened[identity] = self._open(location, options, stream)
        return self._pull(opened)

    def _open(self, location: Location, options: SourceOptions, stream: ox.NamedNode) -> Iterator[EventBatch]:
        """The events of a source that are new."""
        known: Position | None = None
        refuse: Callable[[BadEvent], None] = self._rejects.malformed
        if self._state is not None:
            from spaseq.engine.durable.resume import Position, again, check

            check(location)
            where = str(location) if isinstance(location, str | Path) else "table"
            known = self._state.positions.setdefault(stream.value, Position(where))
            refuse = again(refuse, known.bad)
        batches = open_source(
            location,
            stream,
            self._dictionary,
            options,
            on_bad=refuse,
            limits=self._limits,
            idle=None if self._wall_clock is None else self._idle,
        )
        if known is None or not known.events:
            return batches
        from spaseq.engine.durable.resume import resumed

        return resumed(batches, replace(known))

    def _pull(self, opened: Mapping[int, Iterator[EventBatch]]) -> Iterator[None]:
        newest = dict.fromkeys(opened, BEGINNING)
        with self.turn.lock:
            for identity in opened:
                self._flow.hold(identity, True)
                if self._state is not None:
                    position = self._state.positions[self._dictionary.term(identity).value]
                    newest[identity] = BEGINNING if position.newest is None else position.newest
        beats = self._wall_clock is not None
        steps = in_turn(opened, newest) if self._idle is None else with_idle(opened, self._idle, beats=beats)
        try:
            for identity, batch in steps:  # which may wait, and so has no turn
                self.turn.check()
                with self.turn.lock:
                    self._check_open()
                    self._do(partial(self._step, identity, batch))
                    self._commit_if_due()
                yield
                source = opened[identity]
                if isinstance(source, Live) and isinstance(batch, EventBatch):
                    source.settle()  # its matches were taken, too
                if self._flow.is_over:
                    return
        finally:
            # Whatever ended it: no thread and no connection outlives the reading.
            steps.close()
            for source in opened.values():
                close(source)

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
        stream = stream_iri(source.stream)
        if isinstance(source.location, LiveSource):
            raise EngineError(f"{source.location.address}: a live source is not taken, but fed: engine.feed")
        given = None if time is None else time_given(time)
        gone = 0

        def refuse(kind: str, letter: BadEvent) -> None:
            nonlocal gone
            gone += 1
            if refused is not None:
                refused(kind, letter)

        with self.turn.lock:
            self._check_open()
            identity = self._dictionary.pin(stream)
            batches = read_source(
                source.location,
                stream,
                self._dictionary,
                source.options if given is None else replace(source.options, time="arrival"),
                on_bad=self._rejects.malformed,
                limits=self._limits,
                otherwise=None if otherwise is None else time_given(otherwise),
                whole=whole,
            )
        while True:
            with self._rejects.heard(refuse):
                batch = next(batches, None)
                if batch is None:
                    return
                if given is not None:
                    times = np.full(len(batch), given[1], dtype=np.int64)
                    batch = replace(batch, clock=given[0], time=times)
                gone = 0
                with self.turn.lock:
                    self._check_open()
                    self._do(partial(self._flow.arrive, identity, batch))
                    self._commit_if_due()
            yield len(batch) - gone

    def change(self, graph: str, triples: Sequence[ox.Triple] | None) -> None:
        """Gives a background graph other triples, or with None takes it away.

        The events that have come so far were matched with it as it was, those that come from now on, and
        those that ``lateness`` still holds back, are matched with it as it is then.
        """
        self.turn.check()
        with self.turn.lock:
            self._check_open()
            if self._working:
                raise EngineError("background graphs cannot be changed inside a callback")
            if self._state is not None:
                raise EngineError(
                    "background graphs of an engine with a state cannot be changed: the state does not hold "
                    "them, and a restart would match the events before the change with those after it"
                )
            self._catch_up()
            self._kb.change(stream_iri(graph), triples)

    def follow(self, seen: Callable[[EventBatch], None]) -> None:
        """Calls ``seen`` with all events from now on, late ones included, in the engine's turn.

        Each time with some of one stream, in the order of arrival. It must not raise.
        """
        self.turn.settle()
        with self.turn.lock:
            self._flow.seen = seen

    @property
    def kb(self) -> KnowledgeBase:
        """The background graphs, as they are now; only ``change`` may change them."""
        return self._kb

    def streams(self) -> Mapping[str, StreamStats]:
        """The streams that came or that a query reads, by IRI, and what there was of each."""
        self.turn.settle()
        with self.turn.lock:
            found: dict[str, StreamStats] = {}
            for stream, (clock, time) in self._flow.streams().items():
                iri = self._dictionary.term(stream).value
                watermark = None if time is None or clock is None else clock.show(time)
                found[iri] = StreamStats(self._flow.arrived(stream), *self._rejects.of(iri), watermark)
            return found

    def close(self) -> None:
        """Says that no event will come: ends every window, delivers the rest, closes the dead letters.

        With a ``state``, more will come, to the next engine: so no window ends, and all is committed.
        """
        if self._state is None:
            self.finish()
            return
        self.turn.check()
        with self.turn.lock:
            if self._closed:
                return
            if self._working:
                raise EngineError("the engine cannot be closed inside a callback: close it after the push")
            try:
                self.commit()
            finally:
                self.abandon()
        self._rejects.summarise()

    def finish(self) -> None:
        """As ``close``; with a ``state``, too, every window ends. That is part of no commit.

        So the next engine with that state goes on as if it had not been, and gives what ended here anew.
        """
        self.turn.check()
        with self.turn.lock:
            if self._closed:
                return
            if self._working:
                raise EngineError("the engine cannot be closed inside a callback: close it after the push")
            self._catch_up()
            self._work()
            self._working = self._closing = True
            try:
                self._flow.close()
            finally:
                self._working = False
            self.abandon()
            self._tell()
        self._rejects.summarise()

    def abandon(self) -> None:
        """Closes the engine as it is: what waits for a window's end is not delivered, nothing committed."""
        self._closed = True
        self._rejects.close()
        if self._state is not None:
            with self.turn.lock:
                self._state.close()

    @property
    def is_durable(self) -> bool:
        """Whether it has a state that outlives the process."""
        return self._state is not None

    # --- what outlives the process --------------------------------------------------------------

    def commit(self, outputs: Mapping[str, IO[Any]] | None = None) -> None:
        """Makes all that happened so far part of the ``state``, in one transaction.

        That is what arrived, and that the matches taken so far were taken: the next engine does not give them
        again. ``outputs``: open files, by any names, whose lengths are part of it (``outputs`` has them
        again). In a callback it is done as soon as the event in hand is. Raises ``EngineError`` if it cannot
        be written; nothing is lost, and the next commit has all.
        """
        self.turn.check()
        with self.turn.lock:
            state = self._state
            if state is None:
                raise EngineError("there is nothing to commit to: Engine(state=FILE)")
            self._check_open()
            self._do(partial(state.commit, outputs or {}))

    @property
    def outputs(self) -> Mapping[str, int]:
        """How long each output was at the last commit, in bytes."""
        return {} if self._state is None else dict(self._state.outputs)

    @property
    def arrived(self) -> Mapping[str, int]:
        """How many events of each stream came so far, late and bad ones included.

        After a restart these are those of the last commit: whoever pushes goes on after them.
        """
        self.turn.settle()
        with self.turn.lock:
            counts = {self._dictionary.term(s).value: n for s, n in self._flow.arrivals.items() if n}
            for (stream, kind), count in self._rejects.counts.items():
                if kind == "bad":
                    counts[stream] = counts.get(stream, 0) + count
            return counts

    def _commit_if_due(self) -> None:
        state = self._state
        if state is not None and not self._working and state.is_due:
            self.commit()

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            self.abandon()

    @property
    def events(self) -> int:
        """How many events arrived, late ones included."""
        return self._flow.events + self._inbox.size

    def check_read(self) -> None:
        """Raises ``SourceError`` if there is a stream of which all events were malformed."""
        for stream, (count, letter) in self._rejects.first_bad().items():
            if not self._flow.arrived(self._dictionary.pin(ox.NamedNode(stream))):
                many = f"all {count} events are malformed, first" if count > 1 else "its only event,"
                raise SourceError(
                    f"nothing of <{stream}> could be read: {many} {letter.position}: {letter.reason}"
                )

    @property
    def bad(self) -> int:
        """How many malformed events there were."""
        return self._rejects.bad

    @property
    def late(self) -> int:
        """How many events came after the watermark."""
        return self._rejects.late

    @property
    def rejected(self) -> Sequence[BadEvent]:
        """The newest bad and late events, if there is no sink for them."""
        return self._rejects.newest

    @property
    def watermark(self) -> datetime | int | None:
        """Up to where time is complete for the slowest query; None before the first event."""
        self.turn.settle()
        reached = [(intake.order.time, intake.order.clock) for intake in self._flow.intakes]
        known = [(time, clock) for time, clock in reached if time is not None]
        if not known:
            return None
        time, clock = min(known, key=lambda pair: pair[0])
        return (clock or Clock.TICKS).show(time)

    # --- inside: one turn ---------------------------------------------------------------------

    def _do(self, task: Callable[[], None]) -> None:
        """Does something now or, inside a callback, as soon as what is in hand is done with."""
        self._catch_up()
        self.turn.used = True
        most = self._limits.held_events
        if self._working and most is not None and len(self._tasks) >= most:
            raise self._limits.error("held_events", f"pushing {len(self._tasks) + 1} events inside callbacks")
        self._tasks.append(task)
        if not self._working:
            self._work()

    def _work(self) -> None:
        self._working = True
        try:
            while self._tasks:
                self._tasks.popleft()()
            self._forget()
        finally:
            self._working = False
        self._tell()

    def _tell(self) -> None:
        """Warns of queries that failed, where nobody will ask their handles."""
        for handle in self._flow.failed():
            if not handle.is_asked:
                warn(str(handle.error))

    def _event(
        self, iri: ox.NamedNode, graph: EventGraph, clock: Clock, time: int, name: GraphName
    ) -> EventBatch | None:
        """The event that was pushed, if it is to arrive now; None if it waits, or is none and is rejected."""
        terms, inbox, limits = self._dictionary, self._inbox, self._limits
        stream = terms.pin(iri)
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
                self.turn.is_behind = self.turn.used = True
                inbox.events.extend(event)
        except (ValueError, SyntaxError, TypeError) as error:
            position = self._flow.arrived(stream) + inbox.count(stream) + 1
            self._rejects.malformed(BadEvent(iri.value, f"event {position}", str(error), str(graph)))
        return None

    def _arrive(self, event: EventBatch | None) -> None:
        if event is not None:
            self._flow.arrive(event.stream.item(0), event)

    def _may_wait(self, stream: int, clock: Clock, time: int) -> bool:
        """Whether nobody can tell if an event arrives now, or when somebody asks."""
        if self._working or self._tasks or self._flow.arriving or not self.turn.may_wait:
            return False
        inbox = self._inbox
        if inbox.events:
            if not inbox.fits(stream, clock, time):
                return False
            if stream in inbox.streams:
                return True
        else:
            inbox.streams.clear()
        if not self._flow.is_smooth(stream, clock, time):
            return False
        inbox.clock = clock
        inbox.streams.add(stream)
        return True

    def _catch_up(self, *, is_asked: bool = True) -> None:
        """What has waited arrives, unless something is in hand; all of it if somebody asks."""
        inbox, flow = self._inbox, self._flow
        if self._working or not (inbox.events or flow.is_behind):
            return
        batches = [*flow.arriving, *inbox.batches(flow.arrived)]
        self._working, flow.is_asked = True, is_asked
        try:
            # No interrupt comes between these: that takes a call, or a loop.
            flow.arriving, inbox.events, inbox.size = batches, [], 0
            flow.move()
            self._forget()
        finally:
            self._working, flow.is_asked = False, True
            self.turn.is_behind = flow.is_behind
        self._tell()

    def _step(self, stream: int, batch: EventBatch | object | None) -> None:
        """What a source did: it brought events, went idle or ended."""
        flow, clock = self._flow, self._wall_clock
        flow.hold(stream, isinstance(batch, EventBatch))
        if isinstance(batch, EventBatch):
            if self._state is not None:
                self._state.positions[self._dictionary.term(stream).value].took(batch)
            if clock is not None and len(batch):
                clock.saw(stream, batch)
            flow.arrive(stream, batch)
        elif clock is not None and batch is IDLE and (time := clock.time(stream)) is not None:
            flow.promise(*time, stream)
        else:
            flow.move()

    def _forget(self) -> None:
        """Forgets the terms of events that are gone, whenever there are twice as many as were needed."""
        terms = self._dictionary
        if terms.unswept > max(_SWEEP_AFTER, len(terms) // 2):
            terms.sweep()

    def _check_open(self) -> None:
        self.turn.check()
        if self._closed:
            raise EngineError("the engine is closed: make a new one")
        if self._closing:
            raise EngineError("the engine is being closed: nothing comes after that")
