"""Single events as a few numbers; columns are made on demand, or for many events at once."""

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
        """``graph``: the name of its graph."""
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
        """Return the ids that the event holds."""
        return (np.array((self.at.stream, self.named, *self.terms), dtype=np.int64),)

    def stamp(self, event: int) -> Stamp:
        """Return the stamp that orders the event."""
        del event
        return self.at

    def triples(self, event: int) -> Iterator[tuple[int, int, int]]:
        """Yield its triples, as ids."""
        del event
        terms = self.terms
        return zip(terms[0::3], terms[1::3], terms[2::3], strict=True)

    def renumber(self, start: int) -> Single:
        """Return the same event with another arrival number."""
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
    """Return single events, of one dictionary and clock, as columns."""
    first, heads = events[0], [(*event.at, event.named) for event in events]
    return _columns(first.dictionary, first.clock, heads, [event.terms for event in events])


def several(
    dictionary: Dictionary,
    clock: Clock,
    stream: int,
    first: int,
    events: Sequence[tuple[int, int, int, Sequence[int]]],
) -> EventBatch:
    """Return events of one stream; ``first`` is the arrival number of the first one.

    ``events``: for each an ignored number, its time, its graph's name, and its terms.
    """
    if len(events) == 1:
        ((_, time, graph, terms),) = events
        return Single(dictionary, clock, Stamp(time, stream, first), graph, terms)
    heads = [(time, stream, n, graph) for n, (_, time, graph, _) in enumerate(events, first)]
    return _columns(dictionary, clock, heads, [terms for *_, terms in events])


def _columns(
    dictionary: Dictionary,
    clock: Clock,
    heads: Sequence[tuple[int, int, int, int]],
    terms: Sequence[Sequence[int]],
) -> EventBatch:
    """Return events as columns, given the time, stream, arrival number and graph's name of each."""
    triples = np.fromiter(chain.from_iterable(terms), dtype=np.int64)
    s, p, o = np.ascontiguousarray(triples.reshape(-1, 3).T)
    time, stream, n, graph = np.ascontiguousarray(np.array(heads, dtype=np.int64).T)
    offset = np.cumsum([0, *(len(of_event) // 3 for of_event in terms)])
    return EventBatch(dictionary, clock, stream, graph, time, n, offset, s, p, o)
