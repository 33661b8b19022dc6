"""``sharp-many``: queries that begin alike and keep one bound together, against each alone with its part.

Half of them end with a C, half with a D, each with a condition of its own; in work units, so that every run
gives the same figures. A unit is an event, a partial match that one is shown or becomes, and a match.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import numpy as np
import numpy.typing as npt
import pyoxigraph as ox

import spaseq
from spaseq.bounds import WorkClock
from spaseq.errors import SpaseqWarning
from spaseq.results.batch import MatchBatch
from tests.benchmarks.measure import Measurement, check

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Event = tuple[list[ox.Triple], int]

_STREAM: Final = "http://example.org/s"
_WINDOW: Final = 100
_BLOCK: Final = 64
_SHARE: Final = 0.5
#: The first part of the events is not in the latencies: nothing is learned yet.
_WARM: Final = 0.25


@dataclass(frozen=True, slots=True)
class _Ran:
    """What queries found, a number for each match, and say of their recall; an event's units by block."""

    matches: list[Ints]
    recalls: list[float]
    units: Floats


def benchmark(quick: bool) -> Iterator[Measurement]:
    """By both matchers that share under a bound, few queries and many."""
    events = _events(600 if quick else 3_000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SpaseqWarning)  # which say that shedding begins and ends
        for matcher in ("nfa", "lazy"):
            for count in (2,) if quick else (8, 32):
                yield _measured(matcher, [_query(i) for i in range(count)], events)


def _measured(matcher: str, queries: Sequence[str], events: Sequence[Event]) -> Measurement:
    count = len(queries)
    whole = _run(matcher, queries, events, None)
    bound = _SHARE * float(_warm(whole.units).mean())
    shared = _run(matcher, queries, events, bound)
    alone = [_run(matcher, [query], events, bound / count) for query in queries]
    for own, every in zip(shared.matches, whole.matches, strict=True):
        check("precision", len(np.setdiff1d(own, every)), 0)
    recalls = [len(own) / len(every) for own, every in zip(shared.matches, whole.matches, strict=True)]
    each = _warm(shared.units) / bound
    total = sum(map(len, whole.matches))
    facts = {
        "recall": sum(map(len, shared.matches)) / total,
        "recall, each alone": sum(len(ran.matches[0]) for ran in alone) / total,
        "mean / bound": float(each.mean()),
        "p99 / bound": float(np.quantile(each, 0.99)),
        "said too much": float(np.mean(np.array(shared.recalls) - recalls)),
        "off": float(np.mean(np.abs(np.array(shared.recalls) - recalls))),
        "bound, units": bound,
        "alone, units": float(sum(_warm(ran.units).mean() for ran in alone)),
    }
    return Measurement("sharp-many", f"{count} queries, {matcher}, half of the work", None, "", facts=facts)


def _query(number: int) -> str:
    last = f"D ON S {{ ?d :d ?w . FILTER(?w > ?x + {300 + 5 * number}) }}"
    if number % 2:
        last = f"C ON S {{ ?c :c ?z . FILTER(?z + {500 + 10 * number} < ?x + ?y) }}"
    return f"""PREFIX : <http://example.org/> SELECT ?x WITHIN {_WINDOW} EVENTS SLIDING
      FROM STREAM S <{_STREAM}> WHERE {{ SEQ(A : B : {last[0]}) DEFINE GPM A ON S {{ ?a :a ?x }}
        DEFINE GPM B ON S {{ ?b :b ?y . FILTER(?y > ?x) }} DEFINE GPM {last} }}"""


def _events(count: int) -> list[Event]:
    rng = random.Random(1)
    predicates = [ox.NamedNode(f"http://example.org/{name}") for name in "aabbcd"]
    return [
        ([ox.Triple(ox.NamedNode(f"urn:{i}"), rng.choice(predicates), ox.Literal(rng.randrange(1_000)))], i)
        for i in range(count)
    ]


def _run(matcher: str, queries: Sequence[str], events: Sequence[Event], bound: float | None) -> _Ran:
    """``bound``: units of an event; None: all the time in the world."""
    clock = WorkClock()
    latency = timedelta(microseconds=1e12 if bound is None else bound)
    engine = spaseq.Engine(matcher=matcher, latency=latency, clock=clock)
    handles = [engine.register(query) for query in queries]
    batches: list[list[MatchBatch]] = [[] for _ in handles]
    units = []
    for at in range(0, len(events), _BLOCK):
        before = clock.units
        engine.push_many(_STREAM, events[at : at + _BLOCK])
        for handle, of in zip(handles, batches, strict=True):
            of += handle.batches()
        units.append((clock.units - before) / len(events[at : at + _BLOCK]))
    engine.close()
    matches = [
        np.unique(np.concatenate([_numbers(batch, len(events)) for batch in [*of, *handle.batches()]]))
        for handle, of in zip(handles, batches, strict=True)
    ]
    sheds = [handle.stats.shed for handle in handles]
    return _Ran(matches, [1.0 if shed is None else shed.recall or 0.0 for shed in sheds], np.array(units))


def _numbers(batch: MatchBatch, count: int) -> Ints:
    """A number for each match, of three events."""
    a, b, c = (batch.events[name].n.astype(np.int64) for name in batch.events)
    return (a * count + b) * count + c


def _warm(units: Floats) -> Floats:
    return units[int(_WARM * len(units)) :]
