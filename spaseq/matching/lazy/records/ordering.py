"""How a plan is run: if as a chain, the first of its lists of partial matches, the order of its items."""

from __future__ import annotations

from typing import Final

from spaseq._fields import reads, reads_item

#: The most items of a plan.
ITEM_LIMIT: Final = 24

CHAIN: Final = 0
LISTS: Final = 1
ORDER: Final = 2
SIZE: Final = ORDER + ITEM_LIMIT

is_chain, first_list = reads(CHAIN), reads(LISTS)
item = reads_item(ORDER, 1)
