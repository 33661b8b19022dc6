"""Knowledge about the arena's nodes, kept beside it: the classes and ages of partial matches.

By a node's number: ``tag`` (the position of the event that made it, plus 1; 0 if unknown, so that a reused
node is recognised) and ``code`` (its quantised values). A *class* is a gate and a code; a *cell* is a class
and one of the ages (``AGES``) of a run in its window.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from spaseq._jit import inlined, kernel, part
from spaseq._kernel_events import reach_after
from spaseq.matching.filters._kernel_values import (
    CALC,
    GAPS,
    LIMIT,
    N_GAPS,
    SHORT,
    TRUE,
    Floats,
    Ints,
    RunMachine,
    pointer,
)
from spaseq.matching.nfa.compiled._kernel_gaps import look_back
from spaseq.matching.nfa.compiled._kernel_judge import at_entries, meets
from spaseq.matching.nfa.compiled._kernel_layout import FIRST_GAP, NOWHERE, value
from spaseq.matching.nfa.compiled._kernel_memory import (
    find_bucket,
    mix,
    release,
    unlink,
)
from spaseq.matching.nfa.compiled._kernel_places import is_over
from spaseq.matching.nfa.records import buckets, checks, entries, gaps, gates, header, nodes, units, waits

#: The number of ages of a run.
AGES: Final = 8

# Columns of a node's record.
TAG: Final = 0
CODE: Final = 1
KNOWN_SIZE: Final = 2

# Columns of features: a program, and the number of edges. Columns of a way: the number of its gate; the
# feature of the place it leads to (-1 for none), and the number of that feature's codes; where its counts in
# ``steps`` begin, by code and target. Then for rehearsals: the ghosts of its place, and of the target place,
# -1 if there are none; a way to its place; where the counts of its trials begin, -1 if there are none; and
# the program of an event's value in its condition, and where the latest of these values are.
F_CODE: Final = 0
F_CODE_END: Final = 1
F_COUNT: Final = 2
F_SIZE: Final = 3
W_GATE: Final = 0
W_FEATURE: Final = 1
W_CODES: Final = 2
W_STEPS: Final = 3
W_FROM: Final = 4
W_TO: Final = 5
W_SOURCE: Final = 6
W_TRIED: Final = 7
W_VALUE: Final = 8
W_VALUE_END: Final = 9
W_VALUES: Final = 10
W_SIZE: Final = 11

#: The levels of a feature: one for values that are not numbers, and 24 quantiles, separated by edges.
LEVELS: Final = 25
EDGES: Final = LEVELS - 2

#: The number of latest values in a ring, from which a feature's edges are learned. Before them is the count
#: of all values.
RING: Final = 512

# Counts of a class: matches of its partial matches, events that these lived through, and how many of them
# died before their window ended (``bury``).
MATCHED: Final = 0
LIVED: Final = 1
DIED: Final = 2
COUNTS: Final = 3


class Learned(NamedTuple):
    """What is known of partial matches: arrays, or in compiled code their addresses.

    ``known``: records of nodes. ``ways`` and ``bases`` (the first class of each gate): see ``Features``.
    ``features``, with their ``edges`` and ``rings``: see ``Quantiles``. By class ``counts`` and ``loads``;
    ``steps``: counts by way, code and code of the target. ``taken``: by slot, whether an event of a match may
    bind it.
    """

    known: Ints
    ways: Ints
    bases: Ints
    features: Ints
    edges: Floats
    rings: Floats
    counts: Floats
    steps: Floats
    loads: Floats
    taken: Ints


class Instant(NamedTuple):
    """When a pass is made: the place on the window's axis, the time, and the position of the next event.

    ``age``: in tumbling windows, the age that all runs have. ``events``: how many events have come since
    partial matches were last processed.
    """

    axis: int
    time: int
    age: int
    position: int
    events: int


@inlined
def age(t: Ints, axis: int, first: int, now: int) -> int:
    """Return the age of a run; ``now``: in tumbling windows, the age that all runs have."""
    if t[LIMIT] <= 0:
        return now
    if axis > reach_after(first, t[LIMIT]):
        return AGES - 1
    return int(min(AGES - 1, max(0, (axis - first) * AGES // (t[LIMIT] + 1))))


@inlined
def cell_of(t: Ints, number: int, first: int, instant: Instant) -> int:
    """Return the cell of a class at the age of a run."""
    return number * AGES + age(t, instant.axis, first, instant.age)


@inlined
def is_live(t: Ints, m: Ints, w: int, axis: int, time: int) -> bool:
    """Return whether a wait is a partial match that may still advance."""
    return not is_over(m, w, t[LIMIT], axis, time) and waits.bucket(m, w) != waits.IS_PARKED


@inlined
def known_at(m: Ints, known: Ints, node: int) -> int:
    """Return the place of a node's record; -1 if there is none."""
    at = (node - header.nodes(m)) // nodes.SIZE * KNOWN_SIZE
    return int(at) if known[at + TAG] == nodes.position(m, node) + 1 else -1


