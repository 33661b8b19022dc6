"""``w1``: sequences of ``:`` over ten kinds of events, from ready-made columns (CORE's first workload).

Without enumeration, what counts is that neither the window nor the length of the pattern matters much; with
it, how many matches a second come out as arrays of event positions.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from statistics import median

import numpy as np
import numpy.typing as npt

from spaseq.automaton.normal import normalise
from spaseq.automaton.pattern import SequencePattern
from spaseq.events import Clock, EventBatch
from spaseq.language.reading.parser import parse
from spaseq.matching.context import Context
from spaseq.matching.model import StreamWindow
from spaseq.matching.tecs.matcher import TecsMatcher
from spaseq.patterns.spectra.solutions import Solutions
from spaseq.terms.dictionary import Dictionary
from tests.benchmarks.measure import Measurement

Ids = npt.NDArray[np.int64]
Batch = tuple[EventBatch, int, dict[str, Solutions]]

_KINDS = 10
_BATCH = 65_536
_KEYS = 100_000


def _pattern(steps: int, keyed: bool) -> SequencePattern:
    names = "ABCDEFGHI"[:steps]
    gpms = " ".join(
        f"DEFINE GPM {name} ON S {{ [] :v{name} ?v{name} {'; :k ?k' if keyed else ''} }}" for name in names
    )
    return normalise(
        parse(
            "PREFIX : <http://example.org/> SELECT * WITHIN 1 EVENTS SLIDING "
            f"{'PARTITION BY ?k' if keyed else ''} FROM STREAM S <http://example.org/s> "
            f"WHERE {{ SEQ({' : '.join(names)}) {gpms} }}"
        )
    )


def _batches(dictionary: Dictionary, steps: int, count: int, keyed: bool) -> list[Batch]:
    """Events of ten kinds, as many of each; those of the first kinds are what the GPMs look for."""
    rng = np.random.default_rng(3)
    none, found = np.zeros(0, dtype=np.int64), []
    for start in range(0, count, _BATCH):
        size = min(_BATCH, count - start)
        kinds, keys = rng.integers(0, _KINDS, size), rng.integers(1, _KEYS + 1, size)
        at, zeros = np.arange(start, start + size), np.zeros(size, dtype=np.int64)
        offset = np.zeros(size + 1, dtype=np.int64)
        batch = EventBatch(dictionary, Clock.TICKS, zeros, zeros, at, at, offset, none, none, none)
        solutions = {}
        for kind, name in enumerate("ABCDEFGHI"[:steps]):
            events = np.flatnonzero(kinds == kind)
            columns = {f"v{name}": np.ones(len(events), dtype=np.int64)}
            if keyed:
                columns["k"] = keys[events]
            solutions[name] = Solutions(len(events), events, columns)
        found.append((batch, start, solutions))
    return found


def _update(steps: int, window: int, count: int, runs: int, keyed: bool = False) -> float:
    """Events a second, without enumeration; the first batch warms up."""
    rates = []
    for _ in range(runs):
        dictionary = Dictionary()
        batches = _batches(dictionary, steps, count, keyed)
        pattern = _pattern(steps, keyed)
        context = Context(pattern, dictionary, lambda *_: False)
        matcher = TecsMatcher(pattern, dictionary, context, StreamWindow(window, True, True, 0))
        matcher.update(*batches[0])
        begin = time.process_time()
        for batch in batches[1:]:
            matcher.update(*batch)
        rates.append((count - _BATCH) / (time.process_time() - begin))
    return median(rates)


def _enumerate(window: int, count: int, runs: int) -> float:
    """Matches a second, as arrays."""
    rates = []
    for _ in range(runs):
        dictionary = Dictionary()
        batches = _batches(dictionary, 3, count, False)
        pattern = _pattern(3, False)
        context = Context(pattern, dictionary, lambda *_: False)
        matcher = TecsMatcher(pattern, dictionary, context, StreamWindow(window, True, True, 0))
        matcher.update(*batches[0])
        begin, found = time.process_time(), 0
        for batch in batches[1:]:
            found += sum(len(offsets) - 1 for _, _, offsets in matcher.arrays(*batch))
        rates.append(found / (time.process_time() - begin))
    return median(rates)


def benchmark(quick: bool) -> Iterator[Measurement]:
    """Windows from 100 to 100,000 events, three steps and nine, partitions, enumeration."""
    count, runs = (200_000, 1) if quick else (3_000_000, 3)
    first = 0.0
    for window in (100, 1_000, 10_000, 100_000):
        rate = _update(3, window, count, runs)
        first = first or rate
        yield Measurement("w1", f"A : B : C, {window} events", rate / first, "100 events", {"events": rate})
    for window in (100, 100_000):
        rate = _update(9, window, count, runs)
        yield Measurement("w1", f"nine steps, {window} events", rate / first, "three", {"events": rate})
    for window in (10_000, 1_000_000):
        rate = _update(3, window, count, runs, keyed=True)
        yield Measurement("w1", f"{_KEYS} keys, {window} events", rate / first, "no keys", {"events": rate})
    rate = _enumerate(1_000, 200_000 if quick else 400_000, runs)
    yield Measurement("w1", "all matches as arrays, 1000 events", None, "", {"matches": rate})
