"""The records of the lazy kernel, of its memory and of its tables, each by the names of its fields."""

from __future__ import annotations

from typing import Final

from spaseq._fields import Record, reads, reads_item, reads_row, writes, writes_item, writes_row
from spaseq.matching.filters._kernel_values import DEEPEST, SLOTS


class ordering(Record):
    """How a plan is run: if as a chain, the first of its lists of partial matches, the order of its items."""

    #: The most items of a plan.
    ITEM_LIMIT: Final = 24

    CHAIN: Final = 0
    LISTS: Final = 1
    ORDER: Final = 2
    SIZE: Final = ORDER + ITEM_LIMIT

    is_chain, first_list = reads(CHAIN), reads(LISTS)
    item = reads_item(ORDER, 1)


class moment(Record):
    """When an item is, in a search: its first and its last event, each by its position, time and stream."""

    #: Where the two events are in an item's moment.
    FIRST: Final = 0
    LAST: Final = 3
    SIZE: Final = 6
    #: Where the moment of item 0 is, after what conditions are computed on.
    BEGIN: Final = 2 * DEEPEST + SLOTS

    position, set_position = reads(0), writes(0)
    time, set_time = reads(1), writes(1)
    stream, set_stream = reads(2), writes(2)


class counter(Record):
    """What there is one of: where a call of the kernel stands, and how much room there is."""

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
    #: Where the orders of plans end, and it is said of each GPM which plans its events may take on.
    WOKEN: Final = 23

    #: Of the event in hand, the number of the first GPM that it has rows of, and of the one behind the last.
    FIRST_GPM: Final = 24
    LAST_GPM: Final = 25
    #: The place on the axis up to which rows were taken out.
    EXPIRED: Final = 26

    SIZE: Final = 27


class frame(Record):
    """A frame of the search: which item it takes, and which of its buffer's rows are tried."""

    # Phases.
    OPEN: Final = 0  # an item is to be chosen
    ROWS: Final = 1  # the next row is to be taken
    LEAVING: Final = 2  # the iteration is to be the last
    GOING_ON: Final = 3  # another iteration is to be begun
    OVER: Final = 4

    #: -1: it chooses none.
    item, set_item = reads(0), writes(0)
    phase, set_phase = reads(1), writes(1)
    row, set_row = reads(2), writes(2)
    #: The next row that is tried.
    cursor, set_cursor = reads(3), writes(3)
    end, set_end = reads(4), writes(4)
    #: Which of the row's links leads on; -1: rows stand side by side.
    link, set_link = reads(5), writes(5)
    #: Of iterations.
    count, set_count = reads(6), writes(6)
    #: The items that are there, a bit for each.
    bound, set_bound = reads(7), writes(7)
    is_unsure, set_is_unsure = reads(8), writes(8)
    #: The positions that a row is between.
    low, set_low = reads(9), writes(9)
    high, set_high = reads(10), writes(10)
    #: The event that started the search is to be tried.
    is_trigger, set_is_trigger = reads(11), writes(11)
    #: Whose doubles have bounds; -1: none.
    column, set_column = reads(12), writes(12)

    SIZE: Final = 13
    #: Where frames begin, after what conditions are computed on, and the moments of items.
    BEGIN: Final = moment.BEGIN + ordering.ITEM_LIMIT * moment.SIZE


class posting(Record):
    """An entry of the index: which index it is of, the newest of its rows, how many it has; then its key."""

    #: 0: the entry is free.
    lookup, set_lookup = reads(0), writes(0)
    newest, set_newest = reads(1), writes(1)
    COUNT: Final = 2
    count, set_count = reads(COUNT), writes(COUNT)
    key, set_key = reads_item(3, 1), writes_item(3, 1)

    #: The most values of a key.
    KEY_LIMIT: Final = 4
    SIZE: Final = 3 + KEY_LIMIT


class outcome(Record):
    """What is found: its event, if it is to be asked exactly, its choices, and its partition."""

    EVENT: Final = 0
    UNSURE: Final = 1
    BEGIN: Final = 2
    END: Final = 3
    SHOWN: Final = 4  # which rows its search was shown: see ``passing.rank``; nothing, without a bound
    KEY: Final = 5
    SIZE: Final = KEY + posting.KEY_LIMIT

    set_event, set_is_unsure = writes(EVENT), writes(UNSURE)
    set_begin, set_end, set_shown = writes(BEGIN), writes(END), writes(SHOWN)


class ring(Record):
    """A buffer now: the numbers of its first row and of the one after its last, and where its ring is."""

    HEAD: Final = 0
    TAIL: Final = 1
    BASE: Final = 2
    MASK: Final = 3
    UNTIL: Final = 5
    SIZE: Final = 6

    head, set_head = reads_row(HEAD, SIZE), writes_row(HEAD, SIZE)
    tail, set_tail = reads_row(TAIL, SIZE), writes_row(TAIL, SIZE)
    #: Where the ring begins among the rows of all buffers, and how many it has room for, less one.
    base, mask = reads_row(BASE, SIZE), reads_row(MASK, SIZE)
    #: The first row of the event that is looked at, and the one after its last.
    now, set_now = reads_row(4, SIZE), writes_row(4, SIZE)
    until, set_until = reads_row(UNTIL, SIZE), writes_row(UNTIL, SIZE)


