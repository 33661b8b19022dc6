"""The kernel of chunks: many terms at once out of a term table, and into another one."""

from __future__ import annotations

from typing import Any

import numpy as np

from spaseq._jit import kernel
from spaseq.terms._table_kernel import LENGTH, START, Bytes, Ids, Slots, copy, digest, new_id, place, put


@kernel
def copy_terms(terms: Ids, arena: Bytes, ids: Ids, to: Bytes, ends: Ids) -> None:
    """The bytes of some terms, one after the other; term ``i`` ends at ``ends[i]``."""
    at = 0
    for i in range(len(ids)):
        length = terms[ids[i], LENGTH]
        copy(arena, terms[ids[i], START], length, to, at)
        at += length
        ends[i] = at


@kernel
def enter_terms(
    slots: Slots,
    terms: Ids,
    arena: Bytes,
    counts: Ids,
    data: Bytes,
    ends: Ids,
    kinds: Ids,
    seed: int,
    ids: Ids,
) -> None:
    """The ids of terms given by their bytes and kinds, new ones where they had none. There must be room."""
    start = 0
    for i in range(len(ids)):
        length = ends[i] - start
        code = digest(data, start, length, seed)
        slot = place(slots, terms, arena, data, start, length, code)
        identifier: Any = np.int64(slots[slot])
        if identifier == 0:
            identifier = new_id(terms, counts, kinds[i])
            put(slots, terms, arena, counts, slot, code, identifier, data, start, length)
        ids[i] = identifier
        start = ends[i]


@kernel
def hash_terms(terms: Ids, arena: Bytes, ids: Ids, codes: Ids) -> None:
    """A hash of each term's bytes that is the same in every process; mixed into those that are there."""
    for i in range(len(ids)):
        code = digest(arena, terms[ids[i], START], terms[ids[i], LENGTH], codes[i] & 0x3FFFFFFFFFFFFFFF)
        codes[i] = np.int64(code)
