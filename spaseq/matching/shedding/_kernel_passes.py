"""What shedding does with the arena of runs between two events: passes over it, and over what was found.

Beside the arena stands what is known of its nodes, by their number: ``tag`` (the position of the event that
made it, and 1; 0 if unknown, so that a node that was freed and used again is told apart) and ``code`` (its
quantised values). A *class* is a gate and a code; a
*cell* is a class and one of so many ages (``AGES``) of a run in its window. A partial match that goes on, or
becomes a match, is counted at its own class alone: what is shed behind it does not make it seem worth less.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from spaseq._jit import inlined, kernel, part
from spaseq.matching.conditions._kernel_machine import holds
from spaseq.matching.conditions._kernel_values import (
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
from spaseq.matching.kernel.compiled._kernel import find_keys
from spaseq.matching.kernel.compiled._kernel_layout import (
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
from spaseq.matching.kernel.compiled._kernel_memory import (
    BUCKET,
    DEPTH,
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
from spaseq.matching.kernel.compiled._kernel_places import is_over

Marks = npt.NDArray[np.int8]

#: So many ages of a run are told apart.
AGES: Final = 8

# Columns of what is known of a node.
TAG: Final = 0
CODE: Final = 1
KNOWN_SIZE: Final = 2

# Columns of features: a program, where in the edges its own stand, how many they are; and of a way: the
# number of its gate; of the place it leads to the features, how many codes there are, and how many depths are
# told apart; and where in ``steps`` it stands how often one of a code went on to one of another.
F_CODE: Final = 0
F_CODE_END: Final = 1
F_EDGES: Final = 2
F_COUNT: Final = 3
F_LEVELS: Final = 4
F_SIZE: Final = 5
W_GATE: Final = 0
W_FEATURES: Final = 1
W_FEATURES_END: Final = 2
W_CODES: Final = 3
W_DEPTHS: Final = 4
W_STEPS: Final = 5
W_SIZE: Final = 6

#: So many values of each feature are kept, of which its edges are learned; before them, how many there were.
RING: Final = 512

# Columns of what is counted of a class: matches that its partial matches became, and events that these lived
# through.
MATCHED: Final = 0
LIVED: Final = 1
COUNTS: Final = 2


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
    t: Ints, m: Ints, f: Floats, numbers: Floats, codes: Codes, w: int, features: Ints, ways: Ints, way: int,
    edges: Floats, rings: Floats,
) -> int:  # fmt: skip
    """The code of a wait's values; they are written down for who learns the edges."""
    # How long a run is decides how often it may still repeat.
    depths = ways[way + W_DEPTHS]
    code = min(depths - 1, m[m[w + NODE] + DEPTH]) if depths > 1 else 0
    for j in range(ways[way + W_FEATURES], ways[way + W_FEATURES_END]):
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
        code = code * features[row + F_LEVELS] + level
    return int(code)


@inlined
def _code(m: Ints, known: Ints, node: int) -> int:
    """The code of a node; -1 if it is not known. That of the empty run is 0."""
    if node == 0:
        return 0
    at = _known(m, known, node)
    return int(known[at + CODE]) if at >= 0 else -1


