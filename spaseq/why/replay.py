"""Run a query, or a variant of it, again on the sample."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Final

import numpy as np

from spaseq.automaton.pattern import SequencePattern
from spaseq.engine.pipelines.patterns import Environment
from spaseq.engine.pipelines.pipeline import Pipeline
from spaseq.errors import SpaseqError
from spaseq.language.syntax import Consume, Emit, Expression, Filter, Group, Modifiers, Query, Select
from spaseq.limits import Limits
from spaseq.matching.columns.blocks.found import Block
from spaseq.matching.context import Context, EarlyTest, Exists, Test, compile_tests
from spaseq.patterns.expressions.compiled import Solution, compile_test
from spaseq.results.batch import Match, MatchBatch
from spaseq.terms.dictionary import Dictionary
from spaseq.why.diagnosis import EdgeCount, FilterCount, StateCount
from spaseq.why.evidence import Evidence
from spaseq.why.filters import FilterTally
from spaseq.why.trace import RunTrace, TracedRuns, trace_of

#: The most partial matches that a replay keeps.
LIMITS: Final = Limits(partial_matches=5_000)

#: Events per step.
_STEP: Final = 50

#: If the time is too short for the whole sample, its first eighth is used, then an eighth of that, and so on:
#: the divisor, and the fewest events.
_PART: Final = 8
_FEWEST: Final = 20

#: The growth factor of the number of newest events traced next.
_GROWN: Final = 4


class _SpentError(SpaseqError):
    """The time of a replay is used up."""


class Replays:
    """Runs variants of a query on the first ``events`` of its sample, for a limited time.

    Seconds are CPU time, and checked before every event.
    """

    def __init__(self, evidence: Evidence, seconds: float, events: int | None = None) -> None:
        self._evidence = evidence
        self._end = time.thread_time() + seconds
        batch = evidence.sample
        if batch is not None and events is not None and events < len(batch):
            batch = batch.take(np.arange(events))
        self.events = 0 if batch is None else len(batch)
        self._steps = (
            []
            if batch is None
            else [
                batch.take(np.arange(start, min(start + _STEP, len(batch))))
                for start in range(0, len(batch), _STEP)
            ]
        )
        begin = evidence.begin
        self._begin = int(batch.time[0]) if begin is None and batch is not None else begin

    def matches(self, query: Query, most: int = 1) -> list[Match] | None:
        """Return the first matches in the sample; None if finding one takes too long or fails."""
        return self.watched(query, most)[0]

    def watched(self, query: Query, most: int = 1) -> tuple[list[Match] | None, tuple[FilterCount, ...]]:
        """Return what ``matches`` does, and the counts of filters that need more than one event."""
        evidence = self._evidence
        found: list[Match] = []
        try:
            watched = _Watched(query, evidence, self._begin, self._end)
            for step in self._steps:
                found += _first(watched.pipeline.process(step), most - len(found))
                if len(found) == most:
                    return found, watched.counts()
            found += _first(watched.pipeline.close(), most - len(found))
        except SpaseqError:  # no time, a limit, an unsupported query
            return found or None, ()
        return found, watched.counts()

    def traced(self, query: Query) -> Traced:
        """Count what becomes of the partial matches in each state, until time or limits end."""
        count = len(self._steps)
        while count:
            done = 0
            try:
                watched = _Watched(query, self._evidence, self._begin, self._end)
                trace = watched.trace()
                for step in self._steps[:count]:
                    for _ in watched.pipeline.process(step):
                        pass
                    done += 1
                for _ in watched.pipeline.close():
                    pass
                return Traced(*trace.counts(), sum(map(len, self._steps[:count])))
            except _SpentError:
                return Traced(*trace.counts(), watched.events)
            except SpaseqError:
                count = done  # the events that were processed without an error
        return Traced()


@dataclass(frozen=True, slots=True)
class Traced:
    """Counts of an automaton's states and edges over the first ``events`` of a sample."""

    states: tuple[StateCount, ...] = ()
    edges: tuple[EdgeCount, ...] = ()
    events: int = 0


