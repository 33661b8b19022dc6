"""Stream sets: queries that read the same streams, the order of their events, which events concern them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Final, NamedTuple
from weakref import WeakSet, ref

import numpy as np
import pyoxigraph as ox

from spaseq.alone import Single
from spaseq.engine.handle import Handle
from spaseq.engine.pipelines.pipeline import Pipeline
from spaseq.engine.pipelines.query_set import QuerySet
from spaseq.engine.pipelines.reordering import Reordering
from spaseq.engine.pipelines.stats import Stats
from spaseq.events import BEGINNING, Clock, EventBatch, Ids, concatenate
from spaseq.matching.sharing.cohort import Cohort, Elements, Kin
from spaseq.patterns.discrimination import ByStream
from spaseq.results.batch import MatchBatch
from spaseq.terms.dictionary import Dictionary
from spaseq.why.sample import Sample

if TYPE_CHECKING:
    from spaseq.matching.sharing.member import Member


#: Queries that are over are removed only if there are more than this many.
_SLACK: Final = 16


class DueWork(NamedTuple):
    """Work of a query: to process events, the first of them at this position, or to advance its time.

    ``before``: events that the query was not given, and needs first, with their positions.
    """

    position: int
    batch: EventBatch | None
    before: Sequence[tuple[int, EventBatch]] = ()


class StreamSet:
    """The order of the events of some queries, and which queries an event concerns.

    ``position`` counts the events released so far, ``late`` the late ones, ``counts`` the released ones by
    stream. ``is_fresh``: no event has come, so that a new query may join. ``layer``: stream sets that read
    what queries make come after the stream sets of these queries.
    """

    def __init__(self, streams: Mapping[int, int], lateness: timedelta, elements: Elements) -> None:
        """``streams`` as for ``Reordering``; ``elements`` are the engine's."""
        self.order = Reordering(streams, lateness)
        self.streams = frozenset(streams)
        self.members: list[DispatchedQuery] = []
        self.position = 0
        #: How many events it had released in the last engine that this one has not seen.
        self.before = 0
        self.late = 0
        self.counts: Counter[int] = Counter()
        self.is_fresh = True
        self.layer = 0
        self.waiting: dict[DispatchedQuery, None] = {}
        self._attending: dict[DispatchedQuery, None] = {}
        self._new: list[DispatchedQuery] = []
        # Queries that join together share a sample as long as one of them needs it. A query with a sample of
        # its own, or without one, does not keep the others' events.
        self._sample: Callable[[], Sample | None] = _nothing
        self._samples: WeakSet[Sample] = WeakSet()
        # False if there are none: an event that is pushed asks this, and a WeakSet takes longer.
        self._is_sampled = False
        # The last event and, before it, the last event of an earlier time, with their positions.
        self.passed: tuple[tuple[int, EventBatch], ...] = ()
        self._index: ByStream[DispatchedQuery] = ByStream(streams)
        self._over = 0
        self._elements = elements
        self._kin = Kin()
        # Whether some query may need the last event that it was not given.
        self.looks_back = False

    # --- members ------------------------------------------------------------------------------

    @property
    def is_live(self) -> bool:
        """Whether there is a query that is not over."""
        return self._over < len(self.members)

    @property
    def live(self) -> list[DispatchedQuery]:
        """The queries that are not over."""
        return [query for query in self.members if not query.handle.is_over]

    def join(self, query: DispatchedQuery) -> None:
        """Add a query, which sees the events from now on."""
        sample = self._sample()
        if sample is None:
            sample = Sample()
            self._sample = ref(sample)
            self.samples(sample)
        query.enter(self, sample)
        self._enter(query)
        self._new.append(query)
        if query.output is not None:
            self.waiting[query] = None  # its progress matters to the readers of its stream

    def _enter(self, query: DispatchedQuery) -> None:
        self.members.append(query)
        self._over += query.is_over
        self.looks_back |= query.asks_for_last

    def _put(self, query: DispatchedQuery) -> None:
        """Put a query into the index of events that concern it."""
        query.gather()
        if query.is_over:
            return
        if query.attends:
            self.attend(query)
            return
        for streams, needed in query.pipeline.patterns.needs():
            self._index.add(query, streams, needed)

    def leave(self) -> None:
        """Note that one of the queries is over."""
        self._over += 1

    def attend(self, query: DispatchedQuery) -> None:
        """Let every event from now on concern a query."""
        self._attending[query] = None

    def samples(self, sample: Sample) -> None:
        """Add the following events to a sample, until it is full."""
        self._samples.add(sample)
        self._is_sampled = True

    def absorb(self, other: StreamSet) -> list[DispatchedQuery]:
        """Take over the queries of a stream set in the same state (``equals``).

        Return the queries with further work: with events that only the other one remembers. This one may
        remember events from before a query came, and may lack events that were late here, or remember none if
        no query needed them.
        """
        new = set(other._new)
        found = []
        for query in other.live:
            passed = other._unseen(query, other.position) if query.asks_for_last else ()
            unseen = [event for _, event in passed]
            query.move(other, self)
            if unseen:
                query.due.append(DueWork(self.position - len(unseen), concatenate(unseen)))
                found.append(query)
            self._enter(query)
            if query not in new:
                self._put(query)
        self._kin.absorb({m: q.start for q in other.live if q not in new and (m := q.pipeline.member)})
        self.waiting.update(other.waiting)
        self._new += other._new
        self._samples |= other._samples
        self._is_sampled |= other._is_sampled
        return found

    def equals(self, other: StreamSet) -> bool:
        """Return whether both will treat all future events alike."""
        return not other.is_fresh and self.order.equals(other.order)

    def prune(self) -> None:
        """Forget the queries that are over."""
        members = self.live
        self._kin.prune()
        self._attending, self._over = {}, 0
        self._new = [query for query in self._new if not query.handle.is_over]
        self.waiting = {query: None for query in self.waiting if not query.handle.is_over}
        self._index = ByStream(self.streams)
        self.members, new = [], set(self._new)
        for query in members:
            self._enter(query)
            if query not in new:
                self._put(query)

    # --- events -------------------------------------------------------------------------------

    def release(self, last: bool = False) -> list[DispatchedQuery]:
        """Give queries the events that the watermark has reached; ``last``: all events left.

        Return the queries with further work.
        """
        if self._over > len(self.members) // 2 + _SLACK:
            self.prune()
        if self._kin.courting:
            self._kin.regroup(self.position)
        before = self.order.watermark
        batch = self.order.drain() if last else self.order.release()
        if batch is not None:
            self._begin(batch)
        due: list[DispatchedQuery] = []
        if batch is not None:
            begin, self.position = self.position, self.position + len(batch)
            self._count(batch)
            if self._is_sampled:
                self._show(batch)
            few = self._several(batch) if len(batch) > 1 else None
            wanted: dict[bytes, Ids] = {}
            given: list[tuple[DispatchedQuery, bytes | None, list[EventBatch]]] = []
            earlier: Ids | None = None
            for query in self._concerned(batch) if few is None else few:
                some = None if few is None or not query.pipeline.is_sparse else few[query]
                unseen: list[EventBatch] = []
                if query.asks_for_last:
                    unseen = [event for _, event in self._unseen(query, begin)]
                    if some is not None:
                        earlier = _earlier(batch) if earlier is None else earlier
                        some = _with_last(some, earlier)
                key = None if some is None else some.tobytes()
                if key is not None and some is not None:
                    wanted.setdefault(key, some)
                given.append((query, key, unseen))
            parts = dict(zip(wanted, batch.parts([*wanted.values()]), strict=True))
            for query, key, unseen in given:
                part = batch if key is None else parts[key]
                at = begin if key is None else begin + wanted[key].item(0)
                query.due.append(DueWork(at - len(unseen), concatenate([*unseen, part])))
                query.reached = self.position
                due.append(query)
            if self.looks_back:
                self._pass(batch, begin)
        if self.waiting and (batch is not None or self.order.watermark != before):
            touched = set(due)
            for query in self.waiting:
                if query not in touched:
                    query.due.append(DueWork(0, None))
                    due.append(query)
        return due

    def is_next(self, clock: Clock, time: int) -> bool:
        """Return whether an event would be released alone on arrival, without advancing another query."""
        if self.is_fresh or self._new or self._over >= len(self.members):
            return False
        if self.waiting and any(query.is_due(time) for query in self.waiting):
            return False
        order = self.order
        if order.held or order.lateness or order.clock is not clock or time < order.watermark:
            return False
        # If no stream holds the others back, the watermark is what each has reached, or later.
        for of in order.clocks.values():  # noqa: SIM110  # each pushed event comes by here
            if of.holds or time < of.newest or time < of.promised:
                return False
        return True

    def step(self, event: Single) -> list[DispatchedQuery]:
        """Do ``release`` for such an event, which need not be added to the order."""
        if self._over > len(self.members) // 2 + _SLACK:
            self.prune()
        if self._kin.courting:
            self._kin.regroup(self.position)
        stream, position = event.at.stream, self.position
        order = self.order
        of = order.clocks[stream]
        of.newest = order.watermark = event.at.time
        of.newest_n = event.at.n
        self.position = position + 1
        self.counts[stream] += 1
        if self._is_sampled:
            self._show(event)
        due = []
        if len(self._attending) == len(self.members):
            queries = self.members
        else:
            queries = self._index.of_single(stream, event.terms)
            if self._attending:
                queries = [*{*self._attending, *queries}]
        for query in sorted(queries, key=_rank) if len(queries) > 1 else queries:
            if not query.handle.is_over:
                before = self._unseen(query, position) if query.asks_for_last else ()
                query.due.append(DueWork(position, event, before))
                query.reached = self.position
                due.append(query)
        if self.looks_back:
            self._pass(event, position)
        return due

    def _show(self, batch: EventBatch) -> None:
        for sample in tuple(self._samples):
            sample.add(batch)
            if not sample.open:
                self._samples.discard(sample)
        self._is_sampled = bool(self._samples)

    def _unseen(self, query: DispatchedQuery, begin: int) -> list[tuple[int, EventBatch]]:
        """Return the last event that a query was not given, and the last one of an earlier time than that.

        With their positions: simultaneous events are not between each other.
        """
        return [passed for passed in self.passed if query.reached <= passed[0] < begin]

    def _pass(self, batch: EventBatch, begin: int) -> None:
        """Remember the last event, and the last of an earlier time."""
        last = len(batch) - 1
        time = batch.stamp(last).time
        earlier = [(place, event) for place, event in self.passed if event.stamp(0).time < time][-1:]
        if not last:
            self.passed = (*earlier, (begin, batch))
            return
        if at := int(np.searchsorted(batch.time, time)):
            earlier = [(begin + at - 1, batch.take(np.array([at - 1])))]
        self.passed = (*earlier, (begin + last, batch.take(np.array([last]))))

    def _begin(self, batch: EventBatch) -> None:
        new, self._new = self._new, []
        for query in new:
            if not query.handle.is_over:
                self._put(query)
        cohort = Cohort(self._elements)
        for query in new:
            query.pipeline.share(cohort)
            if query.pipeline.member is not None:
                self._kin.add(query.pipeline.member, query.start)
        cohort.complete()
        for query in new:  # including queries that the first event does not concern
            try:
                if not query.handle.is_over:
                    query.pipeline.begin(batch)
            except Exception as error:  # the window's start is out of range
                query.handle.fail(error)

    def _count(self, batch: EventBatch) -> None:
        if len(self.order.clocks) == 1 or len(batch) == 1:
            self.counts[int(batch.stream[0])] += len(batch)
            return
        streams, counts = np.unique(batch.stream, return_counts=True)
        for stream, count in zip(streams.tolist(), counts.tolist(), strict=True):
            self.counts[stream] += count

    def _concerned(self, batch: EventBatch) -> list[DispatchedQuery]:
        """Return the queries that events may concern, in the order in which they were registered."""
        found: list[DispatchedQuery]
        if len(self._attending) == len(self.members) or len(self.members) == 1 < len(batch):
            found = self.members
        else:
            found = [*self._attending, *self._index.of_batch(batch)]
            if len(found) > 1:
                found = sorted(dict.fromkeys(found), key=_rank)
        return [query for query in found if not query.handle.is_over]

    def _several(self, batch: EventBatch) -> dict[DispatchedQuery, Ids | None] | None:
        """Return the queries that events may concern, in their order, each with the events that do.

        None instead of events: the query gets all, as most concern it. None at all: finding out does not pay.
        """
        size = len(batch)
        if len(self.members) == 1 or len(self._attending) == len(self.members):
            return None
        if not any(query.pipeline.is_sparse for query in self.members):
            return None  # the queries they concern get all of them
        found = self._index.by_item(batch, lambda query: query.pipeline.is_sparse)
        few = {
            query: None if events is None or 2 * len(events) >= size else events
            for query, events in found.items()
        }
        few |= dict.fromkeys(self._attending)
        return {query: few[query] for query in sorted(few, key=_rank) if not query.handle.is_over}


