"""A batch of events, as kernels read it: an array of its head, columns of events, and columns of solutions.

``batch.time(b, e)`` is the time of its event number e. Places in the head have names in capitals, for who
writes it: of columns, where they begin stands there.
"""

from __future__ import annotations

from typing import Final

from spaseq._fields import reads_column, reads_head

#: How many events there are.
SIZE: Final = 0
#: The position of the first one among all that the query has had.
START: Final = 1
TIME: Final = 2
#: The rank of the stream.
STREAM: Final = 3
#: The number of arrival in the stream.
NUMBER: Final = 4
#: The place on the window's axis.
AXIS: Final = 5
#: Of each GPM, where the rows of each event begin, and where the last ones end.
ROWS: Final = 6
#: Where it is said where each column of solutions begins.
COLUMNS: Final = 7
HEAD: Final = 8

size = reads_head(SIZE)
start = reads_head(START)
time = reads_column(TIME)
stream = reads_column(STREAM)
number = reads_column(NUMBER)
axis = reads_column(AXIS)
#: Of a column of solutions, by its number.
column = reads_column(COLUMNS)
