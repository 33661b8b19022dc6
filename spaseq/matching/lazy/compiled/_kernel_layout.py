"""The results of the lazy kernel, the head of its tables, and constants for nothing.

The tables begin like those of ``filters._kernel_values``, as they have the same conditions. Their rows, and
the records of the memory, are in ``records``.
"""

from __future__ import annotations

from typing import Final

from spaseq.matching.filters._kernel_values import TABLES_HEADER

# The results of a call.
DONE: Final = 0
FULL: Final = 1  # the room for results is full
DEEPER: Final = 2  # more frames are needed
ROOM: Final = 3  # a buffer is full
MORE_KEYS: Final = 4  # the index is full
MORE_WAITS: Final = 5  # a list of partial matches is full

# Places of the tables after those of conditions.
T_PLANS: Final = TABLES_HEADER
T_PLANS_END: Final = TABLES_HEADER + 1
T_BUFFERS: Final = TABLES_HEADER + 2
T_KEYS: Final = TABLES_HEADER + 3  # the slots of the PARTITION BY variables
T_KEYS_END: Final = TABLES_HEADER + 4
T_VALUES: Final = TABLES_HEADER + 5  # the most values of a row
T_ORDERED: Final = TABLES_HEADER + 6  # the most columns of a buffer's values as doubles
HEADER: Final = TABLES_HEADER + 7

#: The floats of a frame, and of a waiting partial match, end with the bounds of a row's values.
BOUNDS: Final = 2
NOTHING: Final = -1
