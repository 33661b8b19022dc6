"""A query that has a bound, and all that its evaluator is made of."""

from __future__ import annotations

from dataclasses import dataclass

from spaseq.automaton.pattern import SequencePattern
from spaseq.effort import Effort
from spaseq.language.syntax.printing import print_sequence
from spaseq.matching.context import Context
from spaseq.matching.model import Bounds
from spaseq.terms.dictionary import Dictionary


@dataclass(frozen=True, slots=True)
class Bounded:
    """A query over the terms of a ``dictionary``, and the bounds (``effort``) that it keeps by shedding."""

    pattern: SequencePattern
    dictionary: Dictionary
    context: Context
    bounds: Bounds
    effort: Effort

    @property
    def name(self) -> str:
        """What warnings call the query."""
        return f"SEQ({print_sequence(self.pattern.query.sequence)})"
