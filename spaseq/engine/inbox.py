"""Events that wait until a result is read.

Without callbacks, the time at which an event is processed cannot be observed. So a push only records the
event. Some hundred events are processed together, at a tenth of the cost of one by one, when a result is read
or the inbox is full. Events that must be reported at once (late or malformed ones) never come here. Batches
of sources wait here, too, until there are enough events.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Final

import numpy as np

from spaseq.alone import several
from spaseq.events import Clock, EventBatch, Ids
from spaseq.terms.dictionary import Dictionary

#: The most events, and the most triples of theirs, that wait. One more event makes the call process all of
#: them, so that these numbers bound how long a push takes.
MOST_EVENTS: Final = 256
MOST_TRIPLES: Final = 4_096

#: An event: stream, time, name of its graph, and the terms of its triples in a row.
Waiting = tuple[int, int, int, Sequence[int]]


class Inbox:
    """The events that wait, in the order of their times; events of the same time are of one stream.

    So no ordering is needed, and none is late. ``clock``: the clock of their times; ``newest``: the last
    time, of the stream ``last``; ``streams``: the ones with events that may wait here; ``size``: how many
    events wait. ``batches``: those of sources, by stream; then no pushed event waits.

    ``events`` has integers only, in a row: with many long-lived tuples the garbage collector
    would traverse the process again and again.
    """

    def __init__(self, dictionary: Dictionary) -> None:
        self.clock: Clock | None = None
        self.newest = 0
        self.streams: set[int] = set()
        self.last = 0
        self.size = 0
        self.events: list[int] = []
        self.batches: list[tuple[int, EventBatch]] = []
        self._dictionary = dictionary
        dictionary.hold(self)

    def live_ids(self) -> Iterable[Ids]:
        """Yield the ids that the events hold."""
        for stream, _, graph, terms in self:
            yield np.array([stream, graph, *terms], dtype=np.int64)

    def __iter__(self) -> Iterator[Waiting]:
        events, at = self.events, 0
        while at < len(events):
            stream, time, graph, count = events[at : at + 4]
            at += 4 + count
            yield stream, time, graph, events[at - count : at]

    def count(self, stream: int) -> int:
        """Return how many events of a stream wait."""
        return sum(event[0] == stream for event in self)

    def fits(self, stream: int, clock: Clock, time: int) -> bool:
        """Return whether an event may wait behind the waiting ones. There must be one."""
        return clock is self.clock and (time > self.newest or (time == self.newest and stream == self.last))

    @property
    def is_full(self) -> bool:
        """Whether the waiting events must be processed."""
        return self.size >= MOST_EVENTS or len(self.events) >= 3 * MOST_TRIPLES

    def add(self, stream: int, time: int, graph: int, terms: Sequence[int]) -> None:
        """Let an event wait, which must fit."""
        self.newest, self.last, self.size = time, stream, self.size + 1
        self.events.extend((stream, time, graph, len(terms), *terms))

    def take(self, arrived: Mapping[int, int]) -> list[tuple[int, EventBatch]]:
        """Return the waiting events of each stream, numbered after the ``arrived`` ones; then none waits."""
        of, clock = list(self), self.clock or Clock.TICKS
        if len(self.streams) > 1:
            of.sort(key=itemgetter(0))  # stable: events of a stream stay in order
        taken = self.batches
        taken += [
            (stream, several(self._dictionary, clock, stream, arrived[stream], list(events)))
            for stream, events in groupby(of, key=itemgetter(0))
        ]
        self.batches, self.events, self.size = [], [], 0
        return taken
