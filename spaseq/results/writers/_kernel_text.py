"""Compiled concatenation of pieces of text that exist as bytes.

A piece is a number: piece p is the bytes of ``texts`` from ``starts[p]`` to ``starts[p + 1]``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spaseq._jit import inlined, kernel
from spaseq.terms._table_kernel import copy

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.int32]


@kernel
def write(texts: Bytes, starts: Ints, pieces: Ints, out: Bytes) -> None:
    """Write the bytes of pieces, one after the other. Both arrays of bytes have 8 spare bytes at the end."""
    at = 0
    for i in range(len(pieces)):
        start = starts[pieces[i]]
        length = starts[pieces[i] + 1] - start
        copy(texts, start, length, out, at)
        at += length


@inlined
def _object(cells: Numbers, row: int, names: Ints, first: int, end: int, pieces: Ints, at: int) -> int:
    """Write a row as an object: its bound cells, each after its name; return where the pieces end.

    ``names`` has two pieces per name: for the first name of an object, and for a later one.
    """
    width = cells.shape[1]
    pieces[at] = first
    at += 1
    is_first = 0
    for i in range(width):
        if cells[row, i] >= 0:
            pieces[at] = names[2 * i + is_first]
            pieces[at + 1] = cells[row, i]
            at += 2
            is_first = 1
    pieces[at] = end
    return at + 1


@kernel
def lay_rows(cells: Numbers, names: Ints, marks: Ints, pieces: Ints) -> int:
    """Write rows as objects; return the number of pieces.

    ``cells`` are pieces, -1 where a variable is unbound, of shape ``(rows, variables)``. ``marks``: the
    pieces before the first row, before each further one, and after each.
    """
    at = 0
    for row in range(cells.shape[0]):
        at = _object(cells, row, names, marks[min(row, 1)], marks[2], pieces, at)
    return at


class MatchLines(NamedTuple):
    """The pieces of matches.

    ``head`` and ``tail`` are the first and the last pieces of each match, of shape ``(matches, pieces)``. The
    events of match i are ``offsets[i]`` to ``offsets[i + 1]``: event e has the piece ``events[e]`` and the
    GPM ``gpm[e]``. ``openings`` has the piece before the events of each GPM. The rows of match i begin at
    ``row_offsets[i]``; ``cells`` and ``names`` are as in ``lay_rows``. ``marks``: the pieces between two
    events, after the events of a GPM, between events and rows, before the first row, before each further row,
    and after each row.
    """

    head: Ints
    offsets: Ints
    gpm: Ints
    events: Ints
    openings: Ints
    row_offsets: Ints
    cells: Numbers
    names: Ints
    marks: Ints
    tail: Ints


@kernel
def lay_lines(lines: MatchLines, pieces: Ints) -> int:
    """Write a line for each match; return the number of pieces."""
    head, offsets, gpm, events, openings, row_offsets, cells, names, marks, tail = lines
    at = 0
    for match in range(head.shape[0]):
        for i in range(head.shape[1]):
            pieces[at] = head[match, i]
            at += 1
        for g in range(len(openings)):
            pieces[at] = openings[g]
            at += 1
            is_first = True
            for i in range(offsets[match], offsets[match + 1]):
                if gpm[i] == g:
                    if not is_first:
                        pieces[at] = marks[0]
                        at += 1
                    pieces[at] = events[i]
                    at += 1
                    is_first = False
            pieces[at] = marks[1]
            at += 1
        pieces[at] = marks[2]
        at += 1
        begin = row_offsets[match]
        for row in range(begin, row_offsets[match + 1]):
            at = _object(cells, row, names, marks[3 + (row > begin)], marks[5], pieces, at)
        for i in range(tail.shape[1]):
            pieces[at] = tail[match, i]
            at += 1
    return at
