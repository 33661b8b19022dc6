"""The kernel of the term table: terms as bytes in an arena, found by open addressing.

A term's bytes are those of its canonical N-Triples form. A table is four arrays (passed one by one, since
taking them out of a tuple would count references each time):

- ``slots``, ``(2**k,)``: 0 or an id. Entries leave only when all slots are filled anew, so that no slot marks
  a gap;
- ``terms``, ``(ids, 4)``: where an id's bytes start in the arena, their number, the id's kind, the hash;
- ``arena``: the bytes. Every byte array has ``PADDING`` bytes after its end, since words of 8 are read;
- ``counts``: see below.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, cast

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from spaseq._jit import inlined, kernel, part

Bytes = npt.NDArray[np.uint8]
Ids = npt.NDArray[np.int64]
Slots = npt.NDArray[np.uint32]

PADDING: Final = 8

#: Kinds of ids. A fresh blank node has no bytes; a label is a blank node of a document.
NOTHING: Final = 0
IRI: Final = 1
LITERAL: Final = 2
LABEL: Final = 3
FRESH: Final = 4

# Columns of `terms`. The first column of a forgotten id holds the next forgotten id.
START: Final = 0
LENGTH: Final = 1
KIND: Final = 2
HASH: Final = 3

# Places in `counts`.
NEXT: Final = 0  # the smallest id that was never given
LIVE: Final = 1  # number of ids in use
FREE: Final = 2  # the first forgotten id, or 0
USED: Final = 3  # bytes of the arena
SEED: Final = 4  # of the hash: random, so that no stream can be made to have colliding terms
TYPE: Final = 5  # where in the arena a valid datatype is
TYPE_LENGTH: Final = 6
NAMESPACE: Final = 7  # where in the arena a valid IRI is, up to a slash or a hash
NAMESPACE_LENGTH: Final = 8

_LINE_FEED: Final = ord("\n")
_LESS: Final = ord("<")

_MULTIPLIER: Final = np.uint64(0x9E3779B97F4A7C15)
_SHIFT: Final = np.uint64(29)
_HIGH: Final = np.uint64(32)


@intrinsic
def _load(_context: Any, data: Any, index: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        place = builder.gep(array.data, [arguments[1]])
        return builder.load(builder.bitcast(place, ir.IntType(64).as_pointer()), align=1)

    del index
    return types.uint64(data, types.intp), generate


#: The 8 bytes of an array from an index on, aligned or not, as a word.
load: Callable[[Bytes, int], np.uint64] = cast(Any, _load)


@intrinsic
def _save(_context: Any, data: Any, index: Any, word: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        place = builder.gep(array.data, [arguments[1]])
        builder.store(arguments[2], builder.bitcast(place, ir.IntType(64).as_pointer()), align=1)
        return context.get_dummy_value()

    del index
    return types.void(data, types.intp, word), generate


@intrinsic
def _lowest_byte(_context: Any, word: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        zeros = builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))
        return builder.lshr(zeros, ir.Constant(ir.IntType(64), 3))

    return types.int64(word), generate


#: Write a word into an array likewise.
save: Callable[[Bytes, int, np.uint64], None] = cast(Any, _save)

#: The byte, from 0, that has the lowest set bit of a word; 8 if no bit is set.
lowest_byte: Callable[[np.uint64], int] = cast(Any, _lowest_byte)


@inlined
def low_bytes(word: np.uint64, count: int) -> np.uint64:
    """Return the first ``count`` bytes of a word, 1 to 7."""
    return word & ((np.uint64(1) << np.uint64(8 * count)) - np.uint64(1))


@inlined
def mix(code: np.uint64, word: np.uint64) -> np.uint64:
    """Return one step of the hash."""
    mixed = (code ^ word) * _MULTIPLIER
    return mixed ^ (mixed >> _SHIFT)


@inlined
def finish(code: np.uint64, length: int) -> np.uint64:
    """Return the last step of the hash."""
    mixed = (code ^ np.uint64(length)) * _MULTIPLIER
    return mixed ^ (mixed >> _HIGH)


@inlined
def digest(data: Bytes, start: int, length: int, seed: int) -> np.uint64:
    """Return the hash of some bytes: a step for each 8 of them, from ``seed`` on, and the last one."""
    code = np.uint64(seed)
    i = 0
    while i + 8 <= length:
        code = mix(code, load(data, start + i))
        i += 8
    if i < length:
        code = mix(code, low_bytes(load(data, start + i), length - i))
    return finish(code, length)


@inlined
def same(one: Bytes, start: int, other: Bytes, begin: int, length: int) -> bool:
    i = 0
    while i + 8 <= length:
        if load(one, start + i) != load(other, begin + i):
            return False
        i += 8
    left = length - i
    return left == 0 or low_bytes(load(one, start + i) ^ load(other, begin + i), left) == 0


@inlined
def copy(data: Bytes, start: int, length: int, to: Bytes, at: int) -> None:
    """Copy bytes into ``to`` at ``at``: up to 7 more bytes are written."""
    for i in range(0, length, 8):
        save(to, at + i, load(data, start + i))


@inlined
def place(
    slots: Slots, terms: Ids, arena: Bytes, data: Bytes, start: int, length: int, code: np.uint64
) -> int:
    """Return the slot of these bytes, or the empty slot where they belong."""
    mask = np.uint64(len(slots) - 1)
    slot = code & mask
    while True:
        identifier = slots[slot]
        if identifier == 0 or (
            terms[identifier, HASH] == np.int64(code)
            and terms[identifier, LENGTH] == length
            and same(arena, terms[identifier, START], data, start, length)
        ):
            break
        slot = (slot + np.uint64(1)) & mask
    found: Any = np.int64(slot)
    return found


@inlined
def new_id(terms: Ids, counts: Ids, kind: int) -> int:
    """Return an unused id of a kind. There must be room for it."""
    identifier = counts[FREE]
    if identifier != 0:
        counts[FREE] = terms[identifier, START]
    else:
        identifier = counts[NEXT]
        counts[NEXT] += 1
    counts[LIVE] += 1
    terms[identifier, KIND] = kind
    return identifier


@inlined
def put(
    terms: Ids,
    arena: Bytes,
    counts: Ids,
    code: np.uint64,
    identifier: int,
    data: Bytes,
    start: int,
    length: int,
) -> None:
    """Store the bytes of a term and its hash under an id. There must be room for them.

    The caller writes the id to an empty slot.
    """
    at = counts[USED]
    copy(data, start, length, arena, at)
    terms[identifier, START] = at
    terms[identifier, LENGTH] = length
    terms[identifier, HASH] = np.int64(code)
    counts[USED] = at + length


@part
def ends_with(text: Bytes, start: int, end: int, ending: Bytes) -> bool:
    """Return whether the bytes up to ``end`` end with ``ending`` and are longer than it."""
    begin = end - len(ending)
    if begin <= start:
        return False
    i = 0
    while i < len(ending) and text[begin + i] == ending[i]:
        i += 1
    return i == len(ending)


@kernel
def lookup(slots: Slots, terms: Ids, arena: Bytes, counts: Ids, data: Bytes, length: int, kind: int) -> int:
    """Return the id of a term. A new term gets an id of this ``kind``, or 0 if ``kind`` is ``NOTHING``."""
    code = digest(data, 0, length, counts[SEED])
    slot = place(slots, terms, arena, data, 0, length, code)
    identifier: Any = np.int64(slots[slot])
    if identifier == 0 and kind != NOTHING:
        identifier = new_id(terms, counts, kind)
        slots[slot] = identifier
        put(terms, arena, counts, code, identifier, data, 0, length)
    return identifier


@kernel
def enter_lines(slots: Slots, terms: Ids, arena: Bytes, counts: Ids, lines: Bytes, ids: Ids) -> None:
    """Write the ids of IRIs and literals in canonical form, one a line; 0 for an empty line.

    There must be room for all of them.
    """
    start = 0
    for i in range(len(ids)):
        end = start
        while lines[end] != _LINE_FEED:
            end += 1
        ids[i] = 0
        if end > start:
            code = digest(lines, start, end - start, counts[SEED])
            slot = place(slots, terms, arena, lines, start, end - start, code)
            ids[i] = slots[slot]
            if ids[i] == 0:
                ids[i] = new_id(terms, counts, IRI if lines[start] == _LESS else LITERAL)
                slots[slot] = ids[i]
                put(terms, arena, counts, code, ids[i], lines, start, end - start)
        start = end + 1


@kernel
def adopt(slots: Slots, terms: Ids, arena: Bytes, counts: Ids, data: Bytes, ends: Ids, ids: Ids) -> None:
    """Enter terms that have ids already: term ``i`` ends at ``ends[i]``, where the next begins."""
    start = 0
    for i in range(len(ids)):
        length = ends[i] - start
        code = digest(data, start, length, counts[SEED])
        slot = place(slots, terms, arena, data, start, length, code)
        slots[slot] = ids[i]
        put(terms, arena, counts, code, ids[i], data, start, length)
        start = ends[i]


@kernel
def take_ids(terms: Ids, counts: Ids, kind: int, ids: Ids) -> None:
    """Fill ``ids`` with new ones of a kind."""
    for i in range(len(ids)):
        ids[i] = new_id(terms, counts, kind)


@kernel
def fill_slots(slots: Slots, terms: Ids, counts: Ids) -> None:
    """Enter every term into slots that are all empty."""
    mask = np.uint64(len(slots) - 1)
    for identifier in range(1, counts[NEXT]):
        kind = terms[identifier, KIND]
        if kind != NOTHING and kind != FRESH:
            code = np.uint64(terms[identifier, HASH])
            slot = code & mask
            while slots[slot] != 0:
                slot = (slot + np.uint64(1)) & mask
            slots[slot] = identifier


@kernel
def discard(terms: Ids, arena: Bytes, counts: Ids, keep: npt.NDArray[np.bool_], new_arena: Bytes) -> None:
    """Free the ids that are not to be kept, and copy the bytes of the others to ``new_arena``."""
    used = 0
    for identifier in range(1, counts[NEXT]):
        kind = terms[identifier, KIND]
        if kind == NOTHING:
            continue
        if not keep[identifier]:
            terms[identifier, KIND] = NOTHING
            terms[identifier, START] = counts[FREE]
            counts[FREE] = identifier
            counts[LIVE] -= 1
        elif kind != FRESH:
            start, length = terms[identifier, START], terms[identifier, LENGTH]
            copy(arena, start, length, new_arena, used)
            terms[identifier, START] = used
            used += length
    counts[USED] = used
    counts[TYPE_LENGTH] = 0
    counts[NAMESPACE_LENGTH] = 0


# The kernel of chunks: many terms at once out of a term table, and into another one.


@kernel
def copy_terms(terms: Ids, arena: Bytes, ids: Ids, to: Bytes, ends: Ids) -> None:
    """Copy the bytes of some terms, one after the other; term ``i`` ends at ``ends[i]``."""
    at = 0
    for i in range(len(ids)):
        length = terms[ids[i], LENGTH]
        copy(arena, terms[ids[i], START], length, to, at)
        at += length
        ends[i] = at


@kernel
def enter_terms(
    slots: Slots, terms: Ids, arena: Bytes, counts: Ids, data: Bytes, ends: Ids, kinds: Ids, ids: Ids
) -> None:
    """Write the ids of terms given by their bytes and kinds; new terms get new ids. There must be room."""
    start = 0
    for i in range(len(ids)):
        length = ends[i] - start
        code = digest(data, start, length, counts[SEED])
        slot = place(slots, terms, arena, data, start, length, code)
        identifier: Any = np.int64(slots[slot])
        if identifier == 0:
            identifier = new_id(terms, counts, kinds[i])
            slots[slot] = identifier
            put(terms, arena, counts, code, identifier, data, start, length)
        ids[i] = identifier
        start = ends[i]


@kernel
def hash_terms(terms: Ids, arena: Bytes, ids: Ids, codes: Ids) -> None:
    """Mix a hash of each term's bytes into ``codes``. The hash is the same in every process."""
    for i in range(len(ids)):
        code = digest(arena, terms[ids[i], START], terms[ids[i], LENGTH], codes[i] & 0x3FFFFFFFFFFFFFFF)
        codes[i] = np.int64(code)
