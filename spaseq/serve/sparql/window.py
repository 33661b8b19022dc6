"""The newest events of a query's streams → the events in its current window."""

from __future__ import annotations

from dataclasses import dataclass

from spaseq.engine import Engine
from spaseq.events import Clock, EventBatch
from spaseq.matching.model import stream_window
from spaseq.serve.newest.recent import KeptEvent, in_order
from spaseq.serve.service import RegisteredQuery, ServerState


@dataclass(frozen=True, slots=True)
class Newest:
    """The kept events of a query's streams, and the query's progress, at one time.

    ``seen``: how many events the query has had. ``begin``: when its first window began. ``time``: the query's
    current time, None before the first event. ``cut``: the streams with events that are no longer kept.
    """

    found: RegisteredQuery
    events: dict[str, list[EventBatch]]
    cut: frozenset[str]
    seen: int
    begin: int | None
    time: int | None


@dataclass(frozen=True, slots=True)
class InWindow:
    """The events in a query's window; ``whole``: no event is missing."""

    events: list[KeptEvent]
    whole: bool


async def newest(service: ServerState, found: RegisteredQuery) -> Newest:
    """Return the query's progress, in the engine's turn."""
    names = [stream.iri.value for stream in found.handle.query.streams]

    def ask(engine: Engine) -> Newest:
        engine.turn.flush()
        pipeline = found.handle.handle.pipeline
        evidence = pipeline.evidence()
        return Newest(
            found,
            service.recent.of(names),
            service.recent.cut(names),
            evidence.events,
            evidence.begin,
            pipeline.stats.watermark,
        )

    return await service.engine.call(ask)


def in_window(newest: Newest) -> InWindow:
    """Return the kept events in the query's window, at the newest event or the query's time if that is later.

    Events before the registration of the query are in none of its windows.
    """
    come = [kept for kept in in_order(newest.events) if newest.time is None or kept.time <= newest.time]
    own = come[-newest.seen :] if newest.seen else []
    if not own:
        return InWindow([], not newest.seen)
    is_ticks = own[0].batch.clock is Clock.TICKS
    begin = own[0].time if newest.begin is None else newest.begin
    window = stream_window(newest.found.handle.query.window, is_ticks, begin)
    places = [window.place(kept.time, newest.seen - len(own) + i) for i, kept in enumerate(own)]
    last = places[-1]
    if newest.time is not None and not window.counted:
        last = max(last, window.place(newest.time, 0))
    opens = last - window.reach
    inside = [kept for kept, place in zip(own, places, strict=True) if place >= opens]
    if len(own) == newest.seen or window.counted:
        return InWindow(inside, len(inside) < len(own) or len(own) == newest.seen)
    first = {kept.stream: place for kept, place in zip(reversed(own), reversed(places), strict=True)}
    return InWindow(inside, all(first.get(stream, last) < opens for stream in newest.cut))
