"""A chain, in the tables: the rows of a GPM that are kept, by the values of a key."""

from __future__ import annotations

from typing import Final

from spaseq._fields import reads

gpm = reads(0)
keys, keys_end = reads(1), reads(2)
#: What is kept of a row.
columns, columns_end = reads(3), reads(4)

SIZE: Final = 5
