"""The predicates of a batch → the events that have some of a set of them, for each of several sets."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spaseq._jit import kernel

Ids = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.int32]


@kernel
def concern(
    p: Ids, offset: Ids, numbers: Numbers, begins: Ids, sets: Ids, ends: Ids, last: Ids, events: Ids
) -> None:
    """Adds to ``ends``, of each set, how many events have a predicate of it; writes them there, if it has room.

    ``p``: the predicate of each triple; ``offset``: where those of each event begin. ``numbers`` has, by id,
    a number from 1 on for the predicates that are in some set; the sets of one stand in ``sets``, from
    ``begins`` of its number on. ``last`` is -1 for each set. ``events`` is empty, or as long as needed.
    """
    for event in range(len(offset) - 1):
        for row in range(offset[event], offset[event + 1]):
            number = numbers[p[row]] if p[row] < len(numbers) else 0
            for i in range(begins[number], begins[number + 1]):
                each = sets[i]
                if last[each] != event:
                    last[each] = event
                    if len(events) > 0:
                        events[ends[each]] = event
                    ends[each] += 1
