"""An entry of the index: which index it is of, the newest of its rows, how many there are; then its key."""

from __future__ import annotations

from typing import Final

from spaseq._fields import reads, reads_item, writes, writes_item

#: 0: the entry is free.
lookup, set_lookup = reads(0), writes(0)
newest, set_newest = reads(1), writes(1)
COUNT: Final = 2
count, set_count = reads(COUNT), writes(COUNT)
key, set_key = reads_item(3, 1), writes_item(3, 1)

#: The most values of a key.
KEY_LIMIT: Final = 4
SIZE: Final = 3 + KEY_LIMIT
