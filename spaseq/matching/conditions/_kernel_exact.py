"""Comparisons of whole numbers, and of sums of two of them, which doubles decide: most conditions are one.

They are decided without the stack, and as it would decide them.
"""

from __future__ import annotations

from typing import Final

from spaseq._jit import inlined
from spaseq.matching.conditions import batch
from spaseq.matching.conditions._kernel_arithmetic import is_exact_sum, is_whole, ordered
from spaseq.matching.conditions._kernel_values import (
    ADD,
    CODE_SIZE,
    COMPARE,
    CONSTANT,
    SHORT,
    SLOTS,
    SUBTRACT,
    Codes,
    Floats,
    Ints,
)

#: It is another condition, or of other values.
OTHER: Final = -3


@inlined
def id_of(m: Ints, w: int, slot: int, b: Ints, column: int, r: int) -> int:
    """The id of a variable: the event's, or else the run's."""
    if column >= 0:
        identifier = b[batch.column(b, column) + r]
        if identifier != 0:
            return int(identifier)
    return m[w + SLOTS + slot] if slot >= 0 else 0


@inlined
def _short(t: Ints, pc: int, m: Ints, w: int, b: Ints, r: int, codes: Codes) -> int:
    """The id that an instruction pushes if it is of a short number, else 0."""
    a = t[pc + 1]
    identifier = a if t[pc] == CONSTANT else id_of(m, w, t[pc + 2], b, t[pc + 3], r)
    return identifier if identifier > 0 and codes[identifier] == SHORT else 0


@inlined
def compared(
    t: Ints, pc: int, end: int, m: Ints, w: int, b: Ints, r: int, numbers: Floats, codes: Codes
) -> tuple[int, int]:
    """The verdict of the condition that begins at ``pc``, and where the next does; ``OTHER`` of others."""
    second, third, fourth = pc + CODE_SIZE, pc + 2 * CODE_SIZE, pc + 3 * CODE_SIZE
    if fourth > end or t[second] > CONSTANT:
        return OTHER, pc
    first_id, second_id = _short(t, pc, m, w, b, r, codes), _short(t, second, m, w, b, r, codes)
    if first_id == 0 or second_id == 0:
        return OTHER, pc
    x, y = numbers[first_id], numbers[second_id]
    if t[third] == COMPARE:
        return ordered(t[third + 1], -1 if x < y else int(x > y)), fourth
    fifth = pc + 4 * CODE_SIZE
    if fifth + CODE_SIZE > end or t[fifth] != COMPARE:
        return OTHER, pc
    is_last = t[third] <= CONSTANT
    number, op = third if is_last else fourth, t[fourth] if is_last else t[third]
    if t[number] > CONSTANT or (op != ADD and op != SUBTRACT):
        return OTHER, pc
    third_id = _short(t, number, m, w, b, r, codes)
    z = numbers[third_id]
    if third_id == 0 or not (is_whole(x) and is_whole(y) and is_whole(z)):
        return OTHER, pc
    if is_last:
        y = y + z if op == ADD else y - z
        if not is_exact_sum(y):
            return OTHER, pc
    else:
        x, y = (x + y if op == ADD else x - y), z
        if not is_exact_sum(x):
            return OTHER, pc
    return ordered(t[fifth + 1], -1 if x < y else int(x > y)), fifth + CODE_SIZE
