"""Who else looks at a query's events: those that follow it, and the sample that a diagnosis runs again."""

from __future__ import annotations

from collections.abc import Callable

from spaseq.engine.pipelines.stats import Seat
from spaseq.events import EventBatch
from spaseq.why.sample import Sample


class Observation:
    """What is kept, and told, of a query's events besides matches.

    ``seen`` is called with them; ``is_wanted``: a caller has asked for them, or for a sample. ``seat``: what
    shares the events with other queries, and counts and samples them.
    """

    def __init__(self) -> None:
        self.is_wanted = False
        self.seen: Callable[[EventBatch], None] | None = None
        self.sample: Sample | None = Sample()
        self.seat: Seat | None = None

    def sit(self, seat: Seat, sample: Sample) -> None:
        """Leave counting and sampling to ``seat`` from now on."""
        self.seat, self.sample = seat, sample

    def leave(self) -> None:
        """The query is over: keep what there is."""
        if self.seat is not None:
            self.seat.leave()
            self.seat = None
            self.sample = None if self.sample is None else self.sample.copy()

    def follow(self, seen: Callable[[EventBatch], None]) -> None:
        """Call ``seen`` with the events from now on, which are all that there are."""
        self.seen, self.is_wanted = seen, True
        if self.seat is not None:
            self.seat.attend()

    def show(self, batch: EventBatch) -> None:
        """Show events to those that follow, and to the sample of a query that has no seat."""
        if self.seen is not None:
            self.seen(batch)
        if self.seat is None and self.sample is not None and self.sample.open:
            self.sample.add(batch)

    def sampled(self, sample: Sample) -> None:
        """Give the events to come to another sample."""
        if self.seat is not None:
            self.seat.sampled(sample)

    def keep(self, events: int) -> None:
        """Keep so many of the events to come as a sample."""
        self.sample, self.is_wanted = Sample(events, 10 * events), True
        self.sampled(self.sample)
