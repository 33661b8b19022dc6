"""The values of expressions that the machine does not compute itself, by those that they are of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spaseq.gpm.expressions.aggregates import errs_for_want_of
from spaseq.gpm.expressions.columns import VectorizedCalls
from spaseq.gpm.expressions.compiled import ExpressionError, Solution, compile_value
from spaseq.gpm.spectra.solutions import Solutions
from spaseq.matching.conditions import _kernel_memo as memo
from spaseq.matching.conditions.numbers import EARLY, ERROR
from spaseq.matching.conditions.postfix import Lookup
from spaseq.terms.dictionary import UNBOUND, Dictionary

Ints = npt.NDArray[np.int64]


class Lookups:
    """Answers the kernel's questions, whose rows are as ``_kernel_memo`` has them."""

    def __init__(self, lookups: Sequence[Lookup], dictionary: Dictionary) -> None:
        self._expressions = [_Asked.of(one, dictionary) for one in lookups]
        self._error, self._early = dictionary.pin(ERROR), dictionary.pin(EARLY)

    def answered(self, questions: Ints) -> Ints:
        """The questions, each once, with the ids of their answers."""
        asked = np.unique(questions, axis=0)
        for number in np.unique(asked[:, memo.EXPRESSION]).tolist():
            rows = np.flatnonzero(asked[:, memo.EXPRESSION] == number)
            asked[rows, memo.ANSWER] = self._answers(self._expressions[number], asked[rows, memo.VALUES :])
        return asked

    def _answers(self, asked: _Asked, ids: Ints) -> list[int]:
        columns = {name: np.maximum(ids[:, i], UNBOUND) for i, name in enumerate(asked.names)}
        solutions = asked.calls.extended(Solutions(len(ids), None, columns), {})
        return [
            self._answer(asked, solution, row)
            for solution, row in zip(solutions.by_row(), ids.tolist(), strict=True)
        ]

    def _answer(self, asked: _Asked, solution: Solution, ids: Sequence[int]) -> int:
        try:
            return asked.evaluate(solution)
        except ExpressionError:
            named = zip(asked.names, ids, strict=False)
            early = frozenset(name for name, term in named if term == memo.TOO_EARLY)
            return self._early if early and asked.errs_early(solution, early) else self._error


@dataclass(frozen=True, slots=True)
class _Asked:
    """An expression that is looked up: its vectorized calls, and what computes the rest of a solution."""

    names: tuple[str, ...]
    calls: VectorizedCalls
    evaluate: Callable[[Solution], int]
    errs_early: Callable[[Solution, frozenset[str]], bool]

    @classmethod
    def of(cls, lookup: Lookup, dictionary: Dictionary) -> _Asked:
        calls = VectorizedCalls(lookup.expression, dictionary)
        evaluate = compile_value(calls.rest, dictionary)
        return cls(lookup.names, calls, evaluate, errs_for_want_of(lookup.expression, dictionary))
