"""The queries of an engine by streams: which share an order, which read a stream, which make one."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from spaseq.engine.handle import Handle
from spaseq.engine.pipelines.patterns import Environment
from spaseq.engine.pipelines.pipeline import Pipeline
from spaseq.engine.pipelines.query_set import QuerySet
from spaseq.engine.pipelines.stream_set import DispatchedQuery, StreamSet
from spaseq.engine.rejects import Rejects
from spaseq.errors import EngineError, warn
from spaseq.events import Clock, EventBatch
from spaseq.limits import Limits
from spaseq.matching.sharing.cohort import Elements
from spaseq.matching.templates.form import form
from spaseq.patterns.sharing import Sharing
from spaseq.terms.dictionary import Dictionary

#: Queries that are over are removed only if there are more than this many.
_SLACK: Final = 16


class Routes:
    """The registered queries, by the streams that they read and make."""

    def __init__(
        self,
        dictionary: Dictionary,
        sharing: Sharing,
        rejects: Rejects,
        limits: Limits,
        lateness: timedelta = timedelta(0),
    ) -> None:
        self.queries: list[DispatchedQuery] = []
        #: Whether events are being replayed: nothing is reported.
        self.is_replayed = False
        self._dictionary = dictionary
        self._sharing = sharing
        self._rejects = rejects
        self._limits = limits
        self._lateness = lateness
        #: How many queries have been registered.
        self.registered = 0
        self._worth_pruning = _SLACK
        #: How many events of each stream have arrived: the number of its next event.
        self.arrivals: Counter[int] = Counter()
        self._unread: set[int] = set()
        # By form, the newest query that others may join.
        self._by_form: dict[tuple[object, ...], DispatchedQuery] = {}
        self._elements = Elements()
        # By streams, their stream sets; the last one is the one that new queries may join.
        self._stream_sets: dict[frozenset[int], list[StreamSet]] = {}
        self._readers: dict[int, list[StreamSet]] = {}
        self._makers: dict[int, list[DispatchedQuery]] = {}
        # Stream sets to look at when events or time advance.
        self._stirred: dict[StreamSet, None] = {}
        self._closing = False

    def _clear(self) -> None:
        """Forget all queries."""
        self.queries, self._elements = [], Elements()
        for known in (self._by_form, self._stream_sets, self._readers, self._makers, self._stirred):
            known.clear()

    @property
    def is_over(self) -> bool:
        """Whether all queries are over."""
        return bool(self.queries) and all(q.handle.is_over for q in self.queries)

    @property
    def live(self) -> int:
        """How many queries are not over."""
        return sum(query.handle.live for query in self.queries)

    @property
    def stream_sets(self) -> Iterator[StreamSet]:
        """The stream sets of all queries."""
        for alike in self._stream_sets.values():
            yield from alike

    def newest(self, streams: frozenset[int]) -> StreamSet:
        """Return the stream set of the newest query of these streams."""
        return self._stream_sets[streams][-1]

    def streams(self) -> dict[int, tuple[Clock | None, int | None]]:
        """Return the streams that arrived or are read, with their clock and how far they have come; None:
        unknown.
        """
        found: dict[int, tuple[Clock | None, int | None]] = dict.fromkeys(self.arrivals, (None, None))
        for stream, stream_sets in self._readers.items():
            orders = [stream_set.order for stream_set in stream_sets]
            reached = [order.reached(stream) for order in orders]
            known = [time for time in reached if time is not None]
            clocks = [order.clock for order in orders if order.clock is not None]
            found[stream] = (clocks[0] if clocks else None, max(known, default=None))
        return found

    # --- what happens ---------------------------------------------------------------------------

    def is_smooth(self, stream: int, clock: Clock, time: int) -> bool:
        """Return whether an event would arrive without a report: it is neither the first one nor late."""
        readers = self._readers.get(stream)
        if readers is None:
            return stream in self._unread
        for stream_set in readers:
            order = stream_set.order
            of = order.clocks[stream]
            if order.clock is not clock or time < max(order.watermark, of.newest, of.promised):
                return False
        return True

    def is_new(self, stream: int) -> bool:
        """Return whether the readers of a stream have had no event of any stream."""
        readers = self._readers.get(stream, ())
        return bool(readers) and all(stream_set.order.is_new for stream_set in readers)

    def query_set(self, key: tuple[object, ...], environment: Environment) -> QuerySet | None:
        """Return the query set of this form that has seen no event, which a new query may join."""
        first = self._by_form.get(key)
        if (
            first is None
            or not first.stream_set.is_fresh
            or first.handle.is_over
            or first.pipeline.observation.is_wanted
        ):
            return None
        if isinstance(first.handle, Handle):
            query_set = QuerySet(environment, first, first.pipeline)
            query, constants = first.pipeline.query, form(first.pipeline.query)
            assert constants is not None
            subscription = query_set.subscription(query)
            query_set.join(subscription, first.handle, constants.constants)
            first.handle.sit(subscription)
            first.handle = query_set
            return query_set
        return first.handle

    def add(self, pipeline: Pipeline, handle: Handle, key: tuple[object, ...] | None) -> None:
        """Add a query; remove finished ones, whenever they may be many.

        ``key``: its form's, if it may run in a query set with others of this form. After an interrupt here,
        the caller cancels the handle, and calls ``prune`` to remove what was already added of the query.
        """
        if len(self.queries) >= self._worth_pruning:
            self.prune()
        query = DispatchedQuery(pipeline, handle, self._dictionary, self.registered)
        if query.output is not None:
            self._check_loop(query, query.output)
        self.registered += 1
        self.queries.append(query)
        self._place(query).join(query)
        if key is not None:
            self._by_form[key] = query
        if query.output is not None:
            self._makers.setdefault(query.output, []).append(query)
            readers = self._readers.get(query.output, ())
            for stream_set in readers:
                stream_set.order.clocks[query.output].holds = True
            if readers:
                for stream_set in self.stream_sets:
                    stream_set.layer = self._layer(stream_set)

    def _place(self, query: DispatchedQuery) -> StreamSet:
        """Return the stream set of a new query, shared with queries that have seen no event either."""
        alike = self._stream_sets.setdefault(frozenset(query.streams), [])
        if not alike or not alike[-1].is_fresh:
            stream_set = StreamSet(query.streams, self._lateness, self._elements)
            alike.append(stream_set)
            for stream in query.streams:
                self._readers.setdefault(stream, []).append(stream_set)
                stream_set.order.clocks[stream].holds = bool(self._made_by(stream))
            stream_set.layer = self._layer(stream_set)
        return alike[-1]

    def prune(self) -> None:
        """Remove all queries that are over, also those added partially."""
        self.queries = [q for q in self.queries if not q.handle.is_over]
        self._by_form = {key: query for key, query in self._by_form.items() if query.stream_set.is_fresh}
        self._worth_pruning = max(_SLACK, 2 * len(self.queries))
        for streams, alike in list(self._stream_sets.items()):
            for stream_set in alike:
                stream_set.prune()
            self._stream_sets[streams] = [stream_set for stream_set in alike if stream_set.members]
            if not self._stream_sets[streams]:
                del self._stream_sets[streams]
        self._readers = {}
        for stream_set in self.stream_sets:
            for stream in stream_set.order.clocks:
                self._readers.setdefault(stream, []).append(stream_set)
        makers = {stream: [q for q in of if not q.handle.is_over] for stream, of in self._makers.items()}
        self._makers = {stream: of for stream, of in makers.items() if of}

    def _made_by(self, stream: int) -> list[DispatchedQuery]:
        """Return the queries that make a stream by REGISTER STREAM."""
        return [q for q in self._makers.get(stream, ()) if not q.handle.is_over]

    def _is_alone(self, query: DispatchedQuery) -> bool:
        """Return whether a query's order is the only one of its streams."""
        return len(self._stream_sets.get(query.stream_set.streams, ())) == 1

    def _check_loop(self, query: DispatchedQuery, output: int) -> None:
        """Raise EngineError if the query would read its own output."""
        seen: set[int] = set()
        asked = list(query.streams)
        while asked:
            stream = asked.pop()
            if stream == output:
                raise EngineError("a query's registered stream would feed itself, directly or through others")
            if stream not in seen:
                seen.add(stream)
                asked += [read for maker in self._made_by(stream) for read in maker.streams]

    def _layer(self, stream_set: StreamSet) -> int:
        """Return the layer of a stream set: one above the stream sets of queries that make its streams."""
        makers = [q for stream in stream_set.order.clocks for q in self._made_by(stream)]
        return 1 + max((self._layer(q.stream_set) for q in makers), default=-1)

    def _advance_stream(self, output: int) -> None:
        """Advance a stream that queries make, for its readers."""
        makers = [q.settled for q in self._made_by(output)]
        for reader in self._readers.get(output, ()):
            clock = reader.order.clocks[output]
            if not self._closing:
                clock.newest = max(clock.newest, min(makers, default=clock.newest))
                clock.holds = bool(makers)
                self._stirred[reader] = None

    def _let_go(self) -> None:
        """Stop streams from holding others back if no query makes them any more."""
        for stream, makers in list(self._makers.items()):
            if any(q.handle.is_over for q in makers):
                self._makers[stream] = self._made_by(stream)
                self._advance_stream(stream)
                if not self._makers[stream]:
                    del self._makers[stream]

    # --- streams that no query reads, or events that are reported otherwise ------------------------

    def _reject_clock(self, batch: EventBatch, stream_set: StreamSet) -> None:
        if self.is_replayed:
            return
        for index in range(len(batch)):
            self._rejects.misfit(batch, index, stream_set.order.clock)

    def _warn_unread(self, stream: int) -> None:
        if stream in self._unread or stream in self._readers:
            return
        if stream in self._makers:  # a stream of REGISTER STREAM need not be read
            return
        self._unread.add(stream)
        if self.is_replayed:
            return
        iri = self._iri_of(stream)
        known = [self._iri_of(s) for s in self._readers]
        near = difflib.get_close_matches(iri, known, 1)
        hint = f"; did you mean <{near[0]}>?" if near else ""
        warn(f"no registered query reads stream <{iri}>{hint}")

    def _iri_of(self, stream: int) -> str:
        return self._dictionary.term(stream).value
