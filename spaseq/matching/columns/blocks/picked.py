"""Values at some places of a longer column, which are not copied until they are asked for."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spaseq.matching.columns.blocks import _kernel_found as k

Ints = npt.NDArray[np.int64]


class Picked:
    """Values of a column, as many as ``len`` says, at the places ``at[first]``, ``at[first + step]``, …"""

    __slots__ = ("at", "count", "first", "step", "values")

    def __init__(self, values: Ints, at: Ints, first: int, step: int, count: int) -> None:
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


def ids(column: Ints | Picked) -> Ints:
    """A column of Ω."""
    return column.ids() if isinstance(column, Picked) else column
