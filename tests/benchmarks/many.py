"""``many``: queries of one engine against one of them, from columns or N-Quads to batches that are read.

``begin alike``: ``A : B : C`` and the like, each with a C of its own, by the matcher that runs them.
``equal``: the same alert of all shares. ``template``: alerts that differ in share and numbers, five a share.
``share nothing``: alerts of all shares, of unlike windows and numbers. ``unlike``: each has predicates of its
own, so that an event concerns one of them.
"""

from __future__ import annotations

import gc
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from statistics import median
from typing import Final

import spaseq
from tests.benchmarks import many_queries as q
from tests.benchmarks.measure import Measurement, check

#: Where what a Handle and a Query are is allocated, and that alone.
_OF_HANDLES: Final = tuple(f"*/spaseq/engine/{name}.py" for name in ("handle", "on_demand", "turn"))
_OF_QUERIES: Final = ("*/spaseq/language/*",)

Made = Callable[[], spaseq.Source]


def _register(queries: Sequence[spaseq.Query | str]) -> tuple[float, spaseq.Engine, list[spaseq.Handle]]:
    """Seconds of processor time, and what was made in them."""
    engine = spaseq.Engine()
    begin = time.process_time()
    handles = [engine.register(query) for query in queries]
    return time.process_time() - begin, engine, handles


def _run(queries: Sequence[spaseq.Query], made: Made) -> tuple[float, list[int]]:
    """Seconds of processor time, and the matches of each query."""
    _, engine, handles = _register(queries)
    source = made()
    gc.collect()
    begin = time.process_time()
    engine.feed(source)
    engine.close()
    counts = []
    for handle in handles:
        batches = list(handle.batches())
        for batch in batches:
            batch.events, batch.bindings  # noqa: B018  # made when they are asked for
        counts.append(sum(map(len, batches)))
    return time.process_time() - begin, counts


def _against_one(
    case: str, queries: Sequence[spaseq.Query], made: Made, events: int, runs: int
) -> Measurement:
    """All queries against the first of them, in turn."""
    _run(queries[:1], made)  # compiles what is compiled
    _run(queries, made)
    pairs = []
    for _ in range(runs):
        one, alone = _run(queries[:1], made)
        all_, together = _run(queries, made)
        check(f"matches of the first of {len(queries)}", together[0], alone[0])
        pairs.append((all_ / one, all_))
    ratio, taken = median(ratio for ratio, _ in pairs), median(taken for _, taken in pairs)
    rates = {"events": events / taken, "matches": sum(together) / taken}
    return Measurement("many", f"{len(queries):,} {case}", ratio, "one query", rates)


def _cases(quick: bool) -> Iterator[Measurement]:
    """Sets of queries from columns and from bytes, by the reader that larger inputs have."""
    import spaseq.sources.scan.fast

    events, runs, count, several = (600, 1, 3, 20) if quick else (100_000, 3, 32, 1_000)
    shares = several // q.A_SHARE
    prices = q.drawn(events // 5, shares, ["price"])
    alerts = [spaseq.prepare(text) for text in q.alerts(several)]
    beginning = q.drawn(events, 100, q.third_and_third(count))
    own = [f"{kind}{i}" for kind in ("bought", "price") for i in range(count)]
    cases = [
        *((f"that begin alike, {name}", q.prefixed(name, count), beginning) for name in q.PREFIXES),
        ("equal", [q.anyone()] * count, prices),
        ("of a template", alerts, prices),
        ("that share nothing", q.apart(count), prices),
        (
            "unlike, one of which an event concerns",
            list(map(spaseq.prepare, q.unlike(count))),
            q.drawn(events, 100, own),
        ),
    ]
    for case, queries, drawn in cases:
        for form, made in (("columns", drawn.columns()), ("bytes", drawn.quads())):
            yield _against_one(f"{case}, from {form}", queries, made, len(drawn), runs)


def _registering(quick: bool) -> Iterator[Measurement]:
    """How long it takes until queries are there."""
    runs, several, count = (1, 20, 20) if quick else (3, 1_000, 10_000)
    texts = q.alerts(several)
    alerts = [spaseq.prepare(text) for text in texts]
    prepared = median(_register(alerts * (count // several))[0] for _ in range(runs))
    facts = {"seconds": prepared}
    yield Measurement("many", f"registering {count:,} prepared queries", None, "one form", {}, facts)
    taken = _register(texts * (count // several))[0]
    facts = {"seconds": taken}
    against = "the same, prepared"
    yield Measurement("many", f"registering {count:,} texts", taken / prepared, against, {}, facts)
    unlike = q.unlike(count)
    few = _register(unlike[: count // 5])[0]
    taken = _register(unlike)[0]
    facts = {"seconds": taken, "µs a query": taken / count * 1e6}
    against = "so many times as a fifth of them took"
    yield Measurement("many", f"registering {count:,} unlike texts", taken / few / 5, against, {}, facts)


def _memory(quick: bool) -> Measurement:
    """What a further query of a template holds, once events have come."""
    count = 20 if quick else 1_000
    source = q.drawn(200, 4 * count // q.A_SHARE, ["price"]).columns()

    def held(texts: Sequence[str]) -> tuple[int, int]:
        """Bytes in all, and those of neither Handles nor Queries. What Rust holds is not counted."""
        gc.collect()
        tracemalloc.start(2)
        _, engine, handles = _register(texts)
        engine.feed(source())
        gc.collect()
        found = tracemalloc.take_snapshot()
        tracemalloc.stop()
        # What is made by or for them: a dataclass, for one, is made anew by the standard library.
        apart = [tracemalloc.Filter(False, name, all_frames=True) for name in (*_OF_HANDLES, *_OF_QUERIES)]
        check("queries held", len(handles), len(texts))
        all_, engines = (sum(t.size for t in s.traces) for s in (found, found.filter_traces(apart)))
        return all_, engines - sum(map(sys.getsizeof, handles))

    texts = q.alerts(3 * count)
    _register(texts[:count])[1].feed(source())  # what is compiled, which takes long while memory is traced
    held(texts[:count])  # what is made once
    few, many = held(texts[:count]), held(texts)
    further, engine = ((b - a) / (2 * count) for a, b in zip(few, many, strict=True))
    facts = {"bytes with Handle and Query": further, "bytes of the engine": engine}
    return Measurement("many", "a further query of a template", None, "memory", {}, facts)


def _pushed(queries: Sequence[str], events: int) -> float:
    """The median of the seconds that a push takes, which concerns the first query."""
    engine = spaseq.Engine()
    for query in queries:
        engine.register(query, on_match=lambda _: None)
    taken = []
    for i in range(events):
        event = f"<urn:x> <urn:{('bought', 'price')[i % 2]}0> {i} ."
        begin = time.perf_counter()
        engine.push("urn:s", event, 3 * i)
        taken.append(time.perf_counter() - begin)
    return median(taken[events // 4 :])


def benchmark(quick: bool) -> Iterator[Measurement]:
    """Many against one; what it takes to register them, and what they hold."""
    yield from _cases(quick)
    yield _memory(quick)
    yield from _registering(quick)
    events, unlike = 120 if quick else 5_000, q.unlike(100)
    one, of_many = _pushed(unlike[:1], events), _pushed(unlike, events)
    facts = {"p50 µs": of_many * 1e6, "p50 µs of one": one * 1e6}
    yield Measurement(
        "many", "a push that concerns one of 100 queries", of_many / one, "one query", {}, facts
    )
