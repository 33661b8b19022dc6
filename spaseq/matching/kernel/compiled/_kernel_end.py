"""The end of runs: as matches, at once or when their window has ended."""

from __future__ import annotations

from spaseq._jit import inlined, part, rare
from spaseq._kernel_events import reach_after, reach_before
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
    IS_LED,
    LED,
    UNSURE,
)
from spaseq.matching.kernel.compiled._kernel_memory import (
    forget,
)
from spaseq.matching.kernel.compiled._kernel_places import (
    park,
    unpark,
)
from spaseq.matching.kernel.records import findings, gaps, header, nodes, partitions, waits
from spaseq.matching.kernel.records.tables import accepts


@part
def _found(m: Ints, p: int, node: int, e: int, accept: int, unsure: int) -> int:
    """Writes a match of a partition down, by its last event; where."""
    at = header.found(m) + header.found_count(m) * findings.SIZE
    header.set_found_count(m, header.found_count(m) + 1)
    findings.set_event(m, at, e)
    findings.set_partition(m, at, p)
    findings.set_node(m, at, node)
    findings.set_accept(m, at, accept)
    findings.set_unsure(m, at, unsure)
    nodes.hold(m, node)
    return int(at)


@inlined
def complete(m: Ints, p: int, node: int, e: int, accept: int, unsure: int) -> None:
    """A run of a partition is a match, with an event."""
    at = _found(m, p, node, e, accept, unsure)
    findings.set_turn(m, at, e)
    findings.set_due(m, at, findings.LAST)
    findings.set_rank(m, at, findings.LAST)
    findings.set_waited(m, at, 0)


@rare
def _is_open(t: Ints, m: Ints, w: int) -> bool:
    """Whether a negation waits for the end of the window."""
    start = w + t[GAPS] + FIRST_GAP
    found = False
    for gap in range(start, start + t[N_GAPS] * gaps.SIZE, gaps.SIZE):
        found = found or gaps.forbidden(m, gap) != 0
    return found


@inlined
def end(t: Ints, m: Ints, w: int, e: int, accept: int) -> bool:
    """A run ends here, unless something forbidden has led to it in its window; whether it waits now."""
    unsure = 0
    if t[N_GAPS] != 0:
        if m[w + t[GAPS] + IS_LED] != 0 and m[w + t[GAPS] + LED] >= reach_before(header.now(m), t[LIMIT]):
            return False
        unsure = m[w + t[GAPS] + UNSURE]
        if t[HOLDS] != 0 or _is_open(t, m, w):
            waits.set_gate(m, w, accept)
            waits.set_due(m, w, header.now(m) if t[HOLDS] != 0 else waits.first(m, w))
            nodes.hold(m, waits.node(m, w))
            park(m, w)
            return True
    complete(m, waits.partition(m, w), waits.node(m, w), e, accepts.number(t, accept), unsure)
    return False


@part
def is_due(t: Ints, m: Ints, axis: int) -> bool:
    """Whether some match has waited long enough, at a place on the window's axis."""
    if t[TRAILS] == 0 or header.parked_count(m) == 0:
        return False
    return bool(axis > reach_after(waits.due(m, m[header.parked(m)]), t[LIMIT]))


@rare
def end_due(
    t: Ints, m: Ints, f: Floats, numbers: Floats, codes: Codes, axis: int, e: int, start: int,
    closes: bool,
) -> None:  # fmt: skip
    """The matches that are due at an event, or before it: found, unless something forbidden has happened.

    ``start`` is the position of the batch's first event; ``closes``: no event will come, and all are due.
    There must be room for all that wait.
    """
    while is_due(t, m, axis) or (closes and header.parked_count(m) != 0):
        w = unpark(m)
        knows = w + t[GAPS]
        first = knows + FIRST_GAP
        verdict, unsure, waited = FALSE, m[knows + UNSURE], 0
        for gap in range(first, first + t[N_GAPS] * gaps.SIZE, gaps.SIZE):
            if gaps.forbidden(m, gap) != 0 and verdict != TRUE:
                waited = 1
                verdict, _, _ = look_back(t, m, f, numbers, codes, w, gap, t[LAST_VIEW], True)
                if verdict == UNKNOWN:
                    unsure = 1
        if verdict != TRUE:
            node = waits.node(m, w)
            number = accepts.number(t, waits.gate(m, w))
            at = _found(m, waits.partition(m, w), node, nodes.position(m, node) - start, number, unsure)
            findings.set_turn(m, at, e)
            findings.set_due(m, at, waits.due(m, w))
            findings.set_rank(m, at, partitions.newest(m, waits.partition(m, w)))
            findings.set_waited(m, at, waited)
        forget(m, w)
