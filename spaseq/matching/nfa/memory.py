"""The Python side of the kernel's memory: creating and reading it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spaseq._fields import address, place
from spaseq.limits import Budget
from spaseq.matching.columns.ranks import ranks
from spaseq.matching.filters import _kernel_machine as memo
from spaseq.matching.filters import _kernel_values as v
from spaseq.matching.filters import batch as heads
from spaseq.matching.filters.derived import Lookups
from spaseq.matching.filters.numbers import Numbers
from spaseq.matching.host import Key
from spaseq.matching.nfa.compiled import _kernel_layout as lay
from spaseq.matching.nfa.exact import Path
from spaseq.matching.nfa.records import (
    buckets,
    decisions,
    findings,
    header,
    nodes,
    partitions,
    parts,
    questions,
    waits,
)
from spaseq.matching.nfa.tables.analysis import NfaTables
from spaseq.terms.dictionary import Dictionary

# The order of the partition keys of a batch for the kernel, where an event has several.

Ints = npt.NDArray[np.int64]


def _begins(batch: Ints, gpms: int, size: int) -> Ints:
    """Return where the rows of each GPM begin in each event, and where the last event's rows end; shape
    ``(gpms, size + 1)``.
    """
    starts = batch[batch[heads.SHARES] :][: size + 1]
    shares = batch[starts[0] : starts[-1]].reshape(-1, heads.SHARE)
    events = np.repeat(np.arange(size), np.diff(starts) // heads.SHARE)
    counts = np.zeros((gpms, size + 1), dtype=np.int64)
    counts[shares[:, 0], events + 1] = shares[:, 2] - shares[:, 1]
    begins = np.cumsum(counts, axis=1)
    # A single event's rows follow those of earlier single events.
    firsts = np.zeros(gpms, dtype=np.int64)
    firsts[shares[::-1, 0]] = shares[::-1, 1]
    return np.asarray(begins + firsts[:, None])


def ranked(tables: Ints, ints: Ints, batch: Ints, dictionary: Dictionary) -> Ints:
    """Return the ranks of a batch's partition keys, and write to ``ints`` where the kernel finds them.

    The caller must keep the result until the batch is done, since the kernel reads it.
    """
    size, gpms, width = int(batch[heads.SIZE]), int(tables[v.N_GPMS]), int(tables[v.N_KEYS])
    begins = _begins(batch, gpms, size)
    columns = tables[tables[v.PARTITION_COLUMNS] :][: gpms * width].reshape(gpms, width)
    counts = np.diff(begins, axis=1)
    events = np.concatenate([np.repeat(np.arange(size), of_gpm) for of_gpm in counts])
    keys = np.zeros((len(events), width), dtype=np.int64)
    ends = np.cumsum(counts.sum(axis=1))
    firsts = ends - counts.sum(axis=1)
    for g, j in np.argwhere(columns >= 0).tolist():
        at = int(batch[batch[heads.COLUMNS] + columns[g, j]] + begins[g, 0])
        keys[firsts[g] : ends[g], j] = heads.values(batch, at, int(ends[g] - firsts[g]))
    of_rows = ranks(events, keys, dictionary, int(tables[v.APART]))
    order = np.concatenate([np.zeros(gpms, dtype=np.int64), of_rows])
    at = place(order, address(batch))
    order[:gpms] = at + gpms + firsts - begins[:, 0]
    ints[header.RANKS] = at
    return order


# The Python side of the kernel's memory: creating and reading it.

Floats = npt.NDArray[np.float64]

#: The initial room for an event's decisions, if the runs' memory is large enough.
_DECISIONS: Final = 1 << 10
_KEYS: Final = 8
_QUESTIONS: Final = 1 << 10
#: From this many integers on, memory mostly comes from the system as zeros, which need not be written, and
#: unused parts are not touched: touching all took as long as hundreds of events.
_LARGE: Final = 1 << 20
#: The most answers kept from batch to batch.
_ANSWERS: Final = 1 << 20


class Capacity(NamedTuple):
    """The room of a memory: how many records of each kind it can hold."""

    waits: int
    nodes: int
    found: int
    entries: int


@dataclass(slots=True)
class RunMemory:
    """All runs of a query: integers (see ``_kernel_memory``) and floats, which are those of a stack, then
    those of sums.

    Scratch space is at the end of the integers, so that it can grow.
    """

    ints: Ints
    floats: Floats
    budget: Budget
    answers: int = 0

    @property
    def scratch_bytes(self) -> int:
        """The bytes of scratch space, which a sweep keeps at the same size."""
        return 8 * (len(self.ints) - int(self.ints[header.TABLE] + self.ints[header.TABLE_SIZE]))

    def begin(self) -> None:
        """Begin a new batch."""
        m = self.ints.data  # writing a number this way takes a third of the time
        m[header.EVENT] = m[header.EVENT_KEY] = m[header.ANSWERED] = m[header.RANKS] = 0
        if self.answers > _ANSWERS:
            self.forget_answers()

    def grow_scratch(self, keys: bool) -> None:
        """Enlarge the room for an event's keys, or without ``keys``, the room for its decisions."""
        m = self.ints
        scratch = _scratch(m)
        if keys:
            scratch = scratch._replace(keys=2 * scratch.keys)
        else:
            most = 2 * int(max(scratch.decisions, m[header.DECIDED], m[header.ASKED]))
            scratch = scratch._replace(decisions=most)
        self._place(scratch)

    def twice(self, tables: Ints, live: int, remembered: int, decided: int) -> Capacity:
        """Return about twice the room that the live records of a memory and the decisions need."""
        m = self.ints
        waits = 2 * (live + decided * int(tables[v.MOST_GATES]) + 2)
        nodes = 2 * (int(m[header.LIVE_NODES]) + decided * max(1, int(tables[v.MOST_PARTS])))
        found = decided * int(tables[v.MOST_ACCEPTS])
        entries = 2 * (remembered + int(m[header.WANTED]))
        return Capacity(waits, nodes, found, entries)

    # --- contents ---

    @property
    def findings(self) -> Ints:
        """The runs that have ended as matches, a row each."""
        start, count = int(self.ints[header.FOUND]), int(self.ints[header.FOUND_COUNT])
        return self.ints[start : start + count * findings.SIZE].reshape(count, findings.SIZE)

    def path(self, node: int) -> Path:
        """Return the events of a run, first to last, by its newest node."""
        path = []
        while node:
            path.append((int(self.ints[node + nodes.POSITION]), int(self.ints[node + nodes.WAY])))
            node = int(self.ints[node + nodes.PREVIOUS])
        return path[::-1]

    def key(self, size: int) -> Key:
        """Return the current partition key of the current event, of ``size`` terms."""
        at = int(self.ints[header.KEYS]) + int(self.ints[header.EVENT_KEY]) * size
        return tuple(self.ints[at : at + size].tolist())

    # --- answers to questions about expressions: see ``_kernel_machine`` ---

    @property
    def questions(self) -> Ints:
        """The kernel's questions, a row each."""
        m = self.ints
        stack = m.item(header.KINDS)
        count = min(m.item(stack + v.WONDERS), m.item(stack + v.MOST_WONDERS))
        at = m.item(header.ASKING)
        return m[at : at + count * memo.MEMO_SIZE].reshape(count, memo.MEMO_SIZE)

    def look_up(self, lookups: Lookups, numbers: Numbers) -> bool:
        """Answer the kernel's questions about values of expressions; return whether there were any."""
        questions = self.questions
        if not len(questions):
            return False
        answered = lookups.answered(questions)
        numbers.cover(answered[:, memo.ANSWER])
        self.learn(answered)
        return True

    def learn(self, answered: Ints) -> None:
        """Enter questions with their answers."""
        if not len(answered):
            return
        self.answers += len(answered)
        m = self.ints
        stack = m.item(header.KINDS)
        if 2 * self.answers > m.item(stack + v.MEMO_MASK):
            self._place(_scratch(m)._replace(memo=_power(4 * self.answers)))
            m = self.ints
        memo.learn(m, m.item(header.LEARNT), m.item(stack + v.MEMO_MASK), answered.ravel())

    def forget_answers(self) -> None:
        """Forget all answers: their ids may have another meaning from now on."""
        at = int(self.ints[header.LEARNT])
        self.ints[at : at + _scratch(self.ints).memo * memo.MEMO_SIZE] = 0
        self.answers = 0

    def known(self) -> Ints:
        """Return all answers, with their questions."""
        at = int(self.ints[header.LEARNT])
        table = self.ints[at : at + _scratch(self.ints).memo * memo.MEMO_SIZE].reshape(-1, memo.MEMO_SIZE)
        found: Ints = table[table[:, memo.ANSWER] != 0]
        return found

    def _place(self, scratch: _Scratch) -> None:
        """Replace the scratch space, keeping its lasting contents."""
        m, known = self.ints, self.known()
        size = int(m[header.TABLE] + m[header.TABLE_SIZE])
        answers = m[m[header.ANSWERS] : m[header.ANSWERS] + m[header.ANSWERED]].copy()
        end = _place_scratch(m, size, scratch)
        self.budget.takes("runs", 8 * (end + len(self.floats)))
        self.ints = np.concatenate([m[:size], np.zeros(end - size, dtype=np.int64)])
        self.ints[self.ints[header.ANSWERS] : self.ints[header.ANSWERS] + len(answers)] = answers
        if len(known):
            memo.learn(self.ints, int(self.ints[header.LEARNT]), scratch.memo - 1, known.ravel())


