"""``http://`` and ``https://``: server-sent events, NDJSON and whole files, by httpx.

A thread reads the body a few blocks ahead, because only closing the socket from another thread can end a
waiting read. It stops when blocks are not taken, which gives backpressure by TCP.
"""

from __future__ import annotations

import os
import queue
import socket
import threading
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from spaseq.connect.address import Address
from spaseq.connect.again import Place, same
from spaseq.connect.clients._extra import context, required
from spaseq.connect.clients.sse import Parser, TooLongError
from spaseq.connect.clients.websocket import advice, authorization, refuse_certificate
from spaseq.connect.messages import Message, now
from spaseq.connect.reconnect import DisconnectedError, SilentError, retry_after
from spaseq.errors import SourceError
from spaseq.excerpts import hide
from spaseq.sources._bytes import GATHERED, LONGEST

#: Blocks that are read ahead, each from one read of the network.
_AHEAD: Final = 16

#: Seconds without data after which TCP checks whether the connection is still alive.
_KEEPALIVE: Final = 30

#: Default seconds without data after which the connection is made anew. A guess: proxies drop silent
#: connections after one to ten minutes, and servers send comments more often.
SILENCE: Final = 300.0

#: The status by which a server ends a stream of events.
_NO_MORE: Final = 204

EVENT_STREAM: Final = "text/event-stream"


class Body:
    """The body of a response, read ahead by a thread until ``close``. ``media`` is its type."""

    def __init__(
        self,
        address: Address,
        seconds: float,
        asked: Mapping[str, str],
        answers: Collection[int] = (200, _NO_MORE),
        url: str = "",
    ) -> None:
        """Send a request. ``asked``: its headers; ``answers``: the accepted statuses.

        ``url``: the URL to request, if it is not the address itself but a page that it leads to.

        Raises DisconnectedError if the server may answer later, otherwise SourceError.
        """
        httpx = required("httpx", "http")
        headers = {
            "Accept": "*/*",
            "Accept-Encoding": "identity",
            "Cache-Control": "no-store",
            **authorization(address),
            **asked,
        }
        # Not a client of httpx, which logs each URL with its query.
        self._transport = httpx.HTTPTransport(
            verify=context(address) or True, trust_env=False, socket_options=_kept_alive()
        )
        self._response: Any = None
        self._url, self._page = url or address.url, f"{hide(url)}: " if url else ""
        self._silence = address.seconds("read", SILENCE)
        self._timeout = httpx.ReadTimeout
        self._blocks: queue.Queue[bytes | Exception | None] = queue.Queue(_AHEAD)
        self._last: list[Exception | None] = []  # what ended the body
        self._is_ended = threading.Event()
        self._thread = threading.Thread(target=self._read, name="spaseq-http", daemon=True)
        try:
            self._response = self._answer(httpx, address, headers, seconds, answers)
        except BaseException:
            self._transport.close()
            raise
        self.status: int = self._response.status_code
        self.headers: Mapping[str, str] = self._response.headers
        self.media: str = self.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        self._thread.start()

    def _answer(
        self,
        httpx: Any,
        address: Address,
        headers: dict[str, str],
        seconds: float,
        answers: Collection[int],
    ) -> Any:
        # The first byte has another timeout than the body.
        self._patience = httpx.Timeout(seconds).as_dict()
        try:
            request = httpx.Request("GET", self._url, headers=headers, extensions={"timeout": self._patience})
            response = self._transport.handle_request(request)
            response.request = request
        except httpx.InvalidURL as error:
            raise SourceError(f"{self._page or f'{address}: '}this cannot be requested: {error}") from None
        except httpx.TransportError as error:
            refuse_certificate(address, error)
            raise DisconnectedError(f"{self._page}{error or type(error).__name__}") from None
        status = response.status_code
        if status in answers:
            return response
        response.close()
        if status >= 500 or status in (408, 425, 429):
            after = retry_after(response.headers.get("Retry-After"))
            raise DisconnectedError(f"{self._page}the server answers {status}", after)
        place = hide(response.headers.get("Location", "nowhere"))
        to = f" to {place}: give that" if response.is_redirect else ""
        raise SourceError(f"{self._page or f'{address}: '}the server answers {status}{to}{advice(status)}")

    def _read(self) -> None:
        self._patience["read"] = self._silence
        last: Exception | None = None
        try:
            for block in self._response.iter_bytes():
                self._put(block)
                if self._is_ended.is_set():
                    return
        except self._timeout:
            last = SilentError(f"nothing came for {self._silence:g} s (read= says how long is waited)")
        except Exception as error:  # the other side raises it again
            last = DisconnectedError(str(error) or type(error).__name__)
        self._put(last)

    def _put(self, item: bytes | Exception | None) -> None:
        while not self._is_ended.is_set():
            with suppress(queue.Full):
                self._blocks.put(item, timeout=0.1)
                return

    def take(self, seconds: float) -> bytes | None:
        """Return what has arrived, waiting for the first of it; empty on timeout; None at the end.

        Raises DisconnectedError.
        """
        parts: list[bytes] = []
        held = 0
        while held < GATHERED and not self._last:
            try:
                block = (
                    self._blocks.get(timeout=seconds) if seconds and not parts else self._blocks.get_nowait()
                )
            except queue.Empty:
                break
            if isinstance(block, bytes):
                parts.append(block)
                held += len(block)
            else:
                self._last.append(block)
        if parts or not self._last:
            return b"".join(parts)
        [last] = self._last
        if last is not None:
            raise last
        return None

    def close(self) -> None:
        """End the connection and the thread."""
        self._is_ended.set()
        stream = self._response.extensions.get("network_stream")
        own = stream.get_extra_info("socket") if stream is not None else None
        if own is not None and own.fileno() >= 0:
            # Only this wakes a waiting read; on a copy, because TLS would lose its state otherwise.
            with suppress(OSError), socket.socket(fileno=os.dup(own.fileno())) as copy:
                copy.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        with suppress(Exception):  # errors of a connection that is being closed do not matter
            self._response.close()
        self._transport.close()


