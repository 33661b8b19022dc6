"""Obstacles: the reasons why a matcher cannot run a query, each with its place in the query's text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from spaseq.automaton.pattern import (
    Absent,
    AnyOrder,
    Atom,
    Chain,
    Either,
    GpmPart,
    Kleene,
    Maybe,
    Node,
    SequencePattern,
    Within,
    children,
    nullable,
)
from spaseq.automaton.pattern import walk as walk_nodes
from spaseq.automaton.show import show
from spaseq.language.scope import mentioned, walk
from spaseq.language.syntax import (
    Aggregate,
    All,
    Bounded,
    Conjunction,
    Disjunction,
    Filter,
    Not,
    Prev,
    Query,
    Ref,
    Repeat,
    Select,
    Seq,
    Sequence,
    Span,
    Strategy,
)
from spaseq.language.syntax.printing import print_expression, print_sequence

#: The most places shown for each requirement.
_SHOWN: Final = 3


@dataclass(frozen=True, slots=True)
class Obstacle:
    """A requirement of a matcher, and what in the query violates it; ``span``: where."""

    demand: str
    here: str
    span: Span | None = None

    @property
    def place(self) -> str:
        """The violation, with line and column."""
        return self.here if self.span is None else f"{self.here} ({self.span.line}:{self.span.column})"


class Feature(StrEnum):
    """Features of queries that some matchers lack, as named in requirements."""

    ZERO = "no X{0,m}"
    WITHIN = "no WITHIN inside the sequence"
    SKIP = "no AFTER MATCH SKIP"
    STEPS = "no number in PREV, FIRST and LAST"
    SCOPES = "each variable has one scope"
    LEFT_JOIN = "nothing is optional"
    NOT_NEXT = "no negation is beside ','"
    ITERATION = "no negation at an iteration's end asks for values of that iteration"


def features(pattern: SequencePattern) -> Iterator[tuple[Feature, Obstacle]]:
    """Yield the features that a query uses, each with its places."""
    query = pattern.query
    for name in sorted(pattern.mixed):
        yield Feature.SCOPES, Obstacle(Feature.SCOPES, f"?{name} in each alternative")
    for node in walk_nodes(pattern.root):
        if isinstance(node, Maybe):
            yield Feature.LEFT_JOIN, Obstacle(Feature.LEFT_JOIN, show(node))
        if isinstance(node, Chain):
            for negation in _not_next(node):
                yield Feature.NOT_NEXT, Obstacle(Feature.NOT_NEXT, show(negation))
        if isinstance(node, Kleene):
            for negation in _trailing(node.element):
                gone = {inner.id for inner in walk_nodes(negation)}
                atoms = [inner for inner in walk_nodes(node.element) if isinstance(inner, Atom)]
                bound = [pattern.gpms[atom.gpm].variables for atom in atoms if atom.id not in gone]
                asked = [_asked(pattern.gpms[atom.gpm]) for atom in atoms if atom.id in gone]
                if node.own & frozenset().union(*bound) & frozenset().union(*asked):
                    yield Feature.ITERATION, Obstacle(Feature.ITERATION, f"{show(negation)} in {show(node)}")
        if isinstance(node, Absent) and node.free:
            here = f"?{' ?'.join(sorted(node.free))} in {show(node)}, beside the Kleene"
            yield Feature.SCOPES, Obstacle(Feature.SCOPES, here)
    for part in subsequences(query.sequence):
        if isinstance(part, Bounded):
            yield Feature.WITHIN, Obstacle(Feature.WITHIN, print_sequence(part), part.span)
        if isinstance(part, Repeat) and part.minimum == 0 and not part.optional:
            yield Feature.ZERO, Obstacle(Feature.ZERO, print_sequence(part), part.span)
    if query.skip is not None:
        yield Feature.SKIP, Obstacle(Feature.SKIP, f"AFTER MATCH SKIP {query.skip.mode}", query.skip.span)
    projected = query.form.items or () if isinstance(query.form, Select) else ()
    conditions = [f.condition for f in query.filters]
    conditions += [f.condition for gpm in query.gpms for f in gpm.pattern.elements if isinstance(f, Filter)]
    conditions += [item.expression for item in projected if item.expression is not None]
    for expression in (part for condition in conditions for part in walk(condition)):
        match expression:
            case Prev(offset=offset) if offset != 1:
                pass
            case Aggregate(offset=offset) if offset:
                pass
            case _:
                continue
        yield Feature.STEPS, Obstacle(Feature.STEPS, print_expression(expression), expression.span)


def in_text(obstacle: Obstacle, query: Query) -> Obstacle:
    """Return an obstacle that quotes its place in the query's text, if the place is known."""
    span = obstacle.span
    return (
        obstacle
        if span is None
        else replace(obstacle, here=" ".join(query.text[span.start : span.end].split()))
    )


