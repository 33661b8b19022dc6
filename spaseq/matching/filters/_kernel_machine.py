"""Conditions as data: a small postfix machine over term ids, a shortcut without a stack, and lookups."""

from __future__ import annotations

from typing import Final

from spaseq._jit import inlined, kernel, part, separate
from spaseq.matching.filters import batch
from spaseq.matching.filters._kernel_aggregates import aggregated, kind_of
from spaseq.matching.filters._kernel_arithmetic import (
    StackValue,
    absolute,
    applied,
    calculate,
    compare,
    either,
    error_of,
    is_exact_sum,
    is_whole,
    kind_of_truth,
    ordered,
    truth,
)
from spaseq.matching.filters._kernel_values import (
    ABS,
    ADD,
    AGGREGATE,
    AND,
    AVERAGE,
    BEYOND,
    BOOLEAN,
    BOUND,
    CALC,
    CHOOSE,
    CODE_SIZE,
    COMPARE,
    CONSTANT,
    DEEPEST,
    DISTANCE,
    DIVIDE,
    DOUBLE,
    EARLY,
    ERRED,
    FALSE,
    FAULT,
    FUNCTION,
    FUNCTION_2,
    IF_BOUND,
    IF_COMPLETED,
    INSTEAD,
    JUMP,
    KEEP,
    LONG,
    MANY,
    MEMO,
    MEMO_MASK,
    MINUS,
    MISSING,
    MOST_WONDERS,
    N_KLEENES,
    N_SLOTS,
    NODE,
    NOT,
    NOTHING,
    ONE,
    OR,
    PUSH,
    RELATE,
    SHORT,
    SLOTS,
    SUBTRACT,
    TEST,
    TRUE,
    UNKNOWN,
    UNLESS_FALSE,
    UNLESS_TRUE,
    WONDERED,
    WONDERS,
    Floats,
    Ints,
    RunMachine,
    pointer,
)
from spaseq.patterns.expressions._kernel_math import geodesic

# Values of expressions that the tables cannot compute: computed once for all values of their variables.
#
# An open hash table of answers, by the number of an expression and the ids of its values. A missing answer is
# noted as a question. The caller answers all questions, and the same decisions are made again.

#: The most values in an expression.
MEMO_LIMIT: Final = 6
#: In place of a value's id: an earlier iteration is missing.
TOO_EARLY: Final = -1
# Columns of answers and of questions.
ANSWER: Final = 0  # an id; 0: none
EXPRESSION: Final = 1
VALUES: Final = 2
MEMO_SIZE: Final = VALUES + MEMO_LIMIT

_MULTIPLIER: Final = 0x2545F4914F6CDD1D


@part
def _place(m: Ints, table: int, mask: int, asked: Ints, question: int) -> int:
    """Return where the answer to a question, which is at ``asked[question]``, is or belongs."""
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
    """Return the id of an expression's value for the ``count`` values at ``top``; 0 if it is unknown."""
    room = m[stack + MOST_WONDERS]
    asked = min(m[stack + WONDERS], room)
    # There is room for one more question.
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
                return 0  # several values, or no term
        m[question + VALUES + j] = identifier
    known = _place(m, m[stack + MEMO], m[stack + MEMO_MASK], m, question)
    if m[known + ANSWER] != 0:
        return int(m[known + ANSWER])
    m[stack + WONDERS] = asked + 1
    return 0


@kernel
def learn(ints: Ints, table: int, mask: int, answered: Ints) -> None:
    """Enter questions with their answers, one after the other; there must be room for them."""
    m: Ints = pointer(ints)
    new: Ints = pointer(answered)
    for question in range(0, len(answered), MEMO_SIZE):
        known = _place(m, table, mask, new, question)
        for j in range(MEMO_SIZE):
            m[known + j] = new[question + j]


# Comparisons of whole numbers, and of sums of two, for which doubles are exact: most conditions are such.
#
# They are decided without the stack, with the same result.

#: The condition is of another form, or its values are.
OTHER: Final = -3


@inlined
def id_of(m: Ints, w: int, slot: int, b: Ints, column: int, r: int) -> int:
    """Return the id of a variable: the event's, or else the run's."""
    if column >= 0:
        identifier = b[batch.column(b, column) + r]
        if identifier != 0:
            return int(identifier)
    return m[w + SLOTS + slot] if slot >= 0 else 0


