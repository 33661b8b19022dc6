"""Access control: hosts, origins, tokens, concurrency and timeouts."""

from __future__ import annotations

import asyncio
import hmac
import time
from contextlib import suppress
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from spaseq.serve.errors import ApiError, beyond
from spaseq.serve.settings import Settings, is_loopback

#: Paths without a token: the page, which asks for the token, and the health check.
_OPEN: Final = ("/", "/healthz")

_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'self'; frame-ancestors 'none'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Guard:
    """Wraps an application: refuses requests that are not allowed, and all requests when ``is_stopping``.

    No page of another site can use the server through a browser: the check of the Host header stops pages
    with a host name that resolves to this machine (DNS rebinding), the check of the Origin header stops
    cross-site requests. CORS is off.
    """

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._settings = settings
        self._open = 0
        self.is_stopping = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Implement ASGI."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        guarded = _GuardedResponse(send, scope)
        most = self._settings.limits.connections
        try:
            if self._open >= most:
                raise beyond("connections", most, "too many requests at a time", 503)
            if self.is_stopping:
                raise ApiError(503, "stopping", "the server is being stopped")
            self._check(scope)
        except ApiError as error:
            await error.response()(scope, receive, guarded)
            return
        self._open += 1
        try:
            await self._timed(scope, receive, guarded)
        finally:
            self._open -= 1

    async def _timed(self, scope: Scope, receive: Receive, send: _GuardedResponse) -> None:
        """Run a request with a timeout. A streaming request sets ``scope["spaseq.lasts"]`` to use its own.

        ``scope["spaseq.end"]`` is the deadline of other requests, on the monotonic clock.
        """
        limit = self._settings.limits.seconds
        scope["spaseq.end"] = time.monotonic() + limit
        lasting = asyncio.get_running_loop().create_future()

        def lasts() -> None:
            if not lasting.done():
                lasting.set_result(None)

        scope["spaseq.lasts"] = lasts
        answering = asyncio.ensure_future(self._app(scope, receive, send))
        try:
            await asyncio.wait({answering, lasting}, timeout=limit, return_when=asyncio.FIRST_COMPLETED)
            if not answering.done() and not lasting.done():
                answering.cancel()
                await asyncio.wait({answering})
                if not send.has_begun:
                    error = beyond("seconds", limit, "the request took too long", 503)
                    await error.response()(scope, receive, send)
                else:
                    with suppress(asyncio.CancelledError):
                        await answering  # re-raised: the response is incomplete, so the connection is closed
                return
            await answering
        except asyncio.CancelledError:
            answering.cancel()
            raise

    def _check(self, scope: Scope) -> None:
        headers, settings = Headers(scope=scope), self._settings
        host = headers.get("host", "")
        if settings.is_local and not is_loopback(_name(host)):
            raise ApiError(
                403,
                "auth",
                f"the host {host[:100]!r} is not this server's",
                hint="ask 127.0.0.1 or localhost",
            )
        origin = headers.get("origin")
        foreign = headers.get("sec-fetch-site") in ("cross-site", "same-site")
        if foreign and scope["method"] == "GET" and scope["path"] == "/":
            foreign = False  # a link to the page
        if foreign or (origin is not None and urlsplit(origin).netloc != host):
            raise ApiError(403, "auth", "pages of other sites may not use this server")
        path = scope["path"]
        if settings.token is None or path in _OPEN or path.startswith("/page/"):
            return
        kind, _, given = headers.get("authorization", "").partition(" ")
        right = hmac.compare_digest(given.strip().encode(), settings.token.encode())
        if kind.lower() != "bearer" or not right:
            raise ApiError(
                401,
                "auth",
                "a token is needed" if not given else "the token is wrong",
                hint="send the header 'Authorization: Bearer TOKEN'",
                headers={"WWW-Authenticate": 'Bearer realm="spaseq"'},
            )


class _GuardedResponse:
    """Sends a response with the common headers, and records when it began."""

    def __init__(self, send: Send, scope: Scope) -> None:
        self._send = send
        self._scope = scope
        self._is_page = scope["path"] == "/" or scope["path"].startswith("/page/")
        self._came = time.perf_counter()
        self.has_begun = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.has_begun = True
            if (route := self._scope.get("route")) is not None:
                self._scope["app"].service.answered(route.path, time.perf_counter() - self._came)
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
            headers.setdefault("Cache-Control", "no-cache" if self._is_page else "no-store")
        await self._send(message)


def _name(host: str) -> str:
    """Return the name in a Host header, without its port.

    >>> _name("localhost:8000"), _name("[::1]:80"), _name("")
    ('localhost', '[::1]', '')
    """
    return host[: host.index("]") + 1] if host.startswith("[") and "]" in host else host.partition(":")[0]
