"""What must be absent: between which elements, and when and how that is asked."""

from __future__ import annotations

from typing import Final

from spaseq._fields import reads

gpm = reads(0)
after = reads(1)  # items, a bit for each
before = reads(2)
needs = reads(3)  # items that must be there before it can be asked
is_sure = reads(4)  # tables decide it
binds = reads(5)
binds_end = reads(6)
code = reads(7)
code_end = reads(8)
ranges = reads(9)
ranges_end = reads(10)

SIZE: Final = 11
