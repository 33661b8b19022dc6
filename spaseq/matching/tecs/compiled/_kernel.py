"""Events of a batch → roots of their matches: CORE's update, at constant cost per event."""

from __future__ import annotations

from typing import Final, NamedTuple

from spaseq._fields import reads, writes
from spaseq._jit import inlined, kernel, part
from spaseq._kernel_events import reach_before
from spaseq.matching.filters import batch as heads
from spaseq.matching.tecs.compiled import _kernel_active as active
from spaseq.matching.tecs.compiled import _kernel_keys as keys_of
from spaseq.matching.tecs.compiled import _kernel_node as node
from spaseq.matching.tecs.compiled import _kernel_partition as partition
from spaseq.matching.tecs.compiled._kernel_layout import (
    ASK,
    DONE,
    FOUND_FULL,
    MORE_ACTIVE,
    MORE_KEYS,
    MORE_LIST,
    NODES_FULL,
    PARTITIONS_FULL,
    UNRANKED,
    WIDER,
    Ints,
    TecsMachine,
    index,
    labelled,
    lowest,
)
from spaseq.matching.tecs.records import counter, root

# A single event for ``_kernel.run``: a batch of one event, with the solutions of each GPM.


@kernel
def spread(
    batch: Ints, n_keys: int, apart: int, label: Ints, keys: Ints, ranks: Ints, cursors: Ints, ends: Ints
) -> int:  # fmt: skip
    """Write a single event as a batch: ``label``, the places of each GPM's solutions, and their keys. Return
    the number of solutions.

    ``batch``: see ``columns.alone._kernel_alone``; its columns are the keys of the first GPM, then those of
    the next. ``ranks`` order the solutions by their first key, which suffices if the solutions differ only in
    the first ``apart`` keys. Otherwise the result is negative. Solutions for which ``ranks`` has no room are
    only counted.
    """
    share, end, count = heads.shares(batch, 0), heads.shares(batch, 1), 0
    label[0] = 0
    others = False
    for g in range(len(cursors)):
        cursors[g] = count
        if share < end and heads.gpm(batch, share) == g:
            label[0] |= 1 << g
            for row in range(heads.first(batch, share), heads.end(batch, share)):
                if count < len(ranks):
                    for i in range(n_keys):
                        value = batch[batch[heads.HEAD + g * n_keys + i] + row]
                        keys[count * n_keys + i] = value
                        others |= i >= apart and value != keys[i]
                    if n_keys:
                        ranks[count] = keys[count * n_keys]
                count += 1
            share += heads.SHARE
        ends[g] = count
    return -count if others else count


# Events of a batch → roots of their matches: CORE's update, at constant cost for any window and number of
# runs.

# An active state before the event: its number, a node for its runs, the latest start of its runs, and where
# the partition remembers to which active state a transition from this one led.
_state, _set_state = reads(0), writes(0)
_runs, _set_runs = reads(1), writes(1)
_latest, _set_latest = reads(2), writes(2)
_last, _set_last = reads(3), writes(3)
_SIZE: Final = 4


class _Event(NamedTuple):
    """An event in one partition, and the least top in its window.

    ``pending``: the stream for which runs that end with it are pending; -1 for none.
    """

    position: int
    axis: int
    time: int
    stream: int
    least: int
    pending: int


