"""Columns made as they are read: constant ones, values at some places, dictionary-encoded ones."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spaseq.matching.columns.blocks import _kernel_found as k
from spaseq.terms.dictionary import UNBOUND, in_order

# Columns that say the same in most blocks: numbers in turn, and zeros. Short ones are parts of one array.
#
# They are not to be written: many batches of matches have them.

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


# Values at some places of a longer column, which are not copied until they are asked for.

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
        """They themselves."""
        out = np.empty(self.count, dtype=np.int64)
        k.gather(self.values, self.at, self.first, self.step, out)
        return out


class ColumnPieces:
    """Columns one after the other, which are not put together until they are asked for."""

    __slots__ = ("parts",)

    def __init__(self, parts: Sequence[Column]) -> None:
        self.parts = parts

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    def ids(self) -> Ints:
        """They themselves."""
        return np.concatenate([all_ids(part) for part in self.parts])


Column = Ints | Picked | ColumnPieces


def all_ids(column: Column) -> Ints:
    """A column of Ω."""
    return column.ids() if isinstance(column, Picked | ColumnPieces) else column


# Columns of ids of terms → dictionary-encoded ones: the ids that are there, and numbers of them.

Numbers = npt.NDArray[np.int32]

#: Terms of a table this much smaller than the ids given so far are looked for by sorting.
_SPARSE: Final = 64


class Encoded(NamedTuple):
    """Ω of matches: rows ``offsets[i]`` to ``offsets[i + 1]``, each variable's values as numbers in ``used``.

    -1 is where a variable is unbound.
    """

    offsets: Ints
    columns: dict[str, Numbers]
    used: Ints


def numbered(columns: Sequence[Column], limit: int) -> tuple[Ints, list[Numbers]]:
    """The ids that are in some columns, each once, and each column as numbers of them, -1 for ``UNBOUND``.

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
    """A column as numbers of ids; see ``_kernel_found.encode``."""
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
    """The same for each of many parts, of which each has numbers of its own.

    Part i has the rows from ``bounds[i]`` to ``bounds[i + 1]``, and of the ids, which come first, those from
    a place to the next: the second array.
    """
    values = np.stack(columns) if columns else np.zeros((0, int(bounds[-1])), dtype=np.int64)
    used, ends = np.empty(values.size, dtype=np.int64), np.zeros(len(bounds), dtype=np.int64)
    numbers = np.empty(values.shape, dtype=np.int32)
    k.number(values, bounds, np.full(limit, -1, dtype=np.int64), used, ends[1:], numbers)
    return used[: ends[-1]], ends, list(numbers)
