"""What is left of a group's matches: each of its queries enumerates its own, when somebody asks for them."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spaseq.matching.columns.blocks.found import Block
from spaseq.matching.enumeration.compiled import _kernel_root as root
from spaseq.matching.enumeration.reading import Reading
from spaseq.matching.enumeration.walking import Walk

Ints = npt.NDArray[np.int64]


class Portion(NamedTuple):
    """Roots that are a query's own, or several queries' that have all in common.

    ``reading``: what they were found for; ``walk``: where the enumeration of the first of them stands, if it
    has begun.
    """

    reading: Reading
    roots: Ints
    walk: Walk | None


def divided(
    readings: Iterable[Reading], by_key: bool, keys: Collection[int] | None
) -> Iterator[tuple[int, Portion]]:
    """Takes what is not enumerated out of readings, by the first value of the keys: a portion for each.

    All under 0 if not ``by_key``. ``keys``: these alone, of what nobody has begun to enumerate.
    """
    for reading in readings:
        roots, walk = reading.give(keys)
        if not len(roots):
            continue
        of = roots[:, root.KEYS] if by_key else np.zeros(len(roots), dtype=np.int64)
        order = np.argsort(of, kind="stable")
        cuts = np.flatnonzero(np.diff(of[order])) + 1
        for some in np.split(order, cuts):
            yield int(of[some[0]]), Portion(reading, roots[some], walk if some[0] == 0 else None)


class Rest:
    """The matches of one query that were left to it, in the order in which they were found."""

    def __init__(self) -> None:
        self._readings: deque[Reading] = deque()

    def add(self, portion: Portion) -> None:
        """Further ones; others may have the same portion."""
        if not self._readings or not self._readings[-1].is_of(portion.reading):
            self._readings.append(portion.reading.part())
        self._readings[-1].add(portion.roots, None if portion.walk is None else portion.walk.copy())

    @property
    def waiting(self) -> int:
        """Of how many events the matches are not all enumerated, at least."""
        return sum(reading.waiting for reading in self._readings)

    def unread(self) -> Iterator[Block]:
        """The matches that were not enumerated, each once; those found meanwhile, too."""
        while self._readings:
            yield from self._readings[0].unread()
            if len(self._readings) == 1:
                return
            self._readings.popleft()

    def drop(self) -> None:
        """Forgets them."""
        for reading in self._readings:
            reading.drop()

    def keep(self) -> None:
        """The group finds no more for the query, and need not keep anything for it."""
        for reading in self._readings:
            reading.keep()
