"""Which partial matches are dead: what they say is absent has come, and nothing can undo it.

The kernel finds out only when the element behind the gap comes. Until then such a partial match is shown
events like any other one, and whoever counts how often one goes on would take it for a live one. So those are
looked at that what has come may have ended (``bury``): they are found by their key.
"""

from __future__ import annotations

from typing import Final

from spaseq._jit import kernel, part
from spaseq.matching.conditions._kernel_values import (
    GAPS,
    N_GAPS,
    TRUE,
    Codes,
    Floats,
    Ints,
    pointer,
)
from spaseq.matching.kernel.compiled._kernel_gaps import look_back
from spaseq.matching.kernel.compiled._kernel_layout import FIRST_GAP, NOWHERE, value
from spaseq.matching.kernel.compiled._kernel_memory import find_bucket, release, unlink
from spaseq.matching.kernel.records import buckets, checks, entries, gaps, gates, header, nodes, units, waits
from spaseq.matching.shedding.compiled._kernel_known import (
    AGES,
    CODE,
    COUNTS,
    DIED,
    LIVED,
    MADE,
    age,
    is_live,
    known_at,
    learn,
)

# Columns of where the dead are looked for: a chain, a gate, and of the gate's key how many columns it has in
# what is in the chain, and which.
G_CHAIN: Final = 0
G_GATE: Final = 1
G_KEYS: Final = 2
G_FIRST: Final = 3
MOST_KEYS: Final = 4
G_SIZE: Final = G_FIRST + MOST_KEYS


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
        verdict, _, _ = look_back(t, m, f, n, c, w, gap, 0, False)
        if verdict == TRUE:
            return True
    return False


@part
def leave(m: Ints, w: int) -> None:
    """Takes a partial match out of its list. Its place stays empty until the next sweep."""
    unlink(m, w)
    release(m, waits.node(m, w))
    waits.set_gate(m, w, 0)


@part
def _bucket(m: Ints, g: int, p: int, x: int, graves: Ints) -> int:
    """The bucket of the gate of a row of ``graves`` in which those are that have an entry's key."""
    size = graves[g + G_KEYS]
    k0 = value(m, graves[g + G_FIRST], x) if size > 0 else 0
    k1 = value(m, graves[g + G_FIRST + 1], x) if size > 1 else 0
    k2 = value(m, graves[g + G_FIRST + 2], x) if size > 2 else 0
    k3 = value(m, graves[g + G_FIRST + 3], x) if size > 3 else 0
    return find_bucket(m, graves[g + G_GATE], p, k0, k1, k2, k3, False)


@kernel
def bury(
    tables: Ints, ints: Ints, floats: Floats, numbers: Floats, codes: Codes, known_: Ints, ways_: Ints,
    bases_: Ints, features_: Ints, edges_: Floats, rings_: Floats, counts_: Floats, steps_: Floats,
    alive_: Ints, loads_: Floats, graves_: Ints, taken_: Ints, begin: int, since: int, axis: int, time: int,
    now: int, position: int, events: int, most: int,
) -> tuple[int, int, float]:  # fmt: skip
    """Lets go of the partial matches that forbidden rows ended, those from ``begin`` on of since a time and
    before ``time``: where the first one stands that is not from before it, how many partial matches were
    looked at, no more than ``most``, and how much load is gone.

    ``events``: since all were looked at; the next one's position is ``position``.
    """
    t, m, f = pointer(tables), pointer(ints), pointer(floats)
    n, c, known, ways = pointer(numbers), pointer(codes), pointer(known_), pointer(ways_)
    bases, features, edges, steps = pointer(bases_), pointer(features_), pointer(edges_), pointer(steps_)
    rings, counts, alive, loads = pointer(rings_), pointer(counts_), pointer(alive_), pointer(loads_)
    graves, taken = pointer(graves_), pointer(taken_)
    looked, load = 0, 0.0
    x = header.entries(m) + begin
    while x < header.next_entry(m) and entries.time(m, x) < time:
        for g in range(0, len(graves_), G_SIZE):
            gate = graves[g + G_GATE]
            # Those in a heap, and those that hang on their partition, are not in a list of their key's.
            if (
                entries.time(m, x) < since
                or graves[g + G_CHAIN] != entries.chain(m, x)
                or gates.operator(t, gate) == gates.STRICT
                or gates.sign(t, gate) != 0
            ):
                continue
            bucket = _bucket(m, g, entries.partition(m, x), x, graves)
            w = buckets.head(m, bucket) if bucket != 0 else 0
            while w != 0 and looked < most:
                following = waits.link(m, w)
                looked += 1
                if is_live(t, m, w, axis, time) and is_dead(t, m, f, n, c, w, time, taken):
                    node = waits.node(m, w)
                    at = known_at(m, known, node)
                    is_new = at < 0
                    if is_new:
                        at = learn(t, m, f, n, c, w, node, known, ways, features, edges, rings, steps, True)
                    number = bases[gates.number(t, gate)] + known[at + CODE]
                    counts[number * COUNTS + LIVED] += max(0, min(events, position - nodes.position(m, node)))
                    counts[number * COUNTS + DIED] += 1
                    cell = number * AGES + age(t, axis, waits.first(m, w), now)
                    if is_new:
                        counts[number * COUNTS + MADE] += 1
                    else:
                        alive[cell] = max(0, alive[cell] - 1)
                        load += loads[number]
                    leave(m, w)
                w = following
        x += header.entry_width(m)
    return x - header.entries(m), looked, load
