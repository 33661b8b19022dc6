"""The queries of an engine, and what events and the passing of time do to them; one thread at a time."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from spaseq.engine.handle import Handle
from spaseq.engine.registered import Registered, producers_first
from spaseq.engine.rejects import Rejects, letter_of
from spaseq.errors import warn
from spaseq.events import Clock, EventBatch
from spaseq.gpm.sharing import Sharing
from spaseq.limits import Limits
from spaseq.results.match import Match
from spaseq.terms import Dictionary


class Flow:
    """Registered queries, and how far their streams have come.

    What is raised inside a query ends that query, and only that; what a callback raises comes out when the
    other queries have had their turn. So an exception leaves each query either whole or over. ``events``
    counts those that arrived.
    """

    def __init__(self, dictionary: Dictionary, sharing: Sharing, rejects: Rejects, limits: Limits) -> None:
        self.events = 0
        self.queries: Sequence[Registered] = ()
        self._dictionary = dictionary
        self._sharing = sharing
        self._rejects = rejects
        self._limits = limits
        self._arrivals: Counter[int] = Counter()
        self._unread: set[int] = set()
        self._failed: list[Handle] = []
        self._closing = False

    @property
    def is_over(self) -> bool:
        """Whether no query wants any more."""
        return bool(self.queries) and all(q.handle.done for q in self.queries)

    def arrived(self, stream: int) -> int:
        """How many events of a stream there were."""
        return self._arrivals[stream]

    def add(self, registered: Registered) -> None:
        """One query more; those that are over go."""
        live = [q for q in self.queries if not q.handle.done]
        self.queries = producers_first([*live, registered])
        made = {q.output for q in self.queries if q.output is not None}
        for reader in self.queries:
            for stream in made & reader.order.clocks.keys():
                reader.order.clocks[stream].holds = True

    # --- what happens ---------------------------------------------------------------------------

    def arrive(self, stream: int, batch: EventBatch) -> None:
        """Events of a stream are there."""
        if len(batch):
            self._take(stream, batch)
        self.move()

    def move(self) -> None:
        """Every query goes to its watermark, and what that completes is delivered."""
        self._each(self._move)

    def promise(self, clock: Clock, time: int, stream: int | None) -> None:
        """No event before ``time`` will come, of a stream or of any that no query makes."""
        derived = {q.output for q in self.queries}
        for query in self.queries:
            if not query.handle.done:
                streams = [s for s in query.order.clocks if stream in (None, s) and s not in derived]
                query.order.promise(clock, time, streams)
        self.move()

    def hold(self, stream: int, holds: bool) -> None:
        """A stream that is read holds the others back, one that has ended or is idle does not."""
        for query in self.queries:
            if stream in query.order.clocks:
                query.order.clocks[stream].holds = holds

    def close(self) -> None:
        """No event will come: every window ends."""
        self._closing = True
        self._each(self._close)

    def failed(self) -> list[Handle]:
        """The queries that failed since this was last asked."""
        failed, self._failed = self._failed, []
        return failed

    # --- inside -----------------------------------------------------------------------------------

    def _take(self, stream: int, batch: EventBatch) -> None:
        """Hands a stream's events to the queries that read it; rejects what comes too late."""
        numbered = batch.renumber(self._arrivals[stream])
        self._arrivals[stream] += len(batch)
        self.events += len(batch)
        readers = [q for q in self.queries if stream in q.order.clocks and not q.handle.done]
        if not readers:
            self._warn_unread(stream)
        late: set[int] = set()
        misfit: Registered | None = None
        interrupt: BaseException | None = None
        for query in readers:
            if not query.order.fits(numbered.clock):
                misfit = query
                continue
            try:
                indices = query.order.add(numbered).tolist()
            except BaseException as error:
                # The others still get the event, and are moved on by the next one.
                self._fail(query, error)
                interrupt = interrupt if isinstance(error, Exception) else error
                continue
            query.pipeline.stats.late += len(indices)
            late.update(indices)
        if interrupt is not None:
            raise interrupt
        if misfit is not None:
            self._reject_clock(numbered, misfit)
        for index in sorted(late):
            self._rejects.too_late(numbered, index, max(q.order.watermark for q in readers))

    def _each(self, do: Callable[[Registered], None]) -> None:
        """Does something to every query, producers of streams before their readers."""
        raised: Exception | None = None
        for query in self.queries:
            try:
                do(query)
            except Exception as error:  # a callback's; what happens inside a query ends that
                raised = raised or error
        if raised is not None:
            raise raised

    def _move(self, query: Registered) -> None:
        if not query.handle.done:
            query.handle.deliver()
            self._give(query, query.order.release)
            time = query.order.time
            if time is not None and not query.handle.done:
                self._find(query, query.pipeline.advance(time))
            most = self._limits.held_events
            if most is not None and query.order.held > most:
                what = f"holding {query.order.held} events back"
                self._fail(query, self._limits.error("held_events", what))
        self._pass_on(query)

    def _give(self, query: Registered, release: Callable[[], EventBatch | None]) -> None:
        """Lets a query have events that were held for it."""
        try:
            batch = release()
        except BaseException as error:
            self._fail(query, error)
            if not isinstance(error, Exception):
                raise
            return
        if batch is not None:
            self._find(query, query.pipeline.process(batch), after_all=True)

    def _find(self, query: Registered, matches: Iterator[Match], *, after_all: bool = False) -> None:
        """``after_all``: what was found before must be complete, since these need another state."""
        handle, before = query.handle, query.handle.error
        try:
            # What feeds another query is part of it.
            handle.add(matches, all_at_once=query.output is not None, after_all=after_all)
        finally:
            if handle.error is not before:
                self._failed.append(handle)

    def _fail(self, query: Registered, error: BaseException) -> None:
        query.handle.fail(error)
        self._failed.append(query.handle)
        # What it was about to find out of the batch in hand is of no use to others.
        self._sharing.forget()

    def _close(self, query: Registered) -> None:
        """Ends a query's last window."""
        if query.is_closed:
            return
        if not query.handle.done:
            query.handle.deliver()
            self._give(query, query.order.drain)
            if not query.handle.done:
                self._find(query, query.pipeline.close())
        self._pass_on(query)
        query.is_closed = True

    def _pass_on(self, query: Registered) -> None:
        """Gives the events of REGISTER STREAM to the queries that read that stream."""
        if query.output is None:
            return
        derived = query.pipeline.derived()
        if derived is not None:
            self._take(query.output, derived)
        if query.order.time is not None:
            query.settled = query.pipeline.settled(query.order.time)
        makers = [q.settled for q in self.queries if q.output == query.output and not q.handle.done]
        for reader in self.queries:
            clock = reader.order.clocks.get(query.output)
            if clock is not None and not self._closing:
                clock.newest = max(clock.newest, min(makers, default=clock.newest))
                clock.holds = bool(makers)

    def _reject_clock(self, batch: EventBatch, query: Registered) -> None:
        reason = f"its time is in {batch.clock}, but the query's first event was in {query.order.clock}"
        for index in range(len(batch)):
            self._rejects.malformed(letter_of(batch, index, reason))

    def _warn_unread(self, stream: int) -> None:
        if stream in self._unread or any(stream in q.order.clocks for q in self.queries):
            return
        if any(stream == q.output for q in self.queries):  # nobody has to read what REGISTER STREAM makes
            return
        self._unread.add(stream)
        iri = self._iri_of(stream)
        known = [self._iri_of(s) for q in self.queries for s in q.order.clocks]
        near = difflib.get_close_matches(iri, known, 1)
        hint = f"; did you mean <{near[0]}>?" if near else ""
        warn(f"no registered query reads stream <{iri}>{hint}")

    def _iri_of(self, stream: int) -> str:
        return self._dictionary.term(stream).value
