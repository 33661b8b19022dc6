"""The readable side of the kernel's memory: making it, and what it holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spaseq.limits import Budget
from spaseq.matching.kernel import _kernel_layout as lay
from spaseq.matching.kernel import _kernel_memory as mem
from spaseq.matching.kernel import _kernel_values as v
from spaseq.matching.kernel.tables import Compiled

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_DECISIONS: Final = 1 << 10
_KEYS: Final = 8


class Room(NamedTuple):
    """How much a memory has space for."""

    waits: int
    nodes: int
    found: int
    entries: int


@dataclass(slots=True)
class Memory:
    """All runs of a query: integers (see ``_kernel_memory``), and the floats of sums after those of a stack.

    Scratch space stands at the end of the integers, so that it can grow.
    """

    ints: Ints
    floats: Floats
    budget: Budget

    def begin(self) -> None:
        """A new batch begins."""
        self.ints[[mem.EVENT, mem.EVENT_KEY, mem.ANSWERED]] = 0

    def grow_scratch(self, keys: bool) -> None:
        """More space for an event's keys, or else for its decisions."""
        m = self.ints
        size = int(m[mem.TABLE] + m[mem.TABLE_SIZE])
        most_keys, decisions = int(m[mem.MOST_KEYS]), int(m[mem.MOST_DECISIONS])
        if keys:
            most_keys *= 2
        else:
            decisions = 2 * int(max(decisions, m[mem.DECIDED], m[mem.ASKED]))
        answers = m[m[mem.ANSWERS] : m[mem.ANSWERS] + m[mem.ANSWERED]].copy()
        end = _place_scratch(m, size, most_keys, decisions)
        self.budget.takes("runs", 8 * (end + len(self.floats)))
        self.ints = np.concatenate([m[:size], np.zeros(end - size, dtype=np.int64)])
        self.ints[self.ints[mem.ANSWERS] : self.ints[mem.ANSWERS] + len(answers)] = answers


def memory(compiled: Compiled, room: Room, budget: Budget, like: Memory | None = None) -> Memory:
    """An empty memory with so much space; the progress of ``like`` is taken over.

    Raises ``LimitError``, and makes nothing, if that is beyond the budget.
    """
    tables = compiled.tables
    width = mem.KEY + int(tables[v.N_KEYS])
    negates = tables[v.CHAINS] < tables[v.CHAINS_END]
    waits, nodes, found, entries = room
    # All that wait may be due at once.
    parked = waits if tables[v.TRAILS] else 0
    found = max(found, parked)
    entries = entries if negates else 0
    partitions = waits + entries if width > mem.KEY else 1
    buckets = _power(2 * (waits + entries))
    sizes = {
        mem.WAITS: (waits + 2) * compiled.width,
        mem.NODES: nodes * mem.NODE_SIZE,
        mem.BUCKETS: buckets * mem.BUCKET_SIZE,
        mem.PARTITIONS: partitions * width,
        mem.FOUND: found * lay.FOUND_SIZE,
        mem.GATES_SEEN: compiled.gates,
        mem.KINDS: 2 * v.DEEPEST,
        mem.TRIED: 3 * lay.PART_LIMIT,
        mem.PARKED: parked,
        mem.ENTRIES: entries * compiled.entry,
        mem.OFFSETS: len(compiled.offsets),
        mem.TABLE: _power(2 * partitions),
    }
    most_keys, decisions = _KEYS, _DECISIONS
    if like is not None:
        most_keys, decisions = int(like.ints[mem.MOST_KEYS]), int(like.ints[mem.MOST_DECISIONS])
    start = mem.HEADER + sum(sizes.values())
    size = start + sum(_scratch_sizes(most_keys, decisions, width).values())
    budget.takes("runs", 8 * (size + compiled.sums * (waits + 2)))
    # All at once: what is not used is not even touched.
    m = np.zeros(size, dtype=np.int64)
    at = mem.HEADER
    for section, size in sizes.items():
        m[section] = at
        at += size
    m[mem.WIDTH] = compiled.width
    m[mem.TRIAL] = m[mem.WAITS] + compiled.width
    m[mem.NEXT_WAIT] = m[mem.TRIAL] + compiled.width
    m[mem.MOST_WAITS] = waits
    m[mem.NEXT_NODE] = m[mem.NODES]
    m[mem.MOST_NODES] = nodes
    m[mem.NEXT_ENTRY] = m[mem.ENTRIES]
    m[mem.MOST_ENTRIES] = entries
    m[mem.ENTRY_WIDTH] = compiled.entry
    m[m[mem.OFFSETS] : m[mem.OFFSETS] + len(compiled.offsets)] = compiled.offsets
    m[m[mem.WAITS] + mem.STREAM] = lay.NOWHERE
    if tables[v.N_GAPS]:
        m[m[mem.WAITS] + tables[v.GAPS] + lay.LED] = lay.NEVER
    m[mem.BUCKET_COUNT] = buckets
    m[mem.LIVE_PARTITIONS] = 0 if width > mem.KEY else 1
    m[mem.MOST_PARTITIONS] = partitions
    m[mem.PARTITION_WIDTH] = width
    m[m[mem.PARTITIONS] + mem.DROPPED] = -1
    m[mem.TABLE_SIZE] = sizes[mem.TABLE]
    m[mem.MOST_FOUND] = found
    first = 1 + 2 * v.DEEPEST
    column = m[m[mem.WAITS] : m[mem.NODES]].reshape(-1, compiled.width)[:, mem.SUMS]
    column[:] = first + compiled.sums * np.arange(len(column))
    f = np.zeros(first + compiled.sums * len(column))
    f[0] = compiled.sums
    f[first + 2 : first + compiled.sums : 3] = v.CALC
    if like is not None:
        for place in (mem.EVENT, mem.EVENT_KEY, mem.SERIAL, mem.ENTERED):
            m[place] = like.ints[place]
    _place_scratch(m, start, most_keys, decisions)
    return Memory(m, f, budget)


def _scratch_sizes(keys: int, decisions: int, partition_width: int) -> dict[int, int]:
    return {
        mem.KEYS: keys * max(1, partition_width - mem.KEY),
        mem.DECISIONS: decisions * lay.DECISION_SIZE,
        mem.QUESTIONS: decisions * lay.QUESTION_SIZE,
        mem.ANSWERS: decisions,
        mem.GATHERED: (decisions + 1) * lay.GATHERED_SIZE,
    }


def _place_scratch(m: Ints, start: int, keys: int, decisions: int) -> int:
    """Says in the header that scratch space begins at ``start``; returns where it ends."""
    m[mem.MOST_KEYS] = keys
    m[mem.MOST_DECISIONS] = decisions
    at = start
    for section, size in _scratch_sizes(keys, decisions, int(m[mem.PARTITION_WIDTH])).items():
        m[section] = at
        at += size
    return at


def _power(size: int) -> int:
    """The least power of two that is at least ``size``."""
    return 1 << max(size - 1, 1).bit_length()
