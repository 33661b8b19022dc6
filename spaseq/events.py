"""Events as columns, and as the objects a user sees.

Time is a signed 64-bit count: microseconds since the Unix epoch on a stream of *instants*, plain
numbers on a stream of *ticks* (``WITHIN 10 SECONDS`` counts 10 ticks). Semantics, section 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
from pyoxigraph import BlankNode, NamedNode, Triple

from spaseq.terms.dictionary import UNBOUND, Dictionary, Term
from spaseq.terms.identified import Row, identified, identifier

Ids = npt.NDArray[np.int64]

#: The first and the last time that 64 bits hold.
EARLIEST: Final = -(1 << 63)
LATEST: Final = (1 << 63) - 1

#: Before and after all times, by more than any window or lateness: too large for arrays.
BEGINNING: Final = -(1 << 80)
END: Final = 1 << 80

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Clock(StrEnum):
    """The unit of a stream's times."""

    INSTANTS = "instants"
    TICKS = "ticks"

    @property
    def unit(self) -> timedelta:
        """The duration that adds one to a time: on ticks, a second counts one tick."""
        return timedelta(seconds=1) if self is Clock.TICKS else timedelta(microseconds=1)

    @property
    def least(self) -> int:
        """The earliest time: that of 64 bits, or the earliest datetime."""
        return EARLIEST if self is Clock.TICKS else _FIRST_INSTANT

    def show(self, time: int) -> datetime | int:
        """Return a time as users see it: a UTC datetime, or the tick itself."""
        if self is Clock.TICKS:
            return time
        return _EPOCH + timedelta(microseconds=time)


def microseconds(moment: datetime) -> int:
    """Return microseconds since the epoch, exactly; a datetime without a timezone counts as UTC."""
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // timedelta(microseconds=1)


_FIRST_INSTANT: Final = microseconds(datetime.min)
_LAST_INSTANT: Final = microseconds(datetime.max)


def is_instant(time: int) -> bool:
    """Return whether microseconds since the epoch are in the years 1 to 9999 of UTC, the range of
    datetime.
    """
    return _FIRST_INSTANT <= time <= _LAST_INSTANT


class Stamp(NamedTuple):
    """The order of events: time, stream (an id), arrival number in the stream."""

    time: int
    stream: int
    n: int


