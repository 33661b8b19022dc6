"""How random cases are given to the matchers, and how their answers are compared."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from pyoxigraph import Literal

from spaseq.automaton.pattern import SequencePattern, may_trail
from spaseq.events import Clock, EventBatch
from spaseq.matching.columns.matcher import ByColumns
from spaseq.matching.context import Context
from spaseq.matching.host import Key, Matcher
from spaseq.matching.interpreter.matcher import Interpreter
from spaseq.matching.model import Found, Occurrence, PartitionMatcher, Row, StreamWindow
from spaseq.matching.nfa.matcher import NfaMatcher
from spaseq.matching.reference import Reference
from spaseq.patterns.spectra.solutions import Solutions
from spaseq.terms.dictionary import Dictionary
from tests.matching.blocks import singly
from tests.matching.random_sequences import STREAMS, Query, Sample, Step, exists

#: What each step yields, and last what the end of time does: matches as comparable values, in order.
Yields = list[list[object]]


def by_reference(sample: Sample) -> Yields:
    query = sample.query
    return by_matcher(sample, lambda: Reference(query.pattern, query.context, sample.window))


def by_runs(sample: Sample) -> Yields:
    query = sample.query
    return by_matcher(sample, lambda: Interpreter(query.program, query.pattern, query.context, sample.window))


#: Makes one, as ``NfaMatcher`` is made.
Maker = Callable[[SequencePattern, Dictionary, Context, StreamWindow], ByColumns]


def by_kernel(sample: Sample, make: Maker = NfaMatcher) -> Yields:
    """By the kernel, or another matcher that takes columns; raises ValueError where it cannot."""
    steps = _steps(sample)
    ids = _OtherIds(sample.query) if any(step.sweep for step in steps) else _SameIds(sample.query)
    dictionary = ids.dictionary
    kernel = make(sample.query.pattern, dictionary, ids.context, sample.window)
    out: Yields = []
    start = 0
    for step in steps:
        part = [ids.given(event) for event in sample.events[start : start + step.size]]
        start += step.size
        found = ids.shown(singly(kernel.process(batch(part, dictionary), part[0].position, solutions(part))))
        if step.time is not None:
            found += ids.shown(singly(kernel.advance(step.time)))
        out.append(found)
        if step.sweep:
            dictionary.sweep()
    out.append(ids.shown(singly(kernel.close())))
    return out


def difference(sample: Sample, evaluate: Callable[[Sample], Yields], expected: Yields) -> str | None:
    """How a matcher's answer differs from the reference's; None if it does not."""
    try:
        found = evaluate(sample)
    except Exception as error:  # a crash is a difference, too
        return f"{type(error).__name__}: {error}"
    for i, (ours, theirs) in enumerate(zip(found, expected, strict=True)):
        if ours != theirs:
            lost = [match for match in theirs if match not in ours]
            more = [match for match in ours if match not in theirs]
            if lost or more:
                return f"step {i}: missing {lost}\n  not expected {more}"
            if not _order_is_open(sample):
                return f"step {i}: order"
    return None


def _order_is_open(sample: Sample) -> bool:
    """Whether the order of matches is free: they wait for windows of events, and several end in one step.

    The semantics then only fixes that a match is delivered once it can no longer be withdrawn.
    """
    return sample.window.counted and may_trail(sample.query.pattern.root)


def by_matcher(sample: Sample, make: Callable[[], PartitionMatcher]) -> Yields:
    dropping = (lambda: _Dropping(make(), sample.drops)) if sample.drops else make
    query = sample.query
    matcher = Matcher(query.pattern, sample.window, dropping, texts=query.context.texts)
    out: Yields = []
    events = iter(sample.events)
    for step in _steps(sample):
        found = [match for _ in range(step.size) for match in shown(matcher.push(next(events)))]
        if step.time is not None:
            found += shown(matcher.advance(step.time))
        out.append(found)
    out.append(shown(matcher.close()))
    return out


class _Dropping:
    """A matcher whose partial matches are dropped after some events."""

    def __init__(self, matcher: PartitionMatcher, drops: frozenset[int]) -> None:
        self._matcher = matcher
        self._drops = drops
        self.advance, self.drop = matcher.advance, matcher.drop

    @property
    def kept(self) -> tuple[int, int]:
        return self._matcher.kept

    def push(self, occurrence: Occurrence) -> Sequence[Found]:
        found = self._matcher.push(occurrence)
        if occurrence.position in self._drops:
            self.drop()
        return found


def _steps(sample: Sample) -> tuple[Step, ...]:
    return sample.steps or (Step(len(sample.events)),) * bool(sample.events)


# --- events as columns ----------------------------------------------------------------------------


def batch(events: Sequence[Occurrence], dictionary: Dictionary) -> EventBatch:
    """Events without triples."""
    none = np.zeros(0, dtype=np.int64)
    time, stream, n = np.array([event.stamp for event in events], dtype=np.int64).T.copy()
    empty = np.zeros(len(events) + 1, dtype=np.int64)
    graph = np.zeros(len(events), dtype=np.int64)
    return EventBatch(dictionary, Clock.TICKS, stream, graph, time, n, empty, none, none, none)


def solutions(events: Sequence[Occurrence]) -> dict[str, Solutions]:
    """What GPMs found in events, as columns."""
    found = {}
    for gpm in {name for event in events for name in event.solutions}:
        rows = [(i, s) for i, event in enumerate(events) for s in event.solutions.get(gpm, ())]
        names = {name for _, s in rows for name in s}
        columns = {name: np.array([s.get(name, 0) for _, s in rows], dtype=np.int64) for name in names}
        found[gpm] = Solutions(len(rows), np.array([i for i, _ in rows], dtype=np.int64), columns)
    return found


def batches(
    events: Sequence[Occurrence], dictionary: Dictionary, sizes: Iterable[int]
) -> Iterator[tuple[EventBatch, int, dict[str, Solutions]]]:
    """Events as the kernel takes them, in batches of these sizes; the last one has the rest."""
    start = 0
    for size in (*sizes, len(events)):
        part = events[start : start + size]
        if part:
            yield batch(part, dictionary), part[0].position, solutions(part)
        start += size


class _SameIds:
    """Events and matches with the ids of the sample."""

    def __init__(self, query: Query) -> None:
        self.dictionary = query.dictionary
        self.context = query.context

    def given(self, event: Occurrence) -> Occurrence:
        return event

    def shown(self, found: Iterable[tuple[Key, Found]]) -> list[object]:
        return shown(found)


class _OtherIds(_SameIds):
    """Events whose terms get ids when they come, so that those of past events can be given again."""

    def __init__(self, query: Query) -> None:
        self._known = query.dictionary
        self.dictionary = Dictionary()
        # Their ids are those of the sample.
        assert [self.dictionary.pin(stream) for stream in STREAMS] == [1, 2, 3]
        self.context = Context(query.pattern, self.dictionary, exists)
        self._others = 0

    def given(self, event: Occurrence) -> Occurrence:
        self._others += 1
        self.dictionary.intern(Literal(f"something else {self._others}"))
        intern, term = self.dictionary.intern, self._known.term
        found = {
            gpm: tuple({name: intern(term(i)) for name, i in one.items()} for one in ones)
            for gpm, ones in event.solutions.items()
        }
        return replace(event, solutions=found)

    def shown(self, found: Iterable[tuple[Key, Found]]) -> list[object]:
        return [_shown(key, match, self._back) for key, match in found]

    def _back(self, identifier: int) -> int:
        return self._known.intern(self.dictionary.term(identifier))


def _same(identifier: int) -> int:
    return identifier


def _row(one: Row, back: Callable[[int], int]) -> object:
    """A row without the order in which its iterations' solutions were found."""

    def frozen(solution: Mapping[str, int]) -> frozenset[tuple[str, int]]:
        return frozenset((name, back(i)) for name, i in solution.items())

    iterations = {
        kleene: tuple(frozenset(map(frozen, found)) for found in completed)
        for kleene, completed in one.iterations.items()
    }
    return frozen(one.binding), frozenset(iterations.items())


def _shown(key: Key, match: Found, back: Callable[[int], int]) -> object:
    return tuple(map(back, key)), match.chosen, frozenset(_row(row, back) for row in match.rows)


def shown(found: Iterable[tuple[Key, Found]]) -> list[object]:
    """Matches as comparable values, in the order of delivery."""
    return [_shown(key, match, _same) for key, match in found]


def whole(sample: Sample, window: StreamWindow, *sizes: int) -> Sample:
    """A sample with another window, in batches of these sizes, and no other steps."""
    steps, left = [], len(sample.events)
    for size in (*sizes, left):
        steps.append(Step(min(size, left)))
        left -= steps[-1].size
    return replace(sample, window=window, steps=tuple(s for s in steps if s.size), drops=frozenset())