@inlined
def _fire(m: TecsMachine, block: Ints, run: int, labels: int, e: _Event) -> None:
    """Let the runs of an active state, at ``run`` in ``work``, take the event as each of ``labels``."""
    state = index(_state(m.work, run))
    before, top, last = _runs(m.work, run), _latest(m.work, run), _last(m.work, run)
    labels &= m.outgoing[state]
    while labels:
        label = lowest(labels)
        labels &= labels - 1
        reached = index(m.target[label, state])
        taken = node.make(m.nodes, m.counters, label, before, e.position, top)
        # The root is written in any case, as there is room, and counted only if the state accepts.
        i = index(m.counters[counter.FOUND_COUNT])
        root.set_node(m.found, i, taken)
        root.set_least(m.found, i, e.least)
        root.set_position(m.found, i, e.position)
        root.set_state(m.found, i, reached)
        root.set_axis(m.found, i, e.axis)
        for key in range(m.counters[counter.N_KEYS]):
            m.found[i, root.KEYS + key] = block[key]
        m.counters[counter.FOUND_COUNT] = i + m.accepting[reached]
        if m.outgoing[reached]:
            at = partition.step_to(m.counters, m.outgoing, block, index(last), reached, e.pending)
            active.add(m.nodes, m.counters, block, at, taken, top, e.least)


@part
def _steps(
    c: Ints, target: Ints, outgoing: Ints, block: Ints, work: Ints, waiting: int, labels: int
) -> int:  # fmt: skip
    """Return the number of transitions from the waiting states; -1 if one of them is unknown."""
    count = 0
    for j in range(-1, waiting):
        state = 0 if j < 0 else active.state(block, partition.entry(c, work[j]))
        rest = labels & outgoing[state]
        while rest:
            label = lowest(rest)
            rest &= rest - 1
            count += 1
            if target[label, state] < 0:
                c[counter.STATE_ASKED] = state
                c[counter.LABEL_ASKED] = label
                return -1
    return count


@inlined
def _room(c: Ints, nodes: Ints, active: int, steps: int, found: Ints, least: int) -> int:
    """Return DONE if there is room for all changes of an event; else which space is too small."""
    if active + steps > c[counter.MOST_ACTIVE]:
        c[counter.WANTS] = MORE_ACTIVE
        return WIDER
    # When time advances, several pending lists are merged into one, which grows by one node for each.
    if c[counter.LONGEST] + steps + (0 if c[counter.SINGLE] else active) > c[counter.MOST_LIST]:
        c[counter.WANTS] = MORE_LIST
        return WIDER
    room = 1 + (active + steps) * (c[counter.MOST_LIST] + 4)
    if c[counter.NEXT_NODE] - c[counter.FIRST_NODE] + room > c[counter.MASK]:
        if c[counter.READ] < c[counter.FOUND_COUNT]:
            # Unread roots need the runs of older windows.
            least = min(least, root.least(found, c[counter.READ]))
        node.free(nodes, c, least)
        if c[counter.NEXT_NODE] - c[counter.FIRST_NODE] + room > c[counter.MASK]:
            return NODES_FULL
    if c[counter.FOUND_COUNT] + steps > len(found):
        return FOUND_FULL
    return DONE


@inlined
def _step(m: TecsMachine, where: int, labels: int, e: _Event) -> int:
    """Process one event in one partition; it is relevant for the GPMs of ``labels``."""
    c, nodes, work, block = m.counters, m.nodes, m.work, m.parts[where]
    if e.pending >= 0 and block[partition.ACTIVE] and block[partition.LAST_TIME] != e.time:
        status = _room(c, nodes, block[partition.ACTIVE], 0, m.found, e.least)
        if status != DONE:
            return status
        partition.end_pending(nodes, c, m.outgoing, block, work, e.least)
        block[partition.LAST_TIME] = e.time
    # The states that wait for the event, and the number of their transitions.
    count = block[partition.ACTIVE]
    waiting = partition.waiting(c, block, labels, work)
    first = labels & m.outgoing[0]
    steps = waiting + int(first != 0)
    if not c[counter.KNOWN] or labels & (labels - 1):
        steps = _steps(c, m.target, m.outgoing, block, work, waiting, labels)
        if steps < 0:
            return ASK
    status = _room(c, nodes, count, steps, m.found, e.least)
    if status != DONE:
        return status
    node.mark(nodes, c, e.axis)
    before = c[counter.FOUND_COUNT]
    # Collect all runs before the event: the states, each with a node for its runs and the top of this node.
    end = waiting
    for j in range(waiting):
        at = partition.entry(c, work[j])
        free = active.pending(block, at) < 0 or active.pending(block, at) == e.stream
        if free and active.trim(block, at, e.least):
            _set_state(work, end, active.state(block, at))
            _set_runs(work, end, active.merge(nodes, c, block, at))
            _set_latest(work, end, active.latest(block, at))
            _set_last(work, end, at + active.NEXT)
            end += _SIZE
    if first:
        _set_state(work, end, 0)
        _set_runs(work, end, 0)
        _set_latest(work, end, e.axis)
        _set_last(work, end, partition.START)
        end += _SIZE
    for at in range(waiting, end, _SIZE):
        _fire(m, block, at, labels, e)
    if c[counter.CONSUME] and c[counter.FOUND_COUNT] > before:
        partition.empty(c, block)
    block[partition.LAST] = e.axis
    block[partition.LAST_TIME] = e.time
    return DONE


