"""Who holds the buckets of a stream between its micro-batches.

Spark gives a bucket to any of its Python workers, mostly to another one than before, and a bucket is dear to
bring back from its state: the events of its window are matched anew. So buckets are held by *keepers*, a few
processes that all workers of a machine ask (``_keepers``), or by the worker itself where there are none.

A step brings what is new, and the token of the state that Spark has. A keeper that has the bucket of that
token goes on with it; otherwise it asks for the state.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Protocol

from spaseq.sources import BadEvent
from spaseq.spark.sinks._lines import FAILED, LATE, MATCH, SHED, letter_line
from spaseq.spark.stages._bucket import Bucket, Changes, State
from spaseq.spark.stages._job import Job

#: An answer: its kind and its line.
Answer = tuple[str, str]

#: So many characters of lines are handed on at once, about: more need not fit into memory.
BLOCK: Final = 1 << 20

#: A bucket that no step has come for is let go after so many seconds; its state is with Spark.
_IDLE: Final = 600.0


@dataclass(frozen=True, slots=True)
class Step:
    """What a bucket has to do in a micro-batch.

    ``query`` names the running query; ``token`` is that of the state, None if there is none yet. Chunks are
    taken, but for what is before the ``watermark``; the bucket moves there, or to the end if it ``is_over``.
    """

    query: str
    bucket: int
    token: str | None
    chunks: tuple[bytes, ...]
    watermark: int
    is_over: bool = False


@dataclass(frozen=True, slots=True)
class Done:
    """What a step has left: how the state has changed, under which token, and what the bucket waits for."""

    token: str
    changes: Changes
    held: int | None
    waits: bool


class Knows(Protocol):
    """Who asked for a step, and has what a keeper may lack."""

    def job(self) -> Job:
        """The job of the query."""
        ...

    def state(self) -> State:
        """The state of the bucket, which there is."""
        ...


@dataclass(slots=True)
class _Warm:
    token: str
    bucket: Bucket
    used: float


class Keeper:
    """The buckets of some queries, as they are."""

    def __init__(self) -> None:
        self._warm: dict[tuple[str, int], _Warm] = {}
        self._jobs: dict[str, Job] = {}

    def take(self, step: Step, asker: Knows) -> Iterator[list[Answer] | Done]:
        """Does a step: yields its answers, in blocks, and what it has left.

        A step that is not taken to its end leaves the bucket to its state.
        """
        now = time.monotonic()
        job = self._jobs.get(step.query)
        if job is None:
            job = self._jobs[step.query] = asker.job()
        bucket = self._bucket(step, job, asker)
        late = (letter for chunk in step.chunks for letter in bucket.add(chunk, step.watermark))
        yield from blocks((LATE, line) for line in _lines(job, late))
        found = bucket.close() if step.is_over else bucket.release(step.watermark)
        yield from blocks((MATCH, line) for line in found)
        if (given_up := bucket.given_up()) is not None:
            yield [(SHED, given_up)]
        if (failed := bucket.failed()) is not None:
            yield [(FAILED, failed)]
        done = Done(uuid.uuid4().hex, bucket.changes(), bucket.held, bucket.waits)
        if not step.is_over:  # otherwise what may come some day goes on with its state
            self._warm[step.query, step.bucket] = _Warm(done.token, bucket, now)
        self._forget(now)
        yield done

    def _bucket(self, step: Step, job: Job, asker: Knows) -> Bucket:
        warm = self._warm.pop((step.query, step.bucket), None)
        if step.token is None:
            return Bucket(job)
        if warm is not None and warm.token == step.token:
            return warm.bucket
        return Bucket.from_state(asker.state(), job)

    def _forget(self, now: float) -> None:
        idle = [place for place, warm in self._warm.items() if now - warm.used > _IDLE]
        for place in idle:
            del self._warm[place]
        for query in self._jobs.keys() - {query for query, _ in self._warm}:
            del self._jobs[query]


def blocks(answers: Iterable[Answer]) -> Iterator[list[Answer]]:
    """Answers in lists that are not too large."""
    block: list[Answer] = []
    size = 0
    for answer in answers:
        block.append(answer)
        size += len(answer[1])
        if size >= BLOCK:
            yield block
            block, size = [], 0
    if block:
        yield block


def _lines(job: Job, letters: Iterable[BadEvent]) -> Iterator[str]:
    return (letter_line(letter, job.topics) for letter in letters)
