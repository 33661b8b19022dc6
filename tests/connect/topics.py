"""Topics of Kafka, written and read by the tests."""

from __future__ import annotations

from typing import Any

import pytest

from tests.connect.servers import PATIENCE, until

kafka = pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed (the extra kafka)")


def produce(server: str, topic: str, *values: bytes | None, partition: int = 0) -> None:
    producer = kafka.Producer({"bootstrap.servers": server})
    for value in values:
        producer.produce(topic, value, partition=partition)
    assert producer.flush(PATIENCE) == 0


def partitions(server: str, topic: str) -> list[int]:
    """Those of a topic, once it has some: who asks for one that is not there has it made, but not at once."""
    asking = kafka.Producer({"bootstrap.servers": server})
    found: list[int] = []

    def are_there() -> bool:
        found.extend(asking.list_topics(topic, PATIENCE).topics[topic].partitions)
        return bool(found)

    until(are_there)
    return found


def records(server: str, topic: str, count: int) -> list[tuple[str, int]]:
    """The query and the number of the committed records of a topic, once there are so many.

    By partition, which a query has one of.
    """
    consumer = kafka.Consumer(
        {"bootstrap.servers": server, "group.id": "tests", "isolation.level": "read_committed"}
    )
    there = consumer.list_topics(topic, timeout=PATIENCE).topics[topic].partitions
    consumer.assign([kafka.TopicPartition(topic, partition, 0) for partition in there])
    got: list[Any] = []

    def all_are_there() -> bool:
        got.extend(message for message in consumer.consume(5_000, 0.5) if message.error() is None)
        return sum(message.headers() is not None for message in got) >= count

    until(all_are_there)
    got.extend(consumer.consume(5_000, 1.0))  # what should not be there
    consumer.close()
    headers = [dict(message.headers()) for message in got if message.headers()]
    return [(found["query"].decode(), int(found["number"])) for found in headers]
