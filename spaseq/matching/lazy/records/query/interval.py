"""A sum that bounds a column of doubles: from which sides, and what must be there before it is known."""

from __future__ import annotations

from typing import Final

from spaseq._fields import reads

#: The sides from which a sum bounds a column.
LEAST: Final = 1
MOST: Final = 2

needs = reads(0)  # items, a bit for each
column = reads(1)
sides = reads(2)  # LEAST, MOST or both
terms = reads(3)
terms_end = reads(4)

SIZE: Final = 5
