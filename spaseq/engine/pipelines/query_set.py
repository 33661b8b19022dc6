"""Query sets: equal queries, and queries that differ only in constants, run as one over a table of constants.

Each query has a subscription. If constants differ, the matcher has a partition for each row of constants,
above the partitions of the queries themselves. Queries with the same constants share a row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from spaseq.automaton.normal import normalise
from spaseq.engine.delivery import AT_ONCE, Undelivered, Unread, nothing
from spaseq.engine.pipelines.patterns import Environment, Patterns, RowCounts, TablePatterns
from spaseq.engine.pipelines.pipeline import Pipeline
from spaseq.engine.pipelines.stats import Stats
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
    ``rank``: its place among the others.
    """

    __slots__ = (
        "_environment", "_found", "_is_handed_on", "_left", "_matches", "_on_leave", "_over",
        "_query_set", "_refresh", "_rest", "_row", "_rows", "_sample", "_seen", "_stats", "done", "may_leave",
        "on_done", "query", "rank", "unread",
    )  # fmt: skip

    def __init__(
        self,
        query: Query,
        rank: int,
        environment: Environment,
        refresh: Callable[[Stats], None],
        on_leave: Callable[[], None],
    ) -> None:
        """``refresh`` brings counts of events up to date; ``on_leave`` is called if it ends
        before it begins.
        """
        self.query = query
        self.rank = rank
        self.done = query.modifiers.limit == 0
        #: Called when no more answers are needed; set by the handle.
        self.on_done: Callable[[], None]
        self._environment = environment
        self._refresh, self._on_leave = refresh, on_leave
        self._left = query.modifiers.limit
        # Created on first use, with the counts made here.
        self._stats: Stats | None = None
        self._matches = self._rows = 0
        self._seen: Callable[[EventBatch], None] | None = None
        self._sample: Sample | None = None
        self._query_set: QuerySet | None = None
        self._row: ConstantsRow | None = None
        self._over = self.done
        self.may_leave = False
        self.unread: Unread | None = None
        # The matches left to this query to enumerate; whether these were delivered with the matches found;
        # the undelivered matches.
        self._rest: Rest | None = None
        self._is_handed_on = False
        self._found: Undelivered | None = None

    def count(self) -> None:
        """See ``Pipeline.count``."""
        if self._query_set is not None:
            self._query_set.pipeline.count()

    @property
    def output(self) -> None:
        """None: a query that makes a stream has no subscription."""

    @property
    def stats(self) -> Stats:
        """The query's counts."""
        stats = self._counts()
        if not self._over:
            self._refresh(stats)
            if self._query_set is not None and self._row is not None:
                self._query_set.counted(self._row, stats)
        return stats

    def _counts(self) -> Stats:
        if self._stats is None:
            self._stats = Stats(gpms={gpm.name: GpmStats() for gpm in self.query.gpms})
        self._stats.matches, self._stats.rows = self._matches, self._rows
        return self._stats

    @property
    def has_left(self) -> bool:
        """Whether the query is over, as seen by the engine."""
        return self._over

    @property
    def beginning(self) -> int | None:
        """When the first window began."""
        return None if self._query_set is None else self._query_set.pipeline.beginning

    @property
    def left(self) -> int | None:
        """How many rows its LIMIT leaves."""
        return self._left

    def resume(self, left: int | None) -> None:
        """End restoring: matches from now on are new; ``left`` as its LIMIT left it."""
        self._left = left
        if self._query_set is not None:
            self._query_set.pipeline.answers.is_warming = False

    def has(self, found: Undelivered) -> None:
        """Set where its matches wait for a reader."""
        self._found = found

    def sit(self, query_set: QuerySet, row: ConstantsRow) -> None:
        """Set the query's row, from now on."""
        self._query_set, self._row = query_set, row

    def begin(self) -> None:
        """Begin: the first events are about to come."""
        if self._query_set is not None:
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
        if self._row is not None and self._query_set is not None and self.is_behind:
            self._query_set.behind.add(self._row.name)

    def _of_rest(self, found: Iterable[Block]) -> Iterator[MatchBatch]:
        assert self._query_set is not None
        return self._answers(self._query_set.own(found))

    @property
    def reads_at_once(self) -> bool:
        """Whether a match found is an answer as it is: nothing is left out or computed."""
        query_set = self._query_set
        return self._left is None and self._rest is None and query_set is not None and query_set.is_plain

    def read(self, found: Block) -> MatchBatch:
        """Return its matches; ``reads_at_once`` must be true."""
        query_set = self._query_set
        assert query_set is not None
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
        assert query_set is not None
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
        query_set, row = self._query_set, self._row
        if self._over:
            return
        self.count()
        stats = self.stats
        stats.shared_with, stats.shared = 0, ()
        self._over = True
        if query_set is None:
            self._on_leave()
        elif row is not None:
            sample = self._sample or query_set.pipeline.observation.sample
            self._sample = None if sample is None else sample.copy()
            self._row = None
            if self._rest is not None:
                self._rest.keep()
            query_set.remove(row, self)

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
        if self._query_set is not None and self._row is not None:
            self._query_set.pipeline.observation.sampled(self._sample)

    def follow(self, seen: Callable[[EventBatch], None]) -> None:
        """Call ``seen`` with all following events."""
        self._seen = seen
        if self._query_set is not None and self._row is not None:
            self._query_set.follow_too(seen)

    def evidence(self) -> Evidence:
        """Return the input of a diagnosis."""
        self.count()
        sample, query_set = self._sample, self._query_set
        if sample is None and query_set is not None and self._row is not None:
            sample = query_set.pipeline.observation.sample
        is_dropped = self._over and self._sample is None
        return self._environment.evidence(
            normalise(self.query), self.stats, sample, self.beginning, is_dropped=is_dropped
        )


