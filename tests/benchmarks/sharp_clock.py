"""``sharp-clock``: best effort under a bound by the clock, as an application has it, which pushes triples.

One sequence with conditions between all of its elements, by ``nfa`` and by ``lazy``, of which many or few
matches come: with many, giving them out is most of the work, with few it is trying what comes to nothing.
The bound is a share of what an event takes without one. What is measured, by the engine, too, is the
processor time of this thread, so that other processes matter as little as they can, for a block of events
pushed together, and its matches as batches: with making events of triples and reading, which no bound is of.

And bounds of 5, 20 and 50 ms, in windows wide enough that an event would take about twice that or more, by
``nfa``: what matches there are is counted, as finding them would take too long.
"""

from __future__ import annotations

import random
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import numpy as np
import numpy.typing as npt
import pyoxigraph as ox

import spaseq
from spaseq.bounds import Policy
from spaseq.errors import SpaseqWarning
from spaseq.results.batch import MatchBatch
from tests.benchmarks.measure import Measurement, check

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Event = tuple[list[ox.Triple], int]

_STREAM: Final = "http://example.org/s"
_QUERY: Final = """PREFIX : <http://example.org/> SELECT ?x ?y ?z WITHIN {window} EVENTS SLIDING
  FROM STREAM S <http://example.org/s> WHERE {{ SEQ(A : B : C)
    DEFINE GPM A ON S {{ ?a :a ?x }}
    DEFINE GPM B ON S {{ ?b :b ?y . FILTER(?y > ?x + {least}) }}
    DEFINE GPM C ON S {{ ?c :c ?z . FILTER(?z + ?x > ?y + {above}) }} }}"""
#: Conditions of which many matches come, or few, of what ``nfa`` tries: one of 11, and of 90.
_CASES: Final = {"many": {"least": 700, "above": 100}, "few": {"least": 300, "above": 600}}
#: Latencies are means over so many events, which are pushed together.
_BLOCK: Final = 64
#: Numbers are from 0 to this.
_MOST: Final = 1_000
#: Windows of 16,000 hold more partial matches than there may be as a rule.
_LIMITS: Final = spaseq.Limits(partial_matches=None, query_bytes=None)
#: From so many windows on it is measured.
_WARM: Final = 1.5
#: Milliseconds, a window in which an event of the case ``few`` takes more, and how many blocks are measured.
_BOUNDS: Final = ((5, 6_000, 100), (20, 10_000, 40), (50, 16_000, 24))
#: While that window fills, few events are the last ones of matches, or else it would take too long; so many
#: blocks afterwards, of which a third is, are not measured.
_SELDOM: Final = 0.03
_RUSH: Final = 10


@dataclass(frozen=True, slots=True)
class _Ran:
    """Matches, a number each; milliseconds of an event in each block; what the query says of its recall."""

    matches: Ints
    each: Floats
    recall: float | None


def benchmark(quick: bool) -> Iterator[Measurement]:
    """Both matchers, at half and at a tenth, by Sharp and by lots; then bounds of milliseconds."""
    window, counts = (200, (1_024, 1_024)) if quick else (2_000, (12_032, 16_000))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SpaseqWarning)  # which say that shedding begins and ends
        for (case, limits), count in zip(_CASES.items(), counts, strict=True):
            query = _QUERY.format(window=window, **limits)
            yield from _measured(f"{case} matches, window {window}", query, window, _pushed(_stream(count)))
        for bound, wide, blocks in ((1, 600, 4),) if quick else _BOUNDS:
            yield _held(bound, wide, blocks)


def _measured(name: str, query: str, window: int, events: list[Event]) -> Iterator[Measurement]:
    for matcher in ("nfa", "lazy"):
        _run(matcher, query, events[: 4 * _BLOCK], 1.0)  # compiles what is compiled
        whole = _run(matcher, query, events)
        mean = float(_warm(whole, window).mean())
        for share in (0.5, 0.1):
            for policy in (Policy.RANDOM_STATE, Policy.SHARP):
                ran = _run(matcher, query, events, share * mean, policy)
                check("precision", len(np.setdiff1d(ran.matches, whole.matches)), 0)
                each = _warm(ran, window) / (share * mean)
                facts = {
                    "recall": len(ran.matches) / len(whole.matches),
                    "mean / bound": float(each.mean()),
                    "p99 / bound": float(np.quantile(each, 0.99)),
                    "bound, µs": 1e3 * share * mean,
                    "matches": float(len(whole.matches)),
                }
                if ran.recall is not None:
                    facts["recall said"] = ran.recall
                case = f"{name}, {matcher}, {share:.0%} of the latency, {policy}"
                yield Measurement("sharp-clock", case, None, "", facts=facts)


