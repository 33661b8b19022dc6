"""Match one query: run a matcher for each partition, and apply EMIT and CONSUME to its matches."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, Final, Protocol

from spaseq.automaton.pattern import (
    Absent,
    AnyOrder,
    Both,
    SequencePattern,
    Within,
    events_of_each,
    may_trail,
    walk,
)
from spaseq.events import BEGINNING, END, Stamp
from spaseq.language.syntax import Consume, Emit
from spaseq.limits import UNLIMITED, Budget
from spaseq.matching.model import Found, Occurrence, PartitionMatcher, Solution, StreamWindow

#: The place of an event in the order of all events: its time, its stream's rank by IRI, its arrival number.
Order = tuple[int, ...]
InOrder = Callable[[Stamp], Order]

#: The values of the PARTITION BY variables, as term ids; empty without PARTITION BY.
Key = tuple[int, ...]

#: Returns the sort key of a partition among those of one event.
KeyOrder = Callable[[Key], tuple[Any, ...]]

#: The estimated bytes of a partition, without the bytes of the events it keeps.
_PARTITION: Final = 4_096


@dataclass(slots=True)
class _Partition:
    matcher: PartitionMatcher
    newest: Occurrence
    # Matches that EMIT cannot decide yet, since more with the same last event may come.
    held: list[Found]
    # What its matcher keeps, as last counted.
    kept: tuple[int, int] = (0, 0)


class Watcher(Protocol):
    """A listener for events, and for CONSUME."""

    def saw(self, stamp: Stamp) -> None:
        """Called before an event is processed, when the matches that waited for an earlier time have been
        delivered.
        """
        ...

    def consumed(self, key: Key) -> None:
        """Called when the partial matches of a partition are dropped, including those of the last event."""
        ...


class _Moments:
    """The times at which waiting matches may become due, for the events so far.

    These times are processed one by one in order, even if time advances past several of them at once: events
    in between may not have been passed to the matcher.
    """

    def __init__(self, pattern: SequencePattern, window: StreamWindow) -> None:
        self._window = window
        limits = {node.limit for node in walk(pattern.root) if isinstance(node, Absent | Within)}
        self._lasts = sorted({window.lasts(limit) for limit in limits if limit is not None})
        # One queue for the ends of windows, then one for the ends of each time limit.
        self._coming: list[deque[int]] = [deque() for _ in range(1 + len(self._lasts))]

    def add(self, occurrence: Occurrence) -> None:
        """Add the times of an event."""
        time = occurrence.time
        ends = [self._window.closing(occurrence), *(time + last for last in self._lasts)]
        for coming, end in zip(self._coming, ends, strict=True):
            if not coming or coming[-1] <= end:
                coming.append(end + 1)

    def before(self, time: int) -> Sequence[int]:
        """Remove and return the times up to this one, except the last, after which nothing else is due."""
        passed = set[int]()
        for coming in self._coming:
            while coming and coming[0] <= time:
                passed.add(coming.popleft())
        return sorted(passed)[:-1]


class Matcher:
    """Routes occurrences to the matchers of their partitions and selects among the matches found.

    ``make`` builds a matcher for one partition; ``budget`` limits what all of them may keep together.
    ``order`` returns the sort key of an event among all events, and ``texts`` the sort key of a partition
    among those of one event. By default both compare ids.
    """

    def __init__(
        self,
        pattern: SequencePattern,
        window: StreamWindow,
        make: Callable[[], PartitionMatcher],
        budget: Budget | None = None,
        order: InOrder = tuple,
        texts: KeyOrder = tuple,
    ) -> None:
        self._budget = budget or Budget(UNLIMITED)
        self._partial = self._size = 0
        query = pattern.query
        self._variables = tuple(v.name for v in query.partition)
        self._emit = query.emit
        self._consume = query.consume is Consume.ANY
        # Matches may have to wait, at most for the end of their window.
        self._trails = may_trail(pattern.root) or query.skip is not None
        self._window = window
        self._make = make
        self._order = order
        self._texts = texts
        self._partitions: OrderedDict[Key, _Partition] = OrderedDict()
        self._open: deque[Occurrence] = deque()
        self._moments = _Moments(pattern, window) if self._trails and not window.counted else None
        # All events up to this place on the window's axis have come.
        self._at = BEGINNING
        self.watcher: Watcher | None = None

    @property
    def partitions(self) -> int:
        """The number of partitions."""
        return len(self._partitions)

    def push(self, occurrence: Occurrence) -> Iterator[tuple[Key, Found]]:
        """Take the next event; yield the matches that are certain now, each with its partition."""
        yield from self._advance(self._window.measure(occurrence) - 1, occurrence.time)
        if self.watcher is not None:
            self.watcher.saw(occurrence.stamp)
        if self._trails:
            self._open.append(occurrence)
        if self._moments is not None:
            self._moments.add(occurrence)
        for key, seen in self._split(occurrence):
            partition = self._partition(key, seen)
            found = partition.matcher.push(seen)
            kept = partition.matcher.kept
            if kept != partition.kept:
                self._count(partition, kept)
            if found:
                yield from self._deliver(key, partition, found, self._hold)

    def partial_matches(self, time: int) -> int:
        """Return how many partial matches its partitions keep, without those that wait for a first event."""
        del time
        return max(0, self._partial - len(self._partitions))

    @property
    def waits(self) -> bool:
        """Whether ``advance`` may yield matches."""
        return self._trails and bool(self._partitions)

    def advance(self, time: int) -> Iterator[tuple[Key, Found]]:
        """Advance to ``time``: yield the matches that become certain."""
        # Time does not end a window of EVENTS, but decides absences with a time limit.
        yield from self._advance(self._at if self._window.counted else time - 1, time)

    def close(self) -> Iterator[tuple[Key, Found]]:
        """End all windows, as no event will come."""
        last = max((self._window.closing(p.newest) for p in self._partitions.values()), default=None)
        if last is not None:
            yield from self._advance(last, END)

    def settled(self, time: int) -> int:
        """Return the time up to which all matches were delivered, when the query's time is ``time``.

        A match that waits for its window's end may still appear with an earlier last event.
        """
        return min(time, self._open[0].time) if self._open else time

    def drop(self, key: Key) -> None:
        """Drop the partial matches of a partition, and the matches that EMIT has not decided yet."""
        partition = self._partitions.get(key)
        if partition is not None:
            partition.matcher.drop()
            partition.held.clear()

    def _count(self, partition: _Partition, kept: tuple[int, int]) -> None:
        """Set how many partial matches and bytes a partition keeps."""
        self._partial += kept[0] - partition.kept[0]
        self._size += kept[1] - partition.kept[1]
        partition.kept = kept
        self._budget.partial(self._partial + len(partition.held))
        self._budget.takes("partitions", self._size + _PARTITION * len(self._partitions))

    @property
    def _hold(self) -> bool:
        return self._trails and self._emit is not Emit.ALL

    def _advance(self, at: int, time: int) -> Iterator[tuple[Key, Found]]:
        """Advance to a place on the window's axis and a time; matches that are due earlier are yielded
        first.
        """
        if self._moments is not None:
            for moment in self._moments.before(time):
                yield from self._go(moment - 1, moment)
        yield from self._go(at, time)

    def _go(self, at: int, time: int) -> Iterator[tuple[Key, Found]]:
        self._at = at
        if self._trails:
            for key, partition in list(self._partitions.items()):
                found = partition.matcher.advance(at, time)
                yield from self._deliver(key, partition, found, self._hold)
                due = [f for f in partition.held if self._window.closing(f.last) <= at]
                if due:
                    partition.held = [f for f in partition.held if self._window.closing(f.last) > at]
                    yield from self._deliver(key, partition, due, hold=False)
            while self._open and self._window.closing(self._open[0]) <= at:
                self._open.popleft()
        # Partitions are ordered by their newest event: idle ones come first.
        while self._partitions:
            key, partition = next(iter(self._partitions.items()))
            if self._window.closing(partition.newest) > at:
                break
            del self._partitions[key]
            self._count(partition, (0, 0))

    def _deliver(
        self, key: Key, partition: _Partition, found: Sequence[Found], hold: bool
    ) -> Iterator[tuple[Key, Found]]:
        if hold:
            partition.held.extend(found)
            return
        for match in delivered(self._emit, found, self._order):
            yield key, match
        if found and self._consume:
            self.drop(key)
            if self.watcher is not None:
                self.watcher.consumed(key)

    def _partition(self, key: Key, occurrence: Occurrence) -> _Partition:
        partition = self._partitions.get(key)
        if partition is None:
            partition = self._partitions[key] = _Partition(self._make(), occurrence, [])
        partition.newest = occurrence
        self._partitions.move_to_end(key)
        return partition

    def _split(self, occurrence: Occurrence) -> Iterator[tuple[Key, Occurrence]]:
        """Yield the event for each of its partitions."""
        if not self._variables:
            yield (), occurrence
            return
        keys = {
            tuple(solution[v] for v in self._variables)
            for solutions in occurrence.solutions.values()
            for solution in solutions
            if all(v in solution for v in self._variables)
        }
        if len(keys) == 1:
            # The usual case; at most solutions of another key or without one must be removed.
            (key,) = keys
            yield key, self._restrict(occurrence, key)
            return
        for key in sorted(keys, key=self._texts):
            yield key, self._restrict(occurrence, key)

    def _restrict(self, occurrence: Occurrence, key: Key) -> Occurrence:
        def belongs(solution: Solution) -> bool:
            return all(solution.get(v, k) == k for v, k in zip(self._variables, key, strict=True))

        kept = {
            gpm: tuple(s for s in solutions if belongs(s)) for gpm, solutions in occurrence.solutions.items()
        }
        return replace(occurrence, solutions={gpm: solutions for gpm, solutions in kept.items() if solutions})


def delivered(emit: Emit, found: Iterable[Found], order: InOrder) -> list[Found]:
    """Return the matches of one partition that EMIT selects, ordered by their last event, then by their
    events.

    This gives all matchers the same order of delivery.
    """
    chosen = (select(emit, same, order) for same in _by_last_event(found, order))
    return [match for same in chosen for match in sorted(same, key=attrgetter("path"))]


def may_end_together(pattern: SequencePattern) -> bool:
    """Return whether one event may complete matches with different, but simultaneous, last events."""
    return len(pattern.streams) > 1 and any(isinstance(node, Both | AnyOrder) for node in walk(pattern.root))


def _by_last_event(found: Iterable[Found], order: InOrder) -> list[list[Found]]:
    groups: dict[Order, list[Found]] = {}
    for match in found:
        groups.setdefault(max(order(event.stamp) for _, event in match.events), []).append(match)
    return [groups[last] for last in sorted(groups)]


def select(emit: Emit, found: Sequence[Found], order: InOrder) -> list[Found]:
    """Apply EMIT: select among the matches with the same last event (semantics, section 6).

    ``order`` gives the place of an event among all: simultaneous events are ordered by their streams' IRIs.
    """
    if emit is Emit.ALL or len(found) < 2:
        return list(found)
    events = [frozenset(order(event.stamp) for _, event in match.events) for match in found]
    return [found[i] for i in kept(emit, events)]


def emitted(pattern: SequencePattern) -> Emit:
    """Return the EMIT mode of a query; MAX becomes ``ALL`` if no match can be a part of another."""
    if pattern.query.emit is Emit.MAX and events_of_each(pattern.root) is not None:
        return Emit.ALL
    return pattern.query.emit


def kept(emit: Emit, events: Sequence[frozenset[Any]]) -> list[int]:
    """Return the indices of the matches (at least one) that EMIT (not ``ALL``) keeps.

    ``events``: each match's events as comparable values, positions or orders.
    """
    if emit is Emit.MAX:
        return [i for i, own in enumerate(events) if not any(own < other for other in events)]
    best = events[0]
    for own in events[1:]:
        if own != best and (min if emit is Emit.NEXT else max)(own ^ best) in own:
            best = own
    return [i for i, own in enumerate(events) if own == best]
