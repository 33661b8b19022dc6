"""Room for what is read once: an array that one query after the other writes its batch to."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from spaseq.terms.dictionary import Dictionary

Ints = npt.NDArray[np.int64]

#: So many integers are worth keeping: less is made as fast.
_WORTH: Final = 1 << 12
#: And no more than these, which a query has room for by itself.
_MOST: Final = 1 << 20


class Spare:
    """Arrays that were given back. Memory that nobody has written to for long is slow to write to.

    A dictionary has one, for all queries (``of``), which several threads may use.
    """

    @classmethod
    def of(cls, dictionary: Dictionary) -> Spare:
        """That of a dictionary."""
        return dictionary.beside(cls)

    def __init__(self, _: Dictionary) -> None:
        self._free: list[Ints] = []

    def take(self, size: int) -> Ints:
        """An array of at least so many integers, whatever they are."""
        try:
            found = self._free.pop()
        except IndexError:
            found = np.empty(0, dtype=np.int64)
        return found if len(found) >= size else np.empty(size, dtype=np.int64)

    def give(self, array: Ints) -> None:
        """Nobody looks at an array any more."""
        if _WORTH <= len(array) <= _MOST and not self._free:
            self._free.append(array)

    def forget_all_but(self, kept: npt.NDArray[np.bool_]) -> None:
        """See ``Beside.forget_all_but``: nobody reads what stands there."""
