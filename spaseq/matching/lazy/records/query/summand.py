"""A term of a sum: a slot, or -1 where there is none, and the id of its factor."""

from __future__ import annotations

from typing import Final

from spaseq._fields import reads

slot = reads(0)
factor = reads(1)

SIZE: Final = 2
