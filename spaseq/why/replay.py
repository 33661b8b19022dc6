"""A query, or a variant of it, run once more on the sample."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from typing import Final

import numpy as np

from spaseq.automaton.pattern import SequencePattern
from spaseq.engine.pipeline import Pipeline
from spaseq.errors import SpaseqError
from spaseq.gpm.expressions import Solution, compile_test
from spaseq.language.syntax import Consume, Emit, Expression, Filter, Modifiers, Query, Select
from spaseq.limits import Limits
from spaseq.matching.context import Context
from spaseq.matching.model import Bounds, Evaluator
from spaseq.results.match import Match
from spaseq.terms import Dictionary
from spaseq.why.diagnosis import EdgeCount, FilterCount, StateCount
from spaseq.why.evidence import Evidence
from spaseq.why.filters import Tally
from spaseq.why.trace import TracedRuns, trace_of

#: A replay keeps so many runs at most.
LIMITS: Final = Limits(partial_matches=5_000)

#: So many events at a time; then the clock is looked at.
_STEP: Final = 50


class Replays:
    """Runs variants of a query on its sample, for so many seconds of the processor's time."""

    def __init__(self, evidence: Evidence, seconds: float) -> None:
        self._evidence = evidence
        self._end = time.thread_time() + seconds
        batch = evidence.sample
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
        """The first matches in the sample; None if it took too long, or cannot be done, to find one."""
        return self.watched(query, most)[0]

    def watched(self, query: Query, most: int = 1) -> tuple[list[Match] | None, tuple[FilterCount, ...]]:
        """The same, and what the filters said that need more than one event."""
        evidence = self._evidence
        found: list[Match] = []
        try:
            watched = _Watched(query, evidence, self._begin)
            for step in self._steps:
                if time.thread_time() > self._end:
                    return found or None, watched.counts()
                found += islice(watched.process(step), most - len(found))
                if len(found) == most:
                    return found, watched.counts()
            found += islice(watched.close(), most - len(found))
        except SpaseqError:  # too many runs, windows that cannot begin, what no evaluator can do
            return found or None, ()
        return found, watched.counts()

    def traced(self, query: Query) -> tuple[tuple[StateCount, ...], tuple[EdgeCount, ...]]:
        """What became of the partial matches in each state; nothing if that cannot be told."""
        try:
            traced = _TracedPipeline(query, self._evidence, self._begin)
            if traced.trace is None or not self._steps:
                return (), ()
            for step in self._steps:
                if time.thread_time() > self._end:
                    return (), ()
                for _ in traced.process(step):
                    pass
            for _ in traced.close():
                pass
        except SpaseqError:
            return (), ()
        return traced.trace.counts()


def plain(query: Query) -> Query:
    """A query that has a match if and only if this one has, and finds it sooner."""
    return replace(
        query,
        form=Select(None),
        modifiers=Modifiers(),
        emit=Emit.ALL,
        consume=Consume.NONE,
        skip=None,
        register=None,
    )


class _Watched(Pipeline):
    """A pipeline that counts what its filters say, event by event."""

    def __init__(self, query: Query, evidence: Evidence, begin: int | None) -> None:
        self._tallies: dict[tuple[object, Filter], Tally] = {}
        super().__init__(query, evidence.dictionary, evidence.kb, "runs", start=begin, limits=LIMITS)
        self._sample = None

    def _make_context(self, limits: Limits) -> Context:
        return _Counting(self.pattern, self._dictionary, self._exists, limits, self._tallies)

    def counts(self) -> tuple[FilterCount, ...]:
        """The filters that were asked so far, in the order written."""
        return tuple(tally.count() for tally in self._tallies.values())


class _TracedPipeline(_Watched):
    """A pipeline that counts what becomes of partial matches; ``trace`` is None if it cannot."""

    def __init__(self, query: Query, evidence: Evidence, begin: int | None) -> None:
        super().__init__(query, evidence, begin)
        self.trace = trace_of(self.pattern)

    def _make_evaluators(self, window: Bounds) -> Callable[[], Evaluator]:
        trace = self.trace
        if trace is None:
            return super()._make_evaluators(window)
        return lambda: TracedRuns(trace, self.pattern, self._context, window)


class _Counting(Context):
    """The operations on rows, with every answer of a filter counted.

    A filter of WHERE is asked of one row many times: of it only different values count.
    """

    def __init__(
        self,
        pattern: SequencePattern,
        dictionary: Dictionary,
        exists: Callable[..., bool],
        limits: Limits,
        tallies: dict[tuple[object, Filter], Tally],
    ) -> None:
        self._tallies = tallies
        self._gpm_of = {
            (item.span, item): name for name, part in pattern.gpms.items() for item in part.correlated
        }
        super().__init__(pattern, dictionary, exists, limits)

    def _tally(self, item: Filter) -> Tally:
        key = item.span, item
        return self._tallies.setdefault(key, Tally(self._gpm_of.get(key), item))

    def _compile_early(
        self, condition: Expression, item: Filter
    ) -> Callable[[Solution, frozenset[str]], bool]:
        early, tally = super()._compile_early(condition, item), self._tally(item)

        def excused(solution: Solution, names: frozenset[str]) -> bool:
            return early(solution, names) and tally.excuse()

        return excused

    def _compile(self, condition: Expression, item: Filter) -> Callable[[Solution], bool]:
        tally = self._tally(item)
        test = compile_test(condition, self._dictionary, self._ask)
        if tally.gpm is not None:
            return lambda solution: tally.ask(test, solution)
        answers: dict[frozenset[tuple[str, int]], bool] = {}

        def once(solution: Solution) -> bool:
            values = frozenset(solution.items())
            if values not in answers:
                answers[values] = tally.ask(test, solution)
            return answers[values]

        return once
