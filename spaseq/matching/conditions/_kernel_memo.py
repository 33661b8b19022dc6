"""Values of expressions that the tables cannot compute: asked once for all values of their variables.

An open hash table of answers, by the number of an expression and the ids of its values. What is not among
them is written down as a question; the caller answers all of them, and the same decisions are made again.
"""

from __future__ import annotations

from typing import Final

from spaseq._jit import kernel, part
from spaseq.matching.conditions._kernel_values import (
    DEEPEST,
    MEMO,
    MEMO_MASK,
    MISSING,
    MOST_WONDERS,
    NOTHING,
    WONDERED,
    WONDERS,
    Ints,
    pointer,
)

#: An expression is of at most so many values.
MEMO_LIMIT: Final = 6
#: Instead of the id of a value: an earlier iteration is missing.
TOO_EARLY: Final = -1
# Columns of answers and of questions.
ANSWER: Final = 0  # an id; 0: none
EXPRESSION: Final = 1
VALUES: Final = 2
MEMO_SIZE: Final = VALUES + MEMO_LIMIT

_MULTIPLIER: Final = 0x2545F4914F6CDD1D


@part
def _place(m: Ints, table: int, mask: int, asked: Ints, question: int) -> int:
    """Where the answer to a question, which stands at ``asked[question]``, is or belongs."""
    code = 1
    for j in range(EXPRESSION, MEMO_SIZE):
        code = (code ^ asked[question + j]) * _MULTIPLIER
        code ^= code >> 29
    at = code & mask
    while True:
        known = table + at * MEMO_SIZE
        if m[known + ANSWER] == 0:
            return known
        same = True
        for j in range(EXPRESSION, MEMO_SIZE):
            if m[known + j] != asked[question + j]:
                same = False
        if same:
            return known
        at = (at + 1) & mask


@part
def look_up(m: Ints, stack: int, number: int, count: int, top: int) -> int:
    """The id of an expression's value, of which ``count`` values begin at ``top``; 0 if nothing knows it."""
    room = m[stack + MOST_WONDERS]
    asked = min(m[stack + WONDERS], room)
    # There is room for one question more.
    question = m[stack + WONDERED] + asked * MEMO_SIZE
    m[question + ANSWER] = 0
    m[question + EXPRESSION] = number
    for j in range(MEMO_LIMIT):
        identifier = 0
        kind = m[stack + top + j] if j < count else NOTHING
        if kind == MISSING:
            identifier = TOO_EARLY
        elif kind != NOTHING:
            identifier = m[stack + DEEPEST + top + j]
            if identifier <= 0:
                return 0  # of several values, or no term
        m[question + VALUES + j] = identifier
    known = _place(m, m[stack + MEMO], m[stack + MEMO_MASK], m, question)
    if m[known + ANSWER] != 0:
        return int(m[known + ANSWER])
    m[stack + WONDERS] = asked + 1
    return 0


@kernel
def learn(ints: Ints, table: int, mask: int, answered: Ints) -> None:
    """Enters questions with their answers, one after the other; there is room for them."""
    m: Ints = pointer(ints)
    new: Ints = pointer(answered)
    for question in range(0, len(answered), MEMO_SIZE):
        known = _place(m, table, mask, new, question)
        for j in range(MEMO_SIZE):
            m[known + j] = new[question + j]
