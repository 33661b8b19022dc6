"""Who else looks at a query's events: those that follow it, and the sample that a diagnosis runs again."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace

from spaseq.engine.pipelines.delivering import Delivering
from spaseq.engine.pipelines.stats import Seat, Stats
from spaseq.events import EventBatch
from spaseq.gpm.kb import KnowledgeBase
from spaseq.gpm.sharing import Sharing
from spaseq.language.syntax import Query
from spaseq.limits import Limits
from spaseq.terms.dictionary import Dictionary
from spaseq.why.evidence import Evidence
from spaseq.why.sample import Sample


class Watched(Delivering):
    """What is kept, and told, of a query's events besides matches."""

    def __init__(
        self,
        query: Query,
        dictionary: Dictionary,
        kb: KnowledgeBase,
        sharing: Sharing,
        limits: Limits,
        start: int | None,
    ) -> None:
        super().__init__(query, dictionary, kb, sharing, limits)
        self._kb = kb
        #: Whether somebody asked for its events, too.
        self.is_watched = False
        self._seen: Callable[[EventBatch], None] | None = None
        self._sample: Sample | None = Sample()
        self._seat: Seat | None = None
        self._begin = start

    @property
    @abstractmethod
    def stats(self) -> Stats:
        """What it has seen and done."""

    @abstractmethod
    def count(self) -> None:
        """Brings up to date what is counted now and then: events that came alone, what was given up.

        For who has the turn.
        """

    @property
    def beginning(self) -> int | None:
        """When the first window began."""
        return self._begin

    def sit(self, seat: Seat, sample: Sample) -> None:
        """From now on it gets those events that concern it; ``seat`` counts, and fills the ``sample``."""
        self._seat, self._sample = seat, sample

    def follow(self, seen: Callable[[EventBatch], None]) -> None:
        """Calls ``seen`` with the events that it takes from now on, which are all that there are."""
        self._seen, self.is_watched = seen, True
        if self._seat is not None:
            self._seat.attend()

    def _show(self, batch: EventBatch) -> None:
        """Shows events to those who follow it; who has no seat counts and samples them by itself."""
        if self._seen is not None:
            self._seen(batch)
        if self._seat is None:
            if self._sample is not None and self._sample.open:
                self._sample.add(batch)
            self._count(batch)

    @property
    def sample(self) -> Sample | None:
        """The first of its events."""
        return self._sample

    def sampled(self, sample: Sample) -> None:
        """Gives the events to come to another sample."""
        if self._seat is not None:
            self._seat.sampled(sample)

    def keep(self, events: int) -> None:
        """Keeps so many of the events to come as a sample."""
        self._sample, self.is_watched = Sample(events, 10 * events), True
        self.sampled(self._sample)

    def evidence(self) -> Evidence:
        """What is known of the query, for a diagnosis."""
        self.count()
        stats = self.stats
        return Evidence(
            pattern=self.pattern,
            events=stats.events,
            matches=stats.matches,
            late=stats.late,
            gpms={name: replace(counted) for name, counted in stats.gpms.items()},
            sample=None if self._sample is None else self._sample.batch(),
            begin=self._begin,
            dictionary=self._dictionary,
            kb=self._kb,
            ended=self._sample is None,
            failed_calls=dict(self._dictionary.failed_calls),
        )
