"""Many doubles as literals: their canonical lexical forms (XSD 1.1), as ``values`` has them one by one."""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite

from spaseq.terms.values import DOUBLE, XSD, Value


def double_literals(numbers: Iterable[float]) -> list[str]:
    """Return these numbers as ``xsd:double`` in N-Triples.

    >>> double_literals([-1234.5])
    ['"-1.2345E3"^^<http://www.w3.org/2001/XMLSchema#double>']
    """
    return [f'"{_canonical(number)}"^^<{XSD}double>' for number in numbers]


def _canonical(number: float) -> str:
    """As ``Value.term`` writes it, in a third of the time: the digits are those of ``repr``."""
    if not isfinite(number):
        return Value(DOUBLE, number).text
    written = repr(number)
    sign = "-" if written[0] == "-" else ""
    digits, _, exponent = written.lstrip("-").partition("e")
    before, _, after = digits.partition(".")
    if before != "0":
        power, digits = len(before) - 1, (before + after).rstrip("0")
    else:
        digits = after.lstrip("0")
        power = len(digits) - len(after) - 1
    power += int(exponent or 0)
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{power}" if digits else Value(DOUBLE, number).text
