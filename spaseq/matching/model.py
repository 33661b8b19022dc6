"""The input and output of matchers: occurrences in, found matches out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

from spaseq.errors import EngineError
from spaseq.events import EventBatch, Stamp
from spaseq.language.syntax import UNITS, Duration, Window, WindowKind
from spaseq.language.syntax.terms import decimal

#: Seconds from the epoch to March 1973. The unit of a time is guessed so that its date is from 1973 to 5138.
_1973: Final = 10**8

#: Units of integers since the epoch: how many make a second.
_FINER: Final = {"milliseconds": 10**3, "microseconds": 10**6, "nanoseconds": 10**9}

Ints = npt.NDArray[np.int64]

#: A solution mapping: variable name → term id; an unbound variable is absent.
Solution = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Occurrence:
    """An event of the streamset as runs see it: its time, and the solutions of its GPMs.

    ``position`` numbers the events of the query's streamset in processing order, from 0. ``solutions`` has,
    per GPM, the solutions of its stateless part; a GPM without solutions is absent. ``batch`` and ``index``
    say where the event's graph is; ``computed`` keeps the terms of its solutions that are not in the graph.
    """

    stamp: Stamp
    position: int
    solutions: Mapping[str, tuple[Solution, ...]] = field(compare=False)
    batch: EventBatch | None = field(default=None, compare=False, repr=False)
    index: int = field(default=0, compare=False, repr=False)
    computed: object = field(default=None, compare=False, repr=False)

    @property
    def time(self) -> int:
        return self.stamp.time


@dataclass(frozen=True, slots=True)
class Row:
    """One solution of a match so far.

    ``binding`` holds the variables that have one value now: ordinary variables, and the group variables of
    the iteration in progress. After a Kleene, its group variables have the values of one iteration per row.
    ``iterations`` maps a Kleene's id to its completed iterations, each the solutions of its own variables.
    ``origin`` distinguishes rows that entered the Kleenes in progress separately.
    """

    binding: Mapping[str, int]
    iterations: Mapping[int, tuple[tuple[Solution, ...], ...]] = field(default_factory=dict)
    origin: tuple[int, ...] = ()


#: One chosen event: the GPM's name and the event.
Choice = tuple[str, Occurrence]


@dataclass(frozen=True, slots=True)
class Found:
    """A match: its events in order, and its solutions Ω."""

    events: tuple[Choice, ...]
    rows: tuple[Row, ...]

    @property
    def first(self) -> Occurrence:
        return min((o for _, o in self.events), key=_order)

    @property
    def last(self) -> Occurrence:
        return max((o for _, o in self.events), key=_order)

    @property
    def chosen(self) -> frozenset[tuple[str, Stamp]]:
        """The identity of a match: which event each GPM chose."""
        return frozenset((name, o.stamp) for name, o in self.events)

    @property
    def path(self) -> tuple[tuple[int, str], ...]:
        """The positions of its events, and their GPMs, in order: the sort key of matches."""
        return tuple(sorted((o.position, name) for name, o in self.events))

    @property
    def span(self) -> tuple[int, int]:
        """The times of its first and its last event."""
        return self.first.time, self.last.time

    @property
    def places(self) -> Iterator[tuple[str, EventBatch, int]]:
        """Yield the GPM of each chosen event, and where its graph is."""
        for name, occurrence in self.events:
            assert occurrence.batch is not None
            yield name, occurrence.batch, occurrence.index

    @property
    def size(self) -> int:
        """The number of solutions in Ω."""
        return len(self.rows)

    def project(self, names: Sequence[str]) -> list[dict[str, int]]:
        """Return the solutions, with these variables only."""
        return [{name: row.binding[name] for name in names if name in row.binding} for row in self.rows]


def distinct(found: Iterable[Found]) -> list[Found]:
    """Merge matches that have the same events but were found in different ways; the merged match has all
    their rows.
    """
    unique: dict[object, Found] = {}
    for match in found:
        same = unique.setdefault(match.path, match)
        new = tuple(row for row in match.rows if row not in same.rows) if same is not match else ()
        if new:
            unique[match.path] = Found(same.events, same.rows + new)
    return list(unique.values())


def _order(occurrence: Occurrence) -> tuple[int, int]:
    return (occurrence.time, occurrence.position)


@dataclass(frozen=True, slots=True)
class StreamWindow:
    """A query's window over one streamset (semantics, section 5).

    ``size`` counts time units of the stream's clock, or events when ``counted``; ``start`` is t0: the time,
    or 0 for a count, at which the first tumbling window begins. ``ticks``: times are ticks, not microseconds.
    """

    size: int
    counted: bool
    sliding: bool
    start: int
    ticks: bool = False

    def lasts(self, limit: Duration) -> int:
        """Return the greatest difference of two times within a duration."""
        return limit.on(self.ticks)

    def measure(self, occurrence: Occurrence) -> int:
        """Return an event's place on the axis that the window measures."""
        return occurrence.position if self.counted else occurrence.time

    def begins(self, at: int) -> int:
        """Return the beginning of the tumbling window that contains a place on the axis."""
        return at - (at - self.start) % self.size

    def index(self, at: int) -> int:
        """Return the number of the tumbling window that contains a place on the axis, ascending with time."""
        return (at - self._phase) // self.size

    def places(self, batch: EventBatch, start: int) -> Ints:
        """Return the places of a batch's events on the window's axis; shape ``(events,)``. ``start``: the
        position of the first event.

        For tumbling windows, the places are the numbers of the windows.
        """
        at = start + np.arange(len(batch)) if self.counted else batch.time
        if self.sliding:
            return at
        # As ``index``, without differences of times, which may exceed 64 bits.
        number, within = np.divmod(at, self.size)
        return np.asarray(number - (within < self._phase))

    def place(self, time: int, position: int) -> int:
        """Return the place of one event, as ``places`` does."""
        at = position if self.counted else time
        return at if self.sliding else self.index(at)

    @property
    def _phase(self) -> int:
        """The beginning of the tumbling window with number 0."""
        return self.start % self.size

    @property
    def reach(self) -> int:
        """The greatest difference of ``places`` within one match."""
        return self.size if self.sliding else 0

    def together(self, first: Occurrence, last: Occurrence) -> bool:
        """Return whether one match may contain both events."""
        a, b = self.measure(first), self.measure(last)
        return b - a <= self.size if self.sliding else self.index(a) == self.index(b)

    def opening(self, first: Occurrence, last: Occurrence) -> int:
        """Return the first place on the axis that belongs to the window of a match ``first … last``."""
        if self.sliding:
            return self.measure(last) - self.size
        return self.begins(self.measure(first))

    def closing(self, first: Occurrence) -> int:
        """Return the last place on the axis that belongs to the window of a match that starts at
        ``first``.
        """
        if self.sliding:
            return self.measure(first) + self.size
        return self.begins(self.measure(first)) + self.size - 1


