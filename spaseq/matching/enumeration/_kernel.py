"""CORE's update on arrays: constant work an event, whatever the window and the number of runs."""

from __future__ import annotations

from typing import Final

import numpy as np

from spaseq._jit import inlined, kernel, part
from spaseq.matching.enumeration._kernel_layout import (
    ACTIVE,
    ASK,
    BOTTOM,
    CONSUME,
    DONE,
    ENTRIES,
    EVENT,
    FIRST_NODE,
    FOUND_COUNT,
    FOUND_FULL,
    KEY_NUMBER,
    KEYS_FOUND,
    LABEL_ASKED,
    LAST,
    LAST_TIME,
    LENGTH,
    LIMIT,
    LIST,
    MADE,
    MASK,
    MORE_ACTIVE,
    MORE_KEYS,
    MORE_LIST,
    MOST_ACTIVE,
    MOST_LIST,
    N_KEYS,
    NEXT_NODE,
    NODES_FULL,
    PARTITIONS,
    PARTITIONS_FULL,
    PENDING,
    SINGLE,
    STATE,
    STATE_ASKED,
    WANTS,
    WIDER,
    Ints,
)
from spaseq.matching.enumeration._kernel_nodes import insert, merge, node, top_of, trim

_MULTIPLIER: Final = 0x2545F4914F6CDD1D

# The number of a lone bit, by a de Bruijn sequence.
_DE_BRUIJN: Final = 0x03F79D71B4CB0A89
_BITS: Final = np.zeros(64, dtype=np.int64)
for _i in range(64):
    _BITS[((_DE_BRUIJN << _i) % 2**64) >> 58] = _i


@inlined
def _lowest(labels: int) -> int:
    """The number of the lowest label."""
    return int(_BITS[(((labels & -labels) * _DE_BRUIJN) >> 58) & 63])


# --- active states --------------------------------------------------------------------------------


@inlined
def _entry(c: Ints, i: int) -> int:
    return int(ENTRIES + i * (LIST + c[MOST_LIST]))


@part
def _find(c: Ints, block: Ints, state: int, pending: int) -> int:
    """The place of an active state in a block, new if need be."""
    for i in range(block[ACTIVE]):
        at = _entry(c, i)
        if block[at + STATE] == state and block[at + PENDING] == pending:
            return at
    at = _entry(c, block[ACTIVE])
    block[ACTIVE] += 1
    block[at + STATE] = state
    block[at + PENDING] = pending
    block[at + LENGTH] = 0
    return at


@part
def _add(
    nodes: Ints, c: Ints, block: Ints, state: int, pending: int, taken: int, axis: int, least: int
) -> None:
    """A state is reached by the runs of an output node."""
    at = _find(c, block, state, pending)
    if trim(nodes, c, block, at, least):
        if top_of(nodes, c, block[at + LIST]) > top_of(nodes, c, taken):
            insert(nodes, c, block, at, taken, axis)
            return
        # The list must begin with the latest start, and with a node that is no union.
        block[at + LIST + 1] = merge(nodes, c, block, at, axis)
        block[at + LENGTH] = 2
    else:
        block[at + LENGTH] = 1
    block[at + LIST] = taken


@part
def _settle(nodes: Ints, c: Ints, block: Ints, work: Ints, least: int, axis: int) -> None:
    """Time has moved on: nothing pends any more."""
    work[ACTIVE] = 0
    for i in range(block[ACTIVE]):
        old = _entry(c, i)
        if not trim(nodes, c, block, old, least):
            continue
        at = _find(c, work, block[old + STATE], -1)
        other = 0
        if work[at + LENGTH]:
            if top_of(nodes, c, work[at + LIST]) >= top_of(nodes, c, block[old + LIST]):
                insert(nodes, c, work, at, merge(nodes, c, block, old, axis), axis)
                continue
            other = merge(nodes, c, work, at, axis)
        for j in range(LENGTH, LIST + block[old + LENGTH]):
            work[at + j] = block[old + j]
        if other:
            insert(nodes, c, work, at, other, axis)
    for i in range(ACTIVE, _entry(c, work[ACTIVE])):
        block[i] = work[i]


