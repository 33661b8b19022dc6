"""The search of the extended KMP over columns, for many texts at once (the partitions of a query).

A pattern is four arrays (``program``): ``rows`` of six numbers each, ``at`` with where the rows of each place
begin, ``alive`` with the distances that have an edge at each stop (a bit each), and ``masks``.

- steps, the conditions of a place: (kind, cell's track, other offset, other track, code, 0);
- probes, by the constants a cell may be: (offset, track, first of its masks, 0, 0, 0);
- pairs of cells: (offset, track, offset, track, mask if the same, mask if not).

``state`` has a row for each text: the numbers named here, then its last symbols in a ring, each with its
place and its place on the window's axis.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spaseq._jit import inlined, kernel
from spaseq._kernel_events import reach_after
from spaseq.matching.filters import _kernel_values as v
from spaseq.matching.filters import batch as heads
from spaseq.terms.dictionary import UNBOUND

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Codes = npt.NDArray[np.int8]

#: The code of "relevant"; 0 is that of "not relevant".
RELEVANT: Final = 1

# Kinds of steps.
IS: Final = 0
IS_NOT: Final = 1
SAME: Final = 2
APART: Final = 3

# Rows of `at`.
STEPS: Final = 0
PROBES: Final = 1
PAIRS: Final = 2

# Columns of a text: how much of the pattern is matched, the next place in the ring, the number of symbols in
# the ring, for how many more symbols an ambiguous symbol is within the pattern's length, the last place on
# the axis.
LENGTH: Final = 0
SLOT: Final = 1
HELD: Final = 2
AMBIGUOUS: Final = 3
NEWEST: Final = 4
HEADER: Final = 5

# How a single event is read: the number of GPMs, of questions among them, and of the variables of a key. Of
# each GPM, its place in the query, the track of its relevance, the number of further tracks, and the column
# of the first of these; the columns before are keys, grouped by GPM. Finally, for each other column, whether
# it is compared by value.
GPMS: Final = 0
QUESTIONS: Final = 1
KEYS: Final = 2
ASKED_HEADER: Final = 3
GPM: Final = 0
RELEVANCE: Final = 1
TRACKS: Final = 2
COLUMN: Final = 3
ASKED_SIZE: Final = 4

# A single event gives no symbol, one, or something that is not handled here.
NONE: Final = 0
ONE: Final = 1
OTHERWISE: Final = 2


@inlined
def _slot(first: int, offset: int, size: int) -> int:
    """Return the place in a ring of a symbol of the attempt that begins at ``first``."""
    slot = first + offset
    return slot - size if slot >= size else slot


class KmpMachine(NamedTuple):
    """A pattern, and the search of it in all texts.

    An occurrence is a row of ``found``: the places of its symbols, the text, whether it is only possible.
    ``stops`` counts how often the search stopped at each place and, at its end, how often a mask was applied.
    """

    rows: Ints
    at: Ints
    alive: Ints
    masks: Ints
    state: Ints
    found: Ints
    stops: Ints
    #: The integers of a symbol in a ring: a number for each track, its place, and its place on the axis.
    wide: int


class Symbols(NamedTuple):
    """Symbols of shape ``(tracks, n)``.

    For each: whether it is ambiguous, the text that it continues, its place, its place on the window's axis.
    """

    symbols: Ints
    ambiguous: Flags
    texts: Ints
    places: Ints
    axis: Ints


@inlined
def _cell(m: KmpMachine, slot: int) -> int:
    """Return where a symbol of a text's ring begins."""
    return HEADER + slot * m.wide


@inlined
def _symbol(m: KmpMachine, text: int, first: int, offset: int, track: int) -> int:
    """Return a symbol of the attempt that begins at ``first``, on a track."""
    return int(m.state[text, _cell(m, _slot(first, offset, len(m.alive) - 1)) + track])


@inlined
def _holds(m: KmpMachine, row: int, text: int, first: int, offset: int) -> bool:
    """Return whether the symbol at an offset meets a step's condition."""
    kind = m.rows[row, 0]
    mine = _symbol(m, text, first, offset, m.rows[row, 1])
    if kind == IS:
        return bool(mine == m.rows[row, 4])
    if kind == IS_NOT:
        return bool(mine != m.rows[row, 4])
    other = _symbol(m, text, first, m.rows[row, 2], m.rows[row, 3])
    return bool((mine == other) == (kind == SAME))


@inlined
def _enter(m: KmpMachine, s: Symbols, i: int) -> None:
    """Write a symbol to the ring of its text."""
    text, tracks = s.texts[i], s.symbols.shape[0]
    here = _cell(m, m.state[text, SLOT])
    for track in range(tracks):
        m.state[text, here + track] = s.symbols[track, i]
    m.state[text, here + tracks] = s.places[i]
    m.state[text, here + tracks + 1] = s.axis[i]
    m.state[text, NEWEST] = s.axis[i]
    m.state[text, HELD] = min(m.state[text, HELD] + 1, len(m.alive) - 1)


