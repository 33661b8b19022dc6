"""An event that came alone: its triples in, the solutions of its graph patterns and a batch of one event out.

What is asked (``asked``) is the same for all events, and stands in tables:

    header      how many questions, GPMs and columns there are, and how many solutions of a question an event
                may have; where what follows stands
    of each     steps, variables, picks; where its solutions are kept, and how many there is room for;
    question    what else is known; the ranks of its streams, a bit each; where the program of its
                filters begins and ends, see ``conditions._kernel_machine``, and how many values of a
                row that reads; where in ``batch`` its solutions are given, if they are, behind how many
                there are; of each value its place in a row; of each column that is picked the
                value it has; of each value that filters read its place in a row; the steps, see
                ``gpm.spectra.single``; of what background graphs know where it stands in ``known``, as
                ``gpm.spectra.lookup`` says, how many values its key has, and it binds besides, and of
                each value of the key its place in a row
    of a GPM    its question
    of a column its GPM, and which pick it is

An event, which begins in ``log`` ``at`` some place, is its position, time, number, and place on the window's
axis; how many events were kept before it, how many terms there are, how many triples it has; the rank of its
stream, that stream, its graph's name, and the terms of its triples. ``firsts`` has, for each event that is
kept, where its solutions of each question begin.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from spaseq._jit import kernel, part
from spaseq.matching.filters import _kernel_values as v
from spaseq.matching.filters import batch as heads
from spaseq.matching.filters._kernel_machine import holds
from spaseq.patterns.spectra.lookup import BUCKETS, FACTOR, ROWS, SHIFT
from spaseq.patterns.spectra.single import CONSTANT, NEW

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int8]

#: Where what is asked says how many there are, where they stand, and where each question does.
QUESTIONS: Final = 0
GPMS: Final = 1
COLUMNS: Final = 2
AT_GPMS: Final = 3
AT_COLUMNS: Final = 4
WIDTH: Final = 5
PICKS: Final = 6
MOST: Final = 7
FIRST_QUESTION: Final = 8

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

#: What is known.
TABLE: Final = 0
KEYS: Final = 1
OTHERS: Final = 2
KNOWN_HEADER: Final = 3

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

#: An event may have this many solutions of a pattern here.
MOST_ROWS: Final = 32

#: In place of a size: LARGE, too many solutions or a filter that cannot be decided here; UNSEEN, a filter
#: reads a term of unknown value, which is written after the header.
LARGE: Final = -1
UNSEEN: Final = -2
#: The code of a term of unknown value.
UNKNOWN: Final = -1


@part
def _judged(
    asked: Ints, question: int, read: int, batch: Ints, row: int, stack: int, floats: Floats, numbers: Floats,
    codes: Codes,
) -> int:  # fmt: skip
    """Whether a row passes its question's filters, as 0 or 1; or ``LARGE``, or ``UNSEEN``."""
    for j in range(asked[question + READS]):
        term = batch[row + asked[read + j]]
        if term >= len(codes) or codes[term] == UNKNOWN:
            batch[heads.HEAD] = term
            return UNSEEN
    machine = v.RunMachine(asked, batch, floats, batch, numbers, codes)
    begin, end = asked[question + PROGRAM], asked[question + PROGRAM_END]
    verdict = holds(machine, stack, begin, end, 0, 0, row)
    if verdict == v.UNKNOWN:
        return LARGE
    return v.TRUE if verdict == v.TRUE else v.FALSE


