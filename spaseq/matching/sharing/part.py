"""What a query has of a group that shares its partial matches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from spaseq.gpm.sharing import renamed_columns
from spaseq.limits import UNLIMITED, Budget
from spaseq.matching.columns.alone.singles import Counts
from spaseq.matching.columns.chunk import Chunk, Names, Renamed, Stretch
from spaseq.matching.columns.history import History

if TYPE_CHECKING:
    from spaseq.matching.sharing.group import Group
    from spaseq.matching.sharing.member import Member

Ints = npt.NDArray[np.int64]


class Part:
    """A member in a group. Events, solutions and names are its own, positions the group's.

    ``offset``: what the member's own positions lack in the group's. ``since``: the own position from which on
    it has the group's matches.
    """

    def __init__(self, group: Group, member: Member, offset: int, gpms: Sequence[str]) -> None:
        """``gpms`` are the group's."""
        self.group = group
        self.member = member
        self.offset = offset
        self.since = 0
        own = tuple(member.pattern.gpms)
        self._names = [Names(gpms.index(member.common.gpms[gpm]), self._columns(gpm)) for gpm in own]
        # The group's columns are its own, too, under other names: they are counted there.
        keys = tuple(variable.name for variable in member.pattern.query.partition)
        self.history = History(own, keys, Budget(UNLIMITED))
        self.history.there = self._names
        # Which of the group's GPMs are its own; and of the events that came alone, what was counted of these.
        self._numbers = np.array([names.number for names in self._names], dtype=np.int64)
        self._counts = self._none()
        self._last = -1
        self._seen: Renamed | None = None

    def _columns(self, gpm: str) -> dict[str, str]:
        return {name: self.member.common.variables[name] for name in self.member.gpms[gpm].names}

    def _none(self) -> Counts:
        nothing = np.zeros(len(self._numbers), dtype=np.int64)
        return Counts(0, nothing, nothing)

    def count(self, found: Ints) -> None:
        """Counts events that came alone, given how many solutions each GPM of the group has in each."""
        of, rows = self._counts, found[:, self._numbers]
        some = rows > 0
        relevant = of.relevant + int(np.count_nonzero(some.any(axis=1)))
        self._counts = Counts(relevant, of.matched + some.sum(axis=0), of.rows + rows.sum(axis=0))

    def counts(self) -> Counts:
        """What was counted since the last call, by the member's GPMs."""
        counts, self._counts = self._counts, self._none()
        return counts

    @property
    def until(self) -> int:
        """The group's position from which on the member wants no match that ends there."""
        return self.member.until + self.offset

    @property
    def is_wanted(self) -> bool:
        """Whether the member has its matches of the group, or will have."""
        return self.member.wants(self)

    def seen(self, stretch: Stretch) -> Stretch:
        """Batches of the group under the member's own names: the same for the same."""
        if self._seen is None or self._seen.whole is not stretch:
            self._seen = Renamed(stretch, self._names, self._renamed)
        return self._seen

    def follow(self, history: History) -> None:
        """Has the events of the group, under its own names."""
        self.history.beside = history
        for chunk in history.since(self._last):
            self.history.add(self._renamed(chunk), next(iter(history)).last)
            self._last = chunk.start

    def _renamed(self, chunk: Chunk) -> Chunk:
        tables = tuple(
            renamed_columns(chunk.solutions[g], tuple(names.values()), tuple(names))
            for g, names in self._names
        )
        rows = None if chunk.rows is None else chunk.rows[[g for g, _ in self._names]]
        return Chunk(chunk.start, chunk.batch, tables, chunk.last, rows)
