"""Aggregates of Kleene closures: adding an iteration, and their value in a condition."""

from __future__ import annotations

from spaseq._jit import inlined, part
from spaseq.matching.filters._kernel_arithmetic import calculate
from spaseq.matching.filters._kernel_values import (
    A_KIND,
    A_KLEENE,
    A_OFFSET,
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
    AGGREGATES,
    BEYOND,
    CALC,
    DOUBLE,
    ERROR,
    FAULT,
    MANY,
    MISSING,
    N_KLEENES,
    N_SLOTS,
    NOTHING,
    SHORT,
    SLOTS,
    Codes,
    Floats,
    Ints,
    RunMachine,
)


@inlined
def kind_of(identifier: int, codes: Codes) -> int:
    """Return the kind of an id: that of its term, BEYOND for several values, NOTHING for no term
    or a fault.
    """
    if identifier == MANY:
        return BEYOND
    if identifier <= 0 or codes[identifier] == FAULT:
        return NOTHING
    return int(codes[identifier])


@part
def _better(kind: int, a: int, b: int, numbers: Floats, codes: Codes) -> int:
    """Return the smaller (ACC_MIN) or greater of two terms; MANY if the tables cannot decide."""
    if a == 0 or a == b:
        return b
    if b == 0:
        return a
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
    """Set a sum to zero, exactly."""
    f[at] = 0.0
    f[at + 1] = 0.0
    f[at + 2] = CALC


@part
def _further(kind: int, known: int, nearer: int, current: int) -> int:
    """Return the next value of an aggregate with an offset; ``nearer`` is the one with the next smaller
    offset.
    """
    if kind == ACC_PREVIOUS:
        return nearer
    if known == MANY or current == 0 or (kind == ACC_FIRST and known != 0):
        return known
    if current == MANY:
        return MANY  # the solutions of this iteration differ
    if kind == ACC_FIRST:
        return current if nearer != 0 else 0
    return nearer


@part
def _folded(
    kind: int, offset: int, known: int, nearer: int, current: int, numbers: Floats, codes: Codes
) -> int:
    """Return an aggregate that is a term or a count, after one more value; unchanged if the value is
    unbound.
    """
    if kind != ACC_PREVIOUS and (known == ERROR or (current > 0 and codes[current] == FAULT)):
        return ERROR
    if offset > 0:
        return _further(kind, known, nearer, current)
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
    return _better(kind, known, current, numbers, codes)


@part
def _summed(
    k: int, x: float, e: float, current: int, numbers: Floats, codes: Codes
) -> tuple[int, float, float]:
    if current == 0:
        return k, x, e
    kind = kind_of(current, codes)
    y = numbers[current] if kind >= SHORT else 0.0
    return calculate(ADD, k, x, e, kind, y, 0.0)


@part
def fold(t: Ints, m: Ints, f: Floats, w: int, sums: int, number: int, numbers: Floats, codes: Codes) -> None:
    """End an iteration: an aggregate of a wait takes the value of its slot."""
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
    m[at] = _folded(t[a + A_KIND], t[a + A_OFFSET], m[at], m[at + 1], current, numbers, codes)


@part
def aggregated(
    machine: RunMachine, w: int, sums: int, number: int, inside: bool, current: int
) -> tuple[int, int, float, float]:
    """Return kind, id, value and error of an aggregate."""
    t, m, f, numbers, codes = machine.t, machine.m, machine.f, machine.n, machine.c
    a = t[AGGREGATES] + number * A_SIZE
    kind, offset = t[a + A_KIND], t[a + A_OFFSET]
    completed = w + SLOTS + t[N_SLOTS] + t[N_KLEENES] + t[a + A_KLEENE]
    if kind == ACC_SUM:
        at = sums + t[a + A_SUM]
        k, x, e = int(f[at + 2]), f[at], f[at + 1]
        if inside:
            k, x, e = _summed(k, x, e, current, numbers, codes)
        return k, 0, x, e
    at = w + SLOTS + t[N_SLOTS] + 2 * t[N_KLEENES] + number
    known = m[at]
    if kind == ACC_PREVIOUS and m[completed] <= offset:
        return MISSING, 0, 0.0, 0.0
    if inside:
        known = _folded(kind, offset, known, m[at + 1], current, numbers, codes)
    if kind == ACC_COUNT:
        return (CALC if known >= 0 else kind_of(known, codes)), 0, float(known), 0.0
    k = kind_of(known, codes)
    return k, known, (numbers[known] if k >= SHORT else 0.0), 0.0