@kernel
def label_events(labels: Ints, events: Ints, sizes: Ints, several: Ints) -> bool:
    """Write the GPMs that events are relevant for, as bits; return whether the rows of each GPM are in order.

    GPM i has the rows from ``sizes[i]`` to ``sizes[i + 1]``; ``several[i]`` counts the rows that follow
    another row of the same event.
    """
    ordered = True
    for label in range(len(sizes) - 1):
        last = -1
        for row in range(sizes[label], sizes[label + 1]):
            event = events[index(row)]
            labels[index(event)] |= 1 << label
            ordered = ordered and event >= last
            several[label] += event == last
            last = event
    return ordered


@kernel
def run(
    c: Ints, nodes: Ints, parts: Ints, table: Ints, found: Ints, seen: Ints, automaton: Ints, columns: Ints
) -> int:
    """Process the events of a batch, from where the last call stopped.

    The last row of ``parts`` is scratch space. ``automaton`` has a row for each label, with the targets of
    states. A row of flags of accepting states follows, and a row with the labels of each state, as bits.
    ``columns``: see ``labelled``. ``ranks`` may be missing until the call stops because it needs them
    (``UNRANKED``).
    """
    labels, work = c[counter.LABELS], parts[len(parts) - 1]
    m = TecsMachine(
        c, nodes, parts, table, found, work, seen, automaton, automaton[labels], automaton[labels + 1]
    )
    b = labelled(columns)
    event = index(c[counter.EVENT])
    keyed = c[counter.N_KEYS] > 0
    while event < b.size:
        wanted = b.labels[event]
        if wanted:
            if not keyed:
                c[counter.KEYS_FOUND] = 1
            elif c[counter.KEY_NUMBER] == 0:
                c[counter.KEYS_FOUND] = keys_of.gather(c, m.seen, b, event, wanted)
                if c[counter.KEYS_FOUND] < 0:
                    c[counter.WANTS] = MORE_KEYS
                    c[counter.EVENT] = event
                    return WIDER if c[counter.KEYS_FOUND] == -1 else UNRANKED
            least = reach_before(b.axis[event], c[counter.LIMIT])
            pending = -1 if c[counter.SINGLE] else b.stream[event]
            e = _Event(b.start + event, b.axis[event], b.time[event], b.stream[event], least, pending)
            while c[counter.KEY_NUMBER] < c[counter.KEYS_FOUND]:
                where = 0
                if keyed:
                    where = keys_of.find(c, m.parts, m.table, m.seen, c[counter.KEY_NUMBER])
                    wanted = m.seen[c[counter.KEY_NUMBER], c[counter.N_KEYS]]
                status = PARTITIONS_FULL if where < 0 else _step(m, where, wanted, e)
                if status != DONE:
                    c[counter.EVENT] = event
                    return status
                c[counter.KEY_NUMBER] += 1
            c[counter.KEY_NUMBER] = 0
        event = index(event + 1)
    c[counter.EVENT] = event
    return DONE
