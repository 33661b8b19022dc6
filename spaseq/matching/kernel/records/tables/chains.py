"""A chain, in the tables: the rows of a GPM that are kept, by the values of a key.

Of what Python reads, too, the place in it has a name in capitals.
"""

from __future__ import annotations

from typing import Final

from spaseq._fields import reads

GPM: Final = 0
gpm = reads(GPM)
KEYS: Final = 1
keys = reads(KEYS)
KEYS_END: Final = 2
keys_end = reads(KEYS_END)
#: What is kept of a row.
columns, columns_end = reads(3), reads(4)

SIZE: Final = 5
