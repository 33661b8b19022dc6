"""The constants of the queries of a group, as a table of their ids, which rows may leave."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from typing import Final

import numpy as np
from pyoxigraph import Literal, NamedNode

from spaseq.events import Ids
from spaseq.gpm.spectra.solutions import Mask
from spaseq.terms.dictionary import Dictionary, Term
from spaseq.terms.values import XSD

_STRING: Final = NamedNode(XSD + "string")


class Parameters:
    """A table: for each set of constants an id that names it, and the ids of the constants.

    Rows are numbered. ``version`` changes whenever one goes; ``member`` is the column that names them.
    ``of_queries``: the number of each query's row, which those have in common that have the same constants.
    """

    def __init__(
        self, names: Sequence[str], member: str, constants: Sequence[Sequence[Term]], dictionary: Dictionary
    ) -> None:
        """``constants``: of each of the parameters ``names`` those of all queries, which are two at least.

        ``member``: what names a row.
        """
        self.version = 0
        self.member = member
        known: list[tuple[Sequence[Term], Ids, bool]] = []
        for column in constants:
            # Each GPM may name the same.
            same = next((found for found in known if found[0] == column), None)
            if same is None:
                is_same = set(map(type, column)) <= {NamedNode} or all(map(_is_same, column))
                same = column, _interned(column, dictionary), is_same
            known.append(same)
        columns = [ids for _, ids, _ in known]
        self._same = {name for name, (_, _, is_same) in zip(names, known, strict=True) if is_same}
        numbers: dict[tuple[int, ...], int] = {}
        rows = zip(*[ids.tolist() for ids in columns], strict=True)
        self.of_queries = [numbers.setdefault(row, len(numbers)) for row in rows]
        size = len(numbers)
        if size < len(self.of_queries):
            columns = [np.array(column, dtype=np.int64) for column in zip(*numbers, strict=True)]
        # What names a row is an integer, whose value takes no Python object to read.
        columns = [dictionary.intern_integers(range(size)), *columns]
        self._all = dict(zip((member, *names), columns, strict=True))
        self._is_there: Mask = np.ones(size, dtype=np.bool_)
        # The numbers of the rows that are there, and their columns, as they were at a version.
        self._numbers = np.arange(size)
        self._columns = self._all
        self._made = self.version
        # The order of what names rows, once somebody asks.
        self._order: Ids | None = None
        dictionary.hold(self)

    @property
    def names(self) -> Container[str]:
        """Of all columns."""
        return self._all

    @property
    def rows(self) -> Ids:
        """What names the rows, in the order of their numbers."""
        return next(iter(self._all.values()))

    def numbers_of(self, names: Ids) -> Ids:
        """The numbers of rows by what names them, those that have gone, too."""
        rows = self.rows
        if self._order is None:
            self._order = np.argsort(rows)
        return self._order[np.searchsorted(rows, names, sorter=self._order)]

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def numbers(self) -> Ids:
        """The numbers of the rows that are there."""
        self._make()
        return self._numbers

    def live_ids(self) -> Iterable[Ids]:
        """The ids in the table; partial matches may still have those of rows that have gone."""
        return self._all.values()

    def remove(self, number: int) -> None:
        """One row less."""
        self._is_there[number] = False
        self.version += 1

    def is_same_term(self, parameter: str) -> bool:
        """Whether a parameter equals what is the same term, and nothing else."""
        return parameter in self._same

    def column(self, name: str) -> Ids:
        """A column of the rows that are there."""
        self._make()
        return self._columns[name]

    def _make(self) -> None:
        if self._made != self.version:
            self._numbers = np.flatnonzero(self._is_there)
            self._columns = {name: column[self._numbers] for name, column in self._all.items()}
            self._made = self.version


def _interned(terms: Sequence[Term], dictionary: Dictionary) -> Ids:
    """The ids of terms, many of which may be the same: to look for one takes less than to write it."""
    distinct = dict.fromkeys(terms)
    if len(distinct) > len(terms) // 2:
        return dictionary.intern_all(terms)
    ids = dict(zip(distinct, dictionary.intern_all([*distinct]).tolist(), strict=True))
    return np.array([ids[term] for term in terms], dtype=np.int64)


def _is_same(term: Term) -> bool:
    """Whether a term equals itself alone."""
    is_string = isinstance(term, Literal) and term.language is None and term.datatype == _STRING
    return is_string or isinstance(term, NamedNode)
