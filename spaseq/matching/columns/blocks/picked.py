"""Values at some places of a longer column, which are not copied until they are asked for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from spaseq.matching.columns.blocks import _kernel_found as k

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


class Pieces:
    """Columns one after the other, which are not put together until they are asked for."""

    __slots__ = ("parts",)

    def __init__(self, parts: Sequence[Column]) -> None:
        self.parts = parts

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    def ids(self) -> Ints:
        """They themselves."""
        return np.concatenate([ids(part) for part in self.parts])


Column = Ints | Picked | Pieces


def ids(column: Column) -> Ints:
    """A column of Ω."""
    return column.ids() if isinstance(column, Picked | Pieces) else column