def precedes(e: Stamp, f: Stamp) -> bool:
    """``e ≺ f``: earlier, or of the same stream and time and arrived before (semantics, 1)."""
    return e.time < f.time or (e.time == f.time and e.stream == f.stream and e.n < f.n)


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class EventBatch:
    """Some events, as columns, in the order of a stream or of several merged ones.

    Shapes: ``stream``, ``graph``, ``time`` and ``n`` are ``(events,)``; ``offset`` is
    ``(events + 1,)``; ``s``, ``p`` and ``o`` are ``(triples,)``. The triples of event ``i`` are
    rows ``offset[i]`` up to ``offset[i + 1]``. ``stream`` holds the id of the stream's IRI,
    ``graph`` that of the event's graph name (``UNBOUND`` if it has none). Ids are those of
    ``dictionary``, which keeps them as long as the batch is referenced. All times are on one ``clock``.
    """

    dictionary: Dictionary
    clock: Clock
    stream: Ids
    graph: Ids
    time: Ids
    n: Ids
    offset: Ids
    s: Ids
    p: Ids
    o: Ids

    def __post_init__(self) -> None:
        self.dictionary.hold(self)

    def __len__(self) -> int:
        return len(self.time)

    def live_ids(self) -> Iterable[Ids]:
        """Return the ids that the batch holds."""
        return self.stream, self.graph, self.s, self.p, self.o

    def stamp(self, event: int) -> Stamp:
        """Return the stamp that orders event ``event``."""
        return Stamp(int(self.time[event]), int(self.stream[event]), int(self.n[event]))

    def triples(self, event: int) -> Iterator[tuple[int, int, int]]:
        """Yield the triples of one event, as ids."""
        rows = slice(int(self.offset[event]), int(self.offset[event + 1]))
        yield from zip(self.s[rows].tolist(), self.p[rows].tolist(), self.o[rows].tolist(), strict=True)

    def subjects(self, rows: Ids) -> Ids:
        """Return the subjects of some triples."""
        return self.s[rows]

    def renumber(self, start: int) -> EventBatch:
        """Return the same events of one stream, their arrival numbers counted from ``start``."""
        if len(self.n) == 1 and self.n.item(0) == start:
            return self
        n = np.arange(start, start + len(self), dtype=np.int64)
        of_events = self.stream, self.graph, self.time, n, self.offset
        return EventBatch(self.dictionary, self.clock, *of_events, self.s, self.p, self.o)

    def take(self, events: Ids) -> EventBatch:
        """Return the events at these positions, in this order."""
        of_events, rows = self._taken(events)
        triples = self.s[rows], self.p[rows], self.o[rows]
        return EventBatch(self.dictionary, self.clock, *of_events, *triples)

    def _taken(self, events: Ids) -> tuple[OfEvents, Ids]:
        """Return the columns of some events, and the rows of their triples."""
        begins = self.offset[events]
        lengths = self.offset[events + 1] - begins
        offset = np.zeros(len(events) + 1, dtype=np.int64)
        np.cumsum(lengths, out=offset[1:])
        if offset[-1] == len(events) and (lengths == 1).all():
            rows = begins
        else:
            rows = np.repeat(begins - offset[:-1], lengths) + np.arange(offset[-1])
        columns = self.stream[events], self.graph[events], self.time[events], self.n[events], offset
        return columns, rows

    def parts(self, of: Sequence[Ids]) -> list[EventBatch]:
        """Return ``take`` of each, reading each event only once, where that is faster."""
        if len(of) < 2:
            return [self.take(events) for events in of]
        # Imported only here: loading compiled code takes a while, and planning alone does not need it.
        from spaseq import _kernel_events as k
        from spaseq._fields import address, place, plain

        of_events = self.stream, self.graph, self.time, self.n, self.offset
        columns = [plain(column) for column in (*of_events, self.s, self.p, self.o)]
        sizes = [len(events) for events in of]
        every, ends, triples = np.concatenate(of), np.cumsum(sizes), np.zeros(len(of), dtype=np.int64)
        # The kernel computes all places relative to this array.
        done = np.zeros(2 * len(of), dtype=np.int64)
        begin = address(done)
        stand = np.array([place(column, begin) for column in columns])
        k.count(done, stand, every, ends, triples)
        # An array for each part, so that keeping one part does not keep the others.
        counts = triples.tolist()
        rooms = [5 * size + 1 + 3 * rows for size, rows in zip(sizes, counts, strict=True)]
        made = [np.empty(room, dtype=np.int64) for room in rooms]
        parts = np.array([place(array, begin) for array in made])
        k.spread(done, stand, parts, every, ends, triples, len(self))
        return [self._made(array, size, rows) for array, size, rows in zip(made, sizes, counts, strict=True)]

    def _made(self, made: Ids, size: int, rows: int) -> EventBatch:
        """Return the events with their columns one after the other in an array."""
        ends = [0, size, 2 * size, 3 * size, 4 * size, 5 * size + 1]
        ends += [ends[-1] + rows, ends[-1] + 2 * rows, ends[-1] + 3 * rows]
        return EventBatch(self.dictionary, self.clock, *(made[begin:end] for begin, end in pairwise(ends)))


#: The columns of events: stream, graph, time, n and offset.
OfEvents = tuple[Ids, Ids, Ids, Ids, Ids]


class Subjects(NamedTuple):
    """The subjects of triples that have no ids yet: each triple's row in a table, and the ids of rows.

    ``enter`` takes rows and returns the ids of their subjects. Call it with the dictionary's lock held.
    """

    rows: Ids
    enter: Callable[[Ids], Ids]


#: The columns of triples: s, p and o.
OfTriples = tuple[Ids | Subjects, Ids, Ids]


