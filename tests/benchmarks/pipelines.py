"""Whole runs, from bytes to matches: ``vshape-bytes``, ``window``, ``kleene``, ``kb`` and ``real``."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pyoxigraph as ox

import spaseq
from tests.benchmarks.measure import Measurement, check, seconds, side_by_side
from tests.benchmarks.realdata import ROOT, trade_streams
from tests.benchmarks.trades import (
    STREAM,
    E,
    higher,
    n_quads,
    next_higher,
    rising_and_falling,
    sinking,
    source,
    v_shape,
    v_shapes,
)

#: How long one window of ``window`` may take before the rest of its stream is left out, in seconds.
_PATIENCE = 15.0

#: The V shapes that ``streams/stocks-trades.rq`` finds in the real trades.
_REAL_MATCHES = 476
_REAL_EVENTS = 224_473

#: From the first real trade to the last.
_TRADING_SECONDS = 13 * 3600


#: How many events the reference matcher can be given.
_JUDGED = 120


def matches(query: str, data: bytes, **options: object) -> int:
    """How many matches a query has over N-Quads bytes."""
    found = spaseq.run(query, {STREAM: source(data)}, **options)  # type: ignore[arg-type]  # passed on
    return sum(1 for _ in found)


def vshape_bytes(quick: bool) -> Iterator[Measurement]:
    """N-Quads bytes to matches, beside pyoxigraph's parser alone over the same bytes."""
    events = 2_000 if quick else 60_000
    trades = rising_and_falling(events, companies=100, falls=0.004)
    for triples in (2, 6):
        data = n_quads(trades, triples)
        query = v_shape(triples)
        check("V shapes", matches(query, data), v_shapes(trades))

        def parse(data: bytes = data) -> None:
            for _ in ox.parse(data, format=ox.RdfFormat.N_QUADS):
                pass

        def run(query: str = query, data: bytes = data) -> None:
            matches(query, data)

        ours, theirs = side_by_side(1 if quick else 5, run, parse)
        quads = events * (triples + 1)
        yield Measurement(
            "vshape-bytes",
            f"{triples} triples",
            theirs / ours,
            "pyoxigraph.parse iterated",
            {"quads": quads / ours, "events": events / ours, "parsed quads": quads / theirs},
            {"matches": v_shapes(trades)},
        )


def window(quick: bool) -> Iterator[Measurement]:
    """``A ; B`` with ``?p2 > ?p1`` where nearly every event waits until its window ends."""
    sizes = (50, 200) if quick else (100, 1_000, 10_000, 100_000)
    small = sinking(500)
    for size in sizes[:2]:
        check("next higher", matches(next_higher(size), n_quads(small, 1)), higher(small, size))
    first = None
    for size in sizes:
        counted, taken = _with_full_window(size, 200 if quick else 100_000, 100 if quick else 5_000)
        rate = counted / taken
        first = first or rate
        yield Measurement(
            "window",
            f"{size} events",
            rate / first,
            "the smallest window's rate",
            {"events": rate},
            {"events counted": counted},
        )


def _with_full_window(size: int, events: int, chunk: int) -> tuple[int, float]:
    """So many events after the window was full, or fewer where patience ends, and their seconds.

    If it ends before the window is full, the last chunk's: too good, but bad enough.
    """
    engine = spaseq.Engine()
    handle = engine.register(next_higher(size))
    trades = sinking(size + events)
    counted, taken = 0, 0.0
    begin = time.perf_counter()
    for first in range(0, len(trades), chunk):
        part = trades[first : first + chunk]
        data = n_quads(part, 1, first)
        last = seconds(lambda d=data: engine.feed(source(d)))
        check("matches so far", sum(1 for _ in handle.matches()) > 0, True)
        if first >= size:
            counted, taken = counted + len(part), taken + last
        if time.perf_counter() - begin > _PATIENCE:
            break
    return (counted, taken) if counted else (len(part), last)


