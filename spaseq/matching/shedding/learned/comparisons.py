"""Conditions that compare what a partial match has with what an event brings, as programs."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import Final, NamedTuple

from spaseq.matching.conditions.postfix import Step

Code = tuple[Step, ...]

#: Instructions that take one value, and two, and leave one.
UNARY: Final = frozenset({"MINUS", "ABS", "FUNCTION"})
BINARY: Final = frozenset({"ADD", "SUBTRACT", "MULTIPLY", "DIVIDE", "AVERAGE", "FUNCTION_2"})
_FIRST: Final = frozenset({"PUSH", "CONSTANT", "AGGREGATE"})
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
        left, right = (side.code for side in sides)
        sign = str(code[-1].what)
        for own, other, read in ((left, right, sign), (right, left, _FLIPPED[sign])):
            if own in features and all(_is_brought(step, brought) for step in other):
                return read, other
    return None, ()


def _is_brought(step: Step, brought: Container[str]) -> bool:
    return step.op not in _FIRST or step.op == "CONSTANT" or (step.op == "PUSH" and step.what in brought)


def balanced(code: Sequence[Step], is_own: Callable[[Code], bool]) -> Code:
    """A condition, or several, whose comparisons of sums have what a partial match has on the left side.

    Of ``z + x > y + 3``, where ``x`` and ``y`` are its own, it is ``x - y`` that tells partial matches apart,
    and neither of them alone does. By numbers this is the same condition, but for rounding: to learn by.
    ``is_own``: whether a term is the partial match's.

    >>> x, y, z, three = Step("PUSH", "x"), Step("PUSH", "y"), Step("PUSH", "z"), Step("CONSTANT", 3)
    >>> add, less = Step("ADD"), Step("COMPARE", ">")
    >>> found = balanced([z, x, add, y, three, add, less], {(x,), (y,)}.__contains__)
    >>> [step.what or step.op for step in found]
    ['x', 'y', 'SUBTRACT', 3, 'z', 'SUBTRACT', '>']
    """
    if any(step.op not in _FIRST | UNARY | BINARY | {"COMPARE"} for step in code):
        return tuple(code)
    out, begin = list[Step](), 0
    for i, step in enumerate(code):
        if step.op == "COMPARE":
            out += _balanced(code[begin : i + 1], is_own)
            begin = i + 1
    return (*out, *code[begin:])


class _Sum(NamedTuple):
    """A program, and the programs that it is the sum of: each is added, or else taken from it."""

    code: Code
    terms: tuple[tuple[bool, Code], ...]


def _balanced(code: Sequence[Step], is_own: Callable[[Code], bool]) -> Sequence[Step]:
    sides = _sides(code)
    if sides is None:
        return code
    left, right = sides
    terms = (*left.terms, *_negative(right.terms))
    own = [term for term in terms if is_own(term[1])]
    others = _negative(tuple(term for term in terms if not is_own(term[1])))
    if not own or not others:
        return code
    sign = code[-1]
    if not any(is_added for is_added, _ in own):
        own, others, sign = (
            list(_negative(own)),
            _negative(others),
            sign._replace(what=_FLIPPED[str(sign.what)]),
        )
    return [*_added(own), *_added(others), sign]


def _negative(terms: Sequence[tuple[bool, Code]]) -> tuple[tuple[bool, Code], ...]:
    return tuple((not is_added, code) for is_added, code in terms)


def _added(terms: Sequence[tuple[bool, Code]]) -> list[Step]:
    """The program of a sum."""
    (is_added, first), *rest = sorted(terms, key=lambda term: not term[0])
    code = [*first] if is_added else [*first, Step("MINUS")]
    for is_added, term in rest:
        code += [*term, Step("ADD" if is_added else "SUBTRACT")]
    return code


def _sides(code: Sequence[Step]) -> tuple[_Sum, _Sum] | None:
    """The operands of a program that is one ordering comparison of numbers, calculated without branches."""
    if not code or code[-1].op != "COMPARE" or code[-1].what not in _FLIPPED:
        return None
    stack: list[_Sum] = []
    for step in code[:-1]:
        size = 0 if step.op in _FIRST else 1 if step.op in UNARY else 2
        if (size == 2 and step.op not in BINARY) or len(stack) < size:
            return None
        taken = [stack.pop() for _ in range(size)][::-1]
        whole = (*(s for part in taken for s in part.code), step)
        stack.append(_Sum(whole, _terms(step, whole, [part.terms for part in taken])))
    return (stack[0], stack[1]) if len(stack) == 2 else None


def _terms(
    step: Step, whole: Code, of: Sequence[tuple[tuple[bool, Code], ...]]
) -> tuple[tuple[bool, Code], ...]:
    """What the value of a program is the sum of; ``of``: the terms of what its last step takes."""
    match step.op:
        case "ADD":
            return (*of[0], *of[1])
        case "SUBTRACT":
            return (*of[0], *_negative(of[1]))
        case "MINUS":
            return _negative(of[0])
        case _:
            return ((True, whole),)
