"""Which events a query is to be told of, and how: each alone, those that concern it, or with a group."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spaseq.alone import Single
from spaseq.effort import Effort, Shed
from spaseq.engine.pipelines.stats import Shedder, Stats
from spaseq.engine.pipelines.watched import Watched
from spaseq.errors import warn_within
from spaseq.events import Clock, EventBatch
from spaseq.gpm.evaluator import GpmEvaluator
from spaseq.gpm.kb import KnowledgeBase
from spaseq.gpm.sharing import Sharing
from spaseq.language.syntax import UNITS, Query
from spaseq.limits import Limits
from spaseq.matching.columns.evaluator import ByColumns, Quick
from spaseq.matching.evaluators import attends, check, chosen, shares_under, under_bound
from spaseq.matching.host import Matcher
from spaseq.matching.model import bounds, finer_ticks
from spaseq.matching.sharing.cohort import SHARING
from spaseq.terms.dictionary import Dictionary

if TYPE_CHECKING:
    from spaseq.matching.sharing.cohort import Cohort
    from spaseq.matching.sharing.member import Member


class Attending(Watched):
    """What evaluates a query, with others or alone, and so which events it must see."""

    def __init__(
        self,
        query: Query,
        dictionary: Dictionary,
        kb: KnowledgeBase,
        evaluator: str | None,
        sharing: Sharing,
        start: int | None,
        limits: Limits,
        effort: Effort | None,
    ) -> None:
        super().__init__(query, dictionary, kb, sharing, limits, start)
        self.unkept: str | None = None
        self._effort: Effort | None = None
        if effort is None:
            self._chosen = check(evaluator, self.pattern) if evaluator else chosen(self.pattern)
        else:
            bounded = under_bound(self.pattern, evaluator, effort.policy)
            self._chosen = bounded.name
            self.unkept = None if bounded.is_kept else bounded.reason
            if bounded.sheds:
                self._effort, self._stats.shed = effort, Shed()
                if effort.pool is not None:
                    effort.pool.join(effort)
        self._matcher: Matcher | ByColumns | None = None
        # The same, if it says at once that an event completes nothing.
        self._quick: Quick | None = None
        self._member: Member | None = None
        self._attends, self.asks_for_last = attends(self.pattern, self._chosen)
        self._is_by_time = UNITS[query.window.unit] is not None

    @property
    def sheds(self) -> bool:
        """Whether it keeps its bounds by giving up matches."""
        return self._effort is not None

    @property
    def stats(self) -> Stats:
        """What it has seen and done."""
        if self._seat is not None:
            self._seat.refresh(self._stats)
            if self._member is not None:
                self._stats.shared = self._member.shared
        return self._stats

    def count(self) -> None:
        """Brings up to date what is counted now and then: events that came alone, what was given up, limits.

        For who has the turn.
        """
        if self.sheds and isinstance(self._matcher, Shedder):
            self._matcher.update()
        self._stats.limit = self._context.budget.nearest
        self._count_alone()

    def _count_alone(self) -> None:
        """Counts the events that came alone so far."""
        if self._quick is not None:
            self._count_singles(self._quick)
        elif self._member is not None and self._matcher is self._member:
            for counts in self._member.counts():
                self._count_those(tuple(self._member.common.gpms), counts)

    def _queries(self) -> int:
        """How many queries it computes."""
        return 1

    @property
    def attends(self) -> bool:
        """Whether every event is for it, even one that no GPM has a solution in."""
        return self._attends or self._seen is not None

    @property
    def is_sparse(self) -> bool:
        """Whether it may be told that events follow each other at once that do not.

        That is for those that count no events, and see them by themselves.
        """
        return self._is_by_time and (self._member is None or self._member.is_alone)

    @property
    def counts_events(self) -> bool:
        """Whether its window is one of EVENTS."""
        return not self._is_by_time

    def heeds(self, time: int, batch: EventBatch | None) -> bool:
        """Whether it must be told that time has come to this, behind the events that it was given, if any."""
        if self._member is not None and self._matcher is self._member:
            return self.waits
        quick = self._quick
        if not self._singly or quick is None or self.output is not None:
            return True
        is_there = isinstance(batch, Single) and batch.at.time == time and self.keeps_time
        return not is_there and quick.is_due(time)

    @property
    def keeps_time(self) -> bool:
        """Whether each event that comes alone is for it, and brings it to the event's time."""
        return self._attends and self.takes_alone

    def is_due(self, time: int) -> bool:
        """Whether matches may have waited for this time; False if its own events tell it what time it is."""
        quick = self._quick
        return quick is None or not self.takes_alone or (not self.keeps_time and quick.is_due(time))

    @property
    def waits(self) -> bool:
        """Whether matches may wait for time to pass."""
        return self._matcher is not None and self._matcher.waits

    def share(self, cohort: Cohort) -> None:
        """Shares partial matches with others that see the same events from the first."""
        gpms = {name: gpm for name, gpm in self._gpms.items() if isinstance(gpm, GpmEvaluator)}
        if (
            self._chosen in SHARING
            and (self._effort is None or shares_under(self.pattern, self._chosen, self._effort.policy))
            and self._begin is None
            and not self.done
            # Where it stands among the events is said again and again until it is new.
            and not (self.is_warming and self.counts_events)
            # What it is not to be shown, where it began anew, is not said of the others.
            and not (self.is_warming and self.cuts is not None)
            and len(gpms) == len(self._gpms)
        ):
            self._member = cohort.enter(
                self.pattern, gpms, self._context, self._dictionary, self._chosen, self._effort
            )
            if self._member is not None:
                self._member.queries = self._queries

    @property
    def together(self) -> Member | None:
        """What it is in a group, if that takes events which come alone for all, and nobody else is told."""
        member = self._member
        is_plain = self._matcher is member and self._seat is not None and self._seen is None
        return member if is_plain and self._begin is not None and self.output is None else None

    @property
    def member(self) -> Member | None:
        """What it is among those that share partial matches; None if it shares none."""
        return self._member

    def begin(self, batch: EventBatch) -> None:
        """The first event of its streams is there, and perhaps passed over."""
        ticks = batch.clock is Clock.TICKS
        if self._begin is None:
            self._begin = int(batch.time[0])
            if ticks and (hint := finer_ticks(self.query.window, self._begin)):
                warn_within(hint)
        bounds(self.query.window, ticks, self._begin)  # or an error
        if self._member is not None:
            self._member.begin, self._member.ticks = self._begin, ticks

    def leave(self) -> None:
        """It is over: what comes is not counted."""
        if self._effort is not None and self._effort.pool is not None:
            self._effort.pool.leave(self._effort)
        if self._seat is not None:
            self.count()
            self._stats = self.stats  # brought up to date
            if self._member is not None:
                self._member.leave(self._stats.events)
            self._seat.leave()
            self._seat = None
            self._sample = None if self._sample is None else self._sample.copy()
        if isinstance(self._matcher, Shedder):
            self._matcher.end_shedding()

    @property
    def takes_alone(self) -> bool:
        """Whether ``take_alone`` can be asked, and nobody else is to be told of the event."""
        return (
            self._singly
            and self._quick is not None
            and self._seat is not None
            and self._seen is None
            and self.cuts is None
            and (self._member is None or self._member.is_alone)
        )