class LateBatch(EventBatch):
    """A batch of which subjects become terms only when they are read.

    Most events of a table concern no query, and their subjects need no term. A run over 400,000 events, of
    which 115 concern the query, takes 3.5 times as long if all subjects become terms.
    """

    __slots__ = ("_ids", "_subjects")
    # The ids of the subjects that were read; UNBOUND for the others. None if none was read.
    _ids: Ids | None
    # None if all subjects were read.
    _subjects: Subjects | None

    def __init__(
        self,
        dictionary: Dictionary,
        clock: Clock,
        stream: Ids,
        graph: Ids,
        time: Ids,
        n: Ids,
        offset: Ids,
        s: Ids | Subjects,
        p: Ids,
        o: Ids,
    ) -> None:
        """Take the fields of an ``EventBatch``, as ``dataclasses.replace`` gives them."""
        subjects, ids = (s, None) if isinstance(s, Subjects) else (None, s)
        names = "dictionary", "clock", "stream", "graph", "time", "n", "offset", "p", "o", "_subjects", "_ids"
        values = dictionary, clock, stream, graph, time, n, offset, p, o, subjects, ids
        for name, value in zip(names, values, strict=True):
            object.__setattr__(self, name, value)
        dictionary.hold(self)

    @property
    def s(self) -> Ids:
        """The ids of the subjects."""
        with self.dictionary.lock:
            if self._subjects is not None:
                self.subjects(np.arange(len(self.p)))
                object.__setattr__(self, "_subjects", None)
            assert self._ids is not None
            return self._ids

    def live_ids(self) -> Iterable[Ids]:
        """Return the ids that the batch holds so far."""
        known = () if self._ids is None else (self._ids,)
        return self.stream, self.graph, self.p, self.o, *known

    def subjects(self, rows: Ids) -> Ids:
        """Return the subjects of some triples, which the batch holds from now on; no other becomes a term."""
        with self.dictionary.lock:
            late = self._subjects
            if late is None:
                return self.s[rows]
            if self._ids is None:
                object.__setattr__(self, "_ids", np.full(len(late.rows), UNBOUND, dtype=np.int64))
            assert self._ids is not None
            unread = rows[self._ids[rows] == UNBOUND]
            if len(unread):
                self._ids[unread] = late.enter(late.rows[unread])
            return self._ids[rows]

    def renumber(self, start: int) -> EventBatch:
        """Return the same events of one stream, their arrival numbers counted from ``start``."""
        late = self._subjects
        if late is None:
            return super().renumber(start)
        n = np.arange(start, start + len(self), dtype=np.int64)
        of_events = self.stream, self.graph, self.time, n, self.offset
        return batch_of(self.dictionary, self.clock, of_events, (late, self.p, self.o))

    def take(self, events: Ids) -> EventBatch:
        """Return the events at these positions, in this order."""
        late = self._subjects
        if late is None:
            return super().take(events)
        of_events, rows = self._taken(events)
        triples = late._replace(rows=late.rows[rows]), self.p[rows], self.o[rows]
        return batch_of(self.dictionary, self.clock, of_events, triples)

    def parts(self, of: Sequence[Ids]) -> list[EventBatch]:
        """Return ``take`` of each."""
        return super().parts(of) if self._subjects is None else [self.take(events) for events in of]


def batch_of(dictionary: Dictionary, clock: Clock, of_events: OfEvents, triples: OfTriples) -> EventBatch:
    """Return events given as columns."""
    s, p, o = triples
    if isinstance(s, Subjects):
        return LateBatch(dictionary, clock, *of_events, s, p, o)
    return EventBatch(dictionary, clock, *of_events, s, p, o)


def concatenate(batches: Iterable[EventBatch]) -> EventBatch:
    """Concatenate several batches of one dictionary and clock, in this order; at least one batch."""
    parts = list(batches)
    if len(parts) == 1:
        return parts[0]
    starts = np.cumsum([0] + [len(part.p) for part in parts])
    offset = np.concatenate(
        [[0]] + [part.offset[1:] + start for part, start in zip(parts, starts, strict=False)]
    ).astype(np.int64)
    return EventBatch(
        parts[0].dictionary,
        parts[0].clock,
        np.concatenate([part.stream for part in parts]),
        np.concatenate([part.graph for part in parts]),
        np.concatenate([part.time for part in parts]),
        np.concatenate([part.n for part in parts]),
        offset,
        np.concatenate([part.s for part in parts]),
        np.concatenate([part.p for part in parts]),
        np.concatenate([part.o for part in parts]),
    )


