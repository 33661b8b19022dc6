"""Queries that read the same streams and have seen the same of them: one order, and one index, for all.

An event costs what it concerns. Whom it may concern, an index from constants to GPMs says
(``gpm.by_stream``); the other queries are not touched. That is right because an event without a
solution of any GPM changes nothing in a query but

- *how many* events there were, which windows of EVENTS count: the number is the intake's, and a query has its
  own as a difference;
- *what was last*, which ``,`` asks, outside of partitions (in one, an event without a solution is no event):
  a query that is touched after events were passed over gets the last of these with it;
- *the time*: matches that wait for it to pass are few, and those queries stand in ``waiting``;
- what ``stats`` and ``why`` show: they are made when somebody asks, from the intake's counts and sample.

Whoever is not covered by that is touched by every event (``Registered.attends``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Final
from weakref import WeakSet, ref

import numpy as np

from spaseq.alone import Single
from spaseq.engine.pipelines.order import Reorder
from spaseq.events import Clock, EventBatch, Ids, concatenate
from spaseq.gpm.by_stream import ByStream
from spaseq.matching.sharing.cohort import Cohort, Elements, Kin
from spaseq.why.sample import Sample

if TYPE_CHECKING:
    from spaseq.engine.registered import Registered

#: So many queries that are over are not worth looking for others.
_SLACK: Final = 16


class Visit:
    """A query that is to go on: with events, the first of them at this position, or as time has passed."""

    __slots__ = ("batch", "position", "query")

    def __init__(self, query: Registered, batch: EventBatch | None, position: int) -> None:
        self.query, self.batch, self.position = query, batch, position


class Intake:
    """What orders the events of some queries, and says whom they concern.

    ``position`` counts the events released so far, ``late`` those that came too late, ``counts`` the released
    ones by stream. ``is_fresh``: nothing has happened, so that a new query may join. ``layer``: intakes that
    read what queries make come after those of the queries.
    """

    def __init__(self, streams: Mapping[int, int], lateness: timedelta, elements: Elements) -> None:
        """``streams`` as for ``Reorder``; ``elements`` are the engine's."""
        self.order = Reorder(streams, lateness)
        self.streams = frozenset(streams)
        self.members: list[Registered] = []
        self.position = 0
        #: How many it had released in the engine whose state this one has, of what this one has not seen.
        self.before = 0
        self.late = 0
        self.counts: Counter[int] = Counter()
        self.is_fresh = True
        self.layer = 0
        self.waiting: dict[Registered, None] = {}
        self._attending: dict[Registered, None] = {}
        self._new: list[Registered] = []
        self._begun: list[tuple[Registered, EventBatch]] = []
        # Those who join begin together, and share a sample as long as one of them wants it: who asks for his
        # own, or for none, keeps no events of others.
        self._sample: Callable[[], Sample | None] = _nothing
        self._samples: WeakSet[Sample] = WeakSet()
        # The last event of all and, before it, the last of an earlier time, with their positions.
        self.passed: tuple[tuple[int, EventBatch], ...] = ()
        self._index: ByStream[Registered] = ByStream(streams)
        self._over = 0
        self._elements = elements
        self._kin = Kin()
        # Whether some query may ask for the last event that it was not given.
        self.looks_back = False

    # --- members ------------------------------------------------------------------------------

    @property
    def is_live(self) -> bool:
        """Whether there is a query that is not over."""
        return self._over < len(self.members)

    @property
    def live(self) -> list[Registered]:
        """The queries that are not over."""
        return [query for query in self.members if not query.handle.is_over]

    def join(self, query: Registered) -> None:
        """One query more, which sees the events from now on."""
        sample = self._sample()
        if sample is None:
            sample = Sample()
            self._sample = ref(sample)
            self._samples.add(sample)
        query.enter(self, sample)
        self._enter(query)
        self._new.append(query)
        if query.output is not None:
            self.waiting[query] = None  # how far its time has come is for others to know

    def _enter(self, query: Registered) -> None:
        self.members.append(query)
        self._over += query.is_over
        self.looks_back |= query.asks_for_last

    def _seat(self, query: Registered) -> None:
        """Puts a query where it is found by the events that concern it."""
        query.gather()
        if query.is_over:
            return
        if query.attends:
            self.attend(query)
            return
        for streams, needed in query.pipeline.patterns.needs():
            self._index.add(query, streams, needed)

    def leave(self) -> None:
        """One of the queries is over."""
        self._over += 1

    def attend(self, query: Registered) -> None:
        """Touches a query by every event from now on."""
        self._attending[query] = None

    def samples(self, sample: Sample) -> None:
        """Gives the events to come to a sample, until it is full."""
        self._samples.add(sample)

    def absorb(self, other: Intake) -> list[Visit]:
        """Takes over the queries of an intake of the same state (``equals``).

        Returns what they are to see of what the other one remembers: this one may remember events from before
        a query came, and not those that were late here, or, where nobody asked for them, none.
        """
        new = set(other._new)
        visits = []
        for query in other.live:
            unseen = other._unseen(query, other.position) if query.asks_for_last else ()
            if unseen:
                visits.append(Visit(query, concatenate(unseen), self.position - len(unseen)))
            query.move(other, self)
            self._enter(query)
            if query not in new:
                self._seat(query)
        self._kin.absorb({m: q.start for q in other.live if q not in new and (m := q.pipeline.member)})
        self.waiting.update(other.waiting)
        self._new += other._new
        self._samples |= other._samples
        return visits

    def equals(self, other: Intake) -> bool:
        """Whether all that comes will be treated alike by both."""
        return not other.is_fresh and self.order.equals(other.order)

    def prune(self) -> None:
        """Forgets the queries that are over."""
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
                self._seat(query)

    # --- events -------------------------------------------------------------------------------

    def release(self, last: bool = False) -> list[Visit]:
        """The queries that the events which the watermark has reached concern; ``last``: all events left."""
        if self._over > len(self.members) // 2 + _SLACK:
            self.prune()
        if self._kin:
            self._kin.regroup(self.position)
        before = self.order.watermark
        batch = self.order.drain() if last else self.order.release()
        if batch is not None:
            self._begin(batch)
        visits: list[Visit] = []
        if batch is not None:
            begin, self.position = self.position, self.position + len(batch)
            self._count(batch)
            if self._samples:
                self._show(batch)
            few = self._several(batch) if len(batch) > 1 else None
            wanted: dict[bytes, Ids] = {}
            given: list[tuple[Registered, bytes | None, list[EventBatch]]] = []
            earlier: Ids | None = None
            for query in self._concerned(batch) if few is None else few:
                some = None if few is None or not query.pipeline.is_sparse else few[query]
                unseen: list[EventBatch] = []
                if query.asks_for_last:
                    unseen = self._unseen(query, begin)
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
                visits.append(Visit(query, concatenate([*unseen, part]), at - len(unseen)))
                query.reached = self.position
            if self.looks_back:
                self._pass(batch, begin)
        if self.waiting and (batch is not None or self.order.watermark != before):
            touched = {visit.query for visit in visits}
            visits += [Visit(query, None, 0) for query in self.waiting if query not in touched]
        return visits

    def is_next(self, clock: Clock, time: int) -> bool:
        """Whether an event is the only one to be released when it arrives, and moves no other query on."""
        if self.is_fresh or self._new or not self.is_live:
            return False
        if self.waiting and any(query.is_due(time) for query in self.waiting):
            return False
        return self.order.is_next(clock, time)

    @property
    def is_plain(self) -> bool:
        """Whether nobody is to be told of an event besides those whom it concerns."""
        return not (self._samples or self._kin or self._over > len(self.members) // 2 + _SLACK)

    def concerned(self, stream: int, terms: Sequence[int]) -> list[Registered]:
        """The queries that an event may concern which came alone, some of them perhaps over, in any order."""
        if len(self._attending) == len(self.members):
            return self.members
        found = self._index.of_single(stream, terms)
        return [*{*self._attending, *found}] if self._attending else found

    def take_over(self, event: Single) -> None:
        """Such an event has been here, and nobody is told."""
        stream, position = event.at.stream, self.position
        passed = self.followed(event, position) if self.looks_back else self.passed
        self.order.step(stream, event.at.time, event.at.n)
        self.position, self.passed = position + 1, passed
        self.counts[stream] += 1

    def step(self, event: Single) -> list[Visit]:
        """``release`` of such an event, which need not be added to the order."""
        if self._over > len(self.members) // 2 + _SLACK:
            self.prune()
        if self._kin:
            self._kin.regroup(self.position)
        stream, position = event.at.stream, self.position
        self.order.step(stream, event.at.time, event.at.n)
        self.position = position + 1
        self.counts[stream] += 1
        if self._samples:
            self._show(event)
        visits = []
        for query in sorted(self.concerned(stream, event.terms), key=_rank):
            if not query.handle.is_over:
                given = self._unseen(query, position) if query.asks_for_last else ()
                batch = concatenate([*given, event]) if given else event
                visits.append(Visit(query, batch, position - len(given)))
                query.reached = self.position
        if self.looks_back:
            self._pass(event, position)
        return visits

    def _show(self, batch: EventBatch) -> None:
        for sample in tuple(self._samples):
            sample.add(batch)
            if not sample.open:
                self._samples.discard(sample)

    def unseen(self, query: Registered, begin: int) -> list[tuple[int, EventBatch]]:
        """Of the events that a query was not given, the last, and the last of another time than that one's.

        With their positions. For simultaneous events do not come between each other.
        """
        return [passed for passed in self.passed if query.reached <= passed[0] < begin]

    def _unseen(self, query: Registered, begin: int) -> list[EventBatch]:
        return [event for _, event in self.unseen(query, begin)]

    def followed(self, event: Single, position: int) -> tuple[tuple[int, EventBatch], ...]:
        """What ``passed`` is when this event, which came alone, is the last."""
        earlier = [(place, last) for place, last in self.passed if last.stamp(0).time < event.at.time][-1:]
        return (*earlier, (position, event))

    def _pass(self, batch: EventBatch, begin: int) -> None:
        """Remembers the last event, and the last of an earlier time."""
        if isinstance(batch, Single):
            self.passed = self.followed(batch, begin)
            return
        last = len(batch) - 1
        time = batch.time.item(last)
        earlier = [(place, event) for place, event in self.passed if event.stamp(0).time < time][-1:]
        if at := int(np.searchsorted(batch.time, time)):
            earlier = [(begin + at - 1, batch.take(np.array([at - 1])))]
        self.passed = (*earlier, (begin + last, batch.take(np.array([last]))))

    def _begin(self, batch: EventBatch) -> None:
        new, self._new = self._new, []
        for query in new:
            if not query.handle.is_over:
                self._seat(query)
                self._begun.append((query, batch))
        cohort = Cohort(self._elements)
        for query in new:
            query.pipeline.share(cohort)
            if query.pipeline.member is not None:
                self._kin.add(query.pipeline.member, query.start)
        cohort.complete()

    def beginning(self) -> Sequence[tuple[Registered, EventBatch]]:
        """The queries whose first event is there, and which; whether it concerns them or not."""
        begun, self._begun = self._begun, []
        return begun

    def _count(self, batch: EventBatch) -> None:
        if len(self.order.clocks) == 1 or len(batch) == 1:
            self.counts[int(batch.stream[0])] += len(batch)
            return
        streams, counts = np.unique(batch.stream, return_counts=True)
        for stream, count in zip(streams.tolist(), counts.tolist(), strict=True):
            self.counts[stream] += count

    def _concerned(self, batch: EventBatch) -> list[Registered]:
        """The queries that events may concern, in the order in which they were registered."""
        found: list[Registered]
        if len(self._attending) == len(self.members) or len(self.members) == 1 < len(batch):
            found = self.members
        else:
            found = [*self._attending, *self._index.of_batch(batch)]
            if len(found) > 1:
                found = sorted(dict.fromkeys(found), key=_rank)
        return [query for query in found if not query.handle.is_over]

    def _several(self, batch: EventBatch) -> dict[Registered, Ids | None] | None:
        """Of some events the queries that each may concern, in their order, and which those are.

        None for who is to have all, as for one whom most concern; None at all where it is not worth looking.
        """
        size = len(batch)
        if len(self.members) == 1 or len(self._attending) == len(self.members):
            return None
        if not any(query.pipeline.is_sparse for query in self.members):
            return None  # whom they concern has all of them
        found = self._index.by_item(batch, lambda query: query.pipeline.is_sparse)
        few = {
            query: None if events is None or 2 * len(events) >= size else events
            for query, events in found.items()
        }
        few |= dict.fromkeys(self._attending)
        return {query: few[query] for query in sorted(few, key=_rank) if not query.handle.is_over}


def _earlier(batch: EventBatch) -> Ids:
    """Of each event of a batch, the number of the last of an earlier time; -1 of the first ones."""
    first = np.zeros(len(batch), dtype=np.int64)
    begins = np.flatnonzero(batch.time[1:] != batch.time[:-1]) + 1
    first[begins] = begins
    return np.maximum.accumulate(first) - 1


def _with_last(events: Ids, earlier: Ids) -> Ids:
    """Some events of a batch and, before each and its end, those that ``_unseen`` would give of it."""
    before = np.append(events, len(earlier)) - 1
    found = np.sort(np.concatenate([events, before, earlier[before]]), kind="stable")
    is_new = np.append(True, found[1:] != found[:-1])
    # Before the first is -1, as a place the last: what is earlier than that one is among them anyway.
    return found[is_new & (found >= 0)]


def _nothing() -> None:
    """What is referred to by nobody."""


def _rank(query: Registered) -> int:
    return query.rank
