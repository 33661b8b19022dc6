"""Queries that begin alike and have one bound: what their groups have in common, and what runs these."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TypeVar

from spaseq.alone import Single
from spaseq.automaton.pattern import SequencePattern
from spaseq.bounds import Bound
from spaseq.events import EventBatch
from spaseq.limits import Budget
from spaseq.matching.columns.matcher import UnsolvedError
from spaseq.matching.model import StreamWindow
from spaseq.matching.sharing.bounded.ledgers import bound_of
from spaseq.matching.sharing.bounded.member import BoundedMember
from spaseq.matching.sharing.group import PrefixGroup
from spaseq.matching.shedding.query import BoundedQuery, Many
from spaseq.patterns.spectra.solutions import Solutions

_Whole = TypeVar("_Whole", bound="SharedShedding")


def query_of(
    pattern: SequencePattern, members: Sequence[BoundedMember], window: StreamWindow
) -> BoundedQuery:
    """All of them as one query."""
    first = members[0]
    many = Many(first.name, len(members), Budget(first.context.budget.limits.times(len(members))))
    return BoundedQuery(pattern, first.dictionary, first.context, window, bound_of(members), many)


class SharedShedding(ABC):
    """What runs a group: a matcher that gathers matches, keeps a bound, and is this, too."""

    _bound: Bound
    _members: Sequence[BoundedMember]

    @abstractmethod
    def found_in(self, batch: EventBatch, start: int, solutions: Mapping[str, Solutions]) -> object:
        """Takes events."""

    @abstractmethod
    def found_in_one(self, event: Single, start: int) -> object:
        """The same of one that came alone. Raises as ``take_single`` does."""

    @abstractmethod
    def end_shedding(self) -> None:
        """See ``Shedder.end_shedding``."""

    @abstractmethod
    def update(self) -> None:
        """See ``Shedder.update``."""

    @abstractmethod
    def tell(self) -> None:
        """Tells each query what was given up of its own."""

    @abstractmethod
    def value(self, live: frozenset[int]) -> None:
        """Set the value of matches: those of other members are worth nothing."""

    def weigh(self, live: frozenset[int]) -> None:
        """Restrict the group to these members: the bound is theirs."""
        self.value(live)
        if live and self._bound.pool is not None:
            self._bound = bound_of([self._members[i] for i in sorted(live)], self._bound)

    def end(self) -> None:
        """All queries are over."""
        self.end_shedding()
        if self._bound.pool is not None:
            self._bound.pool.leave(self._bound)
        self.tell()


class BoundedGroup(PrefixGroup):
    """A group that keeps a bound; what it is otherwise is the next of its classes.

    Members get matches as they are found: to make these is a part of what events take.
    """

    def keep(self, whole: _Whole, members: Sequence[BoundedMember]) -> _Whole:
        """What runs all of them is made."""
        self._whole: SharedShedding = whole
        self._members = members
        # Only now: members that are told earlier would leave a group that does not exist, and hide an error
        # or an interrupt.
        for member in members:
            member.leaves, member.asks = self._left, whole.update
        return whole

    def look(self, batch: EventBatch, start: int, solutions: Mapping[str, Solutions]) -> None:
        self.reached = start + len(batch)
        self._whole.found_in(batch, start, solutions)

    def look_one(self, event: Single, start: int) -> bool:
        reached, self.reached = self.reached, start + 1
        try:
            self._whole.found_in_one(event, start)
        except UnsolvedError:
            self.reached = reached
            return False
        return True

    def narrow(self, live: frozenset[int], reach: int) -> None:
        super().narrow(live, reach)  # type: ignore[safe-super]
        self._whole.weigh(live)

    def _left(self) -> None:
        """A query is over; with the last of them nothing is shed any more."""
        if all(member.is_done for member in self._members):
            self._whole.end()
        else:
            self._whole.update()
