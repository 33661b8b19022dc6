"""The header of the runs kernel's memory: counters, and where its sections begin; it stands at place 0.

Of what Python reads, too, which is most of it, the place in the header has a name in capitals.
"""

from __future__ import annotations

from typing import Final

from spaseq._fields import reads_head, writes_head
from spaseq.matching.conditions.batch import COLUMNS

# Counters.
EVENT: Final = 0
event, set_event = reads_head(EVENT), writes_head(EVENT)
EVENT_KEY: Final = 1
event_key, set_event_key = reads_head(EVENT_KEY), writes_head(EVENT_KEY)
ANSWERED: Final = 2
answered, set_answered = reads_head(ANSWERED), writes_head(ANSWERED)
ASKED: Final = 3
asked, set_asked = reads_head(ASKED), writes_head(ASKED)
DECIDED: Final = 4
decided, set_decided = reads_head(DECIDED), writes_head(DECIDED)
FOUND_COUNT: Final = 5
found_count, set_found_count = reads_head(FOUND_COUNT), writes_head(FOUND_COUNT)
SERIAL: Final = 6
serial, set_serial = reads_head(SERIAL), writes_head(SERIAL)
OFFSETS: Final = COLUMNS
NEXT_WAIT: Final = 8
next_wait, set_next_wait = reads_head(NEXT_WAIT), writes_head(NEXT_WAIT)
LIVE_WAITS: Final = 9
live_waits, set_live_waits = reads_head(LIVE_WAITS), writes_head(LIVE_WAITS)
MOST_WAITS: Final = 10
most_waits = reads_head(MOST_WAITS)
free_node, set_free_node = reads_head(11), writes_head(11)
NEXT_NODE: Final = 12
next_node, set_next_node = reads_head(NEXT_NODE), writes_head(NEXT_NODE)
LIVE_NODES: Final = 13
live_nodes, set_live_nodes = reads_head(LIVE_NODES), writes_head(LIVE_NODES)
MOST_NODES: Final = 14
most_nodes = reads_head(MOST_NODES)
LIVE_BUCKETS: Final = 15
live_buckets, set_live_buckets = reads_head(LIVE_BUCKETS), writes_head(LIVE_BUCKETS)
BUCKET_COUNT: Final = 16
bucket_count = reads_head(BUCKET_COUNT)
LIVE_PARTITIONS: Final = 17
live_partitions, set_live_partitions = reads_head(LIVE_PARTITIONS), writes_head(LIVE_PARTITIONS)
MOST_PARTITIONS: Final = 18
most_partitions = reads_head(MOST_PARTITIONS)
TABLE_SIZE: Final = 19
table_size = reads_head(TABLE_SIZE)
MOST_FOUND: Final = 20
most_found = reads_head(MOST_FOUND)
MOST_DECISIONS: Final = 21
most_decisions = reads_head(MOST_DECISIONS)
MOST_KEYS: Final = 22
most_keys = reads_head(MOST_KEYS)

# Where sections begin.
WAITS: Final = 23
waits = reads_head(WAITS)
WIDTH: Final = 24
width = reads_head(WIDTH)
NODES: Final = 25
nodes = reads_head(NODES)
BUCKETS: Final = 26
buckets = reads_head(BUCKETS)
PARTITIONS: Final = 27
partitions = reads_head(PARTITIONS)
TABLE: Final = 28
table = reads_head(TABLE)
FOUND: Final = 29
found = reads_head(FOUND)
DECISIONS: Final = 30
decisions = reads_head(DECISIONS)
QUESTIONS: Final = 31
questions = reads_head(QUESTIONS)
ANSWERS: Final = 32
answers = reads_head(ANSWERS)
KEYS: Final = 33
keys = reads_head(KEYS)
GATES_SEEN: Final = 34
gates_seen = reads_head(GATES_SEEN)
KINDS: Final = 35
kinds = reads_head(KINDS)
PARTITION_WIDTH: Final = 36
free_wait, set_free_wait = reads_head(37), writes_head(37)
#: Of the event, the place on the window's axis.
NOW: Final = 38
now, set_now = reads_head(NOW), writes_head(NOW)
ENTRIES: Final = 39
entries = reads_head(ENTRIES)
ENTRY_WIDTH: Final = 40
entry_width = reads_head(ENTRY_WIDTH)
NEXT_ENTRY: Final = 41
next_entry, set_next_entry = reads_head(NEXT_ENTRY), writes_head(NEXT_ENTRY)
MOST_ENTRIES: Final = 42
most_entries = reads_head(MOST_ENTRIES)
LIVE_ENTRIES: Final = 43
live_entries, set_live_entries = reads_head(LIVE_ENTRIES), writes_head(LIVE_ENTRIES)
#: Entries that the event needs.
WANTED: Final = 44
wanted, set_wanted = reads_head(WANTED), writes_head(WANTED)
#: A binary heap of the matches that wait for the end of a window.
PARKED: Final = 45
parked = reads_head(PARKED)
PARKED_COUNT: Final = 46
parked_count, set_parked_count = reads_head(PARKED_COUNT), writes_head(PARKED_COUNT)
#: Whether the event's rows are among the entries.
ENTERED: Final = 47
entered, set_entered = reads_head(ENTERED), writes_head(ENTERED)
GATHERED: Final = 48
gathered = reads_head(GATHERED)
#: Of what is being gathered: events, then rows.
TRIED: Final = 49
tried = reads_head(TRIED)
#: A wait to try it on.
TRIAL: Final = 50
trial = reads_head(TRIAL)
#: Answers to questions, and questions: see ``_kernel_memo``.
LEARNT: Final = 51
ASKING: Final = 52
#: Where the batch says, by GPM, where the ranks of its rows' keys begin; 0: nowhere yet.
RANKS: Final = 53
ranks = reads_head(RANKS)
#: Whether some wait has no key that is known.
is_loose, set_loose = reads_head(54), writes_head(54)
#: Where the floats of the next new wait are, and how many a wait has.
NEXT_SUMS: Final = 55
next_sums, set_next_sums = reads_head(NEXT_SUMS), writes_head(NEXT_SUMS)
SUMS_WIDTH: Final = 56
sums_width = reads_head(SUMS_WIDTH)

SIZE: Final = 57
