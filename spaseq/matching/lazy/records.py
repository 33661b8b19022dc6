"""The records of the lazy kernel, of its memory and of its tables, each by the names of its fields."""

from __future__ import annotations

from typing import Final

from spaseq._fields import Record, reads, reads_item, reads_row, writes, writes_item, writes_row
from spaseq.matching.filters._kernel_values import DEEPEST, SLOTS


class ordering(Record):
    """How a plan is run: as a chain, the first of its lists of partial matches, and the order of
    its items.
    """

    #: The most items of a plan.
    ITEM_LIMIT: Final = 24

    CHAIN: Final = 0
    LISTS: Final = 1
    ORDER: Final = 2
    SIZE: Final = ORDER + ITEM_LIMIT

    is_chain, first_list = reads(CHAIN), reads(LISTS)
    item = reads_item(ORDER, 1)


class moment(Record):
    """The time of an item in a search: its first and its last event, each by position, time and stream."""

    #: The two events in an item's moment.
    FIRST: Final = 0
    LAST: Final = 3
    SIZE: Final = 6
    #: The place of item 0's moment, after the stack of conditions.
    BEGIN: Final = 2 * DEEPEST + SLOTS

    position, set_position = reads(0), writes(0)
    time, set_time = reads(1), writes(1)
    stream, set_stream = reads(2), writes(2)


class counter(Record):
    """Counters: the progress of a call of the kernel, and how much room there is."""

    EVENT: Final = 0
    STAGE: Final = 1  # the progress of the event: see ``run``
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
    TESTED: Final = 12  # the total number of rows tested
    TRIGGER: Final = 13  # the Kleene that is to end with the event, or NOTHING
    WAIT: Final = 14  # the number of the partial match that is extended
    REPEATING: Final = 15  # past events are processed again, since an order has changed
    PEAK: Final = 16  # the peak number of waiting partial matches

    # The room for integers of frames, for entries (less one), for results and choices, and for partial
    # matches in a list; and the number of lists.
    FRAMES_END: Final = 17
    ENTRY_MASK: Final = 18
    FOUND_ROOM: Final = 19
    CHOICE_ROOM: Final = 20
    WAIT_ROOM: Final = 21
    LISTS: Final = 22
    #: The end of the plans' orders; then, for each GPM, the plans that its events may continue.
    WOKEN: Final = 23

    #: For the current event, the first GPM with rows, and the one after the last.
    FIRST_GPM: Final = 24
    LAST_GPM: Final = 25
    #: The place on the axis up to which rows were removed.
    EXPIRED: Final = 26

    SIZE: Final = 27


class frame(Record):
    """A frame of the search: the item it takes, and which rows of the item's buffer are tried."""

    # Phases.
    OPEN: Final = 0  # an item must be chosen
    ROWS: Final = 1  # the next row must be taken
    LEAVING: Final = 2  # the iteration is to be the last
    GOING_ON: Final = 3  # another iteration must begin
    OVER: Final = 4

    #: -1: none is chosen yet.
    item, set_item = reads(0), writes(0)
    phase, set_phase = reads(1), writes(1)
    row, set_row = reads(2), writes(2)
    #: The next row to try.
    cursor, set_cursor = reads(3), writes(3)
    end, set_end = reads(4), writes(4)
    #: Which of the row's links to follow; -1: rows are consecutive.
    link, set_link = reads(5), writes(5)
    #: The number of iterations.
    count, set_count = reads(6), writes(6)
    #: The items taken so far, a bit for each.
    bound, set_bound = reads(7), writes(7)
    is_unsure, set_is_unsure = reads(8), writes(8)
    #: The positions between which rows must be.
    low, set_low = reads(9), writes(9)
    high, set_high = reads(10), writes(10)
    #: Whether the event that started the search must be tried.
    is_trigger, set_is_trigger = reads(11), writes(11)
    #: The column of doubles with bounds; -1: none.
    column, set_column = reads(12), writes(12)

    SIZE: Final = 13
    #: The place where frames begin, after the stack of conditions and the moments of items.
    BEGIN: Final = moment.BEGIN + ordering.ITEM_LIMIT * moment.SIZE


class posting(Record):
    """An entry of the index: its index, its newest row, the number of its rows; then its key."""

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
    """A result: its event, whether it must be decided exactly, its choices, and its partition."""

    EVENT: Final = 0
    UNSURE: Final = 1
    BEGIN: Final = 2
    END: Final = 3
    SHOWN: Final = 4  # which rows its search was shown, see ``passing.rank``; 0 without a bound
    KEY: Final = 5
    SIZE: Final = KEY + posting.KEY_LIMIT

    set_event, set_is_unsure = writes(EVENT), writes(UNSURE)
    set_begin, set_end, set_shown = writes(BEGIN), writes(END), writes(SHOWN)


class ring(Record):
    """The state of a buffer: the numbers of its first row and of the one after its last, and its ring."""

    HEAD: Final = 0
    TAIL: Final = 1
    BASE: Final = 2
    MASK: Final = 3
    UNTIL: Final = 5
    SIZE: Final = 6

    head, set_head = reads_row(HEAD, SIZE), writes_row(HEAD, SIZE)
    tail, set_tail = reads_row(TAIL, SIZE), writes_row(TAIL, SIZE)
    #: The place of the ring among the rows of all buffers, and its size less one.
    base, mask = reads_row(BASE, SIZE), reads_row(MASK, SIZE)
    #: The first row of the current event, and the one after its last.
    now, set_now = reads_row(4, SIZE), writes_row(4, SIZE)
    until, set_until = reads_row(UNTIL, SIZE), writes_row(UNTIL, SIZE)


