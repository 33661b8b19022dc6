"""Events that were pushed and wait until somebody asks what became of them.

Nobody can tell when an event is worked on, if nobody is called back. Then pushing is taking down: some
hundreds of events go through the queries in one go, which costs a tenth of what they cost one by one, as soon
as somebody asks, or when they are enough. What must be told at once (an event that is late, or malformed)
never comes here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Final

import numpy as np

from spaseq.alone import several
from spaseq.events import Clock, EventBatch, Ids
from spaseq.terms.dictionary import Dictionary

#: So many events wait at most, and so many triples of theirs. A further one is what the others wait for: how
#: long that call takes is bounded by these, too.
MOST_EVENTS: Final = 256
MOST_TRIPLES: Final = 4_096

#: An event: stream, time, name of its graph, and the terms of its triples, one after the other.
Waiting = tuple[int, int, int, Sequence[int]]


class Inbox:
    """The events that wait, in the order of their times; those of the same time are of one stream.

    So there is nothing to order, and none is late. ``clock``: what their times count; ``newest``: the last of
    these, of the stream ``last``; ``streams``: whose events may come here; ``size``: how many events wait.

    ``events`` are numbers alone, as ``row`` gives them: many tuples that live a while would have the garbage
    collector look at the whole process again and again.
    """

    def __init__(self, dictionary: Dictionary) -> None:
        self.clock: Clock | None = None
        self.newest = 0
        self.streams: set[int] = set()
        self.last = 0
        self.size = 0
        self.events: list[int] = []
        self._dictionary = dictionary
        dictionary.hold(self)

    def live_ids(self) -> Iterable[Ids]:
        """The ids that the events hold."""
        for stream, _, graph, terms in self:
            yield np.array([stream, graph, *terms], dtype=np.int64)

    def __iter__(self) -> Iterator[Waiting]:
        events, at = self.events, 0
        while at < len(events):
            stream, time, graph, count = events[at : at + 4]
            at += 4 + count
            yield stream, time, graph, events[at - count : at]

    def count(self, stream: int) -> int:
        """How many events of a stream wait."""
        return sum(event[0] == stream for event in self)

    def fits(self, stream: int, clock: Clock, time: int) -> bool:
        """Whether an event may wait behind those that do, of which there is one at least."""
        return clock is self.clock and (time > self.newest or (time == self.newest and stream == self.last))

    @property
    def is_full(self) -> bool:
        """Whether there are enough."""
        return self.size >= MOST_EVENTS or len(self.events) >= 3 * MOST_TRIPLES

    def batches(self, arrived: Callable[[int], int]) -> list[tuple[int, EventBatch]]:
        """The events of each stream, after so many that have ``arrived`` of it; they still wait."""
        of, clock = list(self), self.clock or Clock.TICKS
        if len(self.streams) > 1:
            of.sort(key=itemgetter(0))  # which leaves those of a stream in their order
        return [
            (stream, several(self._dictionary, clock, stream, arrived(stream), list(events)))
            for stream, events in groupby(of, key=itemgetter(0))
        ]


def row(stream: int, time: int, graph: int, terms: Sequence[int]) -> tuple[int, ...]:
    """An event as an inbox has it."""
    return (stream, time, graph, len(terms), *terms)
