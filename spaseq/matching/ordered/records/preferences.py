"""The header of an ordered query's options: the most of a place, how SKIP goes on, where sections begin.

It stands at place 0 of ``o``, which is read only. What Python writes has a name in capitals.
"""

from __future__ import annotations

from typing import Final

from spaseq._fields import reads_head

#: The most options of a place.
MOST: Final = 0
most = reads_head(MOST)
#: How SKIP goes on.
MODE: Final = 1
mode = reads_head(MODE)
#: The members that want anything, a bit each.
MEMBERS: Final = 2
members = reads_head(MEMBERS)
#: Whether a run can be left out for that of another family.
ACROSS: Final = 3
across = reads_head(ACROSS)
#: By the number of a place, where its options begin and end.
PLACES: Final = 4
places = reads_head(PLACES)
#: By the number of a gate, where what must agree begins and ends.
GATES: Final = 5
gates = reads_head(GATES)
#: By the number of a candidate, whose step it is.
STEPS: Final = 6
steps = reads_head(STEPS)
#: By the number of a gate, where the bounds of time begin and end that runs there are in.
BOUNDS: Final = 7
bounds = reads_head(BOUNDS)
#: Whether options have conditions of their own.
ASKS: Final = 8
asks = reads_head(ASKS)
#: Whether there are bounds of time at all.
BOUNDED: Final = 9
bounded = reads_head(BOUNDED)
#: Whether an event is shown to those runs only that wait for its keys.
INDEXED: Final = 10
is_indexed = reads_head(INDEXED)
#: From where to where the windows of members stand, the shortest first: its reach, and whose it is.
LEVELS: Final = 11
levels = reads_head(LEVELS)
LEVELS_END: Final = 12
#: By the number of a member, its GPMs as bits; 0: all members have all.
OWN: Final = 13
own = reads_head(OWN)

SIZE: Final = 14
