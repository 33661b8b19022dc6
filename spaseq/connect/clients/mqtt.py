"""``mqtt://`` and ``mqtts://``: the messages of topics, by paho-mqtt and MQTT 5.

A message of QoS 1 or 2 is acknowledged when it has been processed, and the broker limits unacknowledged
messages: that is the backpressure. Messages of QoS 0 have backpressure by TCP only, and the broker may drop
them.
"""

from __future__ import annotations

import queue
import ssl
import threading
import uuid
from collections.abc import Sequence
from typing import Any, Final, cast

from spaseq.connect.address import Address
from spaseq.connect.again import Place
from spaseq.connect.clients._extra import context, required
from spaseq.connect.live import RETRY
from spaseq.connect.messages import Message, now
from spaseq.connect.reconnect import DisconnectedError
from spaseq.errors import SourceError

#: The most messages in flight or waiting.
WINDOW: Final = 1_000

#: Seconds without traffic after which the broker is pinged.
_KEEPALIVE: Final = 30

#: Permanent errors of a broker (MQTT 5, 3.2.2.2): credentials, rights, names.
_FOR_GOOD: Final = (132, 133, 134, 135, 138, 140, 144)


class _Socket(ssl.SSLSocket):
    """A socket that is closed when its handshake fails: paho leaves it open."""

    def do_handshake(self, block: bool = False) -> None:
        try:
            super().do_handshake(block)
        except OSError:
            self.close()
            raise


def named(address: Address) -> str:
    """Return the client's name: the name in the URL, or a unique one."""
    return address.text("client") or f"spaseq-{uuid.uuid4().hex[:16]}"


def client_of(address: Address, name: str = "", on_message: Any = None) -> Any:
    """Return an unconnected client of paho with the credentials of a URL, for one connection."""
    mqtt = required("paho.mqtt.client", "mqtt")
    client = mqtt.Client(
        mqtt.CallbackAPIVersion.VERSION2,
        client_id=name or named(address),
        protocol=mqtt.MQTTv5,
        manual_ack=on_message is not None,
        reconnect_on_failure=False,
    )
    if address.user:
        client.username_pw_set(address.user, address.password)
    tls = context(address)
    if tls is not None:
        tls.sslsocket_class = _Socket
        client.tls_set_context(tls)
    client.on_message = on_message
    return client


def connect(client: Any, address: Address, seconds: float, session: float, window: int | None) -> None:
    """Connect a client and start its thread; the caller must end it, also after an exception.

    ``session``: seconds for which the broker keeps messages for an absent client. Raises DisconnectedError,
    or SourceError for a permanent error.
    """
    from paho.mqtt.packettypes import PacketTypes
    from paho.mqtt.properties import Properties

    answered, answers = threading.Event(), []

    def on_connect(_client: Any, _data: Any, _flags: Any, reason: Any, _properties: Any) -> None:
        answers.append(reason)
        answered.set()

    properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]  # paho says no types
    properties.SessionExpiryInterval = int(session)
    if window is not None:
        properties.ReceiveMaximum = window
    client.on_connect = on_connect
    client.connect_timeout = seconds
    (host, port) = address.hosts[0]
    try:
        client.connect(host.strip("[]"), port, _KEEPALIVE, clean_start=not session, properties=properties)
    except (OSError, ValueError) as error:
        if "CERTIFICATE_VERIFY_FAILED" in str(error):
            raise SourceError(
                f"{address}: the broker's certificate is not trusted: {error}: see ?ca=FILE"
            ) from None
        raise DisconnectedError(str(error) or type(error).__name__) from None
    client.loop_start()
    if not answered.wait(seconds):
        raise DisconnectedError("the broker does not answer (does it speak MQTT 5?)")
    if answers[0].is_failure:
        if answers[0].value in _FOR_GOOD:
            raise SourceError(f"{address}: the broker refuses: {answers[0]}")
        raise DisconnectedError(f"the broker refuses: {answers[0]}")


class MqttClient:
    """Reads topics. Its session outlives a lost connection, and with ``client=`` the process."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._qos = int(address.text("qos", "1"))
        self._session = address.seconds("retry", RETRY)
        self._ready: queue.Queue[Message] = queue.Queue(WINDOW)
        self._is_closed = threading.Event()
        self._gone: str = ""
        required("paho.mqtt.client", "mqtt")
        context(address)  # reports errors of ca= now
        self._name = named(address)
        self._client: Any = None
        self._granted: queue.Queue[Any] = queue.Queue()
        self._count = 0

    def open(self, seconds: float) -> None:
        from paho.mqtt.subscribeoptions import SubscribeOptions

        # Unacknowledged messages are sent again.
        self._ready = queue.Queue(WINDOW)
        self._gone = ""
        self._is_closed.clear()
        self._client = client_of(self._address, self._name, self._take)
        self._client.on_disconnect = self._lose
        self._client.on_subscribe = self._subscribe
        self._granted = queue.Queue()  # before a message of this connection arrives
        connect(self._client, self._address, seconds, self._session, WINDOW)
        # Retained messages are sent for a new session only, not for each connection.
        options = SubscribeOptions(self._qos, retainHandling=SubscribeOptions.RETAIN_SEND_IF_NEW_SUB)
        self._client.subscribe(self._address.path, options=options)
        try:
            granted = self._granted.get(timeout=seconds)
        except queue.Empty:
            raise DisconnectedError("the broker does not answer to the subscription") from None
        if granted.is_failure:
            raise SourceError(f"{self._address}: the broker refuses the topic: {granted}")

    def read(self, most: int, seconds: float) -> Sequence[Message] | None:
        found: list[Message] = []
        try:
            found.append(self._ready.get(timeout=seconds))
            while len(found) < most:
                found.append(self._ready.get_nowait())
        except queue.Empty:
            if not found and self._gone:
                raise DisconnectedError(self._gone) from None
        return found

    def done(self, messages: Sequence[Message]) -> None:
        for message in messages:
            connection, number, qos = cast("tuple[object, int, int]", message.token)
            # Message numbers belong to a connection: those of an older one are reused.
            if qos and connection is self._granted:
                self._client.ack(number, qos)

    @property
    def place(self) -> Place:
        """Return an empty position: the broker knows what was not acknowledged."""
        return {}

    def resume(self, place: Place) -> None:
        """Do nothing: reading continues with the next message."""

    def close(self) -> None:
        self._is_closed.set()
        if self._client is not None:
            self._client.disconnect()
            self._client.loop_stop()
            self._client = None

    # --- in paho's thread -----------------------------------------------------------------------

    def _take(self, _client: Any, _data: Any, message: Any) -> None:
        self._count += 1
        place = f"topic {message.topic}, message {self._count}"
        token = (self._granted, message.mid, message.qos)
        found = Message(bytes(message.payload), place, now(), token=token)
        while not self._is_closed.is_set():
            try:
                self._ready.put(found, timeout=0.1)
                return
            except queue.Full:
                continue

    def _lose(self, _client: Any, _data: Any, _flags: Any, reason: Any, _properties: Any) -> None:
        self._gone = str(reason)

    def _subscribe(self, _client: Any, _data: Any, _mid: Any, reasons: Any, _properties: Any) -> None:
        self._granted.put(reasons[0])
