"""A result: a preferred match, as it is handed out.

Of what Python reads, the place in it has a name in capitals.
"""

from __future__ import annotations

from typing import Final

from spaseq._fields import writes

TURN: Final = 0
set_turn = writes(TURN)
RANK: Final = 1
set_rank = writes(RANK)
LAST: Final = 2
set_last = writes(LAST)
FIRST: Final = 3
set_first = writes(FIRST)
NODE: Final = 4
set_node = writes(NODE)
ACCEPT: Final = 5
set_accept = writes(ACCEPT)
PARTITION: Final = 6
set_partition = writes(PARTITION)

#: As a bit.
MEMBER: Final = 7
set_member = writes(MEMBER)

SIZE: Final = 8
