"""Ordering filters as ranges: bounds for an item's values, given other items.

``?b < ?a + 20`` bounds ?b by ?a, and ?a by ?b. Linear comparisons are solved for each variable. The kernel
skips rows beyond the bounds by a comparison of doubles. Rows within them are tested like all others, so
bounds may be too wide: they are, by the rounding error.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Final

from pyoxigraph import Literal

from spaseq.matching.filters.postfix import Instruction
from spaseq.matching.lazy.records import interval
from spaseq.terms.values import DECIMAL, DOUBLE, INTEGER, decode

#: The sides that a comparison bounds.
LEAST: Final = interval.LEAST
MOST: Final = interval.MOST
_BOUNDS: Final = {"<": MOST, "<=": MOST, ">": LEAST, ">=": LEAST, "=": LEAST | MOST}
_MIRRORED: Final = {0: 0, LEAST: MOST, MOST: LEAST, LEAST | MOST: LEAST | MOST}
#: Factors up to this, and down to its inverse, do not cause overflow or underflow.
_LARGEST: Final = Fraction(10**100)


@dataclass(frozen=True, slots=True)
class Summand:
    """A term of a sum: a factor alone, or times a variable."""

    factor: Fraction
    name: str | None = None


#: A sum.
Sum = tuple[Summand, ...]


@dataclass(frozen=True, slots=True)
class Range:
    """A variable of a row is at least, or at most (``bounds``), a sum of other rows' values."""

    variable: str
    bounds: int
    sum: Sum


def ranges(code: Iterable[Instruction], own: frozenset[str]) -> Iterator[Range]:
    """Yield the bounds that a condition gives for the values of a row with the variables ``own``.

    >>> from spaseq.matching.filters.postfix import Instruction
    >>> a, b, c = Instruction("PUSH", "a"), Instruction("PUSH", "b"), Instruction("CONSTANT", Literal(20))
    >>> code = [b, c, a, Instruction("ADD")]
    >>> for found in ranges([*code, Instruction("COMPARE", "<")], frozenset("b")):
    ...     print(found.variable, found.bounds == MOST, *(f"{t.factor} {t.name}" for t in found.sum))
    b True 20 None 1 a
    """
    names: dict[str, int] = {}
    numbered = tuple(
        step._replace(what=str(names.setdefault(step.what, len(names))))
        if step.op == "PUSH" and isinstance(step.what, str)
        else step
        for step in code
    )
    given = [*names]
    for one in _ranges(numbered, frozenset(str(number) for name, number in names.items() if name in own)):
        terms = (term if term.name is None else replace(term, name=given[int(term.name)]) for term in one.sum)
        yield Range(given[int(one.variable)], one.bounds, tuple(terms))


@lru_cache(maxsize=1 << 10)
def _ranges(code: tuple[Instruction, ...], own: frozenset[str]) -> tuple[Range, ...]:
    """Return the bounds with numbers in place of variables, cached: many queries have equal conditions."""
    found = (
        _solved(left, _BOUNDS.get(operator, 0), right, own) for left, operator, right in _comparisons(code)
    )
    return tuple(one for one in found if one is not None)


def _comparisons(code: Iterable[Instruction]) -> list[tuple[Sum, str, Sum]]:
    """Return the comparisons of a program, if it has nothing else, and they are linear."""
    found = []
    stack: list[Sum] = []
    for step in code:
        match step:
            case Instruction("PUSH", str(name)):
                stack.append((Summand(Fraction(1), name),))
            case Instruction("CONSTANT", Literal() as term):
                stack.append(_constant(term))
            case Instruction("MINUS"):
                stack.append(_times(stack.pop(), Fraction(-1)))
            case Instruction("ADD" | "SUBTRACT" | "MULTIPLY" | "DIVIDE" | "COMPARE"):
                right, left = stack.pop(), stack.pop()
                if step.op == "COMPARE":
                    found.append((left, str(step.what), right))
                else:
                    stack.append(_computed(left, step.op, right))
            case _:
                return []
    return found


#: In place of a sum: an unknown value, or a value computed from one.
_UNKNOWN: Final[Sum] = ()


def _constant(term: Literal) -> Sum:
    value = decode(term)
    if value.kind not in (INTEGER, DECIMAL, DOUBLE) or (
        value.kind == DOUBLE and value.data - value.data != 0
    ):
        return _UNKNOWN
    return _checked((Summand(Fraction(value.data)),))


def _computed(left: Sum, op: str, right: Sum) -> Sum:
    if not left or not right:
        return _UNKNOWN
    if op == "ADD":
        return left + right
    if op == "SUBTRACT":
        return left + _times(right, Fraction(-1))
    factor = _factor(right)
    if factor is None and op == "MULTIPLY":
        left, factor = right, _factor(left)
    if not factor:
        return _UNKNOWN
    return _checked(_times(left, factor if op == "MULTIPLY" else 1 / factor))


def _factor(total: Sum) -> Fraction | None:
    return total[0].factor if len(total) == 1 and total[0].name is None else None


def _times(total: Sum, factor: Fraction) -> Sum:
    return tuple(Summand(term.factor * factor, term.name) for term in total)


def _checked(total: Sum) -> Sum:
    small = all(1 <= abs(term.factor) * _LARGEST <= _LARGEST**2 or not term.factor for term in total)
    return total if small else _UNKNOWN


def _solved(left: Sum, bounds: int, right: Sum, own: frozenset[str]) -> Range | None:
    """Return a comparison solved for its one variable of ``own``."""
    terms = left + _times(right, Fraction(-1))
    mine = [term for term in terms if term.name in own]
    if not left or not right or not bounds or len(mine) != 1:
        return None
    (one,) = mine
    if not one.factor or one.name is None:
        return None
    others = _checked(_times(tuple(term for term in terms if term is not one), -1 / one.factor))
    if not others:
        return None
    return Range(one.name, bounds if one.factor > 0 else _MIRRORED[bounds], others)
