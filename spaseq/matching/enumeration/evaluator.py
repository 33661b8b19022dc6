"""The enumerating evaluator: batches of solutions in, matches out, as lazily as they are asked for.

CORE (Bucchi, Grez, Quintana, Riveros, Vansummeren): the work for an event does not depend on the window or on
how many partial matches there are, and the matches that end with an event are enumerated with a delay that
depends on their own size alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby, pairwise
from operator import itemgetter
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spaseq.automaton.compile import compile_pattern
from spaseq.automaton.pattern import SequencePattern
from spaseq.events import EventBatch
from spaseq.gpm.spectra.solutions import NO_SOLUTIONS, Solutions
from spaseq.language.syntax import Consume, Emit
from spaseq.matching.columns.chunk import Chunk
from spaseq.matching.columns.evaluator import Immediate
from spaseq.matching.columns.found import Block, blocks
from spaseq.matching.columns.history import Past
from spaseq.matching.columns.plain import Columns, Site, Sites, mixed
from spaseq.matching.context import Context
from spaseq.matching.enumeration.automaton import Automaton
from spaseq.matching.enumeration.compiled import _kernel_counter as counter
from spaseq.matching.enumeration.compiled import _kernel_layout as lay
from spaseq.matching.enumeration.compiled import _kernel_root as root
from spaseq.matching.enumeration.compiled._kernel import label_events, run
from spaseq.matching.enumeration.fits import keys
from spaseq.matching.enumeration.memory import Memory, Walk
from spaseq.matching.enumeration.replay import Choices, Replay
from spaseq.matching.enumeration.sites import sites
from spaseq.matching.host import Key, emitted, kept, select
from spaseq.matching.model import Bounds, Found
from spaseq.matching.runs.program import Program
from spaseq.terms.dictionary import Dictionary

Ints = npt.NDArray[np.int64]


class Enumeration(Immediate):
    """The matches of one query over all its partitions, those with the same last event in any order.

    What ``process`` finds are roots, from which matches are enumerated when they are taken: then, or after
    any number of further batches. Nodes and events are kept as long as a root needs them.
    """

    def __init__(
        self, pattern: SequencePattern, dictionary: Dictionary, context: Context, bounds: Bounds
    ) -> None:
        query = pattern.query
        self._gpms = tuple(pattern.gpms)
        self._keys = keys(pattern)
        self._partition = len(query.partition)
        self._emit = emitted(pattern)
        self._bounds = bounds
        self._budget = context.budget
        self._order = context.order
        self._single = len(set(pattern.streams)) == 1
        self._past = Past(self._gpms, self._keys[: self._partition], context.budget)
        program = Program(compile_pattern(pattern))
        automaton = Automaton(program, self._gpms)
        self._sites = sites(pattern, program)
        self._replay = Replay(automaton, context, self._past, self._keys, self._partition)
        self._memory = Memory(automaton, len(self._gpms), len(self._keys), bounds.reach, context.budget)
        self._memory.counters[counter.SINGLE] = self._single
        self._memory.counters[counter.CONSUME] = query.consume is Consume.ANY
        self._walk = Walk()
        dictionary.hold(self)

    @property
    def memory(self) -> Memory:
        """All partial matches."""
        return self._memory

    def live_ids(self) -> Iterable[Ints]:
        """The ids of events that runs may hold; asked when all others are about to be forgotten."""
        tables = (table for chunk in self._past for table in chunk.solutions)
        return [column for table in tables for column in table.columns.values()]

    def process(self, batch: EventBatch, start: int, solutions: Mapping[str, Solutions]) -> Iterator[Block]:
        """See ``ByColumns.process``: the work of the events is done by the call, that of matches later."""
        self.take(batch, start, solutions)
        return self.unread()

    def unread(self) -> Iterator[Block]:
        """The matches that nobody has taken; further ones that are found meanwhile, too."""
        if self._emit is Emit.ALL:
            while (found := self._walk.next(self._memory)) is not None:
                # All before the first is given: what they are made of may be gone after further events.
                yield from list(self._blocks(*found))
            return
        for (_, key), same in groupby(self._listed(), key=itemgetter(0)):
            listed = (choices for _, choices in same)
            # Of one stream, events are in the order of their positions: those that go need not be made.
            wanted = self._kept(listed) if self._single else listed
            made = (self._replay.match(choices, key) for choices in wanted)
            matches = (match for match in made if match is not None)
            chosen = matches if self._single else self._chosen(matches)
            yield from blocks((key[: self._partition], match) for match in chosen)

    @property
    def waiting(self) -> int:
        """Of how many events the matches are not all taken, at least."""
        return self._memory.unread

    def drop(self) -> None:
        """Forgets the matches that nobody has taken."""
        self._memory.forget_found()
        self._walk = Walk()

    def arrays(
        self, batch: EventBatch, start: int, solutions: Mapping[str, Solutions]
    ) -> Iterator[tuple[Ints, Ints, Ints]]:
        """The same as ``process``, as arrays: the positions of events, their labels, and where each match
        begins among them and the last ends.

        A label is a GPM's place in the query. EMIT is left to the caller.
        """
        self.take(batch, start, solutions)
        while (found := self._walk.next(self._memory)) is not None:
            yield found[:3]

    def update(self, batch: EventBatch, start: int, solutions: Mapping[str, Solutions]) -> int:
        """Takes events and enumerates nothing; how many sets of matches they complete."""
        self.take(batch, start, solutions)
        count = self._memory.unread
        self._memory.forget_found()
        return count

    # --- events in ----------------------------------------------------------------------------

    def take(self, batch: EventBatch, start: int, solutions: Mapping[str, Solutions]) -> None:
        """Takes a batch; what it completes is found then, and enumerated later."""
        if not len(batch):
            return
        m, c = self._memory, self._memory.counters
        m.forget_read()
        columns = self._columns(batch, start, solutions)
        c[counter.EVENT] = c[counter.KEY_NUMBER] = 0
        while True:
            known = m.automaton
            status = run(
                c, m.nodes, m.parts, m.table, known.target, known.accepting, known.outgoing, m.found,
                m.work, m.seen, *columns, start,
            )  # fmt: skip
            if status == lay.DONE:
                return
            if status == lay.ASK:
                known.find(int(c[counter.STATE_ASKED]), int(c[counter.LABEL_ASKED]))
                c[counter.KNOWN] = known.unknown == 0
            elif status == lay.WIDER:
                m.widen()
            elif status == lay.PARTITIONS_FULL:
                m.make_partitions(int(columns.axis[c[counter.EVENT]] - c[counter.LIMIT]))
            elif status == lay.NODES_FULL:
                m.more_nodes()
            else:
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
        oldest = int(axis[0]) - self._bounds.reach
        m = self._memory
        if m.unread:
            oldest = min(oldest, int(m.found[m.counters[counter.READ], root.LEAST]))
        self._past.add(chunk, oldest)
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

    def _blocks(self, positions: Ints, labels: Ints, offsets: Ints, roots: Ints) -> Iterator[Block]:
        """What a walk brought."""
        keys = self._memory.found[roots, root.KEYS : root.KEYS + len(self._keys)]
        partitions = keys[:, : self._partition]
        stretch, places = self._past.stretch(positions)
        block = Columns(
            self._sites or Sites([Site(g, gpm) for g, gpm in enumerate(self._gpms)], self._gpms),
            stretch, partitions, offsets, places, labels,
        )  # fmt: skip
        odd = np.full(len(block), self._sites is None)
        several = [g for g in range(len(self._gpms)) if stretch.most(g) > 1]
        if several and self._sites is not None:
            single = np.ones(len(labels), dtype=np.bool_)
            for g in several:
                events = np.flatnonzero(labels == g)
                single[events] = stretch.counts(g)[places[events]] == 1
            odd = ~np.logical_and.reduceat(single, offsets[:-1])

        def matches(begin: int, end: int) -> Iterator[tuple[Key, Found]]:
            for i in range(begin, end):
                part = slice(int(offsets[i]), int(offsets[i + 1]))
                names = [self._gpms[label] for label in labels[part].tolist()]
                choices = list(zip(positions[part].tolist(), names, strict=True))
                match = self._replay.match(choices, tuple(keys[i].tolist())) if odd[i] else block[i]
                if match is not None:
                    yield tuple(partitions[i].tolist()), match

        yield from mixed(block, odd, matches)

    def _listed(self) -> Iterator[tuple[tuple[int, Key], Choices]]:
        """The matches, each with the position of its last event and its keys."""
        while (block := self._walk.next(self._memory)) is not None:
            positions, labels, offsets, roots = block
            rows = self._memory.found[roots, root.POSITION : root.KEYS + len(self._keys)].tolist()
            names = map(self._gpms.__getitem__, labels.tolist())
            choices = list(zip(positions.tolist(), names, strict=True))
            for (begin, end), (last, *key) in zip(pairwise(offsets.tolist()), rows, strict=True):
                yield (last, tuple(key)), choices[begin:end]

    def _kept(self, same: Iterable[Choices]) -> list[Choices]:
        """EMIT, of the matches that end with one event of the only stream."""
        best: list[Choices] = []
        events: list[frozenset[int]] = []
        for count, choices in enumerate(same, 1):
            best.append(choices)
            events.append(frozenset(position for position, _ in choices))
            if self._emit is Emit.MAX:
                self._budget.partial(count)  # all are kept until the last is known
            elif count > 1:
                numbers = kept(self._emit, events)
                best, events = [best[i] for i in numbers], [events[i] for i in numbers]
        return [best[i] for i in kept(self._emit, events)]

    def _chosen(self, found: Iterable[Found]) -> Iterable[Found]:
        """EMIT, one match after the other where that is possible."""
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
