"""An alternative of a query: its elements, what must be absent, and if tables hold all its conditions.

Of what Python reads, too, the place in it has a name in capitals.
"""

from __future__ import annotations

from typing import Final

from spaseq._fields import reads

#: From where to where its elements stand.
ITEMS: Final = 0
items = reads(ITEMS)
ITEMS_END: Final = 1
items_end = reads(ITEMS_END)
checks = reads(2)
checks_end = reads(3)
is_exact = reads(4)

SIZE: Final = 5
