"""The shedding of several queries with one bound, reported as a ``Shed`` for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from spaseq.bounds import Bound, Shed
from spaseq.matching.sharing.bounded.member import BoundedMember

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class Ledgers:
    """The reports of several queries, by number."""

    def __init__(self, members: Sequence[BoundedMember], states: Sequence[Sequence[str | None]]) -> None:
        """``states``: each query's description of each place where partial matches may be shed; None if the
        place is not the query's.
        """
        self._members, self._states = members, states
        # Members with a final report: their figures no longer change.
        self._over: set[int] = set()

    def tell(self, every: Shed, shed: Ints) -> None:
        """Report to each query the common figures, such as the estimate of recall, and what was shed at each
        place.
        """
        for i, (member, states) in enumerate(zip(self._members, self._states, strict=True)):
            if i in self._over:
                continue
            if member.is_done:
                self._over.add(i)
            own = member.shed
            own.latency, own.least, own.too_tight = every.latency, every.least, every.too_tight
            own.active, own.passed_over = every.active and not member.is_done, every.passed_over
            by_state: dict[str, int] = {}
            for state, count in zip(states, shed.tolist(), strict=True):
                if state is not None and count:
                    by_state[state] = by_state.get(state, 0) + count
            own.by_state, own.partial_matches = by_state, sum(by_state.values())
            own.recall = every.recall if own.partial_matches or own.passed_over else 1.0


def weights(members: Sequence[BoundedMember]) -> Floats:
    """Return the weight of a match of each query, 1 on average."""
    found = np.array([member.bound.weight for member in members])
    return np.asarray(found / found.mean())


def bound_of(members: Sequence[BoundedMember], before: Bound | None = None) -> Bound:
    """Return the common bound of several queries; their memory is the sum of what each would have.

    ``before``: the common bound so far, of these queries and of others that have ended.
    """
    bound = members[0].bound
    every = replace(bound, weight=sum(member.bound.weight for member in members))
    if every.pool is not None:
        for member in members:
            every.pool.leave(member.bound)
        every.pool.join(every, 0 if before is None else every.pool.leave(before))
    return every
