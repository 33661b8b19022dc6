"""Query sets: equal queries, and queries that differ only in constants, run as one over a table of constants.

Each query has a subscription. If constants differ, the matcher has a partition for each row of constants,
above the partitions of the queries themselves. Queries with the same constants share a row.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from spaseq.automaton.normal import normalise
from spaseq.engine.delivery import AT_ONCE, Delivery, Undelivered, Unread
from spaseq.engine.pipelines.patterns import Environment, Patterns, RowCounts, TablePatterns
from spaseq.engine.pipelines.pipeline import Pipeline
from spaseq.engine.pipelines.stats import Stats, StreamPosition
from spaseq.events import Clock, EventBatch
from spaseq.language.syntax import Ask, Emit, Query
from spaseq.matching.columns.blocks.found import Block
from spaseq.matching.columns.blocks.share import MOST, shared_by_all, shares_of_all
from spaseq.matching.columns.matcher import Enumerating, is_enumerating
from spaseq.matching.context import Context
from spaseq.matching.host import emitted
from spaseq.matching.nfa.skip.preference import falls_back
from spaseq.matching.templates.form import QueryTemplate, template
from spaseq.matching.templates.parameters import Parameters
from spaseq.results.batch import MatchBatch
from spaseq.results.reading import Reader
from spaseq.results.select import Projector
from spaseq.terms.dictionary import Term
from spaseq.why.diagnosis import GpmStats
from spaseq.why.evidence import Evidence
from spaseq.why.sample import Sample

if TYPE_CHECKING:
    from spaseq.matching.tecs.reading import Portion, Rest


#: This many matches are enumerated for all queries together, or this many for each row of constants.
_AT_ONCE: Final = MOST
_EACH: Final = 1 << 8


class ConstantsRow:
    """A row of constants, and the subscriptions of the queries with these. ``name``: the table's."""

    __slots__ = ("name", "number", "subscriptions")

    def __init__(self, name: int, number: int, subscriptions: list[Subscription]) -> None:
        self.name = name
        self.number = number
        self.subscriptions = subscriptions

    @property
    def is_behind(self) -> bool:
        """Whether one of its queries has matches to enumerate itself."""
        return any(subscription.is_behind for subscription in self.subscriptions)


