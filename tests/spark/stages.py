"""The two stages run by hand, without Spark: micro-batches, a shuffle, states as bytes."""

from __future__ import annotations

import json
import random
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyoxigraph as ox

import spaseq
from spaseq.automaton.pattern import SequencePattern
from spaseq.events import BatchBuilder, Clock, EventBatch
from spaseq.patterns.kb import KnowledgeBase
from spaseq.results.writers._json import line_of
from spaseq.sources import BadEvent
from spaseq.spark.background._background import Local, asked_once, tables, whole
from spaseq.spark.stages._bucket import Bucket, Changes, State
from spaseq.spark.stages._job import Job, looks_back, needs, pattern_of
from spaseq.spark.stages._late import late_among
from spaseq.spark.stages._stateless import Passed, Piece, Stateless
from spaseq.terms.dictionary import Dictionary
from tests.streams import NS, Letter

BEGINNING = -(1 << 63)


def comparable(lines: Iterable[str]) -> list[str]:
    """Lines of matches in a form that does not depend on their order, or on labels of blank nodes."""
    out = []
    for line in lines:
        line = re.sub(r'("type":"bnode","value":")\w+', r"\1b", line)
        match = json.loads(re.sub(r'"_:\w+"', '"_:b"', line))
        match["bindings"] = sorted(json.dumps(row, sort_keys=True) for row in match.get("bindings", ()))
        match["graph"] = sorted(re.sub(r"_:\w+", "_:", match.get("graph", "")).splitlines())
        out.append(json.dumps(match, sort_keys=True))
    return sorted(out)


def pushed(text: str, letters: Sequence[Letter], kb: Mapping[str, str] | None = None) -> list[str]:
    """What the embedded engine finds when the letters are pushed one by one."""
    engine = spaseq.Engine(kb)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", spaseq.SpaseqWarning)
        handle = engine.register(text)
        for letter in letters:
            engine.push(NS + letter.stream, letter.turtle, letter.time, name=f"{NS}{letter.name}")
        engine.close()
    return [line_of(match) for match in handle.matches()]


def ship(kb: KnowledgeBase, pattern: SequencePattern) -> bytes:
    """What a query needs of a knowledge base, as bytes."""
    graphs = asked_once(pattern)
    if graphs is None:
        return whole(kb)
    dictionary, visible = Dictionary(), kb.restrict(pattern.query.knowledge)
    return tables([visible.solutions(graph, dictionary) for graph in graphs], dictionary)


