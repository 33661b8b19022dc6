"""A part, in the tables: one of the events that a candidate gathers. It has at most ``LIMIT``."""

from __future__ import annotations

from typing import Final

from spaseq._fields import reads

unit = reads(0)
gpm = reads(1)
#: The columns of its GPM that have the gate's join key.
keys = reads(2)
#: Where the rows of its GPM are kept.
chain = reads(3)

SIZE: Final = 4
LIMIT: Final = 4
