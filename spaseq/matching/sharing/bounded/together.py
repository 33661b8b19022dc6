"""Queries with a common prefix and one bound: their groups, and the matchers of these."""

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
    """Return the members as one query."""
    first = members[0]
    many = Many(first.name, len(members), Budget(first.context.budget.limits.times(len(members))))
    return BoundedQuery(pattern, first.dictionary, first.context, window, bound_of(members), many)


class SharedShedding(ABC):
    """The matcher of a group that gathers matches and keeps a bound."""

    _bound: Bound
    _members: Sequence[BoundedMember]

    @abstractmethod
    def found_in(self, batch: EventBatch, start: int, solutions: Mapping[str, Solutions]) -> object:
        """Process events."""

    @abstractmethod
    def found_in_one(self, event: Single, start: int) -> object:
        """Process a single event. Raises as ``take_single`` does."""

    @abstractmethod
    def end_shedding(self) -> None:
        """See ``Shedder.end_shedding``."""

    @abstractmethod
    def update(self) -> None:
        """See ``Shedder.update``."""

    @abstractmethod
    def tell(self) -> None:
        """Report to each query what was shed of its own."""

    @abstractmethod
    def value(self, live: frozenset[int]) -> None:
        """Set the value of matches: those of other members have value 0."""

    def weigh(self, live: frozenset[int]) -> None:
        """Restrict the group to these members: the bound is theirs."""
        self.value(live)
        if live and self._bound.pool is not None:
            self._bound = bound_of([self._members[i] for i in sorted(live)], self._bound)

    def end(self) -> None:
        """End the group: all queries are over."""
        self.end_shedding()
        if self._bound.pool is not None:
            self._bound.pool.leave(self._bound)
        self.tell()


class BoundedGroup(PrefixGroup):
    """A group that keeps a bound; its other base class is its matcher's group.

    Members get matches as they are found: making these is part of an event's duration.
    """

    def keep(self, whole: _Whole, members: Sequence[BoundedMember]) -> _Whole:
        """Keep the matcher that runs all members, and return it."""
        self._whole: SharedShedding = whole
        self._members = members
        # Last: members with a group that failed to be created would leave it, and hide an error or an
        # interrupt.
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
        """Note that a query is over; with the last of them shedding ends."""
        if all(member.is_done for member in self._members):
            self._whole.end()
        else:
            self._whole.update()
