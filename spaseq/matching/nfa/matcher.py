"""The Python side of the NFA: batches of solutions in, matches out.

The kernel only *decides*. Its findings become matches in ``matches``; what the tables leave open is replayed
through ``Context``, exactly.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from typing import Final

import numpy as np
import numpy.typing as npt

from spaseq.alone import Single
from spaseq.automaton.pattern import SequencePattern
from spaseq.events import LATEST, EventBatch
from spaseq.limits import Budget
from spaseq.matching.columns.alone._kernel_alone import alone
from spaseq.matching.columns.alone.singles import Counts
from spaseq.matching.columns.batches import BatchColumns
from spaseq.matching.columns.blocks.found import Block
from spaseq.matching.columns.matcher import PushedPattern, UnsolvedError
from spaseq.matching.context import Context
from spaseq.matching.filters import _kernel_values as v
from spaseq.matching.filters import batch as heads
from spaseq.matching.filters.derived import Lookups
from spaseq.matching.host import Key, Order, may_end_together
from spaseq.matching.model import StreamWindow
from spaseq.matching.nfa import sizing
from spaseq.matching.nfa.compiled import _kernel as k
from spaseq.matching.nfa.compiled import _kernel_laid as out
from spaseq.matching.nfa.compiled import _kernel_layout as lay
from spaseq.matching.nfa.exact import ExactRun, Path, RunReplay
from spaseq.matching.nfa.matches import RunMatches
from spaseq.matching.nfa.memory import Capacity, RunMemory, memory, ranked
from spaseq.matching.nfa.records import findings, header, partitions, questions, waits
from spaseq.matching.nfa.tables.analysis import NfaTables
from spaseq.matching.nfa.tables.compiling import compile_tables, tables_alike
from spaseq.matching.nfa.trailing import Certain, Ended, Open, arranged
from spaseq.patterns.spectra.solutions import Solutions
from spaseq.terms.dictionary import Dictionary

Ints = npt.NDArray[np.int64]

_NOWHERE: Final[Ints] = np.zeros(0, dtype=np.int64)


@cache
def load() -> None:
    """Load the compiled code for pushed events, which takes a while, before the first one."""
    nothing, m, floats = (
        np.zeros(v.TABLES_HEADER, dtype=np.int64),
        np.zeros(header.SIZE, dtype=np.int64),
        np.zeros(1),
    )
    m[header.WIDTH] = m[header.ENTRY_WIDTH] = 1
    codes = np.zeros(1, dtype=np.int8)
    k.run(nothing, m, floats, nothing, floats, codes)
    k.unroll(m, nothing)
    out.size_of_found(m)
    out.lay(m, nothing, 0, 0, nothing.copy(), nothing.copy())
    k.look(m, nothing.astype(np.bool_), nothing.astype(np.bool_), nothing)
    k.sweep(v.RunMachine(nothing, m, floats, nothing, floats, codes), nothing[:0], floats, 0, 0)
    alone(nothing, nothing, nothing.copy(), 0, floats, codes, floats, nothing.copy())


class NfaMatcher:
    """The matches of one query over all its partitions; see ``Matcher`` for the order of delivery.

    ``compiled``: its tables, if they exist; ``budget``: what it may keep, if not the context's; ``floor``:
    the least initial room of its memory, if not the usual.
    """

    def __init__(
        self,
        pattern: SequencePattern,
        dictionary: Dictionary,
        context: Context,
        window: StreamWindow,
        compiled: NfaTables | None = None,
        budget: Budget | None = None,
        floor: Capacity | None = None,
    ) -> None:
        self._compiled = compiled or tables_alike(pattern, dictionary.pin)
        self._budget = budget or context.budget
        self._keys = tuple(variable.name for variable in pattern.query.partition)
        self._window = window
        self._tables = self._compiled.tables
        self._tables[v.LIMIT], self._tables[v.APART] = window.reach, context.apart
        for i, limit in enumerate(self._compiled.limits):
            self._tables[self._tables[v.LIMITS] + i] = window.lasts(limit)
        c = self._compiled
        self._columns = BatchColumns(
            dictionary, pattern, c.gpms, c.columns, c.constants, c.derived, self._budget
        )
        self._lookups = Lookups(c.lookups, dictionary)
        history = self._columns.history
        self._exact = ExactRun(pattern, c, context, history, window)
        self._replay = RunReplay(
            lambda: compiled or compile_tables(pattern, dictionary.pin), context, history
        )
        self._matches = RunMatches(pattern, c, history, self._replay, context.order)
        self._trails = bool(self._tables[v.TRAILS])
        self._order = context.order
        self._several = may_end_together(pattern)
        self._dictionary = dictionary
        # Whether findings are matches without further decisions.
        self._is_plain = not (self._trails or self._tables[v.N_GAPS] or self._compiled.ambiguous)
        self._open = Open(window.reach)
        self._certain = Certain(c, self._replay, window.reach)
        self._sizing = sizing.Sizing(self._compiled, self._budget, floor or sizing.START)
        self._start = 0
        # The order of the keys of the current batch, if a kernel needed it.
        self._ranks: Ints | None = None

    @cached_property
    def _memory(self) -> RunMemory:
        """Its runs; created with the first events, when the needed room can be estimated."""
        return self._sizing.first(bool(self._keys))

    def process(self, batch: EventBatch, start: int, solutions: Mapping[str, Solutions]) -> Iterator[Block]:
        """See ``ByColumns.process``."""
        if len(batch):
            self._sizing.begin(len(batch), solutions)
            columns = self._take(batch, start, solutions)
            self._memory.begin()
            yield from self._go_on(start, columns, self._run(columns))

    def expect(self, asked: Sequence[PushedPattern]) -> bool:
        """See ``Quick.expect``."""
        return self._columns.expect(asked)

    def counts(self) -> Counts | None:
        """See ``Quick.counts``."""
        return self._columns.taking.counts()

    @property
    def gpms(self) -> Sequence[str]:
        """See ``Quick.gpms``."""
        return self._compiled.gpms

    def take_single(self, event: Single, start: int) -> Iterable[Block] | None:
        """See ``Quick.take_single``."""
        columns = self._take_alone(event, start)
        self._memory.begin()
        status = self._run(columns)
        if status == lay.DONE and not self._memory.ints.item(header.FOUND_COUNT):
            return None
        if status == lay.DONE and self._is_plain and (few := self._matches.few(self._memory.ints)):
            return (few,)
        return self._go_on(start, columns, status)

    def _run(self, columns: Ints) -> int:
        """Process a batch as far as the kernel can."""
        m, numbers = self._memory, self._columns.numbers
        return k.run(self._tables, m.ints, m.floats, columns, numbers.numbers, numbers.codes)

    def _go_on(self, start: int, columns: Ints, status: int) -> Iterator[Block]:
        """Provide what the kernel stopped for, until the batch is done."""
        while True:
            if status == lay.CONSUME:
                yield from self._consumed(start)
            elif status == lay.UNRANKED:
                self._ranks = ranked(self._tables, self._memory.ints, columns, self._dictionary)
            elif status != lay.ASK or not self._memory.look_up(self._lookups, self._columns.numbers):
                if status == lay.DONE:
                    self._columns.done()
                yield from self._found()
                if status == lay.DONE:
                    break
                if status == lay.ASK:
                    self._answer(start)
                elif status == lay.ROOM:
                    self._make_room(columns, int(self._memory.ints[header.DECIDED]))
                elif status == lay.DRAIN:
                    if self._sizing.found_many():
                        self._make_room(columns, 0)
                else:
                    self._memory.grow_scratch(status == lay.MORE_KEYS)
            status = self._run(columns)

    def partial_matches(self, time: int) -> int:
        """Return how many partial matches have not expired at ``time``."""
        now = int(self._memory.ints[header.NOW])
        return self._live(now if self._window.counted else self._window.place(time, 0), time)[0]

    @property
    def waits(self) -> bool:
        """Whether matches wait for their windows' end."""
        return self._trails and bool(self._memory.ints[header.PARKED_COUNT])

    def is_due(self, time: int) -> bool:
        """See ``Quick.is_due``."""
        m = self._memory.ints
        if self._window.counted or not m.item(header.PARKED_COUNT):
            return False
        at = time if self._window.sliding else self._window.index(time)
        first = m.item(m.item(header.PARKED))
        return at - m.item(first + waits.DUE) > self._tables.item(v.LIMIT)

    def advance(self, time: int) -> Iterator[Block]:
        """Advance to ``time``: yield the matches with a window that has ended."""
        if self._trails and not self._window.counted:
            at = time if self._window.sliding else self._window.index(time)
            yield from self._finish(at, time)

    def close(self) -> Iterator[Block]:
        """End all windows, as no event will come."""
        if self._trails:
            yield from self._finish(LATEST, LATEST, closes=True)

    def settled(self, time: int) -> int:
        """Return the time up to which all matches were delivered, when the query's time is ``time``.

        A match that waits for its window's end may still appear with an earlier last event.
        """
        return self._open.since(time) if self._trails else time

    def _finish(self, at: int, time: int, *, closes: bool = False) -> Iterator[Block]:
        """Yield the matches that are due before a place on the window's axis; all if no event will come."""
        if self._columns.renew():
            self._memory.forget_answers()
            self._sweep(at, time, 0)
        if closes:
            self._open.close()
        else:
            self._open.advance(at)
        self._start = 0
        m, numbers = self._memory, self._columns.numbers
        k.finish(self._tables, m.ints, m.floats, at, closes, numbers.numbers, numbers.codes)
        yield from self._found()

    # --- matches out --------------------------------------------------------------------------

    def _found(self) -> Iterator[Block]:
        m = self._memory.ints
        if m[header.FOUND_COUNT] and self._tables[v.N_GAPS]:
            self._leave_out_forbidden()
        if m[header.FOUND_COUNT] and self._compiled.ambiguous:
            runs = [self._ended(row) for row in self._memory.findings.tolist()]
            k.keep(m, ~np.array(self._certain.repeated(runs, int(m[header.NOW])), dtype=np.bool_))
        if m[header.FOUND_COUNT] and self._trails:
            rows = self._memory.findings
            rows[:] = arranged(rows, self._last(rows))
        if m[header.FOUND_COUNT]:
            yield from self._matches.of(m)

    def _consumed(self, start: int) -> list[Block]:
        """Return the matches that an event completed in a partition, and end the partition's other runs."""
        m = self._memory.ints
        partition = int(self._memory.findings[0, findings.PARTITION])
        found = list(self._found())
        if found:
            k.consume(m, partition, start + int(m[header.EVENT]))
        return found

    def _last(self, rows: Ints) -> Sequence[Order]:
        """Return the place of each match's last event in the order of all events."""
        stamps, order = self._columns.history.stamps, self._order
        if not self._several:
            return [order(stamp) for stamp in stamps(rows[:, findings.EVENT] + self._start)]
        paths = (self._ended(row).path for row in rows.tolist())
        events = (stamps(np.array([position for position, _ in path], dtype=np.int64)) for path in paths)
        return [max(map(order, found)) for found in events]

    def _ended(self, row: Sequence[int]) -> Ended:
        key = tuple(self._memory.ints[row[findings.PARTITION] + partitions.KEY :][: len(self._keys)].tolist())
        path = self._memory.path(row[findings.NODE])
        return Ended(path, row[findings.ACCEPT], key, bool(row[findings.WAITED]))

    def _leave_out_forbidden(self) -> None:
        """Drop the unsure findings that have a forbidden event, as an exact decision shows."""
        rows = self._memory.findings
        kept = np.ones(len(rows), dtype=np.bool_)
        for i in np.flatnonzero(rows[:, findings.UNSURE]).tolist():
            run = self._ended(rows[i].tolist())
            kept[i] = self._exact.stands(run.path, run.key)
        if not kept.all():
            k.keep(self._memory.ints, kept)

    # --- columns in ---------------------------------------------------------------------------

    def _take_alone(self, event: Single, start: int) -> Ints:
        """Return a single event in the kernel's form; see ``Quick.take_single``."""
        axis = self._window.place(event.at.time, start)
        columns = self._columns.taking.take(event, start, axis, self._oldest(axis))
        if columns is None:
            raise UnsolvedError
        self._start = start
        if self._trails:
            self._open.add(np.array([axis]), np.array([event.at.time]))
        if self._columns.renew():
            self._memory.forget_answers()
            self._sweep(axis, event.at.time, 0)
        return columns

    def _take(self, batch: EventBatch, start: int, solutions: Mapping[str, Solutions]) -> Ints:
        """Return a batch in the kernel's form."""
        axis = self._window.places(batch, start)
        self._start = start
        if self._trails:
            self._open.add(axis, batch.time)
        chunk = self._columns.add(batch, start, solutions, axis, self._oldest(int(axis[0])))
        if self._columns.renew():
            self._memory.forget_answers()
            self._sweep(int(axis[0]), int(batch.time[0]), 0)
        return self._columns.one(chunk, axis) if len(batch) == 1 else self._columns.packed(chunk, axis)

    def _oldest(self, axis: int) -> int:
        """Return the oldest place on the window's axis of events that runs or negations may need."""
        limit = self._tables.item(v.LIMIT)
        m = self._memory.ints
        if m.item(header.PARKED_COUNT):
            # A waiting match may span a window, and depend on events up to a window before it.
            return min(axis, int(m[m[m[header.PARKED]] + waits.DUE]) - limit) - limit
        return axis - limit

    def _make_room(self, columns: Ints, decided: int) -> None:
        """Drop ended runs, and make a memory at least half of which is free."""
        self._sizing.grow()
        event = self._memory.ints[header.EVENT]
        axis, time = (heads.values(columns, columns[at] + event).item() for at in (heads.AXIS, heads.TIME))
        events = int(columns[heads.SIZE])
        self._sweep(axis, time, decided, (events - int(event), events))

    def _sweep(self, axis: int, time: int, decided: int, left: tuple[int, int] = (0, 0)) -> None:
        """Move the live runs to a new memory that also has room for ``decided`` decisions.

        ``left``: how many events of the current batch are still to come, and how many the batch has.
        """
        old = self._memory
        live, remembered = self._live(axis, time)
        self._budget.partial(live + decided)
        room = self._sizing.with_spare(self._room(live, remembered, decided, axis, time), *left, old)
        new = self._empty(room, old)
        k.sweep(self._machine, new.ints, new.floats, axis, time)
        self._memory = new

    @property
    def _machine(self) -> v.RunMachine:
        old, ids = self._memory, self._columns.numbers
        return v.RunMachine(self._tables, old.ints, old.floats, _NOWHERE, ids.numbers, ids.codes)

    def _live(self, axis: int, time: int) -> tuple[int, int]:
        """Count the partial matches and entries that have not expired."""
        live, remembered = k.sweep(self._machine, _NOWHERE, self._memory.floats, axis, time)
        return live, remembered

    def _empty(self, room: Capacity, like: RunMemory) -> RunMemory:
        """Return an empty memory of this size; see ``memory``."""
        return memory(self._compiled, room, self._budget, like)

    def _room(self, live: int, remembered: int, decided: int, axis: int, time: int) -> Capacity:
        """Return the room for these runs, entries and decisions, of which at least half is free."""
        del axis, time
        needed = self._memory.twice(self._tables, live, remembered, decided)
        return Capacity(*map(max, needed, self._sizing.floor))

    # --- questions ------------------------------------------------------------------------------

    def _answer(self, start: int) -> None:
        """Decide exactly what the tables could not decide."""
        m = self._memory.ints
        event = start + int(m[header.EVENT])
        key = self._memory.key(len(self._keys))
        for i in range(int(m[header.ANSWERED]), int(m[header.ASKED])):
            at = int(m[header.QUESTIONS]) + i * questions.SIZE
            wait, number, *positions = m[at : at + questions.SIZE].tolist()
            path = self._memory.path(int(m[wait + waits.NODE]))
            parts = len(self._compiled.candidates[number].parts)
            step = [(positions[j], number + j) for j in range(parts)] or [(event, number)]
            m[m[header.ANSWERS] + i] = self._is_relevant(path, step, key)
        m[header.ANSWERED] = m[header.ASKED]

    def _is_relevant(self, path: Path, step: Path, key: Key) -> bool:
        """Return whether an event, or several at one time, are relevant for a candidate of a run."""
        return self._replay.is_relevant(path, step, key)
