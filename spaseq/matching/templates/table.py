"""A GPM's solutions joined with the parameters of a query set.

The cost depends on the solutions and on the queries they concern, not on the number of queries: equal
constants are found by hash, one bound by a sorted column.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from spaseq.automaton.pattern import GpmPart
from spaseq.events import EventBatch, Ids
from spaseq.language.scope import conjuncts, mentioned, variables
from spaseq.language.syntax import Binary, Expression, Filter, Pattern, Values, Var
from spaseq.matching.templates.form import QueryTemplate
from spaseq.matching.templates.parameters import OfOne, ParameterRows, Parameters, can_be_asked
from spaseq.patterns.evaluator import GpmEvaluator
from spaseq.patterns.expressions.columns import ColumnFilter
from spaseq.patterns.kb import KnowledgeBase
from spaseq.patterns.sharing import Sharing
from spaseq.patterns.spectra.lookup import spread
from spaseq.patterns.spectra.solutions import Mask, Solutions
from spaseq.terms.dictionary import Dictionary
from spaseq.terms.values import NO_NUMBER

Floats = npt.NDArray[np.float64]

#: A table of the numbers' places is used if it has at most this many entries for each number.
_SPARSE: Final = 64
_FLIPPED: Final = {"=": "=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}


@dataclass(frozen=True, slots=True)
class _BoundParameters:
    """``variable symbol parameter``, an order or equality."""

    variable: str
    symbol: str
    parameter: str


class _Sorted:
    """Sorted numbers, none of them negative, among which other numbers are searched."""

    def __init__(self, values: Ids) -> None:
        self._values = values
        # For each number up to the greatest, how many are smaller; only if the numbers are small.
        self._before: Ids | None = None
        most = int(values[-1]) if len(values) else 0
        if most < _SPARSE * (len(values) + _SPARSE):
            self._before = np.searchsorted(values, np.arange(most + 2))

    def __len__(self) -> int:
        return len(self._values)

    def before(self, wanted: Ids) -> Ids:
        """Return, for each number ``wanted``, how many of the sorted numbers are less. No number may be
        negative.
        """
        if self._before is None:
            return np.searchsorted(self._values, wanted)
        return self._before[np.minimum(wanted, len(self._before) - 1)]

    def find(self, wanted: Ids) -> tuple[Ids, Mask]:
        """Return the place of each number ``wanted`` among the sorted numbers, and whether it is one of
        them.
        """
        if not len(self._values):
            return np.zeros(len(wanted), dtype=np.int64), np.zeros(len(wanted), dtype=np.bool_)
        place = np.minimum(self.before(wanted), len(self._values) - 1)
        return place, self._values[place] == wanted


class _Index:
    """The rows of a table sorted by some columns, and then by one number."""

    def __init__(
        self,
        table: Parameters,
        keys: Sequence[str],
        bounds: Iterable[_BoundParameters],
        dictionary: Dictionary,
    ) -> None:
        """``bounds``: ``order`` uses the first one for which all rows have a number."""
        self._dictionary = dictionary
        self._known: list[tuple[_Sorted, _Sorted | None]] = []
        code = np.zeros(len(table), dtype=np.int64)
        for key in keys:
            values, places = np.unique(table.column(key), return_inverse=True)
            if not self._known:
                code = places
                self._known.append((_Sorted(values), None))
                continue
            codes, code = np.unique(code * len(values) + places, return_inverse=True)
            self._known.append((_Sorted(values), _Sorted(codes)))
        self._bound: _BoundParameters | None = None
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
        self._places = _Sorted(places[self.order])

    def ranges(self, keys: Sequence[Ids], solutions: Solutions) -> tuple[Ids, Ids]:
        """Return, for each solution, where in ``order`` the rows that it may concern begin, and how many
        there are.
        """
        code = np.zeros(len(solutions), dtype=np.int64)
        known: Mask = np.ones(len(solutions), dtype=np.bool_)
        for column, (values, codes) in zip(keys, self._known, strict=True):
            place, same = values.find(column)
            known &= same
            if codes is None:
                code = place
            else:
                code, same = codes.find(code * len(values) + place)
                known &= same
        begin, end = code * self._stride, (code + 1) * self._stride
        if self._bound is not None:
            numbers, kinds = self._dictionary.numbers(solutions.column(self._bound.variable))
            is_number = kinds != NO_NUMBER
            # Terms of equal doubles may differ.
            symbol, start = self._bound.symbol, begin
            if not symbol.startswith(">"):
                first = np.searchsorted(self._values, numbers, side="left")
                begin = np.where(is_number, start + first, begin)
            if not symbol.startswith("<"):
                last = np.searchsorted(self._values, numbers, side="right")
                end = np.where(is_number, start + last, end)
        first = self._places.before(begin)
        count = self._places.before(end) - first
        return first, np.where(known, np.maximum(count, 0), 0)


class TableGpm:
    """Evaluates a GPM of a query set: its solutions for every row of the table.

    The graph pattern is evaluated once, with the constants as variables. Then a row's constants must be
    equal, and the FILTERs about parameters must hold.
    """

    def __init__(
        self,
        part: GpmPart,
        template: QueryTemplate,
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
        #: The triples that an event must have for any row: the pattern with variables for constants.
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
        equal = [pair for c in asked if (pair := _equal(c, bound - parameters, parameters))]
        equal = [(c, v, p) for c, v, p in equal if table.is_same_term(p)]
        # Pairs of a solution's variable and a row's parameter that are equal, and the other conditions on
        # both.
        self._keys = [(name, name) for name in self._joined] + [(v, p) for _, v, p in equal]
        decided = {id(c) for c, _, _ in equal}
        self._asked = [c for c in asked if id(c) not in decided]
        self._left = [ColumnFilter(c, dictionary) for c in self._asked]
        bounds = (_bound(c, bound - parameters, parameters) for c in asked)
        # Few rows have an equal number.
        self._bounds = sorted((b for b in bounds if b is not None), key=lambda b: b.symbol != "=")
        self._index: _Index | None = None
        self._version = -1

    def evaluate(self, batch: EventBatch) -> tuple[Solutions, Ids]:
        """Return the solutions of every event, once for each row of the table that they match; and the rows'
        numbers.
        """
        return self._join(self._evaluator.evaluate(batch))

    @property
    def streams(self) -> frozenset[int] | None:
        """The ids of the streams it is evaluated on, None for any."""
        return self._evaluator.streams

    def of_one(self) -> OfOne | None:
        """Return its solutions for single events; None if these cannot be evaluated."""
        if not can_be_asked(self._evaluator, self._asked):
            return None
        asked = (name for test in self._left for name in test.names if name in self._table.names)
        others = [*dict.fromkeys(name for name in (*self._members, *asked) if name not in self._joined)]
        return OfOne(
            self._evaluator,
            lambda names: ParameterRows(self._table, self._keys, names, others),
            self._asked,
            self._dictionary,
        )

    def _prepare(self) -> _Index:
        """Return the index of the current table."""
        table = self._table
        if self._index is None or self._version != table.version:
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
        return joined, table.numbers[chosen]


def _equal(
    condition: Expression, bound: frozenset[str], parameters: set[str]
) -> tuple[Expression, str, str] | None:
    """Return the variable and the parameter that a condition requires to be equal."""
    match condition:
        case Binary("=", Var(left), Var(right)):
            if left in bound and right in parameters:
                return condition, left, right
            if right in bound and left in parameters:
                return condition, right, left
    return None


def _bound(condition: Expression, bound: frozenset[str], parameters: set[str]) -> _BoundParameters | None:
    """Return the order between a variable and a parameter that a condition requires."""
    match condition:
        case Binary(str(symbol), Var(left), Var(right)) if symbol in _FLIPPED:
            if left in bound and right in parameters:
                return _BoundParameters(left, symbol, right)
            if right in bound and left in parameters:
                return _BoundParameters(right, _FLIPPED[symbol], left)
    return None
