"""The records of the runs kernel's memory and tables: a class for each kind, named in the plural.

The place of a record is a variable with the singular name or a letter: ``waits.time(m, w)``, ``gates.sign(t,
gate)``.

In the memory, after its ``header``: ``waits`` with their ``gaps``, ``nodes``, ``buckets``, ``partitions``,
``entries``, ``findings``, ``decisions``, ``questions``. The others are in a query's tables, which are
read-only.
"""

from __future__ import annotations

from typing import Final

from spaseq._fields import Ints, Record, reads, reads_head, reads_item, writes, writes_head, writes_item
from spaseq._jit import inlined
from spaseq.matching.filters._kernel_values import SLOTS
from spaseq.matching.filters.batch import COLUMNS


class parts(Record):
    """A part, in the tables: one of the events that a candidate gathers. It has at most ``LIMIT``."""

    unit = reads(0)
    gpm = reads(1)
    #: The columns of its GPM that have the gate's join key.
    keys = reads(2)
    #: Where the rows of its GPM are kept.
    chain = reads(3)

    SIZE: Final = 4
    LIMIT: Final = 4


class header(Record):
    """The header of the runs kernel's memory: counters, and the places of its sections; it is at place 0.

    Places that Python also reads, which are most of them, have names in capitals.
    """

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
    #: The event's place on the window's axis.
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
    #: The combination of events that is being tried, then its rows, then the newest event of each part.
    TRIED: Final = 49
    tried = reads_head(TRIED)
    #: A wait on which a combination is tried.
    TRIAL: Final = 50
    trial = reads_head(TRIAL)
    #: Answers to questions, and questions: see ``_kernel_machine``.
    LEARNT: Final = 51
    ASKING: Final = 52
    #: By GPM, the place of the ranks of its rows' keys; 0: none yet.
    RANKS: Final = 53
    ranks = reads_head(RANKS)
    #: Whether some wait has an unknown key.
    is_loose, set_loose = reads_head(54), writes_head(54)
    #: The place of the next new wait's floats, and the number of a wait's floats.
    NEXT_SUMS: Final = 55
    next_sums, set_next_sums = reads_head(NEXT_SUMS), writes_head(NEXT_SUMS)
    SUMS_WIDTH: Final = 56
    sums_width = reads_head(SUMS_WIDTH)

    SIZE: Final = 57


class waits(Record):
    """A wait: a run before a gate. An unused one has gate 0, and ``link`` is the next unused one.

    Places that Python also reads have names in capitals.
    """

    #: In place of a waiting match's bucket: its gate is an accept.
    IS_PARKED: Final = -1

    GATE: Final = 0
    gate, set_gate = reads(GATE), writes(GATE)
    partition, set_partition = reads(1), writes(1)
    #: Its newest event.
    NODE: Final = 2
    node, set_node = reads(NODE), writes(NODE)
    #: The place of its first event on the window's axis.
    FIRST: Final = 3
    first, set_first = reads(FIRST), writes(FIRST)
    #: Time, stream and number of its newest event.
    time, set_time = reads(4), writes(4)
    STREAM: Final = 5
    stream, set_stream = reads(STREAM), writes(STREAM)
    number, set_number = reads(6), writes(6)
    #: For a run under AFTER MATCH SKIP, instead: the members (queries) that it belongs to, as bits.
    members, set_members = reads(6), writes(6)
    bar_time, set_bar_time = reads(7), writes(7)
    #: For a parked match, a place on the window's axis: the match is due when the length of a window has
    #: passed since.
    DUE: Final = 7
    due, set_due = reads(DUE), writes(DUE)
    #: For a wait at a parted gate, the candidates that it has taken, as bits; all events are of one stream.
    taken, set_taken = reads(7), writes(7)
    #: Streams, as bits: their further events at ``bar_time`` come too late.
    barred, set_barred = reads(8), writes(8)
    link, set_link = reads(9), writes(9)
    back, set_back = reads(10), writes(10)
    #: Its bucket; 0: it is listed at its partition.
    BUCKET: Final = 11
    bucket, set_bucket = reads(BUCKET), writes(BUCKET)
    #: The first child, if the wait is in a pairing heap.
    child, set_child = reads(12), writes(12)
    #: For a wait in the list of those passed over under a bound, its number there.
    listed, set_listed = reads(12), writes(12)
    #: The place of its floats.
    SUMS: Final = 13
    sums, set_sums = reads(SUMS), writes(SUMS)
    assert SUMS < SLOTS

    #: The term id of a variable that conditions and joins read: 0 unbound, ``MANY`` if solutions differ.
    slot, set_slot = reads_item(SLOTS, 1), writes_item(SLOTS, 1)


