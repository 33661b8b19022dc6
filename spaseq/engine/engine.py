"""The embedded engine: registered queries, events pushed or pulled, matches delivered."""

from __future__ import annotations

import difflib
import math
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import IO, Final

import pyoxigraph as ox

from spaseq.engine.given import EventGraph, GraphName, StreamName, graph_name, stream_iri, triples_given
from spaseq.engine.handle import Handle
from spaseq.engine.order import Reorder
from spaseq.engine.pipeline import Pipeline
from spaseq.engine.pull import IDLE, in_turn, with_idle
from spaseq.engine.rejects import DeadLetters, Rejects, letter_of
from spaseq.errors import EngineError, SpaseqWarning
from spaseq.events import BatchBuilder, Clock, EventBatch, microseconds
from spaseq.gpm.kb import KnowledgeBase
from spaseq.gpm.kb import Source as Knowledge
from spaseq.gpm.sharing import Sharing
from spaseq.language import prepare
from spaseq.language.syntax import Query
from spaseq.results.match import Match
from spaseq.sources import BadEvent, SourceOptions, open_source
from spaseq.terms import Dictionary

#: So many new terms are not worth looking for old ones.
_SWEEP_AFTER: Final = 100_000


@dataclass(frozen=True, slots=True)
class Source:
    """A stream and where to read it: a path, ``-`` for standard input, or an open binary file."""

    stream: StreamName
    location: str | Path | IO[bytes]
    options: SourceOptions = field(default_factory=SourceOptions)


class _Registered:
    """A query's place in the engine: what orders its input, and what computes its matches."""

    def __init__(
        self,
        pipeline: Pipeline,
        handle: Handle,
        streams: Mapping[int, int],
        lateness: timedelta,
        output: int | None,
    ) -> None:
        self.pipeline = pipeline
        self.handle = handle
        self.order = Reorder(streams, lateness)
        self.output = output


