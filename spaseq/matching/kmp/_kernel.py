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

from typing import Final

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

# Of a text: how much of the pattern is matched, the next place in the ring, the number of its symbols, for
# how many more symbols an ambiguous one is within the pattern's length, the last place on the axis.
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


@inlined
def _holds(
    rows: Ints, row: int, state: Ints, text: int, first: int, offset: int, size: int, wide: int
) -> bool:
    """Return whether the symbol at an offset meets a step's condition."""
    kind = rows[row, 0]
    mine = state[text, HEADER + _slot(first, offset, size) * wide + rows[row, 1]]
    if kind == IS:
        return bool(mine == rows[row, 4])
    if kind == IS_NOT:
        return bool(mine != rows[row, 4])
    other = state[text, HEADER + _slot(first, rows[row, 2], size) * wide + rows[row, 3]]
    return bool((mine == other) == (kind == SAME))


@kernel
def run(
    rows: Ints,
    at: Ints,
    alive: Ints,
    masks: Ints,
    symbols: Ints,
    ambiguous: Flags,
    texts: Ints,
    places: Ints,
    axis: Ints,
    state: Ints,
    found: Ints,
    stops: Ints,
    begin: int,
    limit: int,
) -> tuple[int, int]:
    """Process symbols from number ``begin`` on; return the end, and the number of occurrences found.

    ``symbols`` are of shape ``(tracks, n)``; ``texts``, ``places`` and ``axis`` give for each the text that
    it continues, and its places. Attempts do not cover ``ambiguous`` symbols: with these, possible
    occurrences are found by constants alone. An occurrence spans at most ``limit`` on the axis. Each is a row
    of ``found``: the places of its symbols, the text, whether it is only a possible one. ``stops`` counts how
    often the search stopped at each place and, at its end, how often a mask was applied.
    """
    size = len(alive) - 1
    tracks = symbols.shape[0]
    wide = tracks + 2
    count = applied = 0
    for i in range(begin, len(texts)):
        if count == len(found):
            return i, count
        text = texts[i]
        length = state[text, LENGTH]
        slot = state[text, SLOT]
        here = HEADER + slot * wide
        for track in range(tracks):
            state[text, here + track] = symbols[track, i]
        state[text, here + tracks] = places[i]
        state[text, here + tracks + 1] = axis[i]
        state[text, NEWEST] = axis[i]
        state[text, HELD] = min(state[text, HELD] + 1, size)
        next_slot = _slot(slot, 1, size)
        complete = False
        unsure = False
        if ambiguous[i]:
            state[text, AMBIGUOUS] = size
            length = 0
        else:
            first = slot - length
            if first < 0:
                first += size
            fits = True
            for row in range(at[STEPS, length], at[STEPS, length + 1]):
                if not _holds(rows, row, state, text, first, length, size, wide):
                    fits = False
                    break
            stop = length
            if fits:
                length += 1
                stop = length
                complete = length == size
            if complete or not fits:
                stops[stop] += 1
                allowed = alive[stop]
                for row in range(at[PROBES, stop], at[PROBES, stop + 1]):
                    if allowed & (allowed - 1) == 0:
                        break
                    cell = HEADER + _slot(first, rows[row, 0], size) * wide + rows[row, 1]
                    allowed &= masks[rows[row, 2] + state[text, cell]]
                    applied += 1
                for row in range(at[PAIRS, stop], at[PAIRS, stop + 1]):
                    if allowed & (allowed - 1) == 0:
                        break
                    one = HEADER + _slot(first, rows[row, 0], size) * wide + rows[row, 1]
                    other = HEADER + _slot(first, rows[row, 2], size) * wide + rows[row, 3]
                    allowed &= rows[row, 4] if state[text, one] == state[text, other] else rows[row, 5]
                    applied += 1
                # The least distance is the longest edge.
                distance = 0
                while allowed & 1 == 0:
                    allowed >>= 1
                    distance += 1
                length = stop - distance
                if not complete:
                    length += 1
        if state[text, AMBIGUOUS] > 0:
            state[text, AMBIGUOUS] -= 1
            unsure = state[text, HELD] == size
            for offset in range(size):
                for row in range(at[STEPS, offset], at[STEPS, offset + 1]):
                    if rows[row, 0] == IS and not _holds(
                        rows, row, state, text, next_slot, offset, size, wide
                    ):
                        unsure = False
        oldest = HEADER + next_slot * wide + tracks
        if (complete or unsure) and axis[i] <= reach_after(state[text, oldest + 1], limit):
            for offset in range(size):
                place = HEADER + _slot(next_slot, offset, size) * wide + tracks
                found[count, offset] = state[text, place]
            found[count, size] = text
            found[count, size + 1] = unsure
            count += 1
        state[text, LENGTH] = length
        state[text, SLOT] = next_slot
    stops[size + 1] += applied
    return len(texts), count


@kernel
def symbol(
    batch: Ints, asked: Ints, bits: Ints, codes: Codes, symbols: Ints, ambiguous: Flags, key: Ints
) -> int:
    """Write the symbol of a single event, and the key of its partition; return which case it is.

    ``batch`` is that event, with at most one solution of a GPM; ``bits`` and ``codes`` are those of terms.
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
