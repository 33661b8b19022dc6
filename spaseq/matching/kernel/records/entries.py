"""An entry: a row that negations and ``&`` look back at.

A header place says where in an entry a column stands, as that of a batch does, so that entries are read like
rows of a batch.
"""

from __future__ import annotations

from typing import Final

from spaseq._fields import reads, reads_item, writes, writes_item

#: The one before it in its chain.
link, set_link = reads(0), writes(0)
chain, set_chain = reads(1), writes(1)
partition, set_partition = reads(2), writes(2)
#: Of its event, as the next four.
time, set_time = reads(3), writes(3)
stream, set_stream = reads(4), writes(4)
number, set_number = reads(5), writes(5)
axis, set_axis = reads(6), writes(6)
position, set_position = reads(7), writes(7)
row, set_row = reads(8), writes(8)
#: The term ids of the columns that are read.
VALUES: Final = 9
value, set_value = reads_item(VALUES, 1), writes_item(VALUES, 1)
