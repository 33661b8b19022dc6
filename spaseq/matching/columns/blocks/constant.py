"""Columns that say the same in most blocks: numbers in turn, and zeros. Short ones are parts of one array.

They are not to be written: many batches of matches have them.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt

#: Columns up to this long, which most are, are parts of one.
_MOST: Final = (1 << 16) + 1


def counted(size: int) -> npt.NDArray[np.int64]:
    """The numbers below ``size``.

    >>> counted(3)
    array([0, 1, 2])
    """
    return _counted()[:size] if size <= _MOST else np.arange(size)


def zeros(size: int) -> npt.NDArray[np.int32]:
    """So many zeros."""
    return _zeros()[:size] if size <= _MOST else np.zeros(size, dtype=np.int32)


@cache
def _counted() -> npt.NDArray[np.int64]:
    return _fixed(np.arange(_MOST))


@cache
def _zeros() -> npt.NDArray[np.int32]:
    return _fixed(np.zeros(_MOST, dtype=np.int32))


def _fixed(column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    column.flags.writeable = False
    return column
