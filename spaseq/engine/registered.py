"""A query's place in an engine: what it has of the events that it shares with others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING

import pyoxigraph as ox

from spaseq.engine.handle import Handle
from spaseq.engine.pipelines.groups.crowd import Crowd
from spaseq.engine.pipelines.intake import Intake
from spaseq.engine.pipelines.pipeline import Pipeline
from spaseq.engine.pipelines.stats import Stats
from spaseq.events import BEGINNING, EventBatch, Stamp
from spaseq.results.batch import MatchBatch
from spaseq.terms.dictionary import Dictionary
from spaseq.why.sample import Sample

if TYPE_CHECKING:
    from spaseq.matching.sharing.member import Member


class Registered:
    """What computes a query's matches, and where it is among the events of its intake.

    ``output``: the stream that it makes by REGISTER STREAM; ``settled``: up to where that is complete.
    ``rank``: its place in the order of registration. ``reached``: how many of the intake's events it was
    given or passed over by; ``is_behind``: the matches that the time completes wait until others are looked
    for; ``is_over``: no event counts any more; ``is_closed``: its last window has ended.
    """

    def __init__(self, pipeline: Pipeline, handle: Handle, dictionary: Dictionary, rank: int) -> None:
        self.pipeline = pipeline
        self.handle: Handle | Crowd = handle
        self.rank = rank
        self.settled = BEGINNING
        self.is_closed = False
        self.reached = 0
        self.is_behind = False
        # Simultaneous events of different streams are processed in the order of the streams' IRIs.
        iris = sorted({declaration.iri.value for declaration in pipeline.query.streams})
        self.streams = {dictionary.pin(ox.NamedNode(iri)): rank for rank, iri in enumerate(iris)}
        self.output = dictionary.pin(pipeline.output) if pipeline.output is not None else None
        self.asks_for_last = pipeline.asks_for_last
        self._intake: Intake | None = None
        # What the intake had counted before the query came.
        self._start = self._late = 0
        self._counts: Counter[int] = Counter()
        self.is_over = pipeline.done
        #: What it is in a group that takes events which come alone for all of its members: see ``Pipeline``.
        self.member: Member | None = None
        # The intake's time when it was over: matches that it left are looked for later, and not beyond that.
        self._ended: int | None = None

    @property
    def intake(self) -> Intake:
        """Where its events come from."""
        assert self._intake is not None
        return self._intake

    @property
    def start(self) -> int:
        """How many of the intake's events came before it."""
        return self._start

    @property
    def attends(self) -> bool:
        """Whether every event is for it, even one that no GPM has a solution in."""
        return self.output is not None or self.pipeline.attends

    @property
    def is_sparse(self) -> bool:
        """Whether it may be given several events at once without those between them."""
        return not self.asks_for_last and self.pipeline.is_sparse

    def is_due(self, time: int) -> bool:
        """Whether it must be told that time comes to this with an event that is perhaps not for it."""
        return not self.takes_alone or self.pipeline.is_due(time)

    @property
    def takes_alone(self) -> bool:
        """Whether ``take_alone`` can be asked, and that is all."""
        if self.output is not None or not self.pipeline.takes_alone:
            return False
        return not (self.handle.is_behind or self.handle.is_over)

    def enter(self, intake: Intake, sample: Sample) -> None:
        """Takes its place: the intake's events are its own from now on, the first of them in ``sample``."""
        self._intake = intake
        self._start = self.reached = intake.position
        self._late, self._counts = intake.late, intake.counts.copy()
        self.pipeline.sit(self, sample)

    def saw(self, events: int) -> None:
        """It has had so many events, or more, though its intake had none."""
        self._start = min(self._start, self.intake.position - events)

    def gather(self) -> None:
        """Its first events are about to come: if it stands for several queries, they become one."""
        if isinstance(self.handle, Crowd) and (group := self.handle.gather()) is not None:
            before, self.pipeline = self.pipeline, group.pipeline
            self.pipeline.answers.is_warming = before.answers.is_warming
            if before.observation.sample is not None:
                self.pipeline.sit(self, before.observation.sample)
            self.handle.begin()

    def move(self, old: Intake, new: Intake) -> None:
        """Changes its place for one where everything to come is alike."""
        self._intake = new
        self._start += new.position - old.position
        self.reached = new.position
        self._late += new.late - old.late
        self._counts.update(new.counts)
        self._counts.subtract(old.counts)

    def process(self, batch: EventBatch, position: int) -> Iterator[MatchBatch]:
        """Takes events, the first of which is at a position of the intake's."""
        return self.pipeline.process(batch, position - self._start)

    def take_alone(
        self,
        at: Stamp,
        graph: int,
        terms: Sequence[int],
        position: int,
        unseen: Sequence[tuple[int, EventBatch]],
    ) -> Iterator[MatchBatch] | None:
        """Takes an event that came alone, behind those that it was not given; see ``Pipeline.take_alone``."""
        pipeline, start = self.pipeline, self._start
        before: list[MatchBatch] | None = None
        for place, last in unseen:
            # Each is done with before the next one comes.
            found = pipeline.take_one(last, place - start)
            if found is not None:
                before = [*(before or ()), *found]
        coming = pipeline.take_alone(at, graph, terms, position - start)
        return coming if before is None else chain(before, coming or ())

    def advance(self) -> Iterator[MatchBatch]:
        """Goes on to the intake's time, whatever that is when the matches are looked for.

        If the query is over by then, to what it was in the end: it has not seen the events since.
        """
        self.is_behind = True
        return self._advance()

    def _advance(self) -> Iterator[MatchBatch]:
        self.is_behind = False
        time = self._ended if self.is_over else self.intake.order.time
        if time is not None:
            yield from self.pipeline.advance(time)

    # --- what a pipeline asks of its seat -------------------------------------------------------

    def refresh(self, stats: Stats) -> None:
        """Brings counts up to date, as long as the query is not over."""
        if self.is_over or self._intake is None:
            return
        intake = self._intake
        stats.events = intake.position - self._start
        stats.late = intake.late - self._late
        stats.watermark = intake.order.time
        for name, streams in self.pipeline.patterns.streams.items():
            stats.gpms[name].events = (
                stats.events
                if streams is None
                else sum(intake.counts[stream] - self._counts[stream] for stream in streams)
            )

    def leave(self) -> None:
        """The query is over: nothing counts any more."""
        if not self.is_over:
            self._ended = self.intake.order.time
            self.is_over = True
            self.intake.leave()

    def sampled(self, sample: Sample) -> None:
        """Another sample of the events to come."""
        self.intake.samples(sample)

    def attend(self) -> None:
        """Every event is for it from now on."""
        self.member = None
        self.intake.attend(self)