class _Scratch(NamedTuple):
    """The room of scratch space: keys and decisions of an event, answers."""

    keys: int
    decisions: int
    memo: int


def fresh(size: int) -> tuple[Ints, bool]:
    """Return integers, and whether all of them are zeros."""
    is_large = size >= _LARGE
    return (np.zeros if is_large else np.empty)(size, dtype=np.int64), is_large


def memory(
    compiled: NfaTables,
    room: Capacity,
    budget: Budget,
    like: RunMemory | None = None,
    allocate: Callable[[int], tuple[Ints, bool]] = fresh,
) -> RunMemory:
    """Return an empty memory of this size; the progress of ``like`` is taken over.

    ``allocate``: see ``fresh``. Raises ``LimitError``, and makes nothing, if that exceeds the budget.
    """
    tables = compiled.tables
    width = partitions.KEY + int(tables[v.N_KEYS])
    sizes = _sections(compiled, room)
    scratch = _Scratch(_KEYS, min(_DECISIONS, room.waits), 2 if compiled.lookups else 0)
    if like is not None:
        scratch = _scratch(like.ints)
    start = header.SIZE + sum(sizes.values())
    size = start + sum(_scratch_sizes(scratch, width).values())
    budget.takes("runs", 8 * (size + compiled.sums * (room.waits + 2)))
    m, is_zeros = allocate(size)
    fields = _header(compiled, room, sizes)
    if not is_zeros:
        # Nodes and findings are written completely when they are made: their memory is not touched before.
        m[: fields[header.NODES]] = m[fields[header.BUCKETS] : fields[header.FOUND]] = 0
        m[fields[header.FOUND] + sizes[header.FOUND] :] = 0
    m[: header.SIZE] = fields
    m[m[header.OFFSETS] : m[header.OFFSETS] + len(compiled.offsets)] = compiled.offsets
    m[m[header.WAITS] + waits.STREAM] = lay.NOWHERE
    m[m[header.PARTITIONS] + partitions.DROPPED] = -1
    f = _floats(compiled, room, m)
    _place_scratch(m, start, scratch)
    made = RunMemory(m, f, budget)
    if like is not None:
        for place in (header.EVENT, header.EVENT_KEY, header.SERIAL, header.ENTERED, header.RANKS):
            m[place] = like.ints[place]
        made.learn(like.known())
    return made


