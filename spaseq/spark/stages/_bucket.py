"""The stateful stage of one bucket: chunks in, in any order; lines of matches out, up to the watermark.

A bucket keeps the chunks as they arrived. Its *state* is a few numbers, and the chunks with events that are
not processed yet or may still be part of a match. Chunks are numbered, so that a step stores only the chunks
that it adds to the state, and the numbers of those it removes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

import numpy as np
from pyoxigraph import Quad, RdfFormat, Triple, parse

from spaseq.automaton.pattern import SequencePattern
from spaseq.bounds import Shed, latency_given
from spaseq.chunks import (
    Chunk,
    ChunkExtent,
    decode,
    encode,
    extent,
    join,
    pack,
    require,
    unpack,
    unpack_header,
    unpacking,
)
from spaseq.engine.durable.horizon import keeps
from spaseq.errors import EngineError, warn
from spaseq.events import Clock
from spaseq.language.syntax import Consume, Query
from spaseq.matching.host import Key
from spaseq.matching.model import StreamWindow, stream_window
from spaseq.matching.planner import under_bound
from spaseq.patterns.kb import KnowledgeBase
from spaseq.results.batch import MatchBatch
from spaseq.results.writers._base import Cache
from spaseq.results.writers._json import lines_of
from spaseq.sources import BadEvent
from spaseq.spark._workers import sweep
from spaseq.spark.sinks._lines import FAILED, SHED
from spaseq.spark.stages._job import BucketBound, Job, looks_back, refused
from spaseq.spark.stages._late import late_letters
from spaseq.spark.stages._remote import PipelineProgress, RemotePipeline
from spaseq.spark.stages._stateless import FailedCalls, background_of, evaluators
from spaseq.terms.dictionary import Dictionary, Term
from spaseq.why.replay import LIMITS
from spaseq.why.trace import RunTrace, TracedRuns, trace_of

#: Later than every event.
_END: Final = 1 << 63


@dataclass(slots=True)
class _Kept:
    """A chunk: its bytes, extent and number, and the decoded chunk, if it was needed."""

    data: bytes
    extent: ChunkExtent
    number: int
    chunk: Chunk | None = None


@dataclass(frozen=True, slots=True)
class State:
    """What is stored of a bucket: a head, and its chunks by their numbers."""

    head: bytes
    chunks: Mapping[int, bytes]

    def packed(self, beside: Mapping[str, object]) -> bytes:
        """Return the state as one piece of bytes, with the plain values ``beside``."""
        sizes = [(number, len(data)) for number, data in self.chunks.items()]
        parts = {"head": self.head, "chunks": b"".join(self.chunks.values())}
        arrays = {name: np.frombuffer(part, dtype=np.uint8) for name, part in parts.items()}
        return pack({"sizes": sizes, **beside}, arrays)

    @classmethod
    def unpacked(cls, data: bytes) -> tuple[State, dict[str, Any]]:
        """Return the state that ``packed`` wrote, and the values beside it.

        Raises EngineError if another version packed it, or if it is damaged.
        """
        header, arrays = unpack(data)
        with unpacking():
            chunks, at = arrays["chunks"].tobytes(), 0
            found = {}
            for number, size in header["sizes"]:
                found[number] = chunks[at : at + size]
                at += size
            require(at == len(chunks), "the size of its chunks")
            return cls(arrays["head"].tobytes(), found), header


@dataclass(frozen=True, slots=True)
class Changes:
    """How a stored state changes: a new head, added chunks, and the numbers of removed chunks."""

    head: bytes
    added: Mapping[int, bytes]
    dropped: Sequence[int]


class Bucket:
    """A bucket of a job. Only EXISTS reads its background graphs."""

    def __init__(self, job: Job) -> None:
        pattern = job.pattern
        self._job = job
        self._query: Query = job.query
        self._needs = job.needs
        self._window: StreamWindow = stream_window(
            self._query.window, job.clock is Clock.TICKS, job.start or 0
        )
        self._back = looks_back(pattern)
        self._keeps_all = keeps_all(pattern) is not None
        self._dictionary = Dictionary()
        self._failed = FailedCalls(self._dictionary)
        self._written = Cache()
        iris = sorted({stream.iri for stream in self._query.streams}, key=lambda iri: iri.value)
        self._streams = {self._dictionary.pin(iri): rank for rank, iri in enumerate(iris)}
        kb = background_of(job, self._dictionary) if self._needs.triples else KnowledgeBase({})
        self._kb = kb
        bound = None if job.bound is None else job.bound.fresh()
        self._remote = RemotePipeline(self._query, self._dictionary, kb, job.matcher, job.start, bound)
        self._pipeline = self._remote.pipeline
        self._given_up = GivenUp()
        self._kept: list[_Kept] = []
        self._count = 0
        # The chunks that are stored, by their numbers.
        self._stored: set[int] = set()
        #: The earliest time of future events; everything before it was processed.
        self.reached = -_END
        # Since the streams ended the last time: matches that ended before were delivered.
        self._told = -_END
        self._is_closed = False

    @property
    def held(self) -> int | None:
        """The time of the first event that was not processed yet, or a lower bound of it."""
        begins = [max(k.extent.begin, self.reached) for k in self._kept if k.extent.last >= self.reached]
        return min(begins, default=None)

    @property
    def waits(self) -> bool:
        """Whether matches may still result without more events."""
        return bool(self._kept) and not self._pipeline.done and not self._is_closed

    def add(self, data: bytes, watermark: int) -> list[BadEvent]:
        """Add a chunk. Its events before ``watermark`` are late: left out, and returned by one bucket.

        If the streams had ended before, events before that end are late, too.
        """
        watermark = max(watermark, self._told)
        said = extent(data)
        if said.begin >= watermark:
            self._keep(data, said)
            return []
        chunk = decode(data, self._dictionary)
        late = np.flatnonzero(chunk.batch.time < watermark)
        pattern = self._job.pattern
        again = set(said.again)
        told = [index for index in late.tolist() if index not in again]
        letters = list(late_letters(pattern, chunk, told, watermark))
        if len(late) < len(chunk.batch):
            rest = chunk.take(np.flatnonzero(chunk.batch.time >= watermark))
            data = encode(rest, with_triples=self._needs.triples)
            self._keep(data, extent(data), rest)
        return letters

    def _keep(self, data: bytes, said: ChunkExtent, chunk: Chunk | None = None) -> None:
        self._kept.append(_Kept(data, said, self._count, chunk))
        self._count += 1

    def release(self, watermark: int) -> Iterator[str]:
        """Process the events before ``watermark``; yield the matches that they complete."""
        if watermark <= self.reached:
            return
        due = self._between(self.reached, watermark)
        self.reached = watermark
        if due is not None and not self._pipeline.done:
            yield from self._lines(self._remote.take(due))
        yield from self._lines(self._pipeline.advance(watermark))
        self._forget()

    def close(self) -> Iterator[str]:
        """Process the rest, and end every window: all streams have ended.

        If more events come in a later run, the bucket of its state continues, and does not repeat matches.
        """
        due = self._between(self.reached, _END)
        if due is not None:
            self.reached = int(due.batch.time.max()) + 1
            if not self._pipeline.done:
                yield from self._lines(self._remote.take(due))
        yield from self._lines(self._pipeline.close())
        self._told = self.reached
        self._is_closed = True
        self._forget()

    def trace(self) -> RunTrace:
        """Count from now on what becomes of partial matches; the job's matcher must be ``interpreter``."""
        pipeline = self._pipeline
        trace, context = trace_of(pipeline.pattern), pipeline.context
        context.budget.limits = LIMITS
        pipeline.matchers = lambda window: lambda: TracedRuns(trace, pipeline.pattern, context, window)
        return trace

    def notices(self) -> Iterator[tuple[str, str]]:
        """Yield, by kind, what was shed since the last call, and which calls of functions failed."""
        self._pipeline.count()
        if (shed := self._given_up.since(self._pipeline.stats.shed)) is not None:
            yield SHED, shed
        if failed := self._failed.since():
            yield FAILED, json.dumps(failed)

    def _lines(self, batches: Iterable[MatchBatch]) -> Iterator[str]:
        for batch in batches:
            yield from str(lines_of(batch, self._written), "utf-8").split("\n")[:-1]

    def _between(self, begin: int, end: int) -> Chunk | None:
        """Return the events of a range of time, in processing order."""
        chunks = []
        for kept in self._kept:
            if kept.extent.last < begin or kept.extent.begin >= end:
                continue
            if kept.chunk is None:
                kept.chunk = decode(kept.data, self._dictionary)
            chunk = kept.chunk
            if kept.extent.begin < begin or kept.extent.last >= end:
                time = chunk.batch.time
                chunk = chunk.take(np.flatnonzero((begin <= time) & (time < end)))
            if kept.extent.last < end:
                kept.chunk = None
            if len(chunk.batch):
                chunks.append(chunk)
        return join(chunks, self._streams) if chunks else None

    def _forget(self) -> None:
        """Drop the chunks that no later match can need, and the terms of these chunks."""
        if self._pipeline.done:
            self._kept.clear()
        elif self._window.counted and not self._keeps_all:
            self._forget_counted()
        else:
            horizon = self._horizon()
            self._kept = [kept for kept in self._kept if kept.extent.last >= horizon]
        sweep(self._dictionary)

    def _horizon(self) -> int:
        """Return the time of the first event that may still matter."""
        if self._keeps_all or self._window.counted:
            return -_END
        if self._window.sliding:
            return self.reached - self._back * self._window.size
        return self._window.begins(self.reached)

    def _forget_counted(self) -> None:
        """Drop the processed chunks that are too old for any window that counts events.

        Chunks overlap in time: a chunk is older than all chunks that begin after its end.
        """
        processed = [kept for kept in self._kept if kept.extent.last < self.reached]
        begins = np.sort([kept.extent.begin for kept in processed])
        sizes = np.array([kept.extent.events for kept in sorted(processed, key=lambda k: k.extent.begin)])
        newer = np.append(np.cumsum(sizes[::-1])[::-1], 0)
        enough = self._back * self._window.size

        def matters(kept: _Kept) -> bool:
            last = kept.extent.last
            return last >= self.reached or newer[np.searchsorted(begins, last, side="right")] < enough

        self._kept = list(filter(matters, self._kept))

    # --- state --------------------------------------------------------------------------------

    def changes(self) -> Changes:
        """Return what must be stored since the last call, or since the state from which the bucket was
        made.
        """
        here = {kept.number: kept.data for kept in self._kept}
        added = {number: data for number, data in here.items() if number not in self._stored}
        dropped = sorted(self._stored - here.keys())
        self._stored = set(here)
        return Changes(self._head(), added, dropped)

    def state(self) -> State:
        """Return the whole state."""
        return State(self._head(), {kept.number: kept.data for kept in self._kept})

    def _head(self) -> bytes:
        # Where all events are shown again, there is nothing to skip.
        progress = self._remote.progress(_END if self._keeps_all else self._horizon())
        term = self._dictionary.term
        header = {
            "job": self._job.identity,
            "reached": self.reached,
            "told": self._told,
            "position": progress.position,
            "left": progress.left,
            "done": progress.done,
            "cuts": progress.cuts,
            "drops": [[[str(term(i)) for i in key], at] for key, at in (progress.drops or {}).items()],
            "count": self._count,
            "events": sum(kept.extent.events for kept in self._kept),
            "partial_matches": self._pipeline.partial_matches(self.reached) if self._kept else 0,
        }
        return pack(header, {})

    @classmethod
    def from_state(cls, state: State, job: Job) -> Bucket:
        """Restore a bucket from a state. Raises EngineError for a state of another job or version."""
        bucket = cls(job)
        header = unpack_header(state.head)
        if (reason := refused(header["job"], job.identity)) is not None:
            raise EngineError(reason)
        bucket._restore(header, state.chunks)
        return bucket

    def _restore(self, header: dict[str, Any], chunks: Mapping[int, bytes]) -> None:
        self._kept = [_Kept(data, extent(data), number) for number, data in sorted(chunks.items())]
        self._count = header["count"]
        self._stored = set(chunks)
        self.reached, self._told = header["reached"], header["told"]
        if header["job"]["graphs"] != self._job.graphs:
            self._ask_anew()
        drops = {self._key(texts): position for texts, position in header["drops"]}
        progress = PipelineProgress(header["position"], header["left"], header["done"], drops, header["cuts"])
        past = None if progress.done else self._between(self._horizon(), self.reached)
        told = None if self._told == -_END else self._told
        self._remote.replay(past, progress, self.reached, told)
        for _ in self.notices():  # earlier micro-batches have reported them
            pass

    def _ask_anew(self) -> None:
        """Replace all chunks, after evaluating their events on the current background graphs."""
        gpms = evaluators(self._job, self._dictionary, self._kb)
        before, self._kept = self._kept, []
        for kept in before:
            batch = decode(kept.data, self._dictionary).batch
            chunk = Chunk(batch, {name: gpm.evaluate(batch) for name, gpm in gpms.items()})
            data = encode(chunk, with_triples=True)
            self._keep(data, extent(data), chunk)

    def _key(self, texts: Iterable[str]) -> Key:
        quads = parse("".join(f"<x:x> <x:x> {text} .\n" for text in texts), format=RdfFormat.N_TRIPLES)
        return tuple(self._dictionary.intern(term) for term in map(_object, quads))