class Subscription:
    """One query in a query set: its LIMIT, its counts, its form of answers.

    A ``Handle`` uses it like a ``Pipeline`` of the query's own, ``may_leave`` and ``unread`` as there.
    ``rank``: its place among the others. ``is_over``: no event counts any more.
    """

    __slots__ = (
        "_found", "_is_handed_on", "_left", "_matches", "_query_set", "_rest", "_row", "_rows", "_sample",
        "_seen", "_stats", "done", "is_over", "may_leave", "on_done", "query", "rank", "unread",
    )  # fmt: skip

    def __init__(self, query: Query, rank: int, query_set: QuerySet) -> None:
        self.query = query
        self.rank = rank
        self.done = query.modifiers.limit == 0
        #: Called when no more answers are needed; set by the handle.
        self.on_done: Callable[[], None]
        self._query_set = query_set
        self._left = query.modifiers.limit
        # Created on first use, with the counts made here.
        self._stats: Stats | None = None
        self._matches = self._rows = 0
        self._seen: Callable[[EventBatch], None] | None = None
        self._sample: Sample | None = None
        # None before the first event, and when the query is over.
        self._row: ConstantsRow | None = None
        self.is_over = self.done
        self.may_leave = False
        self.unread: Unread | None = None
        # The matches left to this query to enumerate; whether these were delivered with the matches found;
        # the undelivered matches.
        self._rest: Rest | None = None
        self._is_handed_on = False
        self._found: Undelivered | None = None

    def count(self) -> None:
        """See ``Pipeline.count``."""
        self._query_set.pipeline.count()

    @property
    def output(self) -> None:
        """None: a query that makes a stream has no subscription."""

    @property
    def stats(self) -> Stats:
        """The query's counts."""
        stats = self._counts()
        if not self.is_over:
            self._query_set.place.refresh(stats)
            if self._row is not None:
                self._query_set.counted(self._row, stats)
        return stats

    def _counts(self) -> Stats:
        if self._stats is None:
            self._stats = Stats(gpms={gpm.name: GpmStats() for gpm in self.query.gpms})
        self._stats.matches, self._stats.rows = self._matches, self._rows
        return self._stats

    @property
    def beginning(self) -> int | None:
        """When the first window began."""
        return self._query_set.pipeline.beginning

    @property
    def left(self) -> int | None:
        """How many rows its LIMIT leaves."""
        return self._left

    def resume(self, left: int | None) -> None:
        """End restoring: matches from now on are new; ``left`` as its LIMIT left it."""
        self._left = left
        self._query_set.pipeline.answers.is_warming = False

    def has(self, found: Undelivered) -> None:
        """Set where its matches wait for a reader."""
        self._found = found

    def begin(self, row: ConstantsRow) -> None:
        """Begin, with a row: the first events are about to come."""
        self._row = row
        if self._sample is not None:
            self._query_set.pipeline.observation.sampled(self._sample)
        if self._seen is not None:
            self._query_set.follow_too(self._seen)

    def leave_to(self, portion: Portion) -> None:
        """Leave these matches to the query to enumerate, after all found before."""
        from spaseq.matching.tecs.reading import Rest

        if self._rest is None or self._is_handed_on:
            self._rest, self._is_handed_on = Rest(), False
            if self._leaves:
                self.unread = Unread(self._rest, self._of_rest)
        self._rest.add(portion)

    @property
    def _leaves(self) -> bool:
        """Whether unread matches need not be enumerated: LIMIT and ASK end while matches are enumerated."""
        return self.may_leave and self._left is None and not isinstance(self.query.form, Ask)

    @property
    def is_behind(self) -> bool:
        """Whether it must enumerate matches itself, as a reader waits, or many are left."""
        if self.unread is not None and len(self.unread):
            return True
        return self._found is not None and self._found.size >= AT_ONCE and self._leaves

    def got(self) -> None:
        """Note that its matches were delivered."""
        found = self._found
        if self.unread is None and (found is None or found.size < AT_ONCE):
            return  # the usual case
        if self._row is not None and self.is_behind:
            self._query_set.behind.add(self._row.name)

    def _of_rest(self, found: Iterable[Block]) -> Iterator[MatchBatch]:
        return self._answers(self._query_set.own(found))

    @property
    def reads_at_once(self) -> bool:
        """Whether a match found is an answer as it is: nothing is left out or computed."""
        return self._left is None and self._rest is None and self._query_set.is_plain

    def read(self, found: Block) -> MatchBatch:
        """Return its matches; ``reads_at_once`` must be true."""
        query_set = self._query_set
        self._matches += len(found)
        self._rows += found.solution_count()
        return MatchBatch(query_set.reader.view, self.query, found, query_set.clock)

    def answers(self, found: Iterable[Block]) -> Iterator[MatchBatch]:
        """Yield the answers of its row's matches; if they need not stay unenumerated, also of those left to
        it.
        """
        if self._rest is None or self._is_handed_on or self.unread is not None:
            return self._answers(found)
        self._is_handed_on = True
        return self._with_rest(found, self._rest)

    def _with_rest(self, found: Iterable[Block], rest: Rest) -> Iterator[MatchBatch]:
        yield from self._answers(found)
        if not self.done:
            yield from self._of_rest(rest.unread())

    def _answers(self, found: Iterable[Block]) -> Iterator[MatchBatch]:
        query_set, skip = self._query_set, self.query.skip
        only_first = isinstance(self.query.form, Ask)
        for block in found:
            wanted = block.part(0, 1) if only_first else block
            for batch, rows in query_set.reader.batches(self.query, wanted, query_set.clock, self._left):
                self._matches += len(batch)
                self._rows += rows
                if skip is not None and skip.gpm is not None:  # else no match is made for this count
                    unskipped = sum(falls_back(skip, wanted[i], query_set.rank) for i in range(len(batch)))
                    self._counts().unskipped += unskipped
                if len(batch) < len(wanted):
                    wanted = wanted.part(len(batch), len(wanted))
                if self._left is not None:
                    self._left -= rows
                if only_first or self._left == 0:
                    self._rest = None
                    self.leave()
                    self.done = True
                    self.on_done()
                yield batch
                if self.done:
                    return

    def leave(self) -> None:
        """End the query: later events are not counted and cost nothing."""
        if self.is_over:
            return
        self.count()
        stats = self.stats
        stats.shared_with, stats.shared = 0, ()
        self.is_over = True
        row, self._row = self._row, None
        if row is not None:
            sample = self._sample or self._query_set.pipeline.observation.sample
            self._sample = None if sample is None else sample.copy()
            if self._rest is not None:
                self._rest.keep()
        self._query_set.leave(self, row)

    def drop(self) -> None:
        """Free the partial matches: the query is over."""
        self._rest = self.unread = None
        self.leave()
        self.done = True
        self.on_done()
        self._sample = None

    def keep(self, events: int) -> None:
        """Keep this many of the next events as a sample."""
        self._sample = Sample(events, 10 * events)
        if self._row is not None:
            self._query_set.pipeline.observation.sampled(self._sample)

    def follow(self, seen: Callable[[EventBatch], None]) -> None:
        """Call ``seen`` with all following events."""
        self._seen = seen
        if self._row is not None:
            self._query_set.follow_too(seen)

    def evidence(self) -> Evidence:
        """Return the input of a diagnosis."""
        self.count()
        sample, pipeline = self._sample, self._query_set.pipeline
        is_dropped = self.is_over and sample is None
        if sample is None and self._row is not None:
            sample = pipeline.observation.sample
        return self._query_set.environment.evidence(
            normalise(self.query), self.stats, sample, pipeline.beginning, is_dropped=is_dropped
        )