def _asked(part: GpmPart) -> frozenset[str]:
    """Return the variables that a GPM binds, and the variables that its filters mention."""
    return part.variables.union(*(mentioned(item.condition) for item in part.correlated))


def _trailing(node: Node) -> Iterator[Absent]:
    """Yield the negations that may be last in a node."""
    match node:
        case Absent():
            yield node
        case Chain(items=items):
            for item in reversed(items):
                yield from _trailing(item)
                if not nullable(item):
                    return
        case Either() | AnyOrder() | Within() | Kleene():
            for part in children(node):
                yield from _trailing(part)


def _not_next(chain: Chain) -> Iterator[Node]:
    """Yield the negations of a chain that forbid a single event: the next one, or the one before the match
    begins.
    """
    for i, item in enumerate(chain.items):
        before = chain.operators[i - 1] if i else None
        after = chain.operators[i] if i < len(chain.operators) else None
        first = all(map(nullable, chain.items[:i]))
        beside = before is Strategy.STRICT or (first and after is Strategy.STRICT)
        if isinstance(item, Absent) and beside and before is not after:
            yield item


def in_words(obstacles: Iterable[Obstacle]) -> list[str]:
    """Return each requirement with some of the places that violate it.

    >>> operators = [Obstacle("every operator is ':'", f"';' before {gpm}") for gpm in "BCDE"]
    >>> for words in in_words([*operators, Obstacle("nothing is consumed", "CONSUME ANY")]):
    ...     print(words)
    every operator is ':'; here ';' before B, ';' before C, ';' before D and 1 more
    nothing is consumed; here CONSUME ANY
    """
    places: dict[str, list[str]] = {}
    for obstacle in obstacles:
        places.setdefault(obstacle.demand, []).append(obstacle.place)
    return [f"{demand}; here {_some(found)}" for demand, found in places.items()]


def _some(words: list[str]) -> str:
    """Return the first of some words, and how many more there are."""
    more = f" and {len(words) - _SHOWN} more" if len(words) > _SHOWN else ""
    return ", ".join(words[:_SHOWN]) + more


def subsequences(seq: Seq) -> Iterator[Seq]:
    """Yield a sequence and all sequences inside it, in the order written."""
    yield seq
    match seq:
        case Sequence(elements=inner) | Conjunction(operands=inner):
            pass
        case Disjunction(operands=inner) | All(operands=inner):
            pass
        case Repeat(element=element) | Not(element=element) | Bounded(element=element):
            inner = (element,)
        case Ref():
            inner = ()
    for part in inner:
        yield from subsequences(part)


def other_operators(seq: Seq, wanted: Strategy) -> Iterator[Obstacle]:
    """Yield the operators of a sequence, also inside its Kleene closures, that differ from ``wanted``."""
    demand = f"every operator is '{wanted}'"
    for part in subsequences(seq):
        match part:
            case Sequence(elements=elements, operators=operators):
                for operator, element in zip(operators, elements[1:], strict=True):
                    if operator is not wanted:
                        yield Obstacle(demand, f"'{operator}' before {print_sequence(element)}", element.span)
            case Repeat(repeats=True, strategy=strategy) if strategy is not wanted:
                yield Obstacle(demand, f"'{strategy}' inside {print_sequence(part)}", part.span)


def filter_of(item: Filter, demand: str) -> Obstacle:
    """Return the obstacle for a filter that violates the requirement ``demand``."""
    return Obstacle(demand, f"FILTER({print_expression(item.condition)})", item.span)
