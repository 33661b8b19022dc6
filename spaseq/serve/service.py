"""Shared state of all requests: the engine, its queries, and statistics of its streams."""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
import time
from bisect import bisect_left
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from spaseq.engine import AsyncEngine, AsyncHandle, Engine
from spaseq.engine.engine import StreamStats
from spaseq.errors import SpaseqError
from spaseq.language.syntax import Ask, Construct, Query
from spaseq.patterns.kb import KnowledgeBase
from spaseq.results.writers._base import columns
from spaseq.serve.counting import Counted
from spaseq.serve.errors import ApiError, beyond, told
from spaseq.serve.newest.history import MatchHistory
from spaseq.serve.newest.letters import Letters
from spaseq.serve.newest.recent import RecentEvents
from spaseq.serve.settings import Settings
from spaseq.serve.sparql.process import SparqlProcess

#: Upper bounds of the buckets, in seconds; one more bucket is unbounded.
BOUNDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Latency:
    """Counts of requests by the time until their responses began; ``total`` is the sum, in seconds."""

    def __init__(self) -> None:
        self.total = 0.0
        self._counts = [0] * (len(BOUNDS) + 1)

    def add(self, seconds: float) -> None:
        """Add one request."""
        self._counts[bisect_left(BOUNDS, seconds)] += 1
        self.total += seconds

    @property
    def count(self) -> int:
        """Return the number of requests."""
        return sum(self._counts)

    def up_to(self) -> Iterator[tuple[str, int]]:
        """Yield for each bound how many requests took at most this long; the last bound is ``+Inf``."""
        before = 0
        for bound, count in zip((*map(str, BOUNDS), "+Inf"), self._counts, strict=True):
            before += count
            yield bound, before


_LOG: Final = logging.getLogger("spaseq.serve")

#: Seconds for the engine to end: more than one event may take by default.
_LAST_CALL: Final = 15

#: Matches processed at once, before other tasks run.
_AT_ONCE: Final = 256

#: The ids of queries.
_ID: Final = re.compile(r"q[0-9]+")

#: How many of the last seconds a rate covers: at least, and at most.
_LEAST: Final = 1.0
_MOST: Final = 10.0


@dataclass(slots=True)
class RegisteredQuery:
    """A registered query: its handle, its newest matches, and the task that reads these."""

    id: str
    name: str | None
    text: str
    handle: AsyncHandle
    history: MatchHistory
    taking: asyncio.Task[None] | None = None
    #: The diagnosis of its first events, and how many these were.
    diagnosed: tuple[int, Any] | None = None
    #: The counts over its newest events.
    counted: Counted | None = None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    def as_json(self) -> dict[str, Any]:
        """Return what is known without asking the engine."""
        return {"id": self.id, **described(self.handle.query, self.name, self.text)}

    async def level(self) -> None:
        """Wait until the history has the matches of all events that were sent before the call."""
        count = (await self.handle.stats()).matches
        while self.history.count < count and self.history.end is None:
            await asyncio.wait({self.history.news})


def described(query: Query, name: str | None, text: str) -> dict[str, Any]:
    """Return a query as plain values."""
    form = {Ask: "ASK", Construct: "CONSTRUCT"}.get(type(query.form), "SELECT")
    return {
        "name": name,
        "text": text,
        "streams": [stream.iri.value for stream in query.streams],
        "form": form,
        "variables": list(columns(query)),
        "warnings": list(query.warnings),
    }


