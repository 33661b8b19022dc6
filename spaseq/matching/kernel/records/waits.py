"""A wait: a run in front of a gate. Of an unused one, the gate is 0, and ``link`` the next unused one.

Of what Python reads, too, the place in the wait has a name in capitals.
"""

from __future__ import annotations

from typing import Final

from spaseq._fields import reads, reads_item, writes, writes_item
from spaseq.matching.conditions._kernel_values import SLOTS

#: Instead of the bucket of a match that waits: its gate is an accept.
IS_PARKED: Final = -1

GATE: Final = 0
gate, set_gate = reads(GATE), writes(GATE)
partition, set_partition = reads(1), writes(1)
#: Its newest event.
NODE: Final = 2
node, set_node = reads(NODE), writes(NODE)
#: Of its first event, the place on the window's axis.
FIRST: Final = 3
first, set_first = reads(FIRST), writes(FIRST)
#: Of its newest event, as the next two.
time, set_time = reads(4), writes(4)
STREAM: Final = 5
stream, set_stream = reads(STREAM), writes(STREAM)
number, set_number = reads(6), writes(6)
#: Of a run of ``ordered`` instead, the members that it is of, as bits.
members, set_members = reads(6), writes(6)
bar_time, set_bar_time = reads(7), writes(7)
#: Of a parked one instead, from where on the window's axis the end of its window counts.
DUE: Final = 7
due, set_due = reads(DUE), writes(DUE)
#: Of one at a parted gate instead, the candidates, as bits, that it has taken; all events are of one stream.
taken, set_taken = reads(7), writes(7)
#: Streams, as bits, whose further events at ``bar_time`` come too late.
barred, set_barred = reads(8), writes(8)
link, set_link = reads(9), writes(9)
back, set_back = reads(10), writes(10)
#: Where it lies; 0: it hangs on its partition.
BUCKET: Final = 11
bucket, set_bucket = reads(BUCKET), writes(BUCKET)
#: In a pairing heap.
child, set_child = reads(12), writes(12)
#: Of one in a list that a bound passes over instead, its number among those.
listed, set_listed = reads(12), writes(12)
#: Where its floats are.
SUMS: Final = 13
sums, set_sums = reads(SUMS), writes(SUMS)
assert SUMS < SLOTS

#: The term id of a variable that conditions and joins read: 0 unbound, ``MANY`` if solutions differ.
slot, set_slot = reads_item(SLOTS, 1), writes_item(SLOTS, 1)
