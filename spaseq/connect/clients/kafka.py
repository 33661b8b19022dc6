"""``kafka://``: the messages of a topic, by confluent-kafka (librdkafka).

One client reads all partitions, because a query needs all of them. The consumer group only stores offsets,
which are committed for processed messages.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from spaseq.connect.address import Address
from spaseq.connect.again import Place, same
from spaseq.connect.clients._extra import required
from spaseq.connect.messages import Message, now
from spaseq.connect.reconnect import DisconnectedError
from spaseq.errors import SourceError
from spaseq.language.reading.hints import nearest
from spaseq.sources._bytes import LONGEST

#: Kilobytes fetched ahead.
_AHEAD_KB: Final = 16_384

#: Seconds between two checks for new partitions.
_LOOK: Final = 60.0

#: librdkafka's log is off by default: important errors are raised.
_LOG: Final = logging.getLogger("spaseq.connect.clients.kafka")
_LOG.addHandler(logging.NullHandler())
_LOG.propagate = False


def configuration(address: Address) -> dict[str, Any]:
    """Return librdkafka's configuration of the servers and of the credentials."""
    given = {
        name: value
        for name, value in address.settings
        if "." in name  # librdkafka's names; ours have no dot
    }
    if address.user:
        given.setdefault("sasl.username", address.user)
        given.setdefault("sasl.password", address.password)
        given.setdefault("sasl.mechanism", "PLAIN")
        if "security.protocol" not in given:
            raise SourceError(
                f"{address}: a user needs security.protocol=sasl_ssl (or sasl_plaintext, which sends the "
                "password as it is)"
            )
    return {"bootstrap.servers": address.servers, "client.id": "spaseq", "logger": _LOG, **given}


