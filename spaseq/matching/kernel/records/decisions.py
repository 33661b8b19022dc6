"""A decision, in the memory: what the event in hand does to a run, noted before anything changes."""

from __future__ import annotations

from typing import Final

from spaseq._fields import reads, writes

#: The run; for ``POP`` its bucket, for ``FORGET`` the number of a decision.
wait, set_wait = reads(0), writes(0)
#: The candidate as which it takes the event, or one of those below.
what, set_what = reads(1), writes(1)
#: The row that joins, -1 if there are several; where what is gathered stands; or a number of things.
row, set_row = reads(2), writes(2)

SIZE: Final = 3

# Instead of a candidate: the run takes no later event; it is over; so many leave a heap, best first;
# nothing; so many runs go, from that of a decision on.
BAR: Final = 0
DROP: Final = -1
POP: Final = -2
SKIP: Final = -3
FORGET: Final = -4
#: The run takes no later event as these candidates, as bits.
PART: Final = -6
