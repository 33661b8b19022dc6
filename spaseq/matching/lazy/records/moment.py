"""When an item is, in a search: its first and its last event, each by its position, time and stream."""

from __future__ import annotations

from typing import Final

from spaseq._fields import reads, writes
from spaseq.matching.conditions._kernel_values import DEEPEST, SLOTS

#: Where the two events are in an item's moment.
FIRST: Final = 0
LAST: Final = 3
SIZE: Final = 6
#: Where the moment of item 0 is, after what conditions are computed on.
BEGIN: Final = 2 * DEEPEST + SLOTS

position, set_position = reads(0), writes(0)
time, set_time = reads(1), writes(1)
stream, set_stream = reads(2), writes(2)
