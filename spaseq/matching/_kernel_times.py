"""Sums and differences of times that end where 64 bits do, so that windows of far-off times do not wrap.

Compare inclusively: ``time <= reach_after(first, limit)`` is exact over all 64 bits, and so is
``reach_before(now, limit) <= time``. In compiled code nothing may wrap: LLVM takes for granted that signed
numbers do not.
"""

from __future__ import annotations

from typing import Final

from spaseq._jit import inlined

#: Those of ``spaseq.events``, which is not imported: kernels are compiled again when such a file changes.
EARLIEST: Final = -(1 << 63)
LATEST: Final = (1 << 63) - 1


@inlined
def reach_after(time: int, limit: int) -> int:
    """Return the last time that is at most ``limit`` (at least 0) after another one."""
    return time + limit if time <= LATEST - limit else LATEST


@inlined
def reach_before(time: int, limit: int) -> int:
    """Return the first time that is at most ``limit`` (at least 0) before another one."""
    return time - limit if time >= EARLIEST + limit else EARLIEST
