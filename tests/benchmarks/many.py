"""``many``: queries of one engine, from N-Quads to matches, against one of them; all are read as batches.

Prices of shares; an alert is of one share that falls by so much after it was above a bound. ``equal``: the
same alert of all shares 32 times. ``template``: alerts that differ in share and numbers, five a share.
``unlike``: each query has predicates of its own, so that an event concerns one of them.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from io import BytesIO
from statistics import median

import spaseq
from tests.benchmarks.measure import Measurement, check

_TIME = "http://www.w3.org/ns/prov#generatedAtTime"
_INTEGER = "http://www.w3.org/2001/XMLSchema#integer"
_ALERT = """PREFIX : <urn:>
    SELECT * WITHIN 100 SECONDS SLIDING FROM STREAM S <urn:s> WHERE {{ SEQ(A ; B)
      DEFINE GPM A ON S {{ {share} :price ?bought . FILTER(?bought > {bound}) }}
      DEFINE GPM B ON S {{ {share} :price ?now . FILTER(?now < ?bought - {loss}) }} }}"""
_A_SHARE = 5
_UNLIKE = """PREFIX : <urn:>
    SELECT * WITHIN 10 SECONDS SLIDING FROM STREAM S <urn:s> WHERE {{ SEQ(A {operator} B)
      DEFINE GPM A ON S {{ ?x :bought{i} ?bought }}
      DEFINE GPM B ON S {{ ?x :price{i} ?now . FILTER(?now > ?bought + {i}) }} }}"""


def _texts(count: int) -> list[str]:
    return [
        _ALERT.format(share=f":s{i // _A_SHARE}", bound=60 + i % 30, loss=25 + i % 7) for i in range(count)
    ]


def _unlike(count: int) -> list[str]:
    return [_UNLIKE.format(operator=";:,"[i % 3], i=i) for i in range(count)]


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


def _prices(events: int, shares: int) -> bytes:
    rng = random.Random(5)
    lines = []
    for i in range(events):
        price, share = rng.randint(0, 100), rng.randrange(shares)
        lines.append(f'<urn:s{share}> <urn:price> "{price}"^^<{_INTEGER}> <urn:e{i}> .\n')
        lines.append(f'<urn:e{i}> <{_TIME}> "{i // 10}"^^<{_INTEGER}> .\n')
    return "".join(lines).encode()


def _register(queries: Sequence[spaseq.Query | str]) -> tuple[float, spaseq.Engine, list[spaseq.Handle]]:
    """Seconds of processor time, and what was made in them."""
    engine = spaseq.Engine()
    begin = time.process_time()
    handles = [engine.register(query) for query in queries]
    return time.process_time() - begin, engine, handles


def _run(queries: list[spaseq.Query], prices: bytes) -> tuple[float, list[int]]:
    """Seconds of processor time, and the matches of each query."""
    _, engine, handles = _register(queries)
    begin = time.process_time()
    engine.feed(spaseq.Source("urn:s", BytesIO(prices), spaseq.SourceOptions(format="nq")))
    engine.close()
    counts = []
    for handle in handles:
        batches = list(handle.batches())
        for batch in batches:
            batch.events, batch.bindings  # noqa: B018  # made when they are asked for
        counts.append(sum(map(len, batches)))
    return time.process_time() - begin, counts


def benchmark(quick: bool) -> Iterator[Measurement]:
    """Many of one form, against one."""
    events, runs = (500, 1) if quick else (20_000, 3)
    equal, several, registered = (3, 20, 20) if quick else (32, 1_000, 10_000)
    shares = several // _A_SHARE
    prices = _prices(events, shares)
    anyone = spaseq.prepare(_ALERT.format(share="?share", bound=80, loss=30))
    texts = _texts(several)
    alerts = [spaseq.prepare(text) for text in texts]
    cases = [("equal", [anyone] * equal), ("template", alerts)]
    for case, queries in cases:
        _run(queries[:1], prices)  # compiles what is compiled
        pairs = []
        for _ in range(runs):
            one, alone = _run(queries[:1], prices)
            all_, together = _run(queries, prices)
            check(f"matches of the first of {len(queries)}", together[0], alone[0])
            pairs.append((all_ / one, all_))
        ratio, taken = median(ratio for ratio, _ in pairs), median(taken for _, taken in pairs)
        yield Measurement(
            "many",
            f"{case} queries: {len(queries):,}",
            ratio,
            "one query",
            {"events": events / taken, "matches": sum(together) / taken},
        )
    prepared = median(_register(alerts * (registered // several))[0] for _ in range(runs))
    facts = {"seconds": prepared}
    yield Measurement("many", f"registering {registered:,} prepared queries", None, "one form", {}, facts)
    taken = _register(texts * (registered // several))[0]
    against = "the same, prepared"
    yield Measurement(
        "many", f"registering {registered:,} texts", taken / prepared, against, {}, {"seconds": taken}
    )
    unlike = _unlike(registered)
    few = _register(unlike[: registered // 5])[0]
    taken = _register(unlike)[0]
    facts = {"seconds": taken, "µs a query": taken / registered * 1e6}
    against = "so many times as a fifth of them took"
    yield Measurement("many", f"registering {registered:,} unlike texts", taken / few / 5, against, {}, facts)
    one = _pushed(unlike[:1], events // 4)
    of_many = _pushed(unlike[:100], events // 4)
    facts = {"p50 µs": of_many * 1e6, "p50 µs of one": one * 1e6}
    yield Measurement(
        "many", "a push that concerns one of 100 queries", of_many / one, "one query", {}, facts
    )
