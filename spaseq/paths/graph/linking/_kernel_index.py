"""The kernels of name indexes: they read the keys of terms, sort them, and index their trigrams."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spaseq._jit import inlined, kernel, part
from spaseq.terms._table_kernel import IRI, KIND, LENGTH, LITERAL, START

Bytes = npt.NDArray[np.uint8]
Ids = npt.NDArray[np.int64]
Nodes = npt.NDArray[np.int32]
Words = npt.NDArray[np.uint64]

#: Added to the kind of a term with escapes or letters beyond ASCII: its key is made in Python.
HARD: Final = 8

#: The most bytes of a letter in UTF-8, or of its escape.
_MOST_BYTES: Final = 10

_SLASH, _HASH, _COLON, _PERCENT, _QUOTE, _ESCAPE = (ord(c) for c in '/#:%"\\')
_MULTIPLIER: Final = np.uint64(0x9E3779B1)
_MASK: Final = np.uint64(0xFFFFFFFF)


class Keys(NamedTuple):
    """The keys of terms: ``text[begins[i]:begins[i] + lengths[i]]``. ``kinds``: IRI, LITERAL, or 0."""

    text: Bytes
    begins: Ids
    lengths: Ids
    kinds: Bytes


class Entries(NamedTuple):
    """The entries of an index: entry ``i`` has key number ``keys[i]`` of ``Keys``, a kind and a number."""

    text: Bytes
    begins: Ids
    lengths: Ids
    keys: Nodes
    kinds: Bytes
    numbers: Nodes


@kernel
def read_keys(
    terms: Ids, arena: Bytes, ids: Ids, labels: npt.NDArray[np.bool_], longest: int, keys: Keys
) -> int:
    """Write the keys of IRIs' last segments and of literals; return the number of bytes written.

    A literal of more than ``longest`` letters has a key only if ``labels`` flags it. ``terms`` and ``arena``
    are those of ``TermTable``. ``keys.text`` must have room for all bytes of the terms.
    """
    used = 0
    for i in range(len(ids)):
        keys.begins[i] = used
        keys.lengths[i] = 0
        keys.kinds[i] = 0
        kind = terms[ids[i], KIND]
        low = terms[ids[i], START] + 1
        end = low + terms[ids[i], LENGTH] - 2
        begin = low
        if kind == IRI:
            high = end
            while end > low and (arena[end - 1] == _SLASH or arena[end - 1] == _HASH):
                end -= 1
            begin = end
            while begin > low and not (
                arena[begin - 1] == _SLASH or arena[begin - 1] == _HASH or arena[begin - 1] == _COLON
            ):
                begin -= 1
            if begin == end:  # it has no last segment
                begin, end = low, high
        elif kind == LITERAL:
            while arena[end] != _QUOTE:
                end -= 1
            if end - begin > _MOST_BYTES * longest and not labels[i]:
                continue
        else:
            continue
        keys.kinds[i] = kind
        at = used
        for k in range(begin, end):
            c = arena[k]
            if c >= 128 or c == _ESCAPE or (c == _PERCENT and kind == IRI):
                keys.kinds[i] = kind + HARD
                break
            if 65 <= c <= 90:
                keys.text[at] = c + 32
                at += 1
            elif 97 <= c <= 122 or 48 <= c <= 57:
                keys.text[at] = c
                at += 1
        if kind == LITERAL and keys.kinds[i] == kind and end - begin > longest and not labels[i]:
            keys.kinds[i] = 0
        elif keys.kinds[i] == kind:
            keys.lengths[i] = at - used
            used = at
    return used


@part
def _is_before(entries: Entries, a: int, b: int) -> bool:
    """Return whether entry ``a`` sorts before ``b`` by key, kind, number; the first 8 bytes are equal."""
    x, y = entries.keys[a], entries.keys[b]
    if x != y:
        m, n = entries.lengths[x], entries.lengths[y]
        for k in range(8, min(m, n)):
            p, q = entries.text[entries.begins[x] + k], entries.text[entries.begins[y] + k]
            if p != q:
                return bool(p < q)
        if m != n:
            return bool(m < n)
    if entries.kinds[a] != entries.kinds[b]:
        return bool(entries.kinds[a] < entries.kinds[b])
    return bool(entries.numbers[a] < entries.numbers[b])


@kernel
def sort_entries(entries: Entries, order: Nodes, room: Nodes, words: Words) -> int:
    """Sort ``order``, which lists entries, and drop duplicates (merge sort); return how many are kept.

    ``room`` is as long as ``order``. ``words``, ``(2, len(order))``, gets the first 8 bytes of keys as
    numbers; so most comparisons need not read the text.
    """
    count = len(order)
    for i in range(count):
        key = entries.keys[order[i]]
        word = np.uint64(0)
        for k in range(8):
            byte = np.uint64(0)
            if k < entries.lengths[key]:
                byte = np.uint64(entries.text[entries.begins[key] + k])
            word = word << np.uint64(8) | byte
        words[0, i] = word
    width = 1
    while width < count:
        for low in range(0, count, 2 * width):
            middle, high = min(low + width, count), min(low + 2 * width, count)
            i, j, at = low, middle, low
            for k in range(low, middle):
                room[k] = order[k]
                words[1, k] = words[0, k]
            while i < middle:
                second = False
                if j < high:
                    a, b = words[0, j], words[1, i]
                    second = a < b or (a == b and _is_before(entries, order[j], room[i]))
                if second:
                    order[at], words[0, at] = order[j], words[0, j]
                    j += 1
                else:
                    order[at], words[0, at] = room[i], words[1, i]
                    i += 1
                at += 1
        width *= 2
    kept = 0
    for i in range(count):
        same = kept > 0 and words[0, i] == words[0, kept - 1]
        if not same or _is_before(entries, order[kept - 1], order[i]):
            order[kept], words[0, kept] = order[i], words[0, i]
            kept += 1
    return kept


@kernel
def gather(entries: Entries, order: Nodes, ends: Ids, text: Bytes) -> None:
    """Write the keys to ``text`` in this order, the ``i``-th from ``ends[i]`` on."""
    for i in range(len(order)):
        key = entries.keys[order[i]]
        begin = entries.begins[key]
        for k in range(entries.lengths[key]):
            text[ends[i] + k] = entries.text[begin + k]


@inlined
def _bucket(a: int, b: int, c: int) -> int:
    word = np.uint64(a) << np.uint64(16) | np.uint64(b) << np.uint64(8) | np.uint64(c)
    return int((word * _MULTIPLIER & _MASK) >> np.uint64(16))


@kernel
def trigrams(text: Bytes, ends: Ids, longest: int, cursors: Ids, grams: Nodes) -> None:
    """Count the trigrams of names by bucket or, if ``grams`` is not empty, write the names to it by bucket.

    Only the first ``longest`` bytes of a name count. ``cursors``, ``(buckets,)``, are the counts, or where
    each bucket's next name goes in ``grams``.
    """
    counts_only = len(grams) == 0
    for i in range(len(ends) - 1):
        size = min(ends[i + 1] - ends[i], longest)
        a = b = 0
        for k in range(size + 2):
            c = 0
            if k < size:
                c = int(text[ends[i] + k])
            bucket = _bucket(a, b, c)
            if not counts_only:
                grams[cursors[bucket]] = i
            cursors[bucket] += 1
            a, b = b, c