class QuerySet:
    """Queries of one form that run as one; the engine uses it like the ``Handle`` of one query.

    All queries begin with the same event; until then queries may join. Matches are kept by row until they are
    taken. If matches need not be enumerated at once, the query set enumerates few matches for all queries
    together. If there are many, each query gets its own matches, and enumerates them when they are read.

    ``pipeline``: that of the first query, until they begin. ``live``: how many are not over. ``place``: the
    place that the queries share. ``coming``: None, since no match waits for a reader here, only in the
    queries' handles.
    """

    def __init__(self, environment: Environment, place: StreamPosition, pipeline: Pipeline) -> None:
        self.environment, self.place, self.pipeline = environment, place, pipeline
        self.coming = None
        self.live = 0
        self._is_begun = False
        # By rank: the queries' subscriptions and handles, and their constants until they begin.
        self._queries: list[tuple[Subscription, Delivery]] = []
        self._constants: dict[int, Sequence[Term]] = {}
        self._template: QueryTemplate | None = None
        self._rows: dict[int, ConstantsRow] = {}
        self._followers: list[Callable[[EventBatch], None]] = []
        #: The rows with queries that may have to enumerate their matches themselves.
        self.behind: set[int] = set()
        # The matches found, by row; how many; those taken and not yet delivered.
        self._found: dict[int, list[Block]] = {}
        self._unhanded = 0
        self._due: deque[tuple[Subscription, Sequence[Block]]] = deque()

    # --- its queries ------------------------------------------------------------------------------

    def subscription(self, query: Query) -> Subscription:
        """Return a new query's subscription; call ``join`` with its handle."""
        return Subscription(query, len(self._queries), self)

    def join(self, subscription: Subscription, handle: Delivery, constants: Sequence[Term]) -> None:
        """Add the query that got the last subscription, with its handle and its constants."""
        self._constants[subscription.rank] = constants
        self.live += not subscription.is_over
        self._queries.append((subscription, handle))

    def begin(self) -> None:
        """Make the pipeline of the queries that are not over, before their first event."""
        live = [subscription for subscription, _ in self._queries if not subscription.is_over]
        if self._is_begun or not live:
            return
        self._is_begun = True
        columns = zip(*[self._constants[subscription.rank] for subscription in live], strict=True)
        self._constants = {}
        # The constants in which the queries differ, by their places.
        varying = {i: of for i, of in enumerate(columns) if of.count(of[0]) < len(of)}
        query, dictionary = live[0].query, self.environment.dictionary
        rows: list[list[Subscription]] = [live]
        made = self._template = template(query, [*varying]) if varying else None
        if made is not None:
            names = [name for name, _ in made.parameters]
            self._table = Parameters(names, made.member, [*varying.values()], dictionary)
            rows = [[] for _ in range(len(self._table))]
            for subscription, number in zip(live, self._table.of_queries, strict=True):
                rows[number].append(subscription)
        self._tally = RowCounts([gpm.name for gpm in query.gpms], len(rows))
        self._make_pipeline(query if made is None else made.query, made, len(rows))
        plain = normalise(query)
        self.reader = Reader(plain, Projector(plain, self.pipeline.context, dictionary), dictionary)
        #: Whether rows are the whole answer, and no row is read in order to count something.
        self.is_plain = self.reader.projector.is_plain and not self.reader.projector.offset
        self.is_plain &= not isinstance(query.form, Ask)
        self.is_plain &= query.skip is None or query.skip.gpm is None
        named = range(len(rows)) if made is None else self._table.rows.tolist()
        for number, (name, some) in enumerate(zip(named, rows, strict=True)):
            row = self._rows[name] = ConstantsRow(name, number, some)
            for subscription in some:
                subscription.begin(row)

    def _make_pipeline(self, query: Query, made: QueryTemplate | None, rows: int) -> None:
        """Make a pipeline for all rows, in the place of the first query's."""
        make_patterns: Callable[..., Patterns] = Patterns
        if made is not None:
            make_patterns = partial(TablePatterns, made=made, table=self._table, tally=self._tally)
        first, environment = self.pipeline, self.environment
        self.pipeline = Pipeline(
            replace(query, modifiers=replace(query.modifiers, limit=None)),
            # The limits of one query, times the number of queries that have a row of their own.
            replace(environment, limits=environment.limits.times(rows)),
            start=first.beginning,
            make_patterns=make_patterns,
            # Matches in a row's partition go to the queries that have the row.
            make_context=partial(Context, apart=0 if made is None else 1),
        )
        self.pipeline.read, self.pipeline.queries = self._read, lambda: self.live
        self.pipeline.answers.is_warming = first.answers.is_warming
        if first.observation.sample is not None:
            self.pipeline.sit(self.place, first.observation.sample)

    @property
    def is_over(self) -> bool:
        """Whether all queries are."""
        return not self.live

    @property
    def members(self) -> list[Delivery]:
        """The handles of the queries that are not over."""
        return [handle for subscription, handle in self._queries if not subscription.is_over]

    def leave(self, subscription: Subscription, row: ConstantsRow | None) -> None:
        """Note that a query is over, with its row if it had begun."""
        self.live -= subscription.rank < len(self._queries)  # else it did not join: an interrupt came
        if row is None:
            if not self.live:
                self.place.leave()
            return
        row.subscriptions.remove(subscription)
        if not row.subscriptions:
            del self._rows[row.name]
            if self._template is not None:
                self._table.remove(row.number)
        if not self._rows:
            self.pipeline.drop()

    def fail(self, error: BaseException) -> None:
        """End all queries because of an exception during an event."""
        for handle in self.members:
            handle.fail(error)

    def follow_too(self, seen: Callable[[EventBatch], None]) -> None:
        """Call ``seen``, too, with the following events."""
        self._followers.append(seen)
        self.pipeline.follow(self._tell)

    def _tell(self, batch: EventBatch) -> None:
        for seen in self._followers:
            seen(batch)

    # --- delivery -----------------------------------------------------------------------------------

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

    def deliver(self) -> None:
        """Give callbacks the matches that an interrupt has left."""
        self._take()
        for _, handle in self._queries:  # including queries that are over
            handle.deliver()
        self._hand_on()

    def _take(self) -> None:
        """Take what was found since the last time, in the order in which the queries were registered."""
        found, self._found, self._unhanded = self._found, {}, 0
        given = [
            (subscription, items)
            for name, items in found.items()
            if (row := self._rows.get(name)) is not None
            for subscription in row.subscriptions
        ]
        self._due.extend(sorted(given, key=lambda pair: pair[0].rank) if len(given) > 1 else given)

    def _hand_on(self) -> None:
        """Give matches to their handles."""
        while self._due:
            subscription, blocks = self._due.popleft()
            _, handle = self._queries[subscription.rank]
            if not handle.is_over:
                is_simple = len(blocks) == 1 and subscription.reads_at_once
                if not (is_simple and handle.receive(subscription.read, blocks[0])):
                    handle.add(subscription.answers(blocks), all_at_once=False, after_all=True)
                subscription.got()

    # --- matches -----------------------------------------------------------------------------------

    def _read(self, found: Iterable[Block]) -> Iterator[MatchBatch]:
        """Distribute matches to the rows of their queries, by the first part of their key."""
        pipeline = self.pipeline
        if pipeline.answers.is_warming:
            for _ in found:
                pass
            return iter(())
        if is_enumerating(pipeline.matcher) and emitted(pipeline.pattern) is Emit.ALL:
            found = self._few(pipeline.matcher, found)
        for parts in self._by_row(found):
            of = self._found
            count = 0
            for name, part in parts:
                if name in of:
                    of[name].append(part)
                else:
                    of[name] = [part]
                count += len(part)
            self._unhanded += count
            if self._unhanded >= MOST:
                self._take()  # a query over its limits ends
                self._hand_on()
                if pipeline.done:
                    break
        return iter(())

    def _by_row(self, found: Iterable[Block]) -> Iterator[Iterable[tuple[int, Block]]]:
        if self._template is None:
            # What several readers derive from a match is computed once.
            return (((0, block),) for block in (shared_by_all(found) if self.live > 1 else found))
        return shares_of_all(found)

    def _few(self, matcher: Enumerating, found: Iterable[Block]) -> Iterator[Block]:
        """Yield the matches that are enumerated for all. A query with matches of its own also gets all later
        ones.
        """
        by_key, rows = self._template is not None, self._rows
        self.behind = {name for name in self.behind if name in rows and rows[name].is_behind}
        if self.behind:
            self._leave(matcher.divide(by_key, self.behind if by_key else None))
        most = max(_AT_ONCE, _EACH * len(rows))
        for block in found:
            yield block
            most -= len(block)
            if most <= 0:
                self._leave(matcher.divide(by_key))
                return

    def _leave(self, portions: Iterable[tuple[int, Portion]]) -> None:
        """Leave it to queries to enumerate their matches."""
        for name, portion in portions:
            row = self._rows.get(name)
            if row is not None:
                self._found.setdefault(name, [])
                self.behind.add(name)
                for subscription in row.subscriptions:
                    subscription.leave_to(portion)

    def own(self, found: Iterable[Block]) -> Iterator[Block]:
        """Yield matches of one row, without the row in their keys."""
        if self._template is None:
            yield from found
            return
        for block in found:
            for parts in shares_of_all((block,)):
                yield from (part for _, part in parts)

    @property
    def clock(self) -> Clock:
        """The clock of the queries' times."""
        return self.pipeline.answers.clock or Clock.INSTANTS

    def rank(self, stream: int) -> int:
        """Return a stream's rank in the order of IRIs."""
        return self.pipeline.context.rank(stream)

    def counted(self, row: ConstantsRow, stats: Stats) -> None:
        """Bring a query's own counts up to date."""
        stats.shared_with = self.live - 1
        if self._template is None:
            of = self.pipeline.stats
            stats.relevant, stats.shared = of.relevant, of.shared
            for name, counted in stats.gpms.items():
                counted.matched, counted.rows = of.gpms[name].matched, of.gpms[name].rows
            return
        stats.relevant = self._tally.relevant(row.number)
        for name, counted in stats.gpms.items():
            counted.matched, counted.rows = self._tally.of(name, row.number)
