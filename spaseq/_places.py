"""Where arrays of integers begin in memory: columns that kernels read where they stand, and write there."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
from numba.core import types
from numba.extending import intrinsic

Ints = npt.NDArray[np.int64]

_KIND: Final = np.dtype(np.int64)
_ITEM: Final = _KIND.itemsize


def plain(column: Ints) -> Ints:
    """A column that a place can be told of: itself, unless its integers do not stand one after the other."""
    flags = column.flags
    is_plain = flags.c_contiguous and flags.aligned and column.dtype == _KIND
    return column if is_plain else np.array(column, dtype=_KIND)


def address(array: Ints) -> int:
    """Where in memory an array begins."""
    begin: int = array.__array_interface__["data"][0]
    return begin


def place(column: Ints, begin: int) -> int:
    """How far a column, which is plain, begins from an array that begins at an address."""
    return (address(column) - begin) // _ITEM


def _pointer(_context: Any, array: Any) -> Any:
    """Where an array's numbers begin. It is indexed like the array, and a call passes it in one register.

    Of no array, None: as constant as that.
    """
    if isinstance(array, types.NoneType):
        return array(array), lambda context, *_: context.get_dummy_value()

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = context.make_array(signature.args[0])
        return kind(context, builder, arguments[0]).data

    pointer_to: Any = types.CPointer
    return pointer_to(array.dtype)(array), generate


pointer: Any = intrinsic(_pointer)
