"""The stateless stage: Spark's rows → events → solutions of all GPMs → chunks for the buckets.

Events without a solution go no further, unless their place in the stream counts (see ``_job.needs``). An
event of several partitions goes to the bucket of each, with the solutions that belong there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, TypeVar

import numpy as np

from spaseq.chunks import Chunk, Mask, decode, encode, events_of, hashed
from spaseq.events import Clock, EventBatch, Ids, batch_of, concatenate
from spaseq.language.scope import mentioned
from spaseq.language.syntax import Graph
from spaseq.patterns.evaluator import GpmEvaluator, IllTyped, Where
from spaseq.patterns.kb import KnowledgeBase
from spaseq.patterns.sharing import Sharing
from spaseq.patterns.spectra.solutions import Solutions
from spaseq.sources import BadEvent
from spaseq.spark._workers import sweep
from spaseq.spark.background._background import besides, receive
from spaseq.spark.stages._job import Job, undeclared
from spaseq.spark.stages._late import stamps
from spaseq.terms.dictionary import UNBOUND, Dictionary
from spaseq.terms.values import NO_NUMBER

#: By a function's IRI: the number of failed calls, and the warning of the first one.
Failed = dict[Hashable, tuple[int, str]]

#: How many events go through the GPMs at once, if there are enough.
_TOGETHER: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class Piece:
    """A chunk for a bucket, and its first time."""

    bucket: int
    begin: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Passed:
    """What the stage has made of some events: their number, largest time, chunks, and dead letters.

    ``over``: the stamps of the events in no chunk, by stream, see ``_passed_over``. ``warnings``: by stream
    and predicate, see ``IllTyped``. ``failed``: failed calls of the user's functions. ``matched``: if the job
    is ``counted``, the number of events and of solutions of each GPM.
    """

    events: int
    newest: int | None
    pieces: list[Piece]
    letters: list[BadEvent]
    over: bytes | None = None
    warnings: Mapping[Where, str] = field(default_factory=dict)
    failed: Failed = field(default_factory=dict)
    matched: Mapping[str, tuple[int, int]] = field(default_factory=dict)


class Stateless:
    """The stage for one job, in one process."""

    def __init__(self, job: Job) -> None:
        pattern = job.pattern
        self._job = job
        self._needs = job.needs
        self._keys = tuple(variable.name for variable in pattern.query.partition)
        self._buckets = np.array(job.buckets, dtype=np.int64)
        self.dictionary = Dictionary()
        self.dictionary.table()
        self._ill_typed = IllTyped(self.dictionary)
        self._failed = FailedCalls(self.dictionary)
        self._background = background_of(job, self.dictionary)
        self._compared = {
            name: [v for v in part.variables if any(v in mentioned(f.condition) for f in part.correlated)]
            for name, part in pattern.gpms.items()
        }
        self._gpms = evaluators(job, self.dictionary, self._background)

    def run(self, batches: Iterable[EventBatch], letters: list[BadEvent]) -> Iterator[Passed]:
        """Process batches of events; ``letters`` are the dead letters found while they were read."""
        self._ill_typed = IllTyped(self.dictionary)
        for waiting, bad in together(batches, self._job, letters):
            yield self._passed(waiting, bad)

    def on_found(self, body: bytes, found: Mapping[Graph, Solutions]) -> Passed:
        """Process the events of a chunk; ``found``: the solutions of GRAPH patterns that were joined for
        it.
        """
        # New evaluators for each chunk, because an evaluator keeps its solutions of the background.
        self._gpms = evaluators(self._job, self.dictionary, besides(self._background, found, self.dictionary))
        return self._passed([decode(body, self.dictionary).batch], [])

    def _passed(self, waiting: Sequence[EventBatch], letters: list[BadEvent]) -> Passed:
        if not waiting:
            return Passed(0, None, [], letters)
        batch = concatenate(waiting)
        left = np.ones(len(batch), dtype=np.bool_)
        solutions = {name: gpm.evaluate(batch) for name, gpm in self._gpms.items()}
        pieces = list(self._pieces(batch, solutions, left))
        over = stamps(batch, np.flatnonzero(left)) if self._job.is_stream and left.any() else None
        warnings = self._ill_typed.found(batch) if self.dictionary.ill_typed else {}
        queried = self._job.pattern.queried if self._job.counted else ()
        matched = {n: (len(np.unique(events_of(solutions[n]))), len(solutions[n])) for n in queried}
        failed = self._failed.since()
        passed = Passed(len(batch), int(batch.time.max()), pieces, letters, over, warnings, failed, matched)
        sweep(self.dictionary)
        return passed

    def _pieces(self, batch: EventBatch, solutions: Mapping[str, Solutions], left: Mask) -> Iterator[Piece]:
        """Yield chunks of the wanted events, and clear these events in ``left``."""
        for name, found in solutions.items():
            self._look_at(found, self._compared[name])
        if not self._needs.triples:
            batch = _without_triples(batch)
        for number, tables in self._by_bucket(solutions):
            chunk = Chunk(batch, tables)
            events = self._wanted(chunk)
            if len(events) < len(batch):
                chunk = chunk.take(events)
            if len(events):
                # An event in several buckets is reported as late by the first.
                again = np.flatnonzero(~left[events])
                left[events] = False
                data = encode(chunk, with_triples=self._needs.triples, again=again)
                yield Piece(int(self._buckets[number]), int(chunk.batch.time.min()), data)

    def _look_at(self, solutions: Solutions, compared: Iterable[str]) -> None:
        """Read the values that filters between GPMs will compare, so that ill-typed ones are noted here."""
        for variable in compared:
            ids = solutions.column(variable)
            _, ranks = self.dictionary.numbers(ids)
            for identifier in np.unique(ids[(ranks == NO_NUMBER) & (ids != UNBOUND)]).tolist():
                self.dictionary.value(identifier)

    def _wanted(self, chunk: Chunk) -> Ids:
        if self._needs.all_events:
            return np.arange(len(chunk.batch))
        wanted = np.zeros(len(chunk.batch), dtype=np.bool_)
        for table in chunk.solutions.values():
            wanted[events_of(table)] = True
        return np.flatnonzero(wanted)

    def _by_bucket(self, solutions: Mapping[str, Solutions]) -> Iterator[tuple[int, Mapping[str, Solutions]]]:
        """Return the solutions that belong to each bucket; in one group, all of them."""
        if self._needs.one_group is not None:
            yield 0, solutions
            return
        takes = _Takes()
        numbers = {name: takes.once(self._numbers, table, self._keys) for name, table in solutions.items()}
        for number in np.unique(np.concatenate(list(numbers.values()))).tolist():
            if number >= 0:
                yield number, takes.part(solutions, numbers, number)

    def _numbers(self, table: Solutions) -> Ids:
        """Return the bucket of each row, by the values of the partition variables; -1 if one is unbound."""
        columns = [table.column(key) for key in self._keys]
        complete = np.logical_and.reduce([column != 0 for column in columns])
        codes = hashed(self.dictionary, columns)
        numbers = (codes.view(np.uint64) >> np.uint64(7)) % np.uint64(len(self._buckets))
        return np.where(complete, numbers.astype(np.int64), -1)


def together(
    batches: Iterable[EventBatch], job: Job, letters: list[BadEvent]
) -> Iterator[tuple[list[EventBatch], list[BadEvent]]]:
    """Yield batches of events joined to a size that is worth a step, with the dead letters of each step.

    ``letters``: those found while events were read; the list is emptied at each step. Also refused are events
    on another clock than the query's, of undeclared streams, or not conforming to the shapes.
    """
    declared = {stream.iri.value for stream in job.query.streams}
    waiting: list[EventBatch] = []
    for batch in batches:
        if len(batch) and batch.clock is not job.clock:
            letters += _on_another_clock(batch, job.clock)
        elif len(batch):
            batch = conforming(_of_streams(batch, declared, letters), job.shapes, letters)
        if len(batch) and batch.clock is job.clock:
            waiting.append(batch)
        if sum(map(len, waiting)) >= _TOGETHER:
            yield waiting, letters.copy()
            waiting = []
            letters.clear()
    if waiting or letters:
        yield waiting, letters.copy()


class _Takes:
    """Selections of rows, each made once for all GPMs that have the same arrays."""

    def __init__(self) -> None:
        self._known: dict[object, Ids] = {}
        # References keep the arrays alive, so that no other array gets their ``id``.
        self._held: list[object] = []

    def once(self, make: Callable[[Solutions], Ids], table: Solutions, keys: Iterable[str]) -> Ids:
        columns = [table.columns.get(key) for key in keys]
        return self._once((id(table.event), *map(id, columns)), lambda: make(table), table, columns)

    def part(
        self, solutions: Mapping[str, Solutions], numbers: Mapping[str, Ids], number: int
    ) -> Mapping[str, Solutions]:
        """Return the rows of a bucket: those of its keys, and rows without a whole key in the same events."""
        rows = {}
        for name, own in numbers.items():
            rows[name] = self._once((id(own), number), partial(_equal, own, number), own)
        if any((own < 0).any() for own in numbers.values()):
            here = np.unique(np.concatenate([events_of(solutions[n])[rows[n]] for n in solutions]))
            for name, own in numbers.items():
                loose = (own < 0) & np.isin(events_of(solutions[name]), here)
                rows[name] = np.flatnonzero((own == number) | loose)
        return {name: self._take(table, rows[name]) for name, table in solutions.items()}

    def _take(self, table: Solutions, rows: Ids) -> Solutions:
        def taken(array: Ids) -> Ids:
            return self._once((id(array), id(rows), "take"), lambda: array[rows], array, rows)

        columns = {name: taken(column) for name, column in table.columns.items()}
        return Solutions(len(rows), taken(events_of(table)), columns)

    def _once(self, key: object, make: Callable[[], Ids], *held: object) -> Ids:
        if key not in self._known:
            self._known[key] = make()
            self._held += held
        return self._known[key]


def _equal(numbers: Ids, number: int) -> Ids:
    return np.flatnonzero(numbers == number)


def _without_triples(batch: EventBatch) -> EventBatch:
    none = np.zeros(0, dtype=np.int64)
    of_events = batch.stream, batch.graph, batch.time, batch.n, np.zeros(len(batch) + 1, dtype=np.int64)
    return batch_of(batch.dictionary, batch.clock, of_events, (none, none, none))


def _of_streams(batch: EventBatch, declared: set[str], letters: list[BadEvent]) -> EventBatch:
    """Return the events of declared streams; the others are malformed."""
    names = {stream: batch.dictionary.term(stream).value for stream in np.unique(batch.stream).tolist()}
    others = [stream for stream, name in names.items() if name not in declared]
    if not others:
        return batch
    from spaseq.sources.assembly.sink import letter_of

    mine = ~np.isin(batch.stream, others)
    for index in np.flatnonzero(~mine).tolist():
        reason = undeclared(names[int(batch.stream[index])], declared)
        letters.append(letter_of(batch, index, reason))
    return batch.take(np.flatnonzero(mine))


def conforming(batch: EventBatch, shapes: str, letters: list[BadEvent]) -> EventBatch:
    """Return the events that conform to the shapes, if there are any shapes."""
    if not shapes:
        return batch
    from spaseq.patterns.shapes import shapes_of
    from spaseq.sources.assembly.sink import letter_of

    problems = shapes_of(shapes).problems(batch)
    letters += (letter_of(batch, index, problem) for index, problem in problems.items())
    return batch.take(np.setdiff1d(np.arange(len(batch)), [*problems])) if problems else batch


def _on_another_clock(batch: EventBatch, clock: Clock) -> Iterator[BadEvent]:
    from spaseq.sources.assembly.sink import letter_of

    reason = f"its time is in {batch.clock}, but the query's first event was in {clock}"
    return (letter_of(batch, index, reason) for index in range(len(batch)))


class FailedCalls:
    """Counts the failed calls of a dictionary's functions since it was last asked; shows no warnings."""

    def __init__(self, dictionary: Dictionary) -> None:
        self._dictionary = dictionary
        self._told: Counter[str] = Counter()
        self._warnings: list[str] = []
        dictionary.warn = self._warnings.append

    def since(self) -> Failed:
        """Return the failed calls since the last call."""
        failed = self._dictionary.failed_calls
        if failed == self._told:
            return {}
        new, self._told = failed - self._told, failed.copy()
        first = {iri: next((w for w in self._warnings if w.startswith(f"<{iri}>")), "") for iri in new}
        self._warnings.clear()
        return {iri: (count, first[iri]) for iri, count in new.items()}


