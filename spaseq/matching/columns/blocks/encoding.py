"""Columns of ids of terms → dictionary-encoded ones: the ids that are there, and numbers of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spaseq.matching.columns.blocks import _kernel_found as k
from spaseq.matching.columns.blocks.picked import Column, Picked, Pieces
from spaseq.matching.columns.blocks.picked import ids as all_ids
from spaseq.terms.dictionary import UNBOUND, in_order

Ints = npt.NDArray[np.int64]
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
    if isinstance(column, Pieces):
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
