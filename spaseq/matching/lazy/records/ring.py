"""A buffer now: the numbers of its first row and of the one after its last, and where its ring is."""

from __future__ import annotations

from typing import Final

from spaseq._fields import reads_row, writes_row

HEAD: Final = 0
TAIL: Final = 1
BASE: Final = 2
MASK: Final = 3
UNTIL: Final = 5
SIZE: Final = 6

head, set_head = reads_row(HEAD, SIZE), writes_row(HEAD, SIZE)
tail, set_tail = reads_row(TAIL, SIZE), writes_row(TAIL, SIZE)
#: Where the ring begins among the rows of all buffers, and how many it has room for, less one.
base, mask = reads_row(BASE, SIZE), reads_row(MASK, SIZE)
#: The first row of the event that is looked at, and the one after its last.
now, set_now = reads_row(4, SIZE), writes_row(4, SIZE)
until, set_until = reads_row(UNTIL, SIZE), writes_row(UNTIL, SIZE)
