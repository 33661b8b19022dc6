"""Find the partitions of an event by the keys of its solutions; move partitions to new memory."""

from __future__ import annotations

from typing import Any, Final

from spaseq._jit import inlined, kernel
from spaseq.matching.tecs.compiled import _kernel_active as active
from spaseq.matching.tecs.compiled import _kernel_partition as partition
from spaseq.matching.tecs.compiled._kernel_layout import Ints, LabelledEvents, lowest
from spaseq.matching.tecs.records import counter

_MULTIPLIER: Final = 0x2545F4914F6CDD1D


@inlined
def _mix(code: int, value: int) -> int:
    code = (code ^ value) * _MULTIPLIER
    return code ^ (code >> 29)


@inlined
def find(c: Ints, parts: Ints, table: Ints, seen: Ints, number: int) -> int:
    """Return the partition of key ``number`` in ``seen``; make it if there is none. Return -1 if there is no
    room.
    """
    keys = c[counter.N_KEYS]
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
    where = c[counter.PARTITIONS]
    if where == len(parts) - 1:  # the last row is scratch space
        return -1
    c[counter.PARTITIONS] = where + 1
    table[at] = where + 1
    for i in range(keys):
        parts[where, i] = seen[number, i]
    return int(where)


@inlined
def gather(c: Ints, seen: Ints, batch: LabelledEvents, event: int, labels: int) -> int:
    """Write the distinct keys of an event, each with its labels and its rank; return their number.

    The keys are in the order of the rows' ``ranks``. Returns -2 if ranks are needed but missing, and -1 if
    there is no room.
    """
    events, keys, ranks, ends = batch.events, batch.keys, batch.ranks, batch.ends
    count = 0
    width = c[counter.N_KEYS]
    while labels:
        bit = labels & -labels
        label = lowest(labels)
        labels ^= bit
        row = batch.cursors[label]
        while row < ends[label] and events[row] < event:
            row += 1
        batch.cursors[label] = row
        while row < ends[label] and events[row] == event:
            at = row * width
            rank = ranks[row] if batch.is_ranked else 0
            row += 1
            bound = True
            for i in range(width):
                bound = bound and keys[at + i] != 0
            if not bound:
                continue
            # Different keys have different ranks; without ranks there must be only one key.
            same, high = 0, count
            if count and seen[count - 1, width + 1] < rank:
                same = count
            while same < high:
                middle = (same + high) >> 1
                if seen[middle, width + 1] < rank:
                    same = middle + 1
                else:
                    high = middle
            is_new = same == count or seen[same, width + 1] != rank
            if not batch.is_ranked:
                for i in range(width if count else 0):
                    is_new = is_new or seen[0, i] != keys[at + i]
            if is_new:
                if count == len(seen):
                    return -1
                if count and not batch.is_ranked:
                    return -2
                for j in range(count, same, -1):
                    for i in range(width + 2):
                        seen[j, i] = seen[j - 1, i]
                for i in range(width):
                    seen[same, i] = keys[at + i]
                seen[same, width] = 0
                seen[same, width + 1] = rank
                count += 1
            seen[same, width] |= bit
    return count


@kernel
def move_partitions(c: Ints, old: Ints, parts: Ints, table: Ints, words: int, size: int, least: int) -> None:
    """Copy the partitions with an event since ``least`` into new, empty memory."""
    count = 0
    mask = len(table) - 1
    entries = partition.WAITING + c[counter.LABELS] * words
    for where in range(c[counter.PARTITIONS]):
        if old[where, partition.LAST] < least and c[counter.N_KEYS] > 0:
            continue
        code = 0
        for i in range(c[counter.N_KEYS]):
            code = _mix(code, old[where, i])
        for i in range(partition.WAITING):
            parts[count, i] = old[where, i]
        parts[count, partition.START] = 0
        for label in range(c[counter.LABELS]):
            for i in range(c[counter.WORDS]):
                bits = old[where, partition.WAITING + label * c[counter.WORDS] + i]
                parts[count, partition.WAITING + label * words + i] = bits
        for i in range(old[where, partition.ACTIVE]):
            source = partition.entry(c, i)
            goal = entries + i * size
            for j in range(active.size(old[where], source)):
                parts[count, goal + j] = old[where, source + j]
            active.set_next(parts[count], goal, 0)
        if c[counter.N_KEYS] > 0:
            at = (code ^ (code >> 32)) & mask
            while table[at]:
                at = (at + 1) & mask
            table[at] = count + 1
        count += 1
    c[counter.PARTITIONS] = count
    c[counter.WORDS] = words
    c[counter.ENTRIES] = entries
    c[counter.ENTRY_SIZE] = size


# The solutions of an event in one partition: found by bisection, as they are sorted by keys.


@kernel
def narrow(column: Ints, wanted: Any, begins: Ints, ends: Ints) -> None:
    """Reduce ranges of rows, from ``begins`` to ``ends``, to the rows with a value in a column.

    Range i is sorted by the column, and ``wanted[i]`` is its value.
    """
    for i in range(len(begins)):
        value = wanted[i]
        low, high = begins[i], ends[i]
        while low < high:
            middle = (low + high) >> 1
            if column[middle] < value:
                low = middle + 1
            else:
                high = middle
        begin = low
        high = ends[i]
        while low < high:
            middle = (low + high) >> 1
            if column[middle] <= value:
                low = middle + 1
            else:
                high = middle
        begins[i], ends[i] = begin, low