class stored(Record):
    """A row of a buffer: its event's place, its values, then a link and a posting for each index."""

    position, set_position = reads(0), writes(0)
    axis, set_axis = reads(1), writes(1)
    time, set_time = reads(2), writes(2)
    stream, set_stream = reads(3), writes(3)
    batch_row, set_batch_row = reads(4), writes(4)
    #: Whether its event has several rows.
    is_one_of_several, set_is_one_of_several = reads(5), writes(5)
    value, set_value = reads_item(6, 1), writes_item(6, 1)

    #: The place where the values begin.
    VALUES: Final = 6
    #: The most indexes of a buffer.
    INDEX_LIMIT: Final = 3


class waiting(Record):
    """A waiting partial match; its record, moments and choices follow."""

    #: Its items, a bit for each.
    bound, set_bound = reads(0), writes(0)
    is_unsure, set_is_unsure = reads(1), writes(1)
    #: The place of its first event.
    axis, set_axis = reads(2), writes(2)

    RECORD: Final = 3


class passing(Record):
    """Under a bound: the budget of events, how much of their work is done, and the promise of each row.

    Without a bound there is no such array: the kernel gets None, and is compiled without the code for it.
    """

    #: The budget of consecutive events in units of work (a row that is tested, or a match), or 0 for no
    #: limit. The number of these events; and the work of the last ones, in total and each.
    MOST: Final = 0
    EVENTS: Final = 64
    SPENT: Final = 1
    LATEST: Final = 2
    #: Matches found in total; and units done before the current event.
    EMITTED: Final = LATEST + EVENTS
    BEFORE: Final = EMITTED + 1
    #: The shares that are done of the current event's work and of the current search, see ``rank``; and how
    #: often a row was passed over.
    SHARE: Final = BEFORE + 1
    SHOWN: Final = SHARE + 1
    PASSED: Final = SHOWN + 1

    #: Then, for each GPM, the usual work of its events, in parts of ``PARTS``.
    SIZE: Final = PASSED + 1
    PARTS: Final = 256

    #: Then, for each row, by its place in the buffers: the probability that it was kept, in parts of
    #: ``SURE``.
    chance, set_chance = reads(0), writes(0)
    #: The share of the work that is left if all rows that promise less are passed over, in parts of ``SURE``.
    rank, set_rank = reads(1), writes(1)
    ROW: Final = 2
    SURE: Final = 1 << 32


class plan(Record):
    """An alternative of a query: its elements, its absences, and whether the tables have all its conditions.

    Places that Python also reads have names in capitals.
    """

    #: The range of its elements.
    ITEMS: Final = 0
    items = reads(ITEMS)
    ITEMS_END: Final = 1
    items_end = reads(ITEMS_END)
    checks = reads(2)
    checks_end = reads(3)
    is_exact = reads(4)

    SIZE: Final = 5


class element(Record):
    """An element of a sequence: its order among the others, its bindings, its conditions."""

    gpm = reads(0)
    before = reads(1)  # the items before it, a bit for each
    after = reads(2)
    kleene = reads(3)  # 0: none
    least = reads(4)  # iterations
    most = reads(5)  # -1: no bound
    binds = reads(6)
    binds_end = reads(7)
    conditions = reads(8)  # all conditions that need it, once it is complete
    conditions_end = reads(9)
    iteration = reads(10)  # of an iteration
    iteration_end = reads(11)
    ranges = reads(12)
    ranges_end = reads(13)
    site = reads(14)  # its number among those of all plans

    SIZE: Final = 15


class absence(Record):
    """A forbidden unit: between which elements, and when and how it is tested."""

    gpm = reads(0)
    after = reads(1)  # items, a bit for each
    before = reads(2)
    needs = reads(3)  # items that must be there before it can be tested
    is_sure = reads(4)  # whether tables decide it
    binds = reads(5)
    binds_end = reads(6)
    code = reads(7)
    code_end = reads(8)
    ranges = reads(9)
    ranges_end = reads(10)

    SIZE: Final = 11


class binding(Record):
    """A binding of an element's row: a slot, and the value's place in the row."""

    slot = reads(0)
    place = reads(1)
    is_own = reads(2)  # whether it is the iteration's own; in an absence: whether it need not agree

    SIZE: Final = 3


class condition(Record):
    """A condition between elements: the elements it needs, a bit for each, and its program."""

    needs = reads(0)
    code = reads(1)
    code_end = reads(2)

    SIZE: Final = 3


class interval(Record):
    """A sum that bounds a column of doubles: from which sides it does, and which items it needs."""

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
    """A Kleene: its number among all, its own slots and its aggregates."""

    number = reads(0)
    own = reads(1)
    own_end = reads(2)
    aggregates = reads(3)
    aggregates_end = reads(4)


class kept(Record):
    """What a buffer keeps of its GPM's rows: values, those also kept as doubles, and the indexes of rows."""

    values = reads(0)  # columns of a batch
    values_end = reads(1)
    indexes = reads(2)
    indexes_end = reads(3)
    ordered = reads(4)  # places of values that are also kept as doubles
    ordered_end = reads(5)

    SIZE: Final = 6


class lookup(Record):
    """An index of a buffer's rows: the values by which rows are found, and the slots in which a search has
    these values.
    """

    pairs = reads(0)  # of a place among values and a slot
    pairs_end = reads(1)

    SIZE: Final = 2


class summand(Record):
    """A term of a sum: a slot, or -1 for none, and the id of its factor."""

    slot = reads(0)
    factor = reads(1)

    SIZE: Final = 2
