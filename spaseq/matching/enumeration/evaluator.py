"""The enumerating evaluator: batches of solutions in, matches out, as lazily as they are asked for.

CORE (Bucchi, Grez, Quintana, Riveros, Vansummeren): the work for an event does not depend on the window or on
how many partial matches there are, and the matches that end with an event are enumerated with a delay that
depends on their own size alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spaseq.automaton.compile import compile_pattern
from spaseq.automaton.pattern import SequencePattern
from spaseq.events import EventBatch
from spaseq.gpm.solutions import NO_SOLUTIONS, Solutions
from spaseq.language.syntax import Consume, Emit
from spaseq.matching.by_columns import Immediate
from spaseq.matching.context import Context
from spaseq.matching.enumeration import _kernel_layout as lay
from spaseq.matching.enumeration._kernel import label_events, run
from spaseq.matching.enumeration.automaton import Automaton
from spaseq.matching.enumeration.fits import keys
from spaseq.matching.enumeration.memory import Memory, Walk
from spaseq.matching.enumeration.replay import Choices, Replay
from spaseq.matching.host import Key, select
from spaseq.matching.model import Bounds, Found
from spaseq.matching.past import Chunk, Past
from spaseq.matching.runs.program import Program
from spaseq.terms import Dictionary

Ints = npt.NDArray[np.int64]


class Enumeration(Immediate):
    """The matches of one query over all its partitions, those with the same last event in any order.

    ``process`` does the work of a batch's events as its matches are taken; it must be exhausted before the
    next batch, unless no further one comes.
    """

    def __init__(
        self, pattern: SequencePattern, dictionary: Dictionary, context: Context, bounds: Bounds
    ) -> None:
        query = pattern.query
        self._gpms = tuple(pattern.gpms)
        self._keys = keys(pattern)
        self._partition = len(query.partition)
        self._emit = query.emit
        self._bounds = bounds
        self._budget = context.budget
        self._order = context.order
        self._single = len(set(pattern.streams)) == 1
        self._past = Past(self._gpms, self._keys[: self._partition], context.budget)
        automaton = Automaton(Program(compile_pattern(pattern)), self._gpms)
        self._replay = Replay(automaton, context, self._past, self._keys, self._partition)
        self._memory = Memory(automaton, len(self._gpms), len(self._keys), bounds.reach, context.budget)
        self._memory.counters[lay.SINGLE] = self._single
        self._memory.counters[lay.CONSUME] = query.consume is Consume.ANY
        dictionary.hold(self)

    @property
    def memory(self) -> Memory:
        """All partial matches."""
        return self._memory

    def live_ids(self) -> Iterable[Ints]:
        """The ids of events that runs may hold; asked when all others are about to be forgotten."""
        tables = (table for chunk in self._past for table in chunk.solutions)
        return [column for table in tables for column in table.columns.values()]

    def process(
        self, batch: EventBatch, start: int, solutions: Mapping[str, Solutions]
    ) -> Iterator[tuple[Key, Found]]:
        """See ``ByColumns.process``."""
        found = self._found(batch, start, solutions)
        for (_, where), same in groupby(found, key=itemgetter(0)):
            key = self._key(where)
            matches = (self._replay.match(choices, key) for _, choices in same)
            for match in self._chosen(match for match in matches if match is not None):
                yield key[: self._partition], match

    def arrays(
        self, batch: EventBatch, start: int, solutions: Mapping[str, Solutions]
    ) -> Iterator[tuple[Ints, Ints]]:
        """The same as ``process``, as arrays: event positions and labels of shape ``(pairs, 2)``, and where
        each match ends among them. A label is a GPM's place in the query. EMIT is left to the caller.

        The arrays are overwritten when the next ones are taken.
        """
        for _ in self._roots(batch, start, solutions):
            walk = Walk()
            while (block := walk.next(self._memory)) is not None:
                yield block[0], block[1]

    def update(self, batch: EventBatch, start: int, solutions: Mapping[str, Solutions]) -> int:
        """Takes events and enumerates nothing; how many sets of matches they complete."""
        return sum(self._roots(batch, start, solutions))

    # --- events in ----------------------------------------------------------------------------

    def _roots(self, batch: EventBatch, start: int, solutions: Mapping[str, Solutions]) -> Iterator[int]:
        """Takes a batch; stops whenever what was found is to be enumerated, and says how much there is."""
        if not len(batch):
            return
        m, c, columns = self._memory, self._memory.counters, self._columns(batch, start, solutions)
        c[lay.EVENT] = c[lay.KEY_NUMBER] = 0
        while True:
            known = m.automaton
            status = run(
                c, m.nodes, m.parts, m.table, known.target, known.accepting, known.outgoing, m.found,
                m.work, m.seen, *columns, start,
            )  # fmt: skip
            waiting = int(c[lay.FOUND_COUNT])
            if status == lay.ASK:
                known.find(int(c[lay.STATE_ASKED]), int(c[lay.LABEL_ASKED]))
                c[lay.KNOWN] = known.unknown == 0
                continue
            if status == lay.WIDER:
                m.widen()
                continue
            if waiting:
                yield waiting
                c[lay.FOUND_COUNT] = 0
            if status == lay.DONE:
                return
            if status == lay.PARTITIONS_FULL:
                m.make_partitions(int(columns.axis[c[lay.EVENT]] - c[lay.LIMIT]))
            elif not waiting and status == lay.NODES_FULL:
                m.more_nodes()
            elif not waiting:
                m.more_found()

    def _columns(self, batch: EventBatch, start: int, solutions: Mapping[str, Solutions]) -> _Columns:
        tables = tuple(solutions.get(name, NO_SOLUTIONS) for name in self._gpms)
        sizes = np.cumsum([0, *map(len, tables)])
        labels = np.zeros(len(batch), dtype=np.int64)
        events = np.concatenate([table.events for table in tables])
        if not label_events(labels, events, sizes):
            tables = tuple(table.by_time() for table in tables)
            events = np.concatenate([table.events for table in tables])
        axis = self._bounds.steps(batch, start)
        chunk = Chunk(start, batch, tables, int(axis[-1]))
        self._past.add(chunk, int(axis[0]) - self._bounds.reach)
        values = [
            np.stack([table.column(name) for name in self._keys], axis=1) for table in tables if self._keys
        ]
        flat = np.concatenate(values).ravel() if values else np.zeros(0, dtype=np.int64)
        return _Columns(
            labels,
            np.ascontiguousarray(axis),
            batch.time,
            batch.stream,
            events,
            flat,
            cursors=sizes[:-1].copy(),
            ends=sizes[1:].copy(),
        )

    # --- matches out --------------------------------------------------------------------------

    def _found(
        self, batch: EventBatch, start: int, solutions: Mapping[str, Solutions]
    ) -> Iterator[tuple[tuple[int, int], Choices]]:
        """The matches of a batch, each with its last event and partition."""
        for _ in self._roots(batch, start, solutions):
            walk = Walk()
            while (block := walk.next(self._memory)) is not None:
                pairs, ends, roots = (part.tolist() for part in block)
                begin = 0
                for end, root in zip(ends, roots, strict=True):
                    _, _, where, event = self._memory.found[root].tolist()
                    yield (event, where), [(at, self._gpms[label]) for at, label in pairs[begin:end]]
                    begin = end

    def _key(self, where: int) -> Key:
        return tuple(self._memory.parts[where, : len(self._keys)].tolist())

    def _chosen(self, found: Iterable[Found]) -> Iterable[Found]:
        """EMIT, one match after the other where that is possible."""
        if self._emit is Emit.ALL:
            return found
        if self._emit is Emit.MAX:
            return select(self._emit, list(self._counted(found)), self._order)
        best: list[Found] = []
        for match in found:
            best = select(self._emit, [*best, match], self._order)
        return best

    def _counted(self, found: Iterable[Found]) -> Iterator[Found]:
        """The same, as long as they are not too many to be kept."""
        for count, match in enumerate(found, 1):
            self._budget.partial(count)
            yield match


class _Columns(NamedTuple):
    """A batch as the kernel reads it."""

    labels: Ints
    axis: Ints
    time: Ints
    stream: Ints
    events: Ints
    keys: Ints
    cursors: Ints
    ends: Ints
