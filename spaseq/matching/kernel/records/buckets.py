"""A bucket: the waits at a gate of one partition and join key, or the entries of a chain."""

from __future__ import annotations

from typing import Final

from spaseq._fields import reads, reads_item, writes, writes_item

#: The gate or the chain; 0: the bucket is unused.
gate, set_gate = reads(0), writes(0)
partition, set_partition = reads(1), writes(1)
#: The ids of its key, 0 behind the last; all are -1 if the key is not known.
KEY_LIMIT: Final = 4
key, set_key = reads_item(2, 1), writes_item(2, 1)
#: The first wait of its list, or the newest entry.
HEAD: Final = 2 + KEY_LIMIT
head, set_head = reads(HEAD), writes(HEAD)
#: The least wait of its heap.
root, set_root = reads(HEAD + 1), writes(HEAD + 1)
#: The serial number of the event that visited it last.
seen, set_seen = reads(HEAD + 2), writes(HEAD + 2)

SIZE: Final = HEAD + 3
