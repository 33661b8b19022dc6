"""Queries with a common prefix and one bound: their groups, and the matchers of these."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from spaseq.automaton.pattern import SequencePattern
from spaseq.bounds import Bound, Shed
from spaseq.limits import Budget
from spaseq.matching.model import StreamWindow
from spaseq.matching.sharing.bounded.ledgers import Ledgers, bound_of
from spaseq.matching.sharing.bounded.member import BoundedMember
from spaseq.matching.shedding.query import BoundedQuery, Many

Ints = npt.NDArray[np.int64]


def query_of(
    pattern: SequencePattern, members: Sequence[BoundedMember], window: StreamWindow
) -> BoundedQuery:
    """Return the members as one query."""
    first = members[0]
    many = Many(first.name, len(members), Budget(first.context.budget.limits.times(len(members))))
    return BoundedQuery(pattern, first.dictionary, first.context, window, bound_of(members), many)


class SharedShedding(Protocol):
    """The matcher of a group that keeps a bound."""

    shed: Shed

    def end_shedding(self) -> None:
        """See ``Shedder.end_shedding``."""
        ...

    def update(self) -> None:
        """See ``Shedder.update``."""
        ...

    def keep_bound(self, bound: Bound) -> None:
        """Keep another bound from now on."""
        ...


class GroupBound:
    """The bound of a group, which its matcher keeps.

    Members get matches as they are found: making these is part of an event's duration.
    """

    def __init__(
        self,
        matcher: SharedShedding,
        bound: Bound,
        ledgers: Ledgers,
        members: Sequence[BoundedMember],
        value: Callable[[Collection[int]], None],
        counts: Callable[[], Ints],
    ) -> None:
        """``value`` sets the value of matches: matches of members other than the given ones have value 0.

        ``counts`` returns how many partial matches were shed at each place.
        """
        self._matcher, self._bound, self._ledgers, self._members = matcher, bound, ledgers, members
        self._value, self._counts = value, counts

    def begin(self) -> None:
        """Begin with the members. Must be called last. If the creation of the group failed afterwards,
        members would leave the group, which would hide an error or an interrupt.
        """
        for member in self._members:
            member.leaves, member.asks = self._left, self._update

    def tell(self) -> None:
        """Report to each query which of its own partial matches were shed."""
        self._ledgers.tell(self._matcher.shed, self._counts())

    def weigh(self, live: frozenset[int]) -> None:
        """Restrict the group to these members: from now on the bound is only theirs."""
        self._value(live)
        if live and self._bound.pool is not None:
            self._bound = bound_of([self._members[i] for i in sorted(live)], self._bound)
            self._matcher.keep_bound(self._bound)

    def _update(self) -> None:
        self._matcher.update()
        self.tell()

    def _left(self) -> None:
        """Note that a query has ended. If all have ended, end shedding."""
        if not all(member.is_done for member in self._members):
            self._update()
            return
        self._matcher.end_shedding()
        if self._bound.pool is not None:
            self._bound.pool.leave(self._bound)
        self.tell()
