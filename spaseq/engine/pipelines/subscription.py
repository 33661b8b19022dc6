"""Subscriptions: the parts of single queries in a query set."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from spaseq.automaton.normal import normalise
from spaseq.engine.pipelines.pipeline import Pipeline
from spaseq.engine.pipelines.stats import Stats
from spaseq.engine.undelivered import AT_ONCE, Undelivered, Unread
from spaseq.events import Clock, EventBatch
from spaseq.language.syntax import Ask, Query
from spaseq.matching.columns.blocks.found import Block
from spaseq.matching.nfa.skip.preference import falls_back
from spaseq.patterns.kb import KnowledgeBase
from spaseq.results.batch import MatchBatch
from spaseq.results.reading import Reader
from spaseq.terms.dictionary import Dictionary
from spaseq.why.diagnosis import GpmStats
from spaseq.why.evidence import Evidence
from spaseq.why.sample import Sample

if TYPE_CHECKING:
    from spaseq.matching.tecs.reading import Portion, Rest


class Row:
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


class Shared(Protocol):
    """The interface of a ``QuerySet``, which runs the queries as one. See there."""

    pipeline: Pipeline
    behind: set[int]
    reader: Reader
    is_plain: bool

    @property
    def clock(self) -> Clock:
        """The clock of the queries' times."""
        ...

    def rank(self, stream: int) -> int:
        """Return a stream's rank in the order of IRIs."""
        ...

    def follow_too(self, seen: Callable[[EventBatch], None]) -> None:
        """Call ``seen``, too, with the following events."""
        ...

    def own(self, found: Iterable[Block]) -> Iterator[Block]:
        """Yield matches of one row, without the row in their keys."""
        ...

    def counted(self, row: Row, stats: Stats) -> None:
        """Bring a query's own counts up to date."""
        ...

    def remove(self, row: Row, subscription: Subscription) -> None:
        """Remove a query, which needs no more matches."""
        ...


class Subscription:
    """One query in a query set: its LIMIT, its counts, its form of answers.

    A ``Handle`` uses it like a ``Pipeline`` of the query's own, ``may_leave`` and ``unread`` as there.
    ``rank``: its place among the others.
    """

    __slots__ = (
        "_dictionary", "_found", "_is_handed_on", "_kb", "_left", "_matches", "_on_leave", "_over",
        "_query_set", "_refresh", "_rest", "_row", "_rows", "_sample", "_seen", "_stats", "done", "may_leave",
        "query", "rank", "unread",
    )  # fmt: skip

    def __init__(
        self,
        query: Query,
        rank: int,
        dictionary: Dictionary,
        kb: KnowledgeBase,
        refresh: Callable[[Stats], None],
        on_leave: Callable[[], None],
    ) -> None:
        """``refresh`` brings counts of events up to date; ``on_leave`` is called if it ends
        before it begins.
        """
        self.query = query
        self.rank = rank
        self.done = query.modifiers.limit == 0
        self._dictionary, self._kb = dictionary, kb
        self._refresh, self._on_leave = refresh, on_leave
        self._left = query.modifiers.limit
        # Created on first use, with the counts made here.
        self._stats: Stats | None = None
        self._matches = self._rows = 0
        self._seen: Callable[[EventBatch], None] | None = None
        self._sample: Sample | None = None
        self._query_set: Shared | None = None
        self._row: Row | None = None
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

    def sit(self, query_set: Shared, row: Row) -> None:
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
        stats, query_set = self.stats, self._query_set
        sample = self._sample
        if sample is None and query_set is not None and self._row is not None:
            sample = query_set.pipeline.observation.sample
        return Evidence(
            pattern=normalise(self.query),
            events=stats.events,
            matches=stats.matches,
            late=stats.late,
            gpms={name: replace(counted) for name, counted in stats.gpms.items()},
            sample=None if sample is None else sample.batch(),
            begin=self.beginning,
            dictionary=self._dictionary,
            kb=self._kb,
            ended=self._over and self._sample is None,
        )
