"""Conditions that compare what a partial match has with what an event brings, as programs."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Final

from spaseq.matching.conditions.postfix import Step

Code = tuple[Step, ...]

#: Instructions that take one value, and two, and leave one.
UNARY: Final = frozenset({"MINUS", "ABS", "FUNCTION"})
BINARY: Final = frozenset({"ADD", "SUBTRACT", "MULTIPLY", "DIVIDE", "AVERAGE", "FUNCTION_2"})
#: Each sign read from right to left.
_FLIPPED: Final = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}


def compared(
    code: Sequence[Step], features: Sequence[Code], brought: Container[str]
) -> tuple[str | None, Code]:
    """If a condition is but that: the sign between a feature and a value of an event, and its program.

    ``features`` are programs, too; ``brought`` are the variables of the event.

    >>> x, y, less = Step("PUSH", "x"), Step("PUSH", "y"), Step("COMPARE", "<")
    >>> compared([x, y, Step("MINUS"), less], [(x,)], {"y"}) == ("<", (y, Step("MINUS")))
    True
    >>> compared([x, y, less], [(y,)], {"x"}) == (">", (x,))
    True
    >>> compared([x, y, less], [(x,)], {})
    (None, ())
    """
    sides = _sides(code)
    if sides is not None:
        left, right = sides
        sign = str(code[-1].what)
        for own, other, read in ((left, right, sign), (right, left, _FLIPPED[sign])):
            if own in features and all(step.op != "PUSH" or step.what in brought for step in other):
                return read, other
    return None, ()


def _sides(code: Sequence[Step]) -> tuple[Code, Code] | None:
    """The operands of a program that is one ordering comparison of numbers, calculated without branches."""
    if not code or code[-1].op != "COMPARE" or code[-1].what not in _FLIPPED:
        return None
    stack: list[Code] = []
    for step in code[:-1]:
        size = 0 if step.op in ("PUSH", "CONSTANT") else 1 if step.op in UNARY else 2
        if (size == 2 and step.op not in BINARY) or len(stack) < size:
            return None
        taken = [stack.pop() for _ in range(size)][::-1]
        stack.append((*(s for part in taken for s in part), step))
    return (stack[0], stack[1]) if len(stack) == 2 else None
