"""Why an expression has no value: for want of an iteration or of a variable, or else (semantics, 4.6)."""

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


class Reason(Enum):
    """Why an expression has no value.

    ``EARLY``: only because PREV has no such iteration. ``UNBOUND``: only because of that, or of unbound
    variables.
    """

    EARLY = auto()
    UNBOUND = auto()
    OTHER = auto()


_Why = Callable[[Solution, frozenset[str]], Reason | None]


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
    why = compile_reason(expression, dictionary, exists)
    return lambda solution, absent: why(solution, absent) is Reason.EARLY


def compile_reason(
    expression: Expression, dictionary: Dictionary, exists: ExistsCallback | None = None
) -> _Why:
    """Return a function that says why an expression errs, None if it does not.

    It takes a solution, and the names of the variables in it that stand for a PREV without an iteration.
    """
    evaluate = compile_value(expression, dictionary, exists)
    inner = [compile_reason(operand, dictionary, exists) for operand in operands(expression)]
    name = expression.name if isinstance(expression, Var) else None
    branches = isinstance(expression, Call) and expression.name == "IF"
    condition = compile_filter(operands(expression)[0], dictionary, exists) if branches else None

    def why(solution: Solution, absent: frozenset[str]) -> Reason | None:
        if name in absent:
            return Reason.EARLY
        try:
            evaluate(solution)
        except ExpressionError:
            pass
        else:
            return None
        if name is not None:
            return Reason.UNBOUND
        asked = inner
        if condition is not None and inner[0](solution, absent) is None:
            asked = inner[1:2] if condition(solution) else inner[2:]
        # An operator errs because an operand does; where none does, the operator is the reason.
        reasons = {reason for operand in asked if (reason := operand(solution, absent)) is not None}
        if not reasons or Reason.OTHER in reasons:
            return Reason.OTHER
        return Reason.UNBOUND if Reason.UNBOUND in reasons else Reason.EARLY

    return why
