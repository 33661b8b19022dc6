"""A partition: the waits that each of its events is shown to, and what is known of it; then its key.

Of what Python reads, too, the place in it has a name in capitals.
"""

from __future__ import annotations

from typing import Final

from spaseq._fields import reads, reads_item, writes, writes_item

#: The first wait of its list.
HEAD: Final = 0
head, set_head = reads(HEAD), writes(HEAD)
#: The serial number of its newest event.
newest, set_newest = reads(1), writes(1)
#: The position up to which events begin no run any more.
DROPPED: Final = 2
dropped, set_dropped = reads(DROPPED), writes(DROPPED)
#: The term ids of its key.
KEY: Final = 3
key, set_key = reads_item(KEY, 1), writes_item(KEY, 1)
