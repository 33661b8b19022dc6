"""Members: queries that share partial matches. Each acts as its query's matcher."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from spaseq.alone import Single
from spaseq.automaton.pattern import SequencePattern
from spaseq.bounds import Bound
from spaseq.events import Clock, EventBatch
from spaseq.limits import UNLIMITED, Budget
from spaseq.matching.columns.alone.singles import Counts
from spaseq.matching.columns.blocks.found import Block
from spaseq.matching.columns.chunk import MemberNames, Renamed, SolvedBatch, Stretch
from spaseq.matching.columns.history import History
from spaseq.matching.context import Context
from spaseq.matching.sharing.canonical import Canonical
from spaseq.patterns.evaluator import GpmEvaluator
from spaseq.patterns.sharing import renamed_columns
from spaseq.patterns.spectra.solutions import Solutions
from spaseq.terms.dictionary import Dictionary

Ints = npt.NDArray[np.int64]

_ALWAYS: Final = 1 << 62


class _Found(NamedTuple):
    """Matches, and when they may be delivered.

    ``before``: the position up to which the query must have seen the events. ``time``: the time to wait for,
    if any.
    """

    before: int
    time: int | None
    blocks: list[Block]


class Waitlist(Protocol):
    """Queries that have not seen their first event, and will all see the same events from then on."""

    def begin(self, first: Member, begin: int, ticks: bool) -> None:
        """Begin: the first event, at time ``begin``, has come to the member ``first``."""
        ...

    def forget(self, member: Member) -> None:
        """Remove a query that needs no group of these."""
        ...


class MemberGroup(Protocol):
    """A group that runs several members as one. ``error`` has ended it; ``matched``: see
    ``Member.matched``.
    """

    error: Exception | None
    matched: dict[str, int] | None

    def see(self, batch: EventBatch, start: int) -> None:
        """Process events, unless it has already got them from another member."""
        ...

    @property
    def takes_alone(self) -> bool:
        """Whether ``see_alone`` can be called, instead of ``see`` by each member."""
        ...

    def see_alone(self, event: Single, start: int) -> bool:
        """Do ``see`` for a single event; if it is large, do nothing and return False."""
        ...

    def count(self) -> None:
        """Count the single events so far."""
        ...

    def shared(self, member: Member) -> tuple[int, ...]:
        """See ``Member.shared``."""
        ...

    def drop(self) -> None:
        """Stop finding matches that no member needs any more."""
        ...


class Member:
    """A query that shares partial matches: a matcher that gets its matches from a group.

    ``until``: matches that end at this position or later are not needed. ``queries`` returns the number of
    equal queries that it stands for. ``begin``: when its first window begins, once events have come;
    ``ticks``: the times are ticks. ``is_courted``: it will join a group as soon as events come.
    """

    def __init__(
        self,
        cohort: Waitlist,
        pattern: SequencePattern,
        matcher: str,
        asks_first: tuple[int, ...],
        common: Callable[[], Canonical | None],
        gpms: Mapping[str, GpmEvaluator],
        context: Context,
        dictionary: Dictionary,
        bound: Bound | None = None,
    ) -> None:
        self.pattern = pattern
        #: Its own matcher, before it is in a group or without one.
        self.matcher = matcher
        self.window = pattern.query.window
        #: A key that is equal for all queries that may have a common prefix.
        self.asks_first = asks_first
        self._canonical = common
        self.gpms = gpms
        self.context = context
        self.dictionary = dictionary
        #: Its bounds.
        self.bound = bound
        self.until = _ALWAYS
        self.begin: int | None = None
        self.ticks = False
        self.is_courted = False
        self.queries: Callable[[], int] = lambda: 1
        self._cohort: Waitlist | None = cohort
        self._part: GroupPart | None = None
        self._next: GroupPart | None = None
        self._found: deque[_Found] = deque()
        # The counts of a group that it has left.
        self._counted: list[Counts] = []
        #: The group of its matches, until it has moved to another one.
        self.group: MemberGroup | None = None

    @cached_property
    def _common(self) -> Canonical | None:
        # Computed only when another query may have a common prefix: most queries need no canonical form.
        return self._canonical()

    @property
    def can_share(self) -> bool:
        """Whether it can share partial matches."""
        return self._common is not None

    @property
    def skips(self) -> bool:
        """Whether it has AFTER MATCH SKIP."""
        return self.pattern.query.skip is not None

    @property
    def common(self) -> Canonical:
        """The query under common names, if it can share."""
        assert self._common is not None
        return self._common

    @property
    def is_over(self) -> bool:
        """Whether it is over."""
        return self.until < _ALWAYS

    @property
    def is_waiting(self) -> bool:
        """Whether it waits until a group has seen all events that the query's matches need."""
        return self._next is not None

    @property
    def is_alone(self) -> bool:
        """Whether it is in no group, and will not be in one soon."""
        return not (self._part or self._next or self._cohort or self.is_courted)

    @property
    def is_unseen(self) -> bool:
        """Whether it has seen no event, and waits for others."""
        return self._cohort is not None

    def is_shared_at(self, position: int) -> bool:
        """Return whether a group finds its matches that end there or later; if not, its own matcher does."""
        return self._part is not None and position >= self._part.since

    @property
    def shared(self) -> tuple[int, ...]:
        """How many queries share the partial matches of its first element, its first two, and so on."""
        return () if self._part is None else self._part.group.shared(self)

    # --- as a matcher -----------------------------------------------------------------------------

    def see(self, batch: EventBatch, start: int, begin: int) -> None:
        """Process events, the first at position ``start``; ``begin``: the time of the very first one.

        Must be called before any member is given later events: then the matches wait for ``process``.
        """
        if self.begin is None:
            self.begin, self.ticks = begin, batch.clock is Clock.TICKS
        if self._cohort is not None:
            if self._part is None:
                self._cohort.begin(self, begin, self.ticks)
            # After that: an interrupt in there makes these events come once more.
            self._cohort = None
        if self._next is not None:  # it may become the current group
            self._next.group.see(batch, start + self._next.offset)
        if self._part is not None:
            self._part.group.see(batch, start + self._part.offset)

    def matched(self) -> Sequence[tuple[str, int]] | None:
        """Return the GPMs that have solutions in the last event, and how many; None if the last call had
        several events.
        """
        group = None if self._part is None else self._part.group
        known = None if group is None or group.error is not None else group.matched
        if known is None:
            return None
        return [(name, known[gpm]) for name, gpm in self.common.gpms.items() if gpm in known]

    @property
    def offset(self) -> int:
        """The difference of the group's positions to its own."""
        return 0 if self._part is None else self._part.offset

    def counts(self) -> Sequence[Counts]:
        """Return the counts of single events since the last call, by its GPMs."""
        found, self._counted = self._counted, []
        if self._part is not None:
            self._part.group.count()
            found.append(self._part.counts())
        return found

    @property
    def has_found(self) -> bool:
        """Whether ``process`` will yield matches."""
        return bool(self._found)

    def process(self, batch: EventBatch, start: int, solutions: Mapping[str, Solutions]) -> Iterator[Block]:
        """See ``ByColumns.process``."""
        del solutions  # the group has its own
        while self._found and self._found[0].before <= start + len(batch):
            yield from self._found.popleft().blocks
        self.check()

    def check(self) -> None:
        """Raise the error that has ended the group: it ends this query, too."""
        if self._part is not None and self._part.group.error is not None:
            raise self._part.group.error

    def close(self) -> Iterator[Block]:
        """Yield nothing: no match waits for time."""
        self.check()
        yield from ()

    def leave(self, position: int) -> None:
        """Need no match that ends with the event at a position, or later."""
        self.until = min(self.until, position)
        for part in (self._part, self._next):
            if part is not None:
                part.group.drop()
        self.withdraw()

    def withdraw(self) -> None:
        """Leave the cohort, the queries that see the same events from the first on: it needs no group of
        these.
        """
        if self._cohort is not None:
            self._cohort.forget(self)
            self._cohort = None

    # --- time: a match is certain at its last event ---

    @property
    def waits(self) -> bool:
        """See ``ByColumns.waits``."""
        return False

    def is_due(self, time: int) -> bool:
        """See ``Quick.is_due``."""
        del time
        return False

    def advance(self, time: int) -> Iterator[Block]:
        """See ``ByColumns.advance``."""
        del time
        yield from ()

    def settled(self, time: int) -> int:
        """See ``ByColumns.settled``."""
        return time

    # --- as a part of the group -----------------------------------------------------------------

    def join(self, part: GroupPart, now: int | None) -> None:
        """Become a member of a group; ``now``: its position, if it has the group's matches at once."""
        self.withdraw()
        self.is_courted = False
        self._next, self.group = part, None
        if now is not None:
            self.move(now)

    def move(self, since: int) -> None:
        """Move to the group it waited for, which has all events that it needs from position ``since`` on."""
        self._counted = [*self.counts()]  # of the group that it leaves
        before, part, self._next = self._part, self._next, None
        assert part is not None
        self._part, part.since = part, since
        self.group = part.group
        if before is not None:
            before.group.drop()

    def stay(self, part: GroupPart) -> None:
        """Note that a group has ended: if the member waited for it, the member stays where it is."""
        if part is self._next:
            self._next = None
            self.group = None if self._part is None else self._part.group

    def wants(self, part: GroupPart) -> bool:
        """Return whether a group must find its matches, now or later."""
        return part is self._part or part is self._next

    def has(self, part: GroupPart) -> bool:
        """Return whether its matches are those of this group."""
        return part is self._part

    def take_found(self, found: list[Block], before: int, time: int | None = None) -> None:
        """Take matches; all events before position ``before`` were seen.

        Matches that waited for ``time`` are delivered when the member's time reaches it, or with further
        events.
        """
        self._found.append(_Found(before if time is None else before + 1, time, found))


