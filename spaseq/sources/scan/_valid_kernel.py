"""Compiled checks of new terms: which are certainly valid, byte by byte.

The checks err on the strict side: pyoxigraph judges what they reject.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from spaseq._jit import inlined, part
from spaseq.terms._table_kernel import (
    IRI,
    LABEL,
    NAMESPACE,
    NAMESPACE_LENGTH,
    TYPE,
    TYPE_LENGTH,
    USED,
    Bytes,
    Ids,
    load,
    same,
)


def byte_class(characters: bytes) -> Bytes:
    """Return a table that says for each byte whether it is one of ``characters``."""
    found = np.zeros(256, dtype=np.uint8)
    found[list(characters)] = 1
    return found


ALNUM: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

_IN_SCHEME: Final = byte_class(ALNUM + b"+-.")
_IN_HOST: Final = byte_class(ALNUM + b"-._~")
_IN_PATH: Final = byte_class(ALNUM + b"-._~!$&'()*+,;=:@/?")
_HEX: Final = byte_class(b"0123456789abcdefABCDEF")

_ONES: Final = np.uint64(0x0101010101010101)
_TOPS: Final = np.uint64(0x8080808080808080)
_SPACES: Final = np.uint64(0x2020202020202020)
_DELETES: Final = np.uint64(0x7F7F7F7F7F7F7F7F)

_STRING: Final = np.frombuffer(b"<http://www.w3.org/2001/XMLSchema#string>", dtype=np.uint8)
_RDF: Final = np.frombuffer(b"<http://www.w3.org/1999/02/22-rdf-syntax-ns#", dtype=np.uint8)

_0: Final = ord("0")
_9: Final = ord("9")
_SMALL_A: Final = ord("a")
_SMALL_Z: Final = ord("z")
_AT: Final = ord("@")
_HASH: Final = ord("#")
_COLON: Final = ord(":")
_SLASH: Final = ord("/")
_QUESTION: Final = ord("?")
_PERCENT: Final = ord("%")
_MINUS: Final = ord("-")


@part
def _path(text: Bytes, start: int, end: int) -> int:
    """Return the index after the last slash or hash of an IRI with a path at ``start``.

    -1 if it is invalid.
    """
    namespace = start
    i = start
    is_fragment = text[start - 1] == _HASH
    while i < end - 1:
        c = text[i]
        i += 1
        if c == _PERCENT and _HEX[text[i]] and _HEX[text[i + 1]]:
            i += 2
        elif c == _HASH and not is_fragment:
            is_fragment = True
            namespace = i
        elif not _IN_PATH[c]:
            return -1
        elif c == _SLASH and not is_fragment:
            namespace = i
    return namespace


@part
def _namespace(text: Bytes, start: int, end: int) -> int:
    """Return where the namespace of ``<…>`` ends; -1 unless it is certainly an absolute IRI.

    It is ``start`` if what follows could change its meaning: ``a:/`` may continue with an authority.
    """
    i = start + 1
    least = 2
    first = text[i] | 0x20
    if first < _SMALL_A or first > _SMALL_Z:
        return -1
    while _IN_SCHEME[text[i]]:
        i += 1
    if text[i] != _COLON:
        return -1
    i += 1
    if text[i] == _SLASH and text[i + 1] == _SLASH:
        i += 2
        least = 1
        while _IN_HOST[text[i]]:
            i += 1
        if text[i] == _COLON:
            i += 1
            while text[i] >= _0 and text[i] <= _9:
                i += 1
        if i < end - 1 and text[i] != _SLASH and text[i] != _QUESTION and text[i] != _HASH:
            return -1
    namespace = _path(text, i, end)
    return start if 0 <= namespace < i + least else namespace


@part
def _is_iri(arena: Bytes, counts: Ids, text: Bytes, start: int, end: int) -> bool:
    """Return whether ``<…>`` is certainly an absolute IRI.

    It must then enter the table, for later comparisons.
    """
    length = counts[NAMESPACE_LENGTH]
    if 0 < length < end - start and same(text, start, arena, counts[NAMESPACE], length):
        return _path(text, start + length, end) >= 0
    namespace = _namespace(text, start, end)
    if namespace < 0:
        return False
    counts[NAMESPACE] = counts[USED]
    counts[NAMESPACE_LENGTH] = namespace - start
    return True


@inlined
def _is_ascii(word: np.uint64) -> bool:
    """Return whether the 8 bytes are from 0x20 to 0x7E."""
    others = word ^ _DELETES
    return ((word - _SPACES) | (others - _ONES) | word) & _TOPS == 0


@part
def is_text(text: Bytes, start: int, end: int) -> bool:
    """Return whether bytes are UTF-8 that canonical N-Triples writes without escapes."""
    i = start
    while i < end:
        if i + 8 <= end and _is_ascii(load(text, i)):
            i += 8
            continue
        c = text[i]
        if c >= 0x20 and c < 0x7F:
            i += 1
            continue
        if c < 0xC2 or c > 0xF4:
            return False
        more = 1 if c < 0xE0 else (2 if c < 0xF0 else 3)
        if i + more >= end:
            return False
        for k in range(1, more + 1):
            if text[i + k] & 0xC0 != 0x80:
                return False
        d = text[i + 1]
        if (c == 0xE0 and d < 0xA0) or (c == 0xED and d > 0x9F):  # overlong, surrogates
            return False
        if (c == 0xF0 and d < 0x90) or (c == 0xF4 and d > 0x8F):  # overlong, too large
            return False
        if c == 0xEF and d == 0xBF and text[i + 2] >= 0xBE:  # noncharacters
            return False
        i += more + 1
    return True


@part
def _is_datatype(text: Bytes, start: int, end: int) -> bool:
    """Return whether an IRI is a datatype that a literal shows, and not one of language-tagged strings."""
    if end - start == len(_STRING):
        i = 0
        while i < len(_STRING) and text[start + i] == _STRING[i]:
            i += 1
        if i == len(_STRING):
            return False
    if end - start > len(_RDF):
        i = 0
        while i < len(_RDF) and text[start + i] == _RDF[i]:
            i += 1
        if i == len(_RDF):
            return False
    return _namespace(text, start, end) >= 0


@part
def _is_language(text: Bytes, start: int, end: int) -> bool:
    """Return whether a tag is two or three lower-case letters, perhaps with a country of two letters."""
    i = start
    while i < end and text[i] >= _SMALL_A and text[i] <= _SMALL_Z:
        i += 1
    if i - start < 2 or i - start > 3:
        return False
    if i == end:
        return True
    if text[i] != _MINUS or end - i != 3:
        return False
    a, b = text[i + 1], text[i + 2]
    return a >= _SMALL_A and a <= _SMALL_Z and b >= _SMALL_A and b <= _SMALL_Z


@part
def is_valid(arena: Bytes, counts: Ids, text: Bytes, start: int, end: int, kind: int, middle: int) -> bool:
    """Return whether a term is certainly valid. ``middle`` is where a literal's string ends, with its quotes.

    A datatype is remembered, to be compared with the next one; the term must then enter the table.
    """
    if kind == IRI:
        return _is_iri(arena, counts, text, start, end)
    if kind == LABEL:
        return True
    if not is_text(text, start + 1, middle - 1):
        return False
    if middle == end:
        return True
    if text[middle] == _AT:
        return _is_language(text, middle + 1, end)
    length = end - middle - 2
    if length == counts[TYPE_LENGTH] and same(text, middle + 2, arena, counts[TYPE], length):
        return True
    if not _is_datatype(text, middle + 2, end):
        return False
    counts[TYPE] = counts[USED] + middle + 2 - start
    counts[TYPE_LENGTH] = length
    return True
