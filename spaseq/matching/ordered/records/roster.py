"""The header of an ordered query's families: the unused, the oldest and youngest, what was found, in chains.

It stands at place 0 of ``a``. Of what Python reads, too, the place in it has a name in capitals.
"""

from __future__ import annotations

from typing import Final

from spaseq._fields import reads_head, reads_item, writes_head, writes_item

#: So many members there are at most, each a bit.
MOST_MEMBERS: Final = 62

#: Unused families, in a chain; those from ``next`` to ``end`` were never used.
FREE: Final = 0
free, set_free = reads_head(FREE), writes_head(FREE)
NEXT: Final = 1
next, set_next = reads_head(NEXT), writes_head(NEXT)
END: Final = 2
end = reads_head(END)
OLDEST: Final = 3
oldest, set_oldest = reads_head(OLDEST), writes_head(OLDEST)
youngest, set_youngest = reads_head(4), writes_head(4)
#: The matches that are decided, in a chain, and how many they are.
FOUND: Final = 5
found, set_found = reads_head(FOUND), writes_head(FOUND)
found_last, set_found_last = reads_head(6), writes_head(6)
COUNT: Final = 7
count, set_count = reads_head(COUNT), writes_head(COUNT)
#: That of the newest event.
TIME: Final = 8
time, set_time = reads_head(TIME), writes_head(TIME)
#: Families that have runs which end when time goes on, in a chain.
soon, set_soon = reads_head(9), writes_head(9)
#: After this time some bound of time may be over, with which a match may be decided.
DUE: Final = 10
due, set_due = reads_head(DUE), writes_head(DUE)
#: Those that the event in hand may concern, in a chain.
called, set_called = reads_head(11), writes_head(11)
#: How many different windows members have; then of each the oldest family that is not over for it.
LEVELS: Final = 12
levels = reads_head(LEVELS)
level, set_level = reads_item(13, 1), writes_item(13, 1)

SIZE: Final = 13 + MOST_MEMBERS
