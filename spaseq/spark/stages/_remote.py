"""A query's matching apart from its graph patterns: a bucket's pipeline, and how it is restored.

The state of a pipeline is the events of the last windows, not its runs. A new pipeline is restored by
processing these events again. So the state is the same for every matcher, and survives changes of the
matchers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from spaseq.automaton.pattern import GpmPart
from spaseq.bounds import Bound
from spaseq.chunks import Chunk
from spaseq.engine.pipelines.patterns import Environment, Patterns
from spaseq.engine.pipelines.pipeline import Pipeline
from spaseq.events import EventBatch, Stamp
from spaseq.language.syntax import Consume, Query
from spaseq.matching.columns.blocks.found import Block
from spaseq.matching.host import Key, Matcher
from spaseq.patterns.evaluator import GpmEvaluator
from spaseq.patterns.kb import KnowledgeBase
from spaseq.patterns.sharing import ByEvent
from spaseq.patterns.spectra.solutions import Solutions
from spaseq.results.batch import MatchBatch
from spaseq.terms.dictionary import Dictionary


class _Given(GpmEvaluator):
    """A GPM with solutions from another process; only EXISTS is evaluated here."""

    now: Solutions

    def evaluate(self, batch: EventBatch) -> Solutions:
        del batch
        return self.now

    def by_event(self, batch: EventBatch) -> ByEvent:
        return self.evaluate(batch).by_event()


@dataclass(frozen=True, slots=True)
class PipelineProgress:
    """How far a pipeline has come, apart from its events.

    ``position``: how many events it has seen. ``left``: how many rows LIMIT leaves, None without LIMIT.
    ``drops``: per partition, the number of events before its last CONSUME. ``cuts``: from where partitions
    may continue after AFTER MATCH SKIP (``Cuts.state``).
    """

    position: int = 0
    left: int | None = None
    done: bool = False
    drops: Mapping[Key, int] | None = None
    cuts: Sequence[Any] = ()


class RemotePipeline:
    """A ``pipeline`` that gets its events as chunks, together with their solutions."""

    def __init__(
        self,
        query: Query,
        dictionary: Dictionary,
        kb: KnowledgeBase,
        matcher: str | None,
        start: int | None,
        bound: Bound | None = None,
    ) -> None:
        if query.consume is Consume.ANY and matcher != "reference":
            # What CONSUME has dropped must be dropped again in ``replay``, and only a Matcher can be told so.
            matcher = "interpreter"
        self._given: dict[str, _Given] = {}

        def give(part: GpmPart) -> _Given:
            self._given[part.name] = _Given(part.gpm, part.stateless, dictionary, kb)
            return self._given[part.name]

        make_patterns = partial(Patterns, make=give)
        of = Environment(dictionary, kb)
        self.pipeline = Pipeline(query, of, matcher, start, bound, make_patterns=make_patterns)
        self.pipeline.read, self.pipeline.watcher = self._read, self
        if query.skip is not None:
            self.pipeline.answers.outlive()
        self._replaying = False
        self._told: int | None = None
        self._shown = 0
        self._drops: dict[Key, int] = {}

    def progress(self, since: int) -> PipelineProgress:
        """Return how far the pipeline has come; events before ``since`` are not kept."""
        pipeline, cuts = self.pipeline, self.pipeline.answers.cuts
        places = () if cuts is None else cuts.state(since)
        return PipelineProgress(pipeline.position, pipeline.left, pipeline.done, dict(self._drops), places)

    def take(self, chunk: Chunk) -> Iterator[MatchBatch]:
        """Process a chunk, which is in processing order."""
        for name, gpm in self._given.items():
            gpm.now = chunk.solutions[name]
        return self.pipeline.process(chunk.batch)

    def saw(self, stamp: Stamp) -> None:
        """See ``Watcher.saw``."""
        del stamp
        self._shown = self.pipeline.position

    def consumed(self, key: Key) -> None:
        """See ``Watcher.consumed``. Remember after which event partial matches were dropped."""
        self._drops[key] = self._shown

    def replay(self, chunk: Chunk | None, progress: PipelineProgress, reached: int, told: int | None) -> None:
        """Restore the progress of another pipeline in this new one, from the last events that it saw.

        ``reached`` is the time to which the other pipeline had advanced. Matches that end before ``told``
        were delivered when the streams ended, if they ever did, even if they might have waited for more.
        """
        pipeline, self._replaying, self._told = self.pipeline, True, told
        pipeline.answers.warm(progress.cuts)
        count = 0 if chunk is None else len(chunk.batch)
        pipeline.position = self._shown = progress.position - count
        drops = {key: at for key, at in (progress.drops or {}).items() if at > pipeline.position}
        if chunk is not None:
            cuts = sorted({at - pipeline.position for at in drops.values()} - {count})
            for begin, end in pairwise([0, *cuts, count]):
                for _ in self.take(chunk.take(np.arange(begin, end))):
                    pass
                self._drop(drops)
        for _ in pipeline.advance(reached):
            pass
        self._drop(drops)
        self._drops, self._shown = drops, pipeline.position
        pipeline.answers.resume(progress.left)
        pipeline.done = progress.done
        self._replaying = False

    def _drop(self, drops: Mapping[Key, int]) -> None:
        matcher = self.pipeline.matcher
        if isinstance(matcher, Matcher):
            for key, at in drops.items():
                if at == self.pipeline.position:
                    matcher.drop(key)

    def _read(self, found: Iterable[Block]) -> Iterator[MatchBatch]:
        if self._replaying:
            for _ in found:
                pass
            return
        if self._told is not None:
            found = _ending_from(self._told, found)
        yield from self.pipeline.answers.read(found)


def _ending_from(time: int, found: Iterable[Block]) -> Iterator[Block]:
    """Yield the matches that end at that time or later."""
    for block in found:
        is_new = block.spans()[1] >= time
        edges = np.flatnonzero(np.diff(is_new)) + 1
        for begin, end in pairwise([0, *edges.tolist(), len(block)]):
            if end > begin and is_new[begin]:
                yield block.part(begin, end)