class BatchBuilder:
    """Builds an ``EventBatch`` of one stream, from terms or from columns."""

    def __init__(self, dictionary: Dictionary, stream: NamedNode, clock: Clock) -> None:
        self._dictionary = dictionary
        self._stream = dictionary.pin(stream)
        self._clock = clock
        self._parts: list[EventBatch] = []
        self._start()
        dictionary.hold(self)

    def _start(self) -> None:
        self._graph: list[int] = []
        self._time: list[int] = []
        self._n: list[int] = []
        self._offset: list[int] = [0]
        self._triples: list[tuple[int, int, int]] = []

    def __len__(self) -> int:
        return len(self._time) + sum(map(len, self._parts))

    def live_ids(self) -> Iterable[Ids]:
        """Return the ids of events not built yet, except those of extended parts, which hold
        their own ids.
        """
        return np.array(self._graph, dtype=np.int64), np.array(self._triples, dtype=np.int64)

    def add(
        self, time: int, n: int, triples: Iterable[Triple | Row], graph: NamedNode | BlankNode | None = None
    ) -> None:
        """Add an event. Its blank nodes become fresh ones; repeated triples count once.

        Raises ValueError (and adds nothing) for triple terms and base directions of RDF 1.2: events are RDF
        1.1 graphs, because users see rdflib's terms, which have neither.
        """
        with self._dictionary.lock:
            rows, name = identified(self._dictionary, triples, graph)
            self._triples.extend(rows)
            self._graph.append(name)
        self._time.append(time)
        self._n.append(n)
        self._offset.append(len(self._triples))

    def add_all(self, time: Ids, offset: Ids, triples: Ids, terms: Sequence[Term]) -> None:
        """Add events without names, like ``add``.

        ``triples`` are indexes of ``terms``; no event has the same triple twice.
        """
        owners = np.repeat(np.arange(len(time)), np.diff(offset))[:, None]
        with self._dictionary.lock:
            ids = np.array([identifier(self._dictionary, term) for term in terms], dtype=np.int64)
            rows = ids[triples]
            # Each event's blank nodes: a blank node of the next event is a different one.
            blank = rows == UNBOUND
            nodes, which = np.unique((owners * len(terms) + triples)[blank], return_inverse=True)
            rows[blank] = np.array([self._dictionary.fresh() for _ in nodes], dtype=np.int64)[which]
            nothing = np.zeros(len(time), dtype=np.int64)
            s, p, o = map(np.ascontiguousarray, rows.T)
            self.extend(nothing + UNBOUND, time, nothing, offset, (s, p, o))

    def extend(self, graph: Ids, time: Ids, n: Ids, offset: Ids, triples: OfTriples) -> None:
        """Add events given as the columns of ``EventBatch``: no repeated triples, blank nodes fresh."""
        if self._time:
            self._parts.append(self._gathered())
        stream = np.full(len(time), self._stream, dtype=np.int64)
        of_events = stream, graph, time, n, offset
        self._parts.append(batch_of(self._dictionary, self._clock, of_events, triples))

    def build(self) -> EventBatch:
        """Return the events added since the last ``build``, as columns."""
        if self._time or not self._parts:
            self._parts.append(self._gathered())
        parts, self._parts = self._parts, []
        return concatenate(parts)

    def _gathered(self) -> EventBatch:
        triples = np.array(self._triples, dtype=np.int64).reshape(-1, 3)
        batch = EventBatch(
            self._dictionary,
            self._clock,
            np.full(len(self._time), self._stream, dtype=np.int64),
            np.array(self._graph, dtype=np.int64),
            np.array(self._time, dtype=np.int64),
            np.array(self._n, dtype=np.int64),
            np.array(self._offset, dtype=np.int64),
            np.ascontiguousarray(triples[:, 0]),
            np.ascontiguousarray(triples[:, 1]),
            np.ascontiguousarray(triples[:, 2]),
        )
        self._start()
        return batch
