"""What a query has of a group that shares its partial matches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from spaseq.gpm.sharing import renamed_columns
from spaseq.limits import UNLIMITED, Budget
from spaseq.matching.columns.chunk import Chunk
from spaseq.matching.columns.history import History
from spaseq.matching.columns.stretch import Names, Renamed, Stretch

if TYPE_CHECKING:
    from spaseq.matching.sharing.group import Group
    from spaseq.matching.sharing.member import Member


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
        self._last = -1
        self._seen: Renamed | None = None

    def _columns(self, gpm: str) -> dict[str, str]:
        return {name: self.member.common.variables[name] for name in self.member.gpms[gpm].names}

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
