"""Query sets: equal queries, and queries that differ only in constants, run as one over a table of constants.

Each query has a subscription. If constants differ, the matcher has a partition for each row of constants,
above the partitions of the queries themselves. Queries with the same constants share a row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from spaseq.automaton.normal import normalise
from spaseq.automaton.pattern import GpmPart, SequencePattern
from spaseq.engine.pipelines.patterns import Patterns
from spaseq.engine.pipelines.pipeline import Pipeline
from spaseq.engine.pipelines.stats import GpmAnswers, Stats
from spaseq.engine.pipelines.subscription import ConstantsRow, Subscription
from spaseq.events import Clock, EventBatch, Ids
from spaseq.language.syntax import Ask, Emit
from spaseq.limits import Limits
from spaseq.matching.columns.blocks.found import Block
from spaseq.matching.columns.blocks.share import MOST, shared_by_all, shares_of_all
from spaseq.matching.columns.matcher import Enumerating, PushedPattern, is_enumerating
from spaseq.matching.context import Context
from spaseq.matching.host import emitted
from spaseq.matching.templates.form import QueryTemplate, template
from spaseq.matching.templates.parameters import Parameters
from spaseq.matching.templates.table import TableGpm
from spaseq.patterns.discrimination import Needs, needs
from spaseq.patterns.kb import KnowledgeBase
from spaseq.patterns.sharing import ByEvent, Sharing
from spaseq.patterns.spectra.solutions import Solutions
from spaseq.results.batch import MatchBatch
from spaseq.results.reading import Reader
from spaseq.results.select import Projector
from spaseq.terms.dictionary import Dictionary, Term

if TYPE_CHECKING:
    from spaseq.matching.tecs.reading import Portion


#: This many matches are enumerated for all queries together, or this many for each row of constants.
_AT_ONCE: Final = MOST
_EACH: Final = 1 << 8


class RowCounts:
    """The counts of each row: relevant events, and for each GPM the events it matched and its solutions."""

    def __init__(self, gpms: Sequence[str], rows: int) -> None:
        self._rows = rows
        self._relevant = np.zeros(rows, dtype=np.int64)
        self._matched = {gpm: np.zeros(rows, dtype=np.int64) for gpm in gpms}
        self._solutions = {gpm: np.zeros(rows, dtype=np.int64) for gpm in gpms}
        # The events of the current batch and the rows that they are relevant for, each pair as one number.
        self._pairs: list[Ids] = []

    def count(self, gpm: str, events: Ids, rows: Ids) -> None:
        """Count what a GPM has in a batch: the events of its solutions, and the numbers of their rows."""
        if gpm in self._matched and len(rows):
            pairs = events * self._rows + rows
            self._add(self._solutions[gpm], rows)
            if not (pairs[1:] > pairs[:-1]).all():
                pairs = _distinct(pairs)
                rows = pairs % self._rows
            self._add(self._matched[gpm], rows)
            self._pairs.append(pairs)

    def settle(self) -> None:
        """Finish the current batch: all GPMs were evaluated."""
        if self._pairs:
            pairs = _distinct(np.concatenate(self._pairs)) if len(self._pairs) > 1 else self._pairs[0]
            self._add(self._relevant, pairs % self._rows)
            self._pairs = []

    def _add(self, counts: Ids, rows: Ids) -> None:
        """Add to the counts of rows, 1 for each occurrence."""
        if len(rows) < len(counts):
            np.add.at(counts, rows, 1)
        else:
            counts += np.bincount(rows, minlength=len(counts))

    def relevant(self, row: int) -> int:
        """Return how many events are relevant for a row."""
        self.settle()
        return int(self._relevant[row])

    def of(self, gpm: str, row: int) -> tuple[int, int]:
        """Return how many events a GPM matched for a row, and with how many solutions."""
        return int(self._matched[gpm][row]), int(self._solutions[gpm][row])


def _nothing() -> None:
    """Do nothing: there is no listener."""


def _distinct(numbers: Ids) -> Ids:
    """Return the distinct numbers; ``np.unique`` hashes them, which is several times slower."""
    ordered = np.sort(numbers)
    return ordered[np.flatnonzero(np.diff(ordered, prepend=ordered[0] - 1))]


class _Answers:
    """A GPM's solutions for every row of the table, which are counted."""

    def __init__(self, gpm: TableGpm, name: str, tally: RowCounts) -> None:
        self._gpm = gpm
        self._name = name
        self._tally = tally
        self.core = gpm.core
        self.exists = gpm.exists
        self.of_one, self.streams = gpm.of_one, gpm.streams

    def evaluate(self, batch: EventBatch) -> Solutions:
        """Return the solutions of every event."""
        solutions, rows = self._gpm.evaluate(batch)
        self._tally.count(self._name, solutions.events, rows)
        return solutions

    def by_event(self, batch: EventBatch) -> ByEvent:
        """Return the solutions by event."""
        return self.evaluate(batch).by_event()