def _header(compiled: NfaTables, room: Capacity, sizes: dict[int, int]) -> list[int]:
    """Return the header of an empty memory, up to scratch space."""
    width = partitions.KEY + int(compiled.tables[v.N_KEYS])
    fields, at = [0] * header.SIZE, header.SIZE
    for section, size in sizes.items():
        fields[section] = at
        at += size
    fields[header.WIDTH] = compiled.width
    fields[header.TRIAL] = fields[header.WAITS] + compiled.width
    fields[header.NEXT_WAIT] = fields[header.TRIAL] + compiled.width
    fields[header.MOST_WAITS] = room.waits
    fields[header.NEXT_NODE] = fields[header.NODES]
    fields[header.MOST_NODES] = room.nodes
    fields[header.NEXT_ENTRY] = fields[header.ENTRIES]
    fields[header.MOST_ENTRIES] = sizes[header.ENTRIES] // max(compiled.entry, 1)
    fields[header.ENTRY_WIDTH] = compiled.entry
    fields[header.BUCKET_COUNT] = sizes[header.BUCKETS] // buckets.SIZE
    fields[header.LIVE_PARTITIONS] = 0 if width > partitions.KEY else 1
    fields[header.MOST_PARTITIONS] = sizes[header.PARTITIONS] // width
    fields[header.PARTITION_WIDTH] = width
    fields[header.TABLE_SIZE] = sizes[header.TABLE]
    fields[header.MOST_FOUND] = sizes[header.FOUND] // findings.SIZE
    return fields


