"""The constants of the queries of a query set, as a table of ids; rows may be removed."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from typing import Final

import numpy as np
from pyoxigraph import Literal, NamedNode

from spaseq.alone import Single
from spaseq.events import Ids
from spaseq.language.syntax import Expression
from spaseq.patterns.evaluator import GpmEvaluator
from spaseq.patterns.expressions.compiled import Solution, compile_filter
from spaseq.patterns.expressions.walk import exists_in
from spaseq.patterns.sharing import Values
from spaseq.patterns.spectra.lookup import BUCKETS, RowIndex
from spaseq.patterns.spectra.single import SingleJoin
from spaseq.patterns.spectra.solutions import Mask
from spaseq.terms.dictionary import UNBOUND, Dictionary, Term
from spaseq.terms.values import XSD

_STRING: Final = NamedNode(XSD + "string")


class Parameters:
    """A table: for each set of constants the id of its row, and the ids of the constants.

    Rows are numbered. ``version`` changes whenever one is removed; ``member`` is the column of the rows' ids.
    ``of_queries``: the number of each query's row; queries with the same constants share a row.
    """

    def __init__(
        self, names: Sequence[str], member: str, constants: Sequence[Sequence[Term]], dictionary: Dictionary
    ) -> None:
        """``constants``: for each of the parameters ``names`` those of all queries, at least two.

        ``member``: the column that identifies a row.
        """
        self.version = 0
        self.member = member
        known: list[tuple[Sequence[Term], Ids, bool]] = []
        for column in constants:
            # Several GPMs may have the same parameter.
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
        # A row's id is an integer: its value is read without a Python object.
        columns = [dictionary.intern_integers(range(size)), *columns]
        self._all = dict(zip((member, *names), columns, strict=True))
        self._is_there: Mask = np.ones(size, dtype=np.bool_)
        # The numbers of the present rows, and their columns, at a version.
        self._numbers = np.arange(size)
        self._columns = self._all
        self._made = self.version
        # The order of the rows' ids, computed on demand.
        self._order: Ids | None = None
        dictionary.hold(self)

    @property
    def names(self) -> Container[str]:
        """The names of all columns."""
        return self._all

    @property
    def rows(self) -> Ids:
        """The ids of the rows, in the order of their numbers."""
        return next(iter(self._all.values()))

    def numbers_of(self, names: Ids) -> Ids:
        """Return the numbers of rows, also removed ones, by their ids."""
        rows = self.rows
        if self._order is None:
            self._order = np.argsort(rows)
        return self._order[np.searchsorted(rows, names, sorter=self._order)]

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def numbers(self) -> Ids:
        """The numbers of the present rows."""
        self._make()
        return self._numbers

    def live_ids(self) -> Iterable[Ids]:
        """Return the ids in the table; partial matches may still have those of removed rows."""
        return self._all.values()

    def remove(self, number: int) -> None:
        """Remove a row."""
        self._is_there[number] = False
        self.version += 1

    def is_same_term(self, parameter: str) -> bool:
        """Return whether all constants of a parameter are equal only to the same term."""
        return parameter in self._same

    def column(self, name: str) -> Ids:
        """Return a column of the present rows."""
        self._make()
        return self._columns[name]

    def _make(self) -> None:
        if self._made != self.version:
            self._numbers = np.flatnonzero(self._is_there)
            self._columns = {name: column[self._numbers] for name, column in self._all.items()}
            self._made = self.version


def _interned(terms: Sequence[Term], dictionary: Dictionary) -> Ids:
    """Return the ids of terms, many of which may be equal: looking a term up is faster than writing it."""
    distinct = dict.fromkeys(terms)
    if len(distinct) > len(terms) // 2:
        return dictionary.intern_all(terms)
    ids = dict(zip(distinct, dictionary.intern_all([*distinct]).tolist(), strict=True))
    return np.array([ids[term] for term in terms], dtype=np.int64)


def _is_same(term: Term) -> bool:
    """Return whether a term is equal only to itself."""
    is_string = isinstance(term, Literal) and term.language is None and term.datatype == _STRING
    return is_string or isinstance(term, NamedNode)


# The table of constants for single events: its rows are joined like background knowledge.

_Row = tuple[int, ...]

#: Up to this many rows of the table are read one by one; more are faster as columns.
_FEW: Final = 64
#: Without keys there is one bucket.
_SHIFT: Final = 63


class ParameterRows:
    """The rows of a table, found by the values that an event's rows have at ``places``; see ``Known``."""

    is_shared = False

    def __init__(
        self, table: Parameters, keys: Sequence[tuple[str, str]], names: Sequence[str], others: Sequence[str]
    ) -> None:
        """``keys``: pairs of an equal variable and parameter; ``names``: the variables of an event's rows.

        ``others``: the columns to add to rows.
        """
        self.places: Sequence[int] = [names.index(variable) for variable, _ in keys]
        self.others = others
        self._keys = [parameter for _, parameter in keys]
        self._table = table
        self._made: int | None = None
        self._by_key: dict[_Row, list[_Row]] = {}

    @property
    def version(self) -> int:
        """A number that changes whenever a row is removed."""
        return self._table.version

    def packed(self) -> Ids:
        """Return the rows for compiled code: see ``RowIndex.packed``."""
        columns = {name: self._table.column(name) for name in self.others}
        if self._keys:
            return RowIndex([self._table.column(key) for key in self._keys]).packed(columns)
        head = np.array([_SHIFT, BUCKETS + 2, 0, len(self._table)], dtype=np.int64)
        return np.concatenate([head, np.array([*columns.values()], dtype=np.int64).T.ravel()])

    def of(self, row: _Row) -> Sequence[_Row]:
        """Return the continuations of a row."""
        if self._made != self._table.version:
            self._by_key = {}
            keys, others = (
                zip(*(self._table.column(name).tolist() for name in names), strict=True)
                for names in ([*self._keys, self.others[0]], self.others)
            )
            for key, other in zip(keys, others, strict=True):
                self._by_key.setdefault(key[:-1], []).append(other)
            self._made = self._table.version
        return self._by_key.get(tuple([row[place] for place in self.places]), ())


