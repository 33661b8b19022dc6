"""Queries that have a bound: what shedding is made of, and which queries may shed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from spaseq.automaton.pattern import AnyOrder, Atom, Either, Kleene, Maybe, SequencePattern, walk
from spaseq.automaton.show import show
from spaseq.bounds import Bound, Policy
from spaseq.language.syntax import (
    Ask,
    Consume,
    Emit,
    Not,
    RegisterKind,
    SkipMode,
    Strategy,
    WindowKind,
)
from spaseq.language.syntax.durations import UNITS
from spaseq.language.syntax.printing import print_sequence
from spaseq.limits import Budget
from spaseq.matching.context import Context
from spaseq.matching.host import emitted
from spaseq.matching.lazy.plans import LazyPlan, plans
from spaseq.matching.model import StreamWindow
from spaseq.matching.obstacles import Obstacle, other_operators, subsequences
from spaseq.terms.dictionary import Dictionary


@dataclass(frozen=True, slots=True)
class Many:
    """Queries that begin alike, and are run as one: what warnings call the first of them, and how many they
    are; and the ``budget``, what all together may keep.
    """

    first: str
    count: int
    budget: Budget


@dataclass(frozen=True, slots=True)
class BoundedQuery:
    """A query over the terms of a ``dictionary``, and the bounds (``bound``) that it keeps by shedding.

    ``many``: what it is made of, if several queries are run as one.
    """

    pattern: SequencePattern
    dictionary: Dictionary
    context: Context
    window: StreamWindow
    bound: Bound
    many: Many | None = None

    @property
    def name(self) -> str:
        """What warnings call the query."""
        if self.many is not None:
            return f"{self.many.first} and {self.many.count - 1} more that run with it as one"
        return called(self.pattern)


def called(pattern: SequencePattern) -> str:
    """What warnings call a query."""
    return f"SEQ({print_sequence(pattern.query.sequence)})"


def obstacles(pattern: SequencePattern, policy: Policy = Policy.SHARP) -> Iterator[Obstacle]:
    """What a query would have to be without to shed partial matches, or events."""
    query = pattern.query
    if query.skip is not None and (
        query.skip.mode is not SkipMode.TO_NEXT_EVENT or policy is Policy.RANDOM_INPUT
    ):
        yield Obstacle("no match keeps out another one", f"AFTER MATCH SKIP {query.skip.mode}")
    if policy is Policy.RANDOM_INPUT:
        # To pass over an event is to let the next one be next.
        yield from other_operators(query.sequence, Strategy.ANY)
        for part in subsequences(query.sequence):
            if isinstance(part, Not):
                yield Obstacle("nothing is negated", "a negation", part.span)
        if any(isinstance(node, Maybe) for node in walk(pattern.root)):
            yield Obstacle("nothing is optional", "'?'")
        if query.emit is not Emit.ALL:
            yield Obstacle("no match is preferred to another", f"EMIT {query.emit}")
        if query.consume is Consume.ANY:
            yield Obstacle("no match takes events from another", "CONSUME ANY")


def doubts(pattern: SequencePattern) -> Iterator[str]:
    """Yield the clauses by which a match under a bound may not be a match (or not a first one) without it."""
    query = pattern.query
    if emitted(pattern) is not Emit.ALL:
        yield f"EMIT {query.emit}"
    if query.consume is Consume.ANY:
        yield "CONSUME ANY"
    if query.modifiers.limit is not None:
        yield "LIMIT"
    if isinstance(query.form, Ask):
        yield "ASK"


def is_monotone(pattern: SequencePattern) -> bool:
    """Whether fewer events give no match more: nothing is asked of what is absent, next, first or counted."""
    window = pattern.query.window
    return (
        pattern.query.skip is None
        and not any(doubts(pattern))
        and not any(obstacles(pattern, Policy.RANDOM_INPUT))
        and UNITS[window.unit] is not None
        and window.kind is WindowKind.SLIDING
    )


def makes_a_stream(pattern: SequencePattern) -> bool:
    """Whether other queries may look for what is absent in what it finds."""
    register = pattern.query.register
    return register is not None and register.kind is RegisterKind.STREAM


def reads_in_one_way(pattern: SequencePattern) -> bool:
    """Whether the events of a match say which iteration of a Kleene each is of, so that no way is lost.

    Each way to read a match is a partial match of its own, of which some may be shed. There is one alone
    where every iteration is of the same parts in the same order.
    """
    return not any(
        isinstance(inner, Kleene | Either | Maybe | AnyOrder)
        for kleene in walk(pattern.root)
        if isinstance(kleene, Kleene)
        for inner in walk(kleene.element)
    )


def buffer_obstacles(pattern: SequencePattern, policy: Policy = Policy.SHARP) -> Iterator[Obstacle]:
    """What a query that fits would have to be without so that buffered events could be shed.

    A Kleene has as many matches as sets of events: the kernel counts partial matches instead.
    """
    if policy is Policy.RANDOM_INPUT:
        yield Obstacle("events are not passed over", f"the policy {policy}")
    query = pattern.query
    if emitted(pattern) is not Emit.ALL:
        yield Obstacle("no match is preferred to another", f"EMIT {query.emit}")
    alternatives = plans(pattern)
    for item in {item.kleene.id: item for one in alternatives for item in one.items if item.kleene}.values():
        assert item.kleene is not None
        yield Obstacle("nothing is repeated", show(item.kleene))
    if not sheddable(alternatives):
        yield Obstacle("some element but the last is not negated", show(pattern.root))


def sheddable(alternatives: Iterable[LazyPlan]) -> frozenset[str]:
    """Return the GPMs with events that may be shed: those that no negation looks for."""
    taken, forbidden = set[str](), set[str]()
    for plan in alternatives:
        taken |= {item.atom.gpm for i, item in enumerate(plan.items) if _may_precede(plan, i)}
        for absence in plan.absences:
            forbidden |= {atom.gpm for atom in walk(absence.unit) if isinstance(atom, Atom)}
    return frozenset(taken - forbidden)


def _may_precede(plan: LazyPlan, i: int) -> bool:
    """Whether an item may come before another one: what comes last in any case is never looked for."""
    return any(not plan.items[i].before >> j & 1 for j in range(len(plan.items)) if j != i)
