"""The kernels of path queries: sorting edges, and searches of the product of a graph with an automaton.

A *place* of the product is a state and a node, as one number: ``state * nodes + node``.

A search does not mark the places where it begins as seen. So it also finds paths that come back to them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple, cast

import numpy as np
import numpy.typing as npt
from numba import types
from numba.extending import intrinsic

from spaseq._jit import inlined, kernel, part

Nodes = npt.NDArray[np.int32]
Ids = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Masks = npt.NDArray[np.uint64]
Bytes = npt.NDArray[np.uint8]


class Machine(NamedTuple):
    """The product of a graph and an automaton. It can be sent to another process.

    ``pointers``, ``(relations, nodes + 1)``, and ``targets`` are the graph's edges as CSR arrays, a row for
    each relation: ``node`` leads to the nodes ``targets[pointers[row, node]:pointers[row, node + 1]]``.
    ``transitions``, ``(transitions, 2)``: (row of ``pointers``, state reached). The transitions from
    ``state`` are ``transitions[leaving[state]:leaving[state + 1]]``. ``ends[state]`` is 1 if ``state``
    accepts; ``initial`` are the first states. ``empty[node]`` is True where a path may have no edge; if no
    node allows such a path, ``empty`` has length 0.
    """

    pointers: Ids
    targets: Nodes
    leaving: Nodes
    transitions: Nodes
    ends: Bytes
    initial: Nodes
    empty: Flags

    @property
    def size(self) -> int:
        """The number of states."""
        return len(self.leaving) - 1


class SearchBounds(NamedTuple):
    """The bounds of ``one_by_one``.

    ``budget``: no search begins after this many edges have been looked at. ``most``: as soon as more nodes
    than this are found, searching ends. ``stamp``: not below any stamp in ``seen`` and ``found``.
    """

    budget: int
    most: int
    stamp: int


class Room(NamedTuple):
    """The working arrays of ``one_by_one``.

    ``seen`` has a stamp for each place, ``found`` for each node. A search stamps the places and nodes that it
    meets with its own number. ``queue`` holds the places to search; a ``stop[0]`` other than 0 ends a search.
    """

    seen: Nodes
    found: Nodes
    queue: Ids
    stop: Ids


class MaskRoom(NamedTuple):
    """The working arrays of ``together``, which searches from many sources at once, with a bit for each.

    The bits of all sources are a mask of ``words = len(bits)`` words. The mask of place ``i`` is
    ``visited[words * i : words * (i + 1)]``. ``pending`` has a mask for each place, too, and ``reached`` for
    each node. ``waiting`` has a flag for each place, ``known`` for each node. ``queue`` is a ring buffer.

    These masks must be 0 and these flags False before a search. A search that is not stopped resets those of
    places; ``unpack`` resets those of nodes.
    """

    visited: Masks
    pending: Masks
    bits: Masks
    waiting: Flags
    queue: Ids
    touched: Ids
    reached: Masks
    known: Flags
    stop: Ids


#: Indexes into ``work``.
SHARED: Final = 0  # edges looked at, each counted once for all sources of a batch
SINGLE: Final = 1  # edges that separate searches from each source would look at

#: The return value of a search that was stopped. Its working arrays are not reset.
STOPPED: Final = -2

#: If the words of a mask have more bits set than this on average, ``unpack`` looks at all 64 in turn.
DENSE: Final = 16

_ONE: Final = np.uint64(1)
_NONE: Final = np.uint64(0)


@intrinsic
def _lowest(_context: Any, word: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        del context, signature
        return builder.cttz(arguments[0], types_true)

    from llvmlite import ir

    types_true = ir.Constant(ir.IntType(1), 1)
    del word
    return types.int64(types.uint64), generate


#: The number of the lowest bit that is 1; the word must not be 0.
lowest: Callable[[np.uint64], int] = cast(Any, _lowest)


@intrinsic
def _ones(_context: Any, word: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        del context, signature
        return builder.ctpop(arguments[0])

    del word
    return types.int64(types.uint64), generate


#: How many bits of a word are 1.
ones: Callable[[np.uint64], int] = cast(Any, _ones)


@kernel
def sort_by(keys: Nodes, order: Ids, room: Ids, sorted_: Ids) -> None:
    """Write the rows in ``order`` to ``sorted_``, sorted by key; equal keys keep their order (counting sort).

    ``room`` must have a zero for each key, and one more.
    """
    for i in range(len(order)):
        room[keys[order[i]] + 1] += 1
    for key in range(len(room) - 1):
        room[key + 1] += room[key]
    for i in range(len(order)):
        key = keys[order[i]]
        sorted_[room[key]] = order[i]
        room[key] += 1


@kernel
def point(keys: Nodes, begin: int, end: int, at: int, pointers: Ids) -> None:
    """Set ``pointers[k]`` to ``at`` plus the offset of key ``k`` in the sorted ``keys[begin:end]``."""
    k = 0
    for i in range(begin, end):
        while k <= keys[i]:
            pointers[k] = at + i - begin
            k += 1
    while k < len(pointers):
        pointers[k] = at + end - begin
        k += 1


@kernel
def count_edges(pointers: npt.NDArray[np.int64], rows: Ids, nodes: Ids) -> int:
    """Return how many edges leave ``nodes`` in the given ``rows`` of ``pointers``."""
    count = 0
    for k in range(len(rows)):
        for i in range(len(nodes)):
            count += pointers[rows[k], nodes[i] + 1] - pointers[rows[k], nodes[i]]
    return count


@inlined
def add_node(node: Any, known: Flags, found: Nodes, count: int) -> int:
    """Add a node to ``found`` unless it is known; return the number of nodes found."""
    if not known[node]:
        known[node] = True
        found[count] = node
        count += 1
    return count


@part
def begin_empty(machine: Machine, sources: Nodes, room: MaskRoom, found: Nodes) -> int:
    """Add the sources where a path may have no edge to ``found``; return their number."""
    count, words = 0, len(room.bits)
    if len(machine.empty) > 0:
        for i in range(len(sources)):
            source = np.int64(sources[i])
            if machine.empty[source]:
                count = add_node(source, room.known, found, count)
                room.reached[words * source + (i >> 6)] |= _ONE << np.uint64(i & 63)
    return count


@kernel
def one_by_one(
    machine: Machine,
    sources: Nodes,
    wanted: Flags,
    inside: Nodes,
    bounds: SearchBounds,
    room: Room,
    offsets: Ids,
    out: Nodes,
) -> int:
    """Search from one source after the other, breadth first, while ``out`` has room and the budget lasts.

    Returns the index of the first source that was not searched, or STOPPED once ``stop[0]`` is not 0.
    Writes the distinct nodes reached from ``sources[i]`` to ``out[offsets[i]:offsets[i + 1]]``. If ``wanted``
    is not empty, only nodes flagged in it are written; places where ``inside``, if given, is -1 are left out.
    """
    pointers, targets, leaving, transitions, ends, initial, empty = machine
    budget, most, stamp = bounds
    seen, found, queue, stop = room
    nodes, count = len(found), offsets[0]
    everything, everywhere = len(wanted) == 0, len(inside) == 0
    for i in range(len(sources)):
        if len(out) - count < nodes or budget < 0 or count > most:
            return i
        stamp += 1
        source = np.int64(sources[i])
        if len(empty) > 0 and empty[source] and (everything or wanted[source]):
            found[source] = stamp
            out[count] = source
            count += 1
        for k in range(len(initial)):
            queue[k] = initial[k] * nodes + source
        head, tail = 0, len(initial)
        while head < tail and count <= most:
            if stop[0] != 0:
                return STOPPED
            state = queue[head] // nodes
            node = queue[head] - state * nodes
            head += 1
            for k in range(leaving[state], leaving[state + 1]):
                row, reached = transitions[k, 0], transitions[k, 1]
                base = np.int64(reached) * nodes
                accepts = ends[reached] != 0
                goes_on = leaving[reached] < leaving[reached + 1]
                low, high = pointers[row, node], pointers[row, node + 1]
                budget -= high - low
                for e in range(low, high):
                    target = np.int64(targets[e])
                    if seen[base + target] != stamp and (everywhere or inside[base + target] >= 0):
                        seen[base + target] = stamp
                        if accepts and found[target] != stamp:
                            found[target] = stamp
                            if everything or wanted[target]:
                                out[count] = target
                                count += 1
                        if goes_on:
                            queue[tail] = base + target
                            tail += 1
        offsets[i + 1] = count
    return len(sources)


@inlined
def enqueue(place: Any, waiting: Flags, queue: Ids, tail: int) -> int:
    """Put a place into ``queue``, a ring buffer, unless it is there already; return the queue's end."""
    if not waiting[place]:
        waiting[place] = True
        queue[tail] = place
        tail = tail + 1 if tail + 1 < len(queue) else 0
    return tail