def _earlier(batch: EventBatch) -> Ids:
    """Return, for each event of a batch, the number of the last event of an earlier time; -1 if there is
    none.
    """
    first = np.zeros(len(batch), dtype=np.int64)
    begins = np.flatnonzero(batch.time[1:] != batch.time[:-1]) + 1
    first[begins] = begins
    return np.maximum.accumulate(first) - 1


def _with_last(events: Ids, earlier: Ids) -> Ids:
    """Return events of a batch and, before each and at its end, the events that ``unseen`` would
    give of it.
    """
    before = np.append(events, len(earlier)) - 1
    found = np.sort(np.concatenate([events, before, earlier[before]]), kind="stable")
    is_new = np.append(True, found[1:] != found[:-1])
    # -1 stands for no earlier event.
    return found[is_new & (found >= 0)]


def _nothing() -> None:
    """Return None: the weak reference of no object."""


def _rank(query: DispatchedQuery) -> int:
    return query.rank


class DispatchedQuery:
    """A query's pipeline, or that of a query set, and its position among the events of its stream set.

    ``output``: the stream that it makes by REGISTER STREAM; ``settled``: the time up to which that is
    complete. ``rank``: its place in the order of registration. ``reached``: how many of the stream set's
    events it was given or passed over. ``is_behind``: matches that only time completes wait until others are
    enumerated. ``is_over``: no event counts any more; ``is_closed``: its last window has ended. ``due``: the
    work that waits, in order.
    """

    #: The source of its events.
    stream_set: StreamSet

    def __init__(self, pipeline: Pipeline, handle: Handle, dictionary: Dictionary, rank: int) -> None:
        self.pipeline = pipeline
        self.handle: Handle | QuerySet = handle
        self.rank = rank
        self.settled = BEGINNING
        self.is_closed = False
        self.reached = 0
        self.is_behind = False
        # Simultaneous events of different streams are processed in the order of the streams' IRIs.
        iris = sorted({declaration.iri.value for declaration in pipeline.query.streams})
        self.streams = {dictionary.pin(ox.NamedNode(iri)): rank for rank, iri in enumerate(iris)}
        self.output = dictionary.pin(pipeline.output) if pipeline.output is not None else None
        self.asks_for_last = pipeline.asks_for_last
        self.due: list[DueWork] = []
        #: How many of the stream set's events came before it.
        self.start = 0
        # The stream set's counts when the query came.
        self._late = 0
        self._counts: Counter[int] = Counter()
        self.is_over = pipeline.done
        #: Its part of a group that takes single events for all members: see ``Pipeline``.
        self.member: Member | None = None
        # The stream set's time when the query ended: matches left are enumerated up to that.
        self._ended: int | None = None

    @property
    def attends(self) -> bool:
        """Whether it needs every event, even without a solution of any GPM."""
        return self.output is not None or self.pipeline.attends

    @property
    def is_sparse(self) -> bool:
        """Whether it may be given several events without those between them."""
        return not self.asks_for_last and self.pipeline.is_sparse

    def is_due(self, time: int) -> bool:
        """Return whether it must be advanced to this time by an event that may not concern it."""
        handle = self.handle
        return (
            self.output is not None
            or handle.coming is not None
            or handle.is_over
            or self.pipeline.is_due(time)
        )

    def enter(self, stream_set: StreamSet, sample: Sample) -> None:
        """Enter a stream set, which has the query's events from now on; ``sample`` has the first ones."""
        self.stream_set = stream_set
        self.start = self.reached = stream_set.position
        self._late, self._counts = stream_set.late, stream_set.counts.copy()
        self.pipeline.sit(self, sample)

    def saw(self, events: int) -> None:
        """Note that it has had this many events or more, though its stream set had none."""
        self.start = min(self.start, self.stream_set.position - events)

    def gather(self) -> None:
        """Prepare for the first events: queries of one form become a query set."""
        if isinstance(self.handle, QuerySet):
            self.handle.begin()
            self.pipeline = self.handle.pipeline

    def move(self, old: StreamSet, new: StreamSet) -> None:
        """Move, with the work that waits, to another stream set that treats all future events alike."""
        by = new.position - old.position
        self.due = [
            DueWork(
                work.position + by, work.batch, [(position + by, event) for position, event in work.before]
            )
            for work in self.due
        ]
        self.stream_set = new
        self.start += by
        self.reached = new.position
        self._late += new.late - old.late
        self._counts.update(new.counts)
        self._counts.subtract(old.counts)

    def process(self, batch: EventBatch, position: int) -> Iterator[MatchBatch]:
        """Process events; ``position``: of the first one in the stream set."""
        return self.pipeline.process(batch, position - self.start)

    def advance(self) -> Iterator[MatchBatch]:
        """Advance to the stream set's time at the moment when the matches are enumerated.

        If the query is over by then, to the time of its end: it has not seen later events.
        """
        self.is_behind = True
        return self._advance()

    def _advance(self) -> Iterator[MatchBatch]:
        self.is_behind = False
        time = self._ended if self.is_over else self.stream_set.order.time
        if time is not None:
            yield from self.pipeline.advance(time)

    # --- the protocol ``StreamPosition`` ------------------------------------------------------------

    def refresh(self, stats: Stats) -> None:
        """Bring counts up to date, as long as the query is not over."""
        if self.is_over:
            return
        stream_set = self.stream_set
        stats.events = stream_set.position - self.start
        stats.late = stream_set.late - self._late
        stats.watermark = stream_set.order.time
        for name, streams in self.pipeline.patterns.streams.items():
            stats.gpms[name].events = (
                stats.events
                if streams is None
                else sum(stream_set.counts[stream] - self._counts[stream] for stream in streams)
            )

    def leave(self) -> None:
        """End the query: nothing counts any more."""
        if not self.is_over:
            self._ended = self.stream_set.order.time
            self.is_over = True
            self.stream_set.leave()

    def sampled(self, sample: Sample) -> None:
        """Add the following events to another sample."""
        self.stream_set.samples(sample)

    def attend(self) -> None:
        """Let every event concern the query from now on."""
        self.member = None
        self.stream_set.attend(self)
