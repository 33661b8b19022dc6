"""What an element's row binds: a slot, the place of the value in the row."""

from __future__ import annotations

from typing import Final

from spaseq._fields import reads

slot = reads(0)
place = reads(1)
is_own = reads(2)  # of the iteration alone; of what must be absent: it need not agree

SIZE: Final = 3
