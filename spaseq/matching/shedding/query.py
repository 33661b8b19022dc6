"""Queries that have a bound: the input of shedding, and which queries may shed."""

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
from spaseq.language.syntax.printing import print_sequence
from spaseq.language.syntax.terms import UNITS
from spaseq.limits import Budget
from spaseq.matching.context import Context
from spaseq.matching.host import emitted
from spaseq.matching.lazy.plans import LazyPlan, plans
from spaseq.matching.model import StreamWindow
from spaseq.matching.obstacles import Obstacle, other_operators, subsequences
from spaseq.terms.dictionary import Dictionary


@dataclass(frozen=True, slots=True)
class Many:
    """Queries with a common prefix that run as one: the name of the first one in warnings, their number, and
    the ``budget`` of what all may keep together.
    """

    first: str
    count: int
    budget: Budget


@dataclass(frozen=True, slots=True)
class BoundedQuery:
    """A query over the terms of a ``dictionary``, and the bounds (``bound``) that it keeps by shedding.

    ``many``: the queries it consists of, if several run as one.
    """

    pattern: SequencePattern
    dictionary: Dictionary
    context: Context
    window: StreamWindow
    bound: Bound
    many: Many | None = None

    @property
    def name(self) -> str:
        """The query's name in warnings."""
        if self.many is not None:
            return f"{self.many.first} and {self.many.count - 1} more that run with it as one"
        return called(self.pattern)


def called(pattern: SequencePattern) -> str:
    """Return a query's name in warnings."""
    return f"SEQ({print_sequence(pattern.query.sequence)})"


def obstacles(pattern: SequencePattern, policy: Policy = Policy.SHARP) -> Iterator[Obstacle]:
    """Yield what prevents a query from shedding partial matches, or events."""
    query = pattern.query
    if query.skip is not None and (
        query.skip.mode is not SkipMode.TO_NEXT_EVENT or policy is Policy.RANDOM_INPUT
    ):
        yield Obstacle("no match keeps out another one", f"AFTER MATCH SKIP {query.skip.mode}")
    if policy is Policy.RANDOM_INPUT:
        # If an event is dropped, the event after it becomes the next one.
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
    """Yield the clauses because of which a match under a bound may not be a match (or not a first one)
    without it.
    """
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
    """Return whether removing events cannot add matches: no condition is about absent, next, first or counted
    events.
    """
    window = pattern.query.window
    return (
        pattern.query.skip is None
        and not any(doubts(pattern))
        and not any(obstacles(pattern, Policy.RANDOM_INPUT))
        and UNITS[window.unit] is not None
        and window.kind is WindowKind.SLIDING
    )


def makes_a_stream(pattern: SequencePattern) -> bool:
    """Return whether other queries may test the absence of its matches."""
    register = pattern.query.register
    return register is not None and register.kind is RegisterKind.STREAM


def reads_in_one_way(pattern: SequencePattern) -> bool:
    """Return whether the events of a match determine the iterations of its Kleenes, so that no reading is
    lost.

    Each reading of a match is a partial match of its own, some of which may be shed. There is only one if
    every iteration has the same parts in the same order.
    """
    return not any(
        isinstance(inner, Kleene | Either | Maybe | AnyOrder)
        for kleene in walk(pattern.root)
        if isinstance(kleene, Kleene)
        for inner in walk(kleene.element)
    )


def buffer_obstacles(pattern: SequencePattern, policy: Policy = Policy.SHARP) -> Iterator[Obstacle]:
    """Yield what prevents a query from shedding buffered events.

    A Kleene has as many matches as sets of events: there, the NFA kernel sheds partial matches instead.
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
    """Return the GPMs with events that may be shed: they occur in no negation."""
    taken, forbidden = set[str](), set[str]()
    for plan in alternatives:
        taken |= {item.atom.gpm for i, item in enumerate(plan.items) if _may_precede(plan, i)}
        for absence in plan.absences:
            forbidden |= {atom.gpm for atom in walk(absence.unit) if isinstance(atom, Atom)}
    return frozenset(taken - forbidden)


def _may_precede(plan: LazyPlan, i: int) -> bool:
    """Return whether an item may precede another one: an item that is always last is never searched."""
    return any(not plan.items[i].before >> j & 1 for j in range(len(plan.items)) if j != i)