def _object(quad: Quad) -> Term:
    assert not isinstance(quad.object, Triple)  # keys are terms of RDF 1.1
    return quad.object


def keeps_all(pattern: SequencePattern) -> str | None:
    """Why a bucket needs all events to be brought back: those before AFTER MATCH SKIP count; None if not."""
    return None if pattern.query.skip is None else keeps(pattern.query)


# --- bounds --------------------------------------------------------------------------------------


def bound_of(
    pattern: SequencePattern, latency: timedelta | None, memory: int | None, matcher: str | None
) -> BucketBound | None:
    """Return the bound that a query's buckets keep by shedding, or None; warn if they cannot keep it.

    Raises EngineError for an invalid bound, and for a matcher that cannot shed.
    """
    if latency is None and memory is None:
        return None
    bound = BucketBound(None if latency is None else latency_given(latency), memory)
    bound.fresh()  # which checks the memory
    if pattern.query.consume is Consume.ANY:
        # What CONSUME dropped must be dropped again when a bucket is restored (``_remote``).
        warn("on Spark, a query with CONSUME ANY runs without a bound: drop it, or use the embedded engine")
        return None
    how = under_bound(pattern, matcher)
    if not how.is_kept:
        warn(f"the query {how.reason}")
    return bound if how.sheds else None


@dataclass(slots=True)
class GivenUp:
    """What a matcher has shed since the last call."""

    partial_matches: int = 0
    doubtful: int = 0

    def since(self, shed: Shed | None) -> str | None:
        """Return a line for what was shed since the last call; None if nothing was.

        ``recall`` is an estimate over everything that the matcher has seen (see ``Shed``).
        """
        if shed is None:
            return None
        gone, doubtful = shed.partial_matches - self.partial_matches, shed.doubtful - self.doubtful
        self.partial_matches, self.doubtful = shed.partial_matches, shed.doubtful
        if not gone and not doubtful:
            return None
        return json.dumps({"partial_matches": gone, "doubtful": doubtful, "recall": shed.recall})
