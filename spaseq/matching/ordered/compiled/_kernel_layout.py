"""What the numbers in the ordered kernel's arrays mean, besides those of the runs kernel.

``o`` is read only: the options of each place in order of preference, what must agree where runs are merged.
``a`` are the *families*, the runs of one first event each. Their runs are waits of the runs kernel's memory
``m``, linked in order of preference; the head of a partition is its first family there.
"""

from __future__ import annotations

from typing import Final

# The first places of ``o``: the most options of a place; how SKIP goes on, and the GPM it names; whether a
# run can be left out for that of another family; then where sections begin.
O_MOST: Final = 0
O_MODE: Final = 1
O_GPM: Final = 2
O_ACROSS: Final = 3
O_PLACES: Final = 4  # by the number of a place, where its options begin and end
O_GATES: Final = 5  # by the number of a gate, where what must agree begins and ends
O_GPMS: Final = 6  # by the number of a candidate, its GPM
O_BOUNDS: Final = 7  # by the number of a gate, where the bounds of time begin and end that runs there are in
O_ASKS: Final = 8  # whether options have conditions of their own
O_BOUNDED: Final = 9  # whether there are bounds of time at all
O_HEADER: Final = 10

# Options: a gate's or an accept's place in the tables, and whether it is a gate.
OPTION_SIZE: Final = 2

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

# The first places of ``a``: unused families; the oldest and the youngest; the matches found, in a chain.
A_FREE: Final = 0
A_NEXT: Final = 1
A_END: Final = 2
A_OLDEST: Final = 3
A_YOUNGEST: Final = 4
A_FOUND: Final = 5
A_FOUND_LAST: Final = 6
A_COUNT: Final = 7
A_TIME: Final = 8  # that of the newest event
A_SOON: Final = 9  # families that have runs which end when time goes on, in a chain
A_DUE: Final = 10  # after this time some bound of time may be over, with which a match may be decided
A_HEADER: Final = 11
NEVER_DUE: Final = (1 << 63) - 1

# Columns of families. The first one of a partition links back to the last.
F_PARTITION: Final = 0
F_HEAD: Final = 1  # its runs that may still become a preferred match
F_BEST: Final = 2  # a wait at an accept: the preferred one of the matches so far
F_FIRST: Final = 3  # of its first event, the place on the window's axis
F_POSITION: Final = 4
F_TIME: Final = 5
F_NEXT: Final = 6
F_BACK: Final = 7
F_LATER: Final = 8  # in the order in which families began; of those found, the next one
F_EARLIER: Final = 9
F_TURN: Final = 10  # of those found: the event that delivers it, and before or after what else
F_RANK: Final = 11
F_FOREMOST: Final = 12  # no family before it in its partition has found anything
F_SOON: Final = 13  # in the chain ``A_SOON``: the next one, or END; 0: not in it
F_SIZE: Final = 14
END: Final = 1

# Columns of what is found, as it is handed out.
FOUND_TURN: Final = 0
FOUND_RANK: Final = 1
FOUND_LAST: Final = 2
FOUND_FIRST: Final = 3
FOUND_NODE: Final = 4
FOUND_ACCEPT: Final = 5
FOUND_PARTITION: Final = 6
FOUND_SIZE: Final = 7

#: What an event itself completes comes after what windows' ends deliver.
COMPLETED: Final = 1 << 62
