"""Decide: the effect of an event on each run, and the options that are refused then. No run is changed."""

from __future__ import annotations

from spaseq._jit import part
from spaseq.matching.filters import batch
from spaseq.matching.filters._kernel_values import (
    SINGLE,
    START,
    TRUE,
    UNKNOWN,
    Ints,
    RunMachine,
)
from spaseq.matching.nfa.compiled._kernel_apply import begin_bounds, bind
from spaseq.matching.nfa.compiled._kernel_gaps import act, blur
from spaseq.matching.nfa.compiled._kernel_judge import answer, judge, meets
from spaseq.matching.nfa.compiled._kernel_layout import (
    share_of,
)
from spaseq.matching.nfa.compiled._kernel_memory import copy_slots, note
from spaseq.matching.nfa.records import (
    accepts,
    candidates,
    decisions,
    gates,
    header,
    partitions,
    places,
    units,
    waits,
)
from spaseq.matching.nfa.skip.compiled._kernel_deliver import (
    is_past,
)
from spaseq.matching.nfa.skip.compiled._kernel_index import call
from spaseq.matching.nfa.skip.records import (
    MOST_OPTIONS,
    OPTION_SIZE,
    REFUSED,
    STEP_BARS,
    STEP_SIZE,
    SkipMachine,
    families,
    preferences,
    roster,
)


@part
def follows(t: Ints, m: Ints, w: int, time: int, stream: int) -> bool:
    """Return whether an event comes after a run, and not too late."""
    if t[SINGLE] != 0:
        return True
    return bool(
        (time != waits.time(m, w) or stream == waits.stream(m, w)) and (waits.barred(m, w) >> stream) & 1 == 0
    )


@part
def takes(machine: RunMachine, e: int, key: int, w: int, c: int, row: int) -> None:
    """Add the event to a run, before the choice of its options."""
    t, m, f, b = machine.t, machine.m, machine.f, machine.b
    bind(t, m, b, e, key, w, c, row)
    act(machine, w, candidates.actions(t, c), candidates.actions_end(t, c))
    begin_bounds(t, m, w, batch.time(b, e))
    if row < 0 and units.counting(t, candidates.unit(t, c)) != 0:
        blur(t, m, f, w, units.counting(t, candidates.unit(t, c)))


@part
def _refused(machine: RunMachine, skip: SkipMachine, e: int, key: int, w: int, c: int, row: int) -> int:
    """Return the options, as bits, that are refused when a run takes the event, because a FILTER of WHERE
    fails.

    Each option is tried on a copy of the run, because the tables may be unable to decide.
    """
    t, o, m = machine.t, skip.o, machine.m
    options = preferences.places(o) + 2 * ((candidates.place(t, c) - t[START]) // places.SIZE)
    trial, refused = header.trial(m), 0
    for i in range(o[options], o[options + 1], OPTION_SIZE):
        at, is_gate = o[i], o[i + 1] != 0
        code = gates.code(t, at) if is_gate else accepts.code(t, at)
        code_end = gates.code_end(t, at) if is_gate else accepts.code_end(t, at)
        if code == code_end:
            continue
        waits.set_time(m, trial, batch.time(machine.b, e))
        copy_slots(m, machine.f, w, trial)
        takes(machine, e, key, trial, c, row)
        actions = gates.actions(t, at) if is_gate else accepts.actions(t, at)
        actions_end = gates.actions_end(t, at) if is_gate else accepts.actions_end(t, at)
        if not act(machine, trial, actions, actions_end):
            continue
        verdict = meets(machine, code, code_end, trial, 0)
        number = (i - o[options]) // OPTION_SIZE
        if verdict == UNKNOWN:
            verdict = answer(m, w, -1 - (candidates.number(t, c) * MOST_OPTIONS + number))
        if verdict != TRUE:
            refused |= 1 << number
    return refused


@part
def _note(
    machine: RunMachine, skip: SkipMachine, e: int, key: int, w: int,
    c: int, row: int,
) -> None:  # fmt: skip
    """Record that a run takes the event, and which options are refused to it."""
    o, m = skip.o, machine.m
    note(m, w, c, row)
    if preferences.asks(o) != 0:
        refused = _refused(machine, skip, e, key, w, c, row)
        if refused != 0:
            note(m, w, REFUSED, refused)


@part
def _show(machine: RunMachine, skip: SkipMachine, e: int, key: int, w: int) -> None:
    """Decide the effect of an event on a run: it takes the event, or must not skip it."""
    t, o, m, b = machine.t, skip.o, machine.m, machine.b
    time, stream = batch.time(b, e), batch.stream(b, e)
    if not follows(t, m, w, time, stream) or is_past(t, o, m, w, time):
        return
    gate = waits.gate(m, w)
    mine, bars = waits.members(m, w), 0
    for c in range(gates.candidates(t, gate), gates.candidates_end(t, gate), candidates.SIZE):
        share = share_of(b, candidates.gpm(t, c), e)
        if share == 0:
            continue
        step = preferences.steps(o) + STEP_SIZE * candidates.number(t, c)
        if mine & (o[step] | o[step + STEP_BARS]) == 0:
            continue
        if preferences.asks(o) != 0 and header.asked(m) > header.answered(m):
            return  # further decisions depend on the answer
        verdict, row = judge(machine, share, key, w, c)
        if verdict == TRUE:
            if mine & o[step] != 0:
                _note(machine, skip, e, key, w, c, row)
            bars |= mine & o[step + STEP_BARS]
    if bars != 0 and gates.operator(t, gate) != gates.STRICT:
        note(m, w, decisions.BAR, bars)


@part
def decide(
    machine: RunMachine, skip: SkipMachine, e: int, key: int,
    p: int,
) -> None:  # fmt: skip
    t, o, m, a, b = machine.t, skip.o, machine.m, skip.a, machine.b
    header.set_decided(m, 0)
    header.set_asked(m, 0)
    header.set_serial(m, header.serial(m) + 1)
    indexed = preferences.is_indexed(o) != 0
    if indexed:
        call(t, m, a, b, e, key, p)
    family = roster.called(a) if indexed else partitions.head(m, p)
    while family != 0:
        w = families.head(a, family)
        while w != 0:
            _show(machine, skip, e, key, w)
            w = waits.link(m, w)
        family = families.after(a, family) if indexed else families.next(a, family)
    w = header.waits(m)
    for i in range(o[preferences.places(o)], o[preferences.places(o) + 1], OPTION_SIZE):
        gate = o[i]
        if preferences.members(o) & o[i + 2] == 0:
            continue
        for c in range(gates.candidates(t, gate), gates.candidates_end(t, gate), candidates.SIZE):
            share = share_of(b, candidates.gpm(t, c), e)
            if share != 0:
                if preferences.asks(o) != 0 and header.asked(m) > header.answered(m):
                    return
                verdict, row = judge(machine, share, key, w, c)
                if verdict == TRUE:
                    _note(machine, skip, e, key, w, c, row)
