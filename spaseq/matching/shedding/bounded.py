"""A query that has a bound, and all that its evaluator is made of."""

from __future__ import annotations

from dataclasses import dataclass

from spaseq.automaton.pattern import SequencePattern
from spaseq.effort import Effort
from spaseq.language.syntax.printing import print_sequence
from spaseq.limits import Budget
from spaseq.matching.context import Context
from spaseq.matching.model import Bounds
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
class Bounded:
    """A query over the terms of a ``dictionary``, and the bounds (``effort``) that it keeps by shedding.

    ``many``: what it is made of, if several queries are run as one.
    """

    pattern: SequencePattern
    dictionary: Dictionary
    context: Context
    bounds: Bounds
    effort: Effort
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
