"""What is known of the arena's nodes beside it: the classes and ages that partial matches are told apart by.

By a node's number: ``tag`` (the position of the event that made it, and 1; 0 if unknown, so that a node that
was freed and used again is told apart) and ``code`` (its quantised values). A *class* is a gate and a code; a
*cell* is a class and one of so many ages (``AGES``) of a run in its window.
"""

from __future__ import annotations

from typing import Final

from spaseq._jit import inlined, part
from spaseq._kernel_events import reach_after
from spaseq.matching.conditions._kernel_machine import holds
from spaseq.matching.conditions._kernel_values import (
    CALC,
    LIMIT,
    SHORT,
    Codes,
    Floats,
    Ints,
)
from spaseq.matching.kernel.compiled._kernel_memory import (
    mix,
)
from spaseq.matching.kernel.compiled._kernel_places import is_over
from spaseq.matching.kernel.records import header, nodes, waits

#: So many ages of a run are told apart.
AGES: Final = 8

# Columns of what is known of a node.
TAG: Final = 0
CODE: Final = 1
KNOWN_SIZE: Final = 2

# Columns of features: a program, where in the edges its own stand, how many they are; and of a way: the
# number of its gate; of the place it leads to the features, how many codes there are, and how many depths are
# told apart; where in ``steps`` it stands how often one of a code went on to one of another. Then what is
# rehearsed of it: where the ghosts of its place are, and of the one it leads to, -1 if there are none; a way
# to its place; where it stands how often it was tried with one of a code, -1 if it is not; and a program of
# what its condition compares of an event, and where the latest of these values stand.
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
W_FROM: Final = 6
W_TO: Final = 7
W_SOURCE: Final = 8
W_TRIED: Final = 9
W_VALUE: Final = 10
W_VALUE_END: Final = 11
W_VALUES: Final = 12
W_SIZE: Final = 13

#: So many values of each feature are kept, of which its edges are learned; before them, how many there were.
RING: Final = 512

# Columns of what is counted of a class: matches that its partial matches became, events that these lived
# through, and how many of them died before their window did (``_kernel_absent``).
MATCHED: Final = 0
LIVED: Final = 1
DIED: Final = 2
#: And how many there have been of it.
MADE: Final = 3
COUNTS: Final = 4


@inlined
def age(t: Ints, axis: int, first: int, now: int) -> int:
    """How old a run is; ``now``: in tumbling windows, where all are alike."""
    if t[LIMIT] <= 0:
        return now
    if axis > reach_after(first, t[LIMIT]):
        return AGES - 1
    return int(min(AGES - 1, max(0, (axis - first) * AGES // (t[LIMIT] + 1))))


@inlined
def is_live(t: Ints, m: Ints, w: int, axis: int, time: int) -> bool:
    """Whether a wait is a partial match that may still go on."""
    return not is_over(m, w, t[LIMIT], axis, time) and waits.bucket(m, w) != waits.IS_PARKED


@inlined
def known_at(m: Ints, known: Ints, node: int) -> int:
    """Where it stands what is known of a node; -1 if nothing is."""
    at = (node - header.nodes(m)) // nodes.SIZE * KNOWN_SIZE
    return int(at) if known[at + TAG] == nodes.position(m, node) + 1 else -1


@inlined
def is_a_number(m: Ints, f: Floats) -> bool:
    """Whether a program has left a number on the stack."""
    return bool(SHORT <= m[header.kinds(m)] <= CALC and f[1] == f[1])


@inlined
def keep(rings: Floats, ring: int, x: float) -> None:
    """Adds a value to a ring."""
    rings[ring + 1 + int(rings[ring]) % RING] = x
    rings[ring] += 1


@part
def coded(
    t: Ints, m: Ints, f: Floats, numbers: Floats, codes: Codes, w: int, depth: int, features: Ints,
    ways: Ints, way: int, edges: Floats, rings: Floats,
) -> int:  # fmt: skip
    """The code of a wait's values; they are written down for who learns the edges. ``depth``: of its run."""
    # How long a run is decides how often it may still repeat.
    depths = ways[way + W_DEPTHS]
    code = min(depths - 1, depth) if depths > 1 else 0
    for j in range(ways[way + W_FEATURES], ways[way + W_FEATURES_END]):
        row = j * F_SIZE
        holds(
            t, features[row + F_CODE], features[row + F_CODE_END], m, header.kinds(m), f, w,
            waits.sums(m, w), m, 0, numbers, codes,
        )  # fmt: skip
        level = 0
        if is_a_number(m, f):
            x = f[1]
            level = 1
            while level <= features[row + F_COUNT] and edges[features[row + F_EDGES] + level - 1] < x:
                level += 1
            keep(rings, j * (RING + 1), x)
        code = code * features[row + F_LEVELS] + level
    return int(code)


@inlined
def code_of(m: Ints, known: Ints, node: int) -> int:
    """The code of a node; -1 if it is not known. That of the empty run is 0."""
    if node == 0:
        return 0
    at = known_at(m, known, node)
    return int(known[at + CODE]) if at >= 0 else -1


@part
def learn(
    t: Ints, m: Ints, f: Floats, n: Floats, c: Codes, w: int, node: int, known: Ints, ways: Ints,
    features: Ints, edges: Floats, rings: Floats, steps: Floats, counted: bool,
) -> int:  # fmt: skip
    """Codes a wait's node; where it stands what is known of it now."""
    at = (node - header.nodes(m)) // nodes.SIZE * KNOWN_SIZE
    way = nodes.way(m, node) * W_SIZE
    depth = nodes.depth(m, waits.node(m, w))
    known[at + CODE] = coded(t, m, f, n, c, w, depth, features, ways, way, edges, rings)
    known[at + TAG] = nodes.position(m, node) + 1
    before = code_of(m, known, nodes.previous(m, node))
    if counted and before >= 0:
        steps[ways[way + W_STEPS] + before * ways[way + W_CODES] + known[at + CODE]] += 1
    return int(at)


@part
def lot(m: Ints, gate: int, node: int, draw: int) -> float:
    """A number from 0 to 1 that a partial match has drawn: by its events, not by where it stands.

    Each ``draw`` is another one, or else what has stayed once would always stay.
    """
    code = mix(mix(1, gate), draw)
    while node != 0:
        code = mix(mix(code, nodes.position(m, node)), nodes.way(m, node))
        node = nodes.previous(m, node)
    return float(mix(code, 7) >> 11 & 0xFFFFFFFF) / 4294967296.0
