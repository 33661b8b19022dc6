"""Results by URL: each match is a record, delivered at least once; query and number identify duplicates.

``transactions`` delivers exactly once to Kafka, with a state.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Protocol

from spaseq.connect.address import Address, parse_address
from spaseq.connect.clients._extra import context, required
from spaseq.connect.live import CONNECT
from spaseq.connect.reconnect import DisconnectedError, Retries, retry_after
from spaseq.errors import SinkError, SourceError

#: Default seconds in which a sink must accept records; ``retry=`` sets it.
PATIENCE: Final = 60.0

#: The most bytes of a request, unless one record is longer.
_REQUEST: Final = 1 << 20

#: The most messages in flight to an MQTT broker.
_INFLIGHT: Final = 100


@dataclass(frozen=True, slots=True)
class SinkRecord:
    """A match to be sent: the name of its query, its number there (from 1), and its bytes."""

    query: str
    number: int
    value: bytes


class Sink(Protocol):
    """A destination of records. One thread uses it.

    Every call raises SinkError, with the number delivered, if records cannot be delivered.
    """

    @property
    def delivered(self) -> int:
        """Return how many records are known to be delivered."""

    def write(self, records: Sequence[SinkRecord]) -> None:
        """Send records, in order; they may not be delivered yet on return."""

    def flush(self) -> None:
        """Return when everything written is delivered."""

    def close(self) -> None:
        """End the connection. Unflushed records may be lost."""


def open_sink(url: str, media: str = "application/x-ndjson") -> Sink:
    """Return the sink of a URL, connected if it has a connection. ``media``: the type of records.

    Raises SourceError for an error in the URL, SinkError if the server does not answer.
    """
    address, _, _ = parse_address(url, sink=True)
    match address.scheme:
        case "kafka":
            return _KafkaSink(address)
        case "mqtt" | "mqtts":
            return _MqttSink(address)
        case _:
            return _HttpSink(address, media)


def failed(address: Address, delivered: int, why: str) -> SinkError:
    """Return the error for records that cannot be delivered; ``delivered``: how many were."""
    return SinkError(f"{address}: {why}; {delivered} records were delivered before", delivered=delivered)


def key_and_headers(record: SinkRecord) -> tuple[bytes | None, list[tuple[str, bytes]]]:
    """Return the key and headers of a Kafka message: the query, which decides its partition; the record's
    number.
    """
    name = record.query.encode()
    return name or None, [("query", name), ("number", str(record.number).encode())]


class _KafkaSink:
    """An idempotent producer: the broker keeps the order and drops duplicates of resent records."""

    def __init__(self, address: Address) -> None:
        from spaseq.connect.clients.kafka import configuration

        self._kafka = required("confluent_kafka", "kafka")
        self._address = address
        self._patience = address.seconds("retry", PATIENCE)
        self.delivered = 0
        self._error = ""
        try:
            self._producer = self._kafka.Producer(
                configuration(address)
                | {
                    "enable.idempotence": True,
                    "linger.ms": 5,
                    "message.timeout.ms": max(1, int(self._patience * 1000)),
                    "allow.auto.create.topics": False,
                    "error_cb": self._fatal,
                }
            )
        except (self._kafka.KafkaException, ValueError) as error:
            raise SourceError(f"{address}: {error}") from None
        seconds = address.seconds("connect", CONNECT)
        try:
            self._producer.list_topics(timeout=seconds)
        except self._kafka.KafkaException as error:
            raise failed(
                address, 0, f"no broker answers within {seconds:g} s ({error.args[0].str()})"
            ) from None

    def write(self, records: Sequence[SinkRecord]) -> None:
        for record in records:
            key, headers = key_and_headers(record)
            while True:
                self._check()
                try:
                    self._producer.produce(
                        self._address.path,
                        record.value,
                        key=key,
                        headers=headers,
                        on_delivery=self._told,
                    )
                    break
                except BufferError:  # the queue is full: some must be sent first
                    self._producer.poll(0.1)
                except self._kafka.KafkaException as error:
                    raise failed(self._address, self.delivered, error.args[0].str()) from None
        self._producer.poll(0)
        self._check()

    def flush(self) -> None:
        # Each message fails by itself after its timeout.
        left = self._producer.flush(self._patience + 5)
        self._check()
        if left:
            raise failed(self._address, self.delivered, f"{left} records were not delivered in time")

    def close(self) -> None:
        self._producer.purge()
        self._producer.flush(1)

    def _told(self, error: Any, _message: Any) -> None:
        if error is None:
            self.delivered += 1
        else:
            self._error = self._error or error.str()

    def _fatal(self, error: Any) -> None:
        if error.fatal():
            self._error = self._error or error.str()

    def _check(self) -> None:
        if self._error:
            raise failed(self._address, self.delivered, self._error)


class _MqttSink:
    """Publishes with QoS 1, or ``qos=``; a match's query and number are user properties."""

    def __init__(self, address: Address) -> None:
        from spaseq.connect.clients.mqtt import client_of, connect

        self._address = address
        self._qos = int(address.text("qos", "1"))
        self._patience = address.seconds("retry", PATIENCE)
        self.delivered = 0
        self._waiting = threading.Condition()
        self._open: set[int] = set()
        self._early: set[int] = set()
        self._gone = ""
        self._client = client_of(address)
        self._client.max_inflight_messages_set(_INFLIGHT)
        self._client.on_publish = self._published
        self._client.on_disconnect = self._lose
        seconds = address.seconds("connect", CONNECT)
        try:
            connect(self._client, address, seconds, 0, None)
        except DisconnectedError as error:
            self.close()
            raise failed(address, 0, f"no connection ({error})") from None
        except BaseException:
            self.close()
            raise

    def write(self, records: Sequence[SinkRecord]) -> None:
        from paho.mqtt.packettypes import PacketTypes
        from paho.mqtt.properties import Properties

        for record in records:
            self._wait(_INFLIGHT - 1)
            properties = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]  # paho says no types
            properties.UserProperty = [("query", record.query), ("number", str(record.number))]
            sent = self._client.publish(self._address.path, record.value, self._qos, properties=properties)
            with self._waiting:
                if sent.mid in self._early:
                    self._early.discard(sent.mid)
                else:
                    self._open.add(sent.mid)

    def flush(self) -> None:
        self._wait(0)

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()

    def _wait(self, most: int) -> None:
        """Wait until at most ``most`` messages are in flight."""
        deadline = time.monotonic() + self._patience
        with self._waiting:
            while len(self._open) > most and not self._gone:
                self._waiting.wait(min(1.0, max(0.0, deadline - time.monotonic())))
                if len(self._open) > most and time.monotonic() >= deadline:
                    self._gone = f"no answer of the broker within {self._patience:g} s"
            if self._gone:
                raise failed(self._address, self.delivered, self._gone)

    def _published(self, _client: Any, _data: Any, number: int, reason: Any, _properties: Any) -> None:
        with self._waiting:
            if reason is not None and reason.is_failure:
                self._gone = f"the broker refuses a record: {reason}"
            elif number in self._open:
                self._open.discard(number)
                self.delivered += 1
            else:  # before ``publish`` has returned its number
                self._early.add(number)
                self.delivered += 1
            self._waiting.notify_all()

    def _lose(self, _client: Any, _data: Any, _flags: Any, reason: Any, _properties: Any) -> None:
        with self._waiting:
            self._gone = self._gone or f"the connection was lost ({reason})"
            self._waiting.notify_all()