def stream_window(window: Window, ticks: bool, start: int) -> StreamWindow:
    """Return the window of a query, given the place ``start`` of its first event. With ``ticks``, a tick
    counts as a second.

    Raises ``EngineError`` for tumbling windows that would begin between two times of the clock.
    """
    sliding = window.kind is WindowKind.SLIDING
    if UNITS[window.unit] is None:
        return StreamWindow(int(window.size), True, sliding, 0, ticks)
    length = Duration(window.size, window.unit)
    size = length.on(ticks)
    if sliding:
        return StreamWindow(size, False, True, start, ticks)
    exact = length.microseconds / (1_000_000 if ticks else 1)
    if exact < 1:
        size = 1  # no window holds two times
    elif exact != size:
        clock = "ticks" if ticks else "microseconds"
        raise EngineError(
            f"WITHIN {length} TUMBLING is {decimal(exact)} {clock}: its windows must begin at whole {clock}; "
            "SLIDING can be any length"
        )
    return StreamWindow(size, False, False, start, ticks)


def finer_ticks(window: Window, time: int) -> str | None:
    """Return advice if ``time`` looks like a count of fractions of a second since the epoch; None if it does
    not.

    Also return None for a window that is evidently written in the same fractions, as ``WITHIN 300000
    SECONDS`` is for milliseconds.
    """
    if UNITS[window.unit] is None:
        return None
    for unit, per_second in _FINER.items():
        if _1973 <= time // per_second < 1_000 * _1973:
            length = Duration(window.size, window.unit)
            if window.unit == "SECONDS" and window.size >= per_second:
                return None
            meant = decimal(length.microseconds / 1_000_000 * per_second)
            return (
                f"times such as {time} look like {unit} since the epoch, but a tick counts as a second: "
                f"WITHIN {length} is {length.on(ticks=True)} ticks; write WITHIN {meant} SECONDS "
                f"{window.kind}, or give the times as xsd:dateTime"
            )
    return None


class PartitionMatcher(Protocol):
    """Finds the matches of one sequence in one partition.

    Occurrences come in processing order. Every match is returned once: by the ``push`` of the last
    event it needs or, if it waits for the end of its window, by the ``advance`` that ends it.
    """

    @property
    def kept(self) -> tuple[int, int]:
        """How many partial matches it keeps, and an estimate of their bytes."""
        ...

    def push(self, occurrence: Occurrence) -> Sequence[Found]:
        """Take the next event."""
        ...

    def advance(self, at: int, time: int) -> Sequence[Found]:
        """Take note that no later event will be at or before ``at`` on the window's axis, nor before
        ``time``.
        """
        ...

    def drop(self) -> None:
        """Drop every partial match, including matches that wait for the end of their window."""
        ...
