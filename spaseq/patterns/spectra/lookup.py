"""Find the rows of a table by the values of some columns: a hash index, built once.

Background knowledge is joined with every event. The cost must depend on the event's rows and their matches,
not on the size of the table, so nothing here but ``__init__`` reads all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from spaseq.terms.dictionary import Ids

FACTOR: Final = 0x9E3779B97F4A7C15  # Fibonacci hashing (Knuth, TAOCP 3, 6.4)
_WORD: Final = 2**64 - 1

#: The beginning of ``packed``: the shift of a hash, and the offset of the rows; the buckets follow.
SHIFT: Final = 0
ROWS: Final = 1
BUCKETS: Final = 2


#: Called with the number of rows before they are made; raises if there are too many.
Counted = Callable[[int], None]


def uncounted(count: int) -> None:
    """Accept any number of rows."""


class RowIndex:
    """The rows of a table by the ids in its key columns; at least one column, all of one length.

    Rows of one bucket stand side by side, as in a CSR matrix; a found row is compared with the key.
    """

    def __init__(self, keys: Sequence[Ids]) -> None:
        self._keys = keys
        bits = max(1, (2 * len(keys[0])).bit_length())
        self._shift = 64 - bits
        buckets = self._buckets(keys)
        self._order = np.argsort(buckets, kind="stable")
        self._start: Ids = np.concatenate(([0], np.cumsum(np.bincount(buckets, minlength=2**bits))))
        self._packed: dict[tuple[str, ...], Ids] = {}

    def _buckets(self, keys: Sequence[Ids]) -> Ids:
        code = np.zeros(len(keys[0]), dtype=np.uint64)
        for column in keys:
            code = (code ^ column.astype(np.uint64)) * np.uint64(FACTOR)
        return (code >> np.uint64(self._shift)).astype(np.int64)

    def pairs(self, keys: Sequence[Ids], counted: Counted = uncounted) -> tuple[Ids, Ids]:
        """Return all pairs (row of ``keys``, row of the table) with equal keys, in that order.

        ``counted`` is called with their number, which includes pairs that only share a hash.
        """
        buckets = self._buckets(keys)
        start = self._start[buckets]
        counts = self._start[buckets + 1] - start
        counted(int(counts.sum()))
        wanted, positions = spread(start, counts)
        rows = self._order[positions]
        same = np.ones(len(rows), dtype=np.bool_)
        for known, key in zip(self._keys, keys, strict=True):
            same &= known[rows] == key[wanted]
        return wanted[same], rows[same]

    def rows(self, key: Sequence[int]) -> list[int]:
        """Return the rows of the table with this key, in order."""
        code = 0
        for identifier in key:
            code = ((code ^ identifier) * FACTOR) & _WORD
        bucket = code >> self._shift
        found: list[int] = self._order[self._start.item(bucket) : self._start.item(bucket + 1)].tolist()
        for known, identifier in zip(self._keys, key, strict=True):
            found = [row for row in found if known.item(row) == identifier]
        return found

    def packed(self, columns: Mapping[str, Ids]) -> Ids:
        """Return the index for compiled code, with other columns of the table: one array, made once per
        names.

        The array has the first row of each bucket, and the end of the last one; then the rows, bucket by
        bucket, each its key and its values in ``columns``.
        """
        names = tuple(columns)
        found = self._packed.get(names)
        if found is None:
            rows = [column[self._order] for column in (*self._keys, *columns.values())]
            head = np.array([self._shift, BUCKETS + len(self._start)], dtype=np.int64)
            found = np.concatenate([head, self._start, np.array(rows, dtype=np.int64).T.ravel()])
            self._packed[names] = found
        return found


def spread(start: Ids, counts: Ids) -> tuple[Ids, npt.NDArray[np.int64]]:
    """Ranges written out: for range ``i`` its number and its elements ``start[i] … + counts[i] - 1``."""
    numbers = np.repeat(np.arange(len(counts)), counts)
    # The difference between an element and its position among all elements.
    ahead = np.repeat(start - (np.cumsum(counts) - counts), counts)
    return numbers, ahead + np.arange(len(numbers))
