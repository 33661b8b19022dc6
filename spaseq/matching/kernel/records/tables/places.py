"""A place of the automaton, in the tables: how a run may end there, and the gates out of it.

Of what Python reads, too, the place in it has a name in capitals.
"""

from __future__ import annotations

from typing import Final

from spaseq._fields import reads

ACCEPTS: Final = 0
accepts, accepts_end = reads(ACCEPTS), reads(1)
GATES: Final = 2
gates, gates_end = reads(GATES), reads(3)

SIZE: Final = 4
