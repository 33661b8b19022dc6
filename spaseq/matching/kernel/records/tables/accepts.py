"""An accept, in the tables: a way for a run to end at a place.

Of what Python reads, too, the place in it has a name in capitals.
"""

from __future__ import annotations

from typing import Final

from spaseq._fields import reads

actions, actions_end = reads(0), reads(1)
code, code_end = reads(2), reads(3)
NUMBER: Final = 4
number = reads(NUMBER)

SIZE: Final = 5
