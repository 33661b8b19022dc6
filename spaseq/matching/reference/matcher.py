"""The reference as a matcher: searches its whole window again at every event, and skips after a match."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from spaseq.automaton.pattern import SequencePattern
from spaseq.language.syntax import Skip, SkipMode
from spaseq.matching.context import Context, Order
from spaseq.matching.model import Found, Occurrence, StreamWindow, distinct
from spaseq.matching.search.partials import Events, Partial
from spaseq.matching.search.prospects import Prospects, horizon
from spaseq.matching.search.search import SequenceSearch, found_of

# AFTER MATCH SKIP: the preferred match of each first event, and where the next one may begin.


class Skipping:
    """Processes the first events of one partition in order (semantics, section 6)."""

    def __init__(self, skip: Skip, context: Context) -> None:
        self._skip = skip
        self._context = context
        # The place where the next match may begin, and whether it must begin after this place.
        self._resume: tuple[Order, bool] | None = None
        self._done: set[Order] = set()
        #: First events that had a match or a possible one while an earlier first event was undecided.
        self.undecided: frozenset[Order] = frozenset()

    def certain(
        self,
        complete: Sequence[Partial],
        open_: Sequence[Partial] = (),
        preceded: Callable[[Partial], bool] = lambda _: False,
    ) -> list[Partial]:
        """Return the matches that are certain now, in the order of their first events.

        ``open_`` are partial matches that may still complete, and complete matches that may be withdrawn;
        ``preceded``: whether an event may still come before a match's first one.
        """
        out = []
        undecided: list[Order] = []
        # The beginning of the next match depends on all first events before it.
        in_turn = self._skip.mode is not SkipMode.TO_NEXT_EVENT
        for first in sorted({self._first(m) for m in (*complete, *open_)}):
            if not self._may_begin(first):
                continue
            if undecided and in_turn:
                undecided.append(first)
                continue
            best = min((m for m in complete if self._first(m) == first), key=_key, default=None)
            hopes = [m for m in open_ if self._first(m) == first]
            if in_turn and best is not None and preceded(best):
                undecided.append(first)
                continue
            if any(best is None or m is best or m.key < best.key for m in hopes):
                undecided.append(first)
                continue
            if best is not None:
                out.append(best)
                self._done.add(first)
                self._go_on(best, first)
        self.undecided = frozenset(undecided)
        return out

    def _first(self, m: Partial) -> Order:
        return min(self._order(event) for event in m.chosen)

    def _order(self, event: Occurrence) -> Order:
        return self._context.order(event.stamp)

    def _may_begin(self, first: Order) -> bool:
        if first in self._done:
            return False
        if self._resume is None:
            return True
        place, behind = self._resume
        return first > place if behind else first >= place

    def _go_on(self, m: Partial, first: Order) -> None:
        chosen = [self._order(event) for gpm, event in m.events if gpm == self._skip.gpm]
        match self._skip.mode:
            case SkipMode.PAST_LAST_EVENT:
                self._resume = max(map(self._order, m.chosen)), True
            case SkipMode.TO_NEXT_EVENT:
                pass
            case SkipMode.TO_FIRST:
                self._resume = _behind(min(chosen, default=first), first)
            case SkipMode.TO_LAST:
                self._resume = _behind(max(chosen, default=first), first)

    def forget(self, oldest: Iterable[Order]) -> None:
        """Forget first events other than these."""
        self._done &= set(oldest)


def _behind(place: Order, first: Order) -> tuple[Order, bool]:
    return place, place == first


def _key(m: Partial) -> tuple[object, ...]:
    return m.key


# The reference as a matcher: searches its whole window again at every event.


def matches(pattern: SequencePattern, context: Context, window: StreamWindow, events: Events) -> list[Found]:
    """Return all matches among ``events``, each once, in the order of their last event. ``events`` must be in
    processing order.

    All windows are taken as ended, so matches that wait for the end of their window are included.
    """
    search = SequenceSearch(pattern, context, window, events)
    partials = [m for m in search.partials() if not search.broken(m)]
    if pattern.query.skip is not None:
        partials = Skipping(pattern.query.skip, context).certain(partials)
    found = distinct(map(found_of, partials))
    return sorted(found, key=lambda match: match.last.position)


class Reference:
    """Searches its whole window again at every event, and whenever time advances."""

    def __init__(self, pattern: SequencePattern, context: Context, window: StreamWindow) -> None:
        self._pattern, self._context, self._window = pattern, context, window
        self._events: list[Occurrence] = []
        self._waiting: list[Partial] = []
        self._seen: dict[object, int] = {}
        self._dropped = -1
        skip = pattern.query.skip
        self._ended: int | None = None
        self._skipping = None if skip is None else Skipping(skip, context)
        #: The streams on which a match may begin, and perhaps more.
        self._streams = {context.stream_id(name) for gpm in pattern.gpms.values() for name in gpm.streams}

    @property
    def kept(self) -> tuple[int, int]:
        """The number of waiting matches, and 0 bytes; see ``PartitionMatcher.kept``."""
        return len(self._waiting), 0

    def drop(self) -> None:
        """See ``PartitionMatcher.drop``. The events stay: negations at a match's beginning must see them."""
        self._waiting = []
        self._dropped = self._events[-1].position if self._events else -1

    def push(self, occurrence: Occurrence) -> list[Found]:
        """See ``PartitionMatcher.push``."""
        self._forget(occurrence)
        self._events.append(occurrence)
        if self._skipping is not None:
            return self._preferred(self._window.measure(occurrence) - 1, occurrence.time)
        search = SequenceSearch(self._pattern, self._context, self._window, self._events)
        for m in search.partials():
            if occurrence in m.chosen and found_of(m).first.position > self._dropped:
                self._waiting.append(m)
        return self._certain(self._window.measure(occurrence) - 1, occurrence.time)

    def advance(self, at: int, time: int) -> list[Found]:
        """See ``PartitionMatcher.advance``."""
        if not self._events:
            return []
        return self._certain(at, time) if self._skipping is None else self._preferred(at, time)

    def _certain(self, at: int, time: int) -> list[Found]:
        """Return the waiting matches that can no longer be withdrawn, see ``advance``."""
        search = Prospects(self._pattern, self._context, self._window, self._events, self._horizon(at, time))
        self._waiting = [m for m in self._waiting if not search.broken(m)]
        certain = [m for m in self._waiting if not search.open(m)]
        self._waiting = [m for m in self._waiting if m not in certain]
        return self._emit(certain)

    def _preferred(self, at: int, time: int) -> list[Found]:
        """Return the preferred matches that are certain, see ``advance``."""
        assert self._skipping is not None
        horizon, order = self._horizon(at, time), self._context.order
        search = Prospects(self._pattern, self._context, self._window, self._events, horizon)
        complete = [m for m in search.partials() if self._begins_now(m) and not search.broken(m)]
        open_ = [m for m in complete if search.open(m)]
        open_ += [m for m in search.prospects() if self._begins_now(m)]
        self._ended = at

        def preceded(m: Partial) -> bool:
            first = self._first(m)
            coming = [event.stamp for event in horizon if event.stamp.stream in self._streams]
            before = any(order(stamp) < order(first.stamp) for stamp in coming)
            return before and self._window.closing(first) > at

        return [found_of(m) for m in self._skipping.certain(complete, open_, preceded)]

    def _begins_now(self, m: Partial) -> bool:
        """Return whether a match's first event was undecided when the preferred matches were last
        determined.
        """
        first = self._first(m)
        if self._ended is None or self._window.closing(first) > self._ended:
            return True
        assert self._skipping is not None
        return self._context.order(first.stamp) in self._skipping.undecided

    def _first(self, m: Partial) -> Occurrence:
        return min(m.chosen, key=lambda event: self._context.order(event.stamp))

    def _horizon(self, at: int, time: int) -> Events:
        return horizon(self._context, self._window, self._events[-1], at, time)

    def _emit(self, partials: Iterable[Partial]) -> list[Found]:
        new = [found for found in distinct(map(found_of, partials)) if found.chosen not in self._seen]
        self._seen.update((found.chosen, self._window.closing(found.first)) for found in new)
        return sorted(new, key=lambda found: found.last.position)

    def _forget(self, now: Occurrence) -> None:
        """Forget the events that are too old for any match."""
        at = self._window.measure(now)
        firsts = [now]
        if self._skipping is not None:
            undecided = self._skipping.undecided
            firsts += [e for e in self._events if self._context.order(e.stamp) in undecided]
        oldest = min(self._window.opening(first, first) for first in firsts)
        if self._skipping is not None and self._window.sliding:
            # A waiting preferred match may need events until an event is beyond its window. Of simultaneous
            # events, the match's first one may be the last that came.
            oldest -= self._window.size + 1
        for m in self._waiting:
            found = found_of(m)
            oldest = min(oldest, self._window.opening(found.first, found.last))
        self._events = [e for e in self._events if self._window.measure(e) >= oldest]
        self._seen = {chosen: closing for chosen, closing in self._seen.items() if closing >= at}
