"""The priority simulation over columns: batches of solutions in, preferred matches out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spaseq.automaton.pattern import SequencePattern
from spaseq.events import EventBatch
from spaseq.gpm.spectra.solutions import Solutions
from spaseq.limits import Budget
from spaseq.matching.columns.batches import Columns
from spaseq.matching.columns.blocks.found import Block
from spaseq.matching.conditions import _kernel_values as v
from spaseq.matching.conditions.lookups import Lookups
from spaseq.matching.context import Context
from spaseq.matching.host import Key
from spaseq.matching.kernel.compiled import _kernel_layout as status
from spaseq.matching.kernel.matches import Matches
from spaseq.matching.kernel.ranking import ranked
from spaseq.matching.kernel.records import header, partitions, questions
from spaseq.matching.kernel.records.nodes import DEPTH
from spaseq.matching.kernel.records.tables import accepts
from spaseq.matching.kernel.records.waits import NODE
from spaseq.matching.kernel.replay import Path, Replay
from spaseq.matching.model import Bounds
from spaseq.matching.ordered.compiled import _kernel as k
from spaseq.matching.ordered.compiled import _kernel_layout as lay
from spaseq.matching.ordered.memory import Families
from spaseq.matching.ordered.ranked import Ranked, Ready
from spaseq.matching.ordered.records import families, results
from spaseq.matching.ordered.tables import Ordering, order_tables
from spaseq.terms.dictionary import Dictionary

Ints = npt.NDArray[np.int64]

#: Later than any event, and far from overflow.
NEVER: Final = 1 << 62


class Preferred(NamedTuple):
    """Preferred matches in the order in which they are delivered, a row each.

    ``members``: whose each is, as bits; ``turns`` the events of the batch that deliver them. ``keys`` are the
    partition's values; ``ways`` how they ended; ``depths`` how many events they have. ``steps`` are those
    events, one match after the other: position, candidate, and row.
    """

    members: Ints
    turns: Ints
    keys: Ints
    ways: Ints
    depths: Ints
    steps: Ints


class OrderedKernel:
    """The preferred matches of one query over all its partitions, in the order of ``Matcher``."""

    def __init__(
        self,
        pattern: SequencePattern,
        dictionary: Dictionary,
        context: Context,
        bounds: Bounds,
        ordering: Ordering | None = None,
        budget: Budget | None = None,
    ) -> None:
        """``ordering``: its tables, if they are made; ``budget``: what it may take, if not the context's."""
        budget = budget or context.budget
        self._ordering = ordering = ordering or order_tables(pattern, dictionary.pin, bounds)
        self._options = ordering.options
        places = ordering.compiled.analysis.places
        self._targets = [
            places.index(one.way.target) if one.way else -1 for one in ordering.compiled.candidates
        ]
        self._compiled = c = ordering.compiled
        self._tables = c.tables
        self._tables[v.LIMIT] = bounds.reach
        for i, limit in enumerate(c.limits):
            self._tables[self._tables[v.LIMITS] + i] = bounds.lasts(limit)
        self._bounds = bounds
        self._dictionary = dictionary
        self._keys = len(pattern.query.partition)
        self._columns = Columns(dictionary, pattern, c.gpms, c.columns, c.constants, c.derived, budget)
        self._lookups = Lookups(c.lookups, dictionary)
        self._replay = Replay(lambda: c, context, self._columns.history)
        self._matches = Matches(pattern, c, self._columns.history, self._replay, context.order, decided=True)
        several = len(set(pattern.streams)) > 1
        self._ranked = Ranked(c.gpms, context.rank) if several else None
        self.families = Families(ordering, budget)

    def process(self, batch: EventBatch, start: int, solutions: Mapping[str, Solutions]) -> Iterator[Block]:
        """See ``ByColumns.process``."""
        if not len(batch):
            return
        if self._ranked is None:
            yield from self._process(batch, start, solutions)
        else:
            yield from self._in_order(self._ranked.push(batch, solutions))

    def _in_order(self, ready: Ready | None) -> Iterator[Block]:
        """Takes events of several streams whose turn has come."""
        if ready is not None:
            yield from self._process(ready.batch, ready.start, ready.solutions)

    def _process(self, batch: EventBatch, start: int, solutions: Mapping[str, Solutions]) -> Iterator[Block]:
        columns = self._take(batch, start, solutions)
        self.families.runs.begin()
        while True:
            every, numbers = self.families, self._columns.numbers
            m = every.runs
            ended = k.run(
                self._tables, self._options, m.ints, m.floats, every.rows, every.seen, every.newest,
                columns, numbers.numbers, numbers.codes,
            )  # fmt: skip
            if ended == status.UNRANKED:
                columns = ranked(self._tables, m.ints, columns, self._dictionary)
                continue
            yield from self._found()
            if ended == status.DONE:
                return
            if ended == status.ASK:
                if not self.families.runs.look_up(self._lookups, self._columns.numbers):
                    self._answer(start)
            elif ended == status.ROOM:
                every.make_room()
            else:
                m.grow_scratch(ended == status.MORE_KEYS)

    @property
    def waits(self) -> bool:
        """Whether ``advance`` may give matches."""
        return True

    def advance(self, time: int) -> Iterator[Block]:
        """Time has come to ``time``: yields the matches whose windows have thereby ended."""
        if self._ranked is not None:
            yield from self._in_order(self._ranked.advance(time))
        if not self._bounds.counted:
            yield from self._finish(time if self._bounds.sliding else self._bounds.index(time), time)

    def close(self) -> Iterator[Block]:
        """No event will come any more: every window ends."""
        if self._ranked is not None:
            yield from self._in_order(self._ranked.advance(NEVER))
        yield from self._finish(NEVER, NEVER)

    def settled(self, time: int, members: int = -1) -> int:
        """The time up to which all matches were delivered, when the query's time has come to ``time``.

        A match that is not decided yet ends no earlier than it began. ``members``: whose matches, as bits.
        """
        held = time if self._ranked is None else self._ranked.oldest(time)
        return min(time, held, self.families.oldest(time, families.TIME, members))

    def _finish(self, at: int, time: int) -> Iterator[Block]:
        """The matches that are due before a place on the window's axis, and a time."""
        every = self.families
        k.finish(self._tables, self._options, every.runs.ints, every.rows, every.newest, at, time)
        yield from self._found()

    # --- matches out --------------------------------------------------------------------------

    def _found(self) -> Iterator[Block]:
        if self.families.found:
            found = self._unrolled()
            yield from self._matches.made(found.keys, found.ways, found.depths, found.steps)

    def _unrolled(self) -> Preferred:
        """What was found since the last call, which is forgotten."""
        every = self.families
        m = every.runs.ints
        rows = np.zeros((every.found, results.SIZE), dtype=np.int64)
        k.found(m, every.rows, rows.ravel())
        order = (results.FIRST, results.LAST, results.RANK, results.TURN)
        rows = rows[np.lexsort(tuple(rows[:, column] for column in order))]
        nodes = rows[:, results.NODE].copy()
        depths = m[nodes + DEPTH]
        steps = np.zeros((int(depths.sum()), 3), dtype=np.int64)
        k.unroll(m, nodes, steps.ravel())
        keys = m[rows[:, results.PARTITION, None] + (partitions.KEY + np.arange(self._keys))]
        ways = self._tables[rows[:, results.ACCEPT] + accepts.NUMBER]
        k.forget_found(m, every.rows)
        return Preferred(rows[:, results.MEMBER], rows[:, results.TURN], keys, ways, depths, steps)

    # --- columns in ---------------------------------------------------------------------------

    def _take(self, batch: EventBatch, start: int, solutions: Mapping[str, Solutions]) -> Ints:
        """A batch as the kernel reads it."""
        axis = self._bounds.places(batch, start)
        first = int(axis[0])
        # A match that is due with this batch may have events that no window holds any more.
        oldest = min(first - int(self._tables[v.LIMIT]), self.families.oldest(first, families.FIRST))
        chunk = self._columns.add(batch, start, solutions, axis, oldest)
        if self._columns.renew():
            # Runs that are over may hold ids that mean something else now, but are shown no event more.
            self.families.runs.forget_answers()
        return self._columns.packed(chunk, axis)

    # --- questions ----------------------------------------------------------------------------

    def _answer(self, start: int) -> None:
        """Decides exactly what the tables could not."""
        runs = self.families.runs
        m, key = runs.ints, runs.key(self._keys)
        event = start + int(m[header.EVENT])
        for i in range(int(m[header.ANSWERED]), int(m[header.ASKED])):
            at = int(m[header.QUESTIONS]) + i * questions.SIZE
            wait, asked = m[at : at + 2].tolist()
            path = runs.path(int(m[wait + NODE]))
            if asked >= 0:
                m[m[header.ANSWERS] + i] = self._is_relevant(path, [(event, asked)], key)
                continue
            number, choice = divmod(-1 - asked, lay.MOST_OPTIONS)
            option = self._ordering.choices[self._targets[number]][choice]
            holds = self._replay.may_go_on if option.goes_on else self._replay.may_end
            m[m[header.ANSWERS] + i] = holds([*path, (event, number)], option.ends, key)
        m[header.ANSWERED] = m[header.ASKED]

    def _is_relevant(self, path: Path, step: Path, key: Key) -> bool:
        """Whether an event is relevant for a run."""
        return self._replay.is_relevant(path, step, key)