@part
def begin_masks(initial: Nodes, sources: Nodes, room: MaskRoom) -> int:
    """Put the first places of each source into the queue, with the source's bit; return the queue's end."""
    words, nodes, tail = len(room.bits), len(room.known), 0
    for i in range(len(sources)):
        for k in range(len(initial)):
            place = initial[k] * nodes + np.int64(sources[i])
            tail = enqueue(place, room.waiting, room.queue, tail)
            room.pending[words * place + (i >> 6)] |= _ONE << np.uint64(i & 63)
    return tail


@inlined
def take_pending(room: MaskRoom, place: int) -> int:
    """Move a place's pending bits into ``room.bits``; return how many there are."""
    words, count = len(room.bits), 0
    for w in range(words):
        room.bits[w] = room.pending[words * place + w]
        room.pending[words * place + w] = _NONE
        count += ones(room.bits[w])
    return count


@kernel
def together(machine: Machine, sources: Nodes, inside: Nodes, room: MaskRoom, found: Nodes, work: Ids) -> int:
    """Search from all sources at once, with masks that have a bit for each source, 64 in a word.

    Returns the number of nodes in ``found``; their masks in ``reached`` have the bits of the sources that
    reach them. Adds the edges looked at to ``work``. ``inside`` and ``stop`` are as for ``one_by_one``.
    """
    pointers, targets, leaving, transitions, ends, _, _ = machine
    visited, pending, bits, waiting = room.visited, room.pending, room.bits, room.waiting
    queue, touched, reached, known, stop = room.queue, room.touched, room.reached, room.known, room.stop
    words, nodes = len(bits), len(known)
    everywhere = len(inside) == 0
    head = marked = 0
    count = begin_empty(machine, sources, room, found)
    tail = begin_masks(machine.initial, sources, room)
    while head != tail:
        if stop[0] != 0:
            return STOPPED
        place = queue[head]
        head = head + 1 if head + 1 < len(queue) else 0
        waiting[place] = False
        alone = take_pending(room, place)
        state = place // nodes
        node = place - state * nodes
        for k in range(leaving[state], leaving[state + 1]):
            row, after = transitions[k, 0], transitions[k, 1]
            base = np.int64(after) * nodes
            accepts = ends[after] != 0
            goes_on = leaving[after] < leaving[after + 1]
            low, high = pointers[row, node], pointers[row, node + 1]
            work[SHARED] += high - low
            work[SINGLE] += (high - low) * alone
            for e in range(low, high):
                target = np.int64(targets[e])
                if not everywhere and inside[base + target] < 0:
                    continue
                there = words * (base + target)
                new = old = _NONE
                for w in range(words):
                    new |= bits[w] & ~visited[there + w]
                    old |= visited[there + w]
                if new == _NONE:
                    continue
                if old == _NONE:
                    touched[marked] = base + target
                    marked += 1
                if accepts:
                    count = add_node(target, known, found, count)
                    for w in range(words):
                        reached[words * target + w] |= bits[w]
                if goes_on:
                    tail = enqueue(base + target, waiting, queue, tail)
                    for w in range(words):
                        pending[there + w] |= bits[w] & ~visited[there + w]
                for w in range(words):
                    visited[there + w] |= bits[w]
    for k in range(marked):
        for w in range(words):
            visited[words * touched[k] + w] = _NONE
    return count