@inlined
def _short(machine: RunMachine, pc: int, w: int, r: int) -> int:
    """Return the id that an instruction pushes if its term is a short number, else 0."""
    t = machine.t
    identifier = t[pc + 1] if t[pc] == CONSTANT else _variable(machine, pc, w, r)
    return identifier if identifier > 0 and machine.c[identifier] == SHORT else 0


@inlined
def _variable(machine: RunMachine, pc: int, w: int, r: int) -> int:
    """Return the id of an instruction's variable."""
    return id_of(machine.m, w, machine.t[pc + 2], machine.b, machine.t[pc + 3], r)


@inlined
def compared(machine: RunMachine, pc: int, end: int, w: int, r: int) -> tuple[int, int]:
    """Return the verdict of the condition at ``pc``, and where the next one begins; ``OTHER`` for other
    forms.
    """
    t, numbers = machine.t, machine.n
    second, third, fourth = pc + CODE_SIZE, pc + 2 * CODE_SIZE, pc + 3 * CODE_SIZE
    if fourth > end or t[second] > CONSTANT:
        return OTHER, pc
    first_id, second_id = _short(machine, pc, w, r), _short(machine, second, w, r)
    if first_id == 0 or second_id == 0:
        return OTHER, pc
    x, y = numbers[first_id], numbers[second_id]
    if t[third] == COMPARE:
        return ordered(t[third + 1], -1 if x < y else int(x > y)), fourth
    fifth = pc + 4 * CODE_SIZE
    if fifth + CODE_SIZE > end or t[fifth] != COMPARE:
        return OTHER, pc
    is_last = t[third] <= CONSTANT
    number, op = third if is_last else fourth, t[fourth] if is_last else t[third]
    if t[number] > CONSTANT or (op != ADD and op != SUBTRACT):
        return OTHER, pc
    third_id = _short(machine, number, w, r)
    z = numbers[third_id]
    if third_id == 0 or not (is_whole(x) and is_whole(y) and is_whole(z)):
        return OTHER, pc
    if is_last:
        y = y + z if op == ADD else y - z
        if not is_exact_sum(y):
            return OTHER, pc
    else:
        x, y = (x + y if op == ADD else x - y), z
        if not is_exact_sum(x):
            return OTHER, pc
    return ordered(t[fifth + 1], -1 if x < y else int(x > y)), fifth + CODE_SIZE


# Conditions as data: a small postfix machine over term ids.


@inlined
def _set(m: Ints, f: Floats, kinds: int, at: int, kind: int, identifier: int, x: float, e: float) -> None:
    """Write a value to a place of the stack."""
    m[kinds + at] = kind
    m[kinds + DEEPEST + at] = identifier
    f[1 + at] = x
    f[1 + DEEPEST + at] = e


@inlined
def _truth(m: Ints, f: Floats, kinds: int, at: int) -> int:
    return truth(m[kinds + at], f[1 + at], f[1 + DEEPEST + at])


@part
def _compared(m: Ints, f: Floats, kinds: int, at: int, op: int) -> int:
    """Return the comparison of two values of the stack, the first at ``at``."""
    return compare(op, _operand(m, f, kinds, at), _operand(m, f, kinds, at + 1))


@inlined
def _operand(m: Ints, f: Floats, kinds: int, at: int) -> StackValue:
    return StackValue(m[kinds + at], f[1 + at], f[1 + DEEPEST + at], m[kinds + DEEPEST + at])


@part
def _computed(m: Ints, f: Floats, kinds: int, at: int, op: int, a: int) -> None:
    """Replace the operands of an instruction on the stack, one or two, by its result."""
    xk, x, xe = m[kinds + at], f[1 + at], f[1 + DEEPEST + at]
    yk, y, ye = SHORT, 0.0, 0.0
    if op <= DIVIDE or op in (AVERAGE, FUNCTION_2):
        yk, y, ye = m[kinds + at + 1], f[2 + at], f[2 + DEEPEST + at]
    if op == AVERAGE and xk == CALC and yk == CALC and y == 0.0:
        kind, z, e = CALC, 0.0, 0.0
    elif op in (FUNCTION, FUNCTION_2):
        kind, z, e = applied(a, xk, x, xe, yk, y, ye)
    elif op == ABS:
        kind, z, e = absolute(xk, x, xe)
    elif op == MINUS:
        kind, z, e = xk, -x, error_of(xk, x, xe)
        if xk >= NODE:
            kind = NOTHING
        elif xk in (SHORT, LONG):
            kind = CALC
    else:
        kind, z, e = calculate(DIVIDE if op == AVERAGE else op, xk, x, xe, yk, y, ye)
    if kind == CALC and z == 0.0:
        z = 0.0  # exact arithmetic has a zero without a sign
    _set(m, f, kinds, at, kind, 0, z, e)


