"""A single event → the solutions of its graph patterns, and a batch of one event.

``asked``, the same for all events, has tables in one array:

    header      how many questions, GPMs and columns there are; where GPMs and columns stand; the width of a
                row and how many rows there is room for; how many solutions of a question an event may have;
                where ``batch`` has the columns' values, two buffers of rows, where each picked column
                begins, the numbers from 0 on, and the stack of filters; where each question stands
    question    steps, variables, picks; where its solutions are kept, and how many there is room for;
                background tables; the ranks of its streams, a bit each; where the program of its
                filters begins and ends, see ``filters._kernel_machine``, and how many values of a
                row the program reads; where in ``batch`` its solutions are given, if they are, after
                their number. Then the place in a row of each variable; the variable of each column that is
                picked; the place in a row of each value that filters read; the steps, see
                ``spectra.single``; of each background table where it stands in ``known``, as
                ``spectra.lookup`` says, how many values its key has and how many it adds, and the
                place in a row of each value of the key
    of a GPM    its question
    of a column its GPM, and which pick it is

An event is stored from position ``at`` of ``store`` on: its position, time, number, and place on the window's
axis; how many events were kept before it; the numbers of ``codes`` and of its triples; its stream's rank,
the stream, its graph's name, and the terms of its triples. From ``FIRSTS`` on, ``store`` has the places where
each kept event's solutions of each question begin, and then the solutions.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spaseq._jit import kernel, part
from spaseq.matching.filters import _kernel_values as v
from spaseq.matching.filters import batch as heads
from spaseq.matching.filters._kernel_machine import holds
from spaseq.patterns.spectra.lookup import BUCKETS, FACTOR, SHIFT
from spaseq.patterns.spectra.lookup import ROWS as TABLE_ROWS
from spaseq.patterns.spectra.single import CONSTANT, NEW

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int8]

#: The header.
QUESTIONS: Final = 0
GPMS: Final = 1
COLUMNS: Final = 2
AT_GPMS: Final = 3
AT_COLUMNS: Final = 4
WIDTH: Final = 5
ROWS: Final = 6
MOST: Final = 7
VALUES: Final = 8
SCRATCH: Final = 9
PICKS: Final = 10
PLACES: Final = 11
STACK: Final = 12
FIRST_QUESTION: Final = 13

#: A question.
STEPS: Final = 0
NAMES: Final = 1
PICKED: Final = 2
KEPT: Final = 3
ROOM: Final = 4
KNOWN: Final = 5
STREAMS: Final = 6
PROGRAM: Final = 7
PROGRAM_END: Final = 8
READS: Final = 9
GIVEN: Final = 10
QUESTION_HEADER: Final = 11

#: A step.
PREDICATE: Final = 0
SUBJECT: Final = 1
S: Final = 2
OBJECT: Final = 3
O: Final = 4  # noqa: E741
IS_LOOP: Final = 5
STEP_SIZE: Final = 6

#: A background table.
TABLE: Final = 0
KEYS: Final = 1
OTHERS: Final = 2
IS_LAST: Final = 3
KNOWN_HEADER: Final = 4

#: An event.
POSITION: Final = 0
TIME: Final = 1
NUMBER: Final = 2
AXIS: Final = 3
BEFORE: Final = 4
TERMS: Final = 5
TRIPLES: Final = 6
RANK: Final = 7
STREAM: Final = 8
GRAPH: Final = 9
EVENT_HEADER: Final = 10

#: Events are stored before this position of ``store``, which leaves more room than the largest event needs.
FIRSTS: Final = 1 << 13

#: Values returned instead of a size. LARGE: too many solutions, or a filter that compiled code cannot decide.
#: UNSEEN: a filter reads a term of unknown value; its id is written after the header.
LARGE: Final = -1
UNSEEN: Final = -2
#: The code of a term of unknown value.
UNKNOWN: Final = -1


class JoinMachine(NamedTuple):
    """The arrays on which the joins of an event work; in compiled code, the addresses of their first numbers.

    ``numbers`` and ``codes`` are those of terms, ``floats`` those of a stack.
    """

    asked: Ints
    known: Ints
    store: Ints
    batch: Ints
    numbers: Floats
    codes: Codes
    floats: Floats


@part
def _judged(x: JoinMachine, a: int, at: int, row: int) -> int:
    """Return 1 if a row of an event passes the filters of question ``a``, else 0; ``LARGE`` or ``UNSEEN``."""
    asked, batch = x.asked, x.batch
    read = a + QUESTION_HEADER + asked[a + NAMES] + asked[a + PICKED]
    for j in range(asked[a + READS]):
        term = batch[row + asked[read + j]]
        if term >= x.store[at + TERMS] or x.codes[term] == UNKNOWN:
            batch[heads.HEAD] = term
            return UNSEEN
    batch[heads.COLUMNS] = asked[PLACES]  # for now
    machine = v.RunMachine(asked, batch, x.floats, batch, x.numbers, x.codes)
    verdict = holds(machine, asked[STACK], asked[a + PROGRAM], asked[a + PROGRAM_END], 0, 0, row)
    if verdict == v.UNKNOWN:
        return LARGE
    return v.TRUE if verdict == v.TRUE else v.FALSE


@part
def _extended(x: JoinMachine, at: int, step: int, rows: int, count: int, spare: int, bound: int) -> int:
    """Join rows of ``bound`` values with the event's triples of a step.

    Writes the joined rows to ``spare``; returns their number, or ``LARGE``.
    """
    asked, store, batch = x.asked, x.store, x.batch
    width, predicate = asked[WIDTH], asked[step + PREDICATE]
    s, o, is_loop = asked[step + S], asked[step + O], asked[step + IS_LOOP] != 0
    found = 0
    for r in range(count):
        row = rows + r * width
        for i in range(store[at + TRIPLES]):
            triple = at + EVENT_HEADER + 3 * i
            if store[triple + 1] != predicate:
                continue
            first, second = store[triple], store[triple + 2]
            if s != NEW and first != (asked[step + SUBJECT] if s == CONSTANT else batch[row + s]):
                continue
            if is_loop:
                if first != second:
                    continue
            elif o != NEW and second != (asked[step + OBJECT] if o == CONSTANT else batch[row + o]):
                continue
            if found == asked[ROWS]:
                return LARGE
            new = spare + found * width
            for j in range(bound):
                batch[new + j] = batch[row + j]
            new += bound
            if s == NEW:
                batch[new] = first
                new += 1
            if o == NEW and not is_loop:
                batch[new] = second
            found += 1
    return found


@part
def _continued(
    x: JoinMachine, a: int, at: int, step: int, rows: int, count: int, spare: int, bound: int
) -> int:
    """Join rows of ``bound`` values with a table of question ``a``, which is described at ``step``.

    Writes the joined rows to ``spare``; returns their number, ``LARGE`` or ``UNSEEN``. Rows of the last table
    are filtered at once, since few of many joined rows may pass.
    """
    asked, known, batch = x.asked, x.known, x.batch
    width, table, keys, others = asked[WIDTH], asked[step + TABLE], asked[step + KEYS], asked[step + OTHERS]
    is_filtered = asked[a + PROGRAM] < asked[a + PROGRAM_END] and asked[step + IS_LAST] != 0
    found, key = 0, step + KNOWN_HEADER
    for r in range(count):
        row = rows + r * width
        code = np.uint64(0)
        for j in range(keys):
            code = (code ^ np.uint64(batch[row + asked[key + j]])) * np.uint64(FACTOR)
        bucket = table + BUCKETS + np.int64(code >> np.uint64(known[table + SHIFT]))
        for i in range(known[bucket], known[bucket + 1]):
            other = table + known[table + TABLE_ROWS] + i * (keys + others)
            is_it = True
            for j in range(keys):
                is_it &= known[other + j] == batch[row + asked[key + j]]
            if not is_it:
                continue
            if found == asked[ROWS]:
                return LARGE
            new = spare + found * width
            for j in range(bound):
                batch[new + j] = batch[row + j]
            for j in range(others):
                batch[new + bound + j] = known[other + keys + j]
            verdict = _judged(x, a, at, new) if is_filtered else v.TRUE
            if verdict < 0:
                return verdict
            found += verdict
    return found


@part
def _passed(x: JoinMachine, a: int, at: int, rows: int, count: int, bound: int) -> int:
    """Keep the rows of ``bound`` values that pass the filters.

    Returns their number, ``LARGE`` or ``UNSEEN``.
    """
    width, found = x.asked[WIDTH], 0
    for r in range(count):
        row = rows + r * width
        verdict = _judged(x, a, at, row)
        if verdict < 0:
            return verdict
        if verdict == v.TRUE:
            for j in range(bound):
                x.batch[rows + found * width + j] = x.batch[row + j]
            found += 1
    return found


@part
def _solved(x: JoinMachine, a: int, at: int) -> tuple[int, int]:
    """Return the number of rows of question ``a`` in an event, or ``LARGE`` or ``UNSEEN``; and where the rows
    are.
    """
    asked, batch = x.asked, x.batch
    rows, bound, width = asked[SCRATCH], 0, asked[WIDTH]
    spare = rows + asked[ROWS] * width
    count = (asked[a + STREAMS] >> x.store[at + RANK]) & 1
    names, given = asked[a + NAMES], asked[a + GIVEN]
    if given != 0 and count > 0:
        count = batch[given]
        for r in range(count):
            for j in range(names):
                batch[rows + r * width + j] = batch[given + 1 + r * names + j]
    step = a + QUESTION_HEADER + names + asked[a + PICKED] + asked[a + READS]
    for _ in range(asked[a + STEPS]):
        count = _extended(x, at, step, rows, count, spare, bound)
        if count < 0:
            return count, rows
        s, o, is_loop = asked[step + S], asked[step + O], asked[step + IS_LOOP] != 0
        bound += (1 if s == NEW else 0) + (1 if o == NEW and not is_loop else 0)
        rows, spare = spare, rows
        step += STEP_SIZE
    for _ in range(asked[a + KNOWN]):
        count = _continued(x, a, at, step, rows, count, spare, bound)
        if count < 0:
            return count, rows
        bound += asked[step + OTHERS]
        rows, spare = spare, rows
        step += KNOWN_HEADER + asked[step + KEYS]
    if asked[a + PROGRAM] < asked[a + PROGRAM_END] and asked[a + KNOWN] == 0:
        count = _passed(x, a, at, rows, count, bound)
    return count, rows


@part
def _describe(x: JoinMachine, at: int) -> None:
    """Write the head of the batch: the event, where its columns begin, and the rows of each GPM."""
    asked, store, batch = x.asked, x.store, x.batch
    begin = FIRSTS + store[at + BEFORE] * asked[QUESTIONS]
    end, columns = begin + asked[QUESTIONS], asked[COLUMNS]
    # The matcher's kernel refers to a row by its number among the kept rows.
    for c in range(columns):
        column = asked[AT_COLUMNS] + 2 * c
        q = asked[asked[AT_GPMS] + asked[column]]
        batch[heads.HEAD + c] = batch[asked[PICKS] + asked[column + 1]] - store[begin + q]
    to = heads.HEAD + columns
    batch[heads.SIZE], batch[heads.START], batch[heads.COLUMNS] = 1, store[at + POSITION], heads.HEAD
    batch[heads.TIME], batch[heads.STREAM], batch[heads.NUMBER] = to, to + 1, to + 2
    batch[heads.AXIS], batch[heads.SHARES] = to + 3, to + 4
    batch[to], batch[to + 1] = store[at + TIME], store[at + RANK]
    batch[to + 2], batch[to + 3] = store[at + NUMBER], store[at + AXIS]
    share = to + 6
    batch[to + 4] = share
    for g in range(asked[GPMS]):
        q = asked[asked[AT_GPMS] + g]
        if store[begin + q] < store[end + q]:
            batch[share], batch[share + 1], batch[share + 2] = g, store[begin + q], store[end + q]
            share += heads.SHARE
    batch[to + 5] = share


@kernel
def alone(
    asked: Ints, known: Ints, store: Ints, at: int, numbers: Floats, codes: Codes, floats: Floats, batch: Ints
) -> int:
    """Write the batch, and keep the solutions; return the batch's size, or a number below zero.

    ``LARGE`` and ``UNSEEN``: nothing has happened. A lower number is the size below zero: some term in the
    columns, which stand at the end, is not known to ``codes``. ``floats`` are those of a stack.
    """
    store[at + TERMS] = len(codes)
    x = v.pointer(JoinMachine(asked, known, store, batch, numbers, codes, floats))
    questions = asked[QUESTIONS]
    begin = FIRSTS + store[at + BEFORE] * questions
    write, picks, is_known = asked[VALUES], asked[PICKS], True
    for q in range(questions):
        a = asked[FIRST_QUESTION + q]
        count, rows = _solved(x, a, at)
        if count < 0:
            return count
        first_row, names = store[begin + q], asked[a + NAMES]
        if count > asked[MOST] or first_row + count > asked[a + ROOM]:
            return LARGE
        store[begin + questions + q] = first_row + count
        order, into = a + QUESTION_HEADER, asked[a + KEPT] + first_row * names
        for r in range(count):
            row = rows + r * asked[WIDTH]
            for j in range(names):
                store[into + r * names + j] = batch[row + asked[order + j]]
        for i in range(asked[a + PICKED]):
            batch[picks] = write
            picks += 1
            value = asked[order + names + i]
            for r in range(count):
                term = 0 if value < 0 else batch[rows + r * asked[WIDTH] + asked[order + value]]
                batch[write] = term
                write += 1
                if term >= store[at + TERMS] or codes[term] == UNKNOWN:
                    is_known = False
    _describe(x, at)
    return int(write if is_known else -write)