def kleene(quick: bool) -> Iterator[Measurement]:
    """``A op B+[op] op C`` over falls and rises, beside the reference matcher on a smaller stream."""
    events = 1_000 if quick else 20_000
    for op in (",", ";"):
        query = v_shape(2).replace("A , B+[,] , C", f"A {op} B+[{op}] {op} C")
        small = n_quads(rising_and_falling(_JUDGED, companies=5), 2)
        check(
            "the reference's matches",
            matches(query, small),
            found := matches(query, small, matcher="reference"),
        )
        reference = seconds(lambda q=query, s=small: matches(q, s, matcher="reference"))
        data = n_quads(rising_and_falling(events, companies=100), 2)
        (ours,) = side_by_side(1 if quick else 3, lambda q=query, d=data: matches(q, d))
        yield Measurement(
            "kleene",
            f"A {op} B+[{op}] {op} C",
            (events / ours) / (_JUDGED / reference),
            "the reference matcher",
            {"events": events / ours, "matches": matches(query, data) / ours},
            {"reference's matches": found},
        )


def kb(quick: bool) -> Iterator[Measurement]:
    """The same stream against background graphs of growing size: what an event costs.

    Reading, interning and indexing a graph, which is done once, is not in it.
    """
    sizes = (1_000, 10_000) if quick else (10_000, 100_000, 1_000_000)
    events, parts = (500, 3) if quick else (20_000, 11)
    # Every graph has the same companies of the stream, half of those that trade: only its rest grows.
    trades = rising_and_falling(events * parts, companies=400, falls=0.004)
    expected = v_shapes([trade for trade in trades if trade.company % 2])
    query = v_shape(2).replace(
        "?volume1 }", f"?volume1 . GRAPH <{E}kb> {{ ?c :sector ?sector ; :country ?country }} }}"
    )
    engines, handles, taken = {}, {}, {}
    for size in sizes:
        engines[size] = spaseq.Engine({f"{E}kb": _companies(size)})
        handles[size] = engines[size].register(query)
        taken[size] = []
    for part in range(parts):
        chunk = trades[part * events : (part + 1) * events]
        data = n_quads(chunk, 2, part * events)
        for size, engine in engines.items():
            taken[size].append(seconds(lambda e=engine, d=data: e.feed(source(d))))
    for size in sizes:
        engines[size].close()
        check("V shapes of known companies", sum(1 for _ in handles[size].matches()), expected)
    medians = {size: statistics.median(times[1:]) for size, times in taken.items()}  # the first one warms up
    for size in sizes:
        yield Measurement(
            "kb",
            f"{size} triples",
            medians[size] / medians[sizes[0]],
            f"the time with {sizes[0]} triples",
            {"events": events / medians[size]},
            {"matches": expected, "first seconds": taken[size][0]},
        )


def _companies(triples: int) -> str:
    """A background graph of companies, 200 of them those of the stream with an odd number."""
    ours = set(range(1, 400, 2))
    others = range(1_000, 1_000 + triples // 2 - len(ours))
    return "\n".join(
        f"<{E}company/{i}> <{E}sector> <{E}sector/{i % 40}> ; <{E}country> <{E}country/{i % 90}> ."
        for i in (*sorted(ours), *others)
    )


def real(quick: bool) -> Iterator[Measurement]:
    """The V shapes of a day of real trades, rows of CSV lifted by a JSON-LD context."""
    shared = Path(os.environ.get("SPASEQ_SHARED", ROOT.parent / "shared")) / "data"
    if quick or not (shared / "stock-inet-ticks").exists():
        why = "left out of a quick run" if quick else "left out: no reference data here"
        yield Measurement("real", "INET trades", None, why)
        return
    query = (ROOT / "streams" / "stocks-trades.rq").read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        streams = trade_streams(shared, Path(folder))
        found = 0

        def run() -> None:
            nonlocal found
            found = sum(1 for _ in spaseq.run(query, streams))

        (taken,) = side_by_side(3, run)
        check("V shapes", found, _REAL_MATCHES)
        yield Measurement(
            "real",
            "INET trades",
            _TRADING_SECONDS / taken,
            "the day's own speed",
            {"events": _REAL_EVENTS / taken},
            {"matches": found, "seconds": taken},
        )