def _held(bound: int, window: int, blocks: int) -> Measurement:
    """A bound of so many milliseconds."""
    limits = _CASES["few"]
    query = _QUERY.format(window=window, **limits)
    stream = _stream(window + (_RUSH + blocks) * _BLOCK, seldom=window)
    _run("nfa", query, _pushed(stream[: 4 * _BLOCK]), 1.0)  # compiles what is compiled
    ran = _run("nfa", query, _pushed(stream), bound)
    check("precision", len(ran.matches) - _right(ran.matches, stream, window, **limits), 0)
    each = ran.each[window // _BLOCK + _RUSH :] / bound
    facts = {
        "recall": len(ran.matches) / _count(stream, window, **limits),
        "mean / bound": float(each.mean()),
        "p99 / bound": float(np.quantile(each, 0.99)),
        "blocks": float(len(each)),
    }
    if ran.recall is not None:
        facts["recall said"] = ran.recall
    case = f"few matches, window {window}, kernel, {bound} ms, {Policy.SHARP}"
    return Measurement("sharp-clock", case, None, "", facts=facts)


def _right(matches: Ints, stream: Ints, window: int, least: int, above: int) -> int:
    """How many of some matches are matches."""
    ab, c = np.divmod(matches, len(stream))
    a, b = np.divmod(ab, len(stream))
    (is_a, x), (is_b, y), (is_c, z) = (stream[at].T for at in (a, b, c))
    kinds = (is_a == 0) & (is_b == 1) & (is_c == 2)
    fits = (a < b) & (b < c) & (c - a <= window) & (y > x + least) & (z + x > y + above)
    return int(np.count_nonzero(kinds & fits))


def _count(stream: Ints, window: int, least: int, above: int) -> int:
    """How many matches there are: pairs of an A and a B count by how much more the B has."""
    pairs: Ints = np.zeros(_MOST + 1, dtype=np.int64)
    found = 0
    for i, (kind, value) in enumerate(stream.tolist()):
        gone = i - window - 1
        if gone >= 0 and stream[gone, 0] == 0:
            after = stream[gone + 1 : i]
            pairs -= _by_more(after[after[:, 0] == 1, 1] - stream[gone, 1], least)
        if kind == 1:
            before = stream[max(0, gone + 1) : i]
            pairs += _by_more(value - before[before[:, 0] == 0, 1], least)
        elif kind == 2:
            found += int(pairs[: max(0, value - above)].sum())
    return found


def _by_more(more: Ints, least: int) -> Ints:
    return np.bincount(more[more > least], minlength=_MOST + 1)


def _stream(count: int, seldom: int = 0) -> Ints:
    """Of so many events, whether it is an A, a B or a C, and its number. Of the first ones few are C."""
    rng = random.Random(1)
    return np.array(
        [
            (2 if i < seldom and rng.random() < _SELDOM else rng.randint(0, 1 if i < seldom else 2),
             rng.randint(0, _MOST))
            for i in range(count)
        ]
    )  # fmt: skip


def _pushed(stream: Ints) -> list[Event]:
    predicates = [ox.NamedNode(f"http://example.org/{name}") for name in "abc"]
    return [
        ([ox.Triple(ox.NamedNode(f"urn:{i}"), predicates[kind], ox.Literal(value))], i)
        for i, (kind, value) in enumerate(stream.tolist())
    ]


def _run(
    matcher: str,
    query: str,
    events: list[Event],
    bound: float | None = None,
    policy: Policy = Policy.SHARP,
) -> _Ran:
    """``bound``: milliseconds for an event."""
    latency = None if bound is None else timedelta(milliseconds=bound)
    engine = spaseq.Engine(
        matcher=matcher, latency=latency, policy=policy, clock=time.thread_time, limits=_LIMITS
    )
    handle = engine.register(query)
    each: list[float] = []
    batches: list[MatchBatch] = []
    for at in range(0, len(events), _BLOCK):
        begin = time.thread_time()
        engine.push_many(_STREAM, events[at : at + _BLOCK])
        batches += handle.batches()
        each.append(1e3 * (time.thread_time() - begin) / _BLOCK)
    engine.close()
    batches += handle.batches()
    numbers = [np.zeros(0, dtype=np.int64), *(_numbers(batch, len(events)) for batch in batches)]
    shed = handle.stats.shed
    return _Ran(np.unique(np.concatenate(numbers)), np.array(each), None if shed is None else shed.recall)


def _numbers(batch: MatchBatch, count: int) -> Ints:
    """A number for each match, of three events."""
    a, b, c = (batch.events[name].n.astype(np.int64) for name in "ABC")
    return (a * count + b) * count + c


def _warm(ran: _Ran, window: int) -> Floats:
    return ran.each[int(_WARM * window) // _BLOCK :]
