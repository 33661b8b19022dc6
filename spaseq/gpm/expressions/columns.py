"""Expressions over columns: vectorized calls first, each as a column, then the rest by distinct values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from spaseq.events import Ids
from spaseq.gpm.expressions.compiled import ExpressionError, Solution, compile_value
from spaseq.gpm.expressions.own import OwnCall
from spaseq.gpm.expressions.walk import volatile
from spaseq.gpm.spectra.solutions import Solutions, group_codes, per_distinct
from spaseq.language.rewrite import substitute
from spaseq.language.scope import mentioned
from spaseq.language.syntax import Constant, Expression, FunctionCall, Var
from spaseq.terms.dictionary import UNBOUND, Dictionary


class VectorizedCalls:
    """The vectorized calls of an expression without EXISTS, computed as columns.

    ``rest``: the expression with a variable in place of each, that has the value of its call.
    """

    def __init__(self, expression: Expression, dictionary: Dictionary) -> None:
        self._dictionary = dictionary
        self._columns: list[tuple[str, _CallColumn]] = []
        self.rest = substitute(expression, self._instead)

    def _instead(self, part: Expression) -> Expression | None:
        match part:
            case FunctionCall(function, arguments, own=own) if (
                own is not None and own.vectorized and arguments
            ):
                name = f" call {len(self._columns)}"
                column = _CallColumn(
                    OwnCall(function.value, own, self._dictionary),
                    tuple(ColumnValue(argument, self._dictionary) for argument in arguments),
                    own.deterministic,
                )
                self._columns.append((name, column))
                return Var(name)
        return None

    def extended(self, solutions: Solutions, context: Solution) -> Solutions:
        """The solutions with the columns of the calls. ``context`` binds variables that have no column."""
        for name, column in self._columns:
            solutions = solutions.extend(name, column(solutions, context))
        return solutions


class ColumnValue:
    """An expression without EXISTS, compiled for columns: the ids of its values, UNBOUND for an error."""

    def __init__(self, expression: Expression, dictionary: Dictionary) -> None:
        self._calls = VectorizedCalls(expression, dictionary)
        self._rest = self._calls.rest
        self._names = sorted(mentioned(self._rest))
        self._repeatable = not volatile(self._rest)
        self._value = value_or_unbound(compile_value(self._rest, dictionary))
        self._constant = dictionary.pin(self._rest.term) if isinstance(self._rest, Constant) else UNBOUND
        self._spending = dictionary.spending

    def __call__(self, solutions: Solutions, context: Solution) -> Ids:
        """The ids of all rows. ``context`` binds variables that have no column."""
        solutions = self._calls.extended(solutions, context)
        match self._rest:
            case Var(name) if name in solutions.columns:
                return solutions.columns[name]
            case Var(name):
                return np.full(len(solutions), context.get(name, UNBOUND), dtype=np.int64)
            case Constant():
                return np.full(len(solutions), self._constant, dtype=np.int64)
            case _:
                return per_distinct(
                    solutions,
                    self._names,
                    self._value,
                    context,
                    repeatable=self._repeatable,
                    spending=self._spending,
                )


@dataclass(frozen=True, slots=True)
class _CallColumn:
    """A vectorized call: for all distinct arguments; for those of every row unless ``repeatable``."""

    call: OwnCall
    arguments: tuple[ColumnValue, ...]
    repeatable: bool

    def __call__(self, solutions: Solutions, context: Solution) -> Ids:
        columns = [argument(solutions, context) for argument in self.arguments]
        found = np.full(len(solutions), UNBOUND, dtype=np.int64)
        rows = np.flatnonzero(np.logical_and.reduce([column != UNBOUND for column in columns]))
        if not len(rows):
            return found
        given = [column[rows] for column in columns]
        if not self.repeatable:
            found[rows] = self.call.ids(given)
            return found
        _, first, inverse = np.unique(group_codes(given), return_index=True, return_inverse=True)
        found[rows] = self.call.ids([column[first] for column in given])[inverse]
        return found


def value_or_unbound(evaluate: Callable[[Solution], int]) -> Callable[[Solution], int]:
    """The same with UNBOUND instead of an error."""

    def value(solution: Solution) -> int:
        try:
            return evaluate(solution)
        except ExpressionError:
            return UNBOUND

    return value
