"""The kernel that reads numbers: the usual forms of integers, decimals and doubles, exactly rounded."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from spaseq._jit import kernel, part
from spaseq.terms._table_kernel import KIND, LENGTH, LITERAL, START, Bytes, Ids, ends_with
from spaseq.terms.values import EXACT_ORDER, IS_DOUBLE

_XSD: Final = b'"^^<http://www.w3.org/2001/XMLSchema#'
_INTEGER: Final = np.frombuffer(_XSD + b"integer>", dtype=np.uint8)
_DECIMAL: Final = np.frombuffer(_XSD + b"decimal>", dtype=np.uint8)
_DOUBLE: Final = np.frombuffer(_XSD + b"double>", dtype=np.uint8)

#: Numbers of up to 15 digits and powers of ten up to 10²² are exact doubles: one operation rounds once.
_DIGITS: Final = 15
_POWERS: Final = np.array([float(10**power) for power in range(23)])

_0: Final = ord("0")
_9: Final = ord("9")
_PLUS: Final = ord("+")
_MINUS: Final = ord("-")
_DOT: Final = ord(".")
_SMALL_E: Final = ord("e")
_LARGE_E: Final = ord("E")


@part
def _number(arena: Bytes, start: int, end: int, has_point: bool, has_power: bool) -> tuple[bool, float]:
    """Return whether a number's text has a usual form, and the double nearest to it."""
    i = start
    negative = arena[i] == _MINUS
    if negative or arena[i] == _PLUS:
        i += 1
    mantissa = digits = scale = 0
    point = False
    while i < end:
        c = arena[i]
        if c >= _0 and c <= _9:
            mantissa = mantissa * 10 + (c - _0)
            digits += 1
            if point:
                scale += 1
        elif c == _DOT and has_point and not point:
            point = True
        else:
            break
        i += 1
        if digits > _DIGITS:
            return False, 0.0
    power = 0
    if has_power and digits > 0 and i + 1 < end and (arena[i] == _SMALL_E or arena[i] == _LARGE_E):
        i += 1
        down = arena[i] == _MINUS
        if down or arena[i] == _PLUS:
            i += 1
        first = i
        while i < end and i < first + 3 and arena[i] >= _0 and arena[i] <= _9:
            power = power * 10 + (arena[i] - _0)
            i += 1
        if i == first:
            return False, 0.0
        power = -power if down else power
    power -= scale
    if digits == 0 or i != end or power < -22 or power > 22:
        return False, 0.0
    found = mantissa / _POWERS[-power] if power < 0 else mantissa * _POWERS[power]
    return True, -found if negative else found


@kernel
def read_numbers(
    terms: Ids, arena: Bytes, ids: Ids, numbers: npt.NDArray[np.float64], ranks: npt.NDArray[np.int8]
) -> None:
    """Write the double of each literal that is a number in a usual form, and its rank, at its id's index."""
    for identifier in ids:
        if terms[identifier, KIND] != LITERAL:
            continue
        start = terms[identifier, START]
        end = start + terms[identifier, LENGTH]
        rank = EXACT_ORDER
        if ends_with(arena, start, end, _INTEGER):
            usual, found = _number(arena, start + 1, end - len(_INTEGER), False, False)
        elif ends_with(arena, start, end, _DECIMAL):
            usual, found = _number(arena, start + 1, end - len(_DECIMAL), True, False)
        elif ends_with(arena, start, end, _DOUBLE):
            usual, found = _number(arena, start + 1, end - len(_DOUBLE), True, True)
            rank = IS_DOUBLE
        else:
            continue
        if usual:
            if rank == EXACT_ORDER and found == 0.0:
                found = 0.0  # the zero of integers and decimals has no sign
            numbers[identifier] = found
            ranks[identifier] = rank


@kernel
def first_with(code: int, ids: Ids, codes: npt.NDArray[np.int8]) -> int:
    """Return the index of the first term that has a code; the number of terms, if none has it."""
    i = 0
    while i < len(ids) and codes[ids[i]] != code:
        i += 1
    return i


@kernel
def distinct_with(
    code: int, ids: Ids, codes: npt.NDArray[np.int8], seen: npt.NDArray[np.bool_], found: Ids
) -> int:
    """Write the distinct terms that have a code; return their number.

    ``seen``, by id, is false at first; ``found`` has room for one more than there may be.
    """
    count = 0
    for identifier in ids:
        # Branch-free: which terms are new is hard to predict, so each is written, and kept only if it is new.
        is_new = (codes[identifier] == code) & (not seen[identifier])
        found[count] = identifier
        seen[identifier] |= is_new
        count += is_new
    return count
