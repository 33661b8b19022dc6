"""What queries are to do: visits that are due or wait until somebody asks, and what callbacks left undone."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from spaseq.engine.handle import Handle
from spaseq.engine.pipelines import later
from spaseq.engine.pipelines.groups.crowd import Crowd
from spaseq.engine.pipelines.intake import Visit
from spaseq.engine.pipelines.later import Later
from spaseq.engine.registered import Registered
from spaseq.events import EventBatch
from spaseq.gpm.sharing import Sharing
from spaseq.results.batch import MatchBatch

_What = TypeVar("_What")


class Visits:
    """Has queries go on, with events or with time alone; an error inside one ends that one.

    ``due``: visits in order (an interrupt leaves the rest). ``later``: what waits of a few events each, until
    there are more of them, unless ``is_asked``: somebody asks. ``owing``: queries whose callback raised
    something.
    """

    def __init__(
        self,
        sharing: Sharing,
        is_alone: Callable[[Registered], bool],
        pass_on: Callable[[Registered, int], None],
    ) -> None:
        """``is_alone``: whether the order of a query is the only one of its streams, which may wait.

        ``pass_on``: hands on what a query has made for a stream, to those who read that.
        """
        self._sharing = sharing
        self._is_alone = is_alone
        self._pass_on = pass_on
        self.due: deque[Visit] = deque()
        self.later = Later()
        self.owing: dict[Registered, None] = {}
        self.is_asked = True
        self._failed: list[Handle | Crowd] = []

    @property
    def has_failed(self) -> bool:
        """Whether queries have failed since ``failed`` was last asked."""
        return bool(self._failed)

    def failed(self) -> list[Handle]:
        """The queries that failed since this was last asked."""
        failed, self._failed = self._failed, []
        return [each for handle in failed for each in handle.failed()]

    def make_up(self) -> Exception | None:
        """Does what queries owe; returns what a callback raised."""
        raised: Exception | None = None
        owing, self.owing = self.owing, {}
        for query in owing:
            raised = self._attempt(query, self._go_on, query) or raised
        return raised

    def sort(self) -> None:
        """Those that are due come in the order of the queries."""
        if len(self.due) > 1:
            self.due = deque(sorted(self.due, key=_rank))

    def work(self) -> Exception | None:
        """Makes the visits that are due; returns what a callback raised."""
        raised: Exception | None = None
        while self.due:
            if self.is_asked or not self._waits(self.due[0]):
                raised = self._make() or raised
            else:
                del self.due[0]
        if not self.is_asked and self.later.is_too_much:
            self.recall(later.MOST)
            while self.due:
                raised = self._make() or raised
        self._sharing.forget()  # what comes next may never ask, and would keep a whole batch
        return raised

    def _make(self) -> Exception | None:
        """Makes the first visit that is due."""
        # It stays there until it is made: an interrupt that comes before it is taken must not lose it.
        visit = self.due[0]
        raised = self._attempt(visit.query, self._visit, visit)
        del self.due[0]
        handle = visit.query.handle
        if handle.taken is visit:  # not another one, which an interrupt has left behind it
            handle.taken = None
        return raised

    def _waits(self, visit: Visit) -> bool:
        """Whether a visit waits from now on; if not, it stands for all that has waited of its query."""
        if not self._may_wait(visit):
            return False
        enough = self.later.add(visit)
        if enough is None:
            return True
        # No interrupt comes between these: that takes a call, or a loop.
        self.due[0], self.later.visits[visit.query] = enough, []
        return False

    def _may_wait(self, visit: Visit) -> bool:
        """Whether a query need not go on until somebody asks."""
        query = visit.query
        # Where there are several orders of the same streams, one may become a part of the other.
        return query.is_sparse and self._is_alone(query)

    def recall(self, most: int) -> None:
        """Makes due what has waited longest, so that no more than so many events wait."""
        visits, left = self.later.but(most)
        due = deque([*visits, *(visit for visit in self.due if not self.later.has(visit))])
        # No interrupt comes between these: that takes a call, or a loop.
        self.due, self.later = due, left

    def begin(self, query: Registered, batch: EventBatch) -> None:
        """The first of a query's events is there."""
        try:
            query.pipeline.begin(batch)
        except Exception as error:  # of this query's window
            self.fail([query], error)

    def _attempt(self, query: Registered, do: Callable[[_What], None], what: _What) -> Exception | None:
        """Does something to a query; what its callback raises is for later, and what it has not done, too."""
        try:
            do(what)
        except BaseException as error:  # a callback's; what happens inside a query ends that
            self.owing[query] = None
            if not isinstance(error, Exception):
                raise
            return error
        return None

    def _go_on(self, query: Registered) -> None:
        """What a query has not done when its callback raised something."""
        if not query.handle.is_over:
            query.handle.deliver()
        self._visit(Visit(query, None, 0))

    def deliver(self, query: Registered) -> Exception | None:
        """Hands on what an event completed that came alone, which the query owes; returns what is raised."""
        try:
            self._find(query, iter(()))
        except Exception as error:  # a callback's
            return error
        if query.handle.is_behind:
            query.intake.waiting[query] = None
        self.owing.pop(query, None)
        return None

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

    def fail(self, queries: Iterable[Registered], error: BaseException) -> None:
        """Ends queries because of what was raised in the middle of an event."""
        for query in queries:
            query.handle.fail(error)
            self._failed.append(query.handle)
        # What they were about to find out of the batch in hand is of no use to others.
        self._sharing.forget()

    def close(self, query: Registered) -> Exception | None:
        """Ends a query's last window; returns what a callback raised."""
        return self._attempt(query, self._close, query)

    def _close(self, query: Registered) -> None:
        if query.is_closed:
            return
        if not query.handle.is_over:
            query.handle.deliver()
            self._find(query, query.pipeline.close())
        if query.output is not None:
            self._pass_on(query, query.output)
        query.is_closed = True


def _rank(visit: Visit) -> int:
    return visit.query.rank
