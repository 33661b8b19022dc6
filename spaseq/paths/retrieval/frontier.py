"""The choice of the edges that paths take next, when a bound does not allow looking at all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from spaseq.bounds import Policy, WorkClock
from spaseq.paths.retrieval.budget import Budget
from spaseq.paths.retrieval.prefixes import Prefixes
from spaseq.paths.search._kernel import Ids, Nodes

Floats = npt.NDArray[np.float64]

#: Bytes of a path while it is looked at.
PATH_BYTES: Final = 160

#: Seconds that a look at an edge takes, a guess until it is measured.
_EDGE: Final = 1e-6
#: The part of the bound that walking may take; each length of paths may take ``_LENGTH`` of what is left.
WALKING: Final = 0.5
_LENGTH: Final = 0.5


class Frontier:
    """Chooses the edges that a walk looks at under a bound. ``passed`` is the number of edges left out."""

    def __init__(self, prefixes: Prefixes, promises: Floats, budget: Budget) -> None:
        self._prefixes, self._promises = prefixes, promises
        self._budget = budget
        self._begin = budget.clock()
        self._policy = Policy(budget.policy)
        self._lots = np.random.default_rng(1)
        self._looked, self.passed = 0, 0

    def room(self, total: int, paths: int) -> int:
        """Return how many of ``total`` edges may be looked at, when there are ``paths`` paths already."""
        room, budget = total, self._budget
        if budget.latency is not None:
            spent = budget.clock() - self._begin
            left = WALKING * budget.latency.total_seconds() - spent
            each = spent / self._looked if self._looked else _EDGE
            room = min(room, int(max(left, 0.0) * _LENGTH / max(each, 1e-9)))
        if budget.memory is not None:
            room = min(room, int(WALKING * budget.memory / PATH_BYTES - paths) // 2)
        return max(room, min(total, 1))

    def chosen(self, states: Nodes, sizes: Ids, room: int) -> Ids:
        """Choose ``room`` edges; return their indexes among all edges, piece after piece.

        Piece ``i`` has ``sizes[i]`` edges, which lead to ``states[i]``.
        """
        begins, total = np.cumsum(sizes) - sizes, int(sizes.sum())
        self.passed += total - room
        if self._policy is Policy.RANDOM_STATE:
            return np.sort(self._lots.permutation(total)[:room])
        if self._policy is Policy.SELECTIVE:
            order = np.argsort(sizes, kind="stable")
        else:
            different, inverse = np.unique(states, return_inverse=True)
            wanted = map(self._prefixes.wanted, different.tolist())
            promise = np.array([most_promised(self._promises, numbers) for numbers in wanted])
            cost = np.bincount(inverse, sizes, len(different))
            worth = (promise / np.maximum(cost, 1.0))[inverse]
            order = np.lexsort((-worth, -promise[inverse]))
        taken = np.clip(room - (np.cumsum(sizes[order]) - sizes[order]), 0, sizes[order])
        within = np.arange(taken.sum()) - np.repeat(np.cumsum(taken) - taken, taken)
        return np.sort(np.repeat(begins[order], taken) + within)

    def looked(self, edges: int) -> None:
        """Count edges that were looked at."""
        self._looked += edges
        if isinstance(self._budget.clock, WorkClock):
            self._budget.clock.add(edges)


def most_promised(promises: Floats, numbers: Sequence[int]) -> float:
    """Return the largest promise of some expressions."""
    return max((float(promises[i]) for i in numbers), default=0.0)
