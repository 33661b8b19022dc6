"""The meaning of the numbers in the kernel's arrays, in addition to those of the runs kernel.

``o`` is read-only: the options of each place in order of preference, and what must agree where runs are
merged. ``a`` are the *families*, the runs of one first event each. Their runs are waits in the runs kernel's
memory ``m``, linked in order of preference; the head of a partition is its first family there.

Several queries may run as one, its *members*, each a bit: a run is of some of them (``waits.members``).
"""

from __future__ import annotations

from typing import Final, NamedTuple

from spaseq.matching.filters._kernel_values import Ints


class SkipMachine(NamedTuple):
    """What the kernel works on, besides a ``Machine``: arrays, or in compiled code their addresses.

    ``t``: tables; ``m``: the memory of runs; ``o``: options; ``a``: families. ``s``: a hash set of the runs
    that an event has made in the list, of ``size`` pairs, a power of two. ``n``: for each partition the
    serial number of the newest event of each GPM, if members have different GPMs.
    """

    t: Ints
    m: Ints
    o: Ints
    a: Ints
    n: Ints
    s: Ints
    size: int


# Options: a gate's or an accept's place in the tables, whether it is a gate, and the members that have it.
OPTION_SIZE: Final = 3

# Steps: the members that take an event as a candidate, that must not skip it, and that name it in SKIP.
STEP_SIZE: Final = 3
STEP_BARS: Final = 1
STEP_TARGET: Final = 2

# Windows of members: their reach, and the members.
LEVEL_SIZE: Final = 2

# What must agree: its place in a wait, and the value from which on all values are equivalent.
ALIKE_SIZE: Final = 2
EXACTLY: Final = -1  # an id or aggregate: no two values are equivalent, MANY not even to itself
AS_SUM: Final = -2  # a sum, which is among the floats
AS_TIME: Final = -3  # any integer

# Time bounds: the place in a wait of their beginning, and the limit's place in the tables.
BOUND_SIZE: Final = 2

#: Follows a decision that is refused some options: these, as bits.
REFUSED: Final = -5
MOST_OPTIONS: Final = 60

PAST_LAST: Final = 0
TO_NEXT: Final = 1
TO_FIRST: Final = 2
TO_LAST: Final = 3

#: Matches completed by an event come after matches delivered because windows end.
COMPLETED: Final = 1 << 62
