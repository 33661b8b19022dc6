"""The meaning of the numbers in the kernel's tables, batches and programs."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spaseq import _fields

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int8]


class RunMachine(NamedTuple):
    """What kernels work on: arrays; in compiled code, the addresses of their first numbers.

    ``t``: the tables of a query; ``m`` and ``f``: the memory of its runs, as integers and floats; ``b``: a
    batch; ``n`` and ``c``: the numbers of terms, and the kinds of terms, by id.
    """

    t: Ints
    m: Ints
    f: Floats
    b: Ints
    n: Floats
    c: Codes


# The verdict of a condition: it holds, fails, is unknown to the tables, or is an error of SPARQL, possibly
# only for want of an earlier iteration.
EARLY: Final = -2
ERRED: Final = -1
FALSE: Final = 0
TRUE: Final = 1
UNKNOWN: Final = 2

#: Columns of a wait before its slots.
SLOTS: Final = 14

# The tables' first places.
N_SLOTS: Final = 0
N_KLEENES: Final = 1
N_GPMS: Final = 2
N_KEYS: Final = 3
SINGLE: Final = 4
LIMIT: Final = 5
MOST_GATES: Final = 6  # of a place; and the ways to end there, if matches may wait
MOST_ACCEPTS: Final = 7
START: Final = 8
WOKEN: Final = 9
PARTITION_COLUMNS: Final = 10
AGGREGATES: Final = 11
N_GAPS: Final = 12
GAPS: Final = 13  # places of the gaps of negations in a wait
CHAINS: Final = 14
CHAINS_END: Final = 15
TRAILS: Final = 16  # matches may wait for the end of their window
HOLDS: Final = 17  # all matches wait for the end of the last window of their last event
LAST_VIEW: Final = 18  # of negations that are decided at the end of the window
MOST_PARTS: Final = 19  # of a candidate that gathers events; 0: none does
CONSUMES: Final = 21  # matches end the other runs of their partition
BARS: Final = 20  # place in a wait of the first excluding events, by stream
SINCES: Final = 22  # place in a wait of the beginnings of time bounds
SINCES_END: Final = 23  # then, for each, whether it begins with the next event
LIMITS: Final = 24  # place of the limits
APART: Final = 25  # this many of the first keys identify a match's query; their order is not needed
TABLES_HEADER: Final = 26

# Columns of aggregates in the tables.
A_KIND: Final = 0
A_SLOT: Final = 1
A_SUM: Final = 2
A_KLEENE: Final = 3
A_OFFSET: Final = 4  # the aggregate of the next smaller offset follows
A_SIZE: Final = 5

#: Places of the stack.
DEEPEST: Final = 32
# After kinds and ids: the place of the answers and their number less one; the place of the questions, their
# number, and the room for them (see ``_kernel_machine``).
MEMO: Final = 2 * DEEPEST
MEMO_MASK: Final = MEMO + 1
WONDERED: Final = MEMO + 2
WONDERS: Final = MEMO + 3
MOST_WONDERS: Final = MEMO + 4
STACK: Final = MEMO + 5
#: In place of an id: several values, or unknown to the tables; and an error, permanent in an aggregate.
MANY: Final = -1
ERROR: Final = -2

# Kinds of values; those of terms are the codes of the id table, where -1 is "not read yet".
FAULT: Final = -3  # an error that makes an aggregate over it an error
MISSING: Final = -2  # an error only for want of an earlier iteration
BEYOND: Final = 0
NOTHING: Final = 1  # any other error
SHORT: Final = 2
LONG: Final = 3
DOUBLE: Final = 4
CALC: Final = 5
NODE: Final = 6
STRING: Final = 7
MOMENT: Final = 8  # a dateTime with a zone, as microseconds
BOOLEAN: Final = 9  # 0 or 1
DURATION: Final = 10  # of days and less, as microseconds

# Instructions: the operation, an argument, a variable as its slot and its column in the event, or -1.
CODE_SIZE: Final = 4
PUSH: Final = 0
CONSTANT: Final = 1  # id
AGGREGATE: Final = 2  # number of the aggregate; with a slot: with the iteration in progress
ADD: Final = 3
SUBTRACT: Final = 4
MULTIPLY: Final = 5
DIVIDE: Final = 6
MINUS: Final = 7
AVERAGE: Final = 8  # of a sum and a count
COMPARE: Final = 9  # which operator; a condition
IF_BOUND: Final = 10  # the target if the variable is unbound
IF_COMPLETED: Final = 11  # the target if a Kleene (as slot) has no completed iteration
ONE: Final = 12  # 1 if the variable is bound, else 0
TEST: Final = 13  # a condition: the effective boolean value
RELATE: Final = 14  # which operator; a value
NOT: Final = 15
AND: Final = 16
OR: Final = 17
UNLESS_FALSE: Final = 18  # the target if the top is false, which stays
UNLESS_TRUE: Final = 19
CHOOSE: Final = 20  # pops a truth value: the target if it is false; and, as slot, if it is an error
JUMP: Final = 21  # the target
KEEP: Final = 22  # the target unless the top is an error
BOUND: Final = 23  # whether the variable is bound
ABS: Final = 24
FUNCTION: Final = 25  # which function of one number
FUNCTION_2: Final = 26  # which function of two numbers
DISTANCE: Final = 27  # of two longitudes and latitudes
LOOK_UP: Final = 28  # number of the expression; as slot, the number of its values
INSTEAD: Final = 29  # a value in place of an error, or both errors

# Comparisons.
EQUAL: Final = 0
UNEQUAL: Final = 1
LESS: Final = 2
GREATER: Final = 3
AT_MOST: Final = 4
AT_LEAST: Final = 5

# Kinds of aggregates.
ACC_COUNT: Final = 0
ACC_SUM: Final = 1
ACC_MIN: Final = 2
ACC_MAX: Final = 3
ACC_FIRST: Final = 4
ACC_LAST: Final = 5
ACC_PREVIOUS: Final = 6


pointer: Any = _fields.pointer
