"""What a query has of a group that shares its partial matches: the group's runs as its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spaseq.gpm.sharing import renamed_columns
from spaseq.limits import UNLIMITED, Budget
from spaseq.matching.columns.chunk import Chunk
from spaseq.matching.columns.history import Past
from spaseq.matching.host import Key
from spaseq.matching.kernel.matches import Matches, Runs
from spaseq.matching.kernel.replay import Path, Replay
from spaseq.matching.sharing.merge import Merged

if TYPE_CHECKING:
    from spaseq.matching.sharing.group import Group
    from spaseq.matching.sharing.member import Member


class Part:
    """A member in a group, under a number. Events, candidates and names are its own, positions the group's.

    ``offset``: what the member's own positions lack in the group's. ``since``: the own position from which on
    it has the group's matches.
    """

    def __init__(self, group: Group, member: Member, offset: int, number: int, merged: Merged) -> None:
        self.group = group
        self.member = member
        self.offset = offset
        self.since = 0
        compiled, pattern = member.compiled, member.pattern
        self._names = [
            (merged.compiled.gpms.index(member.common.gpms[gpm]), *self._columns(gpm))
            for gpm in compiled.gpms
        ]
        # The group's columns are its own, too, under other names: they are counted there.
        keys = tuple(variable.name for variable in pattern.query.partition)
        self._past = Past(compiled.gpms, keys, Budget(UNLIMITED))
        self._last = -1
        self._replay = Replay(compiled, member.context, self._past)
        self._matches = Matches(pattern, compiled, self._past, self._replay, member.context.order)
        self._candidates, self._accepts = merged.candidates[number], merged.accepts[number]

    def _columns(self, gpm: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        own = self.member.gpms[gpm].names
        return tuple(self.member.common.variables[name] for name in own), own

    @property
    def until(self) -> int:
        """The group's position from which on the member wants no match that ends there."""
        return self.member.until + self.offset

    @property
    def is_wanted(self) -> bool:
        """Whether the member has its matches of the group, or will have."""
        return self.member.wants(self)

    def follow(self, past: Past) -> None:
        """Has the events of the group, under its own names."""
        for chunk in past.since(self._last):
            tables = tuple(renamed_columns(chunk.solutions[g], common, own) for g, common, own in self._names)
            rows = None if chunk.rows is None else chunk.rows[[g for g, _, _ in self._names]]
            oldest = next(iter(past)).last
            self._past.add(Chunk(chunk.start, chunk.batch, tables, chunk.last, rows), oldest)
            self._last = chunk.start

    def is_relevant(self, path: Path, step: Path, key: Key) -> bool:
        """Whether events are relevant for a run of the group that is one of its own."""

        def own(events: Path) -> Path:
            return [(position, int(self._candidates[number])) for position, number in events]

        return self._replay.is_relevant(own(path), own(step), key)

    def take(self, runs: Runs, before: int) -> None:
        """Runs of the group that are the member's matches; all events before a position were seen."""
        steps = runs.steps.copy()
        steps[:, 1] = self._candidates[steps[:, 1]]
        own = runs._replace(ways=self._accepts[runs.ways], steps=steps)
        self.member.take(list(self._matches.of_runs(own)), before - self.offset)
