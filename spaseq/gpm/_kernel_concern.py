"""The predicates of a batch → the events that have some of a set of them, for each of several sets."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spaseq._jit import kernel
from spaseq._places import pointer

Ids = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.int32]


@kernel
def concern(
    ends: Ids, p: int, offset: int, size: int, numbers: Numbers, begins: Ids, sets: Ids, last: Ids,
    events: Ids,
) -> None:  # fmt: skip
    """Adds to ``ends``, of each set, how many events have a predicate of it; writes these, if it has room.

    ``size``: how many events there are; ``p``: where the predicate of each triple stands, and ``offset``:
    where it is said where those of each event begin, as places that are told from ``ends`` on. ``numbers``
    has, by id, a number from 1 on for the predicates that are in some set; the sets of one stand in ``sets``,
    from ``begins`` of its number on. ``last`` is -1 for each set. ``events`` is empty, or as long as needed.
    """
    b = pointer(ends)
    for event in range(size):
        for row in range(b[offset + event], b[offset + event + 1]):
            predicate = b[p + row]
            number = numbers[predicate] if predicate < len(numbers) else 0
            for i in range(begins[number], begins[number + 1]):
                each = sets[i]
                if last[each] != event:
                    last[each] = event
                    if len(events) > 0:
                        events[ends[each]] = event
                    ends[each] += 1
