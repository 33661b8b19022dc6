"""The parameters of the queries of a group, and a GPM's solutions joined with them.

What that costs depends on the solutions and on the queries that they concern, not on how many there are:
equal constants are found by hash, one bound by a sorted column.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

import numpy as np
import numpy.typing as npt
from pyoxigraph import Literal, NamedNode

from spaseq.automaton.pattern import GpmPart
from spaseq.events import EventBatch, Ids
from spaseq.gpm.evaluator import GpmEvaluator
from spaseq.gpm.expressions.filters import ColumnFilter
from spaseq.gpm.kb import KnowledgeBase
from spaseq.gpm.sharing import Sharing
from spaseq.gpm.spectra.lookup import spread
from spaseq.gpm.spectra.solutions import Mask, Solutions
from spaseq.language.scope import conjuncts, mentioned, variables
from spaseq.language.syntax import Binary, Expression, Filter, Pattern, Values, Var
from spaseq.matching.templates.form import Template
from spaseq.terms.dictionary import Dictionary, Term
from spaseq.terms.values import NO_NUMBER, XSD

Floats = npt.NDArray[np.float64]

_STRING: Final = NamedNode(XSD + "string")
_FLIPPED: Final = {"=": "=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}


class Parameters:
    """A table: for each set of constants an id that names it, and the ids of the constants.

    ``version`` changes whenever rows come or go.
    """

    def __init__(self, names: Sequence[str], member: str, dictionary: Dictionary) -> None:
        self.version = 0
        self.names = (member, *names)
        # Rows are numbered, too, in the order in which they came.
        self._numbers: dict[int, int] = {}
        self._dictionary = dictionary
        self._rows: dict[int, tuple[int, ...]] = {}
        self._columns: dict[str, Ids] = {}
        self._made = -1
        self._count = 0
        # The parameters of which all values are such that ``=`` is being the same term.
        self._same = set(names)
        # Partial matches may still have the ids of rows that have gone.
        self._gone: list[int] = []
        dictionary.hold(self)

    def __len__(self) -> int:
        return len(self._rows)

    def live_ids(self) -> Iterable[Ids]:
        """The ids in the table."""
        ids = chain(self._rows, self._gone, chain.from_iterable(self._rows.values()))
        return (np.fromiter(ids, dtype=np.int64),)

    def add(self, constants: Sequence[Term]) -> int:
        """One row more; returns the id that names it."""
        self._count += 1
        intern = self._dictionary.intern
        name = intern(Literal(str(self._count)))
        self._rows[name] = tuple(map(intern, constants))
        self._numbers[name] = self._count - 1
        for parameter, term in zip(self.names[1:], constants, strict=True):
            if not (isinstance(term, NamedNode) or _is_string(term)):
                self._same.discard(parameter)
        self.version += 1
        return name

    def remove(self, name: int) -> None:
        """One row less."""
        constants = self._rows.pop(name, None)
        if constants is not None:
            self._gone += (name, *constants)
            del self._numbers[name]
            self.version += 1

    def is_same_term(self, parameter: str) -> bool:
        """Whether a parameter equals what is the same term, and nothing else."""
        return parameter in self._same

    def column(self, name: str) -> Ids:
        """A column of the table."""
        return self._made_columns()[name]

    @property
    def numbers(self) -> Ids:
        """The numbers of the rows, in the order of the columns."""
        return self._made_columns()[""]

    def _made_columns(self) -> dict[str, Ids]:
        if self._made != self.version:
            rows = np.array([(name, *row) for name, row in self._rows.items()], dtype=np.int64)
            rows = rows.reshape(len(self._rows), len(self.names))
            self._columns = {name: rows[:, i].copy() for i, name in enumerate(self.names)}
            self._columns[""] = np.fromiter(self._numbers.values(), dtype=np.int64)
            self._made = self.version
        return self._columns


@dataclass(frozen=True, slots=True)
class _Bound:
    """``variable symbol parameter``, an order or equality."""

    variable: str
    symbol: str
    parameter: str


class _Index:
    """The rows of a table in the order of some columns, and in that of one number."""

    def __init__(
        self, table: Parameters, keys: Sequence[str], bounds: Iterable[_Bound], dictionary: Dictionary
    ) -> None:
        """``bounds``: the first of them of which all rows have a number is what ``order`` is by."""
        self._dictionary = dictionary
        self._known: list[tuple[Ids, Ids]] = []
        code = np.zeros(len(table), dtype=np.int64)
        for key in keys:
            values, places = np.unique(table.column(key), return_inverse=True)
            codes, code = np.unique(code * len(values) + places, return_inverse=True)
            self._known.append((values, codes))
        self._bound: _Bound | None = None
        self._values: Floats = np.zeros(0)
        rank = np.zeros(len(table), dtype=np.int64)
        for bound in bounds:
            numbers, kinds = dictionary.numbers(table.column(bound.parameter))
            if not ((kinds == NO_NUMBER).any() or np.isnan(numbers).any()):
                self._values, rank = np.unique(numbers, return_inverse=True)
                self._bound = bound
                break
        self._stride = len(self._values) + 1
        places = code * self._stride + rank
        self.order = np.argsort(places, kind="stable")
        self._places = places[self.order]

    def ranges(self, keys: Sequence[Ids], solutions: Solutions) -> tuple[Ids, Ids]:
        """Of each solution, where in ``order`` the rows begin that it may concern, and how many there are."""
        code = np.zeros(len(solutions), dtype=np.int64)
        known: Mask = np.ones(len(solutions), dtype=np.bool_)
        for column, (values, codes) in zip(keys, self._known, strict=True):
            place, same = _find(values, column)
            code, found = _find(codes, code * len(values) + place)
            known &= same & found
        begin, end = code * self._stride, (code + 1) * self._stride
        if self._bound is not None:
            numbers, kinds = self._dictionary.numbers(solutions.column(self._bound.variable))
            is_number = kinds != NO_NUMBER
            # What is equal as a double may be different.
            first, last = (np.searchsorted(self._values, numbers, side=side) for side in ("left", "right"))
            symbol, start = self._bound.symbol, begin
            if not symbol.startswith(">"):
                begin = np.where(is_number, start + first, begin)
            if not symbol.startswith("<"):
                end = np.where(is_number, start + last, end)
        first = np.searchsorted(self._places, begin)
        count = np.searchsorted(self._places, end) - first
        return first, np.where(known, np.maximum(count, 0), 0)


def _find(values: Ids, wanted: Ids) -> tuple[Ids, Mask]:
    """Where each wanted value stands among sorted ones, and whether it does."""
    if not len(values):
        return np.zeros(len(wanted), dtype=np.int64), np.zeros(len(wanted), dtype=np.bool_)
    place = np.minimum(np.searchsorted(values, wanted), len(values) - 1)
    return place, values[place] == wanted


class TableGpm:
    """Evaluates a GPM of a group: its solutions for every row of the table.

    The graph pattern is evaluated once, the constants as variables; then what a row has must be equal, and
    the FILTERs must hold that speak of parameters.
    """

    def __init__(
        self,
        part: GpmPart,
        template: Template,
        table: Parameters,
        dictionary: Dictionary,
        kb: KnowledgeBase,
        streams: frozenset[int],
        sharing: Sharing,
    ) -> None:
        parameters = {name for name, _ in template.parameters}
        core: list[Pattern] = []
        asked: list[Expression] = []
        self._members: tuple[str, ...] = ()
        for element in part.stateless.elements:
            if isinstance(element, Values) and element.variables[:1] == (Var(template.member),):
                self._members = tuple(variable.name for variable in element.variables)
            elif isinstance(element, Filter) and parameters & mentioned(element.condition):
                parts = list(conjuncts(element.condition))
                asked += [c for c in parts if parameters & mentioned(c)]
                own = [c for c in parts if not parameters & mentioned(c)]
                core += [Filter(c, span=element.span) for c in own]
            else:
                core.append(element)
        #: What an event must have, whoever asks: the pattern with variables for constants.
        self.core = type(part.stateless)(tuple(core), span=part.stateless.span)
        gpm = type(part.gpm)(
            part.gpm.name, part.gpm.streams, self.core, part.gpm.time, part.gpm.graph, span=part.gpm.span
        )
        self._evaluator = GpmEvaluator(gpm, self.core, dictionary, kb, streams, sharing)
        self.exists = self._evaluator.exists
        bound = variables(self.core)
        self._joined = tuple(sorted(parameters & bound))
        self._dictionary = dictionary
        self._table = table
        self._filters = [(c, ColumnFilter(c, dictionary)) for c in asked]
        self._equal = [pair for c in asked if (pair := _equal(c, bound - parameters, parameters))]
        bounds = (_bound(c, bound - parameters, parameters) for c in asked)
        # Few rows have an equal number.
        self._bounds = sorted((b for b in bounds if b is not None), key=lambda b: b.symbol != "=")
        self._index: _Index | None = None
        self._keys: list[tuple[str, str]] = []
        self._left: list[ColumnFilter] = []
        self._version = -1

    def evaluate(self, batch: EventBatch) -> tuple[Solutions, Ids]:
        """The solutions of every event, once for each row of the table that they are for; and its number."""
        return self._join(self._evaluator.evaluate(batch))

    def _prepare(self) -> _Index:
        """The index over the table as it is now."""
        table = self._table
        if self._index is None or self._version != table.version:
            equal = [(c, v, p) for c, v, p in self._equal if table.is_same_term(p)]
            self._keys = [(name, name) for name in self._joined] + [(v, p) for _, v, p in equal]
            decided = {id(c) for c, _, _ in equal}
            self._left = [test for c, test in self._filters if id(c) not in decided]
            keys = [parameter for _, parameter in self._keys]
            self._index = _Index(table, keys, self._bounds, self._dictionary)
            self._version = table.version
        return self._index

    def _join(self, found: Solutions) -> tuple[Solutions, Ids]:
        index, table = self._prepare(), self._table
        first, count = index.ranges([found.column(variable) for variable, _ in self._keys], found)
        rows, places = spread(first, count)
        chosen = index.order[places]
        joined = found.take(rows)
        asked = (name for test in self._left for name in test.names if name in table.names)
        needed = {*self._members, *asked}
        columns = {**joined.columns, **{name: table.column(name)[chosen] for name in needed}}
        joined = Solutions(len(rows), joined.event, columns)
        if self._left and len(rows):
            kept = np.flatnonzero(np.logical_and.reduce([test(joined, {}) for test in self._left]))
            joined, chosen = joined.take(kept), chosen[kept]
        hidden = [n for n in joined.columns if n in table.names and n not in self._members]
        return joined.drop(hidden), table.numbers[chosen]


def _equal(
    condition: Expression, bound: frozenset[str], parameters: set[str]
) -> tuple[Expression, str, str] | None:
    """The variable and the parameter that a condition says are equal."""
    match condition:
        case Binary("=", Var(left), Var(right)):
            if left in bound and right in parameters:
                return condition, left, right
            if right in bound and left in parameters:
                return condition, right, left
    return None


def _bound(condition: Expression, bound: frozenset[str], parameters: set[str]) -> _Bound | None:
    """The order between a variable and a parameter that a condition asks for."""
    match condition:
        case Binary(str(symbol), Var(left), Var(right)) if symbol in _FLIPPED:
            if left in bound and right in parameters:
                return _Bound(left, symbol, right)
            if right in bound and left in parameters:
                return _Bound(right, _FLIPPED[symbol], left)
    return None


def _is_string(term: Term) -> bool:
    return isinstance(term, Literal) and term.language is None and term.datatype == _STRING
