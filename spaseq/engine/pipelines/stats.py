"""What a query's pipeline counts, and what those around it are to it."""

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

    ``relevant``: so many of its ``events`` are such that some GPM has a solution; ``rows`` are those of all
    ``matches``, which are counted when they are found: of very many that nobody reads, most are not;
    ``unskipped``: so many of these had no event for SKIP TO to go to but their own first; ``shared_with``:
    so many other queries run as one with it; ``shared``: how many queries, itself included, have the
    partial matches of its first element in common, of its first two, and so on; empty if it shares none.
    ``late``: so many events came too late for it. ``watermark``: the time up to which it has processed its
    streams, in microseconds since the epoch or in ticks; None before the first event. ``gpms``: the same by
    GPM. ``shed``: what it gave up to keep a bound; None if it has none, or does not shed. ``limit``: the
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
    limit: NearLimit | None = field(default=None, compare=False)  # what is kept depends on who shares it

    def plus(self, others: Stats, sign: int = 1) -> Stats:
        """The counts of both; with a ``sign`` of -1 the difference. All else is of the first."""
        gpms = {name: _added(of, others.gpms[name], sign) for name, of in self.gpms.items()}
        added = {name: getattr(self, name) + sign * getattr(others, name) for name in COUNTS}
        return replace(self, gpms=gpms, **added)


def _added(counts: GpmStats, others: GpmStats, sign: int) -> GpmStats:
    return GpmStats(*(getattr(counts, f.name) + sign * getattr(others, f.name) for f in fields(counts)))


class Place(Protocol):
    """A pipeline's place among others that have the same events, who counts them for it."""

    def refresh(self, stats: Stats) -> None:
        """Brings the counts of events up to date."""
        ...

    def leave(self) -> None:
        """The query is over: its counts stay as they are."""
        ...

    def sampled(self, sample: Sample) -> None:
        """Gives the events to come to a sample."""
        ...

    def attend(self) -> None:
        """Passes over no event to come."""
        ...


@runtime_checkable
class Shedder(Protocol):
    """A matcher that keeps a bound; ``shed`` says what it gave up for that."""

    shed: Shed

    def update(self) -> None:
        """Brings ``shed`` up to date, for who asks: by itself it is only now and then."""
        ...

    def end_shedding(self) -> None:
        """The query is over: if it sheds, a warning says that it does no more."""
        ...


class GpmAnswers(Protocol):
    """What has a GPM's solutions in events."""

    def evaluate(self, batch: EventBatch) -> Solutions:
        """Those of every event."""
        ...

    def by_event(self, batch: EventBatch) -> ByEvent:
        """Those of every event that has some, by event."""
        ...

    def exists(self, batch: EventBatch, event: int) -> ExistsCallback:
        """What decides EXISTS on an event's graph."""
        ...


class Observation:
    """What is kept, and told, of a query's events besides matches.

    ``seen`` is called with them; ``is_wanted``: a caller has asked for them, or for a sample. ``place``: what
    shares the events with other queries, and counts and samples them.
    """

    def __init__(self) -> None:
        self.is_wanted = False
        self.seen: Callable[[EventBatch], None] | None = None
        self.sample: Sample | None = Sample()
        self.place: Place | None = None

    def sit(self, place: Place, sample: Sample) -> None:
        """Leave counting and sampling to ``place`` from now on."""
        self.place, self.sample = place, sample

    def leave(self) -> None:
        """The query is over: keep what there is."""
        if self.place is not None:
            self.place.leave()
            self.place = None
            self.sample = None if self.sample is None else self.sample.copy()

    def follow(self, seen: Callable[[EventBatch], None]) -> None:
        """Call ``seen`` with the events from now on, which are all that there are."""
        self.seen, self.is_wanted = seen, True
        if self.place is not None:
            self.place.attend()

    def show(self, batch: EventBatch) -> None:
        """Show events to those that follow, and to the sample of a query that has no place."""
        if self.seen is not None:
            self.seen(batch)
        if self.place is None and self.sample is not None and self.sample.open:
            self.sample.add(batch)

    def sampled(self, sample: Sample) -> None:
        """Give the events to come to another sample."""
        if self.place is not None:
            self.place.sampled(sample)

    def keep(self, events: int) -> None:
        """Keep so many of the events to come as a sample."""
        self.sample, self.is_wanted = Sample(events, 10 * events), True
        self.sampled(self.sample)
