"""What the numbers in the ordered kernel's arrays mean, besides those of the runs kernel, and its records.

``o`` is read only: the options of each place in order of preference, what must agree where runs are merged.
``a`` are the *families*, the runs of one first event each. Their runs are waits of the runs kernel's memory
``m``, linked in order of preference; the head of a partition is its first family there.

Several queries may be run as one, its *members*, each a bit: a run is of some of them (``waits.members``).
"""

from __future__ import annotations

from typing import Final

# Options: a gate's or an accept's place in the tables, whether it is a gate, and the members that have it.
OPTION_SIZE: Final = 3

# Steps: the members that take an event as a candidate, that must not skip it, and whose SKIP names it.
STEP_SIZE: Final = 3
STEP_BARS: Final = 1
STEP_TARGET: Final = 2

# Windows of members: how far they reach, and whose they are.
LEVEL_SIZE: Final = 2

# What must agree: where it is in a wait, and from which value on all are alike.
ALIKE_SIZE: Final = 2
EXACTLY: Final = -1  # an id or aggregate: no value is like another one, MANY not even like itself
AS_SUM: Final = -2  # the sum that stands there in the floats
AS_TIME: Final = -3  # any integer

# Bounds of time: where in a wait it stands when they began, and the limit's place in the tables.
BOUND_SIZE: Final = 2

#: What decisions say behind one that is refused some options: these, as bits.
REFUSED: Final = -5
MOST_OPTIONS: Final = 60

PAST_LAST: Final = 0
TO_NEXT: Final = 1
TO_FIRST: Final = 2
TO_LAST: Final = 3

#: What an event itself completes comes after what windows' ends deliver.
COMPLETED: Final = 1 << 62
