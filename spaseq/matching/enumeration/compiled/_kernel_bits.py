"""Bits of integers."""

from __future__ import annotations

from typing import Final

from spaseq._jit import inlined

_LOW: Final = (1 << 32) - 1


@inlined
def lowest(bits: int) -> int:
    """The number of the lowest bit of some: LLVM knows this loop, and makes one instruction of it."""
    below = (bits & -bits) - 1
    count = 0
    while below:
        below &= below - 1
        count += 1
    return count


@inlined
def index(number: int) -> int:
    """A number that is not negative, in words for LLVM, which then need not think of places from the end."""
    return number & _LOW