@kernel
def alone(
    asked: Ints, known: Ints, log: Ints, at: int, firsts: Ints, kept: Ints,
    numbers: Floats, codes: Codes, floats: Floats, batch: Ints,
) -> int:  # fmt: skip
    """Writes the batch, and keeps the solutions; returns its size, or what is below zero.

    With ``LARGE`` and ``UNSEEN`` nothing has happened. What is less is the size below zero: some term in the
    columns, which stand at its end, is not known to ``codes``. ``floats`` are those of a stack.
    """
    questions, gpms, columns = asked[QUESTIONS], asked[GPMS], asked[COLUMNS]
    width, before, triples = asked[WIDTH], log[at + BEFORE], log[at + TRIPLES]
    begin, end = before * questions, (before + 1) * questions
    to = heads.HEAD + columns
    write = to + 6 + heads.SHARE * gpms
    scratch = write + asked[PICKS] * MOST_ROWS
    place = scratch + 2 * MOST_ROWS * width  # of each pick, where its column begins
    # Where a row's values stand in it, and the stack of filters.
    places = place + asked[PICKS]
    stack = places + width
    picks = 0
    is_known = True
    for q in range(questions):
        a = asked[FIRST_QUESTION + q]
        rows, spare, bound = scratch, scratch + MOST_ROWS * width, 0
        count = (asked[a + STREAMS] >> log[at + RANK]) & 1
        names, picked, reads = asked[a + NAMES], asked[a + PICKED], asked[a + READS]
        order = a + QUESTION_HEADER
        read = order + names + picked
        step = read + reads
        given = asked[a + GIVEN]
        if given != 0 and count > 0:
            count = batch[given]
            for r in range(count):
                for j in range(names):
                    batch[rows + r * width + j] = batch[given + 1 + r * names + j]
        for _ in range(asked[a + STEPS]):
            s, o, is_loop = asked[step + S], asked[step + O], asked[step + IS_LOOP] != 0
            found = 0
            for r in range(count):
                row = rows + r * width
                for i in range(triples):
                    triple = at + EVENT_HEADER + 3 * i
                    if log[triple + 1] != asked[step + PREDICATE]:
                        continue
                    first, second = log[triple], log[triple + 2]
                    if s != NEW and first != (asked[step + SUBJECT] if s == CONSTANT else batch[row + s]):
                        continue
                    if is_loop:
                        if first != second:
                            continue
                    elif o != NEW and second != (asked[step + OBJECT] if o == CONSTANT else batch[row + o]):
                        continue
                    if found == MOST_ROWS:
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
            bound += (1 if s == NEW else 0) + (1 if o == NEW and not is_loop else 0)
            rows, spare, count = spare, rows, found
            step += STEP_SIZE
        has_program = asked[a + PROGRAM] < asked[a + PROGRAM_END]
        if has_program:
            batch[heads.COLUMNS] = places  # for now
        for which in range(asked[a + KNOWN]):
            # Many rows may be known of which few pass.
            is_last = has_program and which == asked[a + KNOWN] - 1
            table, keys, others = asked[step + TABLE], asked[step + KEYS], asked[step + OTHERS]
            entry, buckets = table + known[table + ROWS], table + BUCKETS
            found = 0
            for r in range(count):
                row = rows + r * width
                code = np.uint64(0)
                for j in range(keys):
                    code = (code ^ np.uint64(batch[row + asked[step + KNOWN_HEADER + j]])) * np.uint64(FACTOR)
                bucket = buckets + np.int64(code >> np.uint64(known[table + SHIFT]))
                for i in range(known[bucket], known[bucket + 1]):
                    other = entry + i * (keys + others)
                    is_it = True
                    for j in range(keys):
                        is_it &= known[other + j] == batch[row + asked[step + KNOWN_HEADER + j]]
                    if not is_it:
                        continue
                    if found == MOST_ROWS:
                        return LARGE
                    new = spare + found * width
                    for j in range(bound):
                        batch[new + j] = batch[row + j]
                    for j in range(others):
                        batch[new + bound + j] = known[other + keys + j]
                    verdict = v.TRUE
                    if is_last:
                        verdict = _judged(asked, a, read, batch, new, stack, floats, numbers, codes)
                    if verdict < 0:
                        return verdict
                    found += verdict
            bound += others
            rows, spare, count = spare, rows, found
            step += KNOWN_HEADER + keys
        if has_program and asked[a + KNOWN] == 0:
            found = 0
            for r in range(count):
                row = rows + r * width
                verdict = _judged(asked, a, read, batch, row, stack, floats, numbers, codes)
                if verdict < 0:
                    return verdict
                if verdict == v.TRUE:
                    for j in range(bound):
                        batch[rows + found * width + j] = batch[row + j]
                    found += 1
            count = found
        first_row = firsts[begin + q]
        if count > asked[MOST] or first_row + count > asked[a + ROOM]:
            return LARGE
        firsts[end + q] = first_row + count
        for r in range(count):
            for j in range(names):
                into = asked[a + KEPT] + (first_row + r) * names + j
                kept[into] = batch[rows + r * width + asked[order + j]]
        for i in range(picked):
            batch[place + picks] = write
            picks += 1
            value = asked[order + names + i]
            for r in range(count):
                term = 0 if value < 0 else batch[rows + r * width + asked[order + value]]
                batch[write] = term
                write += 1
                if term >= log[at + TERMS] or codes[term] == UNKNOWN:
                    is_known = False
    # The kernel refers to a row by its number among the kept rows.
    for c in range(columns):
        column = asked[AT_COLUMNS] + 2 * c
        q = asked[asked[AT_GPMS] + asked[column]]
        batch[heads.HEAD + c] = batch[place + asked[column + 1]] - firsts[begin + q]
    batch[heads.SIZE], batch[heads.START], batch[heads.COLUMNS] = 1, log[at + POSITION], heads.HEAD
    batch[heads.TIME], batch[heads.STREAM], batch[heads.NUMBER] = to, to + 1, to + 2
    batch[heads.AXIS], batch[heads.SHARES] = to + 3, to + 4
    batch[to], batch[to + 1] = log[at + TIME], log[at + RANK]
    batch[to + 2], batch[to + 3] = log[at + NUMBER], log[at + AXIS]
    share = to + 6
    batch[to + 4] = share
    for g in range(gpms):
        q = asked[asked[AT_GPMS] + g]
        if firsts[begin + q] < firsts[end + q]:
            batch[share], batch[share + 1], batch[share + 2] = g, firsts[begin + q], firsts[end + q]
            share += heads.SHARE
    batch[to + 5] = share
    return int(write if is_known else -write)
