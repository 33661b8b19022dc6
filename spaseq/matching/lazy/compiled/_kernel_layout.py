"""Columns of the lazy evaluator's tables, buffers, index and frames.

The tables begin like those of ``kernel._kernel_values``, whose conditions they share; where two columns are a
start and an end, they enclose rows of another section.
"""

from __future__ import annotations

from typing import Final

from spaseq.matching.conditions._kernel_values import DEEPEST, SLOTS, TABLES_HEADER

# What a call ends with.
DONE: Final = 0
FULL: Final = 1  # what was found fills the room for it
DEEPER: Final = 2  # more frames are wanted
ROOM: Final = 3  # a buffer is full
MORE_KEYS: Final = 4  # the index is full
MORE_WAITS: Final = 5  # a list of partial matches is full

# The tables' places after those of conditions.
T_PLANS: Final = TABLES_HEADER
T_PLANS_END: Final = TABLES_HEADER + 1
T_BUFFERS: Final = TABLES_HEADER + 2
T_KEYS: Final = TABLES_HEADER + 3  # the slots of what PARTITION BY names
T_KEYS_END: Final = TABLES_HEADER + 4
T_VALUES: Final = TABLES_HEADER + 5  # the most values of a row
T_ORDERED: Final = TABLES_HEADER + 6  # the most columns of a buffer's values as doubles
HEADER: Final = TABLES_HEADER + 7

# Columns of plans.
P_ITEMS: Final = 0
P_ITEMS_END: Final = 1
P_CHECKS: Final = 2
P_CHECKS_END: Final = 3
P_EXACT: Final = 4
P_SIZE: Final = 5

# Columns of items.
I_BUFFER: Final = 0
I_BEFORE: Final = 1
I_AFTER: Final = 2
I_KLEENE: Final = 3  # 0: none
I_LEAST: Final = 4
I_MOST: Final = 5  # -1: no bound
I_BINDS: Final = 6
I_BINDS_END: Final = 7
I_CONDITIONS: Final = 8  # that need it, complete
I_CONDITIONS_END: Final = 9
I_ITERATION: Final = 10  # of an iteration
I_ITERATION_END: Final = 11
I_RANGES: Final = 12
I_RANGES_END: Final = 13
I_SITE: Final = 14
I_SIZE: Final = 15

# Columns of what an item binds: a slot, its place among a row's values, and if it is an iteration's own.
BIND_SLOT: Final = 0
BIND_PLACE: Final = 1
BIND_OWN: Final = 2
BIND_SIZE: Final = 3

# Columns of conditions.
D_NEEDS: Final = 0
D_CODE: Final = 1
D_CODE_END: Final = 2
D_SIZE: Final = 3

# Columns of ranges: which column of doubles is bounded, by which sum, on which sides.
Q_NEEDS: Final = 0
Q_COLUMN: Final = 1
Q_BOUNDS: Final = 2
Q_TERMS: Final = 3
Q_TERMS_END: Final = 4
Q_SIZE: Final = 5
LEAST: Final = 1
MOST: Final = 2
# Columns of a sum's terms: a slot, or -1, and the id of a factor.
TERM_SLOT: Final = 0
TERM_FACTOR: Final = 1
TERM_SIZE: Final = 2

# Columns of checks.
H_BUFFER: Final = 0
H_AFTER: Final = 1
H_BEFORE: Final = 2
H_NEEDS: Final = 3
H_SURE: Final = 4
H_BINDS: Final = 5  # BIND_OWN: the row need not agree
H_BINDS_END: Final = 6
H_CODE: Final = 7
H_CODE_END: Final = 8
H_RANGES: Final = 9
H_RANGES_END: Final = 10
H_SIZE: Final = 11

# Columns of buffers: the columns of values in a batch, the index of each key, and the places of values that
# are kept as doubles, too.
G_VALUES: Final = 0
G_VALUES_END: Final = 1
G_INDEXES: Final = 2
G_INDEXES_END: Final = 3
G_ORDERED: Final = 4
G_ORDERED_END: Final = 5
G_SIZE: Final = 6
# Columns of indexes: pairs of a place among a row's values and its slot.
X_PAIRS: Final = 0
X_PAIRS_END: Final = 1
X_SIZE: Final = 2

# Columns of Kleenes: where their own slots and accumulators are.
K_NUMBER: Final = 0
K_OWN: Final = 1
K_OWN_END: Final = 2
K_AGGREGATES: Final = 3
K_AGGREGATES_END: Final = 4
K_SIZE: Final = 5