@inlined
def is_a_number(m: Ints, f: Floats) -> bool:
    """Return whether a program has left a number on the stack."""
    return bool(SHORT <= m[header.kinds(m)] <= CALC and f[1] == f[1])


@inlined
def keep(rings: Floats, ring: int, x: float) -> None:
    """Add a value to a ring."""
    rings[ring + 1 + int(rings[ring]) % RING] = x
    rings[ring] += 1


@part
def coded(machine: RunMachine, learned: Learned, w: int, way: int, rings: Floats) -> int:
    """Return the code of a wait's value, by edges; the value is added to a ring, from which edges are
    learned.
    """
    feature, features = learned.ways[way + W_FEATURE], learned.features
    if feature < 0:
        return 0
    row = feature * F_SIZE
    meets(at_entries(machine), features[row + F_CODE], features[row + F_CODE_END], w, 0)
    if not is_a_number(machine.m, machine.f):
        return 0
    x, level = machine.f[1], 1
    while level <= features[row + F_COUNT] and learned.edges[feature * EDGES + level - 1] < x:
        level += 1
    keep(rings, feature * (RING + 1), x)
    return int(level)


@inlined
def code_of(m: Ints, known: Ints, node: int) -> int:
    """Return the code of a node; -1 if it is unknown. The empty run has code 0."""
    if node == 0:
        return 0
    at = known_at(m, known, node)
    return int(known[at + CODE]) if at >= 0 else -1


@part
def learn(machine: RunMachine, learned: Learned, w: int, node: int, counted: bool) -> int:
    """Code a wait's node; return the place of its record."""
    m, known, ways = machine.m, learned.known, learned.ways
    at = (node - header.nodes(m)) // nodes.SIZE * KNOWN_SIZE
    way = nodes.way(m, node) * W_SIZE
    known[at + CODE] = coded(machine, learned, w, way, learned.rings)
    known[at + TAG] = nodes.position(m, node) + 1
    before = code_of(m, known, nodes.previous(m, node))
    if counted and before >= 0:
        learned.steps[ways[way + W_STEPS] + before * ways[way + W_CODES] + known[at + CODE]] += 1
    return int(at)


@inlined
def class_of(machine: RunMachine, learned: Learned, w: int, at: int) -> int:
    """Return the class of a wait, given the place of its node's record."""
    gate = gates.number(machine.t, waits.gate(machine.m, w))
    return int(learned.bases[gate] + learned.known[at + CODE])


@part
def lot(m: Ints, gate: int, node: int, draw: int) -> float:
    """Return a pseudo-random number from 0 to 1 for a partial match: it depends on its events, not on its
    place.

    Each ``draw`` gives another number; otherwise a partial match that was kept once would always be kept.
    """
    code = mix(mix(1, gate), draw)
    while node != 0:
        code = mix(mix(code, nodes.position(m, node)), nodes.way(m, node))
        node = nodes.previous(m, node)
    return float(mix(code, 7) >> 11 & 0xFFFFFFFF) / 4294967296.0


# Columns of a row of ``graves``: a chain, a gate, the number of columns of the gate's key, and which columns
# of the chain's entries have this key.
G_CHAIN: Final = 0
G_GATE: Final = 1
G_KEYS: Final = 2
G_FIRST: Final = 3
MOST_KEYS: Final = 4
G_SIZE: Final = G_FIRST + MOST_KEYS


