"""Places in the text, variables, property paths and durations: what clauses and patterns are made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final

from pyoxigraph import NamedNode


@dataclass(frozen=True, slots=True)
class Span:
    """The place of a node in the query text: offsets in characters, line and column from 1."""

    start: int
    end: int
    line: int
    column: int


@dataclass(frozen=True, slots=True)
class SyntaxNode:
    """A node that an error can point at; the span is None in a tree that was made without a text."""

    span: Span | None = field(default=None, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Var(SyntaxNode):
    """A variable, without its ``?``. Also an expression."""

    name: str

    def __str__(self) -> str:
        return f"?{self.name}"


@dataclass(frozen=True, slots=True)
class PathSequence:
    """``p1/p2``"""

    parts: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class PathAlternative:
    """``p1|p2``"""

    parts: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class PathInverse:
    """``^p``"""

    path: Path


@dataclass(frozen=True, slots=True)
class PathRepeat:
    """``p*`` (0, None), ``p+`` (1, None), ``p?`` (0, 1)."""

    path: Path
    minimum: int
    maximum: int | None


@dataclass(frozen=True, slots=True)
class PathNegated:
    """``!(p1|^p2)``: the forward predicates and the inverse ones that are excluded."""

    forward: tuple[NamedNode, ...]
    inverse: tuple[NamedNode, ...]


Path = NamedNode | PathSequence | PathAlternative | PathInverse | PathRepeat | PathNegated


_SECOND: Final = 1_000_000

#: Microseconds of a unit of WITHIN; None for EVENTS, which counts.
UNITS: Final[Mapping[str, int | None]] = {
    "MICROSECONDS": 1,
    "MILLISECONDS": 1_000,
    "SECONDS": _SECOND,
    "MINUTES": 60 * _SECOND,
    "HOURS": 3_600 * _SECOND,
    "DAYS": 86_400 * _SECOND,
    "EVENTS": None,
}


@dataclass(frozen=True, slots=True)
class Duration(SyntaxNode):
    """``2.5 SECONDS``: the size is exact; ``unit`` is a key of ``UNITS`` other than EVENTS.

    >>> Duration(Fraction("2.5"), "SECONDS").microseconds, Duration(Fraction("2.5"), "SECONDS").on(ticks=True)
    (Fraction(2500000, 1), 2)
    """

    size: int | Fraction
    unit: str

    @property
    def microseconds(self) -> Fraction:
        """Return the exact length in microseconds."""
        return Fraction(self.size) * (UNITS[self.unit] or 0)

    def on(self, ticks: bool) -> int:
        """Return the largest difference of two times that is within this duration, as a whole number: of
        ticks (one per second), or of microseconds.
        """
        return int(self.microseconds / _SECOND if ticks else self.microseconds)

    def __str__(self) -> str:
        return f"{decimal(self.size)} {self.unit}"


def decimal(size: int | Fraction) -> str:
    """Return a number as a decimal.

    >>> decimal(Fraction(5, 2)), decimal(Fraction(1, 80)), decimal(7)
    ('2.5', '0.0125', '7')
    """
    digits = 0
    while (Fraction(size) * 10**digits).denominator > 1:
        digits += 1
    scaled = str(int(Fraction(size) * 10**digits)).rjust(digits + 1, "0")
    return f"{scaled[:-digits]}.{scaled[-digits:]}" if digits else scaled
