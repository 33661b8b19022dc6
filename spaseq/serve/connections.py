"""Open sockets: their number, their time without a request, and rate-limited logging."""

from __future__ import annotations

import logging
import time
from contextlib import suppress
from typing import Any, Final

from uvicorn.protocols.http.h11_impl import H11Protocol

from spaseq.serve.settings import ServeLimits

#: The most sockets that wait to be accepted. The event loop accepts up to this many at once before it handles
#: any of them, so this many may be open for a moment beyond the limit.
BACKLOG: Final = 128

#: The answer to a connection beyond the limit; its request is not read.
_REFUSED: Final = b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


class Sockets:
    """The open connections of a server, at most ``limits.sockets`` and half of the process's file limit.

    If there are more, the oldest one that waits for a request is closed. If all have a request, the new one
    is refused. ``sweep`` must be called every second: it closes connections without a request within
    ``limits.header_seconds``, and connections that accept nothing of a response for twice ``limits.pause``
    seconds.
    """

    def __init__(self, limits: ServeLimits) -> None:
        self.most = min(limits.sockets, _files() // 2)
        self._limits = limits
        self._open: dict[TimedConnection, None] = {}  # the oldest first

    def admit(self, connection: TimedConnection) -> bool:
        """Return whether a new connection may stay."""
        if len(self._open) >= self.most:
            oldest = next((one for one in self._open if one.is_waiting), None)
            if oldest is None:
                return False
            self.forget(oldest)
            oldest.transport.abort()
        self._open[connection] = None
        return True

    def forget(self, connection: TimedConnection) -> None:
        """Remove a closed connection."""
        self._open.pop(connection, None)

    def sweep(self) -> None:
        """Close the connections that have waited too long."""
        now = time.monotonic()
        for connection in list(self._open):
            if connection.is_overdue(now, self._limits):
                connection.transport.abort()


class TimedConnection(H11Protocol):
    """A connection with limited waiting times.

    ``since``: when it began to wait for its next request, or when ``is_overdue`` last saw that its client had
    accepted a part of a response; in seconds of the monotonic clock.
    """

    def __init__(self, *arguments: Any, sockets: Sockets, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._sockets = sockets
        self._unsent = 0
        self.since = time.monotonic()

    @property
    def is_waiting(self) -> bool:
        """Return whether no request is being answered."""
        return self.cycle is None or self.cycle.response_complete

    def is_overdue(self, now: float, limits: ServeLimits) -> bool:
        """Return whether it has waited too long."""
        unsent = self.transport.get_write_buffer_size()
        if unsent != self._unsent:
            self._unsent, self.since = unsent, now
        if unsent:  # a reader of matches has a shorter timeout of its own
            return now - self.since > 2 * limits.pause
        return self.is_waiting and now - self.since > limits.header_seconds

    def connection_made(self, transport: Any) -> None:
        """Implement asyncio's protocol."""
        if self._sockets.admit(self):
            super().connection_made(transport)
            return
        self.transport = transport
        transport.write(_REFUSED)
        transport.abort()

    def data_received(self, data: bytes) -> None:
        """Implement asyncio's protocol."""
        if self.flow is not None:  # it is not refused
            super().data_received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """Implement asyncio's protocol."""
        self._sockets.forget(self)
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """Wait for the next request after a complete response."""
        self.since = time.monotonic()
        super().on_response_complete()


class Quietly(logging.Filter):
    """Passes one record per second of each logger: clients must not be able to fill a disk with them."""

    def __init__(self) -> None:
        super().__init__()
        self._last: dict[str, float] = {}
        self._left_out: dict[str, int] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a record is shown; append the number of suppressed records to it."""
        now = time.monotonic()
        if now - self._last.get(record.name, -1.0) < 1.0:
            self._left_out[record.name] = self._left_out.get(record.name, 0) + 1
            return False
        self._last[record.name] = now
        if left_out := self._left_out.pop(record.name, 0):
            record.msg, record.args = f"{record.getMessage()} (and {left_out:,} more records)", None
        return True


def raise_files(limits: ServeLimits) -> None:
    """Raise the process's file limit to what its sockets need, if the system allows it."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = 2 * limits.sockets
        if hard != resource.RLIM_INFINITY:
            wanted = min(wanted, hard)
        if soft != resource.RLIM_INFINITY and soft < wanted:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _files() -> int:
    """Return how many files this process may have open."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return 1 << 30
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 1 << 30 if soft == resource.RLIM_INFINITY else soft
