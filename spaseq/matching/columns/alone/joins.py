"""What a query's GPMs ask of an event that comes alone, as tables; ``_kernel_alone`` says which."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Final

import numpy as np
import numpy.typing as npt

from spaseq.alone import Single
from spaseq.gpm.spectra.single import MOST_TRIPLES, Continues, Join
from spaseq.language.scope import mentioned
from spaseq.language.syntax import Filter
from spaseq.language.syntax.printing import print_expression
from spaseq.matching.columns.alone import _kernel_alone as k
from spaseq.matching.columns.alone.singles import Singles
from spaseq.matching.columns.evaluator import Asked, Solve
from spaseq.matching.conditions import _kernel_values as v
from spaseq.matching.conditions import batch as heads
from spaseq.matching.conditions.numbers import Numbers
from spaseq.matching.conditions.postfix import BeyondTables, Site, Step, steps
from spaseq.matching.conditions.programs import Programs
from spaseq.matching.conditions.sections import Cell, Sections
from spaseq.terms.dictionary import Dictionary

Ints = npt.NDArray[np.int64]

_MOST_TERMS: Final = 3 * MOST_TRIPLES

#: So much of several background graphs is put together for each query.
_MOST_KNOWN: Final = 1 << 16


class Joins:
    """Joins of an event's triples by compiled code; ``batch`` is the event as the runs kernel reads it.

    What is more than a join of few triples and filters of numbers is given to it. ``asks``: there is such.
    """

    def __init__(
        self,
        questions: Sequence[Asked],
        streams: Sequence[int],
        asked: Sequence[int],
        columns: Sequence[tuple[int, int]],
        dictionary: Dictionary,
        most: int,
    ) -> None:
        """``streams``: the ranks of those that each question is asked of, a bit each; ``asked``: the question
        of each GPM; ``columns``: each a GPM's, and which of its values that has, -1 for none of them;
        ``most``: so many solutions of a question an event may have.
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
        # What rows are joined with, background graphs and the like, and where in the table it stands.
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
        self.asks = bool(self._given)
        self.batch = np.zeros(size, dtype=np.int64)
        self._words = self.batch.data
        self.batch[places : places + width] = np.arange(width)
        self._kept: Ints | None = None

    def take(self, singles: Singles, terms: int, event: Single | None) -> int:
        """Joins the event that was written last; returns what ``_kernel_alone.alone`` does.

        ``event``: it as an object, where it ``asks``.
        """
        if terms > _MOST_TERMS:
            return k.LARGE
        for solve, at in self._given:
            assert event is not None
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


def _compiled(join: Join | None, programs: Programs) -> tuple[Join, tuple[Cell, Cell], list[int]] | None:
    """A join, where the program of its filters begins and ends, and where in a row what it reads is.

    None if there is none, or filters are beyond tables.
    """
    if join is None:
        return None
    with suppress(BeyondTables):
        return join, *_program(join, programs)
    return None


def _program(join: Join, programs: Programs) -> tuple[tuple[Cell, Cell], list[int]]:
    place = {name: i for i, name in enumerate(join.bound)}
    code: list[Step] = []
    for condition in join.conditions:
        code += steps(Filter(condition), Site(), {})
        if any(step.op == "LOOK_UP" for step in code):
            raise BeyondTables("filters are of what is compared and counted", print_expression(condition))
    read = frozenset[str]().union(*map(mentioned, join.conditions))
    return programs.write(code, place.__getitem__), [place[name] for name in sorted(read)]
