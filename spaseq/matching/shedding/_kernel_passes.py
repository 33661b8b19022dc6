"""What shedding does with the arena of runs between two events: passes over it, and over what was found.

Beside the arena stands what is known of its nodes, by their number: ``tag`` (the position of the event that
made it, and 1; 0 if unknown, so that a node that was freed and used again is told apart), ``code`` (its
quantised values) and ``begun`` (where on the window's axis its run began). A *class* is a gate and a code; a
*cell* is a class and one of so many ages (``AGES``) of a run in its window.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from spaseq._jit import inlined, kernel, part
from spaseq.matching.kernel._kernel import find_keys
from spaseq.matching.kernel._kernel_layout import (
    C_GPM,
    C_KEYS,
    C_PARTS,
    C_PARTS_END,
    C_SIZE,
    FOUND_NODE,
    FOUND_SIZE,
    G_CANDIDATES,
    G_CANDIDATES_END,
    G_KEYS,
    G_KEYS_END,
    G_NUMBER,
    row_of,
    value,
)
from spaseq.matching.kernel._kernel_machine import holds
from spaseq.matching.kernel._kernel_memory import (
    BUCKET,
    FIRST,
    FOUND,
    FOUND_COUNT,
    GATE,
    HEAD,
    IS_PARKED,
    KEYS,
    KINDS,
    LINK,
    NEXT_NODE,
    NEXT_WAIT,
    NODE,
    NODE_SIZE,
    NODES,
    POSITION,
    PREVIOUS,
    ROOT,
    SUMS,
    USES,
    WAITS,
    WAY,
    WIDTH,
    find_bucket,
    find_partition,
    mix,
)
from spaseq.matching.kernel._kernel_places import is_over
from spaseq.matching.kernel._kernel_values import (
    B_SIZE,
    CALC,
    LIMIT,
    N_GPMS,
    N_KEYS,
    SHORT,
    WOKEN,
    Codes,
    Floats,
    Ints,
    pointer,
)

Marks = npt.NDArray[np.int8]

#: So many ages of a run are told apart.
AGES: Final = 8

# Columns of what is known of a node.
TAG: Final = 0
CODE: Final = 1
BEGUN: Final = 2
KNOWN_SIZE: Final = 3

# Columns of features: a program, where in the edges its own stand, how many they are; and of a way: the
# number of its gate, and the features of the place it leads to.
F_CODE: Final = 0
F_CODE_END: Final = 1
F_EDGES: Final = 2
F_COUNT: Final = 3
F_SIZE: Final = 4
W_GATE: Final = 0
W_FEATURES: Final = 1
W_FEATURES_END: Final = 2
W_SIZE: Final = 3

#: So many values of each feature are kept, of which its edges are learned; before them, how many there were.
RING: Final = 512

# Columns of what is counted of a cell: matches that came of its partial matches, what the partial matches
# that came of them cost, events that they lived through, and matches that what was shed would have given.
MATCHED: Final = 0
SPENT: Final = 1
LIVED: Final = 2
LOST: Final = 3
COUNTS: Final = 4


@inlined
def _age(t: Ints, axis: int, first: int, now: int) -> int:
    """How old a run is; ``now``: in tumbling windows, where all are alike."""
    if t[LIMIT] <= 0:
        return now
    return int(min(AGES - 1, max(0, (axis - first) * AGES // (t[LIMIT] + 1))))


@inlined
def _is_live(t: Ints, m: Ints, w: int, axis: int, time: int) -> bool:
    """Whether a wait is a partial match that may still go on."""
    return not is_over(m, w, t[LIMIT], axis, time) and m[w + BUCKET] != IS_PARKED


@inlined
def _known(m: Ints, known: Ints, node: int) -> int:
    """Where it stands what is known of a node; -1 if nothing is."""
    at = (node - m[NODES]) // NODE_SIZE * KNOWN_SIZE
    return int(at) if known[at + TAG] == m[node + POSITION] + 1 else -1


@part
def _coded(
    t: Ints, m: Ints, f: Floats, numbers: Floats, codes: Codes, w: int, features: Ints, start: int, end: int,
    edges: Floats, rings: Floats,
) -> int:  # fmt: skip
    """The code of a wait's values; they are written down for who learns the edges."""
    code = 0
    for j in range(start, end):
        row = j * F_SIZE
        holds(
            t, features[row + F_CODE], features[row + F_CODE_END], m, m[KINDS], f, w, m[w + SUMS], m, 0,
            numbers, codes,
        )  # fmt: skip
        kind, x = m[m[KINDS]], f[1]
        count = features[row + F_COUNT]
        level = 0
        if SHORT <= kind <= CALC and x == x:
            level = 1
            while level <= count and edges[features[row + F_EDGES] + level - 1] < x:
                level += 1
            ring = j * (RING + 1)
            rings[ring + 1 + int(rings[ring]) % RING] = x
            rings[ring] += 1
        code = code * (count + 2) + level
    return int(code)


