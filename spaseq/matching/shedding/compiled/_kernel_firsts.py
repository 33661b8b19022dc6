"""The partial matches of an arena by the first events they begin with, for what sheds all of one together."""

from __future__ import annotations

from typing import Final

from spaseq._jit import kernel, part
from spaseq.matching.conditions._kernel_values import Ints, pointer
from spaseq.matching.kernel.records import gates, header, nodes, waits
from spaseq.matching.shedding.compiled._kernel_known import AGES, CODE, age, is_live, known_at

# Columns of what is listed: a wait, its partition, its first event's position and place on the window's axis,
# and its cell.
L_WAIT: Final = 0
L_PARTITION: Final = 1
L_POSITION: Final = 2
L_PLACE: Final = 3
L_CELL: Final = 4
L_SIZE: Final = 5


@part
def _first(m: Ints, node: int) -> int:
    """The position of the event that the runs of a node begin with."""
    while nodes.previous(m, node) != 0:
        node = nodes.previous(m, node)
    return int(nodes.position(m, node))


@kernel
def listed(
    tables: Ints, ints: Ints, known_: Ints, bases_: Ints, rows_: Ints, axis: int, time: int, now: int
) -> int:
    """Lists all partial matches, which were looked at just now; how many there are."""
    t, m, known, bases, rows = (
        pointer(tables), pointer(ints), pointer(known_), pointer(bases_), pointer(rows_),
    )  # fmt: skip
    count = 0
    for w in range(header.waits(m) + header.width(m), header.next_wait(m), header.width(m)):
        if not is_live(t, m, w, axis, time):
            continue
        node = waits.node(m, w)
        number = bases[gates.number(t, waits.gate(m, w))] + known[known_at(m, known, node) + CODE]
        at = count * L_SIZE
        rows[at + L_WAIT] = w
        rows[at + L_PARTITION] = waits.partition(m, w)
        rows[at + L_POSITION] = _first(m, node)
        rows[at + L_PLACE] = waits.first(m, w)
        rows[at + L_CELL] = number * AGES + age(t, axis, waits.first(m, w), now)
        count += 1
    return count
