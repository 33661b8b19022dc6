"""What of the past is still needed, query by query, and which queries need all of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from spaseq.engine.durable.entry import Orders
from spaseq.engine.durable.journal import Kept
from spaseq.engine.pipelines.flow import Flow
from spaseq.engine.pipelines.intake import Intake
from spaseq.engine.pipelines.order import BEGINNING
from spaseq.events import Clock
from spaseq.language.syntax import Consume, Query, RegisterKind
from spaseq.matching.model import Bounds, bounds


def keeps(query: Query, made: Iterable[str] = ()) -> str | None:
    """Why a query needs all that arrived since it was registered; None if its window will do.

    ``made``: the streams that queries make.
    """
    if query.skip is not None:
        return "AFTER MATCH SKIP: where the next match may begin hangs on all before"
    if query.consume is not Consume.NONE:
        return "CONSUME ANY: which partial matches are gone hangs on all before"
    if query.register is not None and query.register.kind is RegisterKind.STREAM:
        return "REGISTER STREAM: the events that it makes are numbered from the first"
    if any(stream.iri.value in made for stream in query.streams):
        return "it reads what a query makes, numbered from the first event"
    return None


def unneeded(flow: Flow, kept: Sequence[Kept], now: Orders) -> int:
    """How many entries, of the first ones, no match to come can need; for queries that ``keeps`` lets go.

    ``now``: what the orders have come to.
    """
    since: dict[tuple[int, Clock], int] = {}
    counted: set[str] = set()
    for intake, order in zip((i for i in flow.intakes if i.members), now, strict=True):
        if intake.is_live:
            clock = intake.order.clock
            if clock is None:
                continue  # it has no event
            windows = [bounds(q.pipeline.query.window, clock is Clock.TICKS, 0) for q in intake.live]
            time = min(_by_time(intake, windows), _by_count(kept, order, windows))
            if any(window.counted for window in windows):
                counted.add(str(order["of"]))
            for stream in intake.streams:
                since[stream, clock] = min(since.get((stream, clock), time), time)
    count = 0
    for entry in kept:
        if any(key in since and last >= since[key] for key, last in entry.reach.items()):
            break
        count += 1
    # What is left must say how many events there had been, in the orders that there are.
    if count < len(kept) and _of(counted, kept[count].begun) != _of(counted, now):
        return 0
    return count


def _of(streams: set[str], orders: Orders) -> set[int]:
    """Those of some streams that say how many events they released."""
    return {order["first"] for order in orders if str(order["of"]) in streams and "position" in order}


def _by_time(intake: Intake, windows: Iterable[Bounds]) -> int:
    """From what time on events may count in windows of time.

    A match that waits began a window ago, and what must not be, or be optional, before it, another before.
    """
    sizes = [window.size for window in windows if not window.counted]
    return intake.order.watermark - 2 * (max(sizes) + 1) if sizes else intake.order.watermark


def _by_count(kept: Sequence[Kept], now: Mapping[str, Any], windows: Iterable[Bounds]) -> int:
    """The same of windows of EVENTS: what was released since the beginning of some entry is enough."""
    sizes = [window.size for window in windows if window.counted]
    if not sizes:
        return int(now["watermark"])
    enough = now["position"] - 2 * (max(sizes) + 1)
    for entry in reversed(kept):
        for order in entry.begun:
            if order["first"] == now["first"] and order.get("position", enough + 1) <= enough:
                return int(order["watermark"]) - 1
    return BEGINNING