@part
def _credit(
    m: Ints, t: Ints, known: Ints, ways: Ints, bases: Ints, counts: Floats, node: int, axis: int, now: int,
    column: int, worth: float,
) -> None:  # fmt: skip
    """Tells the partial matches that a node goes on from, each at the gate it went on by."""
    way = m[node + WAY]
    p = m[node + PREVIOUS]
    while p != 0:
        at = _known(m, known, p)
        if at >= 0:
            cell = bases[ways[way * W_SIZE + W_GATE]] + known[at + CODE]
            age = _age(t, axis, known[at + BEGUN], now)
            counts[(cell * AGES + age) * COUNTS + column] += worth
        way = m[p + WAY]
        p = m[p + PREVIOUS]


@kernel
def observe(
    tables: Ints, ints: Ints, floats: Floats, numbers: Floats, codes: Codes, known_: Ints, ways_: Ints,
    bases_: Ints, features_: Ints, edges_: Floats, rings_: Floats, counts_: Floats, costs: Floats,
    alive_: Ints, axis: int, time: int, now: int, events: float, since: int, fresh: bool,
) -> int:  # fmt: skip
    """Looks at all partial matches: codes new ones, counts them by cell into ``alive``; how many there are.

    ``events``: since the last time, when the next one's position was ``since``. ``costs``: what one of each
    cell costs. ``fresh``: time has passed, and not only codes are new.
    """
    t, m, f = pointer(tables), pointer(ints), pointer(floats)
    n, c, known, ways = pointer(numbers), pointer(codes), pointer(known_), pointer(ways_)
    bases, features, edges = pointer(bases_), pointer(features_), pointer(edges_)
    rings, counts, alive = pointer(rings_), pointer(counts_), pointer(alive_)
    total = 0
    for w in range(m[WAITS] + m[WIDTH], m[NEXT_WAIT], m[WIDTH]):
        if not _is_live(t, m, w, axis, time):
            continue
        total += 1
        node = m[w + NODE]
        age = _age(t, axis, m[w + FIRST], now)
        lived = events
        at = _known(m, known, node)
        if at < 0:
            at = (node - m[NODES]) // NODE_SIZE * KNOWN_SIZE
            row = m[node + WAY] * W_SIZE
            known[at + CODE] = _coded(
                t, m, f, n, c, w, features, ways[row + W_FEATURES], ways[row + W_FEATURES_END], edges, rings
            )
            known[at + TAG] = m[node + POSITION] + 1
            known[at + BEGUN] = m[w + FIRST]
        cell = (bases[t[m[w + GATE] + G_NUMBER]] + known[at + CODE]) * AGES + age
        if fresh and m[node + POSITION] >= since:
            lived = events / 2
            _credit(m, t, known, ways, bases, counts, node, axis, now, SPENT, costs[cell])
        counts[cell * COUNTS + LIVED] += lived
        alive[cell] += 1
    return total


@kernel
def strangers(ints: Ints, known_: Ints) -> bool:
    """Whether nothing is known of a partial match that one of the matches just found came of."""
    m, known = pointer(ints), pointer(known_)
    for i in range(m[FOUND_COUNT]):
        p = m[m[m[FOUND] + i * FOUND_SIZE + FOUND_NODE] + PREVIOUS]
        while p != 0:
            if _known(m, known, p) < 0:
                return True
            p = m[p + PREVIOUS]
    return False


@kernel
def credit(
    tables: Ints, ints: Ints, known: Ints, ways: Ints, bases: Ints, counts: Floats, axis: int, now: int
) -> None:
    """Tells the partial matches that the matches just found came of them."""
    m: Ints = pointer(ints)
    for i in range(m[FOUND_COUNT]):
        node = m[m[FOUND] + i * FOUND_SIZE + FOUND_NODE]
        _credit(
            m, pointer(tables), pointer(known), pointer(ways), pointer(bases), pointer(counts), node, axis,
            now, MATCHED, 1.0,
        )  # fmt: skip


@part
def _lot(m: Ints, gate: int, node: int) -> float:
    """A number from 0 to 1 that a partial match has drawn: by its events, not by where it stands."""
    code = mix(1, gate)
    while node != 0:
        code = mix(mix(code, m[node + POSITION]), m[node + WAY])
        node = m[node + PREVIOUS]
    return float(mix(code, 7) >> 11 & 0xFFFFFFFF) / 4294967296.0