def trace_newest(evidence: Evidence, seconds: float) -> Traced:
    """Trace partial matches over the newest events of a sample, as many as there is time for.

    The number of events begins small, and quadruples as long as the next trace fits into the rest of
    ``seconds``.
    """
    end = time.thread_time() + seconds
    query, found, events = plain(evidence.query), Traced(), _STEP
    while True:
        begun = time.thread_time()
        sample = evidence.sample
        if sample is not None and events < len(sample):
            sample = sample.take(np.arange(len(sample) - events, len(sample)))
        more = Replays(replace(evidence, sample=sample), end - begun).traced(query)
        if found.events and more.events < events and sample is not evidence.sample:
            return found  # time or a limit ended it: the smaller trace is of newer events
        found, now = more, time.thread_time()
        if sample is evidence.sample or end - now < _GROWN * (now - begun):
            return found
        events *= _GROWN


def shrinking(evidence: Evidence, seconds: float) -> Iterator[Replays]:
    """Yield replays of the whole sample, then of ever smaller parts, each with half of the time left."""
    events = evidence.sampled
    end = time.thread_time() + seconds
    yield Replays(evidence, seconds / 2, events)
    while (events := events // _PART) >= _FEWEST:
        yield Replays(evidence, (end - time.thread_time()) / 2, events)


def _first(batches: Iterator[MatchBatch], count: int) -> Iterator[Match]:
    return islice(chain.from_iterable(batches), count)


def plain(query: Query) -> Query:
    """Return a query that has a match if and only if ``query`` has one, and finds it sooner."""
    return replace(
        query,
        form=Select(None),
        modifiers=Modifiers(),
        emit=Emit.ALL,
        consume=Consume.NONE,
        skip=None,
        register=None,
    )


class _Watched:
    """A ``pipeline`` that counts the results of its filters, event by event, until a CPU time.

    ``events``: how many events were processed. It raises ``_SpentError`` before an event after that CPU time.
    """

    def __init__(self, query: Query, evidence: Evidence, begin: int | None, until: float) -> None:
        self._filters: _CountedFilters | None = None
        self._until = until
        self.events = 0
        self.pipeline = Pipeline(
            query,
            Environment(evidence.dictionary, evidence.kb, limits=LIMITS),
            "interpreter",
            begin,
            make_context=self._make_context,
        )
        self.pipeline.read = self._read
        self.pipeline.observation.sample = None

    def _make_context(
        self, pattern: SequencePattern, dictionary: Dictionary, exists: Exists, limits: Limits
    ) -> Context:
        filters = self._filters = _CountedFilters(pattern)
        return Context(pattern, dictionary, exists, limits, compile_tests=filters.compile)

    def _read(self, found: Iterable[Block]) -> Iterator[MatchBatch]:
        if time.thread_time() > self._until:
            raise _SpentError("the time is used up")
        yield from self.pipeline.answers.read(found)
        self.events += 1

    def trace(self) -> RunTrace:
        """Count what becomes of partial matches from now on."""
        pattern, context = self.pipeline.pattern, self.pipeline.context
        trace = trace_of(pattern)
        self.pipeline.matchers = lambda window: lambda: TracedRuns(trace, pattern, context, window)
        return trace

    def counts(self) -> tuple[FilterCount, ...]:
        """Return the evaluated filters, in the order written."""
        return () if self._filters is None else self._filters.counts()


class _CountedFilters:
    """The filters of a query, which count their results.

    A filter of WHERE is evaluated for a row many times: it counts once per distinct value.
    """

    def __init__(self, pattern: SequencePattern) -> None:
        self._tallies: dict[tuple[object, Filter], FilterTally] = {}
        self._gpm_of = {
            (item.span, item): name for name, part in pattern.gpms.items() for item in part.correlated
        }

    def counts(self) -> tuple[FilterCount, ...]:
        """Return the counts of each filter, in the order written."""
        return tuple(tally.count() for tally in self._tallies.values())

    def compile(
        self,
        item: Filter,
        condition: Expression,
        dictionary: Dictionary,
        exists: Callable[[Group, Solution], bool],
    ) -> tuple[Test, EarlyTest]:
        """Compile the tests of a filter."""
        key = item.span, item
        tally = self._tallies.setdefault(key, FilterTally(self._gpm_of.get(key), item))
        test = compile_test(condition, dictionary, exists)
        _, early = compile_tests(item, condition, dictionary, exists)
        answers: dict[frozenset[tuple[str, int]], bool] = {}

        def counted(solution: Solution) -> bool:
            return tally.ask(test, solution)

        def once(solution: Solution) -> bool:
            values = frozenset(solution.items())
            if values not in answers:
                answers[values] = tally.ask(test, solution)
            return answers[values]

        def excused(solution: Solution, names: frozenset[str]) -> bool:
            return early(solution, names) and tally.excuse()

        return once if tally.gpm is None else counted, excused
