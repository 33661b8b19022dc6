"""Conditions as data: a small postfix machine over term ids, and the aggregates of Kleene closures.

Doubles decide where that is exact, and say ``UNKNOWN`` where it is not. Every number on the stack has a
kind: a term whose double identifies it among such terms (``SHORT``: at most 15 digits) or not (``LONG``); an
``xsd:double``; the result of exact arithmetic, known up to an error (``CALC``).
"""

from __future__ import annotations

from typing import Final

import numpy as np

from spaseq._jit import inlined, part
from spaseq.matching.kernel._kernel_values import (
    A_KIND,
    A_KLEENE,
    A_SIZE,
    A_SLOT,
    A_SUM,
    ACC_COUNT,
    ACC_FIRST,
    ACC_LAST,
    ACC_MIN,
    ACC_PREVIOUS,
    ACC_SUM,
    ADD,
    AGGREGATE,
    AGGREGATES,
    AT_MOST,
    AVERAGE,
    B_COLUMNS,
    BEYOND,
    CALC,
    CODE_SIZE,
    COMPARE,
    CONSTANT,
    DEEPEST,
    DIVIDE,
    DOUBLE,
    EQUAL,
    ERROR,
    FALSE,
    GREATER,
    IF_BOUND,
    IF_COMPLETED,
    LESS,
    LONG,
    MANY,
    MINUS,
    MOMENT,
    MULTIPLY,
    N_KLEENES,
    N_SLOTS,
    NODE,
    NOTHING,
    ONE,
    SHORT,
    SLOTS,
    STRING,
    SUBTRACT,
    TRUE,
    UNEQUAL,
    UNKNOWN,
    Codes,
    Floats,
    Ints,
)

_EPSILON: Final = 2.0**-52
_WHOLE: Final = 2.0**53


@inlined
def _kind(identifier: int, codes: Codes) -> int:
    if identifier == MANY:
        return BEYOND
    if identifier <= 0:
        return NOTHING
    return int(codes[identifier])


@inlined
def _is_whole(x: float) -> bool:
    return abs(x) <= _WHOLE and x == np.floor(x)


@inlined
def _error(kind: int, x: float, e: float) -> float:
    """How far ``x`` may be from the exact value."""
    if kind == CALC:
        return e
    if kind == SHORT and _is_whole(x):
        return 0.0
    return abs(x) * _EPSILON


@part
def _calculate(
    op: int, xk: int, x: float, xe: float, yk: int, y: float, ye: float
) -> tuple[int, float, float]:
    """Kind, value and error of ``x op y`` (comparison.arithmetic)."""
    if xk == MOMENT or yk == MOMENT:
        return BEYOND, 0.0, 0.0
    if xk == NOTHING or yk == NOTHING or xk >= NODE or yk >= NODE:
        return NOTHING, 0.0, 0.0
    if xk == BEYOND or yk == BEYOND:
        return BEYOND, 0.0, 0.0
    if op == ADD:
        z = x + y
    elif op == SUBTRACT:
        z = x - y
    elif op == MULTIPLY:
        z = x * y
    else:
        z = x / y
    if xk == DOUBLE or yk == DOUBLE:
        # What is promoted must be the double nearest to the exact value.
        if (xk == CALC and xe != 0.0) or (yk == CALC and ye != 0.0):
            return BEYOND, 0.0, 0.0
        return DOUBLE, z, 0.0
    a, b = _error(xk, x, xe), _error(yk, y, ye)
    if op == DIVIDE:
        if y == 0.0 and b == 0.0:
            return NOTHING, 0.0, 0.0
        if abs(y) <= 2.0 * b:
            return BEYOND, 0.0, 0.0
        if a == 0.0 and b == 0.0 and _is_whole(z) and z * y == x:
            return CALC, z, 0.0
        e = (a + abs(z) * b) / (abs(y) - b) + abs(z) * 4.0 * _EPSILON
    elif op == MULTIPLY:
        if a == 0.0 and b == 0.0 and abs(z) <= _WHOLE:
            return CALC, z, 0.0
        e = abs(x) * b + abs(y) * a + a * b + abs(z) * _EPSILON
    else:
        if a == 0.0 and b == 0.0 and abs(z) <= _WHOLE:
            return CALC, z, 0.0
        e = a + b + abs(z) * _EPSILON
    e = e * (1.0 + 1e-9) + 1e-300
    if not (abs(z) < 1e300 and e < 1e300):
        return BEYOND, 0.0, 0.0
    return CALC, z, e


