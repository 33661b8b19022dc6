"""The families of the kernel as a table, and dropping families that are shed."""

from __future__ import annotations

from typing import Final

from spaseq._jit import kernel
from spaseq.matching.filters._kernel_values import CALC, SHORT, Floats, Ints, RunMachine, pointer
from spaseq.matching.nfa.compiled._kernel_judge import meets
from spaseq.matching.nfa.records import gates, header, waits
from spaseq.matching.nfa.skip.compiled._kernel_families import drop
from spaseq.matching.nfa.skip.records import families, roster

# Columns of the table: a family, its first event's place on the window's axis and position, the number of its
# runs, and whether it has a match so far.
L_FAMILY: Final = 0
L_FIRST: Final = 1
L_POSITION: Final = 2
L_RUNS: Final = 3
L_HAS: Final = 4
L_SIZE: Final = 5


@kernel
def listed(machine: RunMachine, alive: Ints, values_: Ints, rows: Ints, gates_: Ints, xs: Floats) -> int:
    """List all families, oldest first, and their runs; return the number of families.

    The arrays are filled as far as they have room. For each run, ``gates_`` gets the gate before which it
    waits, and ``xs`` the value of that gate's program, or NaN. ``values_``: by gate, where the program begins
    and ends.
    """
    x: RunMachine = pointer(machine)
    t, m, f = x.t, x.m, x.f
    a: Ints = pointer(alive)
    count, room, run, most = 0, len(rows) // L_SIZE, 0, len(gates_)
    family = roster.oldest(a)
    while family != 0:
        if count < room:
            at = count * L_SIZE
            before = run
            w = families.head(a, family)
            while w != 0:
                if run < most:
                    gate = gates.number(t, waits.gate(m, w))
                    gates_[run] = gate
                    xs[run] = float("nan")
                    if values_[2 * gate] >= 0:
                        meets(x, values_[2 * gate], values_[2 * gate + 1], w, 0)
                        if SHORT <= m[header.kinds(m)] <= CALC:
                            xs[run] = f[1]
                run += 1
                w = waits.link(m, w)
            rows[at + L_FAMILY] = family
            rows[at + L_FIRST] = families.first(a, family)
            rows[at + L_POSITION] = families.position(a, family)
            rows[at + L_RUNS] = run - before
            rows[at + L_HAS] = families.best(a, family) != 0
        count += 1
        family = families.later(a, family)
    return count


@kernel
def let_go(ints: Ints, alive: Ints, gone: Ints) -> None:
    """Drop families. If SKIP goes to the next event, this does not affect the other families."""
    m: Ints = pointer(ints)
    a: Ints = pointer(alive)
    for i in range(len(gone)):
        drop(m, a, gone[i], families.members(a, gone[i]))
