"""Columns of terms, dictionary-encoded: numbers, and a term for each of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, overload

import numpy as np
import numpy.typing as npt

from spaseq.events import Ids
from spaseq.matching.columns.found import Picked
from spaseq.terms.dictionary import UNBOUND, Dictionary, Term

#: Terms of a table this much smaller than the ids given so far are looked for by sorting.
_SPARSE: Final = 64

#: Values that so many more are than are picked of them are not looked at one by one.
_FEW: Final = 4


class Terms(Sequence[Term]):
    """The terms of some ids, each read when it is asked for. Equal to any sequence of the same terms."""

    def __init__(self, ids: Ids, dictionary: Dictionary, holder: object) -> None:
        """``holder`` keeps the terms in the dictionary."""
        self.ids = ids
        self._dictionary = dictionary
        self._holder = holder

    def __len__(self) -> int:
        return len(self.ids)

    @overload
    def __getitem__(self, i: int) -> Term: ...
    @overload
    def __getitem__(self, i: slice) -> Terms: ...
    def __getitem__(self, i: int | slice) -> Term | Terms:
        if isinstance(i, slice):
            return Terms(self.ids[i], self._dictionary, self._holder)
        return self._dictionary.term(int(self.ids[i]))

    def __iter__(self) -> Iterator[Term]:
        return self._dictionary.glance(self.ids)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and [*self] == [*other]

    __hash__ = None  # type: ignore[assignment]  # as of lists

    def __repr__(self) -> str:
        return f"<Terms: {len(self)}>"


@dataclass(frozen=True, slots=True, eq=False)
class Bindings:
    """The rows of matches: those of match i are from ``offsets[i]`` to ``offsets[i + 1]``.

    ``columns`` has for each variable the numbers of its values in ``terms``, -1 where it is unbound.
    """

    offsets: Ids
    columns: dict[str, npt.NDArray[np.int32]]
    terms: Sequence[Term]


def numbered(columns: Sequence[Ids | Picked], limit: int) -> tuple[Ids, list[npt.NDArray[np.int32]]]:
    """The ids that are in some columns, and each column as numbers of them, -1 for ``UNBOUND``.

    All ids are below ``limit``.
    """
    size = sum(map(len, columns))
    if limit > _SPARSE * max(size, 1 << 10):
        plain = [column.ids() if isinstance(column, Picked) else column for column in columns]
        used = np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *plain]))
        used = used[used != UNBOUND]
        found = [np.searchsorted(used, column).astype(np.int32) for column in plain]
        for numbers, ids in zip(found, plain, strict=True):
            numbers[ids == UNBOUND] = -1
        return used, found
    quick = [_picked_often(column) for column in columns]
    seen = np.zeros(limit, dtype=np.bool_)
    for column in quick:
        seen[column.different() if isinstance(column, Picked) else column] = True
    seen[UNBOUND] = False
    used = np.flatnonzero(seen)
    number = np.empty(limit, dtype=np.int32)
    number[UNBOUND] = -1
    number[used] = np.arange(len(used), dtype=np.int32)
    return used, [
        column.numbers(number) if isinstance(column, Picked) else number[column] for column in quick
    ]


def _picked_often(column: Ids | Picked) -> Ids | Picked:
    """A column as it is less work."""
    if isinstance(column, Picked) and len(column.values) > _FEW * len(column):
        return column.ids()
    return column
