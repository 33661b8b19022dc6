"""The queries of an engine, and how events and time reach them; one thread at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np

from spaseq.alone import Single
from spaseq.engine.pipelines.jobs import Jobs
from spaseq.engine.pipelines.routes import Routes
from spaseq.engine.pipelines.stream_set import Job, RegisteredQuery, StreamSet
from spaseq.engine.rejects import DeadLetterKind, Rejects
from spaseq.engine.turn import Turn
from spaseq.events import Clock, EventBatch, Stamp
from spaseq.limits import Limits
from spaseq.patterns.sharing import Sharing
from spaseq.terms.dictionary import Dictionary

if TYPE_CHECKING:
    from spaseq.engine.durable.journal import Journal
    from spaseq.patterns.shapes import Shapes


class Dispatcher(Routes):
    """RegisteredQuery queries, and how far their streams have come.

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
        self.jobs, self.arriving = self._no_jobs(), ()
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
        before = self._arrivals[stream]
        event = batch if batch.at.n == before else batch.renumber(before)
        self._arrivals[stream] = before + 1
        self.events += 1
        jobs: list[Job] = []
        for stream_set in readers:
            try:
                jobs += stream_set.step(event)
            except Exception as error:
                self.jobs.fail(stream_set.live, error)
        if jobs:
            self.jobs.take(jobs, event)

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
            self._rejects.refuse(event, 0, problem, DeadLetterKind.NONCONFORMING)
            begin = index + 1
        if begin < len(batch):
            self.enter(stream, batch.take(np.arange(begin, len(batch))) if begin else batch)
        self.move()
        return batch.take(np.setdiff1d(np.arange(len(batch)), [*problems])) if problems else batch

    def _next(self, stream: int, event: Single) -> Sequence[StreamSet] | None:
        """Return the readers of an event if nothing waits for it, and it for nothing; else None.

        Such an event is not put in order: with that, a push with a callback takes 1.9 times as long.
        """
        readers, jobs = self._readers.get(stream), self.jobs
        if jobs.queue or self._makers or self._stirred or self.arriving or not readers:
            return None
        if self.journal is not None or self.seen is not None or self.shapes is not None or not jobs.is_asked:
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
        return bool(self.arriving or self.jobs.queue)

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
            if jobs.queue:
                jobs.work()

    def _is_alone(self, query: RegisteredQuery) -> bool:
        """Return whether a query's order is the only one of its streams."""
        return len(self._stream_sets.get(query.stream_set.streams, ())) == 1

    def _pass_on(self, query: RegisteredQuery, output: int) -> None:
        """Pass the events of REGISTER STREAM to the queries that read that stream."""
        derived = query.pipeline.answers.derived()
        if derived is not None:
            self._take(output, derived)
        time = query.stream_set.order.time
        if time is not None:
            query.settled = query.pipeline.settled(time)
        self._advance_stream(output)
