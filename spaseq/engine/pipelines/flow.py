"""The queries of an engine, and what events and the passing of time do to them; one thread at a time."""

from __future__ import annotations

import difflib
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Final, TypeVar

from spaseq.alone import Single
from spaseq.engine.handle import Handle
from spaseq.engine.pipelines import later
from spaseq.engine.pipelines.intake import Intake, Visit
from spaseq.engine.pipelines.later import Later
from spaseq.engine.pipelines.pipeline import Pipeline
from spaseq.engine.pipelines.seats import Crowd
from spaseq.engine.registered import Registered
from spaseq.engine.rejects import Rejects, letter_of
from spaseq.errors import EngineError, warn
from spaseq.events import Clock, EventBatch
from spaseq.gpm.kb import KnowledgeBase
from spaseq.gpm.sharing import Sharing
from spaseq.limits import Limits
from spaseq.matching.sharing.cohort import Elements
from spaseq.matching.templates.form import form
from spaseq.results.batch import MatchBatch
from spaseq.terms.dictionary import Dictionary

if TYPE_CHECKING:
    from spaseq.engine.durable.journal import Journal

_What = TypeVar("_What")

#: So many queries are not worth looking for those that are over.
_SLACK: Final = 16


class Flow:
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
        self.queries: list[Registered] = []
        self._dictionary = dictionary
        self._sharing = sharing
        self._rejects = rejects
        self._limits = limits
        self._lateness = lateness
        self._registered = 0
        self._worth_pruning = _SLACK
        self._arrivals: Counter[int] = Counter()
        self._unread: set[int] = set()
        # By form, the newest query that others may join.
        self._forms: dict[tuple[object, ...], Registered] = {}
        self._failed: list[Handle | Crowd] = []
        self._closing = False
        self._elements = Elements()
        # Those of the same streams, the one that new queries may join last.
        self._intakes: dict[frozenset[int], list[Intake]] = {}
        self._readers: dict[int, list[Intake]] = {}
        self._makers: dict[int, list[Registered]] = {}
        # What must be looked at when things move on: intakes, what those have released (an interrupt leaves
        # the rest), and queries whose callback raised something.
        self._stirred: dict[Intake, None] = {}
        self._due: deque[Visit] = deque()
        #: Events of several streams that have waited, in order: ``move`` takes them first.
        self.arriving: Sequence[tuple[int, EventBatch]] = ()
        #: Whether somebody asks: if not, visits of a few events each wait until there are more of them.
        self.is_asked = True
        self._later = Later()
        self._owing: dict[Registered, None] = {}
        #: What takes down all that happens, if somebody asked for that.
        self.journal: Journal | None = None
        #: Whether what happens is told to nobody, since it happened before.
        self.is_replayed = False

    @property
    def is_over(self) -> bool:
        """Whether no query wants any more."""
        return bool(self.queries) and all(q.handle.is_over for q in self.queries)

    @property
    def live(self) -> int:
        """How many queries are not over."""
        return sum(query.handle.live for query in self.queries)

    @property
    def intakes(self) -> Iterator[Intake]:
        """The orders of all queries."""
        for alike in self._intakes.values():
            yield from alike

    @property
    def registered(self) -> int:
        """How many places queries have been given."""
        return self._registered

    def newest(self, streams: frozenset[int]) -> Intake:
        """The order of the newest query of these streams."""
        return self._intakes[streams][-1]

    def unhold(self) -> None:
        """No stream is read."""
        held = {s for i in self.intakes for s, clock in i.order.clocks.items() if clock.holds}
        for stream in held.difference(self._makers):
            self.hold(stream, False)

    def streams(self) -> dict[int, tuple[Clock | None, int | None]]:
        """The streams that came or are read, each with its clock and how far it has come; None if unknown."""
        found: dict[int, tuple[Clock | None, int | None]] = dict.fromkeys(self._arrivals, (None, None))
        for stream, intakes in self._readers.items():
            orders = [intake.order for intake in intakes]
            reached = [order.reached(stream) for order in orders]
            known = [time for time in reached if time is not None]
            clocks = [order.clock for order in orders if order.clock is not None]
            found[stream] = (clocks[0] if clocks else None, max(known, default=None))
        return found

    def arrived(self, stream: int) -> int:
        """How many events of a stream there were."""
        return self._arrivals[stream]

    def crowd(self, key: tuple[object, ...], kb: KnowledgeBase) -> Crowd | None:
        """Where a query of this form may join others that have seen nothing yet either."""
        first = self._forms.get(key)
        if first is None or not first.intake.is_fresh or first.handle.is_over or first.pipeline.is_watched:
            return None
        if isinstance(first.handle, Handle):
            crowd = Crowd(self._dictionary, kb, self._sharing, self._limits, first, first.pipeline.beginning)
            query, constants = first.pipeline.query, form(first.pipeline.query)
            assert constants is not None
            first.handle.sit(crowd.seat(query))
            crowd.join(first.handle, constants.constants)
            first.handle = crowd
        return first.handle

    def add(self, pipeline: Pipeline, handle: Handle, key: tuple[object, ...] | None) -> None:
        """One query more; those that are over go, whenever they may be many.

        ``key``: that of its form, if others of the same may run as one with it.
        """
        if len(self.queries) >= self._worth_pruning:
            self._prune()
        query = Registered(pipeline, handle, self._dictionary, self._registered)
        if query.output is not None:
            self._check_loop(query, query.output)
        self._registered += 1
        self.queries.append(query)
        self._place(query).join(query)
        if key is not None:
            self._forms[key] = query
        if query.output is not None:
            self._makers.setdefault(query.output, []).append(query)
            readers = self._readers.get(query.output, ())
            for intake in readers:
                intake.order.clocks[query.output].holds = True
            if readers:
                for intake in self.intakes:
                    intake.layer = self._layer(intake)

    def _place(self, query: Registered) -> Intake:
        """Where a new query stands: with those that have seen nothing yet either."""
        alike = self._intakes.setdefault(frozenset(query.streams), [])
        if not alike or not alike[-1].is_fresh:
            intake = Intake(query.streams, self._lateness, self._elements)
            alike.append(intake)
            for stream in query.streams:
                self._readers.setdefault(stream, []).append(intake)
                intake.order.clocks[stream].holds = bool(self._made_by(stream))
            intake.layer = self._layer(intake)
        return alike[-1]

    def _prune(self) -> None:
        self.queries = [q for q in self.queries if not q.handle.is_over]
        self._forms = {key: query for key, query in self._forms.items() if query.intake.is_fresh}
        self._worth_pruning = max(_SLACK, 2 * len(self.queries))
        for streams, alike in list(self._intakes.items()):
            for intake in alike:
                intake.prune()
            self._intakes[streams] = [intake for intake in alike if intake.members]
            if not self._intakes[streams]:
                del self._intakes[streams]
        self._readers = {}
        for intake in self.intakes:
            for stream in intake.order.clocks:
                self._readers.setdefault(stream, []).append(intake)
        makers = {stream: [q for q in of if not q.handle.is_over] for stream, of in self._makers.items()}
        self._makers = {stream: of for stream, of in makers.items() if of}

    def _made_by(self, stream: int) -> list[Registered]:
        """The queries that make a stream by REGISTER STREAM."""
        return [q for q in self._makers.get(stream, ()) if not q.handle.is_over]

    def _check_loop(self, query: Registered, output: int) -> None:
        """EngineError if what a query makes would come back to it."""
        seen: set[int] = set()
        asked = list(query.streams)
        while asked:
            stream = asked.pop()
            if stream == output:
                raise EngineError("a query's registered stream would feed itself, directly or through others")
            if stream not in seen:
                seen.add(stream)
                asked += [read for maker in self._made_by(stream) for read in maker.streams]

    def _layer(self, intake: Intake) -> int:
        """One more than those of the intakes whose queries make what this one reads."""
        makers = [q for stream in intake.order.clocks for q in self._made_by(stream)]
        return 1 + max((self._layer(q.intake) for q in makers), default=-1)

    # --- what happens ---------------------------------------------------------------------------

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
        late: set[int] = set()
        misfit: Intake | None = None
        interrupt: BaseException | None = None
        for intake in readers:
            intake.is_fresh = False
            if not intake.order.fits(numbered.clock):
                misfit = intake
                continue
            self._stirred[intake] = None
            try:
                indices = intake.order.add(numbered).tolist()
            except BaseException as error:
                # The others still get the event, and are moved on by the next one.
                self._fail(intake.live, error)
                interrupt = interrupt if isinstance(error, Exception) else error
                continue
            intake.late += len(indices)
            late.update(indices)
        if interrupt is not None:
            raise interrupt
        if misfit is not None:
            self._reject_clock(numbered, misfit)
        for index in sorted(late) if not self.is_replayed else ():
            self._rejects.too_late(numbered, index, max(i.order.watermark for i in readers))

    @property
    def is_behind(self) -> bool:
        """Whether something waits until somebody asks."""
        return bool(self.arriving or self._later.visits)

    def is_smooth(self, stream: int, clock: Clock, time: int) -> bool:
        """Whether an event would arrive without anybody being told: not the first, nor one that is late."""
        readers = self._readers.get(stream)
        if readers is None:
            return stream in self._unread
        for intake in readers:
            order = intake.order
            of = order.clocks[stream]
            if order.clock is not clock or time < max(order.watermark, of.newest, of.promised):
                return False
        return True

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
        if handle.take(visit, query.take_one, batch, position):
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
        self._settle(output)

    def _settle(self, output: int) -> None:
        """How far a stream has come that queries make, for those who read it."""
        makers = [q.settled for q in self._made_by(output)]
        for reader in self._readers.get(output, ()):
            clock = reader.order.clocks[output]
            if not self._closing:
                clock.newest = max(clock.newest, min(makers, default=clock.newest))
                clock.holds = bool(makers)
                self._stirred[reader] = None

    def _let_go(self) -> None:
        """A stream that no query makes any more holds no other back."""
        for stream, makers in list(self._makers.items()):
            if any(q.handle.is_over for q in makers):
                self._makers[stream] = self._made_by(stream)
                self._settle(stream)
                if not self._makers[stream]:
                    del self._makers[stream]

    def _merge(self, intake: Intake) -> None:
        """Makes one of two intakes that have come to the same state."""
        alike = self._intakes.get(intake.streams, [])
        for other in alike[1:]:
            if alike[0].equals(other):
                alike[0].absorb(other)
                alike.remove(other)
                self._stirred.pop(other, None)
                for stream in other.order.clocks:
                    self._readers[stream].remove(other)

    def _reject_clock(self, batch: EventBatch, intake: Intake) -> None:
        if self.is_replayed:
            return
        reason = f"its time is in {batch.clock}, but the query's first event was in {intake.order.clock}"
        for index in range(len(batch)):
            self._rejects.malformed(letter_of(batch, index, reason))

    def _warn_unread(self, stream: int) -> None:
        if stream in self._unread or stream in self._readers:
            return
        if stream in self._makers:  # nobody has to read what REGISTER STREAM makes
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


def _rank(visit: Visit) -> int:
    return visit.query.rank
