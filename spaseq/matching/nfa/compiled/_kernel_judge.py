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
    Ints,
    RunMachine,
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
    """Return whether a row has the partition's key. With ``key`` 0, all rows of the event have it."""
    return key == 0 or _is_of_key(t, m, b, g, r, key)


@inlined
def at_entries(machine: RunMachine) -> RunMachine:
    """Return a machine that reads entries of the memory in place of rows of the batch."""
    return with_batch(machine, machine.m)


@inlined
def with_batch(machine: RunMachine, b: Ints) -> RunMachine:
    """Return a machine with another batch."""
    return RunMachine(machine.t, machine.m, machine.f, b, machine.n, machine.c)


@inlined
def meets(machine: RunMachine, code: int, code_end: int, w: int, r: int) -> int:
    """Return whether the conditions of a program hold for a run and a row."""
    m = machine.m
    return holds(machine, header.kinds(m), code, code_end, w, waits.sums(m, w), r)


@part
def judge_row(machine: RunMachine, w: int, unit: int, r: int) -> int:
    """Return whether a row joins with a run and the conditions hold."""
    t, m, b = machine.t, machine.m, machine.b
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
        verdict = meets(machine, start, end, w, r)
        if verdict != TRUE:
            return verdict
    return UNKNOWN if unknown else TRUE


@part
def judge(machine: RunMachine, share: int, key: int, w: int, c: int) -> tuple[int, int]:
    """Return whether the event is relevant for a candidate of a wait. Also return the only relevant row, or
    -1 if there are several.

    ``share``: the rows of the candidate's GPM in the event.
    """
    t, m, b = machine.t, machine.m, machine.b
    unit, g = candidates.unit(t, c), candidates.gpm(t, c)
    true, unknown, row = 0, 0, -1
    for r in range(batch.first(b, share), batch.end(b, share)):
        if not belongs(t, m, b, g, r, key):
            continue
        verdict = judge_row(machine, w, unit, r)
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
    verdict = answer(m, w, candidates.number(t, c))
    return verdict, row if verdict != UNKNOWN else -1


@rare
def answer(m: Ints, w: int, number: int) -> int:
    """Return the answer of a question about a run that the tables cannot decide. If there is no answer yet,
    record the question.
    """
    asked = header.asked(m)
    header.set_asked(m, asked + 1)
    if asked < header.answered(m):
        return int(m[header.answers(m) + asked])
    if asked < header.most_decisions(m):
        at = header.questions(m) + asked * questions.SIZE
        questions.set_wait(m, at, w)
        questions.set_number(m, at, number)
    return UNKNOWN