class gaps(Record):
    """A gap of a wait: after one event and before another, an element is forbidden.

    Its streams may also be ``NOWHERE`` and ``SEVERAL``.
    """

    #: The forbidden element; 0: the gap is unused.
    forbidden, set_forbidden = reads(0), writes(0)
    #: The element before which it ends.
    owner, set_owner = reads(1), writes(1)
    after_time, set_after_time = reads(2), writes(2)
    #: ``NOWHERE``: since the window began.
    after_stream, set_after_stream = reads(3), writes(3)
    after_number, set_after_number = reads(4), writes(4)
    before_time, set_before_time = reads(5), writes(5)
    #: ``NOWHERE``: the owner has not begun.
    before_stream, set_before_stream = reads(6), writes(6)
    before_number, set_before_number = reads(7), writes(7)

    SIZE: Final = 8


class nodes(Record):
    """A node: the newest event of a run, which links to the one before. Several runs may share it.

    Places that Python also reads have names in capitals.
    """

    #: The position of the event.
    POSITION: Final = 0
    position, set_position = reads(POSITION), writes(POSITION)
    #: The node of the event before, 0 for none; of an unused one, the next unused one.
    PREVIOUS: Final = 1
    previous, set_previous = reads(PREVIOUS), writes(PREVIOUS)
    #: The number of the candidate as which the event was taken.
    WAY: Final = 2
    way, set_way = reads(WAY), writes(WAY)
    #: How many waits, later nodes and matches lead to it.
    uses, set_uses = reads(3), writes(3)
    #: How many events the run has.
    DEPTH: Final = 4
    depth, set_depth = reads(DEPTH), writes(DEPTH)
    #: The solution of the event that joins; -1 if there are several.
    ROW: Final = 5
    row, set_row = reads(ROW), writes(ROW)

    SIZE: Final = 6


class buckets(Record):
    """A bucket: the waits at a gate of one partition and join key, or the entries of a chain."""

    #: The gate or the chain; 0: the bucket is unused.
    gate, set_gate = reads(0), writes(0)
    partition, set_partition = reads(1), writes(1)
    #: The ids of its key, then zeros; all are -1 if the key is unknown.
    KEY_LIMIT: Final = 4
    key, set_key = reads_item(2, 1), writes_item(2, 1)
    #: The first wait of its list, or the newest entry.
    HEAD: Final = 2 + KEY_LIMIT
    head, set_head = reads(HEAD), writes(HEAD)
    #: The least wait of its heap.
    root, set_root = reads(HEAD + 1), writes(HEAD + 1)
    #: The serial number of the event that visited it last.
    seen, set_seen = reads(HEAD + 2), writes(HEAD + 2)

    SIZE: Final = HEAD + 3


class partitions(Record):
    """A partition: the waits that each of its events is shown to, its state, and its key.

    Places that Python also reads have names in capitals.
    """

    #: The first wait of its list.
    HEAD: Final = 0
    head, set_head = reads(HEAD), writes(HEAD)
    #: The serial number of its newest event.
    newest, set_newest = reads(1), writes(1)
    #: The position up to which events begin no run.
    DROPPED: Final = 2
    dropped, set_dropped = reads(DROPPED), writes(DROPPED)
    #: The term ids of its key.
    KEY: Final = 3
    key, set_key = reads_item(KEY, 1), writes_item(KEY, 1)


