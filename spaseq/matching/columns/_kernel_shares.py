"""The rows that GPMs have in the events of a batch → the shares of each event, as kernels read them."""

from __future__ import annotations

from typing import Final

from spaseq._jit import kernel, part
from spaseq.events import Ids
from spaseq.matching.conditions import batch as heads

#: Where there are so many more places to look at, of each GPM in each event, than rows, rows are counted.
_SPARSE: Final = 2


@kernel
def share(events: Ids, bounds: Ids, begins: Ids, at: int, size: int, batch: Ids) -> None:
    """Writes the shares of each event, and at ``at`` where those of each begin, and the last ones end.

    ``events`` has the event of each row, the rows of one GPM after the other: those of GPM g are from
    ``bounds[g]`` to ``bounds[g + 1]``, in the order of events. ``begins`` is a copy of ``bounds``, which is
    written. ``size``: how many events there are; there is room for one place more than they need.
    """
    if size * (len(bounds) - 1) <= _SPARSE * bounds[-1]:
        _merge(events, bounds, begins, at, size, batch)
    else:
        _count(events, bounds, at, size, batch)


@part
def _merge(events: Ids, bounds: Ids, begins: Ids, at: int, size: int, batch: Ids) -> None:
    """Event by event, where most have rows; ``begins`` goes on with them."""
    share = at + size + 2
    for e in range(size):
        batch[at + e] = share
        for g in range(len(bounds) - 1):
            i, end = begins[g], bounds[g + 1]
            if i < end and events[i] == e:
                batch[share], batch[share + 1] = g, i - bounds[g]
                i += 1
                while i < end and events[i] == e:
                    i += 1
                batch[share + 2] = i - bounds[g]
                begins[g] = i
                share += heads.SHARE
    batch[at + size] = batch[at + size + 1] = share


@part
def _count(events: Ids, bounds: Ids, at: int, size: int, batch: Ids) -> None:
    """GPM by GPM, where most events have rows of few of them."""
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
