"""Take single events for a query: join its GPMs with each event, and write the solutions as an array."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt

from spaseq.alone import Single
from spaseq.events import Clock
from spaseq.language.scope import mentioned
from spaseq.language.syntax import Filter
from spaseq.language.syntax.printing import print_expression
from spaseq.matching.columns.alone import _kernel_alone as k
from spaseq.matching.columns.alone._kernel_alone import LARGE
from spaseq.matching.columns.alone.singles import ROWS, Counts, Singles
from spaseq.matching.columns.history import History
from spaseq.matching.columns.matcher import PushedPattern, Solve
from spaseq.matching.filters import _kernel_values as v
from spaseq.matching.filters import batch as heads
from spaseq.matching.filters.numbers import Numbers
from spaseq.matching.filters.postfix import BeyondTables, FilterSite, Instruction, steps
from spaseq.matching.filters.programs import Cell, Programs, Sections
from spaseq.patterns.sharing import FEW_TRIPLES, Values
from spaseq.patterns.spectra.single import Continues, SingleJoin
from spaseq.patterns.spectra.solutions import Solutions
from spaseq.terms.dictionary import Dictionary

# The patterns of a query's GPMs as tables for single events, in the layout of ``_kernel_alone``.

Ints = npt.NDArray[np.int64]

#: The most triples of an event for compiled code, which reads all of them for each triple of a pattern.
#: Larger events are evaluated by columns.
_MOST_TERMS: Final = 3 * FEW_TRIPLES

#: Solutions of several background graphs are joined for each query up to this size.
_MOST_KNOWN: Final = 1 << 16

#: Initial room for rows of a pattern in an event.
_FEW_ROWS: Final = 32

#: A join, the begin and end of its filters' program, and the positions in a row of the values that the
#: program reads.
_Compiled = tuple[SingleJoin, tuple[Cell, Cell], list[int]]


class Joins:
    """Joins of an event's triples by compiled code; ``batch`` is the event in the layout of ``nfa``'s kernel.

    Compiled code joins few triples and filters numbers. The solutions of other patterns are given to it.
    """

    def __init__(
        self,
        questions: Sequence[PushedPattern],
        streams: Sequence[int],
        asked: Sequence[int],
        columns: Sequence[tuple[int, int]],
        dictionary: Dictionary,
        most: int,
        rows: int = _FEW_ROWS,
        is_given: bool = False,
    ) -> None:
        """``streams``: by pattern, the ranks of its streams as bits; ``asked``: the pattern of each GPM;
        ``columns``: pairs of a GPM and the number of one of its values, -1 for none; ``most``: how many
        solutions of a pattern an event may have; ``rows``: how many rows there is room for; ``is_given``: the
        solutions of all patterns are given.
        """
        code = Sections()
        programs = Programs(code, {}, {}, (), dictionary.pin)
        joined = [None if is_given else _compiled(question.join, programs) for question in questions]
        picks = sorted({(asked[g], value) for g, value in columns})
        width = max(
            len(of.names) if join is None else len(join[0].bound)
            for of, join in zip(questions, joined, strict=True)
        )
        self.rows = rows
        #: Where the columns begin in ``batch``.
        self.values = heads.HEAD + len(columns) + 6 + heads.SHARE * len(asked)
        scratch = self.values + len(picks) * rows
        at_picks = scratch + 2 * width * rows
        places = at_picks + len(picks)
        self._size = places + width + v.STACK
        head = [len(questions), len(asked), len(columns), 0, 0, width, rows, most, self.values]
        table: list[Cell] = [*head, scratch, at_picks, places, places + width, *(0 for _ in questions)]
        self._places: list[int] = []
        # Background graphs and other tables to join rows with, and their places in the table.
        self._asked: list[tuple[Continues, int]] = []
        self._known, self._is_small = np.zeros(1, dtype=np.int64), True
        self._versions: list[int] = []
        # Patterns with solutions that are given: the number of each, what solves it, its place in ``batch``.
        self._given: list[tuple[int, Solve, int]] = []
        for number, (question, ranks, join) in enumerate(zip(questions, streams, joined, strict=True)):
            table[k.FIRST_QUESTION + number] = len(table)
            self._places.append(len(table))
            self._describe(table, number, question, ranks, join, [of for q, of in picks if q == number])
        table[k.AT_GPMS] = len(table)
        table += asked
        table[k.AT_COLUMNS] = len(table)
        for g, value in columns:
            table += (g, picks.index((asked[g], value)))
        self._table = code.array(table)
        self._numbers = Numbers.of(dictionary)
        self._numbers.cover(np.array([*programs.constants], dtype=np.int64))
        self._floats = np.zeros(1 + 2 * v.DEEPEST)
        self.batch = np.zeros(self._size, dtype=np.int64)
        self.batch[places : places + width] = np.arange(width)
        self._words = self.batch.data
        self._store: Ints | None = None

    def _describe(
        self,
        table: list[Cell],
        number: int,
        question: PushedPattern,
        ranks: int,
        compiled: _Compiled | None,
        picked: Sequence[int],
    ) -> None:
        """Add a question to the table."""
        names = len(question.names)
        if compiled is None:
            table += [0, names, len(picked), 0, ROWS, 0, ranks, 0, 0, 0, self._size, *range(names), *picked]
            self._given.append((number, question.solve, self._size))
            self._size += 1 + names * self.rows
            return
        join, program, reads = compiled
        table += [len(join.steps), names, len(picked), 0, ROWS, len(join.known), ranks]
        table += [*program, len(reads), 0, *join.order, *picked, *reads]
        for step in join.steps:
            table += map(int, step)
        for known in join.known:
            self._asked.append((known, len(table)))
            is_last = known is join.known[-1]
            table += [0, len(known.places), len(known.others), int(is_last), *known.places]

    def take(self, singles: Singles, event: Single) -> int:
        """Join the event that was written last; return the result of ``_kernel_alone.alone``."""
        if len(event.terms) > _MOST_TERMS:
            return k.LARGE
        for _, solve, at in self._given:
            found = solve(event)
            if found is None or len(found) > self.rows:
                return k.LARGE
            self._give(at, found)
        return self._run(singles)

    def take_given(self, singles: Singles, solved: Sequence[Values]) -> int:
        """Do ``take`` with given solutions, for all patterns."""
        for number, _, at in self._given:
            self._give(at, solved[number])
        return self._run(singles)

    def _give(self, at: int, found: Values) -> None:
        words = self._words
        words[at] = len(found)
        for row in found:
            for term in row:
                at += 1
                words[at] = term

    def _run(self, singles: Singles) -> int:
        if singles.store is not self._store:
            self._store = singles.store
            for at, begin in zip(self._places, singles.begin, strict=True):
                self._table[at + k.KEPT] = begin
        if self._asked and [known.version for known, _ in self._asked] != self._versions:
            self._learn()
        if not self._is_small:
            return k.LARGE
        numbers, store = self._numbers, singles.store
        while True:
            size = k.alone(
                self._table, self._known, store, singles.used,
                numbers.numbers, numbers.codes, self._floats, self.batch,
            )  # fmt: skip
            if size != k.UNSEEN:
                break
            numbers.cover_few((self.batch.item(heads.HEAD),))
        if size < k.UNSEEN:
            numbers.cover_few(self.batch[self.values : -size].tolist())
        return size

    def _learn(self) -> None:
        """Load the background tables as they are now."""
        versions = [known.version for known, _ in self._asked]
        tables = [known.packed() for known, _ in self._asked]
        shared = [
            len(table) for (known, _), table in zip(self._asked, tables, strict=True) if known.is_shared
        ]
        self._is_small = len(tables) == 1 or sum(shared) <= _MOST_KNOWN
        if self._is_small:
            # A single table is not copied: all queries that ask for it share it.
            self._known = tables[0] if len(tables) == 1 else np.concatenate(tables)
            begin = 0
            for (_, at), table in zip(self._asked, tables, strict=True):
                self._table[at + k.TABLE] = begin
                begin += len(table)
        self._versions = versions


def _compiled(join: SingleJoin | None, programs: Programs) -> _Compiled | None:
    """Return a join for compiled code; None if there is none, or filters are beyond tables."""
    if join is None:
        return None
    with suppress(BeyondTables):
        return join, *_program(join, programs)
    return None


def _program(join: SingleJoin, programs: Programs) -> tuple[tuple[Cell, Cell], list[int]]:
    place = {name: i for i, name in enumerate(join.bound)}
    code: list[Instruction] = []
    for condition in join.conditions:
        code += steps(Filter(condition), FilterSite(), {})
        if any(step.op == "LOOK_UP" for step in code):
            raise BeyondTables("filters are of what is compared and counted", print_expression(condition))
    read = frozenset[str]().union(*map(mentioned, join.conditions))
    return programs.write(code, place.__getitem__), [place[name] for name in sorted(read)]


# Single events for a query → the solutions of its GPMs, as an array that a kernel reads.

#: Streams have a bit each.
_MOST_STREAMS: Final = 62


class Taking:
    """The work of a matcher on a single event before its kernel runs.

    ``streams``: ranks of streams by id; ``read``: the variables that the kernel reads, each with the place of
    its GPM; ``history`` keeps the events.
    """

    def __init__(
        self,
        dictionary: Dictionary,
        streams: Mapping[int, int],
        read: Sequence[tuple[int, str]],
        history: History,
        *,
        is_one: bool = False,
        ordered_by: Sequence[str] = (),
    ) -> None:
        """``is_one``: process an event with several solutions of a GPM as a large event.

        ``ordered_by``: in batches, the variables that order a GPM's solutions in one event.
        """
        self._dictionary = dictionary
        self._streams = streams
        self._read = read
        self._history = history
        self._most = 1 if is_one else ROWS
        self._ordered_by = ordered_by
        # The patterns to evaluate; the events so far, if there are any.
        self._asked: Sequence[PushedPattern] = ()
        self._singles: Singles | None = None
        # The joins of events; the joins of events with solutions found in Python; and the function that makes
        # both.
        self._joins: Joins | None = None
        self._by_python: Joins | None = None
        self._make: Callable[..., Joins] = Joins
        #: Called with what is counted: see ``Singles``.
        self.watch: Callable[[Ints], None] | None = None

    def expect(self, asked: Sequence[PushedPattern]) -> bool:
        """See ``Quick.expect``."""
        if len(self._streams) > _MOST_STREAMS:
            return False
        self._asked = asked
        return True

    def counts(self) -> Counts | None:
        """See ``Quick.counts``."""
        return None if self._singles is None else self._singles.counts()

    def take(self, event: Single, start: int, axis: int, oldest: int) -> Ints | None:
        """Take an event, and write it for the kernel; ``axis``: its place on the window's axis.

        None if the event is too large for that. The returned array is valid until the next event.
        """
        singles, joins = self._singles, self._joins
        if singles is None or joins is None:
            singles, joins = self._begin(event.clock)
        if not singles.write(event, start, axis) and not self._write_anew(singles, event, start, axis):
            return None
        if joins.take(singles, event) == LARGE:
            solved = self._solved(event)
            return None if solved is None else self.take_solved(event, start, axis, oldest, solved)
        singles.add(start, len(event.terms), axis, oldest)
        return joins.batch

    def solve(self, event: Single) -> list[Values] | None:
        """Return the GPMs' solutions in an event without taking it; None if the event is too large."""
        singles, joins = self._singles, self._joins
        if singles is None or joins is None:
            singles, joins = self._begin(event.clock)
        if not singles.write(event, singles.end, 0) and not self._write_anew(singles, event, 0, 0):
            return None
        return self._solved(event) if joins.take(singles, event) == LARGE else singles.given()

    def take_solved(
        self, event: Single, start: int, axis: int, oldest: int, solved: Sequence[Values]
    ) -> Ints:
        """Do ``take`` for an event with these solutions, which ``solve`` has returned."""
        singles = self._singles
        assert singles is not None
        by_question = dict(zip(singles.asked, solved, strict=True))
        of = [by_question[question] for question in range(len(by_question))]
        joins = self._given(max(map(len, of)))
        if not singles.write(event, start, axis) or joins.take_given(singles, of) == LARGE:
            self._write_anew(singles, event, start, axis)
            joins.take_given(singles, of)
        singles.add(start, len(event.terms), axis, oldest)
        return joins.batch

    def _write_anew(self, singles: Singles, event: Single, position: int, axis: int) -> bool:
        """Turn the single events into a batch, and write this one as the first; return whether it fits."""
        self._history.end_singles()
        return singles.write(event, position, axis)

    def count(self, solved: Sequence[Values]) -> None:
        """Count an event with the solutions that ``solve`` returned, which is not taken as a single event."""
        if self._singles is not None:
            self._singles.count(solved)

    def tables(self, solved: Sequence[Sequence[Values]]) -> list[Solutions]:
        """Return the results of ``solve`` for some events as columns, GPM by GPM."""
        found = []
        for asked, of in zip(self._asked, zip(*solved, strict=True), strict=True):
            at = np.repeat(np.arange(len(of)), [*map(len, of)])
            rows = np.array([row for rows in of for row in rows], dtype=np.int64).reshape(
                len(at), len(asked.names)
            )
            found.append(Solutions(len(at), at, dict(zip(asked.names, rows.T, strict=True))))
        return found

    def _solved(self, event: Single) -> list[Values] | None:
        """Return the GPMs' solutions in an event, found in Python; None for a large one."""
        found = []
        for asked in self._asked:
            values = asked.solve(event)
            if values is None or len(values) > self._most:
                return None
            found.append(values)
        return found

    def _begin(self, clock: Clock) -> tuple[Singles, Joins]:
        """Prepare for single events: the first one has come."""
        asked = self._asked
        numbers = [*dict.fromkeys(of.number for of in asked)]
        names = [of.names for of in asked]
        placed = [(g, names[g].index(name) if name in names[g] else -1) for g, name in self._read]
        distinct = [*{of.number: of for of in asked}.values()]
        questions, streams = [numbers.index(of.number) for of in asked], [self._ranks(of) for of in distinct]
        self._make = partial(Joins, distinct, streams, questions, placed, self._dictionary, self._most)
        told, tells = [of.is_told for of in asked], [of.tell for of in asked]
        self._singles = Singles(
            self._dictionary,
            clock,
            self._streams,
            names,
            questions,
            told,
            tells,
            self.watch,
            self._ordered_by,
        )
        self._history.expect(self._singles)
        self._joins = self._make()
        return self._singles, self._joins

    def _given(self, rows: int) -> Joins:
        """Return the joins for events with given solutions, up to this many of a pattern."""
        joins = self._by_python
        if joins is None or joins.rows < rows:
            room = 1 << max(rows - 1, 31).bit_length()
            joins = self._by_python = self._make(rows=room, is_given=True)
        return joins

    def _ranks(self, of: PushedPattern) -> int:
        """Return the ranks of a pattern's streams as bits."""
        ranks = self._streams
        return -1 if of.streams is None else sum(1 << ranks[s] for s in of.streams if s in ranks)
