"""A family: the runs of one first event. The first one of a partition links back to the last.

Of what Python reads, too, the place in it has a name in capitals.
"""

from __future__ import annotations

from typing import Final

from spaseq._fields import reads, writes

partition, set_partition = reads(0), writes(0)
#: Its runs that may still become a preferred match.
head, set_head = reads(1), writes(1)
#: Of each member the preferred one of its matches so far, in a chain: waits at accepts.
best, set_best = reads(2), writes(2)
#: Of its first event, the place on the window's axis.
FIRST: Final = 3
first, set_first = reads(FIRST), writes(FIRST)
POSITION: Final = 4
position, set_position = reads(POSITION), writes(POSITION)
TIME: Final = 5
set_time = writes(TIME)
next, set_next = reads(6), writes(6)
back, set_back = reads(7), writes(7)
#: In the order in which families began.
LATER: Final = 8
later, set_later = reads(LATER), writes(LATER)
earlier, set_earlier = reads(9), writes(9)
#: The members for which no family before it in its partition has found anything.
foremost, set_foremost = reads(12), writes(12)
#: In the chain ``roster.soon``: the next one, or END; 0: not in it.
soon, set_soon = reads(13), writes(13)
#: The serial number of the last event that it was called for; then the next one called for it.
called, set_called = reads(14), writes(14)
after, set_after = reads(15), writes(15)
#: The members that want it; those of which some run goes on, and those that have found something in it.
MEMBERS: Final = 16
members, set_members = reads(MEMBERS), writes(MEMBERS)
running, set_running = reads(10), writes(10)
has, set_has = reads(11), writes(11)

SIZE: Final = 17
#: In a chain, that there is no next one.
END: Final = 1