# --- one for each process ---------------------------------------------------------------------


def background_of(job: Job, dictionary: Dictionary) -> KnowledgeBase:
    """Return the knowledge base of a job, for one of its stages."""
    if job.kb is None:
        return KnowledgeBase({})
    return receive(job.kb.value, job.pattern, dictionary)


def evaluators(job: Job, dictionary: Dictionary, background: KnowledgeBase) -> dict[str, GpmEvaluator]:
    """Return the GPMs of a job by name, evaluated on this background."""
    sharing = Sharing()
    return {
        name: GpmEvaluator(
            part.gpm,
            part.stateless,
            dictionary,
            background,
            frozenset(dictionary.pin(stream) for stream in part.streams),
            sharing,
        )
        for name, part in job.pattern.gpms.items()
    }


_Stage = TypeVar("_Stage")

_stages: dict[tuple[object, Job], Any] = {}


def stage_of(job: Job, make: Callable[[Job], _Stage]) -> _Stage:
    """Return the stage of a job, made once in each process, so that terms are known from batch to batch."""
    key = make, replace(job, kb=None)
    if key not in _stages:
        if len(_stages) >= 4:
            _stages.pop(next(iter(_stages)))
        _stages[key] = make(job)
    stage: _Stage = _stages[key]
    return stage
