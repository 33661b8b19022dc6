"""The machine, records and constants of the AFTER MATCH SKIP kernel, in addition to those of the runs kernel.

``o`` is read-only: the options of each place in order of preference, and what must agree where runs are
merged. ``a`` are the *families*, the runs of one first event each. Their runs are waits in the runs kernel's
memory ``m``, linked in order of preference; the head of a partition is its first family there.

Several queries may run as one: its *members*, each a bit. ``waits.members`` has the members that a run is
for.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from spaseq._fields import Record, reads, reads_head, reads_item, writes, writes_head, writes_item
from spaseq.matching.filters._kernel_values import Ints

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

#: A record that follows a decision, with the options that are refused to that decision, as bits.
REFUSED: Final = -5
MOST_OPTIONS: Final = 60

PAST_LAST: Final = 0
TO_NEXT: Final = 1
TO_FIRST: Final = 2
TO_LAST: Final = 3

#: Matches completed by an event come after matches delivered because windows end.
COMPLETED: Final = 1 << 62


class SkipMachine(NamedTuple):
    """What the kernel works on, besides a ``RunMachine``: arrays, or in compiled code their addresses.

    ``t``: tables; ``m``: the memory of runs; ``o``: options; ``a``: families. ``s``: a hash set of the runs
    that the current event has put in lists, of ``size`` pairs, a power of two. ``n``: for each partition the
    serial number of the newest event of each GPM, if members have different GPMs.
    """

    t: Ints
    m: Ints
    o: Ints
    a: Ints
    n: Ints
    s: Ints
    size: int


class roster(Record):
    """The header of the families: unused ones, the oldest and youngest, matches found, in chains.

    It is at place 0 of ``a``. Places that Python also reads have names in capitals.
    """

    #: The most members, each a bit.
    MOST_MEMBERS: Final = 62

    #: Unused families, in a chain; those from ``next`` to ``end`` were never used.
    FREE: Final = 0
    free, set_free = reads_head(FREE), writes_head(FREE)
    NEXT: Final = 1
    next, set_next = reads_head(NEXT), writes_head(NEXT)
    END: Final = 2
    end = reads_head(END)
    OLDEST: Final = 3
    oldest, set_oldest = reads_head(OLDEST), writes_head(OLDEST)
    youngest, set_youngest = reads_head(4), writes_head(4)
    #: The decided matches, in a chain, and their number.
    FOUND: Final = 5
    found, set_found = reads_head(FOUND), writes_head(FOUND)
    found_last, set_found_last = reads_head(6), writes_head(6)
    COUNT: Final = 7
    count, set_count = reads_head(COUNT), writes_head(COUNT)
    #: The time of the newest event.
    TIME: Final = 8
    time, set_time = reads_head(TIME), writes_head(TIME)
    #: Families with runs that end when time advances, in a chain.
    soon, set_soon = reads_head(9), writes_head(9)
    #: After this time some time bound may pass that decides a match.
    DUE: Final = 10
    due, set_due = reads_head(DUE), writes_head(DUE)
    #: Families that the current event may concern, in a chain.
    called, set_called = reads_head(11), writes_head(11)
    #: The number of different windows of members; then, for each window, the oldest family that has not
    #: expired.
    LEVELS: Final = 12
    levels = reads_head(LEVELS)
    level, set_level = reads_item(13, 1), writes_item(13, 1)

    SIZE: Final = 13 + MOST_MEMBERS


class families(Record):
    """A family: the runs of one first event. The first one of a partition links back to the last.

    Places that Python also reads have names in capitals.
    """

    partition, set_partition = reads(0), writes(0)
    #: Its runs that may still become a preferred match.
    head, set_head = reads(1), writes(1)
    #: For each member its preferred match so far, in a chain: waits at accepts.
    best, set_best = reads(2), writes(2)
    #: The place of its first event on the window's axis.
    FIRST: Final = 3
    first, set_first = reads(FIRST), writes(FIRST)
    POSITION: Final = 4
    position, set_position = reads(POSITION), writes(POSITION)
    TIME: Final = 5
    set_time = writes(TIME)
    next, set_next = reads(6), writes(6)
    back, set_back = reads(7), writes(7)
    #: The next and the previous family, in the order in which families began.
    LATER: Final = 8
    later, set_later = reads(LATER), writes(LATER)
    earlier, set_earlier = reads(9), writes(9)
    #: The members for which no earlier family in its partition has found anything.
    foremost, set_foremost = reads(12), writes(12)
    #: In the chain ``roster.soon``: the next one, or END; 0: not in it.
    soon, set_soon = reads(13), writes(13)
    #: The serial number of the last event for which it was in the chain ``roster.called``; then the next
    #: family there.
    called, set_called = reads(14), writes(14)
    after, set_after = reads(15), writes(15)
    #: The members that need it; the members with live runs; the members with matches in it.
    MEMBERS: Final = 16
    members, set_members = reads(MEMBERS), writes(MEMBERS)
    running, set_running = reads(10), writes(10)
    has, set_has = reads(11), writes(11)

    SIZE: Final = 17
    #: In a chain: there is no next one.
    END: Final = 1


class preferences(Record):
    """The header of a query's options: the most options of a place, how SKIP goes on, where sections begin.

    It is at place 0 of ``o``, which is read-only. Places that Python writes have names in capitals.
    """

    #: The most options of a place.
    MOST: Final = 0
    most = reads_head(MOST)
    #: How SKIP goes on.
    MODE: Final = 1
    mode = reads_head(MODE)
    #: The members that need matches, a bit each.
    MEMBERS: Final = 2
    members = reads_head(MEMBERS)
    #: Whether a run can be dropped because of one of another family.
    ACROSS: Final = 3
    across = reads_head(ACROSS)
    #: By place: where its options begin and end.
    PLACES: Final = 4
    places = reads_head(PLACES)
    #: By gate: where the list of what must agree begins and ends.
    GATES: Final = 5
    gates = reads_head(GATES)
    #: By candidate: its step.
    STEPS: Final = 6
    steps = reads_head(STEPS)
    #: By gate: where the list of the time bounds that are open in runs there begins and ends.
    BOUNDS: Final = 7
    bounds = reads_head(BOUNDS)
    #: Whether options have conditions of their own.
    ASKS: Final = 8
    asks = reads_head(ASKS)
    #: Whether there are time bounds at all.
    BOUNDED: Final = 9
    bounded = reads_head(BOUNDED)
    #: Whether an event is shown only to the runs that wait for its keys.
    INDEXED: Final = 10
    is_indexed = reads_head(INDEXED)
    #: The range of the members' windows, shortest first: the reach, and the members.
    LEVELS: Final = 11
    levels = reads_head(LEVELS)
    LEVELS_END: Final = 12
    #: By member: its GPMs as bits; 0: all members have all.
    OWN: Final = 13
    own = reads_head(OWN)

    SIZE: Final = 14


class matches(Record):
    """A decided match: a wait in the chain ``roster.found``, with other meanings of some fields.

    Places that Python reads have names in capitals.
    """

    partition, set_partition = reads(1), writes(1)
    #: The position of its first event.
    POSITION: Final = 3
    position, set_position = reads(POSITION), writes(POSITION)
    LINK: Final = 9
    link, set_link = reads(LINK), writes(LINK)
    #: The event that delivers it, and its rank among what that delivers.
    rank, set_rank = reads(10), writes(10)
    turn, set_turn = reads(11), writes(11)
    #: Where its family was.
    FAMILY: Final = 12
    set_family = writes(FAMILY)


class results(Record):
    """A result: a preferred match as it is returned.

    Places that Python reads have names in capitals.
    """

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
