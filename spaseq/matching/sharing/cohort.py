"""Which queries of an engine may share partial matches: those that see the same events from the first."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from spaseq.automaton.pattern import SequencePattern
from spaseq.gpm.evaluator import GpmEvaluator
from spaseq.matching.context import Context
from spaseq.matching.model import Bounds, bounds
from spaseq.terms.dictionary import Dictionary

if TYPE_CHECKING:
    from spaseq.matching.sharing.canonical import Canonical, Numbers
    from spaseq.matching.sharing.group import Member


class Cohort:
    """Queries that see the same events from the first; those that begin alike become a group then."""

    def __init__(self) -> None:
        self._numbers: Numbers | None = None
        self._waiting: list[Member] = []

    def enter(
        self,
        pattern: SequencePattern,
        gpms: Mapping[str, GpmEvaluator],
        context: Context,
        dictionary: Dictionary,
    ) -> Member | None:
        """One query more; None if it can share no partial match."""
        # Imported only here, because compiled code takes a while to load.
        from spaseq.matching.sharing.canonical import Asked, Numbers, canonical
        from spaseq.matching.sharing.group import Member

        self._numbers = self._numbers or Numbers()
        asked = {name: Asked(gpm.number, gpm.names) for name, gpm in gpms.items()}
        common = canonical(pattern, asked, self._numbers)
        if common is None:
            return None
        member = Member(self, pattern, common, gpms, context, dictionary)
        self._waiting.append(member)
        return member

    def begin(self, first: Member, begin: int, ticks: bool) -> None:
        """The first event, at time ``begin``, has come to ``first``: it and those alike go together."""
        windows = {member: bounds(member.window, ticks, begin) for member in self._waiting}
        axis = kind(first.common, windows[first])
        alike = [member for member, window in windows.items() if kind(member.common, window) == axis]
        self._waiting = [member for member in self._waiting if member not in alike]
        if len(alike) > 1:
            from spaseq.matching.conditions.postfix import BeyondTables
            from spaseq.matching.sharing.group import Group

            with suppress(BeyondTables):  # what each of them is within
                Group(alike, [windows[member] for member in alike])

    def withdraw(self, member: Member) -> None:
        """A query wants nothing, before its first event."""
        self._waiting.remove(member)


def kind(common: Canonical, window: Bounds) -> object:
    """Equal for queries that can be one group: of the same first element, on the same axis."""
    size = 0 if window.sliding else window.size
    return common.beginnings[0], common.pattern.query.partition, window.counted, window.sliding, size