class OfOne:
    """The solutions of a query set's GPM in a single event, joined with the table.

    ``names`` are the variables, in the order of the values that ``solve`` returns; ``join``: the pattern, if
    it is only joins and filters.
    """

    def __init__(
        self,
        evaluator: GpmEvaluator,
        rows: Callable[[Sequence[str]], ParameterRows],
        asked: Sequence[Expression],
        dictionary: Dictionary,
    ) -> None:
        """``asked``: conditions on a solution and a row; ``rows``: returns the table's rows for solutions
        with the given variables.
        """
        self._evaluator = evaluator
        self._rows = rows(evaluator.names)
        self._tests: list[Callable[[Solution], bool]] = [compile_filter(c, dictionary) for c in asked]
        self.names = (*evaluator.names, *self._rows.others)
        self.join: SingleJoin | None = None
        own = evaluator.join
        if own is not None:
            known = rows(own.bound)
            place = {name: i for i, name in enumerate((*own.bound, *known.others))}
            self.join = own._replace(
                known=(*own.known, known),
                conditions=(*own.conditions, *asked),
                bound=tuple(place),
                order=tuple(place[name] for name in self.names),
            )

    def solve(self, event: Single) -> Values | None:
        """See ``Solve``: None also if many rows would have to be read."""
        own = self._evaluator.of_one(event)
        if own is None or sum(len(self._rows.of(row)) for row in own) > _FEW:
            return None
        found = [row + other for row in own for other in self._rows.of(row)]
        if self._tests:
            found = [row for row in found if self._passes(row)]
        return tuple(found)

    def _passes(self, row: _Row) -> bool:
        solution = {n: term for n, term in zip(self.names, row, strict=True) if term != UNBOUND}
        return all(test(solution) for test in self._tests)


def can_be_asked(evaluator: GpmEvaluator, asked: Sequence[Expression]) -> bool:
    """Return whether a GPM with such conditions on the table can be evaluated for single events."""
    return evaluator.is_for_one and not any(map(exists_in, asked))