class KafkaClient:
    """Reads a topic: from ``from=``, or from the offset of its ``group=``, or from the earliest message."""

    def __init__(self, address: Address) -> None:
        self._kafka = required("confluent_kafka", "kafka")
        self._address = address
        self._group = address.text("group")
        self._consumer: Any = None
        # By partition, the offset of the next message to read.
        self._next: dict[int, int] = {}
        self._is_resumed = False
        #: Where to begin, instead of ``from=``: milliseconds since 1970.
        self.since: int | None = None
        self._down: str = ""
        self._looked = 0.0

    def open(self, seconds: float) -> None:
        self._down = ""
        try:
            self._consumer = self._kafka.Consumer(
                configuration(self._address)
                | {
                    "group.id": self._group or "spaseq",
                    "enable.auto.commit": False,
                    "enable.auto.offset.store": False,
                    "auto.offset.reset": "error",
                    "queued.max.messages.kbytes": _AHEAD_KB,
                    "fetch.message.max.bytes": 1 << 20,
                    "receive.message.max.bytes": LONGEST + 512,
                    "fetch.max.bytes": LONGEST,
                    "error_cb": self._fail,
                }
            )
        except (self._kafka.KafkaException, ValueError) as error:
            raise SourceError(f"{self._address}: {_said(error)}") from None
        try:
            self._assign(self._partitions(seconds), seconds)
        except self._kafka.KafkaException as error:
            raise DisconnectedError(_said(error)) from None

    def read(self, most: int, seconds: float) -> Sequence[Message] | None:
        try:
            found = self._consumer.consume(most, seconds)
            if not found:
                if self._down:
                    raise DisconnectedError(self._down)
                if time.monotonic() - self._looked > _LOOK:
                    self._look()
        except self._kafka.KafkaException as error:
            raise DisconnectedError(_said(error)) from None
        if found:
            self._down = ""
        return [message for each in found if (message := self._message(each)) is not None]

    def done(self, messages: Sequence[Message]) -> None:
        if not self._group:
            return
        last = dict(cast("tuple[int, int]", message.token) for message in messages)
        at = [self._place(partition, offset + 1) for partition, offset in last.items()]
        self._consumer.commit(offsets=at, asynchronous=True)

    def close(self) -> None:
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None

    @property
    def place(self) -> Place:
        return {"of": self._of, "next": {str(part): offset for part, offset in self._next.items()}}

    def resume(self, place: Place) -> None:
        same(place, self._of, str(self._address))
        self._next = {int(part): offset for part, offset in place["next"].items()}
        self._is_resumed = bool(self._next)

    @property
    def _of(self) -> str:
        return f"topic {self._address.path} of Kafka"

    # --- inside ---------------------------------------------------------------------------------

    def _message(self, message: Any) -> Message | None:
        error = message.error()
        if error is not None:
            self._error(error)
            return None
        partition, offset, value = message.partition(), message.offset(), message.value()
        self._next[partition] = offset + 1
        kind, millis = message.timestamp()
        arrived = now() if kind == self._kafka.TIMESTAMP_NOT_AVAILABLE else millis * 1_000
        place = f"topic {self._address.path}, partition {partition}, offset {offset}"
        problem = "the message has no value" if value is None else ""
        return Message(value or b"", place, arrived, problem, (partition, offset))

    def _error(self, error: Any) -> None:
        codes = self._kafka.KafkaError
        if error.code() in (codes.OFFSET_OUT_OF_RANGE, codes._AUTO_OFFSET_RESET):
            raise SourceError(
                f"{self._address}: the messages that are wanted next are gone ({error.str()}): "
                "begin elsewhere, with from=earliest, or keep them longer there (retention.ms)"
            )
        if error.code() in (codes.TOPIC_AUTHORIZATION_FAILED, codes.UNKNOWN_TOPIC_OR_PART):
            raise SourceError(f"{self._address}: {error.str()}")
        if error.code() != codes._PARTITION_EOF:
            raise DisconnectedError(error.str())

    def _fail(self, error: Any) -> None:
        """Handle librdkafka's connection errors, in the reading thread."""
        if error.code() in (self._kafka.KafkaError._ALL_BROKERS_DOWN, self._kafka.KafkaError._AUTHENTICATION):
            self._down = error.str()

    def _partitions(self, seconds: float) -> list[int]:
        """Return the partitions of the topic. Raises SourceError if there is no such topic."""
        topic = self._address.path
        try:
            found = self._consumer.list_topics(topic, timeout=seconds).topics[topic]
        except self._kafka.KafkaException as error:
            self._consumer.poll(0)  # reports connection errors
            raise DisconnectedError(self._down or _said(error)) from None
        if found.error is not None:
            if found.error.code() != self._kafka.KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise DisconnectedError(found.error.str())
            known = [name for name in self._consumer.list_topics(timeout=seconds).topics if name[:2] != "__"]
            alike = nearest(topic, known)
            hint = f"did you mean {alike!r}?" if alike else f"it has {len(known)} others"
            raise SourceError(f"{self._address}: Kafka there has no topic {topic!r}: {hint}")
        self._looked = time.monotonic()
        return sorted(found.partitions)

    def _assign(self, partitions: Sequence[int], seconds: float) -> None:
        new = [partition for partition in partitions if partition not in self._next]
        # Partitions that were added since the last run are read from their first message.
        self._next |= dict.fromkeys(new, 0) if self._is_resumed else self._beginnings(new, seconds)
        at = [self._place(partition, offset) for partition, offset in self._next.items()]
        self._consumer.assign(at)

    def _beginnings(self, partitions: Sequence[int], seconds: float) -> Mapping[int, int]:
        """Return the offsets at which to begin reading partitions."""
        consumer = self._consumer
        settings = dict(self._address.settings)
        begin = settings.get("from", "earliest" if self.since is None else self.since)
        if "from" not in settings and self._group and partitions:
            committed = consumer.committed([self._place(p) for p in partitions], timeout=seconds)
            at = {place.partition: place.offset for place in committed if place.offset >= 0}
        else:
            at = {}
        if isinstance(begin, int):
            wanted = [self._place(p, begin) for p in partitions if p not in at]
            found = consumer.offsets_for_times(wanted, timeout=seconds) if wanted else []
            # In the other partitions no message is that late: begin at their end.
            at |= {place.partition: place.offset for place in found if place.offset >= 0}
            begin = "latest"
        for partition in partitions:
            if partition not in at:
                # The end as a number, so that messages that arrive before the client is assigned are read.
                low, high = consumer.get_watermark_offsets(self._place(partition), timeout=seconds)
                at[partition] = low if begin == "earliest" else high
        return at

    def _look(self) -> None:
        """Add new partitions, from their first message."""
        partitions = self._partitions(_LOOK / 6)
        new = [partition for partition in partitions if partition not in self._next]
        if new:
            self._next |= dict.fromkeys(new, 0)
            self._consumer.incremental_assign([self._place(partition, 0) for partition in new])

    def _place(self, partition: int, offset: int | None = None) -> Any:
        """Return a partition of the topic, optionally with an offset."""
        rest = () if offset is None else (offset,)
        return self._kafka.TopicPartition(self._address.path, partition, *rest)


def _said(error: Exception) -> str:
    """Return the message of an exception of confluent_kafka."""
    first = error.args[0] if error.args else error
    text: str = first.str() if hasattr(first, "str") else str(first)
    return text
