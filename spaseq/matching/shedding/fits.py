"""Which queries may shed: those of which all that is found under a bound is found without one, too.

Dropping a partial match must let no other match through. That is so of runs that know nothing of each other;
events that a negation looks for are kept apart from them, and are never shed.
"""

from __future__ import annotations

from collections.abc import Iterator

from spaseq.automaton.pattern import AnyOrder, Either, Kleene, Maybe, SequencePattern, may_trail, walk
from spaseq.effort import Policy
from spaseq.language.syntax import Ask, Consume, Emit, Not, RegisterKind, Strategy
from spaseq.matching.obstacles import Obstacle, other_operators, subsequences


def obstacles(pattern: SequencePattern, policy: Policy = Policy.SHARP) -> Iterator[Obstacle]:
    """What a query would have to be without to shed partial matches, or events."""
    query = pattern.query
    if query.skip is not None:
        yield Obstacle("no match is preferred to another", f"AFTER MATCH SKIP {query.skip.mode}")
    if query.emit is not Emit.ALL:
        yield Obstacle("no match is preferred to another", f"EMIT {query.emit}")
    if query.consume is Consume.ANY:
        yield Obstacle("no match takes events from another", "CONSUME ANY")
    if query.modifiers.limit is not None or isinstance(query.form, Ask):
        yield Obstacle("all matches are wanted", "LIMIT" if query.modifiers.limit is not None else "ASK")
    if may_trail(pattern.root):
        yield Obstacle("no match waits for its window's end", "a negation or '?' at the end")
    if query.register is not None and query.register.kind is RegisterKind.STREAM:
        yield Obstacle("it makes no stream, in which others may look for what is absent", "REGISTER STREAM")
    if policy is Policy.RANDOM_INPUT:
        # To pass over an event is to let the next one be next.
        yield from other_operators(query.sequence, Strategy.ANY)
        for part in subsequences(query.sequence):
            if isinstance(part, Not):
                yield Obstacle("nothing is negated", "a negation", part.span)


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