@kernel
def observe(
    tables: Ints, ints: Ints, floats: Floats, numbers: Floats, codes: Codes, known_: Ints, ways_: Ints,
    bases_: Ints, features_: Ints, edges_: Floats, rings_: Floats, counts_: Floats, steps_: Floats,
    alive_: Ints, axis: int, time: int, now: int, events: float, since: int, counted: bool,
) -> int:  # fmt: skip
    """Looks at all partial matches: codes new ones, counts them by cell into ``alive``; how many there are.

    ``events``: since the last time, when the next one's position was ``since``. ``counted``: what went on to
    a new one is told so.
    """
    t, m, f = pointer(tables), pointer(ints), pointer(floats)
    n, c, known, ways = pointer(numbers), pointer(codes), pointer(known_), pointer(ways_)
    bases, features, edges, steps = pointer(bases_), pointer(features_), pointer(edges_), pointer(steps_)
    rings, counts, alive = pointer(rings_), pointer(counts_), pointer(alive_)
    total = 0
    for w in range(m[WAITS] + m[WIDTH], m[NEXT_WAIT], m[WIDTH]):
        if not _is_live(t, m, w, axis, time):
            continue
        total += 1
        node = m[w + NODE]
        lived = events
        at = _known(m, known, node)
        if at < 0:
            at = (node - m[NODES]) // NODE_SIZE * KNOWN_SIZE
            way = m[node + WAY] * W_SIZE
            known[at + CODE] = _coded(t, m, f, n, c, w, features, ways, way, edges, rings)
            known[at + TAG] = m[node + POSITION] + 1
            before = _code(m, known, m[node + PREVIOUS])
            if counted and before >= 0:
                steps[ways[way + W_STEPS] + before * ways[way + W_CODES] + known[at + CODE]] += 1
        if m[node + POSITION] >= since:
            lived = events / 2
        number = bases[t[m[w + GATE] + G_NUMBER]] + known[at + CODE]
        counts[number * COUNTS + LIVED] += lived
        alive[number * AGES + _age(t, axis, m[w + FIRST], now)] += 1
    return total


@kernel
def strangers(ints: Ints, known_: Ints) -> bool:
    """Whether nothing is known of a partial match that became one of the matches just found."""
    m, known = pointer(ints), pointer(known_)
    for i in range(m[FOUND_COUNT]):
        if _code(m, known, m[m[m[FOUND] + i * FOUND_SIZE + FOUND_NODE] + PREVIOUS]) < 0:
            return True
    return False


@kernel
def credit(ints: Ints, known_: Ints, ways_: Ints, bases_: Ints, counts_: Floats) -> None:
    """Tells the partial matches that became the matches just found."""
    m, known, ways = pointer(ints), pointer(known_), pointer(ways_)
    bases, counts = pointer(bases_), pointer(counts_)
    for i in range(m[FOUND_COUNT]):
        node = m[m[FOUND] + i * FOUND_SIZE + FOUND_NODE]
        code = _code(m, known, m[node + PREVIOUS])
        if code >= 0:
            counts[(bases[ways[m[node + WAY] * W_SIZE + W_GATE]] + code) * COUNTS + MATCHED] += 1


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
    tables: Ints, ints: Ints, known_: Ints, bases_: Ints, kept_: Floats, shed_: Ints, axis: int, time: int,
    now: int,
) -> None:  # fmt: skip
    """Takes partial matches out, of each cell all but the share ``kept``; counts them by cell in ``shed``.

    They stand where they stood, as none: the arena is good for being swept only.
    """
    t, m, known, bases = pointer(tables), pointer(ints), pointer(known_), pointer(bases_)
    kept, shed = pointer(kept_), pointer(shed_)
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
def shown(tables: Ints, ints: Ints, batch: Ints, gates_: Floats, weight: float) -> int:
    """How many partial matches the first event of a batch will be shown to; ``gates``: at each, so often
    ``weight``.
    """
    t, m, b, gates = pointer(tables), pointer(ints), pointer(batch), pointer(gates_)
    total = 0
    if b[B_SIZE] == 0:
        return 0
    for k in range(max(0, find_keys(t, m, b, 0))):
        p = find_partition(m, t[N_KEYS], m[KEYS] + k * t[N_KEYS])
        if p == 0:
            continue
        w = m[p]
        while w != 0:
            gates[t[m[w + GATE] + G_NUMBER]] += weight
            total += 1
            w = m[w + LINK]
        for g in range(t[N_GPMS]):
            if row_of(b, g, 0) < row_of(b, g, 1):
                for i in range(t[t[WOKEN] + 2 * g], t[t[WOKEN] + 2 * g + 1]):
                    count = _shown(t, m, b, p, t[i], 0, g)
                    gates[t[t[i] + G_NUMBER]] += weight * count
                    total += count
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