class GroupPart:
    """A member's part in a group: events, solutions and names are the member's own, positions the group's.

    ``offset``: the difference between these positions and the member's own. ``since``: the member's position
    from which on it has the group's matches.
    """

    def __init__(self, group: MemberGroup, member: Member, offset: int, gpms: Sequence[str]) -> None:
        """``gpms`` are the group's."""
        self.group = group
        self.member = member
        self.offset = offset
        self.since = 0
        own = tuple(member.pattern.gpms)
        self._names = [MemberNames(gpms.index(member.common.gpms[gpm]), self._columns(gpm)) for gpm in own]
        # The group's columns are its own, too, under other names: they are counted there.
        keys = tuple(variable.name for variable in member.pattern.query.partition)
        self.history = History(own, keys, Budget(UNLIMITED))
        self.history.there = self._names
        # The numbers of its own GPMs among the group's; and the counts of single events.
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
        """Count single events, given the number of solutions of each GPM of the group in each."""
        of, rows = self._counts, found[:, self._numbers]
        some = rows > 0
        relevant = of.relevant + int(np.count_nonzero(some.any(axis=1)))
        self._counts = Counts(relevant, of.matched + some.sum(axis=0), of.rows + rows.sum(axis=0))

    def counts(self) -> Counts:
        """Return what was counted since the last call, by the member's GPMs."""
        counts, self._counts = self._counts, self._none()
        return counts

    @property
    def until(self) -> int:
        """The group's position from which on the member needs no match."""
        return self.member.until + self.offset

    @property
    def is_wanted(self) -> bool:
        """Whether the member has its matches from the group, or will have."""
        return self.member.wants(self)

    def seen(self, stretch: Stretch) -> Stretch:
        """Return batches of the group under the member's own names: the same object for the same batches."""
        if self._seen is None or self._seen.whole is not stretch:
            self._seen = Renamed(stretch, self._names, self._renamed)
        return self._seen

    def follow(self, history: History) -> None:
        """Use the events of the group, under its own names."""
        self.history.beside = history
        for chunk in history.since(self._last):
            self.history.add(self._renamed(chunk), next(iter(history)).last)
            self._last = chunk.start

    def _renamed(self, chunk: SolvedBatch) -> SolvedBatch:
        tables = tuple(
            renamed_columns(chunk.solutions[g], tuple(names.values()), tuple(names))
            for g, names in self._names
        )
        rows = None if chunk.rows is None else chunk.rows[[g for g, _ in self._names]]
        return SolvedBatch(chunk.start, chunk.batch, tables, chunk.last, rows)
