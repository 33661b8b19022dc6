"""Whose the matches are that are found: those of one query, or of several that run as one."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


class Queries:
    """Queries whose matches are found together."""

    def __init__(self, ends: Mask, weights: Floats) -> None:
        """``ends``: in which ways those of each end, of shape ``(queries, ways)``; ``weights``: what a match
        of each query is worth.
        """
        self._ends, self._weights = ends, weights
        #: What a match is worth, by the way that it ends.
        self.worth: Floats = weights @ ends

    def keep(self, live: Collection[int]) -> None:
        """No query wants anything but these, by number."""
        some = sorted(live)
        self.worth[:] = self._weights[some] @ self._ends[some]


def only(ways: int) -> Queries:
    """One query, whose matches end in so many ways."""
    return Queries(np.ones((1, ways), dtype=np.bool_), np.ones(1))
