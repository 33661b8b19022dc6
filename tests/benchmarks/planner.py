"""``planner``: whether each query gets the matcher that is fastest, matches read as batches.

The same events and query go to each matcher that can run it; those that interpret event by event are left
out, which are slower by far. What is read as batches has its events and its bindings made.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa

import spaseq
from tests.benchmarks.measure import Measurement, check

_MATCHERS: Final = ("kmp", "tecs", "lazy", "nfa")
_RISING: Final = {"B": "?b > ?a", "C": "?c > ?b"}
_CLOSE: Final = {"B": "?b > ?a && ?b < ?a + 20", "C": "?c > ?b && ?c < ?b + 20"}
_ALIKE: Final = (1, 1, 1, 7)
#: Every workload: sequence, what GPMs ask beside, a window in events, shares of A, B, C and others, events;
#: ``?k`` is one of so many keys, or none; two values an event; clauses.
_WORKLOADS: Final[dict[str, dict[str, Any]]] = {
    "A : B : C": {},
    "A : B : C, all kinds": {"shares": (1, 1, 1, 0), "window": 50},
    "A : B : C, 10 keys": {"keys": 10, "window": 300},
    "A : B : C, 1000 keys": {"keys": 1000, "window": 1000},
    "A : B : C PARTITION BY": {"keys": 10, "window": 300, "partition": "PARTITION BY ?k"},
    "A : B : C, two values an event": {"values": 2, "window": 50},
    "A : B, all kinds": {"seq": "A : B", "shares": (1, 1, 0, 0), "window": 100},
    "A : B+[:] : C": {"seq": "A : B+[:] : C", "window": 60},
    "(A : B) | (A : C)": {"seq": "(A : B) | (A : C)", "window": 200},
    **{
        f"A : B : C {emit}": {"clause": emit, "window": 200, "events": 3_000}
        for emit in ("EMIT MAX", "EMIT LAST", "EMIT NEXT", "CONSUME ANY")
    },
    "A : B : C rising": {"filters": _RISING, "window": 200},
    "A : B : C rising, window of 1000": {"filters": _RISING, "window": 1000, "events": 5_000},
    **{
        f"A : B : C close, {case}": {"filters": _CLOSE, "window": window, "shares": shares}
        for window in (100, 1000)
        for case, shares in {
            f"{window} events": (1, 1, 1, 0),
            f"{window} events, C rare": (100, 100, 1, 0),
            f"{window} events, B rare": (100, 1, 100, 0),
            f"{window} events, A rare": (1, 100, 100, 0),
        }.items()
    },
    "A : B rising": {"seq": "A : B", "filters": _RISING, "window": 200},
    "A : B+[:] : C rising": {"seq": "A : B+[:] : C", "filters": {"C": "?c > ?a"}, "window": 60},
    "A ; B ; C": {"seq": "A ; B ; C"},
    "A ; B ; C rising": {"seq": "A ; B ; C", "filters": _RISING},
    "A , B": {"seq": "A , B", "keys": 10},
    "A , B , C": {"seq": "A , B , C", "shares": (1, 1, 1, 0), "keys": 10},
    "A , B+[,] , C": {"seq": "A , B+[,] , C", "shares": (1, 2, 1, 0), "filters": {"C": "?c > ?a"}},
    "ALL(A, B, C)": {"seq": "ALL(A, B, C)", "filters": {"B": "?b > ?a"}, "window": 50},
}


def _query(
    seq: str = "A : B : C",
    filters: dict[str, str] | None = None,
    window: int = 100,
    keys: int = 0,
    partition: str = "",
    clause: str = "",
    **_: object,
) -> spaseq.Query:
    conditions = filters or {}
    gpms = " ".join(
        f'DEFINE GPM {name} ON S {{ ?e{name} <urn:kind> "{name}" ; <urn:v> ?{name.lower()} '
        f"{'; <urn:k> ?k' if keys else ''} . "
        f"{f'FILTER({conditions[name]})' if name in conditions else ''} }}"
        for name in "ABC"
        if name in seq.replace("ALL", "")
    )
    return spaseq.prepare(
        f"SELECT * WITHIN {window} EVENTS SLIDING {partition} FROM STREAM S <urn:s> "
        f"WHERE {{ SEQ({seq}) {gpms} }} {clause}"
    )


def _sources(
    shares: tuple[int, ...] = _ALIKE, events: int = 20_000, keys: int = 0, values: int = 1, **_: object
) -> list[spaseq.Source]:
    rng = np.random.default_rng(5)
    kinds = rng.choice(4, events, p=np.array(shares) / sum(shares))
    columns = {
        "at": np.arange(events),
        "kind": np.array(list("ABCD"))[kinds],
        "k": rng.integers(0, max(keys, 1), events),
        "v": rng.integers(0, 1_000, events),
        "w": rng.integers(0, 1_000, events),
    }
    template = f"<urn:{{at}}> <urn:kind> ?kind ; <urn:k> ?k ; <urn:v> ?v {', ?w' if values == 2 else ''} ."
    table = pa.table(columns)
    return [
        spaseq.Source("urn:s", spaseq.table(table.slice(begin, 4_096), time="at", template=template))
        for begin in range(0, events, 4_096)
    ]


def _seconds(name: str, matcher: str, share: int) -> tuple[float, int]:
    """Processor time from ready columns to batches that were read, and how many matches there are."""
    given = dict(_WORKLOADS[name])
    given["events"] = given.get("events", 20_000) // share
    engine = spaseq.Engine(matcher=matcher, limits=spaseq.Limits(pending_matches=None))
    handle = engine.register(_query(**given))
    count, begin = 0, time.process_time()
    for source in _sources(**given):
        engine.feed(source)
        for batch in handle.batches():
            count += len(batch)
            batch.events, batch.bindings  # noqa: B018  # made when they are asked for
    engine.finish()
    count += sum(map(len, handle.batches()))
    return time.process_time() - begin, count


def _able(name: str) -> Iterator[str]:
    """The matchers that can run a workload, their code compiled."""
    for matcher in _MATCHERS:
        try:
            _seconds(name, matcher, 20)
        except spaseq.EngineError:
            continue
        yield matcher


def benchmark(quick: bool) -> Iterator[Measurement]:
    """The least processor time of three runs each: what the planner chose against the best of all."""
    runs, share = (1, 20) if quick else (3, 1)
    for name, workload in list(_WORKLOADS.items())[: 2 if quick else None]:
        chosen = spaseq.explain(_query(**workload)).matcher
        taken: dict[str, float] = {}
        counts: dict[str, int] = {}
        for matcher in _able(name):
            found = [_seconds(name, matcher, share) for _ in range(runs)]
            taken[matcher], counts[matcher] = min(found)
            check(f"matches of {name} by {matcher}", counts[matcher], next(iter(counts.values())))
        facts = {f"{matcher} s": seconds for matcher, seconds in taken.items()}
        yield Measurement(
            "planner",
            f"{name}: {chosen}",
            taken[chosen] / min(taken.values()),
            "the fastest",
            {"matches": counts[chosen] / taken[chosen]},
            facts,
        )
