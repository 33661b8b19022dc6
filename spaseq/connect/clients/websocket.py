"""``ws://`` and ``wss://``: each message of a WebSocket is a message, by the thread client of websockets."""

from __future__ import annotations

import logging
from base64 import b64encode
from collections.abc import Sequence
from typing import TYPE_CHECKING

from spaseq.connect.address import Address
from spaseq.connect.again import Place
from spaseq.connect.clients._extra import context, required
from spaseq.connect.live import ENOUGH_BYTES
from spaseq.connect.messages import Message, now
from spaseq.connect.reconnect import DisconnectedError, retry_after
from spaseq.errors import SourceError
from spaseq.sources._bytes import LONGEST

if TYPE_CHECKING:
    from websockets.sync.client import ClientConnection

#: Messages that wait in the client before it stops reading from the network.
_WAITING = 64

#: The server has no more data (RFC 6455, 7.4.1).
_NORMAL = 1000

#: The client closes the connection because a message is too long.
_TOO_BIG = 1009


class WebSocketClient:
    """Reads a WebSocket. Close code 1000 of the server ends the stream; after other codes it reconnects."""

    def __init__(self, address: Address) -> None:
        self._module = required("websockets.sync.client", "ws")
        self._address = address
        self._tls = context(address)
        self._connection: ClientConnection | None = None
        self._count = 0

    def open(self, seconds: float) -> None:
        from websockets.exceptions import InvalidStatus, InvalidURI, WebSocketException

        try:
            with_context = self._module.connect(
                self._address.url,
                ssl=self._tls,
                additional_headers=authorization(self._address),
                open_timeout=seconds,
                close_timeout=1,
                max_size=LONGEST,
                max_queue=_WAITING,
                # While messages are not taken, the answer to a ping waits behind them.
                ping_timeout=None,
                proxy=None,
                logger=_quiet(),
            )
            self._connection = with_context.__enter__()
        except InvalidStatus as error:
            status = error.response.status_code
            if status < 500 and status != 429:
                raise SourceError(f"{self._address}: the server answers {status}{advice(status)}") from None
            after = retry_after(error.response.headers.get("Retry-After"))
            raise DisconnectedError(f"the server answers {status}", after) from None
        except InvalidURI as error:
            raise SourceError(f"{self._address}: this cannot be requested: {error.msg}") from None
        except (OSError, WebSocketException) as error:
            refuse_certificate(self._address, error)
            raise DisconnectedError(str(error) or type(error).__name__) from None

    def read(self, most: int, seconds: float) -> Sequence[Message] | None:
        from websockets.exceptions import ConnectionClosed

        assert self._connection is not None
        found: list[Message] = []
        size = 0
        try:
            while len(found) < most and size < ENOUGH_BYTES:
                value = self._connection.recv(timeout=0 if found else seconds, decode=False)
                self._count += 1
                found.append(Message(bytes(value), f"message {self._count}", now()))
                size += len(value)
        except TimeoutError:
            pass
        except ConnectionClosed as closed:
            if found:
                return found  # the next call raises it again
            if closed.rcvd is not None and closed.rcvd.code == _NORMAL:
                return None
            if closed.sent is not None and closed.sent.code == _TOO_BIG:
                self._count += 1
                problem = f"a message of more than {LONGEST} bytes: the connection was made anew"
                self._connection.close()
                self.open(10)
                return [Message(b"", f"message {self._count}", now(), problem)]
            raise DisconnectedError(str(closed)) from None
        return found

    def done(self, messages: Sequence[Message]) -> None:
        """Do nothing: a WebSocket does not send messages again."""

    @property
    def place(self) -> Place:
        """Return an empty position: a WebSocket cannot resume."""
        return {}

    def resume(self, place: Place) -> None:
        """Do nothing: reading continues with the next message."""

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _quiet() -> logging.Logger:
    """Return a logger for the client that suppresses DEBUG, which would log each header."""
    logger = logging.getLogger("websockets.spaseq")
    logger.setLevel(max(logging.INFO, logger.level))
    return logger


def authorization(address: Address) -> dict[str, str]:
    """Return the header with the credentials of a URL: its token, or its user and password."""
    if token := address.text("token"):
        return {"Authorization": f"Bearer {token}"}
    if address.user:
        pair = b64encode(f"{address.user}:{address.password}".encode()).decode()
        return {"Authorization": f"Basic {pair}"}
    return {}


def advice(status: int) -> str:
    """Return what to do about an HTTP status."""
    if status in (401, 403):
        return ": it wants credentials: USER:PASSWORD@ before the host, or ?token="
    if status == 404:
        return ": there is nothing at this path"
    return ""


def refuse_certificate(address: Address, error: BaseException) -> None:
    """Raise SourceError if the server's certificate is invalid: reconnecting would fail again."""
    cause: BaseException | None = error
    while cause is not None:
        if "CERTIFICATE_VERIFY_FAILED" in str(cause):
            raise SourceError(
                f"{address}: the server's certificate is not trusted: {cause}. "
                "Is it signed by yourself, ?ca=FILE names the certificate that signed it"
            ) from None
        cause = cause.__cause__ or cause.__context__