class ServerState:
    """The engine and the state of the server; all but the engine belongs to the event loop."""

    def __init__(self, engine: Engine, settings: Settings, letters: Letters) -> None:
        self.engine = AsyncEngine(engine)
        self.settings = settings
        self.letters = letters
        self.queries: dict[str, RegisteredQuery] = {}
        self.readers = self.uploads = self.asking = self.trying = 0
        #: Identifies this run of the server: another run numbers its matches anew.
        self.run = secrets.token_hex(8)
        #: The events for trials and for SPARQL over windows. Used in the engine's turns only.
        self.recent = RecentEvents(settings.limits.window_events)
        self.sparql = SparqlProcess(settings.limits)
        self.counting = asyncio.Lock()
        self.dropped = 0
        self.requests = 0
        #: By route, the time until responses began.
        self.latency: dict[str, Latency] = {}
        self.began = time.monotonic()
        #: Results derived from the background graphs, with their version.
        self.made: dict[object, tuple[int, Any]] = {}
        self._number = 0
        #: Names of queries from the state, which no other query may have as its id.
        self._from_state: frozenset[str] = frozenset()
        self._samples: deque[tuple[float, Mapping[str, StreamStats]]] = deque()
        self._is_durable = engine.is_durable
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def kb(self) -> KnowledgeBase:
        """Return the current background graphs."""
        return self.engine.kb

    def answered(self, route: str, seconds: float) -> None:
        """Record the seconds from a request to the beginning of its response."""
        self.latency.setdefault(route, Latency()).add(seconds)

    # --- queries ------------------------------------------------------------------------------

    async def register(self, query: Query, name: str | None) -> RegisteredQuery:
        """Register a query. With a state, the query needs a name, which it keeps after a restart.

        Raises ``ApiError`` for a name that another query has, or may get as its id.
        """
        check_name(name)
        if self._is_durable and name is None:
            hint = "POST /queries?name=…"
            raise ApiError(
                400, "name", "this server has a state, which keeps queries by their names", hint=hint
            )
        most = self.settings.limits.queries
        if len(self.queries) >= most:
            raise beyond("queries", most, "too many queries; delete one first", 429)
        if name is not None and any(other.name == name for other in self.queries.values()):
            raise ApiError(409, "conflict", f"there is a query named {name!r}", hint="delete that one first")
        return self._add(name, await self.engine.register(query, name=name if self._is_durable else None))

    def _add(self, name: str | None, handle: AsyncHandle, before: int = 0) -> RegisteredQuery:
        """Add a query; ``before``: how many of its matches were read before this server started."""
        self._number += 1
        while (key := f"q{self._number}") in self._from_state:
            self._number += 1
        history = MatchHistory(self.settings.limits.matches, before)
        found = self.queries[key] = RegisteredQuery(key, name, handle.query.text, handle, history)
        found.taking = asyncio.create_task(_take(found))
        return found

    def known(self, key: str) -> RegisteredQuery | None:
        """Return the query of an id or a name, or None."""
        found = self.queries.get(key)
        return found or next((other for other in self.queries.values() if other.name == key), None)

    def find(self, key: str) -> RegisteredQuery:
        """Return the query of an id or a name. Raises ``ApiError``."""
        found = self.known(key)
        if found is None:
            hint = "GET /queries lists them"
            raise ApiError(404, "not-found", f"unknown query {key[:100]!r}", hint=hint)
        return found

    async def remove(self, found: RegisteredQuery) -> None:
        """End a query, and remove it."""
        self.queries.pop(found.id, None)
        found.history.close({"reason": "deleted"})
        await found.handle.cancel()

    # --- streams ------------------------------------------------------------------------------

    async def streams(self) -> list[dict[str, Any]]:
        """Return the streams, each with its counts and its rate."""
        now_counts = await self.engine.call(Engine.streams)
        now = time.monotonic()
        samples = self._samples
        while len(samples) > 1 and now - samples[1][0] >= _LEAST and now - samples[0][0] > _MOST / 2:
            samples.popleft()
        before_at, before = samples[0] if samples else (self.began, {})
        if not samples or now - samples[-1][0] >= _LEAST / 2:
            samples.append((now, now_counts))
        passed = max(now - before_at, 1e-3)
        found = []
        for iri, stats in sorted(now_counts.items()):
            old = before[iri].events if iri in before else 0
            found.append(
                {
                    "iri": iri,
                    "events": stats.events,
                    "bad": stats.bad,
                    "late": stats.late,
                    "watermark": time_as_json(stats.watermark),
                    "rate": round((stats.events - old) / passed, 3),
                    "lag": lag(stats.watermark),
                }
            )
        return found

    # --- from beginning to end ----------------------------------------------------------------

    async def start(self) -> None:
        """Start in the running event loop; restore the queries of the engine's state."""
        streams = await self.engine.call(Engine.streams)
        had = any(stats.events for stats in streams.values())
        self.recent = RecentEvents(self.settings.limits.window_events, forgot=had)
        await self.engine.call(lambda engine: engine.follow(self.recent.add))
        known = await self.engine.queries()
        self._from_state = frozenset(known)
        for name, handle in known.items():
            self._add(name, handle, handle.handle.delivered)
        if self.settings.wall_clock:
            self._tasks.append(asyncio.create_task(self._tick()))
        if self._is_durable:
            self._tasks.append(asyncio.create_task(self._commit()))

    async def stop(self) -> None:
        """End every window, and let readers read the completed matches; with a state, commit instead."""
        for task in self._tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        await asyncio.to_thread(self.sparql.close)
        taking = [found.taking for found in self.queries.values() if found.taking is not None]
        try:
            async with asyncio.timeout(_LAST_CALL):
                with suppress(SpaseqError):  # the handles report it, too
                    await self.engine.close()
        except TimeoutError:
            _LOG.error("the engine has been at work for %s s: what it had to do is abandoned", _LAST_CALL)
            for task in taking:
                task.cancel()
        if taking:
            await asyncio.wait(taking)

    async def _tick(self) -> None:
        """Advance the time of streams with the wall clock."""
        while True:
            await asyncio.sleep(1)
            with suppress(SpaseqError):
                await self.engine.advance(datetime.now(UTC))

    async def _commit(self) -> None:
        """Commit within a second, also if nothing else happens."""
        while True:
            await asyncio.sleep(1)
            try:
                await self.engine.commit()
            except SpaseqError as error:  # the next commit includes it
                _LOG.error("the state could not be written: %s", error)


def check_name(name: str | None) -> None:
    """Raise ``ApiError`` for a name that looks like an id: requests name a query by either."""
    if name is not None and _ID.fullmatch(name):
        message = f"the name {name!r} looks like an id: queries have the ids q1, q2, …"
        raise ApiError(400, "name", message, hint="a name that is not q and a number")


async def _take(found: RegisteredQuery) -> None:
    """Read matches as they arrive."""
    end: dict[str, Any] = {"reason": "done"}
    try:
        async for batch in found.handle.batches(_AT_ONCE):
            found.history.add(batch)
            await asyncio.sleep(0)
        if not found.handle.handle.is_over:
            end = {"reason": "stopped"}
    except asyncio.CancelledError:
        end = {"reason": "stopped"}
        raise
    except SpaseqError as error:
        end = {"reason": "failed", "error": told(error).error}
    except Exception as error:  # a bug, which readers must see, too
        end = {"reason": "failed", "error": {"kind": "internal", "message": type(error).__name__}}
        raise
    finally:
        found.history.close(end)


def time_as_json(moment: datetime | int | None) -> str | int | None:
    """Return a time for JSON."""
    from spaseq.results.writers._base import show_time

    return None if moment is None else show_time(moment)


def lag(moment: datetime | int | None) -> float | None:
    """Return how many seconds a time is behind the clock; None for ticks."""
    if not isinstance(moment, datetime):
        return None
    return round((datetime.now(UTC) - moment).total_seconds(), 3)
