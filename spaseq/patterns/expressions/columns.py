"""Expressions and filters over columns: vectorized calls, numbers as arrays, the rest by distinct values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from spaseq.events import Ids
from spaseq.language.rewrite import substitute
from spaseq.language.scope import mentioned
from spaseq.language.syntax import Binary, Constant, Expression, FunctionCall, Var
from spaseq.patterns.expressions import _kernel_math as k
from spaseq.patterns.expressions.comparison import NUMERIC
from spaseq.patterns.expressions.compiled import ExpressionError, Solution, compile_filter, compile_value
from spaseq.patterns.expressions.extensions import OwnCall
from spaseq.patterns.expressions.walk import volatile
from spaseq.patterns.spectra.solutions import Mask, Solutions, group_codes, per_distinct
from spaseq.terms.dictionary import UNBOUND, Dictionary
from spaseq.terms.values import EXACT_ORDER, IS_DOUBLE, NO_NUMBER

# Expressions over columns: vectorized calls first, each as a column, then the rest by distinct values.


class VectorizedCalls:
    """The vectorized calls of an expression without EXISTS, computed as columns.

    ``rest``: the expression with each call replaced by a variable that has the call's value.
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
        """Return the solutions with the columns of the calls. ``context`` binds variables that have no
        column.
        """
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
        """Return the ids of all rows. ``context`` binds variables that have no column."""
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
    """A vectorized call, computed once for equal arguments; for every row unless it is ``repeatable``."""

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
    """Return the same function, with UNBOUND instead of an error."""

    def value(solution: Solution) -> int:
        try:
            return evaluate(solution)
        except ExpressionError:
            return UNBOUND

    return value


# Filters over columns: comparisons of numbers as arrays, everything else once per distinct values.


class ColumnFilter:
    """A filter without EXISTS, compiled for columns."""

    def __init__(self, expression: Expression, dictionary: Dictionary) -> None:
        self._dictionary = dictionary
        self._calls = VectorizedCalls(expression, dictionary)
        #: The variables that the filter mentions.
        self.names = tuple(sorted(mentioned(expression)))
        self._expression = expression = self._calls.rest
        self._names = sorted(mentioned(expression))
        self._repeatable = not volatile(expression)
        self._comparison: tuple[str, str | int, str | int] | None = None
        match expression:
            case Binary(symbol, Var() | Constant() as left, Var() | Constant() as right) if symbol in NUMERIC:
                self._comparison = symbol, self._operand(left), self._operand(right)

    @cached_property
    def _test(self) -> Callable[[Solution], bool]:
        """The test of one row. A comparison that doubles decide for all rows never needs it."""
        return compile_filter(self._expression, self._dictionary)

    def _operand(self, expression: Var | Constant) -> str | int:
        if isinstance(expression, Var):
            return expression.name
        return self._dictionary.pin(expression.term)

    def __call__(self, solutions: Solutions, context: Solution) -> Mask:
        """Return which rows to keep. ``context`` binds variables that have no column."""
        solutions = self._calls.extended(solutions, context)
        if self._comparison is None:
            return self._one_by_one(solutions, context)
        symbol = self._comparison[0]
        left, right = (self._ids(operand, solutions, context) for operand in self._comparison[1:])
        all_decided: Mask = np.empty(len(solutions), dtype=np.bool_)
        if k.compare(k.SYMBOLS.index(symbol), left, right, *self._dictionary.by_id(), all_decided):
            return all_decided
        keep, decided = self._compare(symbol, left, right)
        if len(keep) != len(solutions):  # both sides are one value: the same for all rows
            keep, decided = (np.repeat(one, len(solutions)) for one in (keep, decided))
        if not decided.all():
            rest = np.flatnonzero(~decided)
            keep[rest] = self._one_by_one(solutions.take(rest), context)
        return keep

    def _ids(self, operand: str | int, solutions: Solutions, context: Solution) -> Ids:
        if isinstance(operand, str):
            if operand in solutions.columns:
                return solutions.columns[operand]
            operand = context.get(operand, UNBOUND)
        return np.array([operand], dtype=np.int64)

    def _compare(self, symbol: str, left: Ids, right: Ids) -> tuple[Mask, Mask]:
        """Compare by doubles; return the result, and the rows for which it is exact.

        Doubles compare as XPath compares them with anything. Integers and decimals keep their order when
        rounded to doubles, so different doubles decide; equal ones do not, unless both are the same term. An
        operand of one value is repeated to the length of the other.
        """
        x, x_rank = self._dictionary.numbers(left)
        y, y_rank = self._dictionary.numbers(right)
        numbers = (x_rank != NO_NUMBER) & (y_rank != NO_NUMBER)
        promoted = (x_rank == IS_DOUBLE) | (y_rank == IS_DOUBLE)
        told_apart = (x_rank == EXACT_ORDER) & (y_rank == EXACT_ORDER) & ((x != y) | (left == right))
        answers: Mask = np.asarray(NUMERIC[symbol](x, y))
        return answers, numbers & (promoted | told_apart)

    def _one_by_one(self, solutions: Solutions, context: Solution) -> Mask:
        kept = per_distinct(
            solutions,
            self._names,
            self._test,
            context,
            repeatable=self._repeatable,
            spending=self._dictionary.spending,
        )
        return kept.astype(np.bool_)
