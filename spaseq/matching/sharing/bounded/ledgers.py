"""What each of several queries gave up that keep one bound: what all did comes in, a ``Shed`` each out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from spaseq.effort import Effort, Shed
from spaseq.matching.sharing.bounded.member import BoundedMember
from spaseq.matching.shedding.account import recall_of

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class Ledgers:
    """Of several queries, by number."""

    def __init__(
        self, members: Sequence[BoundedMember], states: Sequence[Sequence[str | None]], one_in: float = 0.0
    ) -> None:
        """``states``: what each query calls each place where something may be shed; None: not its own.

        ``one_in``: see ``recall_of``.
        """
        self._members, self._states, self._one_in = members, states, one_in
        # Of each query, the matches found; and of those found at once, squared.
        self._found, self._squares = np.zeros((2, len(members)))
        # Those that were told when they were over: what they found and missed stays as it was.
        self._over: set[int] = set()

    def find(self, matches: Ints) -> None:
        """So many matches of each query were found at once."""
        self._found += matches
        self._squares += matches.astype(np.float64) ** 2

    def tell(self, every: Shed, shed: Ints, missed: Floats) -> None:
        """Tells each what is so of all, how much was shed at each place, and what it missed by that."""
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
            found = float(self._found[i]), float(missed[i]), float(self._squares[i])
            own.recall, own.error = recall_of(*found, own, self._one_in)


def weights(members: Sequence[BoundedMember]) -> Floats:
    """What a match of each query is worth, on average one."""
    found = np.array([member.effort.weight for member in members])
    return np.asarray(found / found.mean())


def effort_of(members: Sequence[BoundedMember], before: Effort | None = None) -> Effort:
    """The bound of several queries, for all together; of memory they have what each would have.

    ``before``: that of these and others, which are over.
    """
    effort = members[0].effort
    every = replace(effort, weight=sum(member.effort.weight for member in members))
    if every.pool is not None:
        for member in members:
            every.pool.leave(member.effort)
        every.pool.join(every, 0 if before is None else every.pool.leave(before))
    return every