@kernel
def mark(
    tables: Ints, ints: Ints, known_: Ints, ways: Ints, bases_: Ints, counts: Floats, kept_: Floats,
    worth_: Floats, costs: Floats, shed_: Ints, axis: int, time: int, now: int,
) -> None:  # fmt: skip
    """Takes partial matches out, of each cell all but the share ``kept``; counts them by cell in ``shed``.

    They stand where they stood, as none: the arena is good for being swept only. ``worth``: the matches that
    one of the cell would have given, ``costs`` what it would have cost.
    """
    t, m, known, bases = pointer(tables), pointer(ints), pointer(known_), pointer(bases_)
    kept, worth, shed = pointer(kept_), pointer(worth_), pointer(shed_)
    for w in range(m[WAITS] + m[WIDTH], m[NEXT_WAIT], m[WIDTH]):
        if not _is_live(t, m, w, axis, time):
            continue
        node = m[w + NODE]
        at = _known(m, known, node)
        if at < 0:
            continue
        gate = t[m[w + GATE] + G_NUMBER]
        cell = (bases[gate] + known[at + CODE]) * AGES + _age(t, axis, m[w + FIRST], now)
        if kept[cell] >= 1.0 or _lot(m, gate, node) < kept[cell]:
            continue
        m[w + GATE] = 0
        shed[cell] += 1
        _credit(m, t, known, pointer(ways), bases, pointer(counts), node, axis, now, LOST, worth[cell])
        _credit(m, t, known, pointer(ways), bases, pointer(counts), node, axis, now, SPENT, -costs[cell])


@kernel
def follow(old_: Ints, new_: Ints, known_: Ints, moved_: Ints) -> None:
    """What is known of nodes that were moved into another memory (see ``carry``)."""
    old, new, known, moved = pointer(old_), pointer(new_), pointer(known_), pointer(moved_)
    for node in range(old[NODES], old[NEXT_NODE], NODE_SIZE):
        if old[node + USES] < 0:
            at = (node - old[NODES]) // NODE_SIZE * KNOWN_SIZE
            to = (-old[node + USES] - new[NODES]) // NODE_SIZE * KNOWN_SIZE
            for j in range(KNOWN_SIZE):
                moved[to + j] = known[at + j]


@part
def _length(m: Ints, w: int) -> int:
    count = 0
    while w != 0:
        count += 1
        w = m[w + LINK]
    return count


@part
def _shown(t: Ints, m: Ints, b: Ints, p: int, gate: int, e: int, g: int) -> int:
    """How many partial matches of a partition at a gate an event is shown to."""
    size = t[gate + G_KEYS_END] - t[gate + G_KEYS]
    if size == 0:
        bucket = find_bucket(m, gate, p, 0, 0, 0, 0, False)
        return _length(m, m[bucket + HEAD]) + int(m[bucket + ROOT] != 0) if bucket != 0 else 0
    count = 0
    for c in range(t[gate + G_CANDIDATES], t[gate + G_CANDIDATES_END], C_SIZE):
        if t[c + C_GPM] != g or t[c + C_PARTS] != t[c + C_PARTS_END]:
            continue
        at = t[c + C_KEYS]
        for r in range(row_of(b, g, e), row_of(b, g, e + 1)):
            k0 = value(b, t[at], r)
            k1 = value(b, t[at + 1], r) if size > 1 else 0
            k2 = value(b, t[at + 2], r) if size > 2 else 0
            k3 = value(b, t[at + 3], r) if size > 3 else 0
            bucket = find_bucket(m, gate, p, k0, k1, k2, k3, False)
            if bucket != 0:
                count += _length(m, m[bucket + HEAD]) + int(m[bucket + ROOT] != 0)
    return count


@kernel
def shown(tables: Ints, ints: Ints, batch: Ints) -> int:
    """How many partial matches the first event of a batch will be shown to."""
    t, m, b = pointer(tables), pointer(ints), pointer(batch)
    total = 0
    if b[B_SIZE] == 0:
        return 0
    for k in range(max(0, find_keys(t, m, b, 0))):
        p = find_partition(m, t[N_KEYS], m[KEYS] + k * t[N_KEYS])
        if p == 0:
            continue
        total += _length(m, m[p])
        for g in range(t[N_GPMS]):
            if row_of(b, g, 0) < row_of(b, g, 1):
                for i in range(t[t[WOKEN] + 2 * g], t[t[WOKEN] + 2 * g + 1]):
                    total += _shown(t, m, b, p, t[i], 0, g)
    return total


@kernel
def remaining(tables: Ints, ints: Ints, axis: int, time: int, seen: Marks) -> tuple[int, int]:
    """How many waits and nodes a sweep would move. ``seen``: a zero for each node."""
    t, m = pointer(tables), pointer(ints)
    waits, nodes = 0, 0
    for w in range(m[WAITS] + m[WIDTH], m[NEXT_WAIT], m[WIDTH]):
        parked = m[w + GATE] != 0 and m[w + BUCKET] == IS_PARKED
        if not parked and is_over(m, w, t[LIMIT], axis, time):
            continue
        waits += 1
        node = m[w + NODE]
        while node != 0 and seen[(node - m[NODES]) // NODE_SIZE] == 0:
            seen[(node - m[NODES]) // NODE_SIZE] = 1
            nodes += 1
            node = m[node + PREVIOUS]
    return waits, nodes
