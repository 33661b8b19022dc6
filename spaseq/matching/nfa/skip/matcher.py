"""The priority simulation over columns: batches of solutions in, preferred matches out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spaseq.alone import Single, gathered
from spaseq.automaton.pattern import SequencePattern
from spaseq.events import EARLIEST, END, LATEST, Clock, EventBatch
from spaseq.limits import Budget
from spaseq.matching.columns.alone.singles import Counts
from spaseq.matching.columns.batches import BatchColumns
from spaseq.matching.columns.blocks.found import Block
from spaseq.matching.columns.matcher import PushedPattern, UnsolvedError
from spaseq.matching.context import Context
from spaseq.matching.filters import _kernel_values as v
from spaseq.matching.filters.derived import Lookups
from spaseq.matching.host import Key
from spaseq.matching.model import StreamWindow
from spaseq.matching.nfa.compiled import _kernel_layout as status
from spaseq.matching.nfa.exact import Path, RunReplay
from spaseq.matching.nfa.matches import RunMatches
from spaseq.matching.nfa.memory import Capacity, RunMemory, memory, ranked
from spaseq.matching.nfa.records import accepts, header, nodes, partitions, questions, waits
from spaseq.matching.nfa.skip.compiled import _kernel as k
from spaseq.matching.nfa.skip.ranked import RankedEvents, Ready
from spaseq.matching.nfa.skip.records import (
    LEVEL_SIZE,
    MOST_OPTIONS,
    SkipMachine,
    families,
    preferences,
    results,
    roster,
)
from spaseq.matching.nfa.skip.tables import Ordering, order_tables
from spaseq.patterns.spectra.solutions import Solutions
from spaseq.terms.dictionary import Dictionary

# The kernel's memory: that of the runs kernel, the families, and the runs that an event has made.

Ints = npt.NDArray[np.int64]

_START: Final = Capacity(1 << 12, 1 << 13, 1, 1)
_FAMILIES: Final = 1 << 11


class Families:
    """All runs of a query, grouped by their first event."""

    def __init__(self, ordering: Ordering, budget: Budget) -> None:
        self._budget = budget
        self._compiled = ordering.compiled
        self._options = options = ordering.options
        self._most = int(options[preferences.MOST])
        self.runs: RunMemory = memory(self._compiled, _START, budget)
        self.newest = self._nothing_new()
        self.rows: Ints = np.zeros(roster.SIZE + _FAMILIES * families.SIZE, dtype=np.int64)
        levels = options[preferences.LEVELS_END] - options[preferences.LEVELS]
        self.rows[roster.LEVELS] = levels // LEVEL_SIZE
        self.rows[roster.NEXT] = roster.SIZE
        self.rows[roster.END] = len(self.rows)
        self.rows[roster.TIME], self.rows[roster.DUE] = EARLIEST, LATEST
        self.seen = self._nothing_seen()
        self._machine: SkipMachine | None = None

    @property
    def machine(self) -> SkipMachine:
        """The arrays, in the form that the kernel takes."""
        machine, m = self._machine, self.runs.ints
        if machine is None or machine.m is not m:
            tables, pairs = self._compiled.tables, len(self.seen) // 2
            arrays = tables, m, self._options, self.rows, self.newest, self.seen
            self._machine = machine = SkipMachine(*arrays, pairs)
        return machine

    @property
    def found(self) -> int:
        """The number of matches that were found and not yet forgotten."""
        return int(self.rows[roster.COUNT])

    def oldest(self, otherwise: int, column: int, members: int = -1) -> int:
        """Return a column of the oldest family that one of these members needs; ``otherwise`` if there is
        none.
        """
        family = int(k.oldest(self.rows, members))
        return int(self.rows[family + column]) if family else otherwise

    def make_room(self) -> None:
        """Make room for families and runs, where it is missing; there must be no undelivered matches. Raises
        ``LimitError``.
        """
        a, m = self.rows, self.runs.ints
        if not a[roster.FREE] and a[roster.NEXT] >= a[roster.END]:
            self._budget.takes("families", 16 * len(a))
            self.rows = np.concatenate([a, np.zeros(len(a) - roster.SIZE, dtype=np.int64)])
            self.rows[roster.END] = len(self.rows)
            self._machine = None
        decided = int(m[header.DECIDED]) + 1
        self._budget.partial(int(m[header.LIVE_WAITS]) + decided)
        waits = 2 * (int(m[header.LIVE_WAITS]) + decided * (self._most + 1) + 2)
        nodes = 2 * (int(m[header.LIVE_NODES]) + decided)
        buckets = 2 * (int(m[header.LIVE_BUCKETS]) + decided * (self._most + 1) + 2)
        is_known = buckets <= m[header.BUCKET_COUNT] and m[header.LIVE_PARTITIONS] < m[header.MOST_PARTITIONS]
        if waits > m[header.MOST_WAITS] or nodes > m[header.MOST_NODES] or not is_known:
            self._move(Capacity(*map(max, Capacity(waits, nodes, 1, 1), _START)))

    def _move(self, room: Capacity) -> None:
        """Move the live runs to another memory."""
        old = self.runs
        self.runs = memory(self._compiled, room, self._budget, old)
        tables = self._compiled.tables
        newest, self.newest = self.newest, self._nothing_new()
        k.sweep(
            tables, old.ints, old.floats, self.rows, newest, self.runs.ints, self.runs.floats, self.newest
        )
        self.seen, self._machine = self._nothing_seen(), None

    def _nothing_new(self) -> Ints:
        """Return the state in which no partition has a newest event of any GPM."""
        apart = self._options[preferences.OWN] and self._compiled.tables[v.N_KEYS]
        most = int(self.runs.ints[header.MOST_PARTITIONS]) if apart else 0
        return np.zeros(most * len(self._compiled.gpms), dtype=np.int64)

    def _nothing_seen(self) -> Ints:
        waits = int(self.runs.ints[header.MOST_WAITS])
        return np.zeros(2 << (2 * waits).bit_length(), dtype=np.int64)


# The priority simulation over columns: batches of solutions in, preferred matches out.

#: Later than any event, without overflow.


class Preferred(NamedTuple):
    """Preferred matches in the order in which they are delivered, a row each.

    ``members``: the members of each match, as bits; ``turns``: the events of the batch that deliver the
    matches. ``keys`` are the partition's values, ``ways`` how the matches ended, ``depths`` how many events
    they have. ``steps`` are the events, one match after the other: position, candidate, and row.
    """

    members: Ints
    turns: Ints
    keys: Ints
    ways: Ints
    depths: Ints
    steps: Ints


class SkipMatcher:
    """The preferred matches of one query over all its partitions, in the order of ``Matcher``."""

    def __init__(
        self,
        pattern: SequencePattern,
        dictionary: Dictionary,
        context: Context,
        window: StreamWindow,
        ordering: Ordering | None = None,
        budget: Budget | None = None,
    ) -> None:
        """``ordering``: its tables, if they exist; ``budget``: what it may keep, if not the context's."""
        budget = budget or context.budget
        self._ordering = ordering = ordering or order_tables(pattern, dictionary.pin, window)
        self._options = ordering.options
        places = ordering.compiled.analysis.places
        self._targets = [
            places.index(one.way.target) if one.way else -1 for one in ordering.compiled.candidates
        ]
        self._compiled = c = ordering.compiled
        self._tables = c.tables
        self._tables[v.LIMIT], self._tables[v.APART] = window.reach, context.apart
        for i, limit in enumerate(c.limits):
            self._tables[self._tables[v.LIMITS] + i] = window.lasts(limit)
        self._window = window
        self._dictionary = dictionary
        self._clock = Clock.TICKS
        self._keys = len(pattern.query.partition)
        self._columns = BatchColumns(dictionary, pattern, c.gpms, c.columns, c.constants, c.derived, budget)
        self._lookups = Lookups(c.lookups, dictionary)
        self._replay = RunReplay(lambda: c, context, self._columns.history)
        self._matches = RunMatches(
            pattern, c, self._columns.history, self._replay, context.order, decided=True
        )
        several = len(set(pattern.streams)) > 1
        self._ranked = RankedEvents(c.gpms, context.rank, dictionary) if several else None
        # Matches of earlier events that were found when a single event came that must be taken as a batch.
        self._before: list[Block] = []
        self.families = Families(ordering, budget)
        # The order of the current batch's keys, if it was needed.
        self._ranks: Ints | None = None

    def process(self, batch: EventBatch, start: int, solutions: Mapping[str, Solutions]) -> Iterator[Block]:
        """See ``ByColumns.process``."""
        if not len(batch):
            return
        if self._ranked is None:
            yield from self._process(batch, start, solutions)
        else:
            before, self._before = self._before, []
            yield from before
            self._gather(self._ranked)
            yield from self._in_order(self._ranked.push(batch, solutions))

    def _in_order(self, ready: Ready | None) -> Iterator[Block]:
        """Process due events of several streams."""
        if ready is not None:
            yield from self._process(ready.batch, ready.start, ready.solutions)

    def _process(self, batch: EventBatch, start: int, solutions: Mapping[str, Solutions]) -> Iterator[Block]:
        columns = self._take(batch, start, solutions)
        self.families.runs.begin()
        yield from self._go_on(columns, start, self._run(columns))

    def _run(self, columns: Ints) -> int:
        """Process a batch as far as the kernel can."""
        every, ids = self.families, self._columns.numbers
        return k.run(every.machine, every.runs.floats, columns, ids.numbers, ids.codes)

    def _go_on(self, columns: Ints, start: int, ended: int) -> Iterator[Block]:
        """Provide what the kernel stopped for, until the batch is done."""
        while True:
            every = self.families
            if ended == status.UNRANKED:
                self._ranks = ranked(self._tables, every.runs.ints, columns, self._dictionary)
            else:
                if ended == status.DONE:
                    self._columns.done()
                yield from self._found()
                if ended == status.DONE:
                    return
                if ended == status.ASK:
                    if not every.runs.look_up(self._lookups, self._columns.numbers):
                        self._answer(start)
                elif ended == status.ROOM:
                    every.make_room()
                else:
                    every.runs.grow_scratch(ended == status.MORE_KEYS)
            ended = self._run(columns)

    # --- events that come alone -----------------------------------------------------------------

    @property
    def gpms(self) -> Sequence[str]:
        """See ``Quick.gpms``."""
        return self._compiled.gpms

    def expect(self, asked: Sequence[PushedPattern]) -> bool:
        """See ``Quick.expect``."""
        return self._columns.expect(asked)

    def counts(self) -> Counts | None:
        """See ``Quick.counts``."""
        if self._ranked is not None:
            self._gather(self._ranked)
        return self._columns.taking.counts()

    def take_single(self, event: Single, start: int) -> Iterator[Block] | None:
        """See ``Quick.take_single``; also advances time to the event."""
        if self._ranked is not None:
            return self._take_ranked(self._ranked, event)
        return self._complete(self._take_alone(event, start), start)

    def _complete(self, columns: Ints, start: int) -> Iterator[Block] | None:
        """Return the matches of a single event in the kernel's form."""
        ended = self._run_alone(columns)
        if ended == status.DONE and not self.families.found:
            return None
        return self._go_on(columns, start, ended)

    def _take_ranked(self, ranked: RankedEvents, event: Single) -> Iterator[Block] | None:
        """Process an event of one of several streams, or hold it as long as others may precede it."""
        taking, time, rank = self._columns.taking, event.at.time, ranked.rank(event.at.stream)
        if ranked.time == time:
            raise UnsolvedError  # to be ordered with the batch that is held
        found: list[Block] = []
        if rank > 0:
            solved = taking.solve(event)
            if solved is None:
                raise UnsolvedError
            found += self.advance(time)
            ranked.hold(rank, event, solved)
            return iter(found) if found else None
        found += self._released(ranked, time)
        axis = self._window.place(time, ranked.next)
        columns = taking.take(event, ranked.next, axis, self._oldest(axis))
        if columns is None:
            self._before = found
            raise UnsolvedError
        found += self._complete(columns, ranked.step()) or ()
        return iter(found) if found else None

    def _released(self, ranked: RankedEvents, time: int) -> Iterator[Block]:
        """Process the held events that are before a time; yield their matches."""
        yield from self._in_order(ranked.advance(time))
        for held in ranked.due(time):
            axis = self._window.place(held.event.at.time, ranked.next)
            columns = self._columns.taking.take_solved(
                held.event, ranked.next, axis, self._oldest(axis), held.solved
            )
            yield from self._complete(columns, ranked.step()) or ()

    def _gather(self, ranked: RankedEvents) -> None:
        """Hold the held single events as a batch instead, and count their solutions."""
        if not ranked.held:
            return
        taking, held, ranked.held = self._columns.taking, ranked.held, []
        for one in held:
            taking.count(one.solved)
        ranked.keep(gathered([one.event for one in held]), taking.tables([one.solved for one in held]))

    def partial_matches(self, time: int) -> int:
        """See ``NfaMatcher.partial_matches``; counts some that have expired."""
        del time
        return int(self.families.runs.ints[header.LIVE_WAITS])

    @property
    def waits(self) -> bool:
        """Whether ``advance`` may return matches."""
        return True

    def is_due(self, time: int) -> bool:
        """See ``Quick.is_due``."""
        del time
        return True

    def advance(self, time: int) -> Iterator[Block]:
        """Advance to ``time``: yield the matches that become certain."""
        if self._ranked is not None:
            yield from self._released(self._ranked, time)
        if self._window.counted:
            # Time ends no window here, but decides elements with WITHIN.
            yield from self._finish(EARLIEST, time)
        else:
            yield from self._finish(time if self._window.sliding else self._window.index(time), time)

    def close(self) -> Iterator[Block]:
        """End all windows, as no event will come."""
        if self._ranked is not None:
            yield from self._released(self._ranked, END)
        yield from self._finish(LATEST, LATEST, closes=True)

    def settled(self, time: int, members: int = -1) -> int:
        """Return the time up to which all matches were delivered, when the query's time is ``time``.

        An undecided match ends no earlier than it began. ``members``: the members that the matches are for,
        as bits.
        """
        held = time if self._ranked is None else self._ranked.oldest(time)
        return min(time, held, self.families.oldest(time, families.TIME, members))

    def _finish(self, at: int, time: int, *, closes: bool = False) -> Iterator[Block]:
        """Yield the matches that are due before a place on the window's axis and before a time; with
        ``closes``, all matches.
        """
        k.finish(self.families.machine, at, time, closes)
        yield from self._found()

    # --- matches out --------------------------------------------------------------------------

    def _found(self) -> Iterator[Block]:
        if self.families.found:
            found = self._unrolled()
            yield from self._matches.made(found.keys, found.ways, found.depths, found.steps)

    def _unrolled(self) -> Preferred:
        """Return the matches found since the last call, and forget them."""
        every = self.families
        m = every.runs.ints
        rows = np.zeros((every.found, results.SIZE), dtype=np.int64)
        k.found(m, every.rows, rows.ravel())
        order = (results.FIRST, results.LAST, results.RANK, results.TURN)
        rows = rows[np.lexsort(tuple(rows[:, column] for column in order))]
        ends = rows[:, results.NODE].copy()
        depths = m[ends + nodes.DEPTH]
        steps = np.zeros((int(depths.sum()), 3), dtype=np.int64)
        k.unroll(m, ends, steps.ravel())
        keys = m[rows[:, results.PARTITION, None] + (partitions.KEY + np.arange(self._keys))]
        ways = self._tables[rows[:, results.ACCEPT] + accepts.NUMBER]
        k.forget_found(m, every.rows)
        return Preferred(rows[:, results.MEMBER], rows[:, results.TURN], keys, ways, depths, steps)

    # --- columns in ---------------------------------------------------------------------------

    def _take_alone(self, event: Single, start: int) -> Ints:
        """Return a single event in the kernel's form; see ``Quick.take_single``."""
        axis = self._window.place(event.at.time, start)
        columns = self._columns.taking.take(event, start, axis, self._oldest(axis))
        if columns is None:
            raise UnsolvedError
        return columns

    def _run_alone(self, columns: Ints) -> int:
        """Process a single event as far as the kernel can."""
        self._renew()
        self.families.runs.begin()
        return self._run(columns)

    def _take(self, batch: EventBatch, start: int, solutions: Mapping[str, Solutions]) -> Ints:
        """Return a batch in the kernel's form."""
        axis = self._window.places(batch, start)
        chunk = self._columns.add(batch, start, solutions, axis, self._oldest(int(axis[0])))
        self._renew()
        return self._columns.packed(chunk, axis)

    def _oldest(self, axis: int) -> int:
        """Return the oldest place on the window's axis that an event of a match may have, when the newest
        event is at ``axis``.

        A match that is due with the newest event may have events older than the newest event's window.
        """
        return min(axis - self._tables.item(v.LIMIT), self.families.oldest(axis, families.FIRST))

    def _renew(self) -> None:
        """Forget answers with ids that may have another meaning now. Ended runs may still hold such ids, but
        they see no more events.
        """
        if self._columns.renew():
            self.families.runs.forget_answers()

    # --- questions ----------------------------------------------------------------------------

    def _answer(self, start: int) -> None:
        """Decide exactly what the tables could not decide."""
        runs = self.families.runs
        m, key = runs.ints, runs.key(self._keys)
        event = start + int(m[header.EVENT])
        for i in range(int(m[header.ANSWERED]), int(m[header.ASKED])):
            at = int(m[header.QUESTIONS]) + i * questions.SIZE
            wait, asked = m[at : at + 2].tolist()
            path = runs.path(int(m[wait + waits.NODE]))
            if asked >= 0:
                m[m[header.ANSWERS] + i] = self._is_relevant(path, [(event, asked)], key)
                continue
            number, choice = divmod(-1 - asked, MOST_OPTIONS)
            option = self._ordering.choices[self._targets[number]][choice]
            holds = self._replay.may_go_on if option.goes_on else self._replay.may_end
            m[m[header.ANSWERS] + i] = holds([*path, (event, number)], option.ends, key)
        m[header.ANSWERED] = m[header.ASKED]

    def _is_relevant(self, path: Path, step: Path, key: Key) -> bool:
        """Return whether an event is relevant for a run."""
        return self._replay.is_relevant(path, step, key)
