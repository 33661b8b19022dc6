"""The families of the ordered kernel as a table, and those dropped that nobody wants to go on."""

from __future__ import annotations

from typing import Final

from spaseq._jit import kernel
from spaseq.matching.conditions._kernel_values import Ints, pointer
from spaseq.matching.kernel.records import nodes, waits
from spaseq.matching.kernel.records.tables import gates
from spaseq.matching.ordered.compiled._kernel_families import drop
from spaseq.matching.ordered.records import families, roster

# Columns of what is listed: a family, its first event's place on the window's axis and position, the gate in
# front of which the longest of its runs waits, how many runs there are, and whether it has a match so far.
L_FAMILY: Final = 0
L_FIRST: Final = 1
L_POSITION: Final = 2
L_GATE: Final = 3
L_RUNS: Final = 4
L_HAS: Final = 5
L_SIZE: Final = 6


@kernel
def listed(tables: Ints, ints: Ints, alive: Ints, rows: Ints) -> int:
    """Lists all families, the oldest first; how many there are, of which so many rows are filled as fit."""
    t: Ints = pointer(tables)
    m: Ints = pointer(ints)
    a: Ints = pointer(alive)
    count, room = 0, len(rows) // L_SIZE
    family = roster.oldest(a)
    while family != 0:
        if count < room:
            at = count * L_SIZE
            runs, deepest, gate = 0, -1, 0
            w = families.head(a, family)
            while w != 0:
                runs += 1
                depth = nodes.depth(m, waits.node(m, w))
                if depth > deepest:
                    deepest, gate = depth, gates.number(t, waits.gate(m, w))
                w = waits.link(m, w)
            rows[at + L_FAMILY] = family
            rows[at + L_FIRST] = families.first(a, family)
            rows[at + L_POSITION] = families.position(a, family)
            rows[at + L_GATE] = gate
            rows[at + L_RUNS] = runs
            rows[at + L_HAS] = families.best(a, family) != 0
        count += 1
        family = families.later(a, family)
    return count


@kernel
def let_go(ints: Ints, alive: Ints, gone: Ints) -> None:
    """Drops families; where SKIP goes to the next event, none of the others notices."""
    m: Ints = pointer(ints)
    a: Ints = pointer(alive)
    for i in range(len(gone)):
        drop(m, a, gone[i], families.members(a, gone[i]))
