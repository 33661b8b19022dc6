"""CORE's update on arrays: constant work an event, whatever the window and the number of runs."""

from __future__ import annotations

from spaseq._jit import inlined, kernel, part
from spaseq.matching.enumeration.compiled._kernel_bits import index, lowest
from spaseq.matching.enumeration.compiled._kernel_layout import (
    ACTIVE,
    ASK,
    CONSUME,
    DONE,
    EVENT,
    FIRST_NODE,
    FOUND_COUNT,
    FOUND_FULL,
    FOUND_KEY,
    FOUND_LEAST,
    FOUND_NODE,
    FOUND_POSITION,
    KEY_NUMBER,
    KEYS_FOUND,
    KNOWN,
    LABEL_ASKED,
    LAST,
    LAST_TIME,
    LIMIT,
    LIST,
    LONGEST,
    MASK,
    MORE_ACTIVE,
    MORE_KEYS,
    MORE_LIST,
    MOST_ACTIVE,
    MOST_LIST,
    N_KEYS,
    NEXT,
    NEXT_NODE,
    NODES_FULL,
    PARTITIONS_FULL,
    PENDING,
    READ,
    SINGLE,
    START,
    STATE,
    STATE_ASKED,
    WAITING,
    WANTS,
    WIDER,
    WORDS,
    Ints,
)
from spaseq.matching.enumeration.compiled._kernel_nodes import free, mark, merge, node, trim
from spaseq.matching.enumeration.compiled._kernel_partitions import gather, partition
from spaseq.matching.enumeration.compiled._kernel_states import add, empty, entry_of, settle, step_to


@inlined
def _fire(
    nodes: Ints, c: Ints, target: Ints, accepting: Ints, outgoing: Ints, found: Ints, block: Ints,
    state: int, before: int, top: int, last: int, labels: int, position: int, least: int, pending: int,
) -> None:  # fmt: skip
    """The runs of a node, which are in ``state``, take the event as each of ``labels``."""
    while labels:
        label = lowest(labels)
        labels &= labels - 1
        reached = index(target[state, label])
        taken = node(nodes, c, label, before, position, top)
        # Written in any case, for there is room, and counted only if something was found.
        i = index(c[FOUND_COUNT])
        found[i, FOUND_NODE] = taken
        found[i, FOUND_LEAST] = least
        found[i, FOUND_POSITION] = position
        for key in range(c[N_KEYS]):
            found[i, FOUND_KEY + key] = block[key]
        c[FOUND_COUNT] = i + accepting[reached]
        if outgoing[reached]:
            at = step_to(c, outgoing, block, index(last), reached, pending)
            add(nodes, c, block, at, taken, top, least)


@part
def _steps(
    c: Ints, target: Ints, outgoing: Ints, block: Ints, work: Ints, waiting: int, labels: int
) -> int:  # fmt: skip
    """How many steps the states that wait take; -1 if one of them is not known yet."""
    count = 0
    for j in range(-1, waiting):
        state = 0 if j < 0 else block[entry_of(c, work[j]) + STATE]
        rest = labels & outgoing[state]
        while rest:
            label = lowest(rest)
            rest &= rest - 1
            count += 1
            if target[state, label] < 0:
                c[STATE_ASKED] = state
                c[LABEL_ASKED] = label
                return -1
    return count


@inlined
def _room(c: Ints, nodes: Ints, active: int, steps: int, found: Ints, least: int) -> int:
    """Whether there is room for all that an event may change; else what there is too little of."""
    if active + steps > c[MOST_ACTIVE]:
        c[WANTS] = MORE_ACTIVE
        return WIDER
    # Settling puts into one list what pends in several, one more for each.
    if c[LONGEST] + steps + (0 if c[SINGLE] else active) > c[MOST_LIST]:
        c[WANTS] = MORE_LIST
        return WIDER
    room = 1 + (active + steps) * (c[MOST_LIST] + 4)
    if c[NEXT_NODE] - c[FIRST_NODE] + room > c[MASK]:
        if c[READ] < c[FOUND_COUNT]:
            # What was found first, and nobody has read, has runs of an older window.
            least = min(least, found[c[READ], FOUND_LEAST])
        free(nodes, c, least)
        if c[NEXT_NODE] - c[FIRST_NODE] + room > c[MASK]:
            return NODES_FULL
    if c[FOUND_COUNT] + steps > len(found):
        return FOUND_FULL
    return DONE


@inlined
def _waiting(c: Ints, block: Ints, labels: int, work: Ints) -> int:
    """Writes the numbers of the active states that wait for one of ``labels``; how many they are."""
    count = 0
    words = c[WORDS]
    for word in range(words):
        bits = 0
        rest = labels
        while rest:
            bits |= block[index(WAITING + lowest(rest) * words + word)]
            rest &= rest - 1
        while bits:
            work[count] = (word << 6) + lowest(bits)
            count = index(count + 1)
            bits &= bits - 1
    return count


