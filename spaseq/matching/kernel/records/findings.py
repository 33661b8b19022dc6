"""A finding: a run that has ended as a match. The last four fields are only used if matches may wait.

Of what Python reads, too, the place in it has a name in capitals.
"""

from __future__ import annotations

from typing import Final

from spaseq._fields import reads, writes

#: Its last event.
EVENT: Final = 0
event, set_event = reads(EVENT), writes(EVENT)
PARTITION: Final = 1
partition, set_partition = reads(PARTITION), writes(PARTITION)
#: Of its last event.
NODE: Final = 2
node, set_node = reads(NODE), writes(NODE)
ACCEPT: Final = 3
accept, set_accept = reads(ACCEPT), writes(ACCEPT)
#: Whether something is left to be asked exactly.
UNSURE: Final = 4
set_unsure = writes(UNSURE)
#: The event that delivers it.
TURN: Final = 5
set_turn = writes(TURN)
#: Its partition's place in the order of delivery.
RANK: Final = 6
set_rank = writes(RANK)
#: Whether it has waited.
WAITED: Final = 7
set_waited = writes(WAITED)
#: Since when it has waited, on the window's axis.
DUE: Final = 8
set_due = writes(DUE)

SIZE: Final = 9
#: Of both RANK and DUE, for what an event completes.
LAST: Final = (1 << 63) - 1
