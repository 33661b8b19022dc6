"""SPARQL's operators on stack values: a kind, a double, and an error bound of the double.

If doubles are exact, they decide; otherwise the result is unknown to the tables. Every number has a kind: a
term that its double identifies among such terms (``SHORT``: at most 15 digits) or not (``LONG``); an
``xsd:double``; the result of exact arithmetic (``CALC``). Values of the last two kinds have an error bound,
if they are computed from rounded doubles.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from spaseq._jit import inlined, part
from spaseq.matching.filters._kernel_values import (
    ADD,
    AT_MOST,
    BEYOND,
    BOOLEAN,
    CALC,
    DIVIDE,
    DOUBLE,
    DURATION,
    EARLY,
    EQUAL,
    ERRED,
    FALSE,
    GREATER,
    LESS,
    LONG,
    MISSING,
    MOMENT,
    MULTIPLY,
    NODE,
    NOTHING,
    SHORT,
    STRING,
    SUBTRACT,
    TRUE,
    UNEQUAL,
    UNKNOWN,
)
from spaseq.patterns.expressions._kernel_math import (
    ATAN2,
    COS,
    POW,
    SIN,
    TAN,
    function,
)


class StackValue(NamedTuple):
    """A value: kind, double, error bound, and id, which is 0 for values that are not terms."""

    kind: int
    number: float
    error: float
    identifier: int


_EPSILON: Final = 2.0**-52
_WHOLE: Final = 2.0**53
#: The error bound of libm's functions, in units of the last place.
_ULPS: Final = 4.0


@inlined
def is_whole(x: float) -> bool:
    """Return whether a double is an integer that no other integer rounds to."""
    return abs(x) <= _WHOLE and x == np.floor(x)


@inlined
def is_exact_sum(z: float) -> bool:
    """Return whether a sum of whole numbers is exact."""
    return abs(z) <= _WHOLE


@inlined
def error_of(kind: int, x: float, e: float) -> float:
    """Return a bound for the distance of ``x`` from the exact value."""
    if kind in (CALC, DOUBLE):
        return e
    if kind == SHORT and is_whole(x):
        return 0.0
    return abs(x) * _EPSILON


@inlined
def _promoted(kind: int, x: float, e: float) -> float:
    """Return a bound for the distance of ``x`` from the double nearest to the exact value."""
    if kind == CALC and e != 0.0:
        return e + abs(x) * _EPSILON
    return e if kind == DOUBLE else 0.0


@inlined
def _rough(z: float, e: float) -> tuple[int, float, float]:
    """Return a double with an error of at most ``e``, if that is meaningful."""
    e = e * (1.0 + 1e-9) + abs(z) * _ULPS * _EPSILON + 1e-300
    if not (abs(z) < 1e300 and e < 1e300):
        return BEYOND, 0.0, 0.0
    return DOUBLE, z, e


@inlined
def kind_of_truth(verdict: int) -> int:
    """Return the kind of a truth value: true, false, an error, or unknown."""
    if verdict == UNKNOWN:
        return BEYOND
    if verdict == EARLY:
        return MISSING
    return NOTHING if verdict == ERRED else BOOLEAN


@inlined
def verdict_of(kind: int) -> int:
    """Return the verdict of a condition of this kind: an error, or unknown."""
    if kind == BEYOND:
        return UNKNOWN
    return EARLY if kind == MISSING else ERRED


@inlined
def _failed(xk: int, yk: int) -> int:
    """Return the kind of a result if an operand has no value or an unknown one; else ``SHORT``."""
    if xk == NOTHING or yk == NOTHING:
        return NOTHING
    if xk == BEYOND or yk == BEYOND:
        return BEYOND
    return MISSING if xk == MISSING or yk == MISSING else SHORT


@part
def _at_times(op: int, xk: int, x: float, yk: int, y: float) -> tuple[int, float, float]:
    """Return kind, value and error where one of two values is a moment or a duration."""
    kind = NOTHING
    if xk == MOMENT and yk == MOMENT and op == SUBTRACT:
        kind = DURATION
    elif yk == DURATION and xk in (MOMENT, DURATION) and op in (ADD, SUBTRACT):
        kind = xk
    elif xk == DURATION and yk == MOMENT and op == ADD:
        kind = MOMENT
    z = x + y if op == ADD else x - y
    return (kind if kind == NOTHING or is_whole(z) else BEYOND), z, 0.0


@part
def calculate(
    op: int, xk: int, x: float, xe: float, yk: int, y: float, ye: float
) -> tuple[int, float, float]:
    """Return kind, value and error of ``x op y`` (comparison.arithmetic)."""
    failed = _failed(xk, yk)
    if failed != SHORT:
        return failed, 0.0, 0.0
    if xk in (MOMENT, DURATION) or yk in (MOMENT, DURATION):
        return _at_times(op, xk, x, yk, y)
    if xk >= NODE or yk >= NODE:
        return NOTHING, 0.0, 0.0
    if op == ADD:
        z = x + y
    elif op == SUBTRACT:
        z = x - y
    elif op == MULTIPLY:
        z = x * y
    else:
        z = x / y
    promoted = xk == DOUBLE or yk == DOUBLE
    if promoted:
        a, b = _promoted(xk, x, xe), _promoted(yk, y, ye)
        if a == 0.0 and b == 0.0:
            return DOUBLE, z, 0.0
    else:
        a, b = error_of(xk, x, xe), error_of(yk, y, ye)
    if op == DIVIDE:
        if y == 0.0 and b == 0.0 and not promoted:
            return NOTHING, 0.0, 0.0
        if abs(y) <= 2.0 * b:
            return BEYOND, 0.0, 0.0
        if a == 0.0 and b == 0.0 and is_whole(z) and z * y == x:
            return CALC, z, 0.0
        e = (a + abs(z) * b) / (abs(y) - b) + abs(z) * 4.0 * _EPSILON
    elif op == MULTIPLY:
        if a == 0.0 and b == 0.0 and abs(z) <= _WHOLE:
            return CALC, z, 0.0
        if not promoted and (a == x == 0.0 or b == y == 0.0):
            return CALC, 0.0, 0.0
        e = abs(x) * b + abs(y) * a + a * b + abs(z) * _EPSILON
    else:
        if a == 0.0 and b == 0.0 and is_exact_sum(z):
            return CALC, z, 0.0
        e = a + b + abs(z) * _EPSILON
    if promoted:
        return _rough(z, e)
    e = e * (1.0 + 1e-9) + 1e-300
    if not (abs(z) < 1e300 and e < 1e300):
        return BEYOND, 0.0, 0.0
    return CALC, z, e


@part
def absolute(kind: int, x: float, e: float) -> tuple[int, float, float]:
    """Return kind, value and error of ``ABS(x)``."""
    if kind <= NOTHING:
        return kind, 0.0, 0.0
    if kind >= NODE:
        return NOTHING, 0.0, 0.0
    if kind in (SHORT, LONG):
        e = error_of(kind, x, e)
        kind = CALC
    return kind, abs(x), e


@part
def applied(op: int, xk: int, x: float, xe: float, yk: int, y: float, ye: float) -> tuple[int, float, float]:
    """Return kind, value and error of a function of libm; a unary function gets an exact zero as
    the second.
    """
    failed = _failed(xk, yk)
    if failed != SHORT:
        return failed, 0.0, 0.0
    if xk >= NODE or yk >= NODE:
        return NOTHING, 0.0, 0.0
    a, b = _promoted(xk, x, xe), _promoted(yk, y, ye)
    z = function(op, x, y)
    if a == 0.0 and b == 0.0:
        return DOUBLE, z, 0.0
    if op in (SIN, COS):
        return _rough(z, a)
    if op == ATAN2:
        far = np.sqrt(x * x + y * y) - 2.0 * (a + b)
        if far <= 0.0 or (y < b and abs(x) <= 2.0 * a):
            return BEYOND, 0.0, 0.0
        return _rough(z, (a + b) / far)
    if op == TAN or b != 0.0:
        return BEYOND, 0.0, 0.0
    if op == POW and x <= 2.0 * a:
        if not (is_whole(y) and y >= 1.0):
            return BEYOND, 0.0, 0.0
        return _rough(z, y * function(POW, abs(x) + a, y - 1.0) * a)
    # All other functions are monotonic in this interval.
    low, high = function(op, x - a, y), function(op, x + a, y)
    if not (abs(low) < 1e300 and abs(high) < 1e300):
        return BEYOND, 0.0, 0.0
    return _rough(z, max(abs(z - low), abs(high - z)))


@inlined
def ordered(op: int, order: int) -> int:
    """Return the result of a comparison of two values in this order: less (-1), equal (0) or greater (1)."""
    if op == EQUAL:
        return TRUE if order == 0 else FALSE
    if op == UNEQUAL:
        return TRUE if order != 0 else FALSE
    if op == LESS:
        return TRUE if order < 0 else FALSE
    if op == GREATER:
        return TRUE if order > 0 else FALSE
    if op == AT_MOST:
        return TRUE if order <= 0 else FALSE
    return TRUE if order >= 0 else FALSE


@part
def compare(op: int, left: StackValue, right: StackValue) -> int:
    """Return ``left op right``."""
    xk, x, xe, xi = left
    yk, y, ye, yi = right
    failed = _failed(xk, yk)
    if failed != SHORT:
        return verdict_of(failed)
    order = -1 if x < y else (1 if x > y else 0)
    if xk >= NODE or yk >= NODE:
        if xk == yk and xk >= MOMENT:
            return ordered(op, order)
        if op > UNEQUAL:
            return UNKNOWN if xk == STRING and yk == STRING else ERRED
        return ordered(op, 0 if xi == yi and xk == yk else 1)
    if xk == DOUBLE or yk == DOUBLE:
        if x != x or y != y:
            return TRUE if op == UNEQUAL else FALSE
        rounded = (xk >= DOUBLE and xe != 0.0) or (yk >= DOUBLE and ye != 0.0)
        if rounded and abs(x - y) <= 2.0 * (xe + ye) + abs(x) * _EPSILON:
            return UNKNOWN
        return ordered(op, order)
    if xk != CALC and yk != CALC:
        if order != 0 or (xk == SHORT and yk == SHORT) or xi == yi:
            return ordered(op, order)
        return UNKNOWN
    a, b = error_of(xk, x, xe), error_of(yk, y, ye)
    if (a != 0.0 or b != 0.0) and abs(x - y) <= (a + b) * (1.0 + 1e-9):
        return UNKNOWN
    return ordered(op, order)


@part
def truth(kind: int, x: float, e: float) -> int:
    """Return the effective boolean value."""
    if kind <= NOTHING:
        return verdict_of(kind)
    if kind in (NODE, MOMENT, DURATION):
        return ERRED
    if kind in (CALC, DOUBLE) and e != 0.0 and abs(x) <= e:
        return UNKNOWN
    return FALSE if x == 0.0 or x != x else TRUE


@part
def either(left: int, right: int, decisive: int) -> int:
    """Three-valued OR (``decisive`` TRUE) and AND (FALSE): a decisive side outweighs an error."""
    if left == decisive or right == decisive:
        return decisive
    if left == UNKNOWN or right == UNKNOWN:
        return UNKNOWN
    if left == ERRED or right == ERRED:
        return ERRED
    return EARLY if left == EARLY or right == EARLY else left