class QuerySet:
    """Queries of one form, run together by their ``pipeline``.

    All queries of ``subscriptions`` begin with the same event. ``varying``: the constants in which they
    differ, by their places, each query's in turn. Matches are in ``found``, by row, until they are taken. If
    matches need not be enumerated at once, the query set enumerates them for all queries while they are few.
    If they are many, each query gets its own matches, and enumerates them when they are read.
    """

    def __init__(
        self,
        subscriptions: Sequence[Subscription],
        varying: Mapping[int, Sequence[Term]],
        environment: Environment,
        start: int | None = None,
    ) -> None:
        query = subscriptions[0].query
        self._template: QueryTemplate | None = template(query, [*varying]) if varying else None
        self._rows: dict[int, ConstantsRow] = {}
        self._followers: list[Callable[[EventBatch], None]] = []
        #: The rows with queries that may have to enumerate their matches themselves.
        self.behind: set[int] = set()
        self.found: dict[int, list[Block]] = {}
        # The number of matches not taken yet.
        self._unhanded = 0
        #: Called when there are so many that they should be taken before more are found.
        self.on_many: Callable[[], None] = nothing
        self._live = len(subscriptions)
        rows: list[list[Subscription]] = [[*subscriptions]]
        made, dictionary = self._template, environment.dictionary
        if made is not None:
            names = [name for name, _ in made.parameters]
            self._table = Parameters(names, made.member, [*varying.values()], dictionary)
            rows = [[] for _ in range(len(self._table))]
            for subscription, number in zip(subscriptions, self._table.of_queries, strict=True):
                rows[number].append(subscription)
        self._tally = RowCounts([gpm.name for gpm in query.gpms], len(rows))
        taken = query if made is None else made.query
        taken = replace(taken, modifiers=replace(taken.modifiers, limit=None))
        make_patterns: Callable[..., Patterns] = Patterns
        if made is not None:
            make_patterns = partial(TablePatterns, made=made, table=self._table, tally=self._tally)
        self.pipeline = Pipeline(
            taken,
            # The limits of one query, times the number of queries that have a row of their own.
            replace(environment, limits=environment.limits.times(len(rows))),
            start=start,
            make_patterns=make_patterns,
            # Matches in a row's partition go to the queries that have the row.
            make_context=partial(Context, apart=0 if made is None else 1),
        )
        self.pipeline.read, self.pipeline.queries = self._read, lambda: self._live
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
                subscription.sit(self, row)

    # --- leaving ----------------------------------------------------------------------------------

    @property
    def subscriptions(self) -> Iterator[Subscription]:
        """The subscriptions that are not over."""
        for row in self._rows.values():
            yield from row.subscriptions

    def remove(self, row: ConstantsRow, subscription: Subscription) -> None:
        """Remove a query, which needs no more matches."""
        row.subscriptions.remove(subscription)
        self._live -= 1
        if not row.subscriptions:
            del self._rows[row.name]
            if self._template is not None:
                self._table.remove(row.number)
        if not self._rows:
            self.pipeline.drop()

    def follow_too(self, seen: Callable[[EventBatch], None]) -> None:
        """Call ``seen``, too, with the following events."""
        self._followers.append(seen)
        self.pipeline.follow(self._tell)

    def _tell(self, batch: EventBatch) -> None:
        for seen in self._followers:
            seen(batch)

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
            of = self.found
            count = 0
            for name, part in parts:
                if name in of:
                    of[name].append(part)
                else:
                    of[name] = [part]
                count += len(part)
            self._unhanded += count
            if self._unhanded >= MOST:
                self.on_many()
                if pipeline.done:
                    break
        return iter(())

    def _by_row(self, found: Iterable[Block]) -> Iterator[Iterable[tuple[int, Block]]]:
        if self._template is None:
            # What several readers derive from a match is computed once.
            return (((0, block),) for block in (shared_by_all(found) if self._live > 1 else found))
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
                self.found.setdefault(name, [])
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

    def take(self) -> list[tuple[Subscription, list[Block]]]:
        """Return what was found since the last time, in the order in which the queries were registered."""
        found, self.found, self._unhanded = self.found, {}, 0
        given = [
            (subscription, items)
            for name, items in found.items()
            if (row := self._rows.get(name)) is not None
            for subscription in row.subscriptions
        ]
        return sorted(given, key=lambda pair: pair[0].rank) if len(given) > 1 else given

    @property
    def clock(self) -> Clock:
        """The clock of the queries' times."""
        return self.pipeline.answers.clock or Clock.INSTANTS

    def rank(self, stream: int) -> int:
        """Return a stream's rank in the order of IRIs."""
        return self.pipeline.context.rank(stream)

    def counted(self, row: ConstantsRow, stats: Stats) -> None:
        """Bring a query's own counts up to date."""
        stats.shared_with = self._live - 1
        if self._template is None:
            of = self.pipeline.stats
            stats.relevant, stats.shared = of.relevant, of.shared
            for name, counted in stats.gpms.items():
                counted.matched, counted.rows = of.gpms[name].matched, of.gpms[name].rows
            return
        stats.relevant = self._tally.relevant(row.number)
        for name, counted in stats.gpms.items():
            counted.matched, counted.rows = self._tally.of(name, row.number)