class entries(Record):
    """An entry: a row that negations and ``&`` look back at.

    A header place has the offset of a column in an entry, as in a batch, so that entries are read like rows
    of a batch.
    """

    #: The one before it in its chain.
    link, set_link = reads(0), writes(0)
    chain, set_chain = reads(1), writes(1)
    partition, set_partition = reads(2), writes(2)
    #: Time, stream, number, place on the axis and position of its event.
    time, set_time = reads(3), writes(3)
    stream, set_stream = reads(4), writes(4)
    number, set_number = reads(5), writes(5)
    axis, set_axis = reads(6), writes(6)
    position, set_position = reads(7), writes(7)
    row, set_row = reads(8), writes(8)
    #: The term ids of the columns that are read.
    VALUES: Final = 9
    value, set_value = reads_item(VALUES, 1), writes_item(VALUES, 1)


class findings(Record):
    """A finding: a completed run. The last four fields are only used if matches may wait.

    Places that Python also reads have names in capitals.
    """

    #: Its last event.
    EVENT: Final = 0
    event, set_event = reads(EVENT), writes(EVENT)
    PARTITION: Final = 1
    partition, set_partition = reads(PARTITION), writes(PARTITION)
    #: The node of its last event.
    NODE: Final = 2
    node, set_node = reads(NODE), writes(NODE)
    ACCEPT: Final = 3
    accept, set_accept = reads(ACCEPT), writes(ACCEPT)
    #: Whether an exact decision is needed.
    UNSURE: Final = 4
    set_unsure = writes(UNSURE)
    #: The event that delivers it.
    TURN: Final = 5
    set_turn = writes(TURN)
    #: Its partition's place in the order of delivery.
    RANK: Final = 6
    set_rank = writes(RANK)
    #: Whether it has waited.
    WAITED: Final = 7
    set_waited = writes(WAITED)
    #: For a match that was parked, the field DUE of its wait.
    DUE: Final = 8
    set_due = writes(DUE)

    SIZE: Final = 9
    #: The value of RANK and DUE for matches completed by an event.
    LAST: Final = (1 << 63) - 1


class decisions(Record):
    """A decision, in the memory: the effect of the current event on a run, recorded before
    anything changes.
    """

    #: The run; for ``POP`` its bucket, for ``FORGET`` the number of a decision.
    wait, set_wait = reads(0), writes(0)
    #: The candidate as which it takes the event, or one of those below.
    what, set_what = reads(1), writes(1)
    #: The row that joins, -1 if there are several; the place of gathered events; or a count.
    row, set_row = reads(2), writes(2)

    SIZE: Final = 3

    # In place of a candidate. BAR: the run takes no later event. DROP: it ends. POP: a number of waits leave
    # a heap, best first. SKIP: nothing happens. FORGET: a number of runs end, beginning with a decision's
    # run.
    BAR: Final = 0
    DROP: Final = -1
    POP: Final = -2
    SKIP: Final = -3
    FORGET: Final = -4
    #: The run takes no later event as these candidates, as bits.
    PART: Final = -6


class questions(Record):
    """A question, in the memory: may a run take an event? The tables cannot decide, so Python does."""

    set_wait = writes(0)
    #: The number of the candidate.
    set_number = writes(1)
    #: For each gathered event.
    set_position = writes_item(2, 1)

    SIZE: Final = 2 + parts.LIMIT


class gates(Record):
    """A gate, in the tables: an operator, and what may come next at a place of the automaton.

    Places that Python also reads have names in capitals.
    """

    #: ``STRICT``, ``NEXT`` or ``ANY``.
    operator = reads(0)
    #: The range of its candidates.
    CANDIDATES: Final = 1
    candidates = reads(CANDIDATES)
    CANDIDATES_END: Final = 2
    candidates_end = reads(CANDIDATES_END)
    #: The actions of a run that arrives, and the program of its conditions then.
    actions, actions_end = reads(3), reads(4)
    code, code_end = reads(5), reads(6)
    #: The slots of its join key.
    keys, keys_end = reads(7), reads(8)
    #: The ordering filter that alone decides: 1 for greater and -1 for less, 0 if there is none; the slot and
    #: the column that it compares, and whether equality suffices.
    sign, slot, column, closed = reads(9), reads(10), reads(11), reads(12)
    #: Its number among all gates.
    NUMBER: Final = 13
    number = reads(NUMBER)
    #: Whether some candidate gathers several events.
    gathers = reads(14)
    #: Whether a run that takes an event as one candidate still waits for the others.
    parted = reads(15)

    SIZE: Final = 16

    # Operators: ``,``, ``;`` and ``:``.
    STRICT: Final = 0
    NEXT: Final = 1
    ANY: Final = 2


