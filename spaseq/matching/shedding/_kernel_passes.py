"""Passes over the arena of runs between two events, and over what was found.

The input are the arrays of the runs kernel, and the records of its nodes (``_kernel_known``). A partial match
that advances, or becomes a match, is counted for its own class only: shedding it later does not lower the
rates of the class.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from spaseq._jit import kernel, part
from spaseq.matching.filters import batch as heads
from spaseq.matching.filters._kernel_values import (
    LIMIT,
    N_KEYS,
    WOKEN,
    Floats,
    Ints,
    RunMachine,
    pointer,
)
from spaseq.matching.nfa.compiled._kernel import find_keys
from spaseq.matching.nfa.compiled._kernel_layout import rows_of
from spaseq.matching.nfa.compiled._kernel_memory import find_bucket, find_partition
from spaseq.matching.nfa.compiled._kernel_places import bucket_of_row, is_over
from spaseq.matching.nfa.records import (
    buckets,
    candidates,
    findings,
    gates,
    header,
    nodes,
    partitions,
    waits,
)
from spaseq.matching.shedding._kernel_burst import PASSED_OVER
from spaseq.matching.shedding._kernel_known import (
    COUNTS,
    DIED,
    KNOWN_SIZE,
    LIVED,
    MATCHED,
    W_GATE,
    W_SIZE,
    Instant,
    Learned,
    cell_of,
    class_of,
    code_of,
    is_dead,
    is_live,
    known_at,
    learn,
    leave,
    lot,
)

Marks = npt.NDArray[np.int8]

#: At most this many places are read per partial match, since most places may be empty.
_EMPTY: Final = 4


@kernel
def observe(
    machine_: RunMachine, learned_: Learned, instant: Instant, alive_: Ints, begin: int, most: int,
    counted: bool, tells_the_dead: bool,
) -> tuple[int, int]:  # fmt: skip
    """Process ``most`` partial matches from the ``begin``-th place on: code the new ones, and count all by
    cell.

    The counts go to ``alive``. Returns the place where it stopped, and the number of partial matches. Dead
    partial matches are removed. ``counted``: the step that led to a new partial match is counted.
    """
    machine: RunMachine = pointer(machine_)
    learned: Learned = pointer(learned_)
    t, m, counts, alive = machine.t, machine.m, learned.counts, pointer(alive_)
    total = 0
    w = header.waits(m) + header.width(m) * (1 + begin)
    end = min(header.next_wait(m), w + header.width(m) * _EMPTY * most)
    while w < end and total < most:
        if is_live(t, m, w, instant.axis, instant.time):
            total += 1
            node = waits.node(m, w)
            at = known_at(m, learned.known, node)
            if at < 0:
                at = learn(machine, learned, w, node, counted)
            number = class_of(machine, learned, w, at)
            # In a batch, an event after ``position`` may have made it.
            lived = max(0, min(instant.events, instant.position - nodes.position(m, node)))
            if not tells_the_dead or not is_dead(machine, w, instant.time, learned.taken):
                counts[number * COUNTS + LIVED] += lived
                alive[cell_of(t, number, waits.first(m, w), instant)] += 1
            elif gates.sign(t, waits.gate(m, w)) == 0:
                # It died between this pass and the last one.
                counts[number * COUNTS + LIVED] += 0.5 * lived
                counts[number * COUNTS + DIED] += 1
                leave(m, w)
        w += header.width(m)
    return (w - header.waits(m)) // header.width(m) - 1, total


@kernel
def welcome(
    machine_: RunMachine, learned_: Learned, instant: Instant, alive_: Ints, begin: int
) -> tuple[int, int, float]:
    """Code new partial matches, from ``begin`` on; return their number, how many of them have one event, and
    their load.
    """
    machine: RunMachine = pointer(machine_)
    learned: Learned = pointer(learned_)
    t, m, alive = machine.t, machine.m, pointer(alive_)
    # New partial matches must go behind all others, so the list of free places is emptied. Free places are
    # reused only after a sweep.
    while header.free_wait(m) != 0:
        header.set_free_wait(m, waits.link(m, header.free_wait(m)))
        header.set_live_waits(m, header.live_waits(m) + 1)
    total, begun, load = 0, 0, 0.0
    for w in range(begin, header.next_wait(m), header.width(m)):
        if not is_live(t, m, w, instant.axis, instant.time):
            continue
        node = waits.node(m, w)
        at = known_at(m, learned.known, node)
        if at < 0:
            at = learn(machine, learned, w, node, True)
        total += 1
        begun += int(nodes.previous(m, node) == 0)
        number = class_of(machine, learned, w, at)
        alive[cell_of(t, number, waits.first(m, w), instant)] += 1
        load += learned.loads[number]
    return total, begun, load


@kernel
def surviving(tables: Ints, ints: Ints, places: int, axis: int, time: int) -> int:
    """Return how many of the first ``places`` a sweep would move."""
    t, m = pointer(tables), pointer(ints)
    count = 0
    width = header.width(m)
    end = min(header.next_wait(m), header.waits(m) + width * (1 + places))
    for w in range(header.waits(m) + width, end, width):
        count += is_kept(t, m, w, axis, time)
    return count


@kernel
def strangers(ints: Ints, known_: Ints) -> bool:
    """Return whether a partial match that became one of the matches just found has no record."""
    m, known = pointer(ints), pointer(known_)
    for i in range(header.found_count(m)):
        if code_of(m, known, nodes.previous(m, findings.node(m, header.found(m) + i * findings.SIZE))) < 0:
            return True
    return False


@kernel
def credit(ints: Ints, learned_: Learned, weights_: Floats) -> None:
    """Credit the partial matches of the matches just found, each with the weight of its way to end."""
    m, weights = pointer(ints), pointer(weights_)
    learned: Learned = pointer(learned_)
    for i in range(header.found_count(m)):
        found = header.found(m) + i * findings.SIZE
        node = findings.node(m, found)
        gate = learned.ways[nodes.way(m, node) * W_SIZE + W_GATE]
        code = code_of(m, learned.known, nodes.previous(m, node))
        if code >= 0:
            at = (learned.bases[gate] + code) * COUNTS + MATCHED
            learned.counts[at] += weights[findings.accept(m, found)]


@kernel
def mark(
    machine_: RunMachine, learned_: Learned, instant: Instant, kept_: Floats, shed_: Ints, draw: int
) -> None:
    """Remove all partial matches of each cell but the share ``kept``; count the removed ones by cell in
    ``shed``.

    Their places stay, marked as empty: the arena must be swept.
    """
    machine: RunMachine = pointer(machine_)
    learned: Learned = pointer(learned_)
    t, m, kept, shed = machine.t, machine.m, pointer(kept_), pointer(shed_)
    for w in range(header.waits(m) + header.width(m), header.next_wait(m), header.width(m)):
        if not is_live(t, m, w, instant.axis, instant.time):
            continue
        node = waits.node(m, w)
        at = known_at(m, learned.known, node)
        if at < 0:
            continue
        cell = cell_of(t, class_of(machine, learned, w, at), waits.first(m, w), instant)
        if kept[cell] >= 1.0 or lot(m, gates.number(t, waits.gate(m, w)), node, draw) < kept[cell]:
            continue
        waits.set_gate(m, w, 0)
        shed[cell] += 1


@kernel
def follow(old_: Ints, new_: Ints, known_: Ints, moved_: Ints) -> None:
    """Copy the records of nodes that were moved into another memory (see ``carry``)."""
    old, new, known, moved = pointer(old_), pointer(new_), pointer(known_), pointer(moved_)
    for node in range(header.nodes(old), header.next_node(old), nodes.SIZE):
        if nodes.uses(old, node) < 0:
            at = (node - header.nodes(old)) // nodes.SIZE * KNOWN_SIZE
            to = (-nodes.uses(old, node) - header.nodes(new)) // nodes.SIZE * KNOWN_SIZE
            for j in range(KNOWN_SIZE):
                moved[to + j] = known[at + j]


@part
def _length(m: Ints, bucket: int) -> int:
    """Return how many waits of a bucket are shown events; a heap counts as one wait."""
    if bucket == 0:
        return 0
    count, w = int(buckets.root(m, bucket) != 0), buckets.head(m, bucket)
    while w != 0:
        count += waits.barred(m, w) != PASSED_OVER
        w = waits.link(m, w)
    return count


@part
def _shown(t: Ints, m: Ints, b: Ints, p: int, gate: int, e: int, g: int) -> int:
    """Return how many partial matches of a partition at a gate an event is shown to."""
    if gates.keys_end(t, gate) == gates.keys(t, gate):
        return _length(m, find_bucket(m, gate, p, 0, 0, 0, 0, False))
    count = 0
    for c in range(gates.candidates(t, gate), gates.candidates_end(t, gate), candidates.SIZE):
        if candidates.gpm(t, c) != g or candidates.parts(t, c) != candidates.parts_end(t, c):
            continue
        first, last = rows_of(b, g, e)
        for r in range(first, last):
            count += _length(m, bucket_of_row(t, m, b, gate, p, r, candidates.keys(t, c)))
    return count


@kernel
def shown(tables: Ints, ints: Ints, batch: Ints, at_gates: Floats, weight: float) -> int:
    """Return how many partial matches the first event of a batch will be shown to; add ``weight`` times the
    number at each gate to ``at_gates``.
    """
    t, m, b, counts = pointer(tables), pointer(ints), pointer(batch), pointer(at_gates)
    total = 0
    if heads.size(b) == 0:
        return 0
    for k in range(max(0, find_keys(t, m, b, 0, False))):
        p = find_partition(m, t[N_KEYS], header.keys(m) + k * t[N_KEYS])
        if p == 0:
            continue
        w = partitions.head(m, p)
        while w != 0:
            counts[gates.number(t, waits.gate(m, w))] += weight
            total += 1
            w = waits.link(m, w)
        for share in range(heads.shares(b, 0), heads.shares(b, 1), heads.SHARE):
            g = heads.gpm(b, share)
            for i in range(t[t[WOKEN] + 2 * g], t[t[WOKEN] + 2 * g + 1]):
                count = _shown(t, m, b, p, t[i], 0, g)
                counts[gates.number(t, t[i])] += weight * count
                total += count
    return total


@part
def is_kept(t: Ints, m: Ints, w: int, axis: int, time: int) -> bool:
    """Return whether a sweep moves the wait at a place: it may advance, or is a waiting match."""
    parked = waits.gate(m, w) != 0 and waits.bucket(m, w) == waits.IS_PARKED
    return bool(parked or not is_over(m, w, t[LIMIT], axis, time))


@kernel
def remaining(tables: Ints, ints: Ints, axis: int, time: int, seen: Marks) -> tuple[int, int]:
    """Return how many waits and nodes a sweep would move. ``seen``: a zero for each node."""
    t, m = pointer(tables), pointer(ints)
    wait_count, node_count = 0, 0
    for w in range(header.waits(m) + header.width(m), header.next_wait(m), header.width(m)):
        if not is_kept(t, m, w, axis, time):
            continue
        wait_count += 1
        node = waits.node(m, w)
        while node != 0 and seen[(node - header.nodes(m)) // nodes.SIZE] == 0:
            seen[(node - header.nodes(m)) // nodes.SIZE] = 1
            node_count += 1
            node = nodes.previous(m, node)
    return wait_count, node_count


# Columns of the list: a wait, its partition, its first event's position and place on the window's axis, and
# its cell.
L_WAIT: Final = 0
L_PARTITION: Final = 1
L_POSITION: Final = 2
L_PLACE: Final = 3
L_CELL: Final = 4
L_SIZE: Final = 5


@part
def _first(m: Ints, node: int) -> int:
    """Return the position of the first event of a node's runs."""
    while nodes.previous(m, node) != 0:
        node = nodes.previous(m, node)
    return int(nodes.position(m, node))


@kernel
def listed(machine_: RunMachine, learned_: Learned, instant: Instant, rows_: Ints) -> int:
    """List all partial matches; return how many. They must have been observed right before."""
    machine: RunMachine = pointer(machine_)
    learned: Learned = pointer(learned_)
    t, m, rows = machine.t, machine.m, pointer(rows_)
    count = 0
    for w in range(header.waits(m) + header.width(m), header.next_wait(m), header.width(m)):
        if not is_live(t, m, w, instant.axis, instant.time):
            continue
        node = waits.node(m, w)
        number = class_of(machine, learned, w, known_at(m, learned.known, node))
        at = count * L_SIZE
        rows[at + L_WAIT] = w
        rows[at + L_PARTITION] = waits.partition(m, w)
        rows[at + L_POSITION] = _first(m, node)
        rows[at + L_PLACE] = waits.first(m, w)
        rows[at + L_CELL] = cell_of(t, number, waits.first(m, w), instant)
        count += 1
    return count
