"""Slow requests, a few at a time, in threads of their own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from spaseq.engine.asynchronous import Worker
from spaseq.serve.errors import beyond
from spaseq.serve.service import ServerState

T = TypeVar("T")


async def asked(service: ServerState, ask: Callable[[], T]) -> T:
    """Return the result of a slow call. Its slot is free when it has ended, also if the client has left."""
    limits = service.settings.limits
    if service.asking >= limits.asking:
        raise beyond("asking", limits.asking, "too many questions at a time", 429)
    service.asking += 1
    worker = Worker(lambda: None)
    loop = asyncio.get_running_loop()

    def end() -> None:
        service.asking -= 1

    def do() -> T:
        try:
            return ask()
        except Exception as error:
            # Objects in its frames must be freed in this thread, as Oxigraph's results require.
            raise error.with_traceback(None) from None
        finally:
            loop.call_soon_threadsafe(end)

    try:
        return await worker.awaited(do)
    finally:
        worker.end()


def kept(service: ServerState, key: object, make: Callable[[], Any]) -> Any:
    """Return what ``make`` makes of the background graphs, cached for each version of them."""
    version = service.kb.version
    found = service.made.get(key)
    if found is None or found[0] != version:
        if len(service.made) >= 16:
            service.made.clear()
        found = service.made[key] = version, make()
    return found[1]
