"""Takes events that come alone for a query: what its GPMs ask of each, and what they say, as an array."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final

import numpy as np
import numpy.typing as npt

from spaseq.alone import Single
from spaseq.events import Clock, Stamp
from spaseq.language.scope import mentioned
from spaseq.language.syntax import Filter
from spaseq.language.syntax.printing import print_expression
from spaseq.matching.columns.alone import _kernel_alone as k
from spaseq.matching.columns.alone._kernel_alone import LARGE, MOST_ROWS
from spaseq.matching.columns.alone.singles import Counts, Singles
from spaseq.matching.columns.history import History
from spaseq.matching.columns.matcher import PushedPattern, Solve
from spaseq.matching.filters import _kernel_values as v
from spaseq.matching.filters import batch as heads
from spaseq.matching.filters.numbers import Numbers
from spaseq.matching.filters.postfix import BeyondTables, FilterSite, Instruction, steps
from spaseq.matching.filters.programs import Cell, Programs, Sections
from spaseq.patterns.sharing import Values
from spaseq.patterns.spectra.single import MOST_TRIPLES, Continues, SingleJoin
from spaseq.patterns.spectra.solutions import Solutions
from spaseq.terms.dictionary import UNBOUND, Dictionary

# The patterns of a query's GPMs as tables for single events, in the layout of ``_kernel_alone``.

Ints = npt.NDArray[np.int64]

_MOST_TERMS: Final = 3 * MOST_TRIPLES

#: Solutions of several background graphs are joined for each query up to this size.
_MOST_KNOWN: Final = 1 << 16


class Joins:
    """Joins of an event's triples by compiled code; ``batch`` is the event in the layout of ``nfa``'s kernel.

    What is more than a join of few triples and filters of numbers is given to it.
    """

    def __init__(
        self,
        questions: Sequence[PushedPattern],
        streams: Sequence[int],
        asked: Sequence[int],
        columns: Sequence[tuple[int, int]],
        dictionary: Dictionary,
        most: int,
    ) -> None:
        """``streams``: by pattern, the ranks of its streams as bits; ``asked``: the pattern of each GPM;
        ``columns``: pairs of a GPM and the number of one of its values, -1 for none; ``most``: how many
        solutions of a pattern an event may have.
        """
        code = Sections()
        programs = Programs(code, {}, {}, (), dictionary.pin)
        joined = [_compiled(question.join, programs) for question in questions]
        picks = sorted({(asked[g], value) for g, value in columns})
        width = max(
            len(of.names) if join is None else len(join[0].bound)
            for of, join in zip(questions, joined, strict=True)
        )
        header = [len(questions), len(asked), len(columns), 0, 0, width, len(picks), most]
        table: list[Cell] = [*header, *(0 for _ in questions)]
        self._places = []
        # Background graphs and other tables to join rows with, and their places in the table.
        self._asked: list[tuple[Continues, int]] = []
        self._known, self._is_small = np.zeros(1, dtype=np.int64), True
        self._versions: list[int] = []
        #: Where the columns begin in ``batch``.
        self.values = heads.HEAD + len(columns) + 6 + heads.SHARE * len(asked)
        places = self.values + (len(picks) + 2 * width) * k.MOST_ROWS + len(picks)
        # What gives solutions, and where in ``batch``.
        self._given: list[tuple[Solve, int]] = []
        size = places + width + v.STACK
        for number, (question, ranks) in enumerate(zip(questions, streams, strict=True)):
            table[k.FIRST_QUESTION + number] = len(table)
            self._places.append(len(table))
            picked = [value for of, value in picks if of == number]
            known_join = joined[number]
            if known_join is None:
                names = len(question.names)
                table += [0, names, len(picked), 0, 0, 0, ranks, 0, 0, 0, size, *range(names), *picked]
                self._given.append((question.solve, size))
                size += 1 + names * k.MOST_ROWS
                continue
            join, program, reads = known_join
            table += [len(join.steps), len(join.order), len(picked), 0, 0, len(join.known), ranks]
            table += [*program, len(reads), 0, *join.order, *picked, *reads]
            for step in join.steps:
                table += map(int, step)
            for known in join.known:
                self._asked.append((known, len(table)))
                table += [0, len(known.places), len(known.others), *known.places]
        table[k.AT_GPMS] = len(table)
        table += asked
        table[k.AT_COLUMNS] = len(table)
        for g, value in columns:
            table += (g, picks.index((asked[g], value)))
        self._table = code.array(table)
        self._numbers = Numbers.of(dictionary)
        self._numbers.cover(np.array([*programs.constants], dtype=np.int64))
        self._floats = np.zeros(1 + 2 * v.DEEPEST)
        self.batch = np.zeros(size, dtype=np.int64)
        self._words = self.batch.data
        self.batch[places : places + width] = np.arange(width)
        self._kept: Ints | None = None

    def take(self, singles: Singles, terms: int, event: Single) -> int:
        """Joins the event that was written last; returns what ``_kernel_alone.alone`` does."""
        if terms > _MOST_TERMS:
            return k.LARGE
        for solve, at in self._given:
            found = solve(event)
            if found is None or len(found) > k.MOST_ROWS:
                return k.LARGE
            words = self._words
            words[at] = len(found)
            for row in found:
                for term in row:
                    at += 1
                    words[at] = term
        if singles.values is not self._kept:
            self._place(singles)
        if self._asked and [known.version for known, _ in self._asked] != self._versions:
            self._learn()
        if not self._is_small:
            return k.LARGE
        numbers, log, kept = self._numbers, singles.log, singles.values
        while True:
            size = k.alone(
                self._table, self._known, log, singles.used, singles.firsts, kept,
                numbers.numbers, numbers.codes, self._floats, self.batch,
            )  # fmt: skip
            if size != k.UNSEEN:
                return size
            numbers.cover_few((self.batch.item(heads.HEAD),))

    def _learn(self) -> None:
        """Has what is known now."""
        versions = [known.version for known, _ in self._asked]
        tables = [known.packed() for known, _ in self._asked]
        shared = [
            len(table) for (known, _), table in zip(self._asked, tables, strict=True) if known.is_shared
        ]
        self._is_small = len(tables) == 1 or sum(shared) <= _MOST_KNOWN
        if self._is_small:
            # The only one is that of all queries that ask it.
            self._known = tables[0] if len(tables) == 1 else np.concatenate(tables)
            begin = 0
            for (_, at), table in zip(self._asked, tables, strict=True):
                self._table[at + k.TABLE] = begin
                begin += len(table)
        self._versions = versions

    def _place(self, singles: Singles) -> None:
        """Says where solutions are kept."""
        self._kept = singles.values
        for at, begin, room in zip(self._places, singles.begin, singles.rooms, strict=True):
            self._table[at + k.KEPT], self._table[at + k.ROOM] = begin, room


def _compiled(
    join: SingleJoin | None, programs: Programs
) -> tuple[SingleJoin, tuple[Cell, Cell], list[int]] | None:
    """A join, where the program of its filters begins and ends, and where in a row what it reads is.

    None if there is none, or filters are beyond tables.
    """
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


# Takes events that come alone for a query: what its GPMs say of each, as an array that a kernel reads.

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
        self._numbers = Numbers.of(dictionary)
        self._most = 1 if is_one else MOST_ROWS
        self._ordered_by = ordered_by
        # The patterns to evaluate; the events so far, if there are any.
        self._asked: Sequence[PushedPattern] = ()
        self._singles: Singles | None = None
        self._joins: Joins | None = None
        self._placed: list[tuple[int, int]] = []
        #: Called with what is counted: see ``Singles``.
        self.watch: Callable[[Ints], None] | None = None

    def rank(self, stream: int) -> int:
        """That of a stream."""
        return 0 if len(self._streams) == 1 else self._streams[stream]

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
        """Takes an event, and gives it to the kernel: in ``axis`` it lies there.

        None if it is too large for that. What this gives holds until the next event.
        """
        singles, joins, numbers, count = self._singles, self._joins, self._numbers, len(event.terms)
        if singles is None or joins is None:
            singles, joins = self._begin(event.clock)
        if not self._history.make_room(singles, start, count):
            return None
        singles.write(event, start, self.rank(event.at.stream), axis, len(numbers.codes))
        size = joins.take(singles, count, event)
        if size != LARGE:
            self._history.add_one(singles, start, count, axis, oldest)
            if size < 0:
                numbers.cover_few(joins.batch[joins.values : -size].tolist())
            return joins.batch
        solved = self._solved(event)
        if solved is None:
            return None
        self._keep(singles, solved, event, start, axis)
        self._history.add_one(singles, start, count, axis, oldest)
        return self._one(singles, event.at, start, solved, axis)

    def solve(self, event: Single) -> list[Values] | None:
        """What the GPMs have in an event, which is not taken; None if it is too large."""
        singles, joins, count = self._singles, self._joins, len(event.terms)
        if singles is None or joins is None:
            singles, joins = self._begin(event.clock)
        if not singles.fits(count):
            self._history.end_singles()
        if not singles.fits(count):
            return None
        singles.write(event, 0, self.rank(event.at.stream), 0, len(self._numbers.codes))
        if joins.take(singles, count, event) != LARGE:
            return singles.given()
        return self._solved(event)

    def take_solved(
        self, event: Single, start: int, axis: int, oldest: int, solved: Sequence[Values]
    ) -> Ints:
        """As ``take`` of an event of which ``solve`` has given this."""
        singles, count = self._singles, len(event.terms)
        assert singles is not None
        self._history.make_room(singles, start, count)
        singles.write(event, start, self.rank(event.at.stream), axis, len(self._numbers.codes))
        self._keep(singles, solved, event, start, axis)
        self._history.add_one(singles, start, count, axis, oldest)
        return self._one(singles, event.at, start, solved, axis)

    def count(self, solved: Sequence[Values]) -> None:
        """Counts an event of which ``solve`` has given this, and which is not taken alone."""
        if self._singles is not None:
            self._singles.count(solved)

    def tables(self, solved: Sequence[Sequence[Values]]) -> list[Solutions]:
        """What ``solve`` has given of some events as columns, GPM by GPM."""
        found = []
        for asked, of in zip(self._asked, zip(*solved, strict=True), strict=True):
            at = np.repeat(np.arange(len(of)), [*map(len, of)])
            rows = np.array([row for rows in of for row in rows], dtype=np.int64).reshape(
                len(at), len(asked.names)
            )
            found.append(Solutions(len(at), at, dict(zip(asked.names, rows.T, strict=True))))
        return found

    def _keep(self, singles: Singles, solved: Sequence[Values], event: Single, start: int, axis: int) -> None:
        """Keeps the solutions of the event that was written, which is written anew if there is no room."""
        if not singles.solved(solved):
            self._history.end_singles()
            singles.widen(solved)
            singles.solved(solved)
            singles.write(event, start, self.rank(event.at.stream), axis, len(self._numbers.codes))

    def _solved(self, event: Single) -> list[Values] | None:
        """What each GPM has in an event; None for a large one."""
        found = []
        for asked in self._asked:
            values = asked.solve(event)
            if values is None or (self._most == 1 and len(values) > 1):
                return None
            found.append(values)
        return found

    def _begin(self, clock: Clock) -> tuple[Singles, Joins]:
        """The first event that comes alone is there."""
        asked = self._asked
        by_number = {of.number: of for of in asked}
        numbers = [*by_number]
        questions = [numbers.index(of.number) for of in asked]
        names = [of.names for of in asked]
        self._placed = [(g, names[g].index(name) if name in names[g] else -1) for g, name in self._read]
        streams = [self._ranks(of.streams) for of in by_number.values()]
        distinct = list(by_number.values())
        joins = Joins(distinct, streams, questions, self._placed, self._dictionary, self._most)
        told = [of.is_told for of in asked]
        tells = [of.tell for of in asked]
        singles = Singles(
            self._dictionary, clock, names, questions, told, tells, self.watch, self._ordered_by
        )
        self._singles, self._joins = singles, joins
        return singles, joins

    def _ranks(self, streams: frozenset[int] | None) -> int:
        """Those of some streams, None for all: a bit each."""
        return -1 if streams is None else sum(1 << self._streams[s] for s in streams if s in self._streams)

    def _one(self, singles: Singles, stamp: Stamp, start: int, solved: Sequence[Values], axis: int) -> Ints:
        """The last event for the kernel, of these solutions."""
        begins, ends = singles.spans()
        at = heads.HEAD + len(self._placed)
        columns: list[int] = []
        read = [1, start, at, at + 1, at + 2, at + 3, at + 4, heads.HEAD]
        shares = heads.shares_of_one([(begins[q], ends[q]) for q in singles.asked], at + 4)
        begin = at + 4 + len(shares)
        for g, place in self._placed:
            # The kernel knows a row by its number in the batch that this event will be a part of.
            read.append(begin + len(columns) - begins[singles.asked[g]])
            columns += [row[place] if place >= 0 else UNBOUND for row in solved[g]]
        self._numbers.cover_few(columns)
        read += (stamp.time, self.rank(stamp.stream), stamp.n, axis, *shares)
        return np.array(read + columns, dtype=np.int64)