@part
def _distance(m: Ints, f: Floats, kinds: int, at: int) -> None:
    """Replace two longitudes and latitudes, exact doubles of points, by the metres between them.

    Values other than points are an error, unless one is missing for want of an earlier iteration, as in any
    call.
    """
    kind = DOUBLE
    are_points = True
    for i in range(at, at + 4):
        other = m[kinds + i]
        if other > NOTHING:
            are_points &= other == DOUBLE
        elif other == NOTHING or kind == DOUBLE or (other == BEYOND and kind == MISSING):
            kind = other
    if kind == DOUBLE and not are_points:
        kind = NOTHING
    metres = 0.0
    if kind == DOUBLE:
        metres = geodesic(f[1 + at], f[2 + at], f[3 + at], f[4 + at])
    _set(m, f, kinds, at, kind, 0, metres, 0.0)


@inlined
def holds(machine: RunMachine, kinds: int, start: int, end: int, w: int, sums: int, r: int) -> int:
    """Return whether all conditions of a program hold for a run and a row; ``ERRED`` if one errs before one
    fails.

    The stack: kinds and ids from ``m[kinds]`` on, numbers and errors in ``f``.
    """
    verdict, pc = OTHER, start
    if start < end and machine.t[start] <= CONSTANT:
        verdict, pc = compared(machine, start, end, w, r)
        if verdict == FALSE or (verdict != OTHER and pc == end):
            return verdict
    return by_stack(machine, kinds, pc, end, w, sums, r)


@separate
def by_stack(machine: RunMachine, kinds: int, start: int, end: int, w: int, sums: int, r: int) -> int:
    """Return what ``holds`` does, for conditions that need the stack."""
    t, m, f = machine.t, machine.m, machine.f
    unknown, top, pc = False, 0, start
    while pc < end:
        op = t[pc]
        if top == 0 and op <= CONSTANT:
            verdict, pc = compared(machine, pc, end, w, r)
            if verdict == FALSE:
                return FALSE
            if verdict != OTHER:
                continue
        if op in (COMPARE, TEST):
            if op == COMPARE:
                top -= 2
                verdict = _compared(m, f, kinds, top, t[pc + 1])
            else:
                top -= 1
                verdict = _truth(m, f, kinds, top)
            if verdict <= FALSE and verdict != EARLY:
                return verdict
            if verdict == UNKNOWN:
                unknown = True
            pc += CODE_SIZE
        elif op in (PUSH, CONSTANT, ONE, AGGREGATE, BOUND):
            _push(machine, kinds, pc, top, w, sums, r)
            top += 1
            pc += CODE_SIZE
        elif op in (IF_COMPLETED, IF_BOUND, UNLESS_FALSE, UNLESS_TRUE, CHOOSE, JUMP, KEEP):
            pc, top = _jump(machine, kinds, pc, top, w, r)
        else:
            top = _combine(machine, kinds, pc, top)
            pc += CODE_SIZE
    return UNKNOWN if unknown else TRUE


@part
def _push(machine: RunMachine, kinds: int, pc: int, top: int, w: int, sums: int, r: int) -> None:
    """Push a term, an aggregate, or whether a variable is bound."""
    t, m, f, numbers, codes = machine.t, machine.m, machine.f, machine.n, machine.c
    op, a = t[pc], t[pc + 1]
    if op == AGGREGATE:
        inside = t[pc + 2] >= 0
        current = _variable(machine, pc, w, r) if inside else 0
        kind, identifier, x, e = aggregated(machine, w, sums, a, inside, current)
        _set(m, f, kinds, top, kind, identifier, x, e)
        return
    identifier = a if op == CONSTANT else _variable(machine, pc, w, r)
    if op == BOUND:
        kind = BEYOND if identifier == MANY else BOOLEAN
        _set(m, f, kinds, top, kind, 0, 1.0 if identifier > 0 else 0.0, 0.0)
        return
    kind = kind_of(identifier, codes)
    x = numbers[identifier] if kind >= SHORT else 0.0
    if op == ONE:
        # The average of no values is 0; of a faulty one, an error.
        kind = CALC if identifier <= 0 or codes[identifier] != FAULT else NOTHING
        kind = kind if identifier != MANY else BEYOND
        x = 1.0 if identifier > 0 else 0.0
    _set(m, f, kinds, top, kind, identifier, x, 0.0)


