"""The term table: the ids of terms by their bytes, for readers that make no Python object per term."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from spaseq.terms import _table_kernel as kernels
from spaseq.terms._table_kernel import (
    FREE,
    FRESH,
    IRI,
    KIND,
    LABEL,
    LITERAL,
    LIVE,
    NEXT,
    NOTHING,
    PADDING,
    SEED,
    START,
    USED,
    Bytes,
    Ids,
    Slots,
)
from spaseq.terms.texts import ntriples

_LEAST: Final = 1 << 16  # ids that an empty table has room for
_LEAST_BYTES: Final = 1 << 22


class TermTable:
    """Terms as bytes ⇄ ids. Only one thread at a time may use it: ``Dictionary`` has the lock.

    ``slots``, ``terms``, ``arena`` and ``counts`` are the arrays of ``_table_kernel``.
    """

    def __init__(self, terms: Mapping[int, str], free: list[int], limit: int) -> None:
        """Create a table with ids that were given before: ``terms`` has the text of each.

        All ids are below ``limit``. ``free``: the ids below ``limit`` that are not in use.
        """
        self.slots: Slots = np.zeros(0, dtype=np.uint32)
        self.terms: Ids = np.zeros((2 * (_LEAST + limit), 4), dtype=np.int64)
        self.arena: Bytes = np.zeros(_LEAST_BYTES, dtype=np.uint8)
        self.counts: Ids = np.zeros(9, dtype=np.int64)
        self.counts[NEXT] = limit
        self.counts[LIVE] = len(terms)
        self.counts[SEED] = secrets.randbits(62)
        for identifier in free:
            self.terms[identifier, START] = self.counts[FREE]
            self.counts[FREE] = identifier
        texts = [ntriples(text).encode() for text in terms.values()]
        self.reserve(_LEAST, sum(map(len, texts)))
        ids = np.fromiter(terms, dtype=np.int64, count=len(terms))
        self.terms[ids, KIND] = [_kind_of(text) for text in terms.values()]
        self._adopt(texts, ids)

    @classmethod
    def of(cls, slots: Slots, terms: Ids, arena: Bytes, counts: Ids) -> TermTable:
        """Return a table that uses these arrays, which ``arrays`` of another table returned."""
        table = cls.__new__(cls)
        table.slots, table.terms, table.arena, table.counts = slots, terms, arena, counts
        return table

    @property
    def limit(self) -> int:
        """Return a number that all ids are below."""
        return int(self.counts[NEXT])

    def __len__(self) -> int:
        return int(self.counts[LIVE])

    def reserve(self, ids: int, size: int) -> None:
        """Make room for this many new ids, and bytes of new terms."""
        used = int(self.counts[USED])
        if used + size + PADDING > len(self.arena):
            self.arena = _grown(self.arena, used, 2 * len(self.arena) + size)
        if len(self) + ids >= len(self.terms):  # forgotten ids are given first
            self.terms = _grown(self.terms, self.limit, 2 * len(self.terms) + ids)
        if 2 * (len(self) + ids) > len(self.slots):
            self.slots = np.zeros(_power(3 * (len(self) + ids)), dtype=np.uint32)
            kernels.fill_slots(self.slots, self.terms, self.counts)

    def find(self, text: str) -> int:
        """Return the id of a term by its text, 0 if it has none."""
        return self._lookup(ntriples(text).encode(), NOTHING)

    def intern(self, text: str) -> int:
        """Return the id of a term by its text, a new id if the term has none."""
        written = ntriples(text).encode()
        self.reserve(1, len(written))
        return self._lookup(written, _kind_of(text))

    def enter(self, lines: bytes, count: int) -> Ids:
        """Return the ids of ``count`` IRIs and literals in canonical form, one a line; 0 for an
        empty line.
        """
        self.reserve(count, len(lines))
        ids = np.empty(count, dtype=np.int64)
        kernels.enter_lines(self.slots, self.terms, self.arena, self.counts, padded(lines), ids)
        return ids

    def _lookup(self, text: bytes, kind: int) -> int:
        return int(
            kernels.lookup(self.slots, self.terms, self.arena, self.counts, padded(text), len(text), kind)
        )

    def label(self, identifier: int, label: str) -> None:
        """Give a fresh blank node a label by which it is found."""
        text = label.encode()
        self.reserve(1, len(text))
        self.terms[identifier, KIND] = LABEL
        self._adopt([text], np.array([identifier]))

    def _adopt(self, texts: list[bytes], ids: Ids) -> None:
        ends = np.cumsum([len(text) for text in texts], dtype=np.int64)
        kernels.adopt(self.slots, self.terms, self.arena, self.counts, padded(b"".join(texts)), ends, ids)

    def fresh(self, count: int) -> Ids:
        """Return ids of new blank nodes without labels."""
        self.reserve(count, 0)
        ids = np.empty(count, dtype=np.int64)
        kernels.take_ids(self.terms, self.counts, FRESH, ids)
        return ids

    def arrays(self) -> tuple[Slots, Ids, Bytes, Ids]:
        """Return copies of the arrays, for ``of``, without the room for more terms."""
        terms, counts = self.terms[: self.limit].copy(), self.counts.copy()
        slots: Slots = np.zeros(_power(3 * len(terms)), dtype=np.uint32)
        kernels.fill_slots(slots, terms, counts)
        return slots, terms, self.arena[: int(counts[USED]) + PADDING].copy(), counts

    def nameless(self) -> Ids:
        """Return the ids of blank nodes without labels."""
        return np.flatnonzero(self.terms[: self.limit, KIND] == FRESH)

    def are_fresh(self, ids: Ids) -> npt.NDArray[np.bool_]:
        """Return which ids are blank nodes without labels."""
        fresh: npt.NDArray[np.bool_] = self.terms[ids, KIND] == FRESH
        return fresh

    def kind(self, identifier: int) -> int:
        """Return the kind of an id; ``NOTHING`` if it is not in use."""
        return int(self.terms[identifier, KIND]) if 0 < identifier < self.limit else NOTHING

    def is_fresh(self, identifier: int) -> bool:
        """Return whether an id is a blank node without a name."""
        return self.kind(identifier) == FRESH

    def text(self, identifier: int) -> bytes:
        """Return the bytes of an id: its term in N-Triples. The id must have bytes."""
        start, length, *_ = self.terms[identifier].tolist()
        return self.arena[start : start + length].tobytes()

    def texts(self, ids: Ids) -> list[bytes]:
        """Return the bytes of many ids; empty for ids that are no term."""
        arena = self.arena.data
        return [bytes(arena[at : at + length]) for at, length in self.terms[ids][:, :2].tolist()]

    def read(self, identifier: int) -> str:
        """Return the text of an id's term. The id must have bytes."""
        start, length, kind, _ = self.terms[identifier].tolist()
        return _read(self.arena.data, start, length, kind)

    def read_all(self, ids: Ids) -> list[str]:
        """Return the texts of the terms of many ids, which must have bytes."""
        arena = self.arena.data
        return [_read(arena, start, length, kind) for start, length, kind, _ in self.terms[ids].tolist()]

    def read_numbers(self, ids: Ids, numbers: npt.NDArray[np.float64], ranks: npt.NDArray[np.int8]) -> None:
        """Write the values of numbers in a usual form at their id's index, see ``Dictionary.numbers``."""
        # Imported here: compiled code that many callers do not need.
        from spaseq.terms._numbers_kernel import read_numbers

        read_numbers(self.terms, self.arena, ids, numbers, ranks)

    def sweep(self, keep: npt.NDArray[np.bool_]) -> int:
        """Forget all ids below ``limit`` that are not kept; return their number."""
        before = len(self)
        arena = np.empty_like(self.arena)
        kernels.discard(self.terms, self.arena, self.counts, keep, arena)
        if 4 * self.counts[USED] < len(arena) > _LEAST_BYTES:
            arena = arena[: max(_LEAST_BYTES, 2 * int(self.counts[USED]))].copy()
        self.arena = arena
        self.slots[:] = 0
        kernels.fill_slots(self.slots, self.terms, self.counts)
        return before - len(self)


def _read(arena: memoryview, start: int, length: int, kind: int) -> str:
    inside = kind == IRI  # the text of an IRI has no brackets
    return str(arena[start + inside : start + length - inside], "utf-8")


def _kind_of(text: str) -> int:
    """Return the kind of term that a text is."""
    first = text[0]
    return LITERAL if first == '"' else LABEL if first == "_" else IRI


def padded(text: bytes) -> npt.NDArray[np.uint8]:
    """Return bytes with padding, for kernels that read words.

    The array is writable: for read-only arrays Numba would compile each kernel once more.
    """
    array = np.empty(len(text) + PADDING, dtype=np.uint8)
    array[: len(text)] = np.frombuffer(text, dtype=np.uint8)
    array[len(text) :] = 0
    return array


def _power(least: int) -> int:
    return 1 << max(0, least - 1).bit_length()


def _grown(array: npt.NDArray[Any], used: int, room: int) -> npt.NDArray[Any]:
    grown = np.zeros((room, *array.shape[1:]), dtype=array.dtype)
    grown[:used] = array[:used]
    return grown