@kernel
def count_bits(words: int, reached: Masks, found: Nodes, count: int, wanted: Flags, counts: Ids) -> None:
    """Count in ``counts[i]`` the found nodes with bit ``i``; clear the masks of nodes that are not wanted."""
    everything = len(wanted) == 0
    for k in range(count):
        for w in range(words):
            place = words * np.int64(found[k]) + w
            bits = reached[place]
            if not everything and not wanted[found[k]]:
                reached[place] = _NONE
                continue
            while bits != _NONE:
                counts[64 * w + lowest(bits)] += 1
                bits &= bits - _ONE


@kernel
def unpack(
    words: int, reached: Masks, known: Flags, found: Nodes, count: int, cursors: Ids, masks: Masks, out: Nodes
) -> None:
    """Write each found node to ``out`` once for each bit of its mask, grouped by bit.

    ``cursors[bit]`` is the index in ``out`` for the first node with this bit; the nodes of one bit follow
    those of the bit before. Resets ``reached`` to 0 and ``known`` to False. ``masks`` needs an element for
    each found node, ``out`` one more than are written.
    """
    for w in range(words):
        total = 0
        for k in range(count):
            place = words * np.int64(found[k]) + w
            masks[k] = reached[place]
            reached[place] = _NONE
            total += ones(masks[k])
        if total > DENSE * count:
            # Without branches: every node is written. A node that lacks the bit is overwritten by the next
            # node, or by the next bit's first node.
            for b in range(64):
                at = cursors[64 * w + b]
                for k in range(count):
                    out[at] = found[k]
                    at += np.int64((masks[k] >> np.uint64(b)) & _ONE)
        else:
            for k in range(count):
                bits = masks[k]
                while bits != _NONE:
                    bit = 64 * w + lowest(bits)
                    out[cursors[bit]] = found[k]
                    cursors[bit] += 1
                    bits &= bits - _ONE
    for k in range(count):
        known[found[k]] = False


