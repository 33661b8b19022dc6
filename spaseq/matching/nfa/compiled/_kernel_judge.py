"""Whether an event is relevant for a run: the rows of the event, one by one, against the run's slots."""

from __future__ import annotations

from spaseq._jit import inlined, part, rare
from spaseq.matching.filters import batch
from spaseq.matching.filters._kernel_machine import holds
from spaseq.matching.filters._kernel_values import (
    FALSE,
    MANY,
    N_KEYS,
    PARTITION_COLUMNS,
    TRUE,
    UNKNOWN,
    Codes,
    Floats,
    Ints,
)
from spaseq.matching.nfa.compiled._kernel_layout import value
from spaseq.matching.nfa.records import candidates, header, questions, units, waits


@rare
def _is_of_key(t: Ints, m: Ints, b: Ints, g: int, r: int, key: int) -> bool:
    size = t[N_KEYS]
    for j in range(size):
        column = t[t[PARTITION_COLUMNS] + g * size + j]
        if column >= 0:
            identifier = value(b, column, r)
            if identifier != 0 and identifier != m[key + j]:
                return False
    return True


@inlined
def belongs(t: Ints, m: Ints, b: Ints, g: int, r: int, key: int) -> bool:
    """Return whether a row is of the partition's key; ``key`` 0: all rows of the event are."""
    return key == 0 or _is_of_key(t, m, b, g, r, key)


@part
def judge_row(
    t: Ints, m: Ints, f: Floats, b: Ints, numbers: Floats, codes: Codes, w: int, unit: int, r: int
) -> int:
    """Return whether a row joins with a run and the conditions hold."""
    unknown = False
    for i in range(units.binds(t, unit), units.binds_end(t, unit), 2):
        known = waits.slot(m, w, t[i])
        if known != 0:
            identifier = value(b, t[i + 1], r)
            if identifier != 0 and identifier != known:
                if known != MANY:
                    return FALSE
                unknown = True
    start, end = units.code(t, unit), units.code_end(t, unit)
    if start < end:
        verdict = holds(t, start, end, m, header.kinds(m), f, w, waits.sums(m, w), b, r, numbers, codes)
        if verdict != TRUE:
            return verdict
    return UNKNOWN if unknown else TRUE


@part
def judge(
    t: Ints, m: Ints, f: Floats, b: Ints, numbers: Floats, codes: Codes, share: int, key: int, w: int, c: int
) -> tuple[int, int]:
    """Return whether the event is relevant for a candidate of a wait; and the only relevant row, or -1 if
    several.

    ``share``: the rows of the candidate's GPM in the event.
    """
    unit, g = candidates.unit(t, c), candidates.gpm(t, c)
    true, unknown, row = 0, 0, -1
    for r in range(batch.first(b, share), batch.end(b, share)):
        if not belongs(t, m, b, g, r, key):
            continue
        verdict = judge_row(t, m, f, b, numbers, codes, w, unit, r)
        if verdict == TRUE:
            true += 1
            row = r
        elif verdict == UNKNOWN:
            unknown += 1
            row = r
    if true + unknown > 1:
        row = -1
    if true > 0:
        return TRUE, row
    if unknown == 0:
        return FALSE, -1
    return _asked(t, m, w, c, row)


@rare
def _asked(t: Ints, m: Ints, w: int, c: int, row: int) -> tuple[int, int]:
    """Return the answer of a question that the tables cannot decide; record the question if it has none."""
    asked = header.asked(m)
    header.set_asked(m, asked + 1)
    if asked < header.answered(m):
        return m[header.answers(m) + asked], row
    if asked < header.most_decisions(m):
        at = header.questions(m) + asked * questions.SIZE
        questions.set_wait(m, at, w)
        questions.set_number(m, at, candidates.number(t, c))
    return UNKNOWN, -1
