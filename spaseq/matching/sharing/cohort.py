"""Find queries that can share partial matches: they see the same events and have a common prefix.

All are run by a matcher in ``SHARING``. They share from the first event on. Queries that were registered at
different times share as soon as the events that their matches may have are the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from spaseq.automaton.pattern import SequencePattern
from spaseq.bounds import Bound
from spaseq.matching.context import Context
from spaseq.matching.model import StreamWindow, stream_window
from spaseq.patterns.evaluator import GpmEvaluator
from spaseq.terms.dictionary import Dictionary

if TYPE_CHECKING:
    from spaseq.matching.sharing.canonical import Canonical, OutlineNumbers
    from spaseq.matching.sharing.group import PrefixGroup
    from spaseq.matching.sharing.member import Member

#: Matchers that can share partial matches between queries.
SHARING: Final = frozenset({"nfa", "tecs", "lazy"})


class Elements:
    """Numbers the elements of sequences; equal elements of all queries of an engine get the same number."""

    def __init__(self) -> None:
        self._numbers: OutlineNumbers | None = None

    @property
    def numbers(self) -> OutlineNumbers:
        """The numbers so far."""
        # Imported only here, because compiled code takes a while to load.
        from spaseq.matching.sharing.canonical import OutlineNumbers

        self._numbers = self._numbers or OutlineNumbers()
        return self._numbers


class Cohort:
    """Queries that see the same events from the first on; with the first event, queries with a common prefix
    become a group.
    """

    def __init__(self, elements: Elements) -> None:
        self._elements = elements
        self._waiting: dict[Member, None] = {}

    def enter(
        self,
        pattern: SequencePattern,
        gpms: Mapping[str, GpmEvaluator],
        context: Context,
        dictionary: Dictionary,
        matcher: str,
        bound: Bound | None = None,
    ) -> Member | None:
        """Add a query; return its member, or None if it can share no partial match. ``bound``: its bounds."""
        # Imported only here, because compiled code takes a while to load.
        from spaseq.matching.sharing.bounded.member import BoundedMember
        from spaseq.matching.sharing.by_skip import SkipMember
        from spaseq.matching.sharing.by_tecs import TecsMember
        from spaseq.matching.sharing.canonical import AskedBeginning, beginning, under_common_names
        from spaseq.matching.sharing.member import Member

        asked = {name: AskedBeginning(gpm.number, gpm.names) for name, gpm in gpms.items()}
        begins = beginning(pattern, asked)
        if begins is None:
            return None
        numbers = self._elements.numbers
        make = TecsMember if matcher == "tecs" else Member if pattern.query.skip is None else SkipMember
        if bound is not None:
            make = BoundedMember
        common = partial(under_common_names, pattern, asked, numbers)
        member = make(self, pattern, matcher, begins, common, gpms, context, dictionary, bound)
        self._waiting[member] = None
        return member

    def complete(self) -> None:
        """Close the cohort to new queries: a query with no common prefix leaves it."""
        asked = Counter(member.asks_first for member in self._waiting)
        for member in list(self._waiting):
            if asked[member.asks_first] == 1 or not member.can_share:
                member.withdraw()
        begins = Counter(member.common.beginnings[0] for member in self._waiting)
        for member in list(self._waiting):
            if begins[member.common.beginnings[0]] == 1:
                member.withdraw()

    def begin(self, first: Member, begin: int, ticks: bool) -> None:
        """Begin with the first event, at time ``begin``, of the member ``first``: group it with the members
        of a common prefix.
        """
        if first not in self._waiting:
            return  # an interrupt occurred during the grouping: it continues alone
        windows = {member: stream_window(member.window, ticks, begin) for member in self._waiting}
        axis = kind(first.common, windows[first], first.matcher, first.bound)
        alike = [
            member
            for member, window in windows.items()
            if kind(member.common, window, member.matcher, member.bound) == axis
        ]
        for member in alike:
            del self._waiting[member]
        from spaseq.matching.filters.postfix import BeyondTables

        for some in _fitting(alike):
            with suppress(BeyondTables):  # each one is within the limits alone
                _of(first)(some, [windows[member] for member in some])

    def forget(self, member: Member) -> None:
        """Remove a query, which needs no group of this cohort."""
        self._waiting.pop(member, None)


class Kin:
    """Members that see the same events, although they may have been registered at different times.

    Members with a common prefix become a group. While a group catches up on the events that its members need,
    it is not merged with other members.
    """

    def __init__(self) -> None:
        # New members, each with the offset of its positions from the common count.
        self._new: dict[Member, int] = {}
        # By the key of a first element, the only member that begins with it; None if there are several.
        self._lone: dict[object, tuple[Member, int] | None] = {}
        self._members: dict[object, dict[Member, int]] = {}
        #: The members that may become groups; if there are some, ``regroup`` must be called before the next
        #: events.
        self.courting: dict[object, None] = {}

    def add(self, member: Member, offset: int) -> None:
        """Add a member that begins now."""
        self._new[member] = offset

    def absorb(self, others: Mapping[Member, int]) -> None:
        """Add members that see the same events from now on."""
        begun, self._new = self._new, {}
        for members, is_late in ((begun, False), (others, True)):
            for member, offset in members.items():
                asked = member.asks_first
                if asked not in self._lone:
                    # No other member begins with the same element, so the member's canonical form need not be
                    # computed.
                    self._lone[asked] = member, offset
                    continue
                lone, self._lone[asked] = self._lone[asked], None
                if lone is not None:
                    self._place(*lone, is_late=False)
                self._place(member, offset, is_late)
        for axis in self.courting:
            for member in self._members[axis]:
                member.is_courted = True

    def _place(self, member: Member, offset: int, is_late: bool) -> None:
        """Put a member with the members of the same beginning; ``is_late``: a group may result."""
        axis = None if member.is_over else _axis(member, offset)
        if axis is not None:
            alike = self._members.setdefault(axis, {})
            alike[member] = offset
            if is_late and len(alike) > 1:
                self.courting[axis] = None

    def prune(self) -> None:
        """Remove the members that have ended."""
        self._new = _live(self._new)
        self._lone = {asked: one for asked, one in self._lone.items() if one is None or not one[0].is_over}
        members = {axis: _live(alike) for axis, alike in self._members.items()}
        self._members = {axis: alike for axis, alike in members.items() if alike}
        self.courting = {axis: None for axis in self.courting if axis in self._members}

    def regroup(self, reached: int) -> None:
        """Group the members of a common prefix; ``reached``: number of events in the common count."""
        for axis in list(self.courting):
            alike = self._members[axis] = _live(self._members[axis])
            if any(member.is_waiting for member in alike):
                continue
            del self.courting[axis]
            if len(alike) > 1:
                _together(alike, reached)


def _live(members: Mapping[Member, int]) -> dict[Member, int]:
    return {member: offset for member, offset in members.items() if not member.is_over}


def _together(members: Mapping[Member, int], reached: int) -> None:
    from spaseq.matching.filters.postfix import BeyondTables

    for some in _fitting(list(members)):
        offsets = [members[member] for member in some]
        windows = [_window(member, offset) for member, offset in zip(some, offsets, strict=True)]
        with suppress(BeyondTables):
            _of(some[0]).of(some, windows, offsets, reached)
    for member in members:
        member.is_courted = False


def _of(member: Member) -> type[PrefixGroup]:
    """Return the class of groups that a member can be in."""
    from spaseq.matching.sharing.by_lazy import LazyGroup
    from spaseq.matching.sharing.by_nfa import NfaGroup
    from spaseq.matching.sharing.by_skip import SkipGroup
    from spaseq.matching.sharing.by_tecs import TecsGroup

    if member.skips:
        return SkipGroup
    groups: dict[str, type[PrefixGroup]] = {"nfa": NfaGroup, "tecs": TecsGroup, "lazy": LazyGroup}
    return groups[member.matcher]


def _fitting(members: Sequence[Member]) -> Iterator[list[Member]]:
    """Divide the members of a common prefix into as few groups as possible, and yield the groups. Except for
    ``nfa``, groups have few GPMs.
    """
    from spaseq.matching.nfa.skip.records import roster
    from spaseq.matching.tecs.fits import MOST_GPMS

    some: list[Member] = []
    gpms: set[str] = set()
    for member in members:
        more = gpms.union(member.common.gpms.values())
        most = roster.MOST_MEMBERS if member.skips else len(members)
        is_limited = member.skips or member.matcher != "nfa"
        if len(some) >= most or (is_limited and len(more) > MOST_GPMS):
            if len(some) > 1:
                yield some
            some, more = [], set(member.common.gpms.values())
        some.append(member)
        gpms = more
    if len(some) > 1:
        yield some


def _window(member: Member, offset: int) -> StreamWindow:
    assert member.begin is not None
    window = stream_window(member.window, member.ticks, member.begin)
    return replace(window, start=window.start + offset) if window.counted else window


def _axis(member: Member, offset: int) -> object:
    """Return the ``kind`` of a member and where its tumbling windows begin.

    Return None before the member's first event, and if it cannot share. A query with SKIP does not begin to
    share in the middle of a stream: its next first event may depend on matches long ago. Neither does a query
    with a bound, as it has learned and shed on its own.
    """
    if member.begin is None or not member.can_share or member.skips or member.bound:
        return None
    window = _window(member, offset)
    return kind(member.common, window, member.matcher), 0 if window.sliding else window.start % window.size


def kind(common: Canonical, window: StreamWindow, matcher: str, bound: Bound | None = None) -> object:
    """Return a key that is equal for queries that can be one group: they have the same first element, axis
    and bound.
    """
    from spaseq.matching.tecs.fits import keys

    size = 0 if window.sliding else window.size
    by = keys(common.pattern) if matcher == "tecs" else ()
    skip = common.pattern.query.skip
    partition = common.pattern.query.partition
    mode = None if skip is None else skip.mode
    kept = None if bound is None else (bound.latency, bound.pool, bound.policy, bound.clock)
    return common.beginnings[0], partition, by, matcher, mode, window.counted, window.sliding, size, kept
