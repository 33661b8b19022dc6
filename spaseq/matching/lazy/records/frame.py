"""A frame of the search: which item it takes, and which of its buffer's rows are tried."""

from __future__ import annotations

from typing import Final

from spaseq._fields import reads, writes
from spaseq.matching.lazy.records import moment
from spaseq.matching.lazy.records.ordering import ITEM_LIMIT

# Phases.
OPEN: Final = 0  # an item is to be chosen
ROWS: Final = 1  # the next row is to be taken
LEAVING: Final = 2  # the iteration is to be the last
GOING_ON: Final = 3  # another iteration is to be begun
OVER: Final = 4

#: -1: it chooses none.
item, set_item = reads(0), writes(0)
phase, set_phase = reads(1), writes(1)
row, set_row = reads(2), writes(2)
#: The next row that is tried.
cursor, set_cursor = reads(3), writes(3)
end, set_end = reads(4), writes(4)
#: Which of the row's links leads on; -1: rows stand side by side.
link, set_link = reads(5), writes(5)
#: Of iterations.
count, set_count = reads(6), writes(6)
#: The items that are there, a bit for each.
bound, set_bound = reads(7), writes(7)
is_unsure, set_is_unsure = reads(8), writes(8)
#: The positions that a row is between.
low, set_low = reads(9), writes(9)
high, set_high = reads(10), writes(10)
#: The event that started the search is to be tried.
is_trigger, set_is_trigger = reads(11), writes(11)
#: Whose doubles have bounds; -1: none.
column, set_column = reads(12), writes(12)

SIZE: Final = 13
#: Where frames begin, after what conditions are computed on, and the moments of items.
BEGIN: Final = moment.BEGIN + ITEM_LIMIT * moment.SIZE