@part
def _jump(machine: RunMachine, kinds: int, pc: int, top: int, w: int, r: int) -> tuple[int, int]:
    """Execute an instruction that may jump; return the place of the next instruction, and of the stack's
    top.
    """
    t, m, f = machine.t, machine.m, machine.f
    op, target, slot, following = t[pc], t[pc + 1], t[pc + 2], pc + CODE_SIZE
    goes = op == JUMP
    if op == IF_COMPLETED:
        goes = m[w + SLOTS + t[N_SLOTS] + t[N_KLEENES] + slot] == 0
    elif op == IF_BOUND:
        goes = _variable(machine, pc, w, r) == 0
    elif op == KEEP:
        goes = m[kinds + top - 1] not in (NOTHING, MISSING)
    elif op in (UNLESS_FALSE, UNLESS_TRUE):
        goes = _truth(m, f, kinds, top - 1) == (FALSE if op == UNLESS_FALSE else TRUE)
        if goes:
            m[kinds + top - 1] = BOOLEAN
            f[top] = 0.0 if op == UNLESS_FALSE else 1.0
    elif op == CHOOSE:
        verdict = _truth(m, f, kinds, top - 1)
        if verdict not in (TRUE, FALSE):
            # Whether an error is only for want of an iteration depends on both branches.
            _set(m, f, kinds, top - 1, NOTHING if verdict == ERRED else BEYOND, 0, 0.0, 0.0)
            return slot, top
        top -= 1
        goes = verdict == FALSE
    return (target if goes else following), top


@part
def _combine(machine: RunMachine, kinds: int, pc: int, top: int) -> int:
    """Replace operands on the stack by the result of an instruction; return the place of the stack's top."""
    t, m, f, numbers = machine.t, machine.m, machine.f, machine.n
    op, a = t[pc], t[pc + 1]
    if op <= DIVIDE or op in (AVERAGE, FUNCTION_2):
        _computed(m, f, kinds, top - 2, op, a)
        return top - 1
    if op in (MINUS, ABS, FUNCTION):
        _computed(m, f, kinds, top - 1, op, a)
        return top
    if op == NOT:
        verdict = _truth(m, f, kinds, top - 1)
        _set(m, f, kinds, top - 1, kind_of_truth(verdict), 0, 0.0 if verdict == TRUE else 1.0, 0.0)
        return top
    if op in (RELATE, AND, OR):
        if op == RELATE:
            verdict = _compared(m, f, kinds, top - 2, a)
        else:
            left, right = _truth(m, f, kinds, top - 2), _truth(m, f, kinds, top - 1)
            verdict = either(left, right, TRUE if op == OR else FALSE)
        _set(m, f, kinds, top - 2, kind_of_truth(verdict), 0, 1.0 if verdict == TRUE else 0.0, 0.0)
        return top - 1
    if op == INSTEAD:
        top -= 1
        kind = m[kinds + top]
        if kind != MISSING and (kind != NOTHING or m[kinds + top - 1] == MISSING):
            identifier, x, e = m[kinds + DEEPEST + top], f[1 + top], f[1 + DEEPEST + top]
            _set(m, f, kinds, top - 1, kind, identifier, x, e)
        return top
    if op == DISTANCE:
        _distance(m, f, kinds, top - 4)
        return top - 3
    top -= t[pc + 2]
    identifier = look_up(m, kinds, a, t[pc + 2], top)
    kind = kind_of(identifier, machine.c) if identifier != 0 else BEYOND
    _set(m, f, kinds, top, kind, identifier, numbers[identifier] if kind >= SHORT else 0.0, 0.0)
    return top + 1
