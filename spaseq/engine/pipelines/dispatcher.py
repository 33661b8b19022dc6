"""The queries of an engine, and how events and time reach them; one thread at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np

from spaseq.alone import Single
from spaseq.engine.pipelines.jobs import Jobs, group_of
from spaseq.engine.pipelines.routes import Routes
from spaseq.engine.pipelines.stream_set import Registered, StreamSet
from spaseq.engine.rejects import Kind, Rejects
from spaseq.engine.turn import Turn
from spaseq.events import Clock, EventBatch, Stamp
from spaseq.limits import Limits
from spaseq.patterns.sharing import Sharing
from spaseq.terms.dictionary import Dictionary

if TYPE_CHECKING:
    from spaseq.engine.durable.journal import Journal
    from spaseq.patterns.shapes import Shapes


class Dispatcher(Routes):
    """Registered queries, and how far their streams have come.

    Queries that read the same streams share an order and an index: a ``StreamSet``. An exception in a query
    ends that query only (in an order, the queries that share it). Exceptions of callbacks are collected by
    the delivery. So after an exception each query is either consistent or over. A noted interrupt leaves jobs
    that have not begun in ``jobs``. ``events`` counts the arrived ones.
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
        self.events = 0
        self._turn = turn
        #: Called with all events as they arrive. It must not raise.
        self.seen: Callable[[EventBatch], None] | None = None
        super().__init__(dictionary, sharing, rejects, limits, lateness)
        #: Work to do when time or events advance, besides stirred stream sets: the events released to
        #: queries.
        self.jobs = self._no_jobs()
        #: Events of several streams that have waited, in order: ``move`` takes them first.
        self.arriving: Sequence[tuple[int, EventBatch]] = ()
        #: Shapes that every event from outside must conform to, if any.
        self.shapes: Shapes | None = None
        #: Records everything that happens, if there is a state.
        self.journal: Journal | None = None

    def _no_jobs(self) -> Jobs:
        return Jobs(self._dictionary, self._sharing, self._turn, self._is_alone, self._pass_on)

    def abort(self, interrupt: BaseException) -> None:
        """End all queries and discard their memory: a call was interrupted in the middle."""
        self.jobs.fail([query for query in self.queries if not query.handle.is_over], interrupt)
        failed, self.jobs, self.arriving = self.jobs, self._no_jobs(), ()
        self.jobs.take_over(failed)
        self._clear()

    def unhold(self) -> None:
        """Hold nothing back: no stream is read."""
        held = {s for i in self.stream_sets for s, clock in i.order.clocks.items() if clock.holds}
        for stream in held.difference(self._makers):
            self.hold(stream, False)

    def arrive(self, stream: int, batch: EventBatch) -> None:
        """Let events of a stream arrive."""
        if isinstance(batch, Single) and self._steps(stream, batch):
            return
        self.admit(stream, batch)

    def admit(self, stream: int, batch: EventBatch) -> EventBatch:
        """Return the events that conform to the shapes; the whole batch if there are none.

        An event that does not conform has an arrival number, so that the others keep theirs.
        """
        problems = {} if self.shapes is None else self.shapes.problems(batch)
        begin = 0
        for index, problem in problems.items():
            if begin < index:
                self.enter(stream, batch.take(np.arange(begin, index)))
            event = batch.take(np.array([index])).renumber(self._arrivals[stream])
            self._arrivals[stream] += 1
            self._rejects.refuse(event, 0, problem, Kind.NONCONFORMING)
            begin = index + 1
        if begin < len(batch):
            self.enter(stream, batch.take(np.arange(begin, len(batch))) if begin else batch)
        self.move()
        return batch.take(np.setdiff1d(np.arange(len(batch)), [*problems])) if problems else batch

    def _steps(self, stream: int, event: Single) -> bool:
        """Process an event at once, if nothing waits and it need not wait; otherwise return False.

        Does what ``enter`` and ``move`` do, with fewer tests.
        """
        jobs, readers = self.jobs, self._next(stream, event.clock, event.at.time)
        if readers is None or event.at.n != self._arrivals[stream]:
            return False
        self._arrivals[stream] += 1
        self.events += 1
        for stream_set in readers:
            self._give(stream_set, lambda stream_set: jobs.add(stream_set.step(event)))
        if jobs.wait:
            jobs.work()
        return True

    def _next(self, stream: int, clock: Clock, time: int) -> Sequence[StreamSet] | None:
        """Return the stream sets that take an event at once, as nothing waits; None if there is no such
        shortcut.
        """
        readers, jobs = self._readers.get(stream), self.jobs
        if jobs.wait or self._makers or self._stirred or self.arriving or not readers:
            return None
        if self.journal is not None or self.seen is not None or not jobs.is_asked:
            return None
        if self.shapes is not None:
            return None
        several = len(readers) > 1
        for stream_set in readers:
            # Of two stream sets of the same streams, one may be merged into the other.
            if not stream_set.is_next(clock, time) or (
                several and len(self._stream_sets[stream_set.streams]) > 1
            ):
                return None
        return readers

    def _give(self, stream_set: StreamSet, do: Callable[[StreamSet], None]) -> None:
        """Call ``do`` with a stream set for an event that has arrived; an error ends its queries."""
        try:
            do(stream_set)
        except Exception as error:
            self.jobs.fail(stream_set.live, error)

    def passes(self, stream: int, clock: Clock, time: int, graph: int, terms: Sequence[int]) -> bool:
        """Process an event alone if it concerns one query, one group or none; otherwise return False.

        Most pushed events are such. Their numbers suffice; no object is made. ``graph``: the id of its
        graph's name; ``terms``: of its triples, in a row.
        """
        readers = self._next(stream, clock, time)
        found = None if readers is None else self._concerned(readers, stream, terms)
        if readers is None or found is None:
            return False
        query: Registered | None = None
        unseen: Sequence[tuple[int, EventBatch]] = ()
        group, position = None, 0
        if found:
            query = found[0]
            position = query.stream_set.position
            if len(found) == 1 and query.takes_alone:
                unseen = query.stream_set.unseen(query, position) if query.asks_for_last else ()
            elif (group := group_of(found, clock)) is None:
                return False
        before = self._arrivals[stream]
        at = Stamp(time, stream, before)
        if len(readers) > 1:
            self._pass_by(readers, Single(self._dictionary, clock, at, graph, terms))
        else:
            stream_set = readers[0]
            order, place, passed = stream_set.order, stream_set.position, stream_set.passed
            of = order.clocks[stream]
            if stream_set.looks_back:
                passed = stream_set.followed(Single(self._dictionary, clock, at, graph, terms), place)
            self._arrivals[stream], self.events = before + 1, self.events + 1
            of.newest = order.watermark = time
            of.newest_n = before
            stream_set.position, stream_set.passed = place + 1, passed
            stream_set.counts[stream] += 1
        if query is None:
            return True
        if group is not None:
            jobs = self.jobs
            try:
                jobs.see_together(group, found, Single(self._dictionary, clock, at, graph, terms), position)
            except Exception as error:
                jobs.fail(found, error)
                return True
            if jobs.wait:
                jobs.work()
            return True
        query.reached = position + 1
        try:
            coming = query.take_alone(at, graph, terms, position, unseen)
            if self._dictionary.ill_typed:
                self.jobs.warn_of_ill_typed(Single(self._dictionary, clock, at, graph, terms))
            if query.pipeline.waits:
                query.stream_set.waiting[query] = None
            if coming is None:
                return True
            query.handle.coming = coming
        except Exception as error:
            self.jobs.fail((query,), error)
            return True
        self.jobs.deliver(query)
        return True

    def _concerned(
        self, readers: Sequence[StreamSet], stream: int, terms: Sequence[int]
    ) -> Sequence[Registered] | None:
        """Return the queries that an event may concern; None if other queries must see it, too."""
        found: Sequence[Registered] = ()
        for stream_set in readers:
            if not stream_set.is_plain:
                return None
            own = stream_set.concerned(stream, terms)
            found = [*found, *own] if found else own
        return found

    def _pass_by(self, readers: Sequence[StreamSet], event: Single) -> None:
        """Let an event arrive that concerns no query, in all orders that have it."""
        self._arrivals[event.at.stream], self.events = event.at.n + 1, self.events + 1
        for stream_set in readers:
            self._give(stream_set, lambda stream_set: stream_set.take_over(event))

    def enter(self, stream: int, batch: EventBatch) -> None:
        """Take events from outside, without ``move``, which releases them."""
        journal, before = self.journal, self._arrivals[stream]
        if journal is None:
            self._take(stream, batch)
            return
        journal.begin()
        try:
            self._take(stream, batch)
        finally:
            if self._arrivals[stream] > before:
                journal.arrived(stream, before, batch)

    def number(self, stream: int, first: int) -> None:
        """Set the arrival number of a stream's next event."""
        self._arrivals[stream] = first

    @property
    def arrivals(self) -> Mapping[int, int]:
        """How many events of each stream have arrived."""
        return self._arrivals

    def move(self) -> None:
        """Advance every query to its watermark, and deliver the matches."""
        jobs = self.jobs
        if self.arriving:
            self._take_waiting()
        if self.journal is not None:
            self.journal.moved()
        jobs.work()
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
        self.jobs.work()
        # Layer by layer: queries' last derived events are for other queries.
        for layer in sorted({stream_set.layer for stream_set in self.stream_sets}):
            stream_sets = [stream_set for stream_set in self.stream_sets if stream_set.layer == layer]
            self._release(stream_sets, last=True)
            for query in sorted((q for i in stream_sets for q in i.members), key=lambda q: q.rank):
                self.jobs.close(query)

    # --- inside -----------------------------------------------------------------------------------

    def _take(self, stream: int, batch: EventBatch) -> None:
        """Pass a stream's events to the queries that read it, and reject late ones."""
        numbered = batch.renumber(self._arrivals[stream])
        readers = [stream_set for stream_set in self._readers.get(stream, ()) if stream_set.is_live]
        late: dict[int, tuple[int, Stamp | None]] = {}
        misfit: StreamSet | None = None
        self._arrivals[stream] += len(batch)
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
                self.jobs.fail(stream_set.live, error)
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

    @property
    def is_behind(self) -> bool:
        """Whether work is deferred until results are read, or was left by an interrupt."""
        return bool(self.arriving or self.jobs.wait)

    def _take_waiting(self) -> None:
        """Process the events that have waited."""
        arriving, self.arriving = self.arriving, ()
        for stream, batch in arriving:
            self.enter(stream, batch)

    def _release(self, stream_sets: Iterable[StreamSet], *, last: bool = False) -> None:
        """Release to queries the events that the watermark has reached; ``last``: all events left."""
        jobs = self.jobs
        for stream_set in stream_sets:
            try:
                jobs.add(stream_set.release(last))
                for query, batch in stream_set.beginning():
                    jobs.begin(query, batch)
            except Exception as error:
                self.jobs.fail(stream_set.live, error)
                continue
            most = self._limits.held_events
            if most is not None and stream_set.order.held > most:
                what = f"holding {stream_set.order.held} events back"
                self.jobs.fail(stream_set.live, self._limits.error("held_events", what))
        jobs.work()

    def _merge(self, stream_set: StreamSet) -> None:
        """Merge a stream set with another that has come to the same state."""
        alike, jobs = self._stream_sets.get(stream_set.streams, []), self.jobs
        for other in alike[1:]:
            if not alike[0].equals(other):
                continue
            moving = other.live
            jobs.renumber(moving, alike[0].position - other.position)
            try:
                jobs.add(alike[0].absorb(other))
                alike.remove(other)
                self._stirred.pop(other, None)
                for stream in other.order.clocks:
                    self._readers[stream].remove(other)
            except Exception as error:
                # Some of these queries are already in the other one.
                jobs.fail(moving, error)
                raise
            if jobs.wait:
                jobs.work()

    def _is_alone(self, query: Registered) -> bool:
        """Return whether a query's order is the only one of its streams."""
        return len(self._stream_sets.get(query.stream_set.streams, ())) == 1

    def _pass_on(self, query: Registered, output: int) -> None:
        """Pass the events of REGISTER STREAM to the queries that read that stream."""
        derived = query.pipeline.answers.derived()
        if derived is not None:
            self._take(output, derived)
        time = query.stream_set.order.time
        if time is not None:
            query.settled = query.pipeline.settled(time)
        self._advance_stream(output)