# Of a buffer now: the numbers of its first row and of the one after its last, where it begins, and a mask.
R_HEAD: Final = 0
R_TAIL: Final = 1
R_BASE: Final = 2
R_MASK: Final = 3
R_NOW: Final = 4  # the first row of the event that is looked at
R_UNTIL: Final = 5  # and the one after its last
R_SIZE: Final = 6

# Columns of a buffer's rows; then come its values, then a link and an entry for each of its indexes.
POSITION: Final = 0
AXIS: Final = 1
TIME: Final = 2
STREAM: Final = 3
BATCH_ROW: Final = 4
SEVERAL: Final = 5  # its event has several rows
VALUES: Final = 6
INDEX_LIMIT: Final = 3

# Columns of an index's entries; then come the values of the key.
E_INDEX: Final = 0  # 0: unused
E_NEWEST: Final = 1
E_COUNT: Final = 2
E_KEY: Final = 3
KEY_LIMIT: Final = 4
E_SIZE: Final = E_KEY + KEY_LIMIT

# Counters.
EVENT: Final = 0
STAGE: Final = 1  # what of the event is done: see ``run``
PLAN: Final = 2
ITEM: Final = 3
ROW: Final = 4
DEPTH: Final = 5
FOUND: Final = 6
CHOICES: Final = 7
LIMIT: Final = 8
SINGLE: Final = 9
ENTRIES: Final = 10
AT: Final = 11  # the position of the event
TESTED: Final = 12  # rows that were looked at, in all
TRIGGER: Final = 13  # the Kleene of which the event is to be the last iteration, or NOTHING
WAIT: Final = 14  # the number of the partial match that is extended
REPEATING: Final = 15  # events of the past are looked at again, since an order has changed
PEAK: Final = 16  # so many partial matches have waited at once
# How much room there is: integers of frames, entries (less one), found and choices, partial matches in a
# list; and how many lists there are.
FRAMES_END: Final = 17
ENTRY_MASK: Final = 18
FOUND_ROOM: Final = 19
CHOICE_ROOM: Final = 20
WAIT_ROOM: Final = 21
LISTS: Final = 22
COUNTERS: Final = 23

# Of each plan: if it is a chain, and the number of its first list; then the order of its items.
O_CHAIN: Final = 0
O_LISTS: Final = 1
O_ORDER: Final = 2

# A partial match that waits for an event; then comes its record, the places of its items, and its choices.
W_BOUND: Final = 0
W_UNSURE: Final = 1
W_AXIS: Final = 2  # of its first event
W_RECORD: Final = 3

# Of an item of the search in progress: its first and its last event's position, time and stream.
FIRST: Final = 0
LAST: Final = 3
PLACE_SIZE: Final = 6

# Frames of the search.
F_ITEM: Final = 0  # NOTHING: it chooses none
F_PHASE: Final = 1
F_ROW: Final = 2
F_CURSOR: Final = 3
F_END: Final = 4
F_LINK: Final = 5  # which of the row's links leads on; -1: rows stand side by side
F_COUNT: Final = 6  # of iterations
F_BOUND: Final = 7
F_UNSURE: Final = 8
F_LOW: Final = 9
F_HIGH: Final = 10
F_TRIGGER: Final = 11  # the event that started the search is to be tried
F_COLUMN: Final = 12  # whose doubles have bounds; NOTHING: none
FRAME: Final = 13
#: A frame's floats end with the bounds of its rows' values.
BOUNDS: Final = 2
NOTHING: Final = -1
#: Beyond all places on the window's axis, and all positions.
FAR: Final = 1 << 62

# Phases of a frame.
OPEN: Final = 0  # an item is to be chosen
ROWS: Final = 1  # the next row is to be taken
LEAVING: Final = 2  # the iteration is to be the last
GOING_ON: Final = 3  # another iteration is to be begun
OVER: Final = 4

# Columns of what is found: its event, if it is to be asked exactly, its choices, and its partition.
FOUND_EVENT: Final = 0
FOUND_UNSURE: Final = 1
FOUND_BEGIN: Final = 2
FOUND_END: Final = 3
FOUND_KEY: Final = 4
FOUND_SIZE: Final = FOUND_KEY + KEY_LIMIT

#: Where frames begin, after what conditions are computed on, and the places of items.
ITEM_LIMIT: Final = 24
PLACES: Final = 2 * DEEPEST + SLOTS
FRAMES: Final = PLACES + ITEM_LIMIT * PLACE_SIZE
O_SIZE: Final = O_ORDER + ITEM_LIMIT
