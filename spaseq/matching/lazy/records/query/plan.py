"""An alternative of a query: its elements, what must be absent, and if tables hold all its conditions."""

from __future__ import annotations

from typing import Final

from spaseq._fields import reads

items = reads(0)
items_end = reads(1)
checks = reads(2)
checks_end = reads(3)
is_exact = reads(4)

SIZE: Final = 5
