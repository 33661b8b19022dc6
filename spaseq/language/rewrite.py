"""Replace parts of an expression."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from spaseq.language.syntax import Binary, Call, Expression, FunctionCall, In, Unary


def substitute(expression: Expression, replacement: Callable[[Expression], Expression | None]) -> Expression:
    """Return the expression with every part replaced for which ``replacement`` returns an expression.

    Outermost parts come first. The inside of a replaced part, or of an EXISTS, is not visited.
    """
    instead = replacement(expression)
    if instead is not None:
        return instead

    def inner(part: Expression) -> Expression:
        return substitute(part, replacement)

    match expression:
        case Unary(operand=operand):
            return replace(expression, operand=inner(operand))
        case Binary(left=left, right=right):
            return replace(expression, left=inner(left), right=inner(right))
        case In(operand=operand, items=items):
            return replace(expression, operand=inner(operand), items=tuple(map(inner, items)))
        case Call(arguments=arguments) | FunctionCall(arguments=arguments):
            return replace(expression, arguments=tuple(map(inner, arguments)))
        case _:
            return expression
