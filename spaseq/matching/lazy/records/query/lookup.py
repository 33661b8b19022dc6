"""An index of a buffer's rows: by which of their values, and from which slots a search knows these."""

from __future__ import annotations

from typing import Final

from spaseq._fields import reads

pairs = reads(0)  # of a place among values and a slot
pairs_end = reads(1)

SIZE: Final = 2
