"""A batch of events in the kernels' form: an array with a head, columns of events, and columns of solutions.

``batch.time(b, e)`` is the time of event number e. Places in the head have names in capitals, for the writer.
The place of a column holds where it begins, which may be anywhere in memory: columns of thousands of events
are not copied, and many queries share them. A place is the distance of a column from the array's first
integer, before or after it (``_fields.place``). The owner of the array keeps the columns. Kernels read it by
a pointer.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from spaseq._fields import address, reads, reads_column, reads_head

Ints = npt.NDArray[np.int64]

#: How many events there are.
SIZE: Final = 0
#: The position of the first event among all that the query has had.
START: Final = 1
TIME: Final = 2
#: The rank of the stream.
STREAM: Final = 3
#: The arrival number in the stream.
NUMBER: Final = 4
#: The place on the window's axis.
AXIS: Final = 5
#: Where the shares of each event begin, and those of the last one end: a share for each GPM with rows in it,
#: in the order of GPMs.
SHARES: Final = 6
#: The place of the list of columns of solutions.
COLUMNS: Final = 7
HEAD: Final = 8

size = reads_head(SIZE)
start = reads_head(START)
time = reads_column(TIME)
stream = reads_column(STREAM)
number = reads_column(NUMBER)
axis = reads_column(AXIS)
shares = reads_column(SHARES)
#: Of a column of solutions, by its number.
column = reads_column(COLUMNS)

# A share: a GPM, and where its rows in the event begin and end among all of its rows.
gpm = reads(0)
first = reads(1)
end = reads(2)
SHARE: Final = 3


def values(batch: Ints, place: int, size: int = 1) -> Ints:
    """Return some integers at a place, which may be outside of the array."""
    found = (ctypes.c_int64 * size).from_address(address(batch) + 8 * int(place))
    return np.ctypeslib.as_array(found)


def shares_of_one(rows: Sequence[tuple[int, int]], at: int) -> list[int]:
    """Return the shares of the only event of a batch, and where they begin and end, for place ``at``.

    ``rows``: where the rows of each GPM begin and end.
    """
    shares = [n for g, (begin, end) in enumerate(rows) if begin < end for n in (g, begin, end)]
    return [at + 2, at + 2 + len(shares), *shares]


def counts(columns: Ints, event: int, gpms: int) -> Ints:
    """Return how many rows each GPM has in an event of a batch."""
    begin, end = columns[columns[SHARES] + event : columns[SHARES] + event + 2].tolist()
    found = np.zeros(gpms, dtype=np.int64)
    for at in range(begin, end, SHARE):
        found[columns[at]] = columns[at + 2] - columns[at + 1]
    return found