@kernel
def distances(machine: Machine, sources: Ids, inside: Nodes, distance: Nodes, queue: Ids, stop: Ids) -> int:
    """Find the number of edges from the nearest of the source places to each place, breadth first.

    ``distance`` must be -1 everywhere before. Writes the places found to ``queue`` and returns their number,
    or STOPPED once ``stop[0]`` is not 0. ``inside`` is as for ``one_by_one``. Unlike in other searches, the
    places where the search begins count as found, at distance 0.
    """
    pointers, targets = machine.pointers, machine.targets
    leaving, transitions = machine.leaving, machine.transitions
    nodes = pointers.shape[1] - 1
    everywhere = len(inside) == 0
    tail = 0
    for k in range(len(sources)):
        if distance[sources[k]] < 0 and (everywhere or inside[sources[k]] >= 0):
            distance[sources[k]] = 0
            queue[tail] = sources[k]
            tail += 1
    head = 0
    while head < tail:
        if stop[0] != 0:
            return STOPPED
        place = queue[head]
        head += 1
        state = place // nodes
        node = place - state * nodes
        for k in range(leaving[state], leaving[state + 1]):
            row, base = transitions[k, 0], np.int64(transitions[k, 1]) * nodes
            for e in range(pointers[row, node], pointers[row, node + 1]):
                after = base + targets[e]
                if distance[after] < 0 and (everywhere or inside[after] >= 0):
                    distance[after] = distance[place] + 1
                    queue[tail] = after
                    tail += 1
    return tail
