"""A query that shares partial matches, as the matcher of itself: others bring it the matches."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from spaseq.automaton.pattern import SequencePattern
from spaseq.bounds import Bound
from spaseq.events import Clock, EventBatch
from spaseq.matching.columns.alone.singles import Counts
from spaseq.matching.columns.blocks.found import Block
from spaseq.matching.columns.matcher import Enumerating, Immediate
from spaseq.matching.context import Context
from spaseq.matching.sharing.canonical import Canonical
from spaseq.patterns.evaluator import GpmEvaluator
from spaseq.patterns.spectra.solutions import Solutions
from spaseq.terms.dictionary import Dictionary

if TYPE_CHECKING:
    from spaseq.matching.sharing.by_enumeration import TecsPart
    from spaseq.matching.sharing.by_ordered import SkipPart
    from spaseq.matching.sharing.cohort import Cohort
    from spaseq.matching.sharing.group import PrefixGroup
    from spaseq.matching.sharing.part import GroupPart
    from spaseq.matching.tecs.reading import Portion

_ALWAYS: Final = 1 << 62


class _Found(NamedTuple):
    """Matches, ``before`` which position the events are with which a query has them, and the ``time``."""

    before: int
    time: int | None
    blocks: list[Block]


class Member(Immediate):
    """One of the queries: a matcher to which others bring the matches.

    ``until``: from this position on it wants no match that ends there. ``queries`` says for how many queries,
    which ask the same, it stands. ``begin``: when its first window begins, once events have come; ``ticks``:
    what times are. ``is_courted``: it will have a group as soon as events come.
    """

    def __init__(
        self,
        cohort: Cohort,
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
        #: What evaluates it, by itself or with others.
        self.matcher = matcher
        self.window = pattern.query.window
        #: The same for all that may begin alike.
        self.asks_first = asks_first
        self._canonical = common
        self.gpms = gpms
        self.context = context
        self.dictionary = dictionary
        #: The bounds that it has.
        self.bound = bound
        self.until = _ALWAYS
        self.begin: int | None = None
        self.ticks = False
        self.is_courted = False
        self.queries: Callable[[], int] = lambda: 1
        self._cohort: Cohort | None = cohort
        self._part: GroupPart | None = None
        self._next: GroupPart | None = None
        self._found: deque[_Found] = deque()
        # What was counted by a group that it has left.
        self._counted: list[Counts] = []
        #: The group that it gets matches from, while it needs those of no other.
        self.group: PrefixGroup | None = None

    @cached_property
    def _common(self) -> Canonical | None:
        # Computed only when another query may begin alike: most queries need no canonical form.
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
        """Whether it wants nothing any more."""
        return self.until < _ALWAYS

    @property
    def is_waiting(self) -> bool:
        """Whether a group gets to know the events that it needs before it has this query's matches."""
        return self._next is not None

    @property
    def is_alone(self) -> bool:
        """Whether it is in no group, and will be in none soon."""
        return not (self._part or self._next or self._cohort or self.is_courted)

    @property
    def is_unseen(self) -> bool:
        """Whether it has seen no event, and waits for others."""
        return self._cohort is not None

    def is_shared_at(self, position: int) -> bool:
        """Whether its matches that end there, or later, come from a group; if not, it evaluates by itself."""
        return self._part is not None and position >= self._part.since

    @property
    def shared(self) -> tuple[int, ...]:
        """How many queries want the partial matches of its first element, its first two, and so on."""
        return () if self._part is None else self._part.group.shared(self)

    # --- as a matcher ------------------------------------------------------------------------

    def see(self, batch: EventBatch, start: int, begin: int) -> None:
        """Events are there, the first at position ``start``; ``begin`` is when the first of all was.

        To be called before any member is given later ones: then what is found in these waits for ``process``.
        """
        if self.begin is None:
            self.begin, self.ticks = begin, batch.clock is Clock.TICKS
        if self._cohort is not None:
            if self._part is None:
                self._cohort.begin(self, begin, self.ticks)
            # Behind that: an interrupt in there lets these events come once more.
            self._cohort = None
        if self._next is not None:  # may become that of now
            self._next.group.see(batch, start + self._next.offset)
        if self._part is not None:
            self._part.group.see(batch, start + self._part.offset)

    def matched(self) -> Sequence[tuple[str, int]] | None:
        """The GPMs that have solutions in the event seen last, and how many; None if several were seen."""
        group = None if self._part is None else self._part.group
        known = None if group is None or group.error is not None else group.matched
        if known is None:
            return None
        return [(name, known[gpm]) for name, gpm in self.common.gpms.items() if gpm in known]

    @property
    def offset(self) -> int:
        """What its positions lack in the group's."""
        return 0 if self._part is None else self._part.offset

    def counts(self) -> Sequence[Counts]:
        """What was counted of events that came alone, since the last call, by its GPMs."""
        found, self._counted = self._counted, []
        if self._part is not None:
            self._part.group.count()
            found.append(self._part.counts())
        return found

    @property
    def has_found(self) -> bool:
        """Whether there are matches for ``process`` to give."""
        return bool(self._found)

    def process(self, batch: EventBatch, start: int, solutions: Mapping[str, Solutions]) -> Iterator[Block]:
        """See ``ByColumns.process``."""
        del solutions  # the group has its own
        while self._found and self._found[0].before <= start + len(batch):
            yield from self._found.popleft().blocks
        self.check()

    def check(self) -> None:
        """What has ended the group ends this query, too: raises that."""
        if self._part is not None and self._part.group.error is not None:
            raise self._part.group.error

    def close(self) -> Iterator[Block]:
        """No match waits for time to pass."""
        self.check()
        yield from ()

    def leave(self, position: int) -> None:
        """It wants no match that ends with the event at a position, or later."""
        self.until = min(self.until, position)
        for part in (self._part, self._next):
            if part is not None:
                part.group.drop()
        self.withdraw()

    def withdraw(self) -> None:
        """Leave the cohort: it needs no group of queries that see the same events from the first on."""
        if self._cohort is not None:
            self._cohort.forget(self)
            self._cohort = None

    # --- as a part of the group -----------------------------------------------------------------

    def join(self, part: GroupPart, now: int | None) -> None:
        """It becomes a member of a group; ``now``: its position, if it has the group's matches at once."""
        self.withdraw()
        self.is_courted = False
        self._next, self.group = part, None
        if now is not None:
            self.move(now)

    def move(self, since: int) -> None:
        """The group that it waited for has all the events that it needs, from a position on."""
        self._counted = [*self.counts()]  # by the group that it leaves
        before, part, self._next = self._part, self._next, None
        assert part is not None
        self._part, part.since = part, since
        self.group = part.group
        if before is not None:
            before.group.drop()

    def stay(self, part: GroupPart) -> None:
        """A group is over: if that is the one that it waited for, all stays as it is."""
        if part is self._next:
            self._next = None
            self.group = None if self._part is None else self._part.group

    def wants(self, part: GroupPart) -> bool:
        """Whether a group is to look for its matches, now or later."""
        return part is self._part or part is self._next

    def has(self, part: GroupPart) -> bool:
        """Whether its matches are those of this group."""
        return part is self._part

    def take_found(self, found: list[Block], before: int, time: int | None = None) -> None:
        """Take matches; all events before position ``before`` were seen.

        Matches that waited for ``time`` are delivered when the member's time reaches it, or with further
        events.
        """
        self._found.append(_Found(before if time is None else before + 1, time, found))


