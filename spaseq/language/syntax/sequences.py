"""Sequence expressions: the contents of SEQ."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from spaseq.language.syntax.terms import Duration, SyntaxNode


class Strategy(StrEnum):
    """Event selection strategy between two elements (SPAseq paper, 4.2.2)."""

    STRICT = ","
    NEXT = ";"
    ANY = ":"


@dataclass(frozen=True, slots=True)
class Ref(SyntaxNode):
    """The name of a GPM in SEQ."""

    name: str


@dataclass(frozen=True, slots=True)
class Sequence(SyntaxNode):
    """``X1 op1 X2 op2 X3``: one operator fewer than elements; always two elements or more."""

    elements: tuple[Seq, ...]
    operators: tuple[Strategy, ...]


@dataclass(frozen=True, slots=True)
class Conjunction(SyntaxNode):
    """``X & Y``"""

    operands: tuple[Seq, ...]


@dataclass(frozen=True, slots=True)
class Disjunction(SyntaxNode):
    """``X | Y``"""

    operands: tuple[Seq, ...]


@dataclass(frozen=True, slots=True)
class All(SyntaxNode):
    """``ALL(σ1, σ2, …)``: one match of each, in any order."""

    operands: tuple[Seq, ...]


@dataclass(frozen=True, slots=True)
class Repeat(SyntaxNode):
    """``X+`` (1, None), ``X*`` (0, None), ``X?`` (0, 1), ``X{n,m}``; ``strategy`` applies inside the loop.

    ``optional`` is true for ``?`` and ``*``, SPARQL's left join, and false for ``{0,m}``, a plain choice.
    ``reluctant`` is the second ``?``: fewer iterations are preferred (AFTER MATCH SKIP).
    """

    element: Seq
    minimum: int
    maximum: int | None
    strategy: Strategy = Strategy.NEXT
    reluctant: bool = False
    optional: bool = False

    @property
    def repeats(self) -> bool:
        """Return whether there may be two iterations."""
        return self.maximum != 1


@dataclass(frozen=True, slots=True)
class Not(SyntaxNode):
    """``!X``"""

    element: Seq


@dataclass(frozen=True, slots=True)
class Bounded(SyntaxNode):
    """``X WITHIN d``: X with its quantifier, or ``!X``."""

    element: Seq
    within: Duration


Seq = Ref | Sequence | Conjunction | Disjunction | All | Repeat | Not | Bounded
