"""The rows that GPMs have in the events of a batch → the shares of each event, as kernels read them."""

from __future__ import annotations

from spaseq._jit import kernel
from spaseq.events import Ids
from spaseq.matching.conditions import batch as heads


@kernel
def share(events: Ids, bounds: Ids, at: int, size: int, batch: Ids) -> None:
    """Writes the shares of each event, and at ``at`` where those of each begin, and the last ones end.

    ``events`` has the event of each row, the rows of one GPM after the other: those of GPM g are from
    ``bounds[g]`` to ``bounds[g + 1]``, in the order of events. ``size``: how many events there are; there is
    room for one place more than they need.
    """
    for e in range(size + 2):
        batch[at + e] = 0
    for g in range(len(bounds) - 1):
        for i in range(bounds[g], bounds[g + 1]):
            if i == bounds[g] or events[i] != events[i - 1]:
                batch[at + events[i] + 2] += heads.SHARE
    batch[at] = batch[at + 1] = at + size + 2
    for e in range(size):
        batch[at + e + 2] += batch[at + e + 1]
    # Where the next share of event e stands is behind its place: what is there in the end is where it ends.
    for g in range(len(bounds) - 1):
        for i in range(bounds[g], bounds[g + 1]):
            share = batch[at + events[i] + 1]
            if i == bounds[g] or events[i] != events[i - 1]:
                batch[share], batch[share + 1] = g, i - bounds[g]
                batch[at + events[i] + 1] = share = share + heads.SHARE
            batch[share - 1] = i - bounds[g] + 1
