"""The values of expressions that the machine does not compute itself, by those that they are of."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from spaseq.gpm.expressions.compiled import ExpressionError, compile_value
from spaseq.gpm.expressions.early import errs_for_want_of
from spaseq.matching.conditions import _kernel_memo as memo
from spaseq.matching.conditions.numbers import EARLY, ERROR
from spaseq.matching.conditions.postfix import Lookup
from spaseq.terms.dictionary import Dictionary

Ints = npt.NDArray[np.int64]


class Lookups:
    """Answers the kernel's questions, whose rows are as ``_kernel_memo`` has them."""

    def __init__(self, lookups: Sequence[Lookup], dictionary: Dictionary) -> None:
        self._expressions = [
            (
                one.names,
                compile_value(one.expression, dictionary),
                errs_for_want_of(one.expression, dictionary),
            )
            for one in lookups
        ]
        self._error, self._early = dictionary.pin(ERROR), dictionary.pin(EARLY)

    def answered(self, questions: Ints) -> Ints:
        """The questions, each once, with the ids of their answers."""
        asked = set(map(tuple, questions.tolist()))
        return np.array([(self._answer(*of), *of) for _, *of in asked], dtype=np.int64)

    def _answer(self, number: int, *ids: int) -> int:
        names, evaluate, errs_early = self._expressions[number]
        solution = {name: term for name, term in zip(names, ids, strict=False) if term > 0}
        try:
            return evaluate(solution)
        except ExpressionError:
            early = frozenset(name for name, term in zip(names, ids, strict=False) if term == memo.TOO_EARLY)
            return self._early if early and errs_early(solution, early) else self._error