def _floats(compiled: NfaTables, room: Capacity, m: Ints) -> Floats:
    """Return the floats of an empty memory.

    The first waits get their floats here. A new wait gets its floats when it is made, so that unused memory
    is not touched.
    """
    first = 1 + 2 * v.DEEPEST
    m[m[header.WAITS] + waits.SUMS], m[m[header.TRIAL] + waits.SUMS] = first, first + compiled.sums
    m[header.NEXT_SUMS], m[header.SUMS_WIDTH] = first + 2 * compiled.sums, compiled.sums
    f = np.zeros(first + compiled.sums * (room.waits + 2))
    f[0] = compiled.sums
    f[first + 2 : first + compiled.sums : 3] = v.CALC
    return f


def runs_size(compiled: NfaTables, room: Capacity) -> int:
    """Return how many bytes a memory of this size takes, without scratch space."""
    integers = header.SIZE + sum(_sections(compiled, room).values())
    return 8 * (integers + compiled.sums * (room.waits + 2))


def _sections(compiled: NfaTables, room: Capacity) -> dict[int, int]:
    """Return how many integers each section has, in their order, up to scratch space."""
    tables = compiled.tables
    width = partitions.KEY + int(tables[v.N_KEYS])
    waits, most_nodes, found, entries = room
    # All waiting matches may be due at once.
    parked = waits if tables[v.TRAILS] else 0
    entries = entries if tables[v.CHAINS] < tables[v.CHAINS_END] else 0
    most_partitions = waits + entries if width > partitions.KEY else 1
    return {
        header.WAITS: (waits + 2) * compiled.width,
        header.NODES: most_nodes * nodes.SIZE,
        header.BUCKETS: _power(2 * (waits + entries)) * buckets.SIZE,
        header.PARTITIONS: most_partitions * width,
        header.FOUND: max(found, parked) * findings.SIZE,
        header.GATES_SEEN: compiled.gates,
        header.KINDS: v.STACK,
        header.TRIED: 3 * parts.LIMIT,
        header.PARKED: parked,
        header.ENTRIES: entries * compiled.entry,
        header.OFFSETS: len(compiled.offsets),
        header.TABLE: _power(2 * most_partitions),
    }


def _scratch(m: Ints) -> _Scratch:
    stack = int(m[header.KINDS])
    memo_size = int(m[stack + v.MEMO_MASK]) + 1 if m[stack + v.MOST_WONDERS] else 0
    return _Scratch(int(m[header.MOST_KEYS]), int(m[header.MOST_DECISIONS]), memo_size)


def _scratch_sizes(scratch: _Scratch, partition_width: int) -> dict[int, int]:
    keys, decided, places = scratch
    return {
        header.KEYS: keys * (1 + partition_width - partitions.KEY),  # ranks, too
        header.DECISIONS: decided * decisions.SIZE,
        header.QUESTIONS: decided * questions.SIZE,
        header.ANSWERS: decided,
        header.GATHERED: (decided + 1) * lay.GATHERED_SIZE,
        header.LEARNT: places * memo.MEMO_SIZE,
        header.ASKING: (_QUESTIONS + 1) * memo.MEMO_SIZE if places else 0,
    }


def _place_scratch(m: Ints, start: int, scratch: _Scratch) -> int:
    """Set the place of scratch space in the header; return its end."""
    m[header.MOST_KEYS] = scratch.keys
    m[header.MOST_DECISIONS] = scratch.decisions
    at = start
    for section, size in _scratch_sizes(scratch, int(m[header.PARTITION_WIDTH])).items():
        m[section] = at
        at += size
    stack = int(m[header.KINDS])
    m[stack + v.MEMO], m[stack + v.MEMO_MASK] = m[header.LEARNT], scratch.memo - 1
    m[stack + v.WONDERED], m[stack + v.WONDERS] = m[header.ASKING], 0
    m[stack + v.MOST_WONDERS] = _QUESTIONS if scratch.memo else 0
    return at


def _power(size: int) -> int:
    """Return the least power of two that is at least ``size``."""
    return 1 << max(size - 1, 1).bit_length()
