"""A candidate, in the tables: what an event may be at a gate."""

from __future__ import annotations

from typing import Final

from spaseq._fields import reads

#: Of one that gathers several events, the unit, the GPM and the key are those of the first.
unit = reads(0)
gpm = reads(1)
#: Where the run goes on; 0: it is only a rival.
place = reads(2)
rival = reads(3)
number = reads(4)
actions, actions_end = reads(5), reads(6)
#: The columns of its GPM that have the gate's join key.
keys = reads(7)
#: From where to where the parts stand of one that gathers.
parts, parts_end = reads(8), reads(9)
#: What all of them together must meet.
code, code_end = reads(10), reads(11)

SIZE: Final = 12
