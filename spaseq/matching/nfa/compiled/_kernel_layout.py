"""The results of calls, the state of negations in a wait, marks in place of references, reading a batch.

The fields of the tables' rows and of the memory's records are in ``records``.
"""

from __future__ import annotations

from typing import Final

from spaseq._jit import inlined
from spaseq.matching.filters import batch
from spaseq.matching.filters._kernel_values import Ints
from spaseq.matching.nfa.records import parts

# The results of a call.
DONE: Final = 0
ASK: Final = 1
ROOM: Final = 2
DECISIONS_FULL: Final = 3
MORE_KEYS: Final = 4
DRAIN: Final = 5
CONSUME: Final = 6
UNRANKED: Final = 7

# The state of negations in a wait, from GAPS on: whether a forbidden event precedes the match, its latest
# place on the window's axis, whether an exact decision is needed; then the gaps.
IS_LED: Final = 0
LED: Final = 1
UNSURE: Final = 2
FIRST_GAP: Final = 3
#: Up to this size, an event's shares are searched one by one; above, by bisection first.
_FEW_SHARES: Final = 4 * batch.SHARE

#: Values in place of a stream: there is no event; there are events of several streams.
NOWHERE: Final = -2
SEVERAL: Final = -1
# For a negation: the range of its checks, for each view (the Kleenes in progress when it is decided).
FORBIDDEN_SIZE: Final = 2

# The size of gathered events: 1 if some of them have several solutions (else 0), then an entry for each part.
GATHERED_SIZE: Final = 1 + parts.LIMIT


@inlined
def share_of(b: Ints, g: int, e: int) -> int:
    """Return the place of the share of GPM g in event e; 0 if it has none."""
    begin, end = batch.shares(b, e), batch.shares(b, e + 1)
    while end - begin > _FEW_SHARES:
        middle = begin + (end - begin) // (2 * batch.SHARE) * batch.SHARE
        if batch.gpm(b, middle) > g:
            end = middle
        else:
            begin = middle
    while begin < end:
        if batch.gpm(b, begin) == g:
            return int(begin)
        begin += batch.SHARE
    return 0


@inlined
def rows_of(b: Ints, g: int, e: int) -> tuple[int, int]:
    """Return the range of the rows of GPM g in event e."""
    share = share_of(b, g, e)
    if share == 0:
        return 0, 0
    return batch.first(b, share), batch.end(b, share)


@inlined
def value(b: Ints, column: int, r: int) -> int:
    return int(b[batch.column(b, column) + r])
