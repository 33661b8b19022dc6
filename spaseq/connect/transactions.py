"""Exactly-once delivery to Kafka: each transaction has records and their new total."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final, TypeVar

from spaseq.connect.address import Address
from spaseq.connect.clients._extra import required
from spaseq.connect.clients.kafka import configuration
from spaseq.connect.live import CONNECT
from spaseq.connect.sinks import PATIENCE, SinkRecord, failed, key_and_headers
from spaseq.errors import SinkError, SourceError

T = TypeVar("T")

#: Seconds between two attempts after a temporary error of the broker.
_AGAIN: Final = 0.2


class Transactions:
    """A transactional producer of one topic, and the only one of its ``identity``: it fences off earlier
    ones.

    ``count``: how many records were delivered in committed transactions. It is stored as the offset of the
    topic's partition 0 in the group ``identity``; None if Kafka does not know it (any more). So records and
    count change together, even if a process is killed in between.
    """

    def __init__(self, address: Address, identity: str) -> None:
        """Connect. Raises SourceError for an error in the URL, SinkError if no broker answers."""
        self._kafka = required("confluent_kafka", "kafka")
        self._address = address
        self._patience = address.seconds("retry", PATIENCE)
        self.delivered = 0
        self.count: int | None = None
        shared = configuration(address)
        try:
            self._producer = self._kafka.Producer(
                shared
                | {
                    "transactional.id": identity,
                    "linger.ms": 5,
                    "allow.auto.create.topics": False,
                    # An abandoned transaction is aborted, so that readers can continue.
                    "transaction.timeout.ms": max(1_000, int(self._patience * 1000)),
                }
            )
            self._group = self._kafka.Consumer(
                shared
                | {
                    "group.id": identity,
                    "enable.auto.commit": False,
                    "isolation.level": "read_committed",
                }
            )
        except (self._kafka.KafkaException, ValueError) as error:
            raise SourceError(f"{address}: {error}") from None
        try:
            self._begin(address.seconds("connect", CONNECT))
        except BaseException:
            self.close()
            raise

    def send(self, records: Sequence[SinkRecord], count: int) -> None:
        """Send records in one transaction, after which there are ``count`` in all. Raises SinkError."""
        deadline = time.monotonic() + self._patience
        while True:
            try:
                self._transaction(records, count, deadline)
                break
            except self._kafka.KafkaException as raised:
                error = raised.args[0]
                if not error.txn_requires_abort() or time.monotonic() > deadline:
                    raise self._failed(error) from None
                self._tried(lambda: self._producer.abort_transaction(_left(deadline)), deadline)
                time.sleep(_AGAIN)
        self.count = count
        self.delivered += len(records)

    def close(self) -> None:
        """End the connections. An open transaction is not committed."""
        self._producer.purge()
        with suppress(self._kafka.KafkaException):  # a fenced producer only raises
            self._producer.flush(1)
        self._group.close()

    # --- inside ---------------------------------------------------------------------------------

    def _begin(self, seconds: float) -> None:
        place = self._kafka.TopicPartition(self._address.path, 0)
        try:
            found = self._producer.list_topics(self._address.path, timeout=seconds)
            problem = found.topics[self._address.path].error
            if problem is not None:
                raise failed(self._address, 0, problem.str())
            deadline = time.monotonic() + seconds
            self._tried(lambda: self._producer.init_transactions(_left(deadline)), deadline)
            (at,) = self._tried(lambda: self._group.committed([place], timeout=_left(deadline)), deadline)
        except self._kafka.KafkaException as error:
            why = f"no broker answers within {seconds:g} s ({error.args[0].str()})"
            raise failed(self._address, 0, why) from None
        self.count = at.offset if at.offset >= 0 else None

    def _transaction(self, records: Sequence[SinkRecord], count: int, deadline: float) -> None:
        producer = self._producer
        producer.begin_transaction()
        for record in records:
            key, headers = key_and_headers(record)
            while True:
                try:
                    producer.produce(self._address.path, record.value, key=key, headers=headers)
                    break
                except BufferError:  # the queue is full: some must be sent first
                    producer.poll(0.1)
                    if time.monotonic() > deadline:
                        raise failed(
                            self._address, self.delivered, "the records were not sent in time"
                        ) from None
        at = self._kafka.TopicPartition(self._address.path, 0, count)
        group = self._group.consumer_group_metadata()
        self._tried(lambda: producer.send_offsets_to_transaction([at], group, _left(deadline)), deadline)
        self._tried(lambda: producer.commit_transaction(_left(deadline)), deadline)

    def _tried(self, call: Callable[[], T], deadline: float) -> T:
        """Return the result of a call, retried while the broker has a temporary error."""
        while True:
            try:
                return call()
            except self._kafka.KafkaException as error:
                if not self._passes(error.args[0]) or time.monotonic() > deadline:
                    raise
                time.sleep(_AGAIN)

    def _passes(self, error: Any) -> bool:
        """Return whether an error is temporary, for example because a broker has just started."""
        kinds = self._kafka.KafkaError
        return error.retriable() or error.code() in (
            kinds.NOT_COORDINATOR,
            kinds.COORDINATOR_NOT_AVAILABLE,
            kinds.COORDINATOR_LOAD_IN_PROGRESS,
        )

    def _failed(self, error: Any) -> SinkError:
        why = error.str()
        if error.code() in (self._kafka.KafkaError._FENCED, self._kafka.KafkaError.PRODUCER_FENCED):
            why = "another engine with this state, or with a copy of it, sends there now"
        return failed(self._address, self.delivered, why)


def _left(deadline: float) -> float:
    """Return the seconds until the deadline, at least a little."""
    return max(0.1, deadline - time.monotonic())
