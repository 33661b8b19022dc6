"""A check of a negation, in the tables: which rows are forbidden, and where they are looked for."""

from __future__ import annotations

from typing import Final

from spaseq._fields import reads

unit = reads(0)
#: Whether a row that meets the unit is forbidden for sure.
sure = reads(1)
#: The chain that has the rows by key, and the chain of all rows, where the key is not known.
chain, every = reads(2), reads(3)
keys, keys_end = reads(4), reads(5)

SIZE: Final = 6
