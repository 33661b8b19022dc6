"""Columns computed when they are read: constant ones, values at some places, dictionary-encoded ones."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spaseq.matching.columns.blocks import _kernel_found as k
from spaseq.terms.dictionary import UNBOUND, in_order

# Columns that are equal in most blocks: 0, 1, 2, … and zeros. Short ones are slices of one array.
#
# They are read-only: many batches of matches share them.

#: Columns up to this length are slices of a shared array.
_MOST: Final = (1 << 16) + 1
#: The slices of this many lengths are cached.
_KEPT: Final = 1 << 9


@lru_cache(_KEPT)
def of_matches(size: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    """Return offsets for one item per match, and zeros: ``counted`` and ``zeros``."""
    return counted(size + 1), zeros(size)


def counted(size: int) -> npt.NDArray[np.int64]:
    """Return the numbers below ``size``.

    >>> counted(3)
    array([0, 1, 2])
    """
    return _counted(size) if size <= _MOST else np.arange(size)


def zeros(size: int) -> npt.NDArray[np.int32]:
    """Return zeros."""
    return _zeros(size) if size <= _MOST else np.zeros(size, dtype=np.int32)


# Slices of one array, which are small: each of a thousand queries may need one of the same length.
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


# Values at some places of a longer column, which are copied when they are read.

Ints = npt.NDArray[np.int64]
Ids = Ints | npt.NDArray[np.int32]


class Picked:
    """Values of a column, as many as ``len`` says, at the places ``at[first]``, ``at[first + step]``, …"""

    __slots__ = ("at", "count", "first", "step", "values")

    def __init__(self, values: Ids, at: Ints, first: int, step: int, count: int) -> None:
        self.values = values
        self.at = at
        self.first = first
        self.step = step
        self.count = count

    def __len__(self) -> int:
        return self.count

    def ids(self) -> Ints:
        """Return the values."""
        out = np.empty(self.count, dtype=np.int64)
        k.gather(self.values, self.at, self.first, self.step, out)
        return out


class ColumnPieces:
    """Concatenated columns, which are joined when they are read."""

    __slots__ = ("parts",)

    def __init__(self, parts: Sequence[Column]) -> None:
        self.parts = parts

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    def ids(self) -> Ints:
        """Return the values."""
        return np.concatenate([all_ids(part) for part in self.parts])


Column = Ints | Picked | ColumnPieces


def all_ids(column: Column) -> Ints:
    """Return a column of Ω."""
    return column.ids() if isinstance(column, Picked | ColumnPieces) else column


# Columns of ids of terms → dictionary-encoded ones: the distinct ids, and indexes of them.

Numbers = npt.NDArray[np.int32]

#: If the ids given so far are this many times more than those of the columns, sorting is used, not a table.
_SPARSE: Final = 64


class Encoded(NamedTuple):
    """Ω of matches: rows ``offsets[i]`` to ``offsets[i + 1]``, each variable's values as indexes of ``used``.

    -1 means unbound.
    """

    offsets: Ints
    columns: dict[str, Numbers]
    used: Ints


def numbered(columns: Sequence[Column], limit: int) -> tuple[Ints, list[Numbers]]:
    """Return the distinct ids in some columns, and each column as indexes of them, -1 for ``UNBOUND``.

    All ids are below ``limit``.
    """
    size = sum(map(len, columns))
    if limit > _SPARSE * max(size, 1 << 10):
        plain = [all_ids(column) for column in columns]
        used = in_order(np.concatenate([np.zeros(0, dtype=np.int64), *plain]))
        used = used[used != UNBOUND]
        found = [np.searchsorted(used, column).astype(np.int32) for column in plain]
        for numbers, ids in zip(found, plain, strict=True):
            numbers[ids == UNBOUND] = -1
        return used, found
    places = np.zeros(limit, dtype=np.int64)
    used = np.empty(min(size, limit), dtype=np.int64)
    found = [_encoded(column, places, used) for column in columns]
    return used[: places.item(0)].copy(), found


def _encoded(column: Column, places: Ints, used: Ints) -> Numbers:
    """Return a column as indexes of ids; see ``_kernel_found.encode``."""
    out = np.empty(len(column), dtype=np.int32)
    _encode(column, places, used, out)
    return out


def _encode(column: Column, places: Ints, used: Ints, out: Numbers) -> None:
    if isinstance(column, ColumnPieces):
        begin = 0
        for part in column.parts:
            _encode(part, places, used, out[begin : begin + len(part)])
            begin += len(part)
    elif isinstance(column, Picked):
        k.encode_at(column.values, column.at, column.first, column.step, places, used, out)
    else:
        k.encode(np.ascontiguousarray(column), places, used, out)


def numbered_by_part(columns: Sequence[Ints], bounds: Ints, limit: int) -> tuple[Ints, Ints, list[Numbers]]:
    """Do the same for each of many parts separately.

    Part i has the rows from ``bounds[i]`` to ``bounds[i + 1]``, and the ids (the first result) from one place
    to the next of the second array.
    """
    values = np.stack(columns) if columns else np.zeros((0, int(bounds[-1])), dtype=np.int64)
    used, ends = np.empty(values.size, dtype=np.int64), np.zeros(len(bounds), dtype=np.int64)
    numbers = np.empty(values.shape, dtype=np.int32)
    k.number(values, bounds, np.full(limit, -1, dtype=np.int64), used, ends[1:], numbers)
    return used[: ends[-1]], ends, list(numbers)
