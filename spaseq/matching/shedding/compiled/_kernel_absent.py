"""Which partial matches are dead: what they say is absent has come, and nothing can undo it.

The kernel finds out only when the element behind the gap comes. Until then such a partial match is shown
events like any other one, and whoever counts how often one goes on would take it for a live one.
"""

from __future__ import annotations

from spaseq._jit import part
from spaseq.matching.conditions._kernel_values import (
    GAPS,
    N_GAPS,
    TRUE,
    Codes,
    Floats,
    Ints,
)
from spaseq.matching.kernel.compiled._kernel_gaps import look_back
from spaseq.matching.kernel.compiled._kernel_layout import FIRST_GAP, NOWHERE
from spaseq.matching.kernel.records import gaps, waits
from spaseq.matching.kernel.records.tables import checks, units


@part
def _binds_nothing_more(t: Ints, m: Ints, w: int, forbidden: int, taken: Ints) -> bool:
    """Whether all that joins what is forbidden with a run has its value: none to come can part them."""
    for check in range(t[forbidden], t[forbidden + 1], checks.SIZE):
        unit = checks.unit(t, check)
        for i in range(units.binds(t, unit), units.binds_end(t, unit), 2):
            if taken[t[i]] != 0 and waits.slot(m, w, t[i]) <= 0:
                return False
    return True


@part
def is_dead(t: Ints, m: Ints, f: Floats, n: Floats, c: Codes, w: int, time: int, taken: Ints) -> bool:
    """Whether something forbidden has surely come in an open gap of a wait, before all that is to come.

    Good for queries of which ``Features.tells_the_dead`` says so. ``taken``: by slot, whether an event of a
    match may bind it.
    """
    start = w + t[GAPS] + FIRST_GAP
    for gap in range(start, start + t[N_GAPS] * gaps.SIZE, gaps.SIZE):
        forbidden = gaps.forbidden(m, gap)
        if (
            forbidden == 0
            or gaps.after_stream(m, gap) == NOWHERE
            or gaps.before_stream(m, gap) != NOWHERE
            or not _binds_nothing_more(t, m, w, forbidden, taken)
        ):
            continue
        # As if the gap ended now: what has the same time need not be before what is to come.
        gaps.set_before_time(m, gap, time)
        verdict, _ = look_back(t, m, f, n, c, w, gap, 0, False)
        if verdict == TRUE:
            return True
    return False
