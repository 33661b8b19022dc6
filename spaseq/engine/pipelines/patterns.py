"""A query's graph patterns, or those of a query set: events → their solutions, and the counts of both."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from spaseq.automaton.pattern import GpmPart, SequencePattern
from spaseq.engine.pipelines.stats import GpmAnswers, Stats
from spaseq.events import EventBatch, Ids, Stamp
from spaseq.language.syntax import Bind, Gpm, Group, SubSelect
from spaseq.limits import UNLIMITED, Limits
from spaseq.matching.columns.alone.singles import Counts
from spaseq.matching.columns.matcher import PushedPattern, Quick
from spaseq.matching.model import Occurrence, Solution
from spaseq.matching.templates.form import QueryTemplate
from spaseq.matching.templates.parameters import Parameters
from spaseq.matching.templates.table import TableGpm
from spaseq.patterns.discrimination import Needs, needs
from spaseq.patterns.evaluator import GpmEvaluator
from spaseq.patterns.expressions.walk import patterns
from spaseq.patterns.kb import KnowledgeBase
from spaseq.patterns.sharing import ByEvent, Sharing
from spaseq.patterns.spectra.solutions import Solutions
from spaseq.terms.dictionary import Dictionary
from spaseq.why.evidence import Evidence
from spaseq.why.sample import Sample


@dataclass(frozen=True, slots=True)
class Environment:
    """What a query uses of its engine: terms, its background graphs, solutions to share, and limits."""

    dictionary: Dictionary
    kb: KnowledgeBase
    sharing: Sharing = field(default_factory=Sharing)
    limits: Limits = UNLIMITED

    def evidence(
        self,
        pattern: SequencePattern,
        stats: Stats,
        sample: Sample | None,
        begin: int | None,
        *,
        is_dropped: bool,
    ) -> Evidence:
        """Return the input of a diagnosis. ``is_dropped``: the query ended early, and its events with it."""
        return Evidence(
            pattern=pattern,
            events=stats.events,
            matches=stats.matches,
            late=stats.late,
            gpms={name: replace(counted) for name, counted in stats.gpms.items()},
            sample=None if sample is None else sample.batch(),
            begin=begin,
            dictionary=self.dictionary,
            kb=self.kb,
            ended=is_dropped,
            failed_calls=dict(self.dictionary.failed_calls),
        )


class Patterns:
    """The graph patterns of a query; ``stats`` has the counts.

    ``streams``: of each pattern, as ids; None for all of the query's.
    """

    def __init__(
        self,
        pattern: SequencePattern,
        stats: Stats,
        environment: Environment,
        *,
        make: Callable[[GpmPart], GpmAnswers] | None = None,
    ) -> None:
        """``make`` returns the matcher of a pattern, if patterns are not evaluated here."""
        self._pattern = pattern
        self._stats = stats
        self._environment = environment
        self._dictionary = dictionary = environment.dictionary
        self.streams = {
            name: None
            if part.streams == frozenset(pattern.streams)
            else [dictionary.intern(stream) for stream in part.streams]
            for name, part in pattern.gpms.items()
            if name not in pattern.witnesses
        }
        self.gpms: dict[str, GpmAnswers] = {
            name: self._make(part) if make is None else make(part) for name, part in pattern.gpms.items()
        }
        # Patterns with solutions that may have terms that are neither in the event nor in the query.
        self._computing = {
            name for name, part in pattern.gpms.items() if make is not None or _computes(part.gpm)
        }

    def _make(self, part: GpmPart) -> GpmAnswers:
        """Return the matcher of a pattern."""
        streams = frozenset(map(self._dictionary.intern, part.streams))
        of = self._environment
        return GpmEvaluator(part.gpm, part.stateless, of.dictionary, of.kb, streams, of.sharing)

    def needs(self) -> Iterator[tuple[Iterable[int] | None, Needs]]:
        """Yield the triples that an event must have for each GPM, and the streams of such events;
        None: any.
        """
        every = frozenset(self._pattern.streams)
        for part in self._pattern.gpms.values():
            streams = None if part.streams == every else map(self._dictionary.pin, part.streams)
            yield streams, needs(part.stateless, self._dictionary)

    def expect(self, matcher: Quick) -> bool:
        """Prepare the matcher for events one by one; return whether it can take them."""
        if self.gpms.keys() != set(matcher.gpms):
            return False
        asked = []
        for place, name in enumerate(matcher.gpms):
            of_one = self._of_one(name, place, is_told=name not in self._pattern.witnesses)
            if of_one is None:
                return False
            asked.append(of_one)
        return matcher.expect(asked)

    def evaluate(self, batch: EventBatch) -> dict[str, Solutions]:
        """Return the solutions of each pattern in a batch."""
        return {name: gpm.evaluate(batch) for name, gpm in self.gpms.items()}

    def by_event(self, batch: EventBatch) -> list[tuple[str, ByEvent]]:
        """Return the solutions of each pattern, by event."""
        return [(name, gpm.by_event(batch)) for name, gpm in self.gpms.items()]

    def _of_one(self, name: str, place: int, *, is_told: bool) -> PushedPattern | None:
        """Return what a GPM needs of single events; None if it cannot be evaluated for single events.

        ``place``: its number among the GPMs that the matcher evaluates.
        """
        del place
        gpm = self.gpms[name]
        if not isinstance(gpm, GpmEvaluator) or not gpm.is_for_one:
            return None
        return PushedPattern(gpm.names, gpm.number, gpm.of_one, gpm.join, gpm.streams, is_told)

    def count_singles(self, gpms: Sequence[str], counts: Counts | None) -> None:
        """Count what patterns had in single events."""
        if counts is not None:
            self._stats.relevant += counts.relevant
            for g, matched, rows in zip(gpms, counts.matched, counts.rows, strict=True):
                if g not in self._pattern.witnesses:
                    self._stats.gpms[g].matched += int(matched)
                    self._stats.gpms[g].rows += int(rows)

    def count_solutions(self, batch: EventBatch, solutions: Mapping[str, Solutions]) -> None:
        """Count for each pattern the events in which it has solutions."""
        witnesses = self._pattern.witnesses
        asked = {name: table for name, table in solutions.items() if name not in witnesses and len(table)}
        if len(batch) == 1:
            for name, table in asked.items():
                counted = self._stats.gpms[name]
                counted.matched += 1
                counted.rows += len(table)
            self._stats.relevant += bool(asked)
            return
        shared = self._environment.sharing.of(batch)
        for name, table in asked.items():
            counted = self._stats.gpms[name]
            counted.matched += shared.having(table.events)
            counted.rows += len(table)
        if asked:
            self._stats.relevant += shared.having(*(table.events for table in asked.values()))

    def count_matched(self, matched: Sequence[tuple[str, int]]) -> None:
        """Count an event with these patterns' numbers of solutions."""
        self._stats.relevant += bool(matched)
        for name, rows in matched:
            counted = self._stats.gpms[name]
            counted.matched += 1
            counted.rows += rows

    def occurrences(
        self, batch: EventBatch, position: int, solutions: Sequence[tuple[str, ByEvent]]
    ) -> Iterator[Occurrence]:
        """Yield the events of a batch as occurrences, the first at a position; they are counted."""
        witnesses = self._pattern.witnesses
        for name, found in solutions:
            if name not in witnesses:
                counted = self._stats.gpms[name]
                counted.matched += len(found)
                counted.rows += sum(map(len, found.values()))
        computed = Computed.of(
            self._dictionary, [rows for name, rows in solutions if name in self._computing]
        )
        stamps = map(Stamp, batch.time.tolist(), batch.stream.tolist(), batch.n.tolist())
        for index, stamp in enumerate(stamps):
            seen = {name: rows[index] for name, rows in solutions if index in rows}
            self._stats.relevant += any(name not in witnesses for name in seen)
            yield Occurrence(stamp, position + index, seen, batch, index, computed)

    def count_events(self, batch: EventBatch) -> None:
        """Count the events of a batch, for each pattern those of its streams."""
        self._stats.events += len(batch)
        for name, streams in self.streams.items():
            of_gpm = len(batch)
            if streams is not None:
                of_gpm = sum(int(np.count_nonzero(batch.stream == stream)) for stream in streams)
            self._stats.gpms[name].events += of_gpm

    def exists(self, gpm: str, occurrence: Occurrence, pattern: Group, solution: Solution) -> bool:
        """Decide EXISTS on the graph of the event that a pattern has matched."""
        assert occurrence.batch is not None
        return self.gpms[gpm].exists(occurrence.batch, occurrence.index)(pattern, solution)


