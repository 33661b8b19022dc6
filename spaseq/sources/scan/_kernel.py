"""Compiled scanner of N-Quads: plain lines → ids, without an object per term.

*Plain* lines can be read without a parser: IRIs, labels and literals with the bytes of their canonical form
(language tags may be in upper case), white space between them, `` .`` at the end. Other lines are *odd* and
left to pyoxigraph. A term that is already in the table of terms is valid. A new term is checked byte by
byte, and is odd unless it is certainly valid. Invariant: the scanner returns no quad that pyoxigraph would
not.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from spaseq._jit import inlined, kernel, part
from spaseq.sources.scan._valid_kernel import ALNUM, byte_class, is_text, is_valid
from spaseq.terms._table_kernel import (
    IRI,
    LABEL,
    LITERAL,
    LIVE,
    SEED,
    USED,
    Bytes,
    Ids,
    Slots,
    digest,
    finish,
    load,
    low_bytes,
    lowest_byte,
    mix,
    new_id,
    place,
    put,
    same,
)

#: Marks an odd line, in place of its subject.
ODD: Final = -1

_ONES: Final = np.uint64(0x0101010101010101)
_TOPS: Final = np.uint64(0x8080808080808080)
_NEWLINES: Final = np.uint64(0x0A0A0A0A0A0A0A0A)
_CLOSING: Final = np.uint64(0x3E3E3E3E3E3E3E3E)
_QUOTES: Final = np.uint64(0x2222222222222222)
_BACKSLASHES: Final = np.uint64(0x5C5C5C5C5C5C5C5C)

_FIRST: Final = np.uint64(0xFF)

# Rows of `seen`: the last subject and the last graph, at their positions in a quad; the last subject of a
# quad without graph; and predicates by the low bits of their ids, each with the row of the predicate that
# followed it last.
SUBJECT: Final = 0
GRAPH: Final = 3
TIMED: Final = 4
PREDICATES: Final = 8
SEEN: Final = 24

# Columns of `seen`.
ID_SEEN: Final = 0
START_SEEN: Final = 1
LENGTH_SEEN: Final = 2
NEXT_SEEN: Final = 3

# Places in `cursor`: where the next line begins, its number, the number of quads, where the text ends, and
# whether quads may have graphs.
BEGIN: Final = 0
LINE: Final = 1
COUNT: Final = 2
SIZE: Final = 3
WITH_GRAPHS: Final = 4
CURSOR: Final = 5

_IN_LABEL: Final = byte_class(ALNUM + b"_")

_A: Final = ord("A")
_Z: Final = ord("Z")
_LT: Final = ord("<")
_QUOTE: Final = ord('"')
_CARET: Final = ord("^")
_AT: Final = ord("@")
_HASH: Final = ord("#")
_UNDERSCORE: Final = ord("_")
_COLON: Final = ord(":")
_DOT: Final = ord(".")
_MINUS: Final = ord("-")
_SPACE: Final = ord(" ")
_TAB: Final = ord("\t")
_RETURN: Final = ord("\r")
_NEWLINE: Final = ord("\n")


@inlined
def _zeros(word: np.uint64) -> np.uint64:
    """Return 0 unless a byte of the word is 0; the lowest set bit is in the first such byte."""
    return (word - _ONES) & ~word & _TOPS


@inlined
def _line_end(text: Bytes, start: int, size: int) -> int:
    """Return the index of the next line feed; ``size`` if there is none."""
    i = start
    while i < size:
        found = _zeros(load(text, i) ^ _NEWLINES)
        if found != 0:
            return min(size, i + lowest_byte(found))
        i += 8
    return size


@inlined
def _blanks(text: Bytes, start: int, end: int) -> int:
    """Return the index of the first byte from ``start`` on that is neither space nor tab."""
    i = start
    while i < end and (text[i] == _SPACE or text[i] == _TAB):
        i += 1
    return i


@inlined
def _iri_end(text: Bytes, start: int, size: int, seed: int) -> tuple[int, np.uint64]:
    """Return the index after the ``>`` of the IRI at ``start``, and its hash; -1 if the line has no ``>``."""
    code = np.uint64(seed)
    i = start
    while i < size:
        word = load(text, i)
        found = _zeros(word ^ _CLOSING)
        broken = _zeros(word ^ _NEWLINES)
        if found | broken != 0:
            count = lowest_byte(found) + 1
            if lowest_byte(broken) < count:
                return -1, code
            code = mix(code, word if count == 8 else low_bytes(word, count))
            i += count
            return (i if i <= size else -1), finish(code, i - start)
        code = mix(code, word)
        i += 8
    return -1, code


@inlined
def _quote_or_break(word: np.uint64) -> np.uint64:
    """Return 0 unless a string may end in the word; the lowest set bit is in that byte."""
    return _zeros(word ^ _QUOTES) | _zeros(word ^ _BACKSLASHES) | _zeros(word ^ _NEWLINES)


class Written(NamedTuple):
    """Where a term is in a text: its kind, its first byte, the end of a literal's string, the end."""

    kind: int
    start: int
    middle: int
    end: int


