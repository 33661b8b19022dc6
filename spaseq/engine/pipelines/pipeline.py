"""One registered query: events in time order → GPM solutions → matches → rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, cast

from spaseq.alone import Single
from spaseq.effort import Effort, Shed
from spaseq.engine.delivered.unread import Unread
from spaseq.engine.pipelines.attending import Attending
from spaseq.engine.pipelines.stats import GpmAnswers, Shedder
from spaseq.events import Clock, EventBatch, Stamp
from spaseq.gpm.kb import KnowledgeBase
from spaseq.gpm.sharing import ByEvent, Sharing
from spaseq.language.syntax import Emit, Query
from spaseq.limits import UNLIMITED, Limits
from spaseq.matching.columns.blocks.found import blocks, in_blocks
from spaseq.matching.columns.evaluator import (
    ByColumns,
    Fleeting,
    Quick,
    UnsolvedError,
    is_enumerating,
    is_quick,
)
from spaseq.matching.evaluators import (
    by_columns,
    by_events,
    load,
)
from spaseq.matching.host import Matcher, emitted
from spaseq.matching.model import Bounds, Evaluator, bounds
from spaseq.results.batch import MatchBatch
from spaseq.terms.dictionary import Dictionary

if TYPE_CHECKING:
    from spaseq.matching.sharing.member import Enumerated, Member


class Pipeline(Attending):
    """A query on its way through the engine; ``stats`` counts, ``done`` says that it wants no more."""

    def __init__(
        self,
        query: Query,
        dictionary: Dictionary,
        kb: KnowledgeBase,
        evaluator: str | None = None,
        sharing: Sharing | None = None,
        start: int | None = None,
        limits: Limits = UNLIMITED,
        effort: Effort | None = None,
    ) -> None:
        """``start`` is the time at which the first window begins: the first event's, unless given.

        ``effort``: its bounds. ``unkept`` says why it cannot keep them, if it cannot.
        """
        super().__init__(query, dictionary, kb, evaluator, sharing or Sharing(), start, limits, effort)
        #: Whether somebody asks ``unread`` for matches; and that, if the evaluator can leave them there.
        self.may_leave = False
        self.unread: Unread | None = None
        self._position = 0

    def _make_evaluators(self, window: Bounds) -> Callable[[], Evaluator]:
        """Makes evaluators that take event by event, one for each partition."""
        return by_events(self._chosen, self.pattern, self._context, window)

    def load(self) -> None:
        """Has compiled code ready for events that come one by one: the first does not wait for it."""
        load(self._chosen)

    def prepare(self, batch: EventBatch, is_shared: bool) -> None:
        """Makes its evaluator, if these are its first events, and others have no part in it.

        ``is_shared``: others have the same events, of which so it is known what its GPMs have in them.
        """
        if self._matcher is None and (self._member is None or self._member.is_alone):
            self._start(batch)
            if is_shared:
                self._spending.restart()
                for gpm in self._gpms.values():
                    gpm.evaluate(batch)

    def process(self, batch: EventBatch, position: int | None = None) -> Iterator[MatchBatch]:
        """Takes events in processing order; yields them as soon as their last event is there.

        ``position``: how many came before, those that were passed over included.
        """
        self._spending.restart()
        if self._member is not None and position is not None and self._begin is not None:
            # What these events are to the others cannot wait until somebody asks for this query's matches.
            self._member.see(batch, position, self._begin)
        return self._process(batch, position)

    def take_one(self, batch: EventBatch, position: int) -> Iterator[MatchBatch] | None:
        """As ``process``, of one event; None if there is nothing to be looked for."""
        self._spending.restart()
        if self._member is not None and not self._member.is_alone:
            return self._of_group(self._member, batch, position)
        quick = self._quick
        if quick is None or self._seat is None or len(batch) > 1 or self.cuts is not None:
            return self.process(batch, position)
        if self._seen is not None:
            self._seen(batch)
        if self._singly and isinstance(batch, Single):
            return self.take_alone(batch.at, batch.named, batch.terms, position, batch)
        found = self._take_large(quick, batch, position)
        self._position = position + 1
        return None if found is None else self._found(found)

    def take_alone(
        self, at: Stamp, graph: int, terms: Sequence[int], position: int, event: Single | None = None
    ) -> Iterator[MatchBatch] | None:
        """As ``take_one``, of an event that is a few numbers; ``event``: it as an object, if there is one.

        ``graph``: its graph's name; ``terms``: those of its triples, one after the other.
        """
        quick = self._quick
        assert quick is not None
        self._spending.restart()
        if self._is_by_time:
            # As ``is_sparse`` says; those that follow each other are kept together, by the hundred.
            position = self._position
        try:
            found = quick.take_single(at, graph, terms, position, event)
        except UnsolvedError:
            assert self._clock is not None
            event = event or Single(self._dictionary, self._clock, at, graph, terms)
            found = self._take_large(quick, event, position)
        self._position = position + 1
        return None if found is None else self._found(found)

    def _found(self, found: Fleeting) -> Iterator[MatchBatch]:
        """What one event completed; what may be left is left."""
        return iter(()) if self.unread is not None else self._matches(found)

    def _take_large(self, quick: Quick, batch: EventBatch, position: int) -> Fleeting | None:
        """Takes one event by columns."""
        solutions = {name: gpm.evaluate(batch) for name, gpm in self._gpms.items()}
        self._judge(batch, solutions)
        return quick.take_one(batch, position, solutions)

    def _of_group(self, member: Member, batch: EventBatch, position: int) -> Iterator[MatchBatch] | None:
        """As ``take_one``, of an event that is taken with other queries: they have looked at it together."""
        if self._matcher is not member or self._seat is None or self._seen is not None or self._begin is None:
            return self.process(batch, position)
        member.see(batch, position, self._begin)
        matched = member.matched() if len(batch) == 1 else None
        if matched is None:
            return self._process(batch, position)
        self._stats.relevant += bool(matched)
        for name, rows in matched:
            counted = self._stats.gpms[name]
            counted.matched += 1
            counted.rows += rows
        self._position = position + 1
        if not member.has_found:
            return None
        if self.unread is not None and is_enumerating(member):
            member.take(batch, position, {})
            return iter(())
        return self._matches(member.process(batch, position, {}))

    def _process(self, batch: EventBatch, position: int | None) -> Iterator[MatchBatch]:
        if position is not None:
            self._position = position
        self._show(batch)
        matcher = self._matcher or self._start(batch)
        if self._member is not None and self._member.is_shared_at(self._position):
            matcher = self._join(self._member)
        if not isinstance(matcher, Matcher):
            yield from self._by_columns(matcher, batch)
            return
        solutions = [(name, self._by_event(name, gpm, batch)) for name, gpm in self._gpms.items()]
        for occurrence in self._occurrences(batch, self._position, solutions):
            self._position += 1
            self._spending.restart()
            yield from self._matches(blocks(matcher.push(occurrence)))
            if self.done:
                return

    def _by_event(self, name: str, gpm: GpmAnswers, batch: EventBatch) -> ByEvent:
        if self.is_warming and self.cuts is not None:
            return self.cuts.left(name, batch, gpm.evaluate(batch)).by_event()
        return gpm.by_event(batch)

    def _join(self, member: Member) -> Member:
        """Its matches come from others from now on."""
        if self.unread is not None and self._matcher is not member and is_enumerating(member):
            assert is_enumerating(self._matcher)
            cast("Enumerated", member).instead_of(self._matcher)
            self.unread.move(member)
        self._count_alone()
        self._matcher, self._quick = member, None
        return member

    def _by_columns(self, evaluator: ByColumns, batch: EventBatch) -> Iterator[MatchBatch]:
        """The same by the evaluator that takes whole batches."""
        solutions = {name: gpm.evaluate(batch) for name, gpm in self._gpms.items()}
        start = self._position
        self._position += len(batch)
        self._judge(batch, solutions)
        if self.cuts is not None:
            if self.is_warming:
                solutions = {name: self.cuts.left(name, batch, of) for name, of in solutions.items()}
            found = evaluator.process(batch, start, solutions)
            yield from self._matches(self.cuts.noticed(found, batch))
        elif self.unread is not None and is_enumerating(evaluator):
            evaluator.take(batch, start, solutions)
        else:
            yield from self._matches(evaluator.process(batch, start, solutions))

    def advance(self, time: int) -> Iterator[MatchBatch]:
        """The watermark has come to ``time``: yields the matches that waited for it."""
        self._stats.watermark = time
        if self._matcher is not None and not self.done:
            yield from self._matches(in_blocks(self._matcher.advance(time)))

    def close(self) -> Iterator[MatchBatch]:
        """No event will come any more: yields the matches that waited for the end of a window."""
        if self._matcher is not None and not self.done:
            yield from self._matches(in_blocks(self._matcher.close()))

    def settled(self, time: int) -> int:
        """Up to what time all derived events are there, when the query's watermark is ``time``."""
        return time if self._matcher is None else self._matcher.settled(time)

    def drop(self) -> None:
        """Forgets all that is not yet a match: the query is over."""
        self.leave()
        if is_enumerating(self._member):
            self._member.drop()
        self._matcher = self._quick = self._derived = self._sample = self.unread = None
        self._gpms = {}
        self.done = True

    def _start(self, batch: EventBatch) -> Matcher | ByColumns:
        self._clock = batch.clock
        begin = int(batch.time[0]) if self._begin is None else self._begin
        window = bounds(self.query.window, batch.clock is Clock.TICKS, begin)
        if self._member is not None and self._member.is_shared_at(self._position):
            self._matcher = self._member
        else:
            self._matcher = by_columns(
                self._chosen, self.pattern, self._dictionary, self._context, window, self._effort
            )
        if self._effort is not None:
            assert isinstance(self._matcher, Shedder)
            self._matcher.shed = self._stats.shed = self._stats.shed or Shed()
        if self._matcher is None:
            make = self._make_evaluators(window)
            context = self._context
            self._matcher = Matcher(self.pattern, window, make, context.budget, context.order, context.texts)
            self._matcher.watcher = self.cuts
        if is_quick(self._matcher) and self._seat is not None:
            self._quick = self._matcher
            self._expect(self._quick, batch.clock)
        # LIMIT and ASK are over as matches are looked for; EMIT compares those of an event while it is there.
        bounded = self._left is not None or self._only_first or emitted(self.pattern) is not Emit.ALL
        if self.may_leave and not bounded and is_enumerating(self._matcher):
            self.unread = Unread(self._matcher, self._matches)
        return self._matcher
