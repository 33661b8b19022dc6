"""Events at some places → the first of the rows that each has."""

from __future__ import annotations

from spaseq._jit import kernel
from spaseq.events import Ids


@kernel
def find_rows(events: Ids, places: Ids, rows: Ids) -> None:
    """Writes of each place the number of the first row whose event is there, or behind it.

    ``events`` has the event of each row, in order. Places are looked for from the one before, near which
    they mostly are.
    """
    count = len(events)
    row = 0
    for i in range(len(places)):
        place = places[i]
        # Between ``low`` and ``high`` the row is: in steps twice as long each, and then in halves.
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