@inlined
def _enter(
    slots: Slots, terms: Ids, arena: Bytes, counts: Ids, text: Bytes, term: Written, code: np.uint64
) -> int:
    """Return the id of a plain term; 0 if it is new and not certainly valid."""
    kind, start, middle, end = term
    slot = place(slots, terms, arena, text, start, end - start, code)
    identifier: Any = np.int64(slots[slot])
    if identifier == 0 and is_valid(arena, counts, text, start, end, kind, middle):
        identifier = new_id(terms, counts, kind)
        slots[slot] = identifier
        put(terms, arena, counts, code, identifier, text, start, end - start)
    return identifier


@inlined
def _iri(
    slots: Slots, terms: Ids, arena: Bytes, counts: Ids, text: Bytes, start: int, size: int
) -> tuple[int, int]:
    """Return (id, end) of the IRI at ``start``; the id is 0 unless it is plain."""
    stop, code = _iri_end(text, start, size, counts[SEED])
    if stop <= 0:
        return 0, stop
    return _enter(slots, terms, arena, counts, text, Written(IRI, start, stop, stop), code), stop


@part
def _literal(
    slots: Slots, terms: Ids, arena: Bytes, counts: Ids, text: Bytes, start: int, size: int
) -> tuple[int, int]:
    """Return (id, end) of the literal at ``start``; the id is 0 unless it is plain.

    It is hashed during the search for its end: ``code`` is the hash of the words before ``i``.
    """
    code = np.uint64(counts[SEED])
    i = start
    word = load(text, i)
    found = _quote_or_break(word | _FIRST)  # none of its bytes is the opening quote
    while found == 0:
        code = mix(code, word)
        i += 8
        if i >= size:
            return 0, 0
        word = load(text, i)
        found = _quote_or_break(word)
    middle = i + lowest_byte(found) + 1
    if text[middle - 1] != _QUOTE:
        return 0, 0
    stop = middle
    if text[middle] == _AT:
        return _tagged(slots, terms, arena, counts, text, start, middle)
    if text[middle] == _CARET and text[middle + 1] == _CARET and text[middle + 2] == _LT:
        if middle == i + 8:
            code = mix(code, word)
            i += 8
            word = load(text, i)
        passed = (np.uint64(1) << np.uint64(8 * (middle - i))) - np.uint64(1)
        found = _zeros((word ^ _CLOSING) | passed)
        broken = _zeros((word ^ _NEWLINES) | passed)
        while found | broken == 0:
            code = mix(code, word)
            i += 8
            if i >= size:
                return 0, 0
            word = load(text, i)
            found = _zeros(word ^ _CLOSING)
            broken = _zeros(word ^ _NEWLINES)
        stop = i + lowest_byte(found) + 1
        if lowest_byte(broken) < stop - i:
            return 0, 0
    code = mix(code, word if stop == i + 8 else low_bytes(word, stop - i))
    code = finish(code, stop - start)
    return _enter(slots, terms, arena, counts, text, Written(LITERAL, start, middle, stop), code), stop


@part
def _tagged(
    slots: Slots, terms: Ids, arena: Bytes, counts: Ids, text: Bytes, start: int, middle: int
) -> tuple[int, int]:
    """Return (id, end) of a literal with a language tag; its string ends at ``middle``."""
    stop = middle + 1
    upper = False
    while text[stop] == _MINUS or (_IN_LABEL[text[stop]] and text[stop] != _UNDERSCORE):
        upper = upper or (text[stop] >= _A and text[stop] <= _Z)
        stop += 1
    length = stop - start
    if not upper:
        code = digest(text, start, length, counts[SEED])
        return _enter(slots, terms, arena, counts, text, Written(LITERAL, start, middle, stop), code), stop
    at = counts[USED]  # the canonical form, at its place in the arena if it is new
    for i in range(length):
        c = text[start + i]
        arena[at + i] = c | 0x20 if start + i > middle and c >= _A and c <= _Z else c
    code = digest(arena, at, length, counts[SEED])
    middle += at - start
    term = Written(LITERAL, at, middle, at + length)
    return _enter(slots, terms, arena, counts, arena, term, code), stop


@part
def _label(slots: Slots, terms: Ids, arena: Bytes, counts: Ids, text: Bytes, start: int) -> tuple[int, int]:
    """Return (id, end) of the label at ``start``; the id is 0 unless it is plain."""
    stop = start + 2
    if text[start + 1] == _COLON:
        while _IN_LABEL[text[stop]]:
            stop += 1
    if stop == start + 2:
        return 0, stop
    code = digest(text, start, stop - start, counts[SEED])
    return _enter(slots, terms, arena, counts, text, Written(LABEL, start, stop, stop), code), stop


