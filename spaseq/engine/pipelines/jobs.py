"""Jobs: the calls of queries to be made, which may wait until matches are read.

One among many queries may be concerned by a few of some hundred pushed events. A few events cost it as much
as many, so its job waits until there are enough events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final

from spaseq.alone import Single
from spaseq.engine.pipelines.stream_set import Job, RegisteredQuery
from spaseq.engine.pipelines.subscribers import Subscribers
from spaseq.engine.turn import Turn
from spaseq.errors import warn_within
from spaseq.events import EventBatch, concatenate
from spaseq.patterns.evaluator import IllTyped
from spaseq.patterns.sharing import Sharing
from spaseq.terms.dictionary import Dictionary

if TYPE_CHECKING:
    from spaseq.matching.sharing.member import MemberGroup

#: A job with this many events does not wait.
ENOUGH: Final = 128
#: The most events that wait.
MOST: Final = 4_096


class Jobs:
    """The jobs of queries, with events or with time alone; an error in a query ends that query.

    A job is in one place from being added to being run. After a noted interrupt no further job is run, and
    ``turn.is_behind`` says that some are left. ``is_asked``: results are read, so that no job waits.
    """

    def __init__(
        self,
        dictionary: Dictionary,
        sharing: Sharing,
        turn: Turn,
        is_alone: Callable[[RegisteredQuery], bool],
        pass_on: Callable[[RegisteredQuery, int], None],
    ) -> None:
        """``is_alone``: whether a query's order is the only one of its streams; only such a query may wait.

        ``pass_on``: passes events that a query has made for a stream to the queries that read it.
        """
        self._sharing, self._turn, self._deferral = sharing, turn, turn.deferral
        self._is_alone = is_alone
        self._pass_on = pass_on
        #: The jobs of each query, in order; the query that has waited longest is first.
        self.queue: dict[RegisteredQuery, list[Job]] = {}
        # The queries of these with new jobs since they were last found to wait.
        self._fresh: dict[RegisteredQuery, None] = {}
        # Queries that have begun since jobs were last run.
        self._begun: dict[RegisteredQuery, None] = {}
        # Queries with matches that their callbacks may not have been given.
        self._unfinished: set[RegisteredQuery] = set()
        self.is_asked = True
        self._dictionary, self._ill_typed = dictionary, IllTyped(dictionary)

    def warn_of_ill_typed(self, batch: EventBatch) -> None:
        """Warn of ill-typed literals that filters have read of these events."""
        if self._dictionary.ill_typed:
            for message in self._ill_typed.found(batch).values():
                warn_within(message)

    def add(self, jobs: Iterable[Job]) -> None:
        """Add jobs."""
        for job in jobs:
            query = job.query
            self.queue.setdefault(query, []).append(job)
            self._fresh[query] = None

    def renumber(self, queries: Iterable[RegisteredQuery], by: int) -> None:
        """Add to the positions of jobs that an interrupt has left: their queries change the stream set."""
        for query in queries:
            for job in self.queue.get(query, ()):
                job.position += by
                job.before = [(position + by, event) for position, event in job.before]

    def work(self) -> None:
        """Run the jobs that need not wait, in the order of queries."""
        joined: dict[tuple[int, ...], EventBatch] = {}
        due, begun, self._begun = self._due(), self._begun, {}
        if len(begun) > 1:
            self._prepare(query for query in due if query in begun)
        for query in due:
            self._make(query, joined)
            if self._deferral.is_due:
                self._turn.is_behind = True
                break
        self._sharing.forget()  # queries may not run again soon, and would keep a whole batch

    def _prepare(self, begun: Iterable[RegisteredQuery]) -> None:
        """Prepare the queries that begin with these events; an error in one ends it.

        Preparing them one after the other takes half of the time of preparing each before its first events.
        """
        before: EventBatch | None = None
        for query in begun:
            jobs, pipeline = self.queue[query], query.pipeline
            batch = jobs[0].batch
            if batch is None or query.handle.is_over or isinstance(query.handle, Subscribers):
                continue
            try:
                pipeline.prepare(batch, is_shared=len(jobs) == 1 and batch is before)
            except Exception as error:
                self.fail([query], error)
            before = batch

    def _due(self) -> Sequence[RegisteredQuery]:
        """Return the queries with jobs that must be run now."""
        queue = self.queue
        if self.is_asked:
            due = list(queue)
        else:
            due = [query for query in self._fresh if not self._may_wait(query)]
            self._fresh = dict.fromkeys(due)
            left = sum(map(_size, queue.values()))
            if left > MOST:
                left -= sum(_size(queue[query]) for query in due)
                for query, waiting in queue.items():
                    if left <= MOST:
                        break
                    if query not in self._fresh:
                        due.append(query)
                        left -= _size(waiting)
        return sorted(due, key=_rank) if len(due) > 1 else due

    def _may_wait(self, query: RegisteredQuery) -> bool:
        """Return whether a query's jobs may wait until its matches are read."""
        # If there are several orders of the same streams, one may be merged into the other.
        return query.is_sparse and self._is_alone(query) and _size(self.queue[query]) < ENOUGH

    def _make(self, query: RegisteredQuery, joined: dict[tuple[int, ...], EventBatch]) -> None:
        """Run the jobs of a query. ``joined``: joined batches, by the batches they are made of."""
        waiting = self.queue[query]
        if query in self._unfinished:
            self._unfinished.discard(query)
            query.handle.deliver()
        if len(waiting) > 1 and query.is_sparse:
            waiting = self.queue[query] = [_joined(query, waiting, joined)]
        while waiting and not self._deferral.is_due:
            try:
                self._do(waiting.pop(0))
            except Exception as error:
                self.fail([query], error)
        if self._deferral.is_due:
            self._leave(query)
            return
        self._fresh.pop(query, None)
        del self.queue[query]

    def begin(self, query: RegisteredQuery, batch: EventBatch) -> None:
        """Begin a query with its first event."""
        try:
            query.pipeline.begin(batch)
            self._begun[query] = None
        except Exception as error:  # the window's start is out of range
            self.fail([query], error)

    def _leave(self, query: RegisteredQuery) -> None:
        """Leave a query's matches to the next jobs: an interrupt was noted."""
        self._unfinished.add(query)
        self.queue.setdefault(query, [])
        self._turn.is_behind = True

    def take(self, jobs: Sequence[Job], event: Single) -> None:
        """Make the jobs of an event that nothing waits for, while no job waits."""
        if jobs[0].query.member is not None and (group := _group_of(jobs)) is not None:
            jobs = self._see_together(group, jobs, event)
        if len(jobs) == 1:
            # As ``work`` does, without the queue, which is up to a fifth of the time of a push.
            (job,) = jobs
            try:
                self._do(job)
            except Exception as error:
                self.fail([job.query], error)
            if self._deferral.noted is not None and self._deferral.is_due:
                self._leave(job.query)
        elif jobs:
            self.add(jobs)
            self.work()

    def _do(self, job: Job) -> None:
        """Run a job: a query goes on, with events or with time alone."""
        query, batch = job.query, job.batch
        pipeline, handle = query.pipeline, query.handle
        if batch is not None:
            for position, event in job.before:
                self._take(query, event, position)
            self._take(query, batch, job.position)
        stream_set = query.stream_set
        time = stream_set.order.time
        moves = time is not None and (handle.coming is not None or pipeline.heeds(time, batch))
        if moves and not (query.is_behind or handle.is_over):
            handle.add(query.advance(), all_at_once=query.output is not None, after_all=False)
        if query.output is not None:
            self._pass_on(query, query.output)
        elif handle.coming is not None or pipeline.waits:
            stream_set.waiting[query] = None
        elif stream_set.waiting:
            stream_set.waiting.pop(query, None)

    def _take(self, query: RegisteredQuery, batch: EventBatch, position: int) -> None:
        """Process a single event, which mostly completes nothing."""
        handle, pipeline = query.handle, query.pipeline
        if handle.is_over:
            return
        # The events that a query makes for another are part of its matches.
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
            self.warn_of_ill_typed(batch)

    def _see_together(self, group: MemberGroup, jobs: Sequence[Job], event: Single) -> Sequence[Job]:
        """Process a single event in a group, for all members; add those with matches that it completes.

        ``queries``: the ones it concerns.
        """
        first = jobs[0].query
        assert first.member is not None
        try:
            start = jobs[0].position - first.start + first.member.offset
            is_taken = group.see_alone(event, start)
            self.warn_of_ill_typed(event)
        except Exception as error:
            self.fail([job.query for job in jobs], error)
            return ()
        if not is_taken or group.error is not None:
            return jobs
        return [job for job in jobs if job.query.member and job.query.member.has_found]

    def fail(self, queries: Iterable[RegisteredQuery], error: BaseException) -> None:
        """End queries because of an exception during an event."""
        for query in queries:
            query.handle.fail(error)
        # Solutions for the current batch may be incomplete.
        self._sharing.forget()

    def close(self, query: RegisteredQuery) -> None:
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


def _group_of(jobs: Sequence[Job]) -> MemberGroup | None:
    """Return the group that processes a single event for all of some queries, if there is one."""
    first = jobs[0].query.member
    group = None if first is None else first.group
    if group is None or not group.takes_alone:
        return None
    for job in jobs:
        query = job.query
        if query.member is None or query.member.group is not group or query.handle.coming is not None:
            return None
    return group


def _rank(query: RegisteredQuery) -> int:
    return query.rank


def _size(jobs: list[Job]) -> int:
    return sum(len(job.batch) for job in jobs if job.batch is not None)


def _joined(query: RegisteredQuery, jobs: list[Job], known: dict[tuple[int, ...], EventBatch]) -> Job:
    """Return several jobs as one."""
    left = [job for job in jobs if job.batch is not None]
    if len(left) < 2:
        return left[0] if left else Job(query, None, 0)
    batches = [job.batch for job in left if job.batch is not None]
    key = tuple(map(id, batches))
    if key not in known:
        known[key] = concatenate(batches)
    return Job(query, known[key], left[0].position)
