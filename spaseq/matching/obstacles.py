"""What keeps a query from an evaluator, and where in its text that stands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from spaseq.language.printer import print_expression, print_sequence
from spaseq.language.syntax import (
    All,
    Conjunction,
    Disjunction,
    Filter,
    Not,
    Ref,
    Repeat,
    Seq,
    Sequence,
    Span,
    Strategy,
)

#: So many places are shown of each demand.
_SHOWN: Final = 3


@dataclass(frozen=True, slots=True)
class Obstacle:
    """What an evaluator demands, and what of a query is otherwise; ``span`` says where it stands."""

    demand: str
    here: str
    span: Span | None = None

    @property
    def place(self) -> str:
        """What is otherwise, with line and column."""
        return self.here if self.span is None else f"{self.here} ({self.span.line}:{self.span.column})"


def in_words(obstacles: Iterable[Obstacle]) -> list[str]:
    """Each demand with the places that are otherwise, a few of them.

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
    """The first of some words, and how many more there are."""
    more = f" and {len(words) - _SHOWN} more" if len(words) > _SHOWN else ""
    return ", ".join(words[:_SHOWN]) + more


def subsequences(seq: Seq) -> Iterator[Seq]:
    """A sequence and all that is inside it, in the order written."""
    yield seq
    match seq:
        case Sequence(elements=inner) | Conjunction(operands=inner):
            pass
        case Disjunction(operands=inner) | All(operands=inner):
            pass
        case Repeat(element=element) | Not(element=element):
            inner = (element,)
        case Ref():
            inner = ()
    for part in inner:
        yield from subsequences(part)


def other_operators(seq: Seq, wanted: Strategy) -> Iterator[Obstacle]:
    """The operators of a sequence, and inside its closures, that are not the wanted one."""
    demand = f"every operator is '{wanted}'"
    for part in subsequences(seq):
        match part:
            case Sequence(elements=elements, operators=operators):
                for operator, element in zip(operators, elements[1:], strict=True):
                    if operator is not wanted:
                        yield Obstacle(demand, f"'{operator}' before {print_sequence(element)}", element.span)
            case Repeat(maximum=maximum, strategy=strategy) if maximum != 1 and strategy is not wanted:
                yield Obstacle(demand, f"'{strategy}' inside {print_sequence(part)}", part.span)


def filter_of(item: Filter, demand: str) -> Obstacle:
    """A filter that is not as an evaluator demands."""
    return Obstacle(demand, f"FILTER({print_expression(item.condition)})", item.span)
