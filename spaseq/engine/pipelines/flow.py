"""The queries of an engine, and what events and the passing of time do to them; one thread at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar

from spaseq.alone import Single
from spaseq.engine.handle import Handle
from spaseq.engine.pipelines import later
from spaseq.engine.pipelines.intake import Intake, Visit
from spaseq.engine.pipelines.later import Later
from spaseq.engine.pipelines.places import Places
from spaseq.engine.pipelines.seats import Crowd
from spaseq.engine.registered import Registered
from spaseq.engine.rejects import Rejects
from spaseq.events import Clock, EventBatch
from spaseq.gpm.sharing import Sharing
from spaseq.limits import Limits
from spaseq.results.batch import MatchBatch
from spaseq.terms.dictionary import Dictionary

if TYPE_CHECKING:
    from spaseq.engine.durable.journal import Journal

_What = TypeVar("_What")


class Flow(Places):
    """Registered queries, and how far their streams have come.

    Those that read the same streams have their order and index in common (``intake``). What is raised inside
    a query ends that query, and only that (inside an order, those that share it); what a callback raises
    comes out when the other queries have had their turn. So an exception leaves each query either whole or
    over. ``events`` counts those that arrived.
    """

    def __init__(
        self,
        dictionary: Dictionary,
        sharing: Sharing,
        rejects: Rejects,
        limits: Limits,
        lateness: timedelta = timedelta(0),
    ) -> None:
        self.events = 0
        #: Told of all events as they arrive. It must not raise.
        self.seen: Callable[[EventBatch], None] | None = None
        super().__init__(dictionary, sharing, rejects, limits, lateness)
        self._failed: list[Handle | Crowd] = []
        # What must be looked at when things move on, besides what is stirred: what intakes have released (an
        # interrupt leaves the rest), and queries whose callback raised something.
        self._due: deque[Visit] = deque()
        #: Events of several streams that have waited, in order: ``move`` takes them first.
        self.arriving: Sequence[tuple[int, EventBatch]] = ()
        #: Whether somebody asks: if not, visits of a few events each wait until there are more of them.
        self.is_asked = True
        self._later = Later()
        self._owing: dict[Registered, None] = {}
        #: What takes down all that happens, if somebody asked for that.
        self.journal: Journal | None = None

    def unhold(self) -> None:
        """No stream is read."""
        held = {s for i in self.intakes for s, clock in i.order.clocks.items() if clock.holds}
        for stream in held.difference(self._makers):
            self.hold(stream, False)

    def arrive(self, stream: int, batch: EventBatch) -> None:
        """Events of a stream are there."""
        if isinstance(batch, Single) and self._steps(stream, batch):
            return
        if len(batch):
            self.enter(stream, batch)
        self.move()

    def _steps(self, stream: int, event: Single) -> bool:
        """Takes an event that waits for nothing, as nothing waits for it; false if it is no such event.

        What most are that are pushed: it does what ``enter`` and ``move`` do, without asking each time.
        """
        readers = self._readers.get(stream, ())
        if self._due or self._makers or self._stirred or self._owing or self.arriving or len(readers) != 1:
            return False
        if self._later.visits or self.journal is not None or self.seen is not None or not self.is_asked:
            return False
        (intake,) = readers
        if event.at.n != self._arrivals[stream] or not intake.is_next(event):
            return False
        self._arrivals[stream] += 1
        self.events += 1
        try:
            self._due.extend(intake.step(event))
        except BaseException as error:
            self._fail(intake.live, error)
            if not isinstance(error, Exception):
                raise
        if self._due:
            raised = self._work()
            if raised is not None:
                raise raised
        return True

    def enter(self, stream: int, batch: EventBatch) -> None:
        """Takes events from outside; ``move`` says what becomes of them."""
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
        """The next event of a stream has this arrival number."""
        self._arrivals[stream] = first

    @property
    def arrivals(self) -> Mapping[int, int]:
        """How many events of each stream there were."""
        return self._arrivals

    def move(self) -> None:
        """Every query goes to its watermark, and what that completes is delivered."""
        raised: Exception | None = None
        if self.is_asked and self._later.visits:
            self._recall(0)
        if self.arriving:
            self._take_waiting()
        if self.journal is not None:
            self.journal.moved()
        owing, self._owing = self._owing, {}
        for query in owing:
            raised = self._attempt(query, self._go_on, query) or raised
        raised = self._work() or raised
        if self._makers:
            self._let_go()
        while self._stirred:
            layer = min(intake.layer for intake in self._stirred)
            intakes = [intake for intake in self._stirred if intake.layer == layer]
            for intake in intakes:
                del self._stirred[intake]
            raised = self._release(intakes) or raised
            for intake in intakes:
                self._merge(intake)
        if raised is not None:
            raise raised

    def promise(self, clock: Clock, time: int, stream: int | None) -> None:
        """No event before ``time`` will come, of a stream or of any that no query makes."""
        if self.journal is not None:
            self.journal.promised(clock, time, stream)
        made = {s for s in self._makers if self._made_by(s)}
        for intake in self.intakes if stream is None else self._readers.get(stream, ()):
            streams = [s for s in intake.order.clocks if stream in (None, s) and s not in made]
            intake.order.promise(clock, time, streams)
            intake.is_fresh = False
            self._stirred[intake] = None
        self.move()

    def hold(self, stream: int, holds: bool) -> None:
        """A stream that is read holds the others back, one that has ended or is idle does not."""
        if self.journal is not None:
            self.journal.held(stream, holds)
        for intake in self._readers.get(stream, ()):
            if intake.order.clocks[stream].holds is not holds:
                intake.order.clocks[stream].holds = holds
                intake.is_fresh = False
            self._stirred[intake] = None

    def close(self) -> None:
        """No event will come: every window ends."""
        self._closing = True
        raised = self._work()
        # Layer by layer: what queries make at the end is for others.
        for layer in sorted({intake.layer for intake in self.intakes}):
            intakes = [intake for intake in self.intakes if intake.layer == layer]
            raised = self._release(intakes, last=True) or raised
            for query in sorted((q for i in intakes for q in i.members), key=lambda q: q.rank):
                raised = self._attempt(query, self._close, query) or raised
        if raised is not None:
            raise raised

    @property
    def has_failed(self) -> bool:
        """Whether some have."""
        return bool(self._failed)

    def failed(self) -> list[Handle]:
        """The queries that failed since this was last asked."""
        failed, self._failed = self._failed, []
        return [each for handle in failed for each in handle.failed()]

    # --- inside -----------------------------------------------------------------------------------

    def _take(self, stream: int, batch: EventBatch) -> None:
        """Hands a stream's events to the queries that read it; rejects what comes too late."""
        numbered = batch.renumber(self._arrivals[stream])
        self._arrivals[stream] += len(batch)
        self.events += len(batch)
        if self.seen is not None:
            self.seen(numbered)
        readers = [intake for intake in self._readers.get(stream, ()) if intake.is_live]
        if not readers:
            self._warn_unread(stream)
        late: dict[int, int] = {}
        misfit: Intake | None = None
        interrupt: BaseException | None = None
        for intake in readers:
            intake.is_fresh = False
            if not intake.order.fits(numbered.clock):
                misfit = intake
                continue
            self._stirred[intake] = None
            try:
                found = intake.order.add(numbered)
            except BaseException as error:
                # The others still get the event, and are moved on by the next one.
                self._fail(intake.live, error)
                interrupt = interrupt if isinstance(error, Exception) else error
                continue
            intake.late += len(found)
            for index, watermark in found.items():
                late[index] = max(watermark, late.get(index, watermark))
        if interrupt is not None:
            raise interrupt
        if misfit is not None:
            self._reject_clock(numbered, misfit)
        for index in sorted(late) if not self.is_replayed else ():
            self._rejects.too_late(numbered, index, late[index])

    @property
    def is_behind(self) -> bool:
        """Whether something waits until somebody asks; what an interrupt left to be made does."""
        return bool(self.arriving or self._later.visits or self._due)

    def _take_waiting(self) -> None:
        """Hands on what has waited; an interrupt meanwhile ends the queries that it is for."""
        arriving, self.arriving = self.arriving, ()
        try:
            for stream, batch in arriving:
                self.enter(stream, batch)
        except BaseException as error:
            readers = {i: None for stream, _ in arriving for i in self._readers.get(stream, ())}
            self._fail([query for intake in readers for query in intake.live], error)
            raise

    def _release(self, intakes: Iterable[Intake], *, last: bool = False) -> Exception | None:
        """Lets queries have what the watermark has reached; ``last``: all that is left."""
        for intake in intakes:
            try:
                visits = intake.release(last)
                self._due.extend(visits)
                for query, batch in intake.beginning():
                    self._begin(query, batch)
            except BaseException as error:
                self._fail(intake.live, error)
                if not isinstance(error, Exception):
                    raise
                continue
            most = self._limits.held_events
            if most is not None and intake.order.held > most:
                what = f"holding {intake.order.held} events back"
                self._fail(intake.live, self._limits.error("held_events", what))
        if len(self._due) > 1:
            self._due = deque(sorted(self._due, key=_rank))
        return self._work()

    def _work(self) -> Exception | None:
        """Makes the visits that are due; returns what a callback raised."""
        raised: Exception | None = None
        while self._due:
            if self.is_asked or not self._waits(self._due[0]):
                raised = self._make() or raised
            else:
                del self._due[0]
        if not self.is_asked and self._later.is_too_much:
            self._recall(later.MOST)
            while self._due:
                raised = self._make() or raised
        return raised

    def _make(self) -> Exception | None:
        """Makes the first visit that is due."""
        # It stays there until it is made: an interrupt that comes before it is taken must not lose it.
        visit = self._due[0]
        raised = self._attempt(visit.query, self._visit, visit)
        del self._due[0]
        visit.query.handle.taken = None
        return raised

    def _waits(self, visit: Visit) -> bool:
        """Whether a visit waits from now on; if not, it stands for all that has waited of its query."""
        if not self._may_wait(visit):
            return False
        enough = self._later.add(visit)
        if enough is None:
            return True
        # No interrupt comes between these: that takes a call, or a loop.
        self._due[0], self._later.visits[visit.query] = enough, []
        return False

    def _may_wait(self, visit: Visit) -> bool:
        """Whether a query need not go on until somebody asks."""
        query = visit.query
        # Where there are several intakes of the same streams, one may become a part of the other.
        return query.is_sparse and len(self._intakes.get(query.intake.streams, ())) == 1

    def _recall(self, most: int) -> None:
        """Makes due what has waited longest, so that no more than so many events wait."""
        visits, left = self._later.but(most)
        due = deque([*visits, *self._due])
        # No interrupt comes between these: that takes a call, or a loop.
        self._due, self._later = due, left

    def _begin(self, query: Registered, batch: EventBatch) -> None:
        try:
            query.pipeline.begin(batch)
        except Exception as error:  # of this query's window
            self._fail([query], error)

    def _attempt(self, query: Registered, do: Callable[[_What], None], what: _What) -> Exception | None:
        """Does something to a query; what its callback raises is for later, and what it has not done, too."""
        try:
            do(what)
        except BaseException as error:  # a callback's; what happens inside a query ends that
            self._owing[query] = None
            if not isinstance(error, Exception):
                raise
            return error
        return None

    def _go_on(self, query: Registered) -> None:
        """What a query has not done when its callback raised something."""
        if not query.handle.is_over:
            query.handle.deliver()
        self._visit(Visit(query, None, 0))

    def _visit(self, visit: Visit) -> None:
        """A query goes on, with events or with time alone."""
        query, batch, position = visit
        pipeline, handle = query.pipeline, query.handle
        if batch is not None and not handle.is_over and handle.taken is not visit:
            if len(batch) > 1 or handle.is_behind or isinstance(handle, Crowd):
                self._find(query, query.process(batch, position), after_all=True, visit=visit)
            else:
                self._take_one(visit, handle)
        moves = pipeline.heeds_time and not handle.is_over and not query.is_behind
        if moves and query.intake.order.time is not None:
            self._find(query, query.advance())
        if query.output is not None:
            self._pass_on(query, query.output)
        elif pipeline.waits or handle.is_behind:
            query.intake.waiting[query] = None
        else:
            query.intake.waiting.pop(query, None)

    def _take_one(self, visit: Visit, handle: Handle) -> None:
        """An event that came alone, which completes nothing, most of the time."""
        query, batch, position = visit
        assert batch is not None
        self._sharing.turn_to(batch)
        if handle.take(visit, query.pipeline.take_one, batch, position - query.start):
            self._find(query, iter(()))
        elif handle.is_over and handle.error is not None:
            self._failed.append(handle)

    def _find(
        self,
        query: Registered,
        matches: Iterator[MatchBatch],
        *,
        after_all: bool = False,
        visit: Visit | None = None,
    ) -> None:
        """``after_all``: what was found before must be complete, since these need another state."""
        handle, before = query.handle, query.handle.error
        try:
            # What feeds another query is part of it.
            made = query.output is not None
            handle.add(matches, all_at_once=made, after_all=after_all, visit=visit)
        finally:
            if handle.error is not before:
                self._failed.append(handle)

    def _fail(self, queries: Iterable[Registered], error: BaseException) -> None:
        for query in queries:
            query.handle.fail(error)
            self._failed.append(query.handle)
        # What they were about to find out of the batch in hand is of no use to others.
        self._sharing.forget()

    def _close(self, query: Registered) -> None:
        """Ends a query's last window."""
        if query.is_closed:
            return
        if not query.handle.is_over:
            query.handle.deliver()
            self._find(query, query.pipeline.close())
        if query.output is not None:
            self._pass_on(query, query.output)
        query.is_closed = True

    def _pass_on(self, query: Registered, output: int) -> None:
        """Gives the events of REGISTER STREAM to the queries that read that stream."""
        derived = query.pipeline.derived()
        if derived is not None:
            self._take(output, derived)
        time = query.intake.order.time
        if time is not None:
            query.settled = query.pipeline.settled(time)
        self._advance_stream(output)


def _rank(visit: Visit) -> int:
    return visit.query.rank
