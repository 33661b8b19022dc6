"""The queries of an engine, and how events and time reach them; one thread at a time.

A query's work may wait until matches are read: one among many queries may be concerned by a few of some
hundred pushed events, and a few events cost it as much as many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Final

import numpy as np

from spaseq.alone import Single
from spaseq.engine.pipelines.query_set import QuerySet
from spaseq.engine.pipelines.routes import Routes
from spaseq.engine.pipelines.stream_set import DispatchedQuery, DueWork, StreamSet
from spaseq.engine.rejects import DeadLetterKind, Rejects
from spaseq.engine.turn import Turn
from spaseq.errors import warn_within
from spaseq.events import BEGINNING, END, Clock, EventBatch, Stamp, concatenate
from spaseq.limits import Limits
from spaseq.patterns.evaluator import IllTyped
from spaseq.patterns.sharing import Sharing
from spaseq.terms.dictionary import Dictionary

if TYPE_CHECKING:
    from spaseq.engine.durable.journal import Journal
    from spaseq.matching.sharing.member import MemberGroup
    from spaseq.patterns.shapes import Shapes


#: Work with this many events does not wait.
ENOUGH: Final = 128
#: The most events that wait.
MOST: Final = 4_096


class Dispatcher(Routes):
    """The queries of an engine, and how far their streams have come.

    Queries that read the same streams share an order and an index: a ``StreamSet``. An exception in a query
    ends that query only (in an order, the queries that share it). Exceptions of callbacks are collected by
    the delivery. So after an exception each query is either consistent or over. After a noted interrupt no
    further work is begun, and ``turn.is_behind`` says that some is left. ``events`` counts the arrived ones.
    ``is_asked``: results are read, so that no work waits.
    """

    def __init__(
        self,
        dictionary: Dictionary,
        sharing: Sharing,
        rejects: Rejects,
        turn: Turn,
        limits: Limits,
        lateness: timedelta = timedelta(0),
    ) -> None:
        super().__init__(dictionary, sharing, rejects, limits, lateness)
        self.events = 0
        self._turn, self._deferral = turn, turn.deferral
        #: Called with all events as they arrive. It must not raise.
        self.seen: Callable[[EventBatch], None] | None = None
        #: The queries with work that is due; the one that has waited longest is first.
        self.due: dict[DispatchedQuery, None] = {}
        # Those of them with new work since they were last found to wait.
        self._fresh: dict[DispatchedQuery, None] = {}
        # Queries with matches that their callbacks may not have been given.
        self._unfinished: set[DispatchedQuery] = set()
        self.is_asked = True
        self._ill_typed = IllTyped(dictionary)
        #: Shapes that every event from outside must conform to, if any.
        self.shapes: Shapes | None = None
        #: Records everything that happens, if there is a state.
        self.journal: Journal | None = None

    def abort(self, interrupt: BaseException) -> None:
        """End all queries and discard their memory: a call was interrupted in the middle."""
        self.fail([query for query in self.queries if not query.handle.is_over], interrupt)
        self.due, self._fresh, self._unfinished = {}, {}, set()
        self._clear()

    def unhold(self) -> None:
        """Hold nothing back: no stream is read."""
        held = {s for i in self.stream_sets for s, clock in i.order.clocks.items() if clock.holds}
        for stream in held.difference(self._makers):
            self.hold(stream, False)

    def arrive(self, stream: int, batch: EventBatch) -> None:
        """Let events of a stream arrive."""
        if not isinstance(batch, Single) or (readers := self._next(stream, batch)) is None:
            self.admit(stream, batch)
            return
        before = self.arrivals[stream]
        event = batch if batch.at.n == before else batch.renumber(before)
        self.arrivals[stream] = before + 1
        self.events += 1
        due: list[DispatchedQuery] = []
        for stream_set in readers:
            try:
                due += stream_set.step(event)
            except Exception as error:
                self.fail(stream_set.live, error)
        if due:
            self._take_alone(due, event)

    def admit(self, stream: int, batch: EventBatch) -> EventBatch:
        """Return the events that conform to the shapes; the whole batch if there are none.

        An event that does not conform has an arrival number, so that the others keep theirs.
        """
        problems = {} if self.shapes is None else self.shapes.problems(batch)
        begin = 0
        for index, problem in problems.items():
            if begin < index:
                self.enter(stream, batch.take(np.arange(begin, index)))
            event = batch.take(np.array([index])).renumber(self.arrivals[stream])
            self.arrivals[stream] += 1
            self._rejects.refuse(event, 0, problem, DeadLetterKind.NONCONFORMING)
            begin = index + 1
        if begin < len(batch):
            self.enter(stream, batch.take(np.arange(begin, len(batch))) if begin else batch)
        self.move()
        return batch.take(np.setdiff1d(np.arange(len(batch)), [*problems])) if problems else batch

    def _next(self, stream: int, event: Single) -> Sequence[StreamSet] | None:
        """Return the readers of an event if neither it nor other events have to wait; None if any must.

        Putting such an event in order would make a push with a callback take 1.9 times as long.
        """
        readers = self._readers.get(stream)
        if self.due or self._makers or self._stirred or not readers:
            return None
        if self.journal is not None or self.seen is not None or self.shapes is not None or not self.is_asked:
            return None
        several = len(readers) > 1
        for stream_set in readers:
            # Of two stream sets of the same streams, one may be merged into the other.
            if not stream_set.is_next(event.clock, event.at.time) or (
                several and len(self._stream_sets[stream_set.streams]) > 1
            ):
                return None
        return readers

    def enter(self, stream: int, batch: EventBatch) -> None:
        """Take events from outside, without ``move``, which releases them."""
        journal, before = self.journal, self.arrivals[stream]
        if journal is None:
            self._take(stream, batch)
            return
        journal.begin()
        try:
            self._take(stream, batch)
        finally:
            if self.arrivals[stream] > before:
                journal.arrived(stream, before, batch)

    def move(self, arriving: Iterable[tuple[int, EventBatch]] = ()) -> None:
        """Advance every query to its watermark, and deliver the matches; before, let events arrive."""
        for stream, batch in arriving:
            self.enter(stream, batch)
        if self.journal is not None:
            self.journal.moved()
        self._work()
        if self._makers:
            self._let_go()
        while self._stirred:
            layer = min(stream_set.layer for stream_set in self._stirred)
            stream_sets = [stream_set for stream_set in self._stirred if stream_set.layer == layer]
            for stream_set in stream_sets:
                del self._stirred[stream_set]
            self._release(stream_sets)
            for stream_set in stream_sets:
                self._merge(stream_set)

    def promise(self, clock: Clock, time: int, stream: int | None) -> None:
        """Promise that no event before ``time`` will come, of a stream or of all that no query makes."""
        if self.journal is not None:
            self.journal.promised(clock, time, stream)
        made = {s for s in self._makers if self._made_by(s)}
        for stream_set in self.stream_sets if stream is None else self._readers.get(stream, ()):
            streams = [s for s in stream_set.order.clocks if stream in (None, s) and s not in made]
            stream_set.order.promise(clock, time, streams)
            stream_set.is_fresh = False
            self._stirred[stream_set] = None
        self.move()

    def hold(self, stream: int, holds: bool) -> None:
        """Let a stream hold the others back, while it is read, or no longer, when it has ended or is idle."""
        if self.journal is not None:
            self.journal.held(stream, holds)
        for stream_set in self._readers.get(stream, ()):
            if stream_set.order.clocks[stream].holds is not holds:
                stream_set.order.clocks[stream].holds = holds
                stream_set.is_fresh = False
            self._stirred[stream_set] = None

    def close(self) -> None:
        """End every window: no event will come."""
        self._closing = True
        self._work()
        # Layer by layer: queries' last derived events are for other queries.
        for layer in sorted({stream_set.layer for stream_set in self.stream_sets}):
            stream_sets = [stream_set for stream_set in self.stream_sets if stream_set.layer == layer]
            self._release(stream_sets, last=True)
            for query in sorted((q for i in stream_sets for q in i.members), key=lambda q: q.rank):
                self._close(query)

    # --- inside -----------------------------------------------------------------------------------

    def _take(self, stream: int, batch: EventBatch) -> None:
        """Pass a stream's events to the queries that read it, and reject late ones."""
        numbered = batch.renumber(self.arrivals[stream])
        readers = [stream_set for stream_set in self._readers.get(stream, ()) if stream_set.is_live]
        late: dict[int, tuple[int, Stamp | None]] = {}
        misfit: StreamSet | None = None
        self.arrivals[stream] += len(batch)
        self.events += len(batch)
        if self.seen is not None:
            self.seen(numbered)
        if not readers:
            self._warn_unread(stream)
        for stream_set in readers:
            stream_set.is_fresh = False
            if not stream_set.order.fits(numbered.clock):
                misfit = stream_set
                continue
            self._stirred[stream_set] = None
            try:
                found = stream_set.order.add(numbered)
            except Exception as error:
                # The others still get the event; the next event advances them.
                self.fail(stream_set.live, error)
                continue
            stream_set.late += len(found)
            moved_by = stream_set.order.moved_by
            for index, watermark in found.items():
                if index not in late or watermark > late[index][0]:
                    late[index] = watermark, moved_by
        if misfit is not None:
            self._reject_clock(numbered, misfit)
        for index in sorted(late) if not self.is_replayed else ():
            self._rejects.too_late(numbered, index, *late[index])

    def _release(self, stream_sets: Iterable[StreamSet], *, last: bool = False) -> None:
        """Release to queries the events that the watermark has reached; ``last``: all events left."""
        for stream_set in stream_sets:
            try:
                self._add(stream_set.release(last))
            except Exception as error:
                self.fail(stream_set.live, error)
                continue
            most = self._limits.held_events
            if most is not None and stream_set.order.held > most:
                what = f"holding {stream_set.order.held} events back"
                self.fail(stream_set.live, self._limits.error("held_events", what))
        self._work()

    def _merge(self, stream_set: StreamSet) -> None:
        """Merge a stream set with another that has come to the same state."""
        alike = self._stream_sets.get(stream_set.streams, [])
        for other in alike[1:]:
            if not alike[0].equals(other):
                continue
            moving = other.live
            try:
                self._add(alike[0].absorb(other))
                alike.remove(other)
                self._stirred.pop(other, None)
                for stream in other.order.clocks:
                    self._readers[stream].remove(other)
            except Exception as error:
                # Some of these queries are already in the other one.
                self.fail(moving, error)
                raise
            if self.due:
                self._work()

    def _pass_on(self, query: DispatchedQuery, output: int) -> None:
        """Pass the events of REGISTER STREAM to the queries that read that stream."""
        derived = query.pipeline.answers.derived()
        if derived is not None:
            self._take(output, derived)
        time = query.stream_set.order.time
        if time is not None:
            query.settled = query.pipeline.settled(time)
        self._advance_stream(output)

    # --- due work ---------------------------------------------------------------------------------

    def _add(self, queries: Iterable[DispatchedQuery]) -> None:
        """Note queries with further work."""
        for query in queries:
            self.due[query] = self._fresh[query] = None

    def _work(self) -> None:
        """Do the work that need not wait, in the order of queries."""
        joined: dict[tuple[int, ...], EventBatch] = {}
        due = self._due_now()
        if len(begun := [query for query in due if query.pipeline.matcher is None]) > 1:
            self._prepare(begun)
        for query in due:
            self._run_all(query, joined)
            if self._deferral.is_due:
                self._turn.is_behind = True
                break
        self._sharing.forget()  # queries may not run again soon, and would keep a whole batch

    def _prepare(self, begun: Iterable[DispatchedQuery]) -> None:
        """Prepare the queries that begin with these events; an error in one ends it.

        Preparing them one after the other takes half of the time of preparing each before its first events.
        """
        before: EventBatch | None = None
        for query in begun:
            batch = query.due[0].batch if query.due else None
            if batch is None or query.handle.is_over or isinstance(query.handle, QuerySet):
                continue
            try:
                query.pipeline.prepare(batch, is_shared=len(query.due) == 1 and batch is before)
            except Exception as error:
                self.fail([query], error)
            before = batch

    def _due_now(self) -> Sequence[DispatchedQuery]:
        """Return the queries with work that must be done now."""
        if self.is_asked:
            due = list(self.due)
        else:
            due = [query for query in self._fresh if not self._may_wait(query)]
            self._fresh = dict.fromkeys(due)
            left = sum(map(_size, self.due)) - sum(map(_size, due))
            for query in self.due:
                if left <= MOST:
                    break
                if query not in self._fresh:
                    due.append(query)
                    left -= _size(query)
        return sorted(due, key=_rank) if len(due) > 1 else due

    def _may_wait(self, query: DispatchedQuery) -> bool:
        """Return whether a query's work may wait until its matches are read."""
        # If there are several orders of the same streams, one may be merged into the other.
        return query.is_sparse and self._is_alone(query) and _size(query) < ENOUGH

    def _run_all(self, query: DispatchedQuery, joined: dict[tuple[int, ...], EventBatch]) -> None:
        """Do all work of a query. ``joined``: joined batches, by the batches they are made of."""
        if query in self._unfinished:
            self._unfinished.discard(query)
            query.handle.deliver()
        if len(query.due) > 1 and query.is_sparse:
            query.due = [_joined(query.due, joined)]
        while query.due and not self._deferral.is_due:
            try:
                self._run(query, query.due.pop(0))
            except Exception as error:
                self.fail([query], error)
        if self._deferral.is_due:
            self._leave(query)
            return
        self._fresh.pop(query, None)
        self.due.pop(query, None)

    def _leave(self, query: DispatchedQuery) -> None:
        """Leave a query's matches to the next call: an interrupt was noted."""
        self._unfinished.add(query)
        self.due[query] = None
        self._turn.is_behind = True

    def _take_alone(self, queries: Sequence[DispatchedQuery], event: Single) -> None:
        """Let queries process an event that nothing waits for, while no other work is due."""
        if queries[0].member is not None and (group := _group_of(queries)) is not None:
            queries = self._see_together(group, queries, event)
        if len(queries) == 1:
            # As ``_run_all``, without the queue, which is up to a fifth of the time of a push.
            (query,) = queries
            try:
                self._run(query, query.due.pop())
            except Exception as error:
                self.fail([query], error)
            if self._deferral.noted is not None and self._deferral.is_due:
                self._leave(query)
        elif queries:
            self._add(queries)
            self._work()

    def _run(self, query: DispatchedQuery, work: DueWork) -> None:
        """Do a query's work: process events, or advance its time."""
        pipeline, handle, batch = query.pipeline, query.handle, work.batch
        # The events that a query makes for another are part of its matches.
        made = query.output is not None
        if batch is not None:
            for position, event in work.before:
                self._process(query, event, position)
            self._process(query, batch, work.position)
        stream_set = query.stream_set
        time = stream_set.order.watermark
        moves = BEGINNING < time < END and (handle.coming is not None or pipeline.heeds(time, batch))
        if moves and not (query.is_behind or handle.is_over):
            handle.add(query.advance(), all_at_once=made, after_all=False)
        if query.output is not None:
            self._pass_on(query, query.output)
        elif handle.coming is not None or pipeline.waits:
            stream_set.waiting[query] = None
        elif stream_set.waiting:
            stream_set.waiting.pop(query, None)

    def _process(self, query: DispatchedQuery, batch: EventBatch, position: int) -> None:
        """Let a query process events; a single one mostly completes nothing."""
        handle, pipeline = query.handle, query.pipeline
        if handle.is_over:
            return
        made = query.output is not None
        if handle.coming is not None or not (isinstance(batch, Single) or len(batch) == 1):
            # These matches need a later state: earlier ones must be enumerated first.
            handle.add(query.process(batch, position), all_at_once=made, after_all=True)
        else:
            try:
                found = pipeline.take_one(batch, position - query.start)
            except Exception as error:
                self.fail([query], error)
                return
            if found is not None:
                handle.add(found, all_at_once=made, after_all=False)
            if pipeline.matcher is pipeline.member is not None:
                query.member = pipeline.together
        if self._dictionary.ill_typed:
            self._warn_of_ill_typed(batch)

    def _see_together(
        self, group: MemberGroup, queries: Sequence[DispatchedQuery], event: Single
    ) -> Sequence[DispatchedQuery]:
        """Let a group process a single event for all members; return those with matches that it completes.

        ``queries``: the ones it concerns.
        """
        first = queries[0]
        assert first.member is not None
        try:
            start = first.due[0].position - first.start + first.member.offset
            is_taken = group.see_alone(event, start)
            self._warn_of_ill_typed(event)
        except Exception as error:
            self.fail(queries, error)
            return ()
        if not is_taken or group.error is not None:
            return queries
        found = [query for query in queries if query.member and query.member.has_found]
        if len(found) < len(queries):
            for query in set(queries).difference(found):
                query.due.clear()
        return found

    def _warn_of_ill_typed(self, batch: EventBatch) -> None:
        """Warn of ill-typed literals that filters have read of these events."""
        if self._dictionary.ill_typed:
            for message in self._ill_typed.found(batch).values():
                warn_within(message)

    def fail(self, queries: Iterable[DispatchedQuery], error: BaseException) -> None:
        """End queries because of an exception during an event."""
        for query in queries:
            query.handle.fail(error)
        # Solutions for the current batch may be incomplete.
        self._sharing.forget()

    def _close(self, query: DispatchedQuery) -> None:
        """End a query's last window."""
        if query.is_closed:
            return
        try:
            if not query.handle.is_over:
                query.handle.deliver()
                made = query.output is not None
                query.handle.add(query.pipeline.close(), all_at_once=made, after_all=False)
            if query.output is not None:
                self._pass_on(query, query.output)
        except Exception as error:
            self.fail([query], error)
        query.is_closed = True


def _group_of(queries: Sequence[DispatchedQuery]) -> MemberGroup | None:
    """Return the group that processes a single event for all of these queries; None if there is none."""
    first = queries[0].member
    group = None if first is None else first.group
    if group is None or not group.takes_alone:
        return None
    for query in queries:
        if query.member is None or query.member.group is not group or query.handle.coming is not None:
            return None
    return group


def _rank(query: DispatchedQuery) -> int:
    return query.rank


def _size(query: DispatchedQuery) -> int:
    """Return how many events wait for a query."""
    return sum(len(work.batch) for work in query.due if work.batch is not None)


def _joined(due: Sequence[DueWork], known: dict[tuple[int, ...], EventBatch]) -> DueWork:
    """Return all work of a query as one."""
    left = [(work.position, work.batch) for work in due if work.batch is not None]
    if not left:
        return DueWork(0, None)
    batches = [batch for _, batch in left]
    key = tuple(map(id, batches))
    if key not in known:
        known[key] = batches[0] if len(batches) == 1 else concatenate(batches)
    return DueWork(left[0][0], known[key])
