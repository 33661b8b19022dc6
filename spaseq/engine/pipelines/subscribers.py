"""The handles of queries that run as one, in the role of a single query's handle."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

from spaseq.engine.handle import Handle
from spaseq.engine.pipelines.patterns import Environment
from spaseq.engine.pipelines.query_set import QuerySet, Subscription
from spaseq.engine.pipelines.stats import StreamPosition
from spaseq.language.syntax import Query
from spaseq.matching.columns.blocks.found import Block
from spaseq.results.batch import MatchBatch
from spaseq.terms.dictionary import Term

#: The matches of one of the queries, and its subscription.
_Found = tuple[Subscription, Sequence[Block]]


class Subscribers:
    """The handles of queries that run as one, used by the engine like the ``Handle`` of one query.

    ``coming``: None, as matches do not wait for a reader here, though those of its queries may.
    """

    def __init__(
        self,
        environment: Environment,
        place: StreamPosition,
        start: int | None = None,
    ) -> None:
        """``place``: the place that the queries share; ``start``: when their first window begins."""
        self._start = start
        self._environment = environment
        self.coming = None
        self._place = place
        # The subscribed handles, by rank, and the constants of each, until they become a query set.
        self._subscribed: list[Handle] = []
        self._constants: dict[int, Sequence[Term]] = {}
        # The handles that are not over, and possibly some that are.
        self._live: list[Handle] = []
        self._query_set: QuerySet | None = None
        # The matches found, and not yet delivered.
        self._due: deque[_Found] = deque()

    def subscription(self, query: Query) -> Subscription:
        """Return a new query's subscription; call ``join`` with its handle."""
        return Subscription(query, len(self._subscribed), self._environment, self._place.refresh, self._left)

    def join(self, handle: Handle, constants: Sequence[Term]) -> None:
        """Add the handle of the query that got the last subscription, and its constants."""
        self._constants[len(self._subscribed)] = constants
        self._subscribed.append(handle)
        self._live.append(handle)

    def _left(self) -> None:
        """Note that a query is over, before any has begun."""
        while self._live and self._live[-1].subscription.has_left:
            self._live.pop()
        if not self._live:
            self._place.leave()

    def gather(self) -> QuerySet | None:
        """Make a query set of the handles; None if there is one already, or all are over."""
        if self._query_set is not None:
            return None
        live = [rank for rank, handle in enumerate(self._subscribed) if not handle.is_over]
        if not live:
            return None
        subscriptions = [self._subscribed[rank].subscription for rank in live]
        columns = zip(*[self._constants[rank] for rank in live], strict=True)
        self._constants = {}
        varying = {i: of for i, of in enumerate(columns) if of.count(of[0]) < len(of)}
        self._query_set = QuerySet(subscriptions, varying, self._environment, self._start)
        self._query_set.on_many = self._take_some
        return self._query_set

    def begin(self) -> None:
        """Begin the query set."""
        for handle in self._live:
            handle.subscription.begin()

    @property
    def is_over(self) -> bool:
        """Whether all are."""
        while self._live and self._live[-1].is_over:
            self._live.pop()
        return not self._live

    @property
    def members(self) -> list[Handle]:
        """The subscribed handles that are not over."""
        return [handle for handle in self._live if not handle.is_over]

    @property
    def live(self) -> int:
        """How many are not over."""
        return sum(not handle.is_over for handle in self._live)

    def add(
        self,
        matches: Iterator[MatchBatch],
        *,
        all_at_once: bool,  # noqa: ARG002  # as a handle's
        after_all: bool,  # noqa: ARG002
    ) -> None:
        """Enumerate matches, and deliver them; see ``Handle.add``."""
        self._hand_on()
        try:
            for _ in matches:
                pass
            self._take()
        except Exception as error:
            self.fail(error)
        self._hand_on()

    def _take(self) -> None:
        """Take the matches of the query set."""
        if self._query_set is not None:
            self._due.extend(self._query_set.take())

    def _take_some(self) -> None:
        """Take and deliver the matches so far: a query over its limits ends."""
        self._take()
        self._hand_on()

    def deliver(self) -> None:
        """Give callbacks the matches that an interrupt has left."""
        self._take()
        for handle in list(self._live):
            handle.deliver()
        self._hand_on()

    def _hand_on(self) -> None:
        """Give matches to their handles."""
        while self._due:
            subscription, blocks = self._due.popleft()
            handle = self._subscribed[subscription.rank]
            if not handle.is_over:
                is_simple = len(blocks) == 1 and subscription.reads_at_once
                if not (is_simple and handle.receive(subscription.read, blocks[0])):
                    handle.add(subscription.answers(blocks), all_at_once=False, after_all=True)
                subscription.got()

    def fail(self, error: BaseException) -> None:
        """End all queries because of an exception during an event."""
        for handle in self._live:
            if not handle.is_over:
                handle.fail(error)
