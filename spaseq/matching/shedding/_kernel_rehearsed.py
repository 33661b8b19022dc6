"""Rehearsals: the effect of an event on partial matches of any key; how often it meets a condition.

A *ghost* is a copy of a partial match's bindings without its key; some are kept for each place, beside the
arena. Each event is tried on some ghosts as if it had their key; the result is a ghost of the next place. So
the estimates do not depend on which partial matches exist, nor on what was shed.
"""

from __future__ import annotations

from typing import Final

from spaseq._jit import kernel, part
from spaseq.matching.filters import batch as heads
from spaseq.matching.filters._kernel_machine import holds
from spaseq.matching.filters._kernel_values import (
    SLOTS,
    START,
    TRUE,
    UNKNOWN,
    WOKEN,
    Codes,
    Floats,
    Ints,
    pointer,
)
from spaseq.matching.nfa.compiled._kernel_judge import judge_row
from spaseq.matching.nfa.compiled._kernel_layout import value
from spaseq.matching.nfa.records import candidates, gates, header, places, units, waits
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
    coded,
    is_a_number,
    keep,
)

#: The number of ghosts kept of a place, the latest; and on how many of a place each event is tried.
GHOSTS: Final = 32
TIMES: Final = 2
#: Before the ghosts of a place: how many were made, and how often one was taken.
MADE: Final = 0
TAKEN: Final = 1
FIRST: Final = 2


@part
def _try(
    t: Ints, m: Ints, f: Floats, b: Ints, n: Floats, c: Codes, unit: int, row: int, way: int, ways: Ints,
    features: Ints, edges: Floats, unread: Floats, ghosts: Ints, slots: int, tried: Floats, went: Floats,
) -> bool:  # fmt: skip
    """Try a row on a ghost, or on an empty run at the beginning; return whether there was one."""
    source, target = ways[way + W_FROM], ways[way + W_TO]
    trial = header.trial(m) + SLOTS
    before = 0
    if source < 0:
        for j in range(slots):
            m[trial + j] = 0
    else:
        made = ghosts[source + MADE]
        if made == 0:
            return False
        ghost = source + FIRST + ghosts[source + TAKEN] % min(made, GHOSTS) * slots
        ghosts[source + TAKEN] += 1
        for j in range(slots):
            m[trial + j] = ghosts[ghost + j]
        before = coded(t, m, f, n, c, header.trial(m), features, ways, ways[way + W_SOURCE], edges, unread)
    for i in range(units.binds(t, unit), units.binds_end(t, unit), 2):
        identifier = value(b, t[i + 1], row)
        if identifier != 0:
            m[trial + t[i]] = identifier
    verdict = judge_row(t, m, f, b, n, c, header.trial(m), unit, row)
    if verdict == UNKNOWN:
        return True
    tried[ways[way + W_TRIED] + before] += 1
    if verdict == TRUE:
        after = coded(t, m, f, n, c, header.trial(m), features, ways, way, edges, unread)
        went[ways[way + W_STEPS] + before * ways[way + W_CODES] + after] += 1
        if target >= 0:
            ghost = target + FIRST + ghosts[target + MADE] % GHOSTS * slots
            ghosts[target + MADE] += 1
            for j in range(slots):
                ghosts[ghost + j] = m[trial + j]
    return True


@part
def _at_gate(
    t: Ints, m: Ints, f: Floats, b: Ints, n: Floats, c: Codes, gate: int, g: int, row: int, ways: Ints,
    features: Ints, edges: Floats, unread: Floats, values: Floats, ghosts: Ints, slots: int, tried: Floats,
    went: Floats, most: int,
) -> int:  # fmt: skip
    """Try a row of a GPM at a gate, on at most this many ghosts; return on how many."""
    count = 0
    for candidate in range(gates.candidates(t, gate), gates.candidates_end(t, gate), candidates.SIZE):
        way = candidates.number(t, candidate) * W_SIZE
        if candidates.gpm(t, candidate) != g or ways[way + W_TRIED] < 0:
            continue
        if ways[way + W_VALUE] < ways[way + W_VALUE_END]:
            holds(
                t, ways[way + W_VALUE], ways[way + W_VALUE_END], m, header.kinds(m), f, header.trial(m),
                waits.sums(m, header.trial(m)), b, row, n, c,
            )  # fmt: skip
            if is_a_number(m, f):
                keep(values, ways[way + W_VALUES], f[1])
        for _ in range(min(most - count, TIMES if ways[way + W_FROM] >= 0 else 1)):
            count += _try(
                t, m, f, b, n, c, candidates.unit(t, candidate), row, way, ways, features, edges, unread,
                ghosts, slots, tried, went,
            )  # fmt: skip
    return count


@kernel
def rehearse(
    tables: Ints, ints: Ints, floats: Floats, numbers: Floats, codes: Codes, batch: Ints, ways_: Ints,
    features_: Ints, edges_: Floats, unread_: Floats, values_: Floats, ghosts_: Ints, slots: int,
    tried_: Floats, went_: Floats, most: int,
) -> int:  # fmt: skip
    """Try each event of a batch on some ghosts, ``most`` in all; return on how many.

    ``slots``: the number of a ghost's values. ``unread`` gets the values of ghosts, ``values`` the compared
    values of events. By way and code, ``tried`` counts the events tried, and ``went`` how often a ghost of a
    code would have advanced to each code.
    """
    t, m, f, b = pointer(tables), pointer(ints), pointer(floats), pointer(batch)
    n, c, ways, features = pointer(numbers), pointer(codes), pointer(ways_), pointer(features_)
    edges, unread, values = pointer(edges_), pointer(unread_), pointer(values_)
    ghosts = pointer(ghosts_)
    tried, went = pointer(tried_), pointer(went_)
    count = 0
    for e in range(heads.size(b)):
        for share in range(heads.shares(b, e), heads.shares(b, e + 1), heads.SHARE):
            g, row = heads.gpm(b, share), heads.first(b, share)
            for gate in range(places.gates(t, t[START]), places.gates_end(t, t[START]), gates.SIZE):
                count += _at_gate(
                    t, m, f, b, n, c, gate, g, row, ways, features, edges, unread, values, ghosts, slots,
                    tried, went, most - count,
                )  # fmt: skip
            for i in range(t[t[WOKEN] + 2 * g], t[t[WOKEN] + 2 * g + 1]):
                count += _at_gate(
                    t, m, f, b, n, c, t[i], g, row, ways, features, edges, unread, values, ghosts, slots,
                    tried, went, most - count,
                )  # fmt: skip
    return count