class stored(Record):
    """A row of a buffer: its event's place, its values, then a link and a posting for each index."""

    position, set_position = reads(0), writes(0)
    axis, set_axis = reads(1), writes(1)
    time, set_time = reads(2), writes(2)
    stream, set_stream = reads(3), writes(3)
    batch_row, set_batch_row = reads(4), writes(4)
    #: Its event has several rows.
    is_one_of_several, set_is_one_of_several = reads(5), writes(5)
    value, set_value = reads_item(6, 1), writes_item(6, 1)

    #: Where the values begin.
    VALUES: Final = 6
    #: The most indexes of a buffer.
    INDEX_LIMIT: Final = 3


class waiting(Record):
    """A partial match that waits for an event; then come its record, moments and choices."""

    #: The items it has, a bit for each.
    bound, set_bound = reads(0), writes(0)
    is_unsure, set_is_unsure = reads(1), writes(1)
    #: Of its first event.
    axis, set_axis = reads(2), writes(2)

    RECORD: Final = 3


class passing(Record):
    """Under a bound: what events may take, how much of them is walked, and what each row promises.

    Without one there is no such array: the kernel is given None, and is compiled without what asks for it.
    """

    #: So many units of work may some events in a row take, or 0 for any: a unit is a row that is looked at,
    #: or a match. How many events; and what of this the last ones took, in all and each.
    MOST: Final = 0
    EVENTS: Final = 64
    SPENT: Final = 1
    LATEST: Final = 2
    #: Matches that were found, in all; and units that were done before the event in hand.
    EMITTED: Final = LATEST + EVENTS
    BEFORE: Final = EMITTED + 1
    #: How much is walked of the event in hand, and of the search in hand: see ``rank``. How often a row was
    #: not.
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


class plan(Record):
    """An alternative of a query: its elements, what must be absent, and if tables hold all its conditions.

    Of what Python reads, too, the place in it has a name in capitals.
    """

    #: From where to where its elements stand.
    ITEMS: Final = 0
    items = reads(ITEMS)
    ITEMS_END: Final = 1
    items_end = reads(ITEMS_END)
    checks = reads(2)
    checks_end = reads(3)
    is_exact = reads(4)

    SIZE: Final = 5


class element(Record):
    """An element of a sequence: where it stands among the others, what it binds, what it must meet."""

    gpm = reads(0)
    before = reads(1)  # the items before it, a bit for each
    after = reads(2)
    kleene = reads(3)  # 0: none
    least = reads(4)  # iterations
    most = reads(5)  # -1: no bound
    binds = reads(6)
    binds_end = reads(7)
    conditions = reads(8)  # that need it, complete
    conditions_end = reads(9)
    iteration = reads(10)  # what an iteration must meet
    iteration_end = reads(11)
    ranges = reads(12)
    ranges_end = reads(13)
    site = reads(14)  # its number among those of all plans

    SIZE: Final = 15


class absence(Record):
    """What must be absent: between which elements, and when and how that is asked."""

    gpm = reads(0)
    after = reads(1)  # items, a bit for each
    before = reads(2)
    needs = reads(3)  # items that must be there before it can be asked
    is_sure = reads(4)  # tables decide it
    binds = reads(5)
    binds_end = reads(6)
    code = reads(7)
    code_end = reads(8)
    ranges = reads(9)
    ranges_end = reads(10)

    SIZE: Final = 11


class binding(Record):
    """What an element's row binds: a slot, the place of the value in the row."""

    slot = reads(0)
    place = reads(1)
    is_own = reads(2)  # of the iteration alone; of what must be absent: it need not agree

    SIZE: Final = 3


class condition(Record):
    """A condition between elements: those that it needs, a bit for each, and its program."""

    needs = reads(0)
    code = reads(1)
    code_end = reads(2)

    SIZE: Final = 3


class interval(Record):
    """A sum that bounds a column of doubles: from which sides, and what must be there before it is known."""

    #: The sides from which a sum bounds a column.
    LEAST: Final = 1
    MOST: Final = 2

    needs = reads(0)  # items, a bit for each
    column = reads(1)
    sides = reads(2)  # LEAST, MOST or both
    terms = reads(3)
    terms_end = reads(4)

    SIZE: Final = 5


class iteration(Record):
    """A Kleene: its number among all, its own slots and what aggregates of it."""

    number = reads(0)
    own = reads(1)
    own_end = reads(2)
    aggregates = reads(3)
    aggregates_end = reads(4)


class kept(Record):
    """What a buffer keeps of its GPM's rows: values, those that are doubles, too, and the indexes of rows."""

    values = reads(0)  # columns of a batch
    values_end = reads(1)
    indexes = reads(2)
    indexes_end = reads(3)
    ordered = reads(4)  # places of values that are doubles, too
    ordered_end = reads(5)

    SIZE: Final = 6


class lookup(Record):
    """An index of a buffer's rows: by which of their values, and from which slots a search knows these."""

    pairs = reads(0)  # of a place among values and a slot
    pairs_end = reads(1)

    SIZE: Final = 2


class summand(Record):
    """A term of a sum: a slot, or -1 where there is none, and the id of its factor."""

    slot = reads(0)
    factor = reads(1)

    SIZE: Final = 2
