"""The smallest case in which something still goes wrong: fewer events, a simpler query."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from spaseq.errors import QueryError
from spaseq.events import Stamp
from spaseq.language import syntax as s
from spaseq.language.scope import references
from spaseq.language.syntax.query import print_query
from spaseq.matching.model import Occurrence
from tests.matching.random_sequences import Query, Sample, Step, pattern_of


def shrink(sample: Sample, fails: Callable[[Sample], bool], attempts: int = 2_000) -> Sample:
    """A sample that fails and of which no part can go; or what is left after so many attempts."""
    while True:
        for smaller in _smaller(sample):
            attempts -= 1
            if fails(smaller):
                sample = smaller
                break
            if not attempts:
                return sample
        else:
            return sample


def _smaller(sample: Sample) -> Iterator[Sample]:
    for i in range(len(sample.events)):
        yield _of_events(sample, sample.events[:i] + sample.events[i + 1 :])
    yield from (replace(sample, query=query) for query in _smaller_queries(sample.query))
    yield from _plainer(sample)
    for i, event in enumerate(sample.events):
        for gpm, rows in event.solutions.items():
            for j in range(len(rows)):
                fewer = {**event.solutions, gpm: rows[:j] + rows[j + 1 :]}
                less = replace(event, solutions={name: found for name, found in fewer.items() if found})
                yield replace(sample, events=(*sample.events[:i], less, *sample.events[i + 1 :]))


def _of_events(sample: Sample, events: tuple[Occurrence, ...]) -> Sample:
    counts: dict[int, int] = {}
    numbered = []
    for position, event in enumerate(events):
        n = counts.setdefault(event.stamp.stream, 0)
        counts[event.stamp.stream] += 1
        numbered.append(replace(event, stamp=Stamp(event.time, event.stamp.stream, n), position=position))
    return replace(sample, events=tuple(numbered), steps=(Step(1),) * len(numbered))


def _plainer(sample: Sample) -> Iterator[Sample]:
    if sample.drops:
        yield replace(sample, drops=frozenset())
    if not sample.steps:
        return
    if len(sample.steps) > 1:
        yield replace(sample, steps=(Step(len(sample.events)),))
    for i, step in enumerate(sample.steps):
        for plain in (replace(step, sweep=False), replace(step, time=None)):
            if plain != step:
                yield replace(sample, steps=(*sample.steps[:i], plain, *sample.steps[i + 1 :]))


# --- queries --------------------------------------------------------------------------------------


def _smaller_queries(query: Query) -> Iterator[Query]:
    tree = query.pattern.query
    for sequence in _smaller_sequences(tree.sequence):
        yield from _rewritten(query, replace(tree, sequence=sequence))
    for i in range(len(tree.filters)):
        yield from _rewritten(query, replace(tree, filters=tree.filters[:i] + tree.filters[i + 1 :]))
    for i, gpm in enumerate(tree.gpms):
        elements = gpm.pattern.elements
        for j in range(1, len(elements)):
            less = replace(gpm, pattern=s.Group(elements[:j] + elements[j + 1 :]))
            yield from _rewritten(query, replace(tree, gpms=(*tree.gpms[:i], less, *tree.gpms[i + 1 :])))
    for plain in ({"partition": ()}, {"emit": s.Emit.ALL}, {"consume": s.Consume.NONE}):
        yield from _rewritten(query, replace(tree, **plain))


def _rewritten(query: Query, tree: s.Query) -> Iterator[Query]:
    """The query of a smaller tree, unless it says the same or the checks refuse it."""
    used = {ref.name for ref, _ in references(tree.sequence)}
    text = print_query(replace(tree, gpms=tuple(gpm for gpm in tree.gpms if gpm.name in used)))
    if len(text) < len(print_query(query.pattern.query)):
        try:
            rewritten = replace(query, text=text, pattern=pattern_of(text))
        except QueryError:
            return
        # The ids of the events stay as they are.
        rewritten.__dict__["dictionary"] = query.dictionary
        yield rewritten


def _smaller_sequences(seq: s.Seq) -> Iterator[s.Seq]:
    match seq:
        case s.Ref():
            return
        case s.Sequence(elements, operators):
            yield from elements
            if len(elements) > 2:
                for i in range(len(elements)):
                    left = operators[: max(i - 1, 0)] + operators[max(i, 1) :]
                    yield s.Sequence(elements[:i] + elements[i + 1 :], left)
            for i, element in enumerate(elements):
                for smaller in _smaller_sequences(element):
                    yield s.Sequence((*elements[:i], smaller, *elements[i + 1 :]), operators)
        case s.Conjunction(operands) | s.Disjunction(operands) | s.All(operands):
            yield from operands
            for i, operand in enumerate(operands):
                if len(operands) > 2:
                    yield replace(seq, operands=operands[:i] + operands[i + 1 :])
                for smaller in _smaller_sequences(operand):
                    yield replace(seq, operands=(*operands[:i], smaller, *operands[i + 1 :]))
        case s.Not(element):
            yield from (s.Not(smaller) for smaller in _smaller_sequences(element))
        case s.Bounded(element):
            yield element
            yield from (replace(seq, element=smaller) for smaller in _smaller_sequences(element))
        case s.Repeat(element):
            yield element
            yield from (replace(seq, element=smaller) for smaller in _smaller_sequences(element))