class _TablePatterns(Patterns):
    """Graph patterns with the constants of every row of a table."""

    def __init__(
        self,
        pattern: SequencePattern,
        stats: Stats,
        dictionary: Dictionary,
        kb: KnowledgeBase,
        sharing: Sharing,
        *,
        made: QueryTemplate,
        table: Parameters,
        tally: RowCounts,
    ) -> None:
        self._template, self._table, self._tally = made, table, tally
        super().__init__(pattern, stats, dictionary, kb, sharing)

    def _make(self, part: GpmPart, kb: KnowledgeBase) -> GpmAnswers:
        streams = frozenset(map(self._dictionary.pin, part.streams))
        gpm = TableGpm(part, self._template, self._table, self._dictionary, kb, streams, self._sharing)
        return _Answers(gpm, part.name, self._tally)

    def needs(self) -> Iterator[tuple[Iterable[int] | None, Needs]]:
        """Yield the triples that an event must have for each GPM, whatever the row."""
        every = frozenset(self._pattern.streams)
        for name, part in self._pattern.gpms.items():
            gpm = self.gpms[name]
            assert isinstance(gpm, _Answers)
            streams = None if part.streams == every else map(self._dictionary.pin, part.streams)
            yield streams, needs(gpm.core, self._dictionary)

    def evaluate(self, batch: EventBatch) -> dict[str, Solutions]:
        """Return the solutions of each pattern in a batch."""
        self._tally.settle()
        return super().evaluate(batch)

    def by_event(self, batch: EventBatch) -> list[tuple[str, ByEvent]]:
        """Return the solutions of each pattern, by event."""
        self._tally.settle()
        return super().by_event(batch)

    def count_solutions(self, batch: EventBatch, solutions: Mapping[str, Solutions]) -> None:
        """Do nothing: solutions are counted by row."""

    def _of_one(self, name: str, place: int, *, is_told: bool) -> PushedPattern | None:
        gpm = self.gpms[name]
        assert isinstance(gpm, _Answers)
        of = gpm.of_one()
        if of is None:
            return None
        member = of.names.index(self._table.member)

        def tell(events: Ids, values: Ids) -> None:
            if place == 0:  # the first one counts further events
                self._tally.settle()
            self._tally.count(name, events, self._table.numbers_of(values[:, member]))

        # No two GPMs ask the same of the table.
        return PushedPattern(of.names, place, of.solve, of.join, gpm.streams, is_told, tell)


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
        dictionary: Dictionary,
        kb: KnowledgeBase,
        sharing: Sharing,
        limits: Limits,
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
        self.on_many: Callable[[], None] = _nothing
        self._live = len(subscriptions)
        rows: list[list[Subscription]] = [[*subscriptions]]
        made = self._template
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
            make_patterns = partial(_TablePatterns, made=made, table=self._table, tally=self._tally)
        self.pipeline = Pipeline(
            taken,
            dictionary,
            kb,
            None,
            sharing,
            start=start,
            # The limits of one query, times the number of queries that have a row of their own.
            limits=limits.times(len(rows)),
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