@inlined
def _step(
    c: Ints, nodes: Ints, parts: Ints, target: Ints, accepting: Ints, outgoing: Ints, found: Ints, work: Ints,
    where: int, labels: int, position: int, axis: int, time: int, stream: int,
) -> int:  # fmt: skip
    """One event, in one partition, where it is relevant for the GPMs of ``labels``."""
    block = parts[where]
    least = axis - c[LIMIT]
    pending = -1
    if not c[SINGLE]:
        pending = stream
        if block[ACTIVE] and block[LAST_TIME] != time:
            status = _room(c, nodes, block[ACTIVE], 0, found, least)
            if status != DONE:
                return status
            settle(nodes, c, outgoing, block, work, least)
            block[LAST_TIME] = time
    # The states that wait for the event, and how many steps they take.
    active = block[ACTIVE]
    waiting = _waiting(c, block, labels, work)
    first = labels & outgoing[0]
    steps = waiting + int(first != 0)
    if not c[KNOWN] or labels & (labels - 1):
        steps = _steps(c, target, outgoing, block, work, waiting, labels)
        if steps < 0:
            return ASK
    status = _room(c, nodes, active, steps, found, least)
    if status != DONE:
        return status
    mark(nodes, c, axis)
    before = c[FOUND_COUNT]
    # All runs as they are before the event: states, and nodes for their runs with their tops.
    end = waiting
    for j in range(waiting):
        at = entry_of(c, work[j])
        free = block[at + PENDING] < 0 or block[at + PENDING] == stream
        if free and trim(block, at, least):
            work[end] = block[at + STATE]
            work[end + 1] = merge(nodes, c, block, at)
            work[end + 2] = block[at + LIST + 1]
            work[end + 3] = at + NEXT
            end = index(end + 4)
    if first:
        work[end] = work[end + 1] = 0
        work[end + 2] = axis
        work[end + 3] = START
        end = index(end + 4)
    j = index(waiting)
    while j < end:
        state = index(work[j])
        _fire(
            nodes, c, target, accepting, outgoing, found, block, state, work[j + 1], work[j + 2], work[j + 3],
            labels & outgoing[state], position, least, pending,
        )  # fmt: skip
        j = index(j + 4)
    if c[CONSUME] and c[FOUND_COUNT] > before:
        empty(c, block)
    block[LAST] = axis
    block[LAST_TIME] = time
    return DONE


@kernel
def label_events(labels: Ints, events: Ints, sizes: Ints) -> bool:
    """Writes which GPMs events are relevant for, as bits; whether the rows of each are in order.

    GPM i has the rows from ``sizes[i]`` to ``sizes[i + 1]``.
    """
    ordered = True
    for label in range(len(sizes) - 1):
        last = 0
        for row in range(sizes[label], sizes[label + 1]):
            event = events[index(row)]
            labels[index(event)] |= 1 << label
            ordered = ordered and event >= last
            last = event
    return ordered


@kernel
def run(
    c: Ints, nodes: Ints, parts: Ints, table: Ints, target: Ints, accepting: Ints, outgoing: Ints,
    found: Ints, work: Ints, seen: Ints, labels: Ints, axis: Ints, time: Ints, stream: Ints, events: Ints,
    keys: Ints, cursors: Ints, ends: Ints, start: int,
) -> int:  # fmt: skip
    """Takes the events of a batch, from where the last call stopped.

    ``labels`` are the GPMs that an event is relevant for, as bits. The rows of ``events`` and ``keys`` are
    of one GPM after the other: those from its place in ``cursors``, which this moves on, to ``ends``.
    """
    event = index(c[EVENT])
    keyed = c[N_KEYS] > 0
    while event < len(labels):
        wanted = labels[event]
        if wanted:
            if not keyed:
                c[KEYS_FOUND] = 1
            elif c[KEY_NUMBER] == 0:
                c[KEYS_FOUND] = gather(c, seen, events, keys, cursors, ends, event, wanted)
                if c[KEYS_FOUND] < 0:
                    c[WANTS] = MORE_KEYS
                    c[EVENT] = event
                    return WIDER
            while c[KEY_NUMBER] < c[KEYS_FOUND]:
                where = 0
                if keyed:
                    where = partition(c, parts, table, seen, c[KEY_NUMBER])
                    wanted = seen[c[KEY_NUMBER], c[N_KEYS]]
                status = PARTITIONS_FULL
                if where >= 0:
                    status = _step(
                        c, nodes, parts, target, accepting, outgoing, found, work, where, wanted,
                        start + event, axis[event], time[event], stream[event],
                    )  # fmt: skip
                if status != DONE:
                    c[EVENT] = event
                    return status
                c[KEY_NUMBER] += 1
            c[KEY_NUMBER] = 0
        event = index(event + 1)
    c[EVENT] = event
    return DONE