@inlined
def _ordered(op: int, order: int) -> int:
    """The comparison of two values that are less (-1), equal (0) or greater (1)."""
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
def _compare(op: int, xk: int, x: float, xe: float, xi: int, yk: int, y: float, ye: float, yi: int) -> int:
    """``x op y``; an error is FALSE. ``xi``, ``yi``: the ids, 0 if it is no term."""
    if xk == NOTHING or yk == NOTHING:
        return FALSE
    if xk == BEYOND or yk == BEYOND:
        return UNKNOWN
    if xk == MOMENT or yk == MOMENT:
        if xk != yk:
            return UNKNOWN
        return _ordered(op, -1 if x < y else (1 if x > y else 0))
    if xk >= NODE or yk >= NODE:
        if op > UNEQUAL:
            return UNKNOWN if xk == STRING and yk == STRING else FALSE
        return _ordered(op, 0 if xi == yi else 1)
    order = -1 if x < y else (1 if x > y else 0)
    if xk == DOUBLE or yk == DOUBLE:
        if x != x or y != y:
            return TRUE if op == UNEQUAL else FALSE
        rounded = (xk == CALC and xe != 0.0) or (yk == CALC and ye != 0.0)
        if rounded and abs(x - y) <= 2.0 * (xe + ye) + abs(x) * _EPSILON:
            return UNKNOWN
        return _ordered(op, order)
    if xk != CALC and yk != CALC:
        if order != 0 or (xk == SHORT and yk == SHORT) or xi == yi:
            return _ordered(op, order)
        return UNKNOWN
    a, b = _error(xk, x, xe), _error(yk, y, ye)
    if (a != 0.0 or b != 0.0) and abs(x - y) <= (a + b) * (1.0 + 1e-9):
        return UNKNOWN
    return _ordered(op, order)


@part
def _better(kind: int, a: int, b: int, numbers: Floats, codes: Codes) -> int:
    """The smaller (ACC_MIN) or greater term of two; MANY if the tables cannot tell."""
    if a == ERROR or b == ERROR or b == 0:
        return ERROR
    if a == 0 or a == b:
        return b
    if a == MANY or b == MANY:
        return MANY
    p, q = codes[a], codes[b]
    if p < SHORT or p > DOUBLE or q < SHORT or q > DOUBLE:
        return MANY
    x, y = numbers[a], numbers[b]
    if x == y:
        return a if (p == SHORT and q == SHORT) or (p == DOUBLE and q == DOUBLE) else MANY
    if x != x or y != y:
        return MANY
    return a if (x < y) == (kind == ACC_MIN) else b


@part
def clear_sum(f: Floats, at: int) -> None:
    """A sum of nothing: zero, exactly."""
    f[at] = 0.0
    f[at + 1] = 0.0
    f[at + 2] = CALC


@part
def _folded(kind: int, known: int, current: int, first: bool, numbers: Floats, codes: Codes) -> int:
    """An aggregate that is a term or a count, with one more value. ``first``: it is the first one."""
    if kind == ACC_COUNT:
        if known == MANY or current == MANY:
            return MANY
        return known + 1 if current > 0 else known
    if kind == ACC_PREVIOUS:
        return current if current != 0 else ERROR
    if kind == ACC_FIRST:
        return known if known != 0 else current
    if kind == ACC_LAST:
        return current if current != 0 else known
    if first:
        return current if current != 0 else ERROR
    return _better(kind, known, current, numbers, codes)


@part
def _summed(
    k: int, x: float, e: float, current: int, numbers: Floats, codes: Codes
) -> tuple[int, float, float]:
    kind = _kind(current, codes)
    y = numbers[current] if kind >= SHORT else 0.0
    return _calculate(ADD, k, x, e, kind, y, 0.0)


@part
def fold(
    t: Ints, m: Ints, f: Floats, w: int, sums: int, number: int, first: bool, numbers: Floats, codes: Codes
) -> None:
    """An iteration ends: an aggregate of a wait takes the value of its slot."""
    a = t[AGGREGATES] + number * A_SIZE
    current = m[w + SLOTS + t[a + A_SLOT]]
    if t[a + A_KIND] == ACC_SUM:
        at = sums + t[a + A_SUM]
        k, x, e = _summed(int(f[at + 2]), f[at], f[at + 1], current, numbers, codes)
        f[at] = x
        f[at + 1] = e
        f[at + 2] = k
        return
    at = w + SLOTS + t[N_SLOTS] + 2 * t[N_KLEENES] + number
    m[at] = _folded(t[a + A_KIND], m[at], current, first, numbers, codes)


@inlined
def _current(m: Ints, w: int, slot: int, b: Ints, column: int, r: int) -> int:
    """The id of a variable: the event's, or else the run's."""
    if column >= 0:
        identifier = b[b[b[B_COLUMNS] + column] + r]
        if identifier != 0:
            return int(identifier)
    return m[w + SLOTS + slot] if slot >= 0 else 0


