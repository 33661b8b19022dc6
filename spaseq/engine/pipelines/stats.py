"""The counts of a query, and the protocols of what its pipeline uses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Final, Protocol, runtime_checkable

from spaseq.bounds import Shed
from spaseq.events import EventBatch
from spaseq.limits import NearLimit
from spaseq.patterns.expressions.compiled import ExistsCallback
from spaseq.patterns.sharing import ByEvent
from spaseq.patterns.spectra.solutions import Solutions
from spaseq.why.diagnosis import GpmStats
from spaseq.why.sample import Sample

#: The counts of ``Stats``, apart from those by GPM.
COUNTS: Final = ("events", "relevant", "matches", "rows", "unskipped", "late")


@dataclass(slots=True)
class Stats:
    """What a registered query has seen and done.

    ``relevant``: how many of its ``events`` have a solution of some GPM. ``rows``: the rows of all
    ``matches``. Matches are counted when they are enumerated: if very many are not read, most are not
    counted. ``unskipped``: for how many of these SKIP TO found no event except their own first.
    ``shared_with``: how many other queries run as one with it. ``shared``: how many queries, itself included,
    share the partial matches of its first element, of its first two, and so on; empty if it shares none.
    ``late``: how many events were too late for it. ``watermark``: the time up to which it has processed its
    streams, in microseconds since the epoch or in ticks; None before the first event. ``gpms``: counts by
    GPM. ``shed``: what it shed to keep a bound; None if it has no bound, or does not shed. ``limit``: the
    limit of which it uses most; None if it keeps nothing, or shares what it keeps with others.
    """

    events: int = 0
    relevant: int = 0
    matches: int = 0
    rows: int = 0
    unskipped: int = 0
    shared_with: int = 0
    late: int = 0
    watermark: int | None = None
    shared: tuple[int, ...] = ()
    gpms: dict[str, GpmStats] = field(default_factory=dict)
    shed: Shed | None = None
    limit: NearLimit | None = field(default=None, compare=False)  # depends on the queries that share it

    def plus(self, others: Stats, sign: int = 1) -> Stats:
        """Return the sum of both counts; with a ``sign`` of -1 the difference. All else is taken from the
        first.
        """
        gpms = {name: _added(of, others.gpms[name], sign) for name, of in self.gpms.items()}
        added = {name: getattr(self, name) + sign * getattr(others, name) for name in COUNTS}
        return replace(self, gpms=gpms, **added)


def _added(counts: GpmStats, others: GpmStats, sign: int) -> GpmStats:
    return GpmStats(*(getattr(counts, f.name) + sign * getattr(others, f.name) for f in fields(counts)))


class StreamPosition(Protocol):
    """A pipeline's place among others with the same events; it counts them for the pipeline."""

    def refresh(self, stats: Stats) -> None:
        """Bring the counts of events up to date."""
        ...

    def leave(self) -> None:
        """End the query: its counts stay as they are."""
        ...

    def sampled(self, sample: Sample) -> None:
        """Add the following events to a sample."""
        ...

    def attend(self) -> None:
        """Pass over no event from now on."""
        ...


@runtime_checkable
class Shedder(Protocol):
    """A matcher that keeps a bound; ``shed`` has what it shed for that."""

    shed: Shed

    def update(self) -> None:
        """Bring ``shed`` up to date for a reader: otherwise that is done only now and then."""
        ...

    def end_shedding(self) -> None:
        """End the query: if it is shedding, a warning says that it no longer does."""
        ...


@runtime_checkable
class RunKeeper(Protocol):
    """A matcher that keeps partial matches one by one; ``tecs`` and ``kmp`` do not."""

    def partial_matches(self, time: int) -> int:
        """Return how many there are at ``time``."""
        ...


class GpmAnswers(Protocol):
    """A GPM's solutions in events."""

    def evaluate(self, batch: EventBatch) -> Solutions:
        """Return the solutions of every event."""
        ...

    def by_event(self, batch: EventBatch) -> ByEvent:
        """Return the solutions of every event that has some, by event."""
        ...

    def exists(self, batch: EventBatch, event: int) -> ExistsCallback:
        """Return the callback that decides EXISTS on an event's graph."""
        ...


class Observation:
    """The listeners and the sample of a query's events.

    ``seen`` is called with the events. ``is_wanted``: a caller has asked for them, or for a sample.
    ``place``: the query's place among others with the same events, which counts and samples them.
    """

    def __init__(self) -> None:
        self.is_wanted = False
        self.seen: Callable[[EventBatch], None] | None = None
        self.sample: Sample | None = Sample()
        self.place: StreamPosition | None = None

    def sit(self, place: StreamPosition, sample: Sample) -> None:
        """Leave counting and sampling to ``place`` from now on."""
        self.place, self.sample = place, sample

    def leave(self) -> None:
        """End the query: keep the sample as it is."""
        if self.place is not None:
            self.place.leave()
            self.place = None
            self.sample = None if self.sample is None else self.sample.copy()

    def follow(self, seen: Callable[[EventBatch], None]) -> None:
        """Call ``seen`` with all events from now on."""
        self.seen, self.is_wanted = seen, True
        if self.place is not None:
            self.place.attend()

    def show(self, batch: EventBatch) -> None:
        """Show events to listeners, and add them to the sample of a query that has no place."""
        if self.seen is not None:
            self.seen(batch)
        if self.place is None and self.sample is not None and self.sample.open:
            self.sample.add(batch)

    def sampled(self, sample: Sample) -> None:
        """Add the following events to another sample."""
        if self.place is not None:
            self.place.sampled(sample)

    def keep(self, events: int) -> None:
        """Keep this many of the next events as a sample."""
        self.sample, self.is_wanted = Sample(events, 10 * events), True
        self.sampled(self.sample)
