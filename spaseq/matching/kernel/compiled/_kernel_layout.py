"""What calls end with, what negations know, the marks instead of places; how a batch is read.

The fields of the tables' rows and of the memory's records are in ``records``.
"""

from __future__ import annotations

from typing import Final

from spaseq._jit import inlined
from spaseq.matching.conditions import batch
from spaseq.matching.conditions._kernel_values import Ints
from spaseq.matching.kernel.records.tables import parts

# What a call ends with.
DONE: Final = 0
ASK: Final = 1
ROOM: Final = 2
DECISIONS_FULL: Final = 3
MORE_KEYS: Final = 4
DRAIN: Final = 5
CONSUME: Final = 6
UNRANKED: Final = 7

# What a wait knows of negations, from GAPS on: the latest place on the window's axis of something that is
# forbidden before the match, whether something is left to be asked exactly; then its gaps.
LED: Final = 0
UNSURE: Final = 1
FIRST_GAP: Final = 2
#: Instead of a stream: no event, and events of several streams.
NOWHERE: Final = -2
SEVERAL: Final = -1
#: Instead of a place on the window's axis, or a time.
NEVER: Final = -(1 << 63)

# Of a negation: where its checks begin and end, for each view (the Kleenes in progress when it is decided).
FORBIDDEN_SIZE: Final = 2

# What is gathered: 1 if some of the events have several solutions, and an entry for each part.
GATHERED_SIZE: Final = 1 + parts.LIMIT


@inlined
def row_of(b: Ints, g: int, e: int) -> int:
    """Where the rows of GPM g in event e begin."""
    return int(b[b[batch.ROWS] + g * (batch.size(b) + 1) + e])


@inlined
def value(b: Ints, column: int, r: int) -> int:
    return int(b[batch.column(b, column) + r])
