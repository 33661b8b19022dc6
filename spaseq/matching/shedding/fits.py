"""Which queries may shed, and of which all that is found under a bound is found without one, too.

That is so of runs that know nothing of each other; events that a negation or ``?`` looks for are kept apart
from them, and are never shed. Where a match may keep out another one, what belongs to one first event is shed
together, and what may be in doubt yet is counted (``doubt``).
"""

from __future__ import annotations

from collections.abc import Iterator

from spaseq.automaton.pattern import AnyOrder, Either, Kleene, Maybe, SequencePattern, walk
from spaseq.effort import Policy
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
from spaseq.matching.host import emitted
from spaseq.matching.obstacles import Obstacle, other_operators, subsequences


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
    """What makes that a match may be found under a bound that is none, or no first one, without it."""
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
