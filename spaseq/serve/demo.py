"""The five samples as repeated live streams in accelerated time: ``spaseq serve --demo``."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Final

import pyoxigraph as ox

from spaseq.engine import AsyncEngine, Engine
from spaseq.patterns.kb import KnowledgeBase
from spaseq.samples import USE_CASES, UseCase, use_case
from spaseq.samples._write import turtle

#: Seconds for one pass through each sample, with a few hundred matches.
PASS: Final = 90.0

#: Seconds between two groups of events.
_TICK: Final = 0.1

#: Where in a pass an invalid event, and a late event, are sent, as in real streams.
_BROKEN: Final = 0.08
_LATE: Final = 0.12
_BROKEN_TRADE: Final = '<urn:trade:broken> <https://schema.org/price> "84.03 .'  # no closing quotation mark


@dataclass(frozen=True, slots=True)
class Due:
    """An event of a sample: when it is due in a pass (from 0 up to 1), and what is pushed then.

    ``period``: by how much its time is later in each further pass.
    """

    at: float
    stream: str
    graph: Sequence[ox.Triple] | str
    time: datetime
    name: str | None
    period: timedelta


def cases() -> tuple[UseCase, ...]:
    """Return the samples."""
    return tuple(map(use_case, USE_CASES))


def queries(samples: Sequence[UseCase]) -> dict[str, str]:
    """Return the queries of samples, by name."""
    return {name: text for sample in samples for name, text in sample.queries.items()}


def knowledge(samples: Sequence[UseCase]) -> KnowledgeBase:
    """Return the background graphs of samples."""
    return KnowledgeBase(
        {sample.knowledge_iri: turtle(sample.knowledge, sample.prefixes) for sample in samples}
    )


def schedule(samples: Sequence[UseCase]) -> list[Due]:
    """Return one pass through samples, in order: all begin and end together, however long they are."""
    return sorted((due for sample in samples for due in _due(sample)), key=lambda due: due.at)


def _due(sample: UseCase) -> list[Due]:
    times = sorted(event.time for stream in sample.streams for event in stream.events)
    first, length = times[0], times[-1] - times[0]
    # The gap between two passes is the average gap between events.
    period = length + length / len(times)
    found = [
        Due((event.time - first) / period, stream.iri, event.triples, event.time, event.graph.value, period)
        for stream in sample.streams
        for event in stream.events
    ]
    if sample.name == "stocks":
        iri = sample.streams[0].iri
        stray = sample.streams[0].events[0]
        found.append(Due(_BROKEN, iri, _BROKEN_TRADE, first + _BROKEN * period, None, period))
        found.append(Due(_LATE, iri, stray.triples, first, stray.graph.value, period))
    return found


async def play(engine: AsyncEngine, samples: Sequence[UseCase], seconds: float = PASS) -> None:
    """Push the events of samples when they are due, one pass per ``seconds``, until cancelled."""
    events = schedule(samples)
    loop = asyncio.get_running_loop()
    started, passed, place = loop.time(), 0, 0
    while True:
        begun = place
        reached = (loop.time() - started) / seconds - passed
        while place < len(events) and events[place].at <= reached:
            place += 1
        if place > begun:
            await engine.call(_pushing(events[begun:place], passed))
        if place == len(events):
            if reached < 1:
                await asyncio.sleep((1 - reached) * seconds)
            passed, place = passed + 1, 0
        else:
            await asyncio.sleep(_TICK)


def _pushing(events: Sequence[Due], passed: int) -> Callable[[Engine], None]:
    return partial(_push, events=events, passed=passed)


def _push(engine: Engine, events: Sequence[Due], passed: int) -> None:
    for due in events:
        engine.push(due.stream, due.graph, due.time + passed * due.period, due.name)
