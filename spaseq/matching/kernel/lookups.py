"""The values of expressions that the machine does not compute itself, by those that they are of."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from spaseq.gpm.expressions import ExpressionError, compile_value
from spaseq.matching.kernel.conditions import Lookup
from spaseq.matching.kernel.numbers import ERROR
from spaseq.terms import Dictionary

Ints = npt.NDArray[np.int64]


class Lookups:
    """Answers the kernel's questions, whose rows are as ``_kernel_memo`` has them."""

    def __init__(self, lookups: Sequence[Lookup], dictionary: Dictionary) -> None:
        self._expressions = [(one.names, compile_value(one.expression, dictionary)) for one in lookups]
        self._error = dictionary.pin(ERROR)

    def answered(self, questions: Ints) -> Ints:
        """The questions, each once, with the ids of their answers."""
        asked = set(map(tuple, questions.tolist()))
        return np.array([(self._answer(*of), *of) for _, *of in asked], dtype=np.int64)

    def _answer(self, number: int, *ids: int) -> int:
        names, evaluate = self._expressions[number]
        try:
            return evaluate({name: term for name, term in zip(names, ids, strict=False) if term})
        except ExpressionError:
            return self._error
