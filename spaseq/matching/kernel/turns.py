"""Memory that was swept, for the next one: what the system gives anew takes long to be touched first."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from spaseq.limits import Budget
from spaseq.matching.kernel.memory import Memory, Room, fresh, memory
from spaseq.matching.kernel.tables.compiled import Compiled

Ints = npt.NDArray[np.int64]

#: Integers of a memory that is worth it, and of one that would take longer to be made zeros again than what
#: is used of it takes to be touched.
_WORTH: Final = range(1 << 17, 1 << 25)
#: The next one may need more than this one; and one that is so many times as large as is needed goes back.
_WIDER: Final = 1.5
_TOO_WIDE: Final = 8
#: Both are such a part of the bytes that a query may take, at most, since only one of them is counted.
_OF_LIMIT: Final = 1 / 4


class Turns:
    """Two memories of a query, of which one is in use.

    While memory came from the system, some sweeps took fifty times as long as others: a window's events.
    """

    def __init__(self, compiled: Compiled, budget: Budget) -> None:
        self._compiled, self._budget = compiled, budget
        self._spare: Ints | None = None

    def empty(self, room: Room, like: Memory) -> Memory:
        """An empty memory with so much space, and the progress of another one; see ``memory``.

        That one is in use until the next call.
        """
        in_use = _whole(like.ints)
        # Whoever was interrupted before may still use what was to be used next.
        spare, self._spare = None if self._spare is in_use else self._spare, None

        def allocate(size: int) -> tuple[Ints, bool]:
            if spare is not None and size <= len(spare) <= _TOO_WIDE * size:
                return spare[:size], False
            wide = int(_WIDER * size)
            return (np.zeros(wide, dtype=np.int64)[:size], True) if self._is_worth(wide) else fresh(size)

        new = memory(self._compiled, room, self._budget, like, allocate)
        self._spare = in_use if self._is_worth(len(in_use)) else None
        return new

    def _is_worth(self, size: int) -> bool:
        most = self._budget.limits.query_bytes
        return size in _WORTH and (most is None or 2 * 8 * size <= _OF_LIMIT * most)


def _whole(ints: Ints) -> Ints:
    """The array that some integers are the first ones of."""
    return ints if ints.base is None else ints.base
