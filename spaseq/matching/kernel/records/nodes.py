"""A node: the newest event of a run, which leads back to the one before. Several runs may share it.

Of what Python reads, too, the place in the node has a name in capitals.
"""

from __future__ import annotations

from typing import Final

from spaseq._fields import Ints, reads, writes
from spaseq._jit import inlined

#: Of the event, in the batch's count.
POSITION: Final = 0
position, set_position = reads(POSITION), writes(POSITION)
#: The node of the event before, 0 for none; of an unused one, the next unused one.
PREVIOUS: Final = 1
previous, set_previous = reads(PREVIOUS), writes(PREVIOUS)
#: The number of the candidate as which the event was taken.
WAY: Final = 2
way, set_way = reads(WAY), writes(WAY)
#: How many waits, later nodes and matches lead to it.
uses, set_uses = reads(3), writes(3)
#: How many events the run has.
DEPTH: Final = 4
depth, set_depth = reads(DEPTH), writes(DEPTH)
#: Of the event's solutions the one that joins; -1 if there are several.
ROW: Final = 5
row, set_row = reads(ROW), writes(ROW)

SIZE: Final = 6


@inlined
def hold(m: Ints, node: int) -> None:
    """One use of a node more."""
    set_uses(m, node, uses(m, node) + 1)