@dataclass(frozen=True)
class Cluster:
    """So many buckets; each micro-batch takes so many letters; ``cold``: states are read every time.

    ``seed`` decides in what order a bucket gets its chunks, and where batches are cut into chunks.
    """

    buckets: int = 2
    sizes: tuple[int, ...] = (3,)
    cold: bool = True
    seed: int = 0
    matcher: str | None = None

    def run(
        self,
        text: str,
        letters: Sequence[Letter],
        kb: Mapping[str, str] | None = None,
        late: list[BadEvent] | None = None,
        states: list[bytes] | None = None,
    ) -> list[str]:
        """The matches of the letters. What is late goes to ``late``; every state stored to ``states``."""
        rng = random.Random(self.seed)
        job, stage = self.made(text, letters, kb)
        buckets = {number: Bucket(job) for number in job.buckets}
        stored: dict[int, State] = {}
        found: list[str] = []
        watermark = BEGINNING
        waits = looks_back(pattern_of(text)) > 1
        newest: dict[str, int] = {stream.iri.value: BEGINNING for stream in pattern_of(text).query.streams}
        counts: dict[str, int] = {}
        for part in self._parts(letters):
            passed = [p for batch in _batches(stage, part, counts, rng) for p in _through(stage, batch)]
            pieces = [piece for one in passed for piece in one.pieces]
            for data in [one.over for one in passed if one.over is not None]:
                refused = late_among(data, watermark)
                assert late is not None or not refused
                if late is not None:
                    late += refused
            rng.shuffle(pieces)
            for number in job.buckets:
                if self.cold and number in stored:
                    buckets[number] = Bucket.from_state(stored[number], job)
                bucket = buckets[number]
                for piece in pieces:
                    if piece.bucket == number:
                        refused = bucket.add(piece.data, watermark)
                        assert late is not None or not refused
                        if late is not None:
                            late += refused
                before = bucket.reached
                lines = list(bucket.release(watermark))
                # Spark refuses an event time behind its watermark: see Job.has_event_time.
                assert waits or all(json.loads(line)["end"] >= before for line in lines)
                found += lines
                stored[number] = changed(stored.get(number), bucket.changes())
                if states is not None:
                    states.append(stored[number].packed({}))
            for letter in part:
                iri = NS + letter.stream
                newest[iri] = max(newest[iri], letter.time)
            watermark = min(newest.values())
        for number in job.buckets:
            bucket = Bucket.from_state(stored[number], job) if self.cold else buckets[number]
            found += bucket.close()
        return found

    def gone_on(self, text: str, first: Sequence[Letter], more: Sequence[Letter]) -> list[str]:
        """The matches of streams that ended, and of what came some day later."""
        rng = random.Random(self.seed)
        job, stage = self.made(text, [*first, *more], None)
        counts: dict[str, int] = {}
        found: list[str] = []
        stored: dict[int, State] = {}
        for letters in (first, more):
            passed = [p for batch in _batches(stage, letters, counts, rng) for p in _through(stage, batch)]
            for number in job.buckets:
                bucket = Bucket.from_state(stored[number], job) if number in stored else Bucket(job)
                for piece in (piece for one in passed for piece in one.pieces if piece.bucket == number):
                    assert not bucket.add(piece.data, BEGINNING)
                found += bucket.close()
                stored[number] = changed(stored.get(number), bucket.changes())
        return found

    def pieces(self, text: str, letters: Sequence[Letter]) -> list[Piece]:
        """What comes to the stateful stage."""
        _, stage = self.made(text, letters, None)
        rng = random.Random(self.seed)
        batches = _batches(stage, letters, {}, rng)
        return [piece for batch in batches for passed in _through(stage, batch) for piece in passed.pieces]

    def made(
        self, text: str, letters: Sequence[Letter], kb: Mapping[str, str] | None = None
    ) -> tuple[Job, Stateless]:
        """The job, and its stateless stage."""
        shipped = Local(ship(KnowledgeBase(kb or {}), pattern_of(text)))
        alone = needs(pattern_of(text)).one_group is not None
        numbers = tuple(range(1 if alone else self.buckets))
        start = min((letter.time for letter in letters), default=0)
        job = Job(text, Clock.TICKS, start, numbers, self.matcher, shipped, is_stream=True)
        return job, Stateless(job)

    def _parts(self, letters: Sequence[Letter]) -> Iterator[Sequence[Letter]]:
        at = 0
        for size in self.sizes:
            yield letters[at : at + size]
            at += size
        yield letters[at:]


def changed(state: State | None, changes: Changes) -> State:
    """What is stored after a step, as Spark's state store has it."""
    chunks = dict(state.chunks) if state is not None else {}
    for number in changes.dropped:
        del chunks[number]
    assert not chunks.keys() & changes.added.keys()
    return State(changes.head, chunks | changes.added)


def _batches(
    stage: Stateless, letters: Sequence[Letter], counts: dict[str, int], rng: random.Random
) -> Iterator[EventBatch]:
    """The letters of each stream, in batches of a few."""
    for stream in dict.fromkeys(letter.stream for letter in letters):
        builder = BatchBuilder(stage.dictionary, ox.NamedNode(NS + stream), Clock.TICKS)
        for letter in letters:
            if letter.stream == stream:
                n = counts.get(stream, 0)
                counts[stream] = n + 1
                quads = ox.parse(letter.turtle.encode(), format=ox.RdfFormat.TURTLE)
                name = ox.NamedNode(f"{NS}{letter.name}")
                builder.add(letter.time, n, [quad.triple for quad in quads], name)
                if rng.random() < 0.3:
                    yield builder.build()
        if len(builder):
            yield builder.build()


def _through(stage: Stateless, batch: EventBatch) -> Iterator[Passed]:
    for passed in stage.run([batch], []):
        assert not passed.letters
        yield passed
