"""Compiled loops over the rows of GPMs in a batch: the shares of each event, and its first row."""

from __future__ import annotations

from typing import Final

from spaseq._jit import kernel, part
from spaseq.events import Ids
from spaseq.matching.filters import batch as heads
from spaseq.matching.filters._kernel_values import pointer

# Events at some places → the first row of each.


@kernel
def find_rows(events: Ids, places: Ids, rows: Ids) -> None:
    """Write, for each place, the number of the first row of this event or a later one.

    ``events`` has the event of each row, in order. Each search starts at the place before, which is mostly
    near.
    """
    count = len(events)
    row = 0
    for i in range(len(places)):
        place = places[i]
        # The row is between ``low`` and ``high``: galloping search, then bisection.
        low, high, step = row, row, 1
        while high < count and events[high] < place:
            low = high + 1
            high += step
            step *= 2
        step = 1
        while low > 0 and events[low - 1] >= place:
            high = low - 1
            low = max(0, low - step)
            step *= 2
        high = min(high, count)
        while low < high:
            middle = (low + high) // 2
            if events[middle] < place:
                low = middle + 1
            else:
                high = middle
        row = low
        rows[i] = row


# The rows of GPMs in the events of a batch → the shares of each event, in the kernels' form.

#: Rows are counted, if there are this many times more pairs of a GPM and an event than rows.
_SPARSE: Final = 2


@kernel
def share(batch: Ids, places: Ids, sizes: Ids, begins: Ids, at: int, size: int) -> None:
    """Write the shares of each event, and at ``at`` where those of each begin, and the last ones end.

    ``places``: the address of each GPM's column of events, sorted; ``sizes``: how many rows it has;
    ``begins`` are zeros, which are overwritten. ``size``: the number of events. There must be room for one
    place, and for one share, more than needed.
    """
    rows = 0
    for g in range(len(sizes)):
        rows += sizes[g]
    if size * len(sizes) <= _SPARSE * rows:
        _merge(pointer(batch), pointer(places), pointer(sizes), pointer(begins), len(sizes), at, size)
    else:
        _count(pointer(batch), pointer(places), pointer(sizes), len(sizes), at, size)


@part
def _merge(b: Ids, places: Ids, sizes: Ids, begins: Ids, gpms: int, at: int, size: int) -> None:
    """Go event by event, where most events have rows; ``begins`` is advanced."""
    share = at + size + 2
    for e in range(size):
        b[at + e] = share
        for g in range(gpms):
            i, last = begins[g], sizes[g] - 1
            if last < 0:
                continue
            # Branch-free: whether there is a row is hard to predict, so a share is always written, and kept
            # only if it is one.
            is_one = int(b[places[g] + min(i, last)] == e) & int(i <= last)
            b[share], b[share + 1] = g, i
            i += is_one
            while i <= last and b[places[g] + i] == e:
                i += 1
            b[share + 2] = begins[g] = i
            share += heads.SHARE * is_one
    b[at + size] = b[at + size + 1] = share


@part
def _count(b: Ids, places: Ids, sizes: Ids, gpms: int, at: int, size: int) -> None:
    """Go GPM by GPM, where most events have rows of few GPMs."""
    for e in range(size + 2):
        b[at + e] = 0
    for g in range(gpms):
        events = places[g]
        for i in range(events, events + sizes[g]):
            if i == events or b[i] != b[i - 1]:
                b[at + b[i] + 2] += heads.SHARE
    b[at] = b[at + 1] = at + size + 2
    for e in range(size):
        b[at + e + 2] += b[at + e + 1]
    # The place of event e + 1 is the next share of e; in the end it is where they end.
    for g in range(gpms):
        events = places[g]
        for i in range(events, events + sizes[g]):
            share = b[at + b[i] + 1]
            if i == events or b[i] != b[i - 1]:
                b[share], b[share + 1] = g, i - events
                b[at + b[i] + 1] = share = share + heads.SHARE
            b[share - 1] = i - events + 1