class Engine:
    """Runs SPAseq queries over streams of events, in this process.

    ``kb`` names background graphs: IRI → file, rdflib graph or Turtle text. ``lateness`` is how far
    behind the newest event another may come and still count; on ticks a second is one. ``idle``: a pulled
    stream that brings nothing for so long no longer holds the others back. With ``strict``, the first bad
    or late event raises; otherwise each goes to ``dead_letters`` (a callable, or the path of an NDJSON
    file; the newest are kept in ``rejected`` when it is None) and is counted in ``bad`` or ``late``.
    ``evaluator`` names the evaluator to use instead of the planned one.

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
        strict: bool = False,
        dead_letters: DeadLetters | str | Path | None = None,
        evaluator: str | None = None,
    ) -> None:
        self.events = 0
        self._kb = kb.unshared() if isinstance(kb, KnowledgeBase) else KnowledgeBase(kb or {})
        self._lateness = lateness
        self._idle = idle
        self._evaluator = evaluator
        self._rejects = Rejects(dead_letters, strict)
        self._dictionary = Dictionary()
        self._sharing = Sharing()
        self._queries: list[_Registered] = []
        self._arrivals: Counter[int] = Counter()
        self._unread: set[int] = set()
        self._closed = False

    # --- queries ------------------------------------------------------------------------------

    def register(self, query: Query | str, on_match: Callable[[Match], None] | None = None) -> Handle:
        """Adds a query; it sees the events from now on.

        Raises ``QueryError``; ``KnowledgeError`` for a background graph that the engine does not have;
        ``EngineError`` if its stream would, by REGISTER STREAM, feed itself.
        """
        self._check_open()
        prepared = prepare(query) if isinstance(query, str) else query
        self._kb.require(prepared)
        kb = self._kb.restrict(prepared.knowledge)
        pipeline = Pipeline(prepared, self._dictionary, kb, self._evaluator, self._sharing)
        pin = self._dictionary.pin
        # Simultaneous events of different streams are processed in the order of the streams' IRIs.
        iris = sorted({declaration.iri.value for declaration in prepared.streams})
        streams = {pin(ox.NamedNode(iri)): rank for rank, iri in enumerate(iris)}
        output = pin(pipeline.output) if pipeline.output is not None else None
        registered = _Registered(pipeline, Handle(pipeline, on_match), streams, self._lateness, output)
        self._queries = _producers_first([*self._queries, registered])
        for query_ in self._queries:
            for other in self._queries:
                if other.output is not None and other.output in query_.order.clocks:
                    query_.order.clocks[other.output].holds = True
        return registered.handle

    # --- events -------------------------------------------------------------------------------

    def push(
        self,
        stream: StreamName,
        graph: EventGraph,
        time: datetime | int,
        name: GraphName = None,
    ) -> None:
        """Adds one event; what it completes is delivered before the call returns.

        ``time``: a datetime (without a timezone: UTC), or an int, a tick. ``name`` is the name of the
        event's graph, if it has one. Events are trusted to come in order, up to ``lateness``.
        """
        self._check_open()
        iri = stream_iri(stream)
        identity = self._dictionary.pin(iri)
        clock, value = (Clock.TICKS, time) if isinstance(time, int) else (Clock.INSTANTS, microseconds(time))
        builder = BatchBuilder(self._dictionary, iri, clock)
        try:
            builder.add(value, 0, triples_given(graph), graph_name(name, graph))
        except (ValueError, SyntaxError, TypeError) as error:
            position = f"event {self._arrivals[identity] + 1}"
            self._rejects.malformed(BadEvent(iri.value, position, str(error), str(graph)))
            return
        self._take(identity, builder.build())
        self._pump()
        self._forget()

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
        self._check_open()
        opened: dict[int, Iterator[EventBatch]] = {}
        for source in sources:
            stream = stream_iri(source.stream)
            identity = self._dictionary.pin(stream)
            if identity in opened:
                raise EngineError(f"two sources for stream {stream} in one call: feed one after the other")
            opened[identity] = open_source(
                source.location, stream, self._dictionary, source.options, on_bad=self._rejects.malformed
            )
        return self._pull(opened)

    def _pull(self, opened: Mapping[int, Iterator[EventBatch]]) -> Iterator[None]:
        for identity in opened:
            self._hold(identity, True)
        steps = in_turn(opened) if self._idle is None else with_idle(opened, self._idle)
        for identity, batch in steps:
            if isinstance(batch, EventBatch):
                self._hold(identity, True)
                if len(batch):
                    self._take(identity, batch)
            elif batch is None or batch is IDLE:
                self._hold(identity, False)
            self._pump()
            self._forget()
            yield
            if self._queries and all(q.handle.done for q in self._queries):
                return

    def close(self) -> None:
        """Says that no event will come: ends every window, delivers the rest, closes the dead letters."""
        if self._closed:
            return
        for query in self._queries:
            if not query.handle.done:
                batch = query.order.drain()
                if batch is not None:
                    query.handle._finish()
                    self._run(query, query.pipeline.process(batch))
                self._run(query, query.pipeline.close())
                self._pass_on(query, math.inf)
        self.abandon()

    def abandon(self) -> None:
        """Closes the engine as it is: what waits for a window's end is not delivered."""
        self._closed = True
        self._rejects.close()

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            self.abandon()

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
        return self._rejects.kept

    @property
    def watermark(self) -> datetime | int | None:
        """Up to where time is complete for the slowest query; None before the first event."""
        reached = [
            (q.order.watermark, q.order.clock) for q in self._queries if math.isfinite(q.order.watermark)
        ]
        if not reached:
            return None
        time, clock = min(reached, key=lambda pair: pair[0])
        return (clock or Clock.TICKS).show(int(time))

    # --- inside -------------------------------------------------------------------------------

    def _take(self, stream: int, batch: EventBatch) -> None:
        """Hands a stream's events to the queries that read it; rejects what comes too late."""
        numbered = batch.renumber(self._arrivals[stream])
        self._arrivals[stream] += len(batch)
        self.events += len(batch)
        readers = [q for q in self._queries if stream in q.order.clocks and not q.handle.done]
        if not readers:
            self._warn_unread(stream)
        late: set[int] = set()
        for query in readers:
            if not query.order.fits(numbered):
                self._reject_clock(numbered, query)
                continue
            indices = query.order.add(numbered).tolist()
            query.pipeline.stats.late += len(indices)
            late.update(indices)
        for index in sorted(late):
            self._rejects.too_late(numbered, index, max(q.order.watermark for q in readers))

    def _pump(self) -> None:
        """Moves every query to its watermark, producers of streams before their readers."""
        for query in self._queries:
            if query.handle.done:
                continue
            batch = query.order.release()
            if batch is not None:
                query.handle._finish()
                self._run(query, query.pipeline.process(batch))
            if math.isfinite(query.order.watermark) and not query.handle.done:
                self._run(query, query.pipeline.advance(int(query.order.watermark)))
            self._pass_on(query, query.order.watermark)

    def _forget(self) -> None:
        """Forgets the terms of events that are gone, whenever there are twice as many as were needed."""
        terms = self._dictionary
        if terms.unswept > max(_SWEEP_AFTER, len(terms) // 2):
            terms.sweep()

    def _run(self, query: _Registered, matches: Iterable[Match]) -> None:
        # What feeds another query is part of it.
        query.handle._add(matches, all_at_once=query.output is not None)

    def _pass_on(self, query: _Registered, watermark: float) -> None:
        """Gives the events of REGISTER STREAM to the queries that read that stream."""
        if query.output is None:
            return
        derived = query.pipeline.derived()
        settled = query.pipeline.settled(watermark)
        if derived is not None:
            self._take(query.output, derived)
        for reader in self._queries:
            clock = reader.order.clocks.get(query.output)
            if clock is not None:
                clock.newest = max(clock.newest, settled)

    def _hold(self, stream: int, holds: bool) -> None:
        for query in self._queries:
            if stream in query.order.clocks:
                query.order.clocks[stream].holds = holds

    def _check_open(self) -> None:
        if self._closed:
            raise EngineError("the engine is closed: make a new one")

    def _reject_clock(self, batch: EventBatch, query: _Registered) -> None:
        reason = f"its time is in {batch.clock}, but the query's first event was in {query.order.clock}"
        for index in range(len(batch)):
            self._rejects.malformed(letter_of(batch, index, reason))

    def _warn_unread(self, stream: int) -> None:
        if stream in self._unread or any(stream in q.order.clocks for q in self._queries):
            return
        if any(stream == q.output for q in self._queries):  # nobody has to read what REGISTER STREAM makes
            return
        self._unread.add(stream)
        iri = self._iri_of(stream)
        known = [self._iri_of(s) for q in self._queries for s in q.order.clocks]
        near = difflib.get_close_matches(iri, known, 1)
        hint = f"; did you mean <{near[0]}>?" if near else ""
        warnings.warn(f"no registered query reads stream <{iri}>{hint}", SpaseqWarning, stacklevel=4)

    def _iri_of(self, stream: int) -> str:
        return self._dictionary.term(stream).value


def _producers_first(queries: list[_Registered]) -> list[_Registered]:
    """The queries so that each comes after those whose REGISTER STREAM it reads."""
    ordered: list[_Registered] = []
    left = list(queries)
    while left:
        made = {q.output for q in left if q.output is not None}
        ready = [q for q in left if not made & q.order.clocks.keys()]
        if not ready:
            raise EngineError("a query's registered stream would feed itself, directly or through others")
        ordered += ready
        left = [q for q in left if q not in ready]
    return ordered