class candidates(Record):
    """A candidate, in the tables: what an event may be at a gate."""

    #: For a candidate that gathers several events, the unit, GPM and key of its first part.
    unit = reads(0)
    gpm = reads(1)
    #: The place where the run continues; 0: the candidate is only a rival.
    place = reads(2)
    rival = reads(3)
    number = reads(4)
    actions, actions_end = reads(5), reads(6)
    #: The columns of its GPM that have the gate's join key.
    keys = reads(7)
    #: The range of the parts, if it gathers.
    parts, parts_end = reads(8), reads(9)
    #: The conditions on all parts together.
    code, code_end = reads(10), reads(11)

    SIZE: Final = 12


class units(Record):
    """A unit, in the tables: an atom's GPM inside some Kleenes, its bindings and its conditions."""

    #: The range of pairs of a slot and the column it takes.
    binds, binds_end = reads(0), reads(1)
    code, code_end = reads(2), reads(3)
    #: The Kleene with aggregates that count the solutions of this unit, 0 for none.
    counting = reads(4)


class actions(Record):
    """An action, in the tables: a step of a run on its way to a place, for Kleenes, negations and WITHINs."""

    kind = reads(0)
    #: A Kleene, a negation or a WITHIN.
    about = reads(1)
    #: The most or least iterations, a limit's place in the tables, or an owner.
    number = reads(2)

    SIZE: Final = 3

    # Kinds: a Kleene begins, continues, ends; a negation forbids, waits, is decided; a WITHIN begins, ends.
    ENTER: Final = 0
    AGAIN: Final = 1
    LEAVE: Final = 2
    FORBID: Final = 3
    AWAIT: Final = 4
    DECIDE: Final = 5
    SINCE: Final = 6
    UNTIL: Final = 7


class accepts(Record):
    """An accept, in the tables: a way for a run to end at a place.

    Places that Python also reads have names in capitals.
    """

    actions, actions_end = reads(0), reads(1)
    code, code_end = reads(2), reads(3)
    NUMBER: Final = 4
    number = reads(NUMBER)

    SIZE: Final = 5


class kleenes(Record):
    """A Kleene, in the tables: the slots that are its iterations' own, and its aggregates."""

    number = reads(0)
    own, own_end = reads(1), reads(2)
    aggregates, aggregates_end = reads(3), reads(4)


class chains(Record):
    """A chain, in the tables: the rows of a GPM that are kept, by the values of a key.

    Places that Python also reads have names in capitals.
    """

    GPM: Final = 0
    gpm = reads(GPM)
    KEYS: Final = 1
    keys = reads(KEYS)
    KEYS_END: Final = 2
    keys_end = reads(KEYS_END)
    #: The columns kept of a row.
    columns, columns_end = reads(3), reads(4)

    SIZE: Final = 5


class checks(Record):
    """A check of a negation, in the tables: which rows are forbidden, and the chains to search."""

    unit = reads(0)
    #: Whether a row that meets the unit is surely forbidden.
    sure = reads(1)
    #: The chain of the rows by key, and the chain of all rows, for an unknown key.
    chain, every = reads(2), reads(3)
    keys, keys_end = reads(4), reads(5)

    SIZE: Final = 6


class places(Record):
    """A place of the automaton, in the tables: how a run may end there, and the outgoing gates.

    Places that Python also reads have names in capitals.
    """

    ACCEPTS: Final = 0
    accepts, accepts_end = reads(ACCEPTS), reads(1)
    GATES: Final = 2
    gates, gates_end = reads(GATES), reads(3)

    SIZE: Final = 4


@inlined
def hold(m: Ints, node: int) -> None:
    """Add one use of a node."""
    nodes.set_uses(m, node, nodes.uses(m, node) + 1)
