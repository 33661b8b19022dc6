"""Arrays of ids of terms → each id once, and the place of each there.

Ids are small integers, so that a table by id tells, unless there are many more ids than are looked at.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.int64]

#: A table by id is worth its while when it has at most so many places for each id that is looked at.
_SPARSE: Final = 16


def distinct(ids: Ids, limit: int) -> Ids:
    """Each id once, in their order; all are below ``limit``."""
    return in_order(ids) if limit > _SPARSE * len(ids) else distinct_of([ids], limit)


def in_order(ids: Ids) -> Ids:
    """The same without a table: ``np.unique``, which takes three to twenty times as long."""
    ordered = np.sort(ids)
    found: Ids = ordered[np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)]]
    return found


def distinct_of(arrays: Iterable[Ids], limit: int) -> Ids:
    """The same of several arrays, by a table however few they have."""
    seen = np.zeros(limit, dtype=np.bool_)
    for ids in arrays:
        seen[ids] = True
    return np.flatnonzero(seen)


def numbered(ids: Ids, limit: int) -> tuple[Ids, Ids]:
    """The same, and the place there of each id, in the shape of ``ids``; as ``np.unique`` gives them."""
    if limit > _SPARSE * ids.size:
        found, places = np.unique(ids, return_inverse=True)
        return found, places.reshape(ids.shape)
    found = distinct(ids.ravel(), limit)
    place = np.empty(limit, dtype=np.int64)
    place[found] = np.arange(len(found))
    return found, place[ids]