@part
def _fire(
    nodes: Ints, c: Ints, target: Ints, accepting: Ints, outgoing: Ints, found: Ints, block: Ints,
    state: int, merged: int, labels: int, position: int, axis: int, least: int, pending: int, where: int,
    event: int,
) -> None:  # fmt: skip
    """The runs of a node, which are in ``state``, take the event as each of ``labels``."""
    while labels:
        label = _lowest(labels)
        labels &= labels - 1
        reached = target[state, label]
        taken = node(nodes, c, label, position, merged, 0, top_of(nodes, c, merged), axis)
        if accepting[reached]:
            i = c[FOUND_COUNT]
            c[FOUND_COUNT] = i + 1
            found[i, 0] = taken
            found[i, 1] = least
            found[i, 2] = where
            found[i, 3] = event
        if outgoing[reached]:
            _add(nodes, c, block, reached, pending, taken, axis, least)


@part
def _is_known(c: Ints, target: Ints, state: int, labels: int) -> int:
    """How many steps a state takes; -1 if one of them is not known yet."""
    count = 0
    while labels:
        label = _lowest(labels)
        labels &= labels - 1
        count += 1
        if target[state, label] < 0:
            c[STATE_ASKED] = state
            c[LABEL_ASKED] = label
            return -1
    return count


@part
def _room(
    c: Ints, nodes: Ints, block: Ints, target: Ints, outgoing: Ints, found: Ints, labels: int, least: int
) -> int:  # fmt: skip
    """Whether there is room for all that an event may change; else what there is too little of."""
    steps = 0
    most = 0
    active = block[ACTIVE]
    if labels & outgoing[0]:
        steps = _is_known(c, target, 0, labels & outgoing[0])
        if steps < 0:
            return ASK
    at = ENTRIES
    for _ in range(active):
        wanted = labels & outgoing[block[at + STATE]]
        if wanted:
            count = _is_known(c, target, block[at + STATE], wanted)
            if count < 0:
                return ASK
            steps += count
        most = max(most, block[at + LENGTH])
        at += LIST + c[MOST_LIST]
    if active + steps > c[MOST_ACTIVE]:
        c[WANTS] = MORE_ACTIVE
        return WIDER
    # Settling puts into one list what pends in several, one more for each.
    if most + steps + (0 if c[SINGLE] else active) + 1 > c[MOST_LIST]:
        c[WANTS] = MORE_LIST
        return WIDER
    room = 1 + (active + steps) * (c[MOST_LIST] + 5)
    if c[NEXT_NODE] - c[FIRST_NODE] + room > c[MASK]:
        if c[FOUND_COUNT] == 0:
            # Nobody waits for the runs of older windows.
            while c[FIRST_NODE] < c[NEXT_NODE] and nodes[c[FIRST_NODE] & c[MASK], MADE] < least:
                c[FIRST_NODE] += 1
        if c[NEXT_NODE] - c[FIRST_NODE] + room > c[MASK]:
            return NODES_FULL
    if c[FOUND_COUNT] + steps > len(found):
        return FOUND_FULL
    return DONE


@part
def _step(
    c: Ints, nodes: Ints, parts: Ints, target: Ints, accepting: Ints, outgoing: Ints, found: Ints, work: Ints,
    where: int, labels: int, event: int, position: int, axis: int, time: int, stream: int,
) -> int:  # fmt: skip
    """One event, in one partition, where it is relevant for the GPMs of ``labels``."""
    block = parts[where]
    least = axis - c[LIMIT]
    status = _room(c, nodes, block, target, outgoing, found, labels, least)
    if status != DONE:
        return status
    pending = -1
    if not c[SINGLE]:
        pending = stream
        if block[ACTIVE] and block[LAST_TIME] != time:
            _settle(nodes, c, block, work, least, axis)
    before = c[FOUND_COUNT]
    # All runs as they are before the event: states, and nodes for their runs.
    end = ENTRIES
    at = ENTRIES
    for _ in range(block[ACTIVE]):
        state = block[at + STATE]
        free = block[at + PENDING] < 0 or block[at + PENDING] == stream
        if labels & outgoing[state] and free and trim(nodes, c, block, at, least):
            work[end] = state
            work[end + 1] = merge(nodes, c, block, at, axis)
            end += 2
        at += LIST + c[MOST_LIST]
    if labels & outgoing[0]:
        work[end] = 0
        work[end + 1] = node(nodes, c, BOTTOM, position, 0, 0, axis, axis)
        end += 2
    for i in range(ENTRIES, end, 2):
        _fire(
            nodes, c, target, accepting, outgoing, found, block, work[i], work[i + 1],
            labels & outgoing[work[i]], position, axis, least, pending, where, event,
        )  # fmt: skip
    if c[CONSUME] and c[FOUND_COUNT] > before:
        block[ACTIVE] = 0
    block[LAST] = axis
    block[LAST_TIME] = time
    return DONE


