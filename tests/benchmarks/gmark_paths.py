"""gMark's graphs and queries, beside Oxigraph.

They are asked for all their pairs, as published; those that repeat (``{,3}``), some of which Oxigraph does
not finish, from 100 nodes that an edge they can begin with leaves; and all of them from one such node, as a
program asks what is around something: by a text that was seen before, and by texts that never were, which
are read, compiled and bound to the graph each time.

All of them take some minutes; ``paths`` asks a few, the same each time.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Iterator
from itertools import count
from typing import Final

from tests.benchmarks.measure import Measurement, check
from tests.benchmarks.oxigraph import Both, Query, Times, both, seconds
from tests.conftest import SHARED
from tests.paths import gmark

#: So many of a graph's queries are a few.
FEW: Final = 30


def whole(quick: bool) -> Iterator[Measurement]:
    """All queries of both graphs."""
    yield from _measured("gmark", None, quick)


def some(quick: bool) -> Iterator[Measurement]:
    """A few of the queries of each graph."""
    yield from _measured("paths", FEW, quick)


def _measured(benchmark: str, number: int | None, quick: bool) -> Iterator[Measurement]:
    folder = SHARED / "gmark"
    if not folder.exists():
        return
    for scenario in ("test",) if quick else ("test", "social"):
        graph = both(gmark.triples(folder, scenario)[:: 20 if quick else 1])
        every = gmark.expressions(folder, scenario)
        chosen = every[::10] if quick else every
        if number is not None and number < len(chosen):
            chosen = random.Random(1).sample(chosen, number)
        which = f"{len(chosen)} of " if len(chosen) < len(every) else ""
        heading = f"gMark {scenario}, {which}{len(every)} queries"
        repeating = [text for text in chosen if "{" in text]
        for what, queries in (
            ("all pairs", [Query(text) for text in chosen if text not in repeating]),
            ("repeating, 100 sources", [Query(text, sources=100) for text in repeating]),
        ):
            if queries:
                times = [graph.timed(query) for query in queries]
                yield _summary(benchmark, f"{heading}: the {len(queries)} {what}", times)
        once = [graph.timed(Query(text, sources=1)) for text in chosen]
        yield _summary(benchmark, f"{heading}: 1 source", once)
        anew = [_never_seen(graph, text, times) for text, times in zip(chosen, once, strict=True)]
        yield _summary(benchmark, f"{heading}: 1 source, texts never seen before", anew)


def _summary(benchmark: str, case: str, times: list[Times]) -> Measurement:
    ratios, alone = sorted(one.ratio for one in times), sorted(one.alone for one in times)
    ours, theirs = sum(one.ours for one in times), sum(one.theirs for one in times)
    facts = {
        "least": ratios[0],
        "median": statistics.median(ratios),
        "most": ratios[-1],
        "below 10": float(sum(ratio < 10 for ratio in ratios)),
        "answering alone: least": alone[0],
        "median of it": statistics.median(alone),
        "ms each": 1_000 * ours / len(times),
    }
    rates = {"pairs": sum(one.pairs for one in times) / ours}
    return Measurement(benchmark, case, theirs / ours, "Oxigraph", rates, facts)


def _never_seen(graph: Both, text: str, seen: Times) -> Times:
    """The same from one source, and from a text that was never seen before."""
    ends = graph.ends(Query(text, sources=1))
    number = count()

    def anew() -> int:
        return graph.ours(Query(f"{text} # {next(number)}", sources=1), ends)

    ours, pairs = seconds(anew)
    check(text, pairs, seen.pairs)
    return Times(ours, ours, seen.theirs, seen.reading, pairs)