@part
def _binds_nothing_more(t: Ints, m: Ints, w: int, forbidden: int, taken: Ints) -> bool:
    """Return whether a run has bound all variables by which a forbidden element joins, so that no future
    event binds more.
    """
    for check in range(t[forbidden], t[forbidden + 1], checks.SIZE):
        unit = checks.unit(t, check)
        for i in range(units.binds(t, unit), units.binds_end(t, unit), 2):
            if taken[t[i]] != 0 and waits.slot(m, w, t[i]) <= 0:
                return False
    return True


@part
def is_dead(machine: RunMachine, w: int, time: int, taken: Ints) -> bool:
    """Return whether a forbidden event has surely come in an open gap of a wait, before all future events.

    Valid for queries with ``Features.tells_the_dead``. ``taken``: by slot, whether an event of a match may
    bind it.
    """
    t, m = machine.t, machine.m
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
        # Look back as if the gap ended now: events of the current time need not precede future events.
        gaps.set_before_time(m, gap, time)
        verdict, _, _ = look_back(machine, w, gap, 0, False)
        if verdict == TRUE:
            return True
    return False


@part
def leave(m: Ints, w: int) -> None:
    """Remove a partial match from its list. Its place stays empty until the next sweep."""
    unlink(m, w)
    release(m, waits.node(m, w))
    waits.set_gate(m, w, 0)


@part
def _bucket(m: Ints, g: int, p: int, x: int, graves: Ints) -> int:
    """Return the bucket, at the gate of a row of ``graves``, of the waits with an entry's key."""
    size = graves[g + G_KEYS]
    k0 = value(m, graves[g + G_FIRST], x) if size > 0 else 0
    k1 = value(m, graves[g + G_FIRST + 1], x) if size > 1 else 0
    k2 = value(m, graves[g + G_FIRST + 2], x) if size > 2 else 0
    k3 = value(m, graves[g + G_FIRST + 3], x) if size > 3 else 0
    return find_bucket(m, graves[g + G_GATE], p, k0, k1, k2, k3, False)


@part
def _bury_one(machine: RunMachine, learned: Learned, instant: Instant, alive: Ints, w: int) -> float:
    """Remove a dead partial match, and count it; return the load removed."""
    m = machine.m
    node, load = waits.node(m, w), 0.0
    at = known_at(m, learned.known, node)
    is_new = at < 0
    if is_new:
        at = learn(machine, learned, w, node, True)
    number = class_of(machine, learned, w, at)
    lived = max(0, min(instant.events, instant.position - nodes.position(m, node)))
    learned.counts[number * COUNTS + LIVED] += lived
    learned.counts[number * COUNTS + DIED] += 1
    if not is_new:
        cell = cell_of(machine.t, number, waits.first(m, w), instant)
        alive[cell] = max(0, alive[cell] - 1)
        load = learned.loads[number]
    leave(m, w)
    return load


@kernel
def bury(
    machine_: RunMachine, learned_: Learned, instant: Instant, alive_: Ints, graves_: Ints, begin: int,
    since: int, most: int,
) -> tuple[int, int, float]:  # fmt: skip
    """Remove the partial matches that forbidden rows have ended: the rows of entries from ``begin`` on that
    are before now.

    Returns the first entry that is not before now, the number of partial matches tested (at most ``most``),
    and the load removed. ``since``: the time of the last call.
    """
    machine: RunMachine = pointer(machine_)
    learned: Learned = pointer(learned_)
    alive, graves, time = pointer(alive_), pointer(graves_), instant.time
    t, m = machine.t, machine.m
    looked, load = 0, 0.0
    x = header.entries(m) + begin
    while x < header.next_entry(m) and entries.time(m, x) < time:
        for g in range(0, len(graves_), G_SIZE):
            gate = graves[g + G_GATE]
            # Waits in a heap, and waits listed at their partition, are not in a list of their key.
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
                if is_live(t, m, w, instant.axis, time) and is_dead(machine, w, time, learned.taken):
                    load += _bury_one(machine, learned, instant, alive, w)
                w = following
        x += header.entry_width(m)
    return x - header.entries(m), looked, load