class Waiting(Member):
    """A member with matches that may wait for time to pass."""

    @property
    def waits(self) -> bool:
        return True

    def advance(self, time: int) -> Iterator[Block]:
        """Time has come to ``time``: yields the matches that waited for that."""
        self._own.group.advance(time)
        while self._found and (due := self._found[0].time) is not None and due <= time:
            yield from self._found.popleft().blocks
        self.check()

    def close(self) -> Iterator[Block]:
        """No event will come any more: every window ends."""
        self._own.group.close()
        while self._found:
            yield from self._found.popleft().blocks
        self.check()

    def settled(self, time: int) -> int:
        return self._own.group.settled(self._own, time)

    @property
    def _own(self) -> SkipPart:
        return cast("SkipPart", self._part)


class Enumerated(Member):
    """A member with roots; its matches are enumerated from them on demand."""

    #: What evaluated it before it had a part in a group, as long as that has matches.
    _before: Enumerating | None = None

    @property
    def can_share(self) -> bool:
        # What a match has of such an event has to be told apart.
        common = self._common
        return common is not None and len(set(common.gpms.values())) == len(common.gpms)

    @cached_property
    def _parts(self) -> deque[TecsPart]:
        """The parts that may have roots; the last one gets new roots."""
        return deque()

    @property
    def has_found(self) -> bool:
        return any(part.has_found for part in self._parts)

    @property
    def waiting(self) -> int:
        """How many of the roots are not enumerated to their end."""
        before = 0 if self._before is None else self._before.waiting
        return before + sum(part.waiting for part in self._parts)

    def instead_of(self, matcher: Enumerating) -> None:
        """Continue where a matcher of its own stops; some of its matches may not be enumerated yet."""
        self._before = matcher

    def take(self, batch: EventBatch, start: int, solutions: Mapping[str, Solutions]) -> None:
        """Takes events, and enumerates nothing."""
        del solutions  # the group has its own
        for part in self._parts:
            part.reveal(start + len(batch))
        self.check()

    def process(self, batch: EventBatch, start: int, solutions: Mapping[str, Solutions]) -> Iterator[Block]:
        self.take(batch, start, solutions)
        return self.unread()

    def unread(self) -> Iterator[Block]:
        """Yield the matches that were not read, including matches found meanwhile."""
        if self._before is not None:
            yield from self._before.unread()
            self._before = None
        while self._parts:
            yield from self._parts[0].unread()
            if len(self._parts) == 1:
                return
            self._parts.popleft()

    def divide(self, by_key: bool, keys: Collection[int] | None = None) -> Iterator[tuple[int, Portion]]:
        """Give away the matches that were not read: see ``Enumerating``."""
        for part in self._parts:
            yield from part.divide(by_key, keys)

    def drop(self) -> None:
        """Forget the matches that were not read."""
        self._before = None
        for part in self._parts:
            part.drop()

    def leave(self, position: int) -> None:
        super().leave(position)
        for part in self._parts:
            part.leave()

    def move(self, since: int) -> None:
        super().move(since)
        self._parts.append(cast("TecsPart", self._part))
