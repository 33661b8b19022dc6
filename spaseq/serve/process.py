"""The server process: startup, signals, shutdown."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from types import FrameType
from typing import Any

import uvicorn

from spaseq.engine import AsyncEngine, Engine, Source
from spaseq.errors import EngineError, SourceError, SpaseqError
from spaseq.language.syntax import Query
from spaseq.serve.app import Application
from spaseq.serve.connections import BACKLOG, Quietly, Sockets, TimedConnection, raise_files
from spaseq.serve.errors import ApiError
from spaseq.serve.newest.letters import Letters
from spaseq.serve.security import Guard
from spaseq.serve.settings import Settings

#: Seconds for readers to read the matches that the end of the engine completes.
_LAST = 10


class Server(uvicorn.Server):
    """uvicorn with the engine's startup and shutdown: SIGINT and SIGTERM end it in order.

    ``started_at`` gets the URL as soon as requests are answered. ``queries`` are registered before, by name,
    and ``sources`` are read after; ``failed`` gets a source that cannot be read. ``player`` also feeds the
    engine, until the server ends.
    """

    def __init__(
        self,
        app: Application,
        settings: Settings,
        *,
        queries: Mapping[str, Query] | None = None,
        sources: Sequence[Source] = (),
        started_at: Callable[[str], None] | None = None,
        failed: Callable[[SpaseqError], None] | None = None,
        player: Callable[[AsyncEngine], Coroutine[Any, Any, None]] | None = None,
    ) -> None:
        self.guard = Guard(app, settings)
        self._sockets = Sockets(settings.limits)
        super().__init__(
            uvicorn.Config(
                self.guard,
                http=partial(TimedConnection, sockets=self._sockets),  # type: ignore[arg-type]  # it makes one
                backlog=BACKLOG,
                host=settings.host,
                port=settings.port,
                log_config=None,
                access_log=False,
                lifespan="off",
                server_header=False,
                ws="none",
                proxy_headers=False,
                timeout_graceful_shutdown=_LAST,
            )
        )
        self._app = app
        self._queries = queries or {}
        self._sources = sources
        self._started_at = started_at
        self._failed = failed
        self._player = player
        self._feeding: list[asyncio.Task[None]] = []

    @property
    def url(self) -> str:
        """Return the URL that it listens on."""
        sockets = self.servers[0].sockets
        host, port = sockets[0].getsockname()[:2]
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    async def startup(self, sockets: list[object] | None = None) -> None:  # type: ignore[override]
        """Register the queries, listen, and begin to read."""
        service = self._app.service
        await service.start()
        known = {found.name: found for found in service.queries.values()}
        for name, query in self._queries.items():
            if name not in known:
                try:
                    await service.register(query, name)
                except ApiError as error:
                    raise EngineError(f"the query {name!r} cannot be registered: {error}") from None
            elif known[name].handle.query != query:
                raise EngineError(
                    f"the state has another query of the name {name!r}: rename this one's file, or end "
                    f"that one (DELETE /queries/{name}) in a run without it"
                )
        await super().startup(sockets)  # type: ignore[arg-type]
        self._sweeping = asyncio.create_task(self._sweep())
        if self.started and self._started_at is not None:
            self._started_at(self.url)
        if self._sources:
            self._feeding.append(asyncio.create_task(self._feed()))
        if self._player is not None:
            self._feeding.append(asyncio.create_task(self._player(service.engine)))

    async def shutdown(self, sockets: list[object] | None = None) -> None:  # type: ignore[override]
        """Accept no more requests, end the engine, and let readers read the rest."""
        self.guard.is_stopping = True
        for feeding in self._feeding:
            feeding.cancel()
            with suppress(asyncio.CancelledError):
                await feeding
        await self._app.service.stop()
        await super().shutdown(sockets)  # type: ignore[arg-type]
        self._sweeping.cancel()

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(1)
            self._sockets.sweep()

    async def _feed(self) -> None:
        try:
            await self._app.service.engine.feed(*self._sources)
        except SourceError as error:
            if self._failed is not None:
                self._failed(error)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture signals as uvicorn does, but exit with status 0."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self._end) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _end(self, number: int, frame: FrameType | None) -> None:
        self.handle_exit(number, frame)
        self._captured_signals.clear()


def serve(
    engine: Engine,
    settings: Settings,
    letters: Letters,
    *,
    queries: Mapping[str, Query] | None = None,
    sources: Sequence[Source] = (),
    started_at: Callable[[str], None] | None = None,
    failed: Callable[[SpaseqError], None] | None = None,
    player: Callable[[AsyncEngine], Coroutine[Any, Any, None]] | None = None,
) -> bool:
    """Run a server until SIGINT or SIGTERM; return False if it could not listen. It owns the process."""

    def started(url: str) -> None:
        # Loaded modules are never freed: without freezing, garbage collections delayed events by 0.1 s.
        gc.collect()
        gc.freeze()
        if started_at is not None:
            started_at(url)

    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    quietly = Quietly()
    for handler in logging.getLogger().handlers:
        handler.addFilter(quietly)
    raise_files(settings.limits)
    app = Application(engine, settings, letters)
    server = Server(
        app,
        settings,
        queries=queries,
        sources=sources,
        started_at=started,
        failed=failed,
        player=player,
    )
    try:
        server.run()
    except SystemExit:  # uvicorn exits if it cannot listen
        return False
    return True
