"""Columns that say the same in most blocks: numbers in turn, and zeros. Short ones are parts of one array.

They are not to be written: many batches of matches have them.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt

#: Columns up to this long, which most are, are parts of one.
_MOST: Final = (1 << 16) + 1
#: Of so many lengths the part is kept.
_KEPT: Final = 1 << 9


@lru_cache(_KEPT)
def of_matches(size: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    """Of so many matches the offsets of what each has one of, and zeros: ``counted`` and ``zeros``."""
    return counted(size + 1), zeros(size)


def counted(size: int) -> npt.NDArray[np.int64]:
    """The numbers below ``size``.

    >>> counted(3)
    array([0, 1, 2])
    """
    return _counted(size) if size <= _MOST else np.arange(size)


def zeros(size: int) -> npt.NDArray[np.int32]:
    """So many zeros."""
    return _zeros(size) if size <= _MOST else np.zeros(size, dtype=np.int32)


# Parts of one array, which take little: of a thousand queries each may ask for one of the same length.
@lru_cache(_KEPT)
def _counted(size: int) -> npt.NDArray[np.int64]:
    return _all_counted()[:size]


@lru_cache(_KEPT)
def _zeros(size: int) -> npt.NDArray[np.int32]:
    return _all_zeros()[:size]


@cache
def _all_counted() -> npt.NDArray[np.int64]:
    return _fixed(np.arange(_MOST))


@cache
def _all_zeros() -> npt.NDArray[np.int32]:
    return _fixed(np.zeros(_MOST, dtype=np.int32))


def _fixed(column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    column.flags.writeable = False
    return column
