"""A row of a buffer: its event's place, its values, then a link and a posting for each index."""

from __future__ import annotations

from typing import Final

from spaseq._fields import reads, reads_item, writes, writes_item

position, set_position = reads(0), writes(0)
axis, set_axis = reads(1), writes(1)
time, set_time = reads(2), writes(2)
stream, set_stream = reads(3), writes(3)
batch_row, set_batch_row = reads(4), writes(4)
#: Its event has several rows.
is_one_of_several, set_is_one_of_several = reads(5), writes(5)
value, set_value = reads_item(6, 1), writes_item(6, 1)

#: Where the values begin.
VALUES: Final = 6
#: The most indexes of a buffer.
INDEX_LIMIT: Final = 3