# --- partitions -----------------------------------------------------------------------------------


@inlined
def _mix(code: int, value: int) -> int:
    code = (code ^ value) * _MULTIPLIER
    return code ^ (code >> 29)


@part
def _partition(c: Ints, parts: Ints, table: Ints, seen: Ints, number: int) -> int:
    """The partition of the key that stands in ``seen``, new if need be; -1 if there is no room."""
    keys = c[N_KEYS]
    code = 0
    for i in range(keys):
        code = _mix(code, seen[number, i])
    mask = len(table) - 1
    at = (code ^ (code >> 32)) & mask
    while table[at]:
        where = table[at] - 1
        same = True
        for i in range(keys):
            same = same and parts[where, i] == seen[number, i]
        if same:
            return int(where)
        at = (at + 1) & mask
    where = c[PARTITIONS]
    if where == len(parts):
        return -1
    c[PARTITIONS] = where + 1
    table[at] = where + 1
    for i in range(keys):
        parts[where, i] = seen[number, i]
    parts[where, ACTIVE] = 0
    return int(where)


@part
def _gather(
    c: Ints, seen: Ints, events: Ints, keys: Ints, cursors: Ints, ends: Ints, event: int, labels: int
) -> int:  # fmt: skip
    """The distinct keys of an event's solutions, each with the labels that have it; how many."""
    count = 0
    width = c[N_KEYS]
    while labels:
        bit = labels & -labels
        label = _lowest(labels)
        labels ^= bit
        row = cursors[label]
        while row < ends[label] and events[row] < event:
            row += 1
        cursors[label] = row
        while row < ends[label] and events[row] == event:
            at = row * width
            row += 1
            bound = True
            for i in range(width):
                bound = bound and keys[at + i] != 0
            if not bound:
                continue
            same = 0
            while same < count:
                equal = True
                for i in range(width):
                    equal = equal and seen[same, i] == keys[at + i]
                if equal:
                    break
                same += 1
            if same == len(seen):
                return -1
            if same == count:
                for i in range(width):
                    seen[count, i] = keys[at + i]
                seen[count, width] = 0
                count += 1
            seen[same, width] |= bit
    return count


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
    event = c[EVENT]
    while event < len(labels):
        wanted = labels[event]
        if wanted:
            if c[N_KEYS] == 0:
                status = _step(
                    c, nodes, parts, target, accepting, outgoing, found, work,
                    0, wanted, event, start + event, axis[event], time[event], stream[event],
                )  # fmt: skip
                if status != DONE:
                    c[EVENT] = event
                    return status
            else:
                if c[KEY_NUMBER] == 0:
                    c[KEYS_FOUND] = _gather(c, seen, events, keys, cursors, ends, event, wanted)
                    if c[KEYS_FOUND] < 0:
                        c[WANTS] = MORE_KEYS
                        c[EVENT] = event
                        return WIDER
                while c[KEY_NUMBER] < c[KEYS_FOUND]:
                    number = c[KEY_NUMBER]
                    where = _partition(c, parts, table, seen, number)
                    status = PARTITIONS_FULL
                    if where >= 0:
                        status = _step(
                            c, nodes, parts, target, accepting, outgoing, found, work, where,
                            seen[number, c[N_KEYS]], event, start + event, axis[event], time[event],
                            stream[event],
                        )  # fmt: skip
                    if status != DONE:
                        c[EVENT] = event
                        return status
                    c[KEY_NUMBER] = number + 1
                c[KEY_NUMBER] = 0
        event += 1
    c[EVENT] = event
    return DONE


@kernel
def move_partitions(c: Ints, old: Ints, parts: Ints, table: Ints, most_list: int, least: int) -> None:
    """Copies the partitions that an event since ``least`` has touched into new, empty memory."""
    count = 0
    mask = len(table) - 1
    for where in range(c[PARTITIONS]):
        if old[where, LAST] < least and c[N_KEYS] > 0:
            continue
        code = 0
        for i in range(ENTRIES):
            parts[count, i] = old[where, i]
        for i in range(c[N_KEYS]):
            code = _mix(code, old[where, i])
        for i in range(old[where, ACTIVE]):
            source = _entry(c, i)
            goal = ENTRIES + i * (LIST + most_list)
            for j in range(LIST + old[where, source + LENGTH]):
                parts[count, goal + j] = old[where, source + j]
        if c[N_KEYS] > 0:
            at = (code ^ (code >> 32)) & mask
            while table[at]:
                at = (at + 1) & mask
            table[at] = count + 1
        count += 1
    c[PARTITIONS] = count
