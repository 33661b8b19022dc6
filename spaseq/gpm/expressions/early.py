"""Why a filter errs: for want of an earlier iteration alone, or for something else (semantics, section 4)."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto

from spaseq.gpm.expressions.compiled import (
    ExistsCallback,
    ExpressionError,
    Solution,
    compile_filter,
    compile_value,
)
from spaseq.language.scope import operands
from spaseq.language.syntax import Call, Expression, Var
from spaseq.terms.dictionary import Dictionary


class _Reason(Enum):
    """Why an expression has no value."""

    EARLY = auto()
    OTHER = auto()


_Why = Callable[[Solution, frozenset[str]], _Reason | None]


def errs_for_want_of(
    expression: Expression, dictionary: Dictionary, exists: ExistsCallback | None = None
) -> Callable[[Solution, frozenset[str]], bool]:
    """A function from a solution and names: whether the expression errs only since these have no value.

    >>> from pyoxigraph import Literal
    >>> from spaseq.language.syntax import Binary
    >>> errs = errs_for_want_of(Binary("+", Var("a"), Var("p")), d := Dictionary())
    >>> two = d.intern(Literal(2))
    >>> errs({"a": two}, frozenset("p")), errs({}, frozenset("p"))
    (True, False)
    """
    why = _compile(expression, dictionary, exists)
    return lambda solution, absent: why(solution, absent) is _Reason.EARLY


def _compile(expression: Expression, dictionary: Dictionary, exists: ExistsCallback | None) -> _Why:
    """A function that says why an expression errs, None if it does not."""
    evaluate = compile_value(expression, dictionary, exists)
    inner = [_compile(operand, dictionary, exists) for operand in operands(expression)]
    name = expression.name if isinstance(expression, Var) else None
    branches = isinstance(expression, Call) and expression.name == "IF"
    condition = compile_filter(operands(expression)[0], dictionary, exists) if branches else None

    def why(solution: Solution, absent: frozenset[str]) -> _Reason | None:
        if name in absent:
            return _Reason.EARLY
        try:
            evaluate(solution)
        except ExpressionError:
            pass
        else:
            return None
        asked = inner
        if condition is not None and inner[0](solution, absent) is None:
            asked = inner[1:2] if condition(solution) else inner[2:]
        # An operator errs because an operand does; where none does, the operator is the reason.
        reasons = {reason for operand in asked if (reason := operand(solution, absent)) is not None}
        return _Reason.EARLY if reasons == {_Reason.EARLY} else _Reason.OTHER

    return why
