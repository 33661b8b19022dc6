"""The end of runs: as matches, at once or when their window has ended."""

from __future__ import annotations

from spaseq._jit import part
from spaseq.matching.conditions._kernel_values import (
    FALSE,
    GAPS,
    HOLDS,
    LAST_VIEW,
    LIMIT,
    N_GAPS,
    TRAILS,
    TRUE,
    UNKNOWN,
    Codes,
    Floats,
    Ints,
)
from spaseq.matching.kernel.compiled._kernel_gaps import look_back
from spaseq.matching.kernel.compiled._kernel_layout import (
    FIRST_GAP,
    FOUND_ACCEPT,
    FOUND_EVENT,
    FOUND_NODE,
    FOUND_PARTITION,
    FOUND_RANK,
    FOUND_SIZE,
    FOUND_TURN,
    FOUND_UNSURE,
    FOUND_WAITED,
    GAP_FORBIDDEN,
    GAP_SIZE,
    LAST_RANK,
    LED,
    UNSURE,
)
from spaseq.matching.kernel.compiled._kernel_memory import (
    FOUND,
    FOUND_COUNT,
    NOW,
    PARKED,
    PARKED_COUNT,
    forget,
)
from spaseq.matching.kernel.compiled._kernel_places import (
    park,
    unpark,
)
from spaseq.matching.kernel.records import accepts, nodes, partitions, waits


@part
def _found(m: Ints, w: int, e: int, accept: int, unsure: int) -> int:
    """Writes a match down; where."""
    at = m[FOUND] + m[FOUND_COUNT] * FOUND_SIZE
    m[FOUND_COUNT] += 1
    m[at + FOUND_EVENT] = e
    m[at + FOUND_PARTITION] = waits.partition(m, w)
    m[at + FOUND_NODE] = waits.node(m, w)
    m[at + FOUND_ACCEPT] = accept
    m[at + FOUND_UNSURE] = unsure
    nodes.set_uses(m, waits.node(m, w), nodes.uses(m, waits.node(m, w)) + 1)
    return int(at)


@part
def _is_open(t: Ints, m: Ints, w: int) -> bool:
    """Whether a negation waits for the end of the window."""
    start = w + t[GAPS] + FIRST_GAP
    found = False
    for gap in range(start, start + t[N_GAPS] * GAP_SIZE, GAP_SIZE):
        found = found or m[gap + GAP_FORBIDDEN] != 0
    return found


@part
def end(t: Ints, m: Ints, w: int, e: int, accept: int) -> bool:
    """A run ends here, unless something forbidden has led to it in its window; whether it waits now."""
    unsure = 0
    if t[N_GAPS] != 0:
        if m[w + t[GAPS] + LED] >= m[NOW] - t[LIMIT]:
            return False
        unsure = m[w + t[GAPS] + UNSURE]
        if t[HOLDS] != 0 or _is_open(t, m, w):
            waits.set_gate(m, w, accept)
            waits.set_due(m, w, m[NOW] if t[HOLDS] != 0 else waits.first(m, w))
            nodes.set_uses(m, waits.node(m, w), nodes.uses(m, waits.node(m, w)) + 1)
            park(m, w)
            return True
    at = _found(m, w, e, accepts.number(t, accept), unsure)
    m[at + FOUND_TURN] = e
    m[at + FOUND_RANK] = LAST_RANK
    m[at + FOUND_WAITED] = 0
    return False


@part
def is_due(t: Ints, m: Ints, axis: int) -> bool:
    """Whether some match has waited long enough, at a place on the window's axis."""
    return bool(t[TRAILS] != 0 and m[PARKED_COUNT] != 0 and axis - waits.due(m, m[m[PARKED]]) > t[LIMIT])


@part
def end_due(
    t: Ints, m: Ints, f: Floats, numbers: Floats, codes: Codes, axis: int, e: int, start: int
) -> None:
    """The matches that are due at an event, or before it: found, unless something forbidden has happened.

    ``start`` is the position of the batch's first event. There must be room for all that wait.
    """
    while is_due(t, m, axis):
        w = unpark(m)
        knows = w + t[GAPS]
        first = knows + FIRST_GAP
        verdict, unsure, waited = FALSE, m[knows + UNSURE], 0
        for gap in range(first, first + t[N_GAPS] * GAP_SIZE, GAP_SIZE):
            if m[gap + GAP_FORBIDDEN] != 0 and verdict != TRUE:
                waited = 1
                verdict, _ = look_back(t, m, f, numbers, codes, w, gap, t[LAST_VIEW], True)
                if verdict == UNKNOWN:
                    unsure = 1
        if verdict != TRUE:
            at = _found(
                m, w, nodes.position(m, waits.node(m, w)) - start, accepts.number(t, waits.gate(m, w)), unsure
            )
            m[at + FOUND_TURN] = e
            m[at + FOUND_RANK] = partitions.newest(m, waits.partition(m, w))
            m[at + FOUND_WAITED] = waited
        forget(m, w)
