"""``POST /queries/try``: a query over the last events, before it is registered."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from time import thread_time
from typing import Any, Final

from fastapi import APIRouter, Request

from spaseq.engine import Engine, Handle
from spaseq.errors import SpaseqError
from spaseq.events import EventBatch
from spaseq.language import prepare
from spaseq.language.syntax import Query
from spaseq.limits import Limits
from spaseq.patterns.kb import KnowledgeBase
from spaseq.results.batch import Match
from spaseq.serve.errors import beyond
from spaseq.serve.newest.history import as_json
from spaseq.serve.newest.recent import in_order, now
from spaseq.serve.routes.depends import Given, text_of
from spaseq.serve.routes.queries import TEXT_BODY
from spaseq.sources import BadEvent

#: The most matches of a trial.
MATCHES: Final = 5
#: The CPU seconds of a trial, and the CPU seconds to find out why there is no match.
SECONDS: Final = 5.0
WHY_SECONDS: Final = 1.0

#: Events between two checks of the clock.
_STEP: Final = 20


@dataclass(frozen=True, slots=True)
class TrialResult:
    """The result of a query over the last events: the number of events of each stream, its first matches.

    ``more``: whether there are more matches. ``why``: without a match, the likeliest reason. ``stopped``: why
    not all events were used; None if they were.
    """

    streams: dict[str, int]
    matches: tuple[Match, ...]
    more: bool
    why: str | None
    stopped: str | None

    def as_json(self) -> dict[str, Any]:
        """Return plain values; matches have the form of ``GET /queries/{id}/matches``, with their events."""
        return {
            "events": sum(self.streams.values()),
            "streams": [{"iri": iri, "events": count} for iri, count in self.streams.items()],
            "matches": [as_json(number, match, True) for number, match in enumerate(self.matches, 1)],
            "more": self.more,
            "why": self.why,
            "stopped": self.stopped,
        }


router = APIRouter(tags=["queries"])


@router.post("/queries/try", summary="Try a query over the last events", openapi_extra=TEXT_BODY)
async def try_out(request: Request, service: Given) -> dict[str, Any]:
    """Run the query in the body over the last events that the server keeps of each stream, without
    registering it. `matches` are its first matches. `more`: whether there are others. `why`: the likeliest
    reason if there are none. `stopped`: why not all events were used."""
    text = await text_of(request, service.settings.limits.text_bytes, "a query")
    query = await asyncio.to_thread(prepare, text)
    limits = service.settings.limits
    if service.trying >= limits.asking:
        raise beyond("asking", limits.asking, "too many trials at a time", 429)
    service.trying += 1
    try:
        names = [stream.iri.value for stream in query.streams]
        events, kb = await service.engine.call(lambda engine: now(engine, service.recent, names))
        return await asyncio.to_thread(lambda: attempt(query, events, kb).as_json())
    finally:
        service.trying -= 1


def attempt(
    query: Query,
    events: dict[str, list[EventBatch]],
    kb: KnowledgeBase,
    limits: Limits = Limits(),
    *,
    most: int = MATCHES,
    seconds: float = SECONDS,
) -> TrialResult:
    """Run a query over events in a separate engine, until it has enough matches or the time is over.

    ``seconds`` are CPU time of this thread. Raises ``KnowledgeError`` for a missing background graph. Windows
    that are open after the last event stay open: matches that need their end are not found.
    """
    refused: list[BadEvent] = []
    bounded = replace(limits, partial_matches=_least(limits.partial_matches, 100_000))
    engine = Engine(kb, dead_letters=refused.append, limits=bounded)
    handle = engine.register(query)
    end = thread_time() + seconds
    shown = dict.fromkeys(events, 0)
    found: list[Match] = []
    stopped: str | None = None
    ordered = in_order(events)
    try:
        for number, kept in enumerate(ordered, 1):
            kept.push(engine)
            shown[kept.stream] += 1
            if number % _STEP and number < len(ordered):
                continue
            found += _first(handle, most + 1 - len(found))
            if len(found) > most or handle.done:
                break
            if thread_time() > end and number < len(ordered):
                stopped = f"stopped after {number} of {len(ordered)} events, for which there was time"
                break
    except SpaseqError as error:
        stopped = str(error)
    why = None if found or stopped or not ordered else handle.why(WHY_SECONDS).cause
    engine.abandon()
    return TrialResult(shown, tuple(found[:most]), len(found) > most, why, stopped)


def _least(bound: int | None, other: int) -> int:
    return other if bound is None else min(bound, other)


def _first(handle: Handle, count: int) -> list[Match]:
    """Return at most ``count`` of the available matches."""
    found: list[Match] = []
    for match in handle.matches():
        found.append(match)
        if len(found) == count:
            break
    return found
