"""Under a bound: what events may take, how much of them is walked, and what each row promises.

Without one there is no such array: the kernel is given None, and is compiled without what asks for it.
"""

from __future__ import annotations

from typing import Final

from spaseq._fields import reads, writes

#: So many units of work may some events in a row take, or 0 for any: a unit is a row that is looked at, or a
#: match. How many events; and what of this the last ones took, in all and each.
MOST: Final = 0
EVENTS: Final = 64
SPENT: Final = 1
LATEST: Final = 2
#: Matches that were found, in all; and units that were done before the event in hand.
EMITTED: Final = LATEST + EVENTS
BEFORE: Final = EMITTED + 1
#: How much is walked of the event in hand, and of the search in hand: see ``rank``. How often a row was not.
SHARE: Final = BEFORE + 1
SHOWN: Final = SHARE + 1
PASSED: Final = SHOWN + 1

#: Then, of each GPM, what its events take, in parts of ``PARTS``.
SIZE: Final = PASSED + 1
PARTS: Final = 256

#: Then, of each row, by its place in the buffers: how likely it was to stay so far, in parts of ``SURE``.
chance, set_chance = reads(0), writes(0)
#: Which share of the work is left where all is passed over that promises less, in parts of ``SURE``.
rank, set_rank = reads(1), writes(1)
ROW: Final = 2
SURE: Final = 1 << 32
