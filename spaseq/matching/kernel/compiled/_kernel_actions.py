"""Actions: what Kleenes, negations and bounds of time do to a wait, and whether it may go on."""

from __future__ import annotations

from spaseq._jit import part, rare
from spaseq._kernel_events import reach_after
from spaseq.matching.conditions._kernel_aggregates import clear_sum, fold
from spaseq.matching.conditions._kernel_machine import holds
from spaseq.matching.conditions._kernel_values import (
    A_KIND,
    A_OFFSET,
    A_SIZE,
    A_SUM,
    ACC_COUNT,
    ACC_FIRST,
    ACC_LAST,
    ACC_SUM,
    AGGREGATES,
    BEYOND,
    FALSE,
    MANY,
    N_KLEENES,
    N_SLOTS,
    SINCES,
    SINCES_END,
    SLOTS,
    Codes,
    Floats,
    Ints,
)
from spaseq.matching.kernel.compiled._kernel_gaps import gap_action
from spaseq.matching.kernel.records import header, waits
from spaseq.matching.kernel.records.tables import actions, kleenes


@rare
def act(t: Ints, m: Ints, f: Floats, numbers: Floats, codes: Codes, w: int, start: int, end: int) -> bool:
    """Actions on a wait; False if one of them forbids to go on."""
    begun = w + SLOTS + t[N_SLOTS]
    completed = begun + t[N_KLEENES]
    aggregates = completed + t[N_KLEENES]
    for i in range(start, end, actions.SIZE):
        action, kleene, most = actions.kind(t, i), actions.about(t, i), actions.number(t, i)
        if action == actions.SINCE:
            m[w + t[SINCES] + kleene], m[w + t[SINCES_END] + kleene] = 0, 1
            continue
        if action == actions.UNTIL:
            if waits.time(m, w) > reach_after(m[w + t[SINCES] + kleene], t[most]):
                return False
            continue
        if action >= actions.FORBID:
            if not gap_action(t, m, f, numbers, codes, w, action, kleene, most):
                return False
            continue
        number = kleenes.number(t, kleene)
        if action == actions.ENTER:
            m[begun + number] = 1
            m[completed + number] = 0
            for j in range(kleenes.aggregates(t, kleene), kleenes.aggregates_end(t, kleene)):
                m[aggregates + j] = 0
                if t[t[AGGREGATES] + j * A_SIZE + A_KIND] == ACC_SUM:
                    clear_sum(f, waits.sums(m, w) + t[t[AGGREGATES] + j * A_SIZE + A_SUM])
            continue
        iterations = m[begun + number]
        if action == actions.AGAIN and most >= 0 and iterations >= most:
            return False
        if action == actions.LEAVE and iterations < most:
            return False
        for j in range(kleenes.aggregates(t, kleene), kleenes.aggregates_end(t, kleene)):
            fold(t, m, f, w, waits.sums(m, w), j, numbers, codes)
        m[completed + number] += 1
        own = kleenes.own(t, kleene)
        if action == actions.AGAIN:
            m[begun + number] += 1
            for j in range(own, kleenes.own_end(t, kleene)):
                waits.set_slot(m, w, t[j], 0)
        elif m[completed + number] > 1:
            for j in range(own, kleenes.own_end(t, kleene)):
                waits.set_slot(m, w, t[j], MANY)
    return True


@part
def may(
    t: Ints, m: Ints, f: Floats, b: Ints, numbers: Floats, codes: Codes, w: int,
    begin: int, end: int, code: int, code_end: int,
) -> bool:  # fmt: skip
    """Actions on a wait, and whether it may go on: no condition that is decided here surely fails."""
    if begin < end and not act(t, m, f, numbers, codes, w, begin, end):
        return False
    if code == code_end:
        return True
    return holds(t, code, code_end, m, header.kinds(m), f, w, waits.sums(m, w), b, 0, numbers, codes) > FALSE


@rare
def blur(t: Ints, m: Ints, f: Floats, w: int, kleene: int) -> None:
    """An iteration has several solutions: how many, and their sum, is beyond the tables."""
    start = w + SLOTS + t[N_SLOTS] + 2 * t[N_KLEENES]
    for j in range(kleenes.aggregates(t, kleene), kleenes.aggregates_end(t, kleene)):
        a = t[AGGREGATES] + j * A_SIZE
        kind = t[a + A_KIND]
        further = t[a + A_OFFSET] > 0 and (kind == ACC_LAST or (kind == ACC_FIRST and m[start + j] == 0))
        if kind == ACC_COUNT or further:
            m[start + j] = MANY
        elif kind == ACC_SUM:
            f[waits.sums(m, w) + t[a + A_SUM] + 2] = BEYOND
