"""What of the past is still needed, query by query, and which queries need all of it."""

from __future__ import annotations

from collections.abc import Iterable

from spaseq.engine.durable.journal import Kept
from spaseq.engine.pipelines.flow import Flow
from spaseq.engine.pipelines.intake import Intake
from spaseq.events import Clock
from spaseq.language.syntax import UNITS, Consume, Query, RegisterKind
from spaseq.matching.model import bounds


def keeps(query: Query, made: Iterable[str] = ()) -> str | None:
    """Why a query needs all that arrived since it was registered; None if its window will do.

    ``made``: the streams that queries make.
    """
    if query.skip is not None:
        return "AFTER MATCH SKIP: where the next match may begin hangs on all before"
    if query.consume is not Consume.NONE:
        return "CONSUME ANY: which partial matches are gone hangs on all before"
    if UNITS[query.window.unit] is None:
        return "a window of EVENTS counts them from the first"
    if query.register is not None and query.register.kind is RegisterKind.STREAM:
        return "REGISTER STREAM: the events that it makes are numbered from the first"
    if any(stream.iri.value in made for stream in query.streams):
        return "it reads what a query makes, numbered from the first event"
    return None


def unneeded(flow: Flow, kept: Iterable[Kept]) -> int:
    """How many entries, of the first ones, no match to come can need; for queries that ``keeps`` lets go."""
    since: dict[tuple[int, Clock], int] = {}
    for intake in flow.intakes:
        if intake.is_live:
            clock = intake.order.clock
            if clock is None:
                continue  # it has no event
            time = intake.order.watermark - _length(intake, clock)
            for stream in intake.streams:
                since[stream, clock] = min(since.get((stream, clock), time), time)
    count = 0
    for entry in kept:
        if any(key in since and last >= since[key] for key, last in entry.reach.items()):
            break
        count += 1
    return count


def _length(intake: Intake, clock: Clock) -> int:
    """How long before the watermark events may count.

    A match that waits began a window ago, and what must not be, or be optional, before it, another before.
    """
    sizes = [bounds(q.pipeline.query.window, clock is Clock.TICKS, 0).size for q in intake.live]
    return 2 * (max(sizes) + 1)