@inlined
def _advance(m: KmpMachine, text: int) -> bool:
    """Continue the attempt of a text with its last symbol; return whether that completes an occurrence."""
    size = len(m.alive) - 1
    length = m.state[text, LENGTH]
    first = m.state[text, SLOT] - length
    if first < 0:
        first += size
    fits = True
    for row in range(m.at[STEPS, length], m.at[STEPS, length + 1]):
        if not _holds(m, row, text, first, length):
            fits = False
            break
    stop = length + int(fits)
    complete = fits and stop == size
    if fits and not complete:
        m.state[text, LENGTH] = stop
    else:
        m.state[text, LENGTH] = stop - _distance(m, text, first, stop) + int(not complete)
    return complete


@inlined
def _distance(m: KmpMachine, text: int, first: int, stop: int) -> int:
    """Return how many symbols later the next attempt begins, after an attempt that stopped."""
    m.stops[stop] += 1
    allowed = m.alive[stop]
    applied = 0
    for row in range(m.at[PROBES, stop], m.at[PROBES, stop + 1]):
        if allowed & (allowed - 1) == 0:
            break
        allowed &= m.masks[m.rows[row, 2] + _symbol(m, text, first, m.rows[row, 0], m.rows[row, 1])]
        applied += 1
    for row in range(m.at[PAIRS, stop], m.at[PAIRS, stop + 1]):
        if allowed & (allowed - 1) == 0:
            break
        one = _symbol(m, text, first, m.rows[row, 0], m.rows[row, 1])
        other = _symbol(m, text, first, m.rows[row, 2], m.rows[row, 3])
        allowed &= m.rows[row, 4] if one == other else m.rows[row, 5]
        applied += 1
    m.stops[len(m.alive)] += applied
    # The least distance has the longest edge.
    distance = 0
    while allowed & 1 == 0:
        allowed >>= 1
        distance += 1
    return distance


@inlined
def _is_possible(m: KmpMachine, text: int, first: int) -> bool:
    """Return whether the last symbols, some of which are ambiguous, have the constants of the pattern."""
    size = len(m.alive) - 1
    if m.state[text, AMBIGUOUS] == 0:
        return False
    m.state[text, AMBIGUOUS] -= 1
    possible = m.state[text, HELD] == size
    for offset in range(size):
        for row in range(m.at[STEPS, offset], m.at[STEPS, offset + 1]):
            if m.rows[row, 0] == IS and not _holds(m, row, text, first, offset):
                possible = False
    return bool(possible)


@kernel
def run(m: KmpMachine, s: Symbols, begin: int, limit: int) -> tuple[int, int]:
    """Process symbols from number ``begin`` on; return the number of the next symbol, and the number of
    occurrences found.

    Attempts do not cover ambiguous symbols. Where there are some, possible occurrences are found by the
    constants of the pattern alone. An occurrence spans at most ``limit`` on the axis.
    """
    size, tracks = len(m.alive) - 1, s.symbols.shape[0]
    count = 0
    for i in range(begin, len(s.texts)):
        if count == len(m.found):
            return i, count
        text = s.texts[i]
        _enter(m, s, i)
        complete = False
        if s.ambiguous[i]:
            m.state[text, AMBIGUOUS] = size
            m.state[text, LENGTH] = 0
        else:
            complete = _advance(m, text)
        first = _slot(m.state[text, SLOT], 1, size)
        unsure = _is_possible(m, text, first)
        m.state[text, SLOT] = first
        oldest = m.state[text, _cell(m, first) + tracks + 1]
        if (complete or unsure) and s.axis[i] <= reach_after(oldest, limit):
            for offset in range(size):
                m.found[count, offset] = _symbol(m, text, first, offset, tracks)
            m.found[count, size] = text
            m.found[count, size + 1] = unsure
            count += 1
    return len(s.texts), count


@kernel
def symbol(
    batch: Ints, asked: Ints, bits: Ints, codes: Codes, symbols: Ints, ambiguous: Flags, key: Ints
) -> int:
    """Write the symbol of a single event, and the key of its partition; return which case it is.

    ``batch`` has only this event, with at most one solution per GPM. ``bits`` and ``codes``: the doubles (as
    bits) and codes of terms, by id.
    """
    gpms, keys = asked[GPMS], asked[KEYS]
    by_value = ASKED_HEADER + ASKED_SIZE * gpms - keys * gpms
    is_seen = False
    symbols[:, 0] = 0
    ambiguous[0] = False
    for i in range(gpms):
        row = ASKED_HEADER + ASKED_SIZE * i
        first = -1
        share = heads.shares(batch, 0)
        while share < heads.shares(batch, 1):
            if heads.gpm(batch, share) == asked[row + GPM]:
                first = heads.first(batch, share)
            share += heads.SHARE
        if first < 0:
            continue
        for j in range(keys):
            term = batch[heads.column(batch, i * keys + j) + first]
            if term == UNBOUND or (is_seen and key[j] != term):
                return OTHERWISE
            key[j] = term
        is_seen = True
        if i >= asked[QUESTIONS]:
            continue
        track = asked[row + RELEVANCE]
        symbols[track, 0] = RELEVANT
        for j in range(asked[row + TRACKS]):
            column = asked[row + COLUMN] + j
            term = batch[heads.column(batch, column) + first]
            if term == UNBOUND:
                ambiguous[0] = True
            elif asked[by_value + column] != 0:
                if codes[term] == v.SHORT:
                    term = bits[term]
                elif codes[term] == v.NODE or codes[term] == v.STRING:
                    term = -term
                else:
                    return OTHERWISE
            symbols[track + 1 + j, 0] = term
    return ONE if is_seen or keys == 0 else NONE