class Computed:
    """The terms that GPMs computed for a batch, kept as long as one of its events is."""

    __slots__ = ("__weakref__", "_ids")

    def __init__(self, ids: Ids) -> None:
        self._ids = ids

    def live_ids(self) -> Iterable[Ids]:
        """Return the ids of those terms."""
        return (self._ids,)

    @classmethod
    def of(cls, dictionary: Dictionary, found: Sequence[Mapping[int, Sequence[Solution]]]) -> Computed | None:
        """Return an object that keeps the terms of these solutions, by event; None if there are none."""
        if not found:
            return None
        ids = {t for events in found for rows in events.values() for row in rows for t in row.values()}
        holder = cls(np.fromiter(ids, dtype=np.int64, count=len(ids)))
        dictionary.hold(holder)
        return holder


def _computes(gpm: Gpm) -> bool:
    """Return whether a GPM's solutions may have terms that are neither in the event nor in the query."""
    return gpm.time is not None or any(isinstance(p, Bind | SubSelect) for p in patterns(gpm.pattern))


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


def _distinct(numbers: Ids) -> Ids:
    """Return the distinct numbers; ``np.unique`` hashes them, which is several times slower."""
    ordered = np.sort(numbers)
    return ordered[np.flatnonzero(np.diff(ordered, prepend=ordered[0] - 1))]


class _TableAnswers:
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


class TablePatterns(Patterns):
    """Graph patterns with the constants of every row of a table."""

    def __init__(
        self,
        pattern: SequencePattern,
        stats: Stats,
        environment: Environment,
        *,
        made: QueryTemplate,
        table: Parameters,
        tally: RowCounts,
    ) -> None:
        self._template, self._table, self._tally = made, table, tally
        super().__init__(pattern, stats, environment)

    def _make(self, part: GpmPart) -> GpmAnswers:
        streams = frozenset(map(self._dictionary.pin, part.streams))
        of = self._environment
        gpm = TableGpm(part, self._template, self._table, of.dictionary, of.kb, streams, of.sharing)
        return _TableAnswers(gpm, part.name, self._tally)

    def needs(self) -> Iterator[tuple[Iterable[int] | None, Needs]]:
        """Yield the triples that an event must have for each GPM, whatever the row."""
        every = frozenset(self._pattern.streams)
        for name, part in self._pattern.gpms.items():
            gpm = self.gpms[name]
            assert isinstance(gpm, _TableAnswers)
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
        assert isinstance(gpm, _TableAnswers)
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
