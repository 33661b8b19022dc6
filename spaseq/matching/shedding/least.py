"""The space that a query cannot do without."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spaseq.matching.conditions import _kernel_values as v
from spaseq.matching.kernel.memory import Room
from spaseq.matching.kernel.records import header
from spaseq.matching.shedding.compiled import _kernel_passes as k

Ints = npt.NDArray[np.int64]


def least_room(
    tables: Ints, ints: Ints, axis: int, time: int, decided: int, entries: int, start: Room
) -> Room:
    """The space that runs, and what was decided, must have; ``start``: less than that it never is."""
    seen = np.zeros(int(ints[header.MOST_NODES]), dtype=np.int8)
    live, nodes = k.remaining(tables, ints, axis, time, seen)
    waits = live + decided * int(tables[v.MOST_GATES]) + 2
    nodes += decided * max(1, int(tables[v.MOST_PARTS]))
    return Room(*map(max, Room(waits, nodes, decided * int(tables[v.MOST_ACCEPTS]), entries), start))
