"""Rehearsals: the effect of an event on partial matches of any key; how often it meets a condition.

A *ghost* is a copy of a partial match's bindings without its key; some are kept for each place, beside the
arena. Each event is tried on some ghosts as if it had their key; the result is a ghost of the next place. So
the estimates do not depend on which partial matches exist, nor on what was shed.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from spaseq._jit import kernel, part
from spaseq.matching.filters import batch
from spaseq.matching.filters._kernel_values import (
    SLOTS,
    START,
    TRUE,
    UNKNOWN,
    WOKEN,
    Floats,
    Ints,
    RunMachine,
    pointer,
)
from spaseq.matching.nfa.compiled._kernel_judge import judge_row, meets, with_batch
from spaseq.matching.nfa.compiled._kernel_layout import value
from spaseq.matching.nfa.records import candidates, gates, header, places, units
from spaseq.matching.shedding._kernel_known import (
    W_CODES,
    W_FROM,
    W_SIZE,
    W_SOURCE,
    W_STEPS,
    W_TO,
    W_TRIED,
    W_VALUE,
    W_VALUE_END,
    W_VALUES,
    Learned,
    coded,
    is_a_number,
    keep,
)

#: The number of latest ghosts that are kept for a place; and on how many of them an event is tried.
GHOSTS: Final = 32
TIMES: Final = 2
#: Before the ghosts of a place: how many were made, and how often one was taken.
MADE: Final = 0
TAKEN: Final = 1
FIRST: Final = 2


class Ghosts(NamedTuple):
    """The ghosts of places, and what was learned from them: arrays, or in compiled code their addresses.

    ``slots``: the number of a ghost's values. ``unread``: the latest values of ghosts' features; ``values``:
    the compared values of events. By way and code, ``tried`` counts the events tried, and ``went`` how often
    a ghost of a code would have advanced to each code.
    """

    ghosts: Ints
    slots: int
    unread: Floats
    values: Floats
    tried: Floats
    went: Floats


@part
def _taken(m: Ints, ghosts: Ints, source: int, slots: int) -> bool:
    """Give the trial wait the bindings of a ghost of a place, or of an empty run. Return whether there is a
    ghost.
    """
    trial = header.trial(m) + SLOTS
    if source < 0:
        for j in range(slots):
            m[trial + j] = 0
        return True
    made = ghosts[source + MADE]
    if made == 0:
        return False
    ghost = source + FIRST + ghosts[source + TAKEN] % min(made, GHOSTS) * slots
    ghosts[source + TAKEN] += 1
    for j in range(slots):
        m[trial + j] = ghosts[ghost + j]
    return True


@part
def _try(machine: RunMachine, learned: Learned, own: Ghosts, unit: int, row: int, way: int) -> bool:
    """Try a row on a ghost, or on an empty run at the beginning; return whether there was a ghost."""
    t, m, ways, ghosts = machine.t, machine.m, learned.ways, own.ghosts
    source, target, run = ways[way + W_FROM], ways[way + W_TO], header.trial(m)
    if not _taken(m, ghosts, source, own.slots):
        return False
    before = 0
    if source >= 0:
        before = coded(machine, learned, run, ways[way + W_SOURCE], own.unread)
    for i in range(units.binds(t, unit), units.binds_end(t, unit), 2):
        identifier = value(machine.b, t[i + 1], row)
        if identifier != 0:
            m[run + SLOTS + t[i]] = identifier
    verdict = judge_row(machine, run, unit, row)
    if verdict == UNKNOWN:
        return True
    own.tried[ways[way + W_TRIED] + before] += 1
    if verdict == TRUE:
        after = coded(machine, learned, run, way, own.unread)
        own.went[ways[way + W_STEPS] + before * ways[way + W_CODES] + after] += 1
        if target >= 0:
            ghost = target + FIRST + ghosts[target + MADE] % GHOSTS * own.slots
            ghosts[target + MADE] += 1
            for j in range(own.slots):
                ghosts[ghost + j] = m[run + SLOTS + j]
    return True


@part
def _at_gate(
    machine: RunMachine, learned: Learned, own: Ghosts, gate: int, g: int, row: int, most: int
) -> int:
    """Try a row of a GPM at a gate, on at most ``most`` ghosts; return on how many it was tried."""
    t, m, f, ways = machine.t, machine.m, machine.f, learned.ways
    count = 0
    for candidate in range(gates.candidates(t, gate), gates.candidates_end(t, gate), candidates.SIZE):
        way = candidates.number(t, candidate) * W_SIZE
        if candidates.gpm(t, candidate) != g or ways[way + W_TRIED] < 0:
            continue
        if ways[way + W_VALUE] < ways[way + W_VALUE_END]:
            meets(machine, ways[way + W_VALUE], ways[way + W_VALUE_END], header.trial(m), row)
            if is_a_number(m, f):
                keep(own.values, ways[way + W_VALUES], f[1])
        for _ in range(min(most - count, TIMES if ways[way + W_FROM] >= 0 else 1)):
            count += _try(machine, learned, own, candidates.unit(t, candidate), row, way)
    return count


@kernel
def rehearse(machine_: RunMachine, learned_: Learned, ghosts_: Ghosts, batch_: Ints, most: int) -> int:
    """Try each event of a batch on some ghosts, at most ``most`` in all; return the number of trials."""
    machine: RunMachine = with_batch(pointer(machine_), pointer(batch_))
    learned: Learned = pointer(learned_)
    own: Ghosts = pointer(ghosts_)
    t, b = machine.t, machine.b
    count = 0
    for e in range(batch.size(b)):
        for share in range(batch.shares(b, e), batch.shares(b, e + 1), batch.SHARE):
            g, row = batch.gpm(b, share), batch.first(b, share)
            for gate in range(places.gates(t, t[START]), places.gates_end(t, t[START]), gates.SIZE):
                count += _at_gate(machine, learned, own, gate, g, row, most - count)
            for i in range(t[t[WOKEN] + 2 * g], t[t[WOKEN] + 2 * g + 1]):
                count += _at_gate(machine, learned, own, t[i], g, row, most - count)
    return count