@part
def _aggregated(
    t: Ints, m: Ints, f: Floats, w: int, sums: int, number: int, inside: bool, current: int,
    numbers: Floats, codes: Codes,
) -> tuple[int, int, float, float]:  # fmt: skip
    """Kind, id, value and error of an aggregate."""
    a = t[AGGREGATES] + number * A_SIZE
    kind = t[a + A_KIND]
    if kind == ACC_SUM:
        at = sums + t[a + A_SUM]
        k, x, e = int(f[at + 2]), f[at], f[at + 1]
        if inside:
            k, x, e = _summed(k, x, e, current, numbers, codes)
        return k, 0, x, e
    completed = w + SLOTS + t[N_SLOTS] + t[N_KLEENES]
    known = m[completed + t[N_KLEENES] + number]
    if inside:
        known = _folded(kind, known, current, m[completed + t[a + A_KLEENE]] == 0, numbers, codes)
    if kind == ACC_COUNT:
        return (BEYOND if known == MANY else CALC), 0, float(known), 0.0
    k = _kind(known, codes)
    return k, known, (numbers[known] if k >= SHORT else 0.0), 0.0


@part
def holds(
    t: Ints, start: int, end: int, m: Ints, kinds: int, f: Floats, w: int, sums: int, b: Ints, r: int,
    numbers: Floats, codes: Codes,
) -> int:  # fmt: skip
    """Whether all conditions of a program hold for a run and a row.

    The stack: kinds and ids from ``m[kinds]`` on, numbers and errors in ``f``.
    """
    unknown = False
    top = 0
    pc = start
    while pc < end:
        op, a, slot, column = t[pc], t[pc + 1], t[pc + 2], t[pc + 3]
        pc += CODE_SIZE
        if op <= CONSTANT or op == ONE:
            identifier = a if op == CONSTANT else _current(m, w, slot, b, column, r)
            kind = _kind(identifier, codes)
            x = numbers[identifier] if kind >= SHORT else 0.0
            if op == ONE:
                kind = CALC if identifier != MANY else BEYOND
                x = 1.0 if identifier > 0 else 0.0
            m[kinds + top] = kind
            m[kinds + DEEPEST + top] = identifier
            f[1 + top] = x
            f[1 + DEEPEST + top] = 0.0
            top += 1
        elif op == COMPARE:
            top -= 2
            verdict = _compare(
                a,
                m[kinds + top], f[1 + top], f[1 + DEEPEST + top], m[kinds + DEEPEST + top],
                m[kinds + top + 1], f[2 + top], f[2 + DEEPEST + top], m[kinds + DEEPEST + top + 1],
            )  # fmt: skip
            if verdict == FALSE:
                return FALSE
            if verdict == UNKNOWN:
                unknown = True
        elif op == IF_COMPLETED:
            if m[w + SLOTS + t[N_SLOTS] + t[N_KLEENES] + slot] == 0:
                pc = a
        elif op == IF_BOUND:
            if _current(m, w, slot, b, column, r) == 0:
                pc = a
        elif op == AGGREGATE:
            inside = slot >= 0
            current = _current(m, w, slot, b, column, r) if inside else 0
            kind, identifier, x, e = _aggregated(t, m, f, w, sums, a, inside, current, numbers, codes)
            m[kinds + top] = kind
            m[kinds + DEEPEST + top] = identifier
            f[1 + top] = x
            f[1 + DEEPEST + top] = e
            top += 1
        elif op == MINUS:
            kind, x = m[kinds + top - 1], f[top]
            m[kinds + DEEPEST + top - 1] = 0
            f[top] = -x
            if kind >= NODE:
                m[kinds + top - 1] = NOTHING
            elif kind in (SHORT, LONG):
                f[DEEPEST + top] = _error(kind, x, 0.0)
                m[kinds + top - 1] = CALC
        else:
            top -= 1
            xk, x, xe = m[kinds + top - 1], f[top], f[DEEPEST + top]
            yk, y, ye = m[kinds + top], f[1 + top], f[1 + DEEPEST + top]
            if op == AVERAGE and xk == CALC and yk == CALC and y == 0.0:
                kind, x, e = CALC, 0.0, 0.0
            else:
                kind, x, e = _calculate(DIVIDE if op == AVERAGE else op, xk, x, xe, yk, y, ye)
            m[kinds + top - 1] = kind
            m[kinds + DEEPEST + top - 1] = 0
            f[top] = x
            f[DEEPEST + top] = e
    return UNKNOWN if unknown else TRUE
