"""Events that were pushed and wait until somebody asks what became of them.

Nobody can tell when an event is worked on, if nobody is called back. Then pushing is taking down: some
hundreds of events go through the queries in one go, which costs a tenth of what they cost one by one, as soon
as somebody asks, or when they are enough. What must be told at once (an event that is late, or malformed)
never comes here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from itertools import groupby
from operator import itemgetter
from typing import Final

import numpy as np

from spaseq.events import Clock, EventBatch, Ids, several
from spaseq.terms import Dictionary

#: So many events wait at most, and so many triples of theirs. A further one is what the others wait for: how
#: long that call takes is bounded by these, too.
MOST_EVENTS: Final = 256
MOST_TRIPLES: Final = 4_096

#: An event that waits: stream, time, name of its graph, and triples, as ids.
Waiting = tuple[int, int, int, Collection[tuple[int, int, int]]]


class Inbox:
    """The events that wait, in the order of their times; those of the same time are of one stream.

    So there is nothing to order, and none is late. ``clock``: what their times count; ``newest``: the last of
    these; ``streams``: whose events may come here.
    """

    def __init__(self, dictionary: Dictionary) -> None:
        self.clock: Clock | None = None
        self.newest = 0
        self.streams: set[int] = set()
        self.last = 0
        self.triples = 0
        self.events: list[Waiting] = []
        self._dictionary = dictionary
        dictionary.hold(self)

    def __len__(self) -> int:
        return len(self.events)

    def live_ids(self) -> Iterable[Ids]:
        """The ids that the events hold."""
        events = self.events
        yield np.array([stream for stream, _, _, _ in events], dtype=np.int64)
        yield np.array([graph for _, _, graph, _ in events], dtype=np.int64)
        yield np.array([term for *_, rows in events for row in rows for term in row], dtype=np.int64)

    def count(self, stream: int) -> int:
        """How many events of a stream wait."""
        return sum(event[0] == stream for event in self.events)

    def fits(self, stream: int, clock: Clock, time: int) -> bool:
        """Whether an event may wait behind those that do, of which there is one at least."""
        return clock is self.clock and (time > self.newest or (time == self.newest and stream == self.last))

    @property
    def is_full(self) -> bool:
        """Whether there are enough."""
        return len(self.events) >= MOST_EVENTS or self.triples >= MOST_TRIPLES

    def batches(self, arrived: Callable[[int], int]) -> list[tuple[int, EventBatch]]:
        """The events of each stream, after so many that have ``arrived`` of it; they still wait."""
        of, clock = self.events, self.clock or Clock.TICKS
        if len(self.streams) > 1:
            of = sorted(of, key=itemgetter(0))  # which leaves those of a stream in their order
        return [
            (stream, several(self._dictionary, clock, stream, arrived(stream), list(events)))
            for stream, events in groupby(of, key=itemgetter(0))
        ]
