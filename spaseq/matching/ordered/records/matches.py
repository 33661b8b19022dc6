"""A match that is decided: a wait in the chain ``roster.found``, some fields of which mean other things then.

Of what Python reads, the place in it has a name in capitals.
"""

from __future__ import annotations

from typing import Final

from spaseq._fields import reads, writes

partition, set_partition = reads(1), writes(1)
#: The position of its first event.
POSITION: Final = 3
position, set_position = reads(POSITION), writes(POSITION)
LINK: Final = 9
link, set_link = reads(LINK), writes(LINK)
#: The event that delivers it, and before or after what else.
rank, set_rank = reads(10), writes(10)
turn, set_turn = reads(11), writes(11)
#: Where its family was.
FAMILY: Final = 12
set_family = writes(FAMILY)
