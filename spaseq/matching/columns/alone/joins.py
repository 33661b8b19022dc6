"""What a query's GPMs ask of an event that comes alone, as tables; ``_kernel_alone`` says which."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from spaseq.gpm.spectra.background import Known
from spaseq.gpm.spectra.single import MOST_TRIPLES, Join
from spaseq.matching.columns.alone import _kernel_alone as k
from spaseq.matching.columns.alone.singles import Singles
from spaseq.matching.conditions import batch as heads
from spaseq.matching.conditions.numbers import Numbers
from spaseq.matching.conditions.programs import COMPARISONS

Ints = npt.NDArray[np.int64]

_MOST_TERMS: Final = 3 * MOST_TRIPLES

#: So much of several background graphs is put together for each query.
_MOST_KNOWN: Final = 1 << 16


class Joins:
    """Joins of an event's triples by compiled code; ``batch`` is the event as the runs kernel reads it."""

    def __init__(
        self,
        joins: Sequence[Join],
        streams: Sequence[int],
        asked: Sequence[int],
        columns: Sequence[tuple[int, int]],
    ) -> None:
        """``joins``: of each question; ``streams``: the ranks of those that it is asked of, a bit each;
        ``asked``: the question of each GPM; ``columns``: each a GPM's, and which of its values that has, -1
        for none of them.
        """
        picks = sorted({(asked[g], value) for g, value in columns})
        header = [len(joins), len(asked), len(columns), 0, 0, max(j.width for j in joins), len(picks)]
        table = [*header, *(0 for _ in joins)]
        self._places = []
        # What is asked of background graphs, and where in the table it stands.
        self._asked: list[tuple[Known, int]] = []
        self._known, self._is_small = np.zeros(1, dtype=np.int64), True
        self._version: int | None = None
        for question, (join, ranks) in enumerate(zip(joins, streams, strict=True)):
            table[k.FIRST_QUESTION + question] = len(table)
            self._places.append(len(table))
            picked = [value for of, value in picks if of == question]
            sizes = len(join.steps), len(join.order), len(picked)
            table += [*sizes, 0, 0, len(join.known), ranks, len(join.tests), *join.order, *picked]
            for step in join.steps:
                table += map(int, step)
            for known in join.known:
                self._asked.append((known, len(table)))
                table += [0, len(known.places), len(known.others), *known.places]
            for operator, *sides in join.tests:
                table += [COMPARISONS[operator], *sides]
        table[k.AT_GPMS] = len(table)
        table += asked
        table[k.AT_COLUMNS] = len(table)
        for g, value in columns:
            table += (g, picks.index((asked[g], value)))
        self._table = np.array(table, dtype=np.int64)
        scratch = (len(picks) + 2 * max(j.width for j in joins)) * k.MOST_ROWS
        #: Where the columns begin in it.
        self.values = heads.HEAD + len(columns) + 4 + 2 * len(asked)
        self.batch = np.zeros(self.values + scratch + len(picks), dtype=np.int64)
        self._kept: Ints | None = None

    def take(self, singles: Singles, terms: int, numbers: Numbers) -> int:
        """Joins the event that was written last; returns what ``_kernel_alone.alone`` does."""
        if terms > _MOST_TERMS:
            return k.LARGE
        if singles.values is not self._kept:
            self._place(singles)
        if self._asked and self._asked[0][0].version != self._version:
            self._learn()
        if not self._is_small:
            return k.LARGE
        return k.alone(
            self._table, self._known, singles.log, singles.used, singles.firsts, singles.values,
            numbers.numbers, numbers.codes, self.batch,
        )  # fmt: skip

    def _learn(self) -> None:
        """Has what background graphs know now; they are those of one query, and change together."""
        version = self._asked[0][0].version
        tables = [known.packed() for known, _ in self._asked]
        self._is_small = len(tables) == 1 or sum(map(len, tables)) <= _MOST_KNOWN
        if self._is_small:
            # The only one is that of all queries that ask it.
            self._known = tables[0] if len(tables) == 1 else np.concatenate(tables)
            begin = 0
            for (_, at), table in zip(self._asked, tables, strict=True):
                self._table[at + k.TABLE] = begin
                begin += len(table)
        self._version = version

    def _place(self, singles: Singles) -> None:
        """Says where solutions are kept."""
        self._kept = singles.values
        for at, begin, room in zip(self._places, singles.begin, singles.rooms, strict=True):
            self._table[at + k.KEPT], self._table[at + k.ROOM] = begin, room