def _kept_alive() -> list[tuple[int, int, int]]:
    options = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
    if hasattr(socket, "TCP_KEEPIDLE"):
        options += [
            (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _KEEPALIVE),
            (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, _KEEPALIVE // 3),
            (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
        ]
    return options


class HttpClient:
    """Reads server-sent events as messages, or, of another media type, lines. ``open`` sets ``media``.

    After a lost or ended connection, server-sent events resume after the last one. Lines end when the body
    does.
    """

    def __init__(self, address: Address) -> None:
        required("httpx", "http")
        context(address)  # reports errors of ca= now
        self._address = address
        self._body: Body | None = None
        self._parser = Parser()
        #: The id of the last event read.
        self._given = ""
        self._lines: list[bytes] = []
        self._held = 0
        self._count = 0
        self._ready: deque[Message] = deque()
        self._lost: DisconnectedError | None = None
        self._is_over = False

    @property
    def media(self) -> str:
        """Return the type of the body."""
        assert self._body is not None
        return self._body.media

    @property
    def body(self) -> Body:
        """Return the body, to be read by blocks instead."""
        assert self._body is not None
        return self._body

    def open(self, seconds: float) -> None:
        last = self._parser.id
        self._body = Body(self._address, seconds, {"Last-Event-ID": last} if last else {})
        self._parser = Parser(self._parser.id)
        self._lost = None

    def read(self, most: int, seconds: float) -> Sequence[Message] | None:
        ready = self._ready
        while len(ready) < most and self._lost is None and not self._is_over:
            try:
                block = self.body.take(0 if ready else seconds)
                if block:
                    ready.extend(self._messages(block))
                elif block is None:
                    self._end()
                else:
                    break
            except DisconnectedError as lost:
                self._torn(f"the connection broke inside this line: {lost}")
                self._lost = lost
        if ready:
            found = [ready.popleft() for _ in range(min(most, len(ready)))]
            self._given = str(found[-1].token or "")
            return found
        if self._lost is not None:
            raise self._lost
        return None if self._is_over else ()

    def done(self, messages: Sequence[Message]) -> None:
        """Do nothing: what was read cannot be read again."""

    @property
    def place(self) -> Place:
        """Return the id of the last event, if there are ids."""
        return {"of": str(self._address), "id": self._given}

    def resume(self, place: Place) -> None:
        same(place, str(self._address), str(self._address))
        self._given = place["id"]
        self._parser = Parser(self._given)

    def close(self) -> None:
        if self._body is not None:
            self._body.close()
            self._body = None

    def _end(self) -> None:
        """Handle the end of the body: a stream of events reconnects, unless the server ended it."""
        if self.media == EVENT_STREAM and self.body.status != _NO_MORE:
            raise DisconnectedError("the server has ended the answer")
        self._torn("")
        self._is_over = True

    def _messages(self, block: bytes) -> Iterator[Message]:
        arrived = now()
        if self.media != EVENT_STREAM:
            yield from self._whole(block, arrived)
            return
        try:
            for event in self._parser.feed(block):
                self._count += 1
                place = f"event id {event.id}" if event.id else f"message {self._count}"
                yield Message(event.data, place, arrived, token=event.id)
        except TooLongError as error:
            self._count += 1
            yield Message(b"", f"message {self._count}", arrived, f"{error}: the connection is made anew")
            raise DisconnectedError(str(error)) from None

    def _whole(self, block: bytes, arrived: int) -> Iterator[Message]:
        """Yield the lines that a block completes."""
        *lines, rest = block.split(b"\n")
        for line in lines:
            yield from self._line(b"".join([*self._lines, line]), arrived)
            self._lines, self._held = [], 0
        self._held += len(rest)
        if self._held <= LONGEST:
            self._lines.append(rest)
        else:
            self._lines = []

    def _line(self, line: bytes, arrived: int, problem: str = "") -> Iterator[Message]:
        self._count += 1
        if self._held > LONGEST:
            problem = f"a line of more than {LONGEST} bytes"
        if line.strip() or problem:
            yield Message(line, f"line {self._count}", arrived, problem)

    def _torn(self, problem: str) -> None:
        """Report the incomplete last line of a body that ended."""
        rest, self._lines = b"".join(self._lines), []
        if rest.strip():
            self._ready.extend(self._line(rest, now(), problem))
        self._held = 0
