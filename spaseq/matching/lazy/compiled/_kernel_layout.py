"""The lazy kernel's machine, the results of its calls, and the head of its tables.

The tables begin like those of ``filters._kernel_values``, as they have the same conditions. Their rows, and
the records of the memory, are in ``records``.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from spaseq._fields import floats_at, ints_at
from spaseq._jit import inlined
from spaseq.matching.filters._kernel_values import DEEPEST, TABLES_HEADER, Codes, Floats, Ints
from spaseq.matching.lazy.records import counter, element, frame, ordering, plan

# The results of a call.
DONE: Final = 0
FULL: Final = 1  # the room for results is full
DEEPER: Final = 2  # more frames are needed
ROOM: Final = 3  # a buffer is full
MORE_KEYS: Final = 4  # the index is full
MORE_WAITS: Final = 5  # a list of partial matches is full

# Places of the tables after those of conditions.
T_PLANS: Final = TABLES_HEADER
T_PLANS_END: Final = TABLES_HEADER + 1
T_BUFFERS: Final = TABLES_HEADER + 2
T_KEYS: Final = TABLES_HEADER + 3  # the slots of the PARTITION BY variables
T_KEYS_END: Final = TABLES_HEADER + 4
T_VALUES: Final = TABLES_HEADER + 5  # the most values of a row
T_ORDERED: Final = TABLES_HEADER + 6  # the most columns of a buffer's values as doubles
HEADER: Final = TABLES_HEADER + 7

#: The floats of a frame, and of a waiting partial match, end with the bounds of a row's values.
BOUNDS: Final = 2
NOTHING: Final = -1


class LazyMachine(NamedTuple):
    """All arrays that a call works on, as pointers to their first number."""

    tables: Ints
    counters: Ints  # ``counter``
    frames: Ints  # the stack of conditions, ``moment`` by item, then each ``frame`` and its bindings
    sums: Floats  # the stack of conditions, then ``floats`` for each frame
    rings: Ints  # a ``ring`` for each GPM
    rows: Ints  # ``stored``, for all buffers
    ordered: Floats  # the columns of doubles of all buffers
    postings: Ints  # the index of rows
    orders: Ints  # an ``ordering`` for each plan, then the plans that events may continue
    lists: Ints  # the number of waiting partial matches in each list
    waits: Ints  # ``waiting``, in each list
    spans: Floats  # the bounds of the rows that each waiting partial match may take next
    found: Ints  # ``outcome``
    choices: Ints  # position, site and row of each event of a result
    #: The integers of a frame, the floats of a frame, the integers of a waiting partial match.
    width: int
    floats: int
    size: int
    batch: Ints
    numbers: Floats
    codes: Codes


#: The integers of ``machine`` in ``opened``.
MACHINE: Final = 17


@inlined
def opened(machine: Ints, batch: Ints, numbers: Floats, codes: Codes) -> LazyMachine:
    """Return the machine of a call. ``machine``: the addresses of its arrays, then its three sizes."""
    a = machine
    return LazyMachine(
        ints_at(a[0]), ints_at(a[1]), ints_at(a[2]), floats_at(a[3]), ints_at(a[4]), ints_at(a[5]),
        floats_at(a[6]), ints_at(a[7]), ints_at(a[8]), ints_at(a[9]), ints_at(a[10]), floats_at(a[11]),
        ints_at(a[12]), ints_at(a[13]), a[14], a[15], a[16], batch, numbers, codes,
    )  # fmt: skip


@inlined
def item_count(m: LazyMachine) -> int:
    """Return the number of items of the current plan."""
    p = m.counters[counter.PLAN]
    return int((plan.items_end(m.tables, p) - plan.items(m.tables, p)) // element.SIZE)


@inlined
def item_at(m: LazyMachine, i: int) -> int:
    """Return the place of an item of the current plan."""
    return int(plan.items(m.tables, m.counters[counter.PLAN]) + i * element.SIZE)


@inlined
def chain_of(m: LazyMachine) -> int:
    """Return the place of the order of the current plan."""
    return int((m.counters[counter.PLAN] - m.tables[T_PLANS]) // plan.SIZE * ordering.SIZE)


@inlined
def sums_of(m: LazyMachine, depth: int) -> int:
    """Return where the sums of a frame begin, after the stack of the conditions."""
    return 1 + 2 * DEEPEST + depth * m.floats


@inlined
def limits_of(m: LazyMachine, depth: int) -> int:
    """Return where the bounds of a frame's rows are, after its sums."""
    return sums_of(m, depth + 1) - BOUNDS


@inlined
def open_frame(m: LazyMachine, depth: int, bound: int) -> None:
    """Continue the search with a frame that has no item yet; ``bound``: the items taken so far."""
    at = frame.BEGIN + depth * m.width
    frame.set_phase(m.frames, at, frame.OPEN)
    frame.set_item(m.frames, at, NOTHING)
    frame.set_bound(m.frames, at, bound)
    m.counters[counter.DEPTH] = depth