class _HttpSink:
    """Posts records, several per request, one per line; a request is retried until it is accepted.

    ``Idempotency-Key`` names the first record of a request; a retried request has the same key.
    """

    def __init__(self, address: Address, media: str, *, wait: Callable[[float], None] = time.sleep) -> None:
        from spaseq.connect.clients.websocket import authorization

        httpx = required("httpx", "http")
        self._errors = httpx.TransportError
        self._address = address
        self._headers = {"Content-Type": media} | authorization(address)
        self._wait = wait
        self.delivered = 0
        seconds = address.seconds("connect", CONNECT)
        # Not a client of httpx, which logs each URL with its query.
        self._transport = httpx.HTTPTransport(verify=context(address) or True, trust_env=False)
        self._request = partial(
            httpx.Request, "POST", address.url, extensions={"timeout": httpx.Timeout(seconds).as_dict()}
        )

    def write(self, records: Sequence[SinkRecord]) -> None:
        batch: list[SinkRecord] = []
        size = 0
        for record in records:
            if batch and size + len(record.value) > _REQUEST:
                self._post(batch)
                batch, size = [], 0
            batch.append(record)
            size += len(record.value)
        if batch:
            self._post(batch)

    def flush(self) -> None:
        """Do nothing: everything written was accepted."""

    def close(self) -> None:
        self._transport.close()

    def _post(self, records: Sequence[SinkRecord]) -> None:
        body = b"".join(record.value for record in records)
        first = records[0]
        headers = self._headers | {"Idempotency-Key": f"{_latin(first.query)}/{first.number}"}
        retries = Retries(self._address.seconds("retry", PATIENCE))
        while True:
            try:
                answer = self._transport.handle_request(self._request(content=body, headers=headers))
                answer.read()
                after = retry_after(answer.headers.get("Retry-After"))
            except self._errors as error:
                from spaseq.connect.clients.websocket import refuse_certificate

                refuse_certificate(self._address, error)
                why, after = str(error) or type(error).__name__, 0.0
            else:
                if answer.is_success:
                    self.delivered += len(records)
                    return
                asks = f", and asks to wait for {after:g} s" if after else ""
                why = f"the server answers {answer.status_code}{asks}"
                if answer.status_code < 500 and answer.status_code not in (408, 425, 429):
                    raise failed(self._address, self.delivered, why)
            delay = retries.wait(after)
            if delay is None:
                raise failed(self._address, self.delivered, why)
            self._wait(delay)


def _latin(text: str) -> str:
    """Return a name in a form that headers allow."""
    return text.encode("ascii", "backslashreplace").decode()
