"""Single events as a few numbers: their columns are made on demand, or of many events at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

import numpy as np

from spaseq.events import Clock, EventBatch, Ids, Stamp
from spaseq.terms.dictionary import Dictionary


class Single(EventBatch):
    """A batch of one event. Its columns are made on demand, because most single events never need columns.

    ``terms`` are the terms of its triples, one after the other.
    """

    __slots__ = ("_columns", "at", "named", "terms")
    at: Stamp
    named: int
    terms: Sequence[int]
    _columns: Ids | None

    def __init__(
        self, dictionary: Dictionary, clock: Clock, stamp: Stamp, graph: int, terms: Sequence[int]
    ) -> None:
        """``graph``: its graph's name."""
        put = object.__setattr__
        put(self, "dictionary", dictionary)
        put(self, "clock", clock)
        put(self, "at", stamp)
        put(self, "named", graph)
        put(self, "terms", terms)
        put(self, "_columns", None)
        dictionary.hold(self)

    def __len__(self) -> int:
        return 1

    def live_ids(self) -> Iterable[Ids]:
        """The ids that the event holds."""
        return (np.array((self.at.stream, self.named, *self.terms), dtype=np.int64),)

    def stamp(self, event: int) -> Stamp:
        """What orders the event."""
        del event
        return self.at

    def triples(self, event: int) -> Iterator[tuple[int, int, int]]:
        """Its triples, as ids."""
        del event
        terms = self.terms
        return zip(terms[0::3], terms[1::3], terms[2::3], strict=True)

    def renumber(self, start: int) -> Single:
        """The same event with another arrival number."""
        time, stream, n = self.at
        if n == start:
            return self
        return Single(self.dictionary, self.clock, Stamp(time, stream, start), self.named, self.terms)

    def _some(self, begin: int, end: int) -> Ids:
        """Some of all columns, which stand one after the other."""
        columns = self._columns
        if columns is None:
            (time, stream, n), terms = self.at, self.terms
            head = (stream, self.named, time, n, 0, len(terms) // 3)
            columns = np.array([*head, *terms[0::3], *terms[1::3], *terms[2::3]], dtype=np.int64)
            object.__setattr__(self, "_columns", columns)
        return columns[begin:end]

    def _of_triples(self, place: int) -> Ids:
        count = len(self.terms) // 3
        return self._some(6 + place * count, 6 + (place + 1) * count)

    @property
    def stream(self) -> Ids:
        return self._some(0, 1)

    @property
    def graph(self) -> Ids:
        return self._some(1, 2)

    @property
    def time(self) -> Ids:
        return self._some(2, 3)

    @property
    def n(self) -> Ids:
        return self._some(3, 4)

    @property
    def offset(self) -> Ids:
        return self._some(4, 6)

    @property
    def s(self) -> Ids:
        return self._of_triples(0)

    @property
    def p(self) -> Ids:
        return self._of_triples(1)

    @property
    def o(self) -> Ids:
        return self._of_triples(2)


def gathered(events: Sequence[Single]) -> EventBatch:
    """Events that came alone, of one dictionary and clock, as columns."""
    triples = np.fromiter(chain.from_iterable(event.terms for event in events), dtype=np.int64)
    s, p, o = np.ascontiguousarray(triples.reshape(-1, 3).T)
    stamps = np.array([(*event.at, event.named) for event in events], dtype=np.int64)
    time, stream, n, graph = np.ascontiguousarray(stamps.T)
    offset = np.cumsum([0, *(len(event.terms) // 3 for event in events)])
    first = events[0]
    return EventBatch(first.dictionary, first.clock, stream, graph, time, n, offset, s, p, o)


def several(
    dictionary: Dictionary,
    clock: Clock,
    stream: int,
    first: int,
    events: Sequence[tuple[int, int, int, Sequence[int]]],
) -> EventBatch:
    """Events of one stream: of each anything, its time, its graph's name, and terms as for ``single``.

    ``first`` is the arrival number of the first.
    """
    if len(events) == 1:
        ((_, time, graph, terms),) = events
        return Single(dictionary, clock, Stamp(time, stream, first), graph, terms)
    count = len(events)
    triples = np.fromiter(chain.from_iterable(terms for *_, terms in events), dtype=np.int64)
    s, p, o = np.ascontiguousarray(triples.reshape(-1, 3).T)
    return EventBatch(
        dictionary,
        clock,
        np.full(count, stream, dtype=np.int64),
        np.array([graph for _, _, graph, _ in events], dtype=np.int64),
        np.array([time for _, time, _, _ in events], dtype=np.int64),
        np.arange(first, first + count, dtype=np.int64),
        np.cumsum([0, *(len(terms) // 3 for *_, terms in events)]),
        s,
        p,
        o,
    )
