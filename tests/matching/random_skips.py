"""Random queries with AFTER MATCH SKIP, made of those of ``random_sequences``."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Final

from spaseq.automaton.pattern import Atom, walk
from spaseq.errors import QueryError
from spaseq.language import syntax as s
from spaseq.matching.nfa.skip.matcher import SkipMatcher
from spaseq.matching.nfa.skip.simulation import SkipSimulation
from spaseq.matching.nfa.skip.tables import beyond
from spaseq.matching.reference import Reference
from tests.matching.kernel_cases import Yields, by_kernel, by_matcher
from tests.matching.random_sequences import Query, Sample, pattern_of, random_query

_MODES: Final = (*s.SkipMode, s.SkipMode.PAST_LAST_EVENT)


def random_skip(rng: random.Random, *, compiled: bool = False, **options: object) -> Query:
    """A query with AFTER MATCH SKIP; ``compiled``: its tables can hold the query."""
    while True:
        plain = random_query(rng, **options)  # type: ignore[arg-type]
        query = plain.pattern.query
        mode = rng.choice(_MODES)
        names = sorted({node.gpm for node in walk(plain.pattern.root) if isinstance(node, Atom)})
        target = rng.choice(names) if mode in (s.SkipMode.TO_FIRST, s.SkipMode.TO_LAST) else None
        skipping = replace(
            query,
            emit=s.Emit.ALL,
            consume=s.Consume.NONE,
            skip=s.Skip(mode, target),
            sequence=_reluctant(rng, query.sequence),
        )
        try:
            made = replace(plain, text=str(skipping), pattern=pattern_of(str(skipping)))
        except QueryError:
            continue
        if not compiled or not beyond(made.pattern):
            return made


def _reluctant(rng: random.Random, seq: s.Seq) -> s.Seq:
    """The same with some quantifiers reluctant, or plain bounds from 0."""
    match seq:
        case s.Repeat(element=element):
            inner = _reluctant(rng, element)
            # Iterations without an event are nothing that anybody sees, but the reference lists them.
            inner = element if _nullable(inner) else inner
            changed = replace(seq, element=inner, reluctant=rng.random() < 0.3)
            if rng.random() < 0.1:
                changed = replace(changed, minimum=0, optional=False)
            return changed
        case s.Not():
            return seq
        case s.Bounded(element=element):
            return replace(seq, element=_reluctant(rng, element))
        case s.Sequence(elements=elements):
            return replace(seq, elements=tuple(_reluctant(rng, part) for part in elements))
        case s.Disjunction(operands=operands) | s.Conjunction(operands=operands) | s.All(operands=operands):
            return replace(seq, operands=tuple(_reluctant(rng, part) for part in operands))
        case _:
            return seq


def _nullable(seq: s.Seq) -> bool:
    """Whether a sequence has a match without any event."""
    match seq:
        case s.Repeat(element=element, minimum=minimum):
            return minimum == 0 or _nullable(element)
        case s.Not():
            return True
        case s.Bounded(element=element):
            return _nullable(element)
        case s.Sequence(elements=elements):
            return all(map(_nullable, elements))
        case s.Disjunction(operands=operands):
            return any(map(_nullable, operands))
        case _:
            return False


def by_judge(sample: Sample) -> Yields:
    query = sample.query
    return by_matcher(sample, lambda: Reference(query.pattern, query.context, sample.window))


def by_simulation(sample: Sample) -> Yields:
    query = sample.query
    return by_matcher(
        sample, lambda: SkipSimulation(query.program, query.pattern, query.context, sample.window)
    )


def by_ordered_kernel(sample: Sample) -> Yields:
    return by_kernel(sample, SkipMatcher)
