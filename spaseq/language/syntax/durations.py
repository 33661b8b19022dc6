"""Durations: a number, whole or decimal, and a unit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from spaseq.language.syntax.span import SyntaxNode

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
        """Return the largest difference of two times within this duration: in ticks (one a second) or
        microseconds.
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