@inlined
def _is_again(text: Bytes, i: int, size: int, seen: Ids, row: int) -> bool:
    """Return whether the text at ``i`` is the IRI of a row of `seen`."""
    length = seen[row, LENGTH_SEEN]
    if length < 8 or i + length > size:
        return False
    end = seen[row, START_SEEN] + length
    # Different IRIs usually differ in their last bytes.
    return load(text, i + length - 8) == load(text, end - 8) and same(text, i, text, end - length, length)


@inlined
def _ends(text: Bytes, i: int, size: int) -> int:
    """Return where the next line begins, if only white space is left of this one; else 0."""
    i = _blanks(text, i, size)
    if i < size and text[i] == _RETURN:
        i += 1
    return i + 1 if i >= size or text[i] == _NEWLINE else 0


@inlined
def _likely(text: Bytes, i: int, size: int, seen: Ids, position: int, predicate: int) -> tuple[int, bool]:
    """Return the row of `seen` with the likeliest IRI for a position, and whether this IRI is at ``i``."""
    row = position if position != 1 else seen[predicate, NEXT_SEEN]
    again = position != 2 and _is_again(text, i, size, seen, row)
    if not again and (position == 0 or position == 3):
        row = GRAPH if position == 0 else TIMED
        again = _is_again(text, i, size, seen, row)
    return row, again


@inlined
def _remember(
    seen: Ids, position: int, row: int, again: bool, predicate: int, term: Written, identifier: int
) -> int:
    """Note the IRI of a position; return the row of the last predicate."""
    if position == 2:
        return predicate
    if position == 1:
        if not again:
            row = PREDICATES + (identifier & (SEEN - PREDICATES - 1))
            seen[predicate, NEXT_SEEN] = row
        predicate = row
    elif row != position:
        row, again = position, False
    if not again:
        seen[row, ID_SEEN] = identifier
        seen[row, START_SEEN] = term.start
        seen[row, LENGTH_SEEN] = term.end - term.start
    return predicate


@inlined
def _odd(text: Bytes, begin: int, size: int) -> tuple[int, bool]:
    """Return where the line after an odd one begins, and whether the odd one may hold a quad."""
    end = _line_end(text, begin, size)
    following = end + 1
    if end > begin and text[end - 1] == _RETURN:
        end -= 1
    return following, text[_blanks(text, begin, end)] != _HASH or not is_text(text, begin, end)


@kernel
def scan(
    text: Bytes, cursor: Ids, slots: Slots, terms: Ids, arena: Bytes, counts: Ids, seen: Ids, quads: Ids
) -> None:
    """Scan the lines that a text has from the cursor on; write their quads.

    ``cursor``, ``(CURSOR,)``, is moved: see above. ``quads``, ``(6, room)``: subject, predicate, object,
    graph (0: default), where the line begins, its number. The subject of an odd line is ``ODD``. The arena
    must have room for all bytes. ``seen``, ``(SEEN, 4)``, belongs to the scanner and starts with zeros: id,
    start and length of IRIs that are likely to repeat. The scan stops at a line without room.
    """
    begin, line, count = cursor[BEGIN], cursor[LINE], cursor[COUNT]
    size, with_graphs = cursor[SIZE], cursor[WITH_GRAPHS] != 0
    predicate = PREDICATES
    while begin < size:
        if count == quads.shape[1] or 2 * (counts[LIVE] + 4) > len(slots) or counts[LIVE] + 5 > len(terms):
            break
        following = _ends(text, begin, size)
        if following == 0:
            i = _blanks(text, begin, size)
            quads[3, count], quads[4, count], quads[5, count] = 0, begin, line
            position = 0
            while position < 4:
                c = text[i]
                if c == _DOT:
                    break
                identifier = 0
                if c == _LT:
                    row, again = _likely(text, i, size, seen, position, predicate)
                    if again:
                        identifier, stop = seen[row, ID_SEEN], i + seen[row, LENGTH_SEEN]
                    else:
                        identifier, stop = _iri(slots, terms, arena, counts, text, i, size)
                    if identifier != 0:
                        term = Written(IRI, i, stop, stop)
                        predicate = _remember(seen, position, row, again, predicate, term, identifier)
                        i = stop
                elif c == _QUOTE and position == 2:
                    identifier, i = _literal(slots, terms, arena, counts, text, i, size)
                elif c == _UNDERSCORE and position != 1:
                    identifier, i = _label(slots, terms, arena, counts, text, i)
                if identifier == 0 or (text[i] != _SPACE and text[i] != _TAB):
                    position = 0
                    break
                quads[position, count] = identifier
                position += 1
                i = _blanks(text, i, size)
            if (position == 3 or (position == 4 and with_graphs)) and text[i] == _DOT:
                following = _ends(text, i + 1, size)
            if following == 0:
                following, may_hold = _odd(text, begin, size)
                quads[0, count] = ODD
                count += may_hold
            else:
                if position == 3:
                    for column in range(NEXT_SEEN):
                        seen[TIMED, column] = seen[SUBJECT, column]
                count += 1
        begin = following
        line += 1
    cursor[BEGIN], cursor[LINE], cursor[COUNT] = begin, line, count
