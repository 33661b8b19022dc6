"""MQTT by mosquitto, Kafka by a real broker, where they are; and Kafka by librdkafka's own mock."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import spaseq
from spaseq.connect import reconnect
from spaseq.connect.sinks import SinkRecord, open_sink
from spaseq.errors import SinkError, SourceError
from spaseq.sources import BadEvent
from tests.connect.conftest import Tls
from tests.connect.events import EX, event, found, limited
from tests.connect.servers import PATIENCE, Mosquitto, free_port, mosquitto, until
from tests.connect.test_going_on import Going
from tests.connect.topics import partitions, produce

kafka = pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed (the extra kafka)")
mqtt = pytest.importorskip("paho.mqtt.client", reason="paho-mqtt is not installed (the extra mqtt)")


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lost connections are made again after hundredths of a second."""
    monkeypatch.setattr(reconnect, "FIRST", 0.02)


class Taking(threading.Thread):
    """A run in a thread: ``values`` are those found so far."""

    def __init__(self, source: object, query: str, **options: Any) -> None:
        super().__init__()
        self.values: list[int] = []
        self.error: Exception | None = None
        self._run = lambda: spaseq.run(query, {"S": source}, matcher="reference", **options)  # type: ignore[dict-item]
        self.start()

    def run(self) -> None:
        try:
            for match in self._run():
                self.values.append(int(str(match.bindings[0]["v"])))
        except Exception as error:
            self.error = error

    def all(self) -> list[int]:
        self.join(PATIENCE)
        assert not self.is_alive()
        if self.error is not None:
            raise self.error
        return self.values


# --- MQTT ---------------------------------------------------------------------------------------


@pytest.fixture
def mosquito(tmp_path: Path) -> Iterator[Mosquitto]:
    with mosquitto(tmp_path) as running:
        yield running


class Publisher:
    """A client of MQTT that sends events."""

    def __init__(self, port: int) -> None:
        self._client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, protocol=mqtt.MQTTv5)
        self._client.connect("127.0.0.1", port)
        self._client.loop_start()

    def __enter__(self) -> Publisher:
        return self

    def send(self, topic: str, value: bytes, retain: bool = False) -> None:
        self._client.publish(topic, value, 1, retain=retain).wait_for_publish(PATIENCE)

    def __exit__(self, *_: object) -> None:
        self._client.disconnect()
        self._client.loop_stop()


def test_messages_of_mqtt(mosquito: Mosquitto) -> None:
    letters: list[BadEvent] = []
    url = f"mqtt://127.0.0.1:{mosquito.port}/t/#?format=nq"
    with Publisher(mosquito.port) as publisher:
        publisher.send("t/a", event(0), retain=True)  # which says when the subscription is there
        taking = Taking(url, limited(20), dead_letters=letters.append)
        until(lambda: taking.values)
        publisher.send("t/b", b"no quads")
        for n in range(1, 20):
            publisher.send("t/a/b", event(n))
        assert taking.all() == [*range(20)]
    assert [letter.position for letter in letters] == ["topic t/b, message 2"]


def test_what_comes_while_the_broker_is_away_or_the_client_is_not_lost(mosquito: Mosquitto) -> None:
    url = f"mqtt://127.0.0.1:{mosquito.port}/t?format=nq"
    with Publisher(mosquito.port) as publisher:
        publisher.send("t", event(0), retain=True)
        taking = Taking(url, limited(6))
        until(lambda: taking.values)
    mosquito.stop()
    mosquito.start()
    with Publisher(mosquito.port) as publisher:
        for n in range(1, 6):
            publisher.send("t", event(n))
        # Whatever was not settled when the broker went comes again: it is late, and left out.
        assert sorted(set(taking.all())) == [*range(6)]


def test_a_named_client_goes_on_where_it_was(mosquito: Mosquitto) -> None:
    url = f"mqtt://127.0.0.1:{mosquito.port}/t?format=nq&client=me"
    with Publisher(mosquito.port) as publisher:
        publisher.send("t", event(0), retain=True)
        taking = Taking(url, limited(1))
        assert taking.all() == [0]
        for n in range(1, 4):
            publisher.send("t", event(n))
        again = Taking(url, limited(3)).all()
    assert set(again) <= {0, 1, 2, 3}
    assert {1, 2} <= set(again)


def test_mqtt_over_tls(tmp_path: Path, tls: Tls) -> None:
    with mosquitto(tmp_path, f"certfile {tls.certificate}\nkeyfile {tls.key}\n") as running:
        with pytest.raises(SourceError, match="certificate is not trusted"):
            found(f"mqtts://127.0.0.1:{running.port}/t?format=nq")
        sink = open_sink(f"mqtts://127.0.0.1:{running.port}/t?ca={tls.ca}")
        sink.write([SinkRecord("q", 1, b"{}")])
        sink.flush()
        assert sink.delivered == 1
        sink.close()


def test_no_broker_of_mqtt() -> None:
    with pytest.raises(SourceError, match=r"no connection within 0\.2 s"):
        found(f"mqtt://127.0.0.1:{free_port()}/t?format=nq&connect=200ms")
    with pytest.raises(SinkError, match=r"no connection .*; 0 records were delivered before"):
        open_sink(f"mqtt://127.0.0.1:{free_port()}/t")


def test_records_to_mqtt(mosquito: Mosquitto) -> None:
    sink = open_sink(f"mqtt://127.0.0.1:{mosquito.port}/out")
    got: list[Any] = []
    subscribed = threading.Event()
    client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, protocol=mqtt.MQTTv5)
    client.on_message = lambda _c, _d, message: got.append(message)
    client.on_subscribe = lambda *_: subscribed.set()
    client.connect("127.0.0.1", mosquito.port)
    client.subscribe("out", 1)
    client.loop_start()
    assert subscribed.wait(PATIENCE)
    sink.write([SinkRecord("q", n, b"%d" % n) for n in range(1, 301)])
    sink.flush()
    assert sink.delivered == 300
    until(lambda: len(got) == 300)
    assert [message.payload for message in got] == [b"%d" % n for n in range(1, 301)]
    assert got[6].properties.UserProperty == [("query", "q"), ("number", "7")]
    mosquito.stop()
    with pytest.raises(SinkError, match="300 records were delivered before"):
        sink.write([SinkRecord("q", n, b"") for n in range(301, 900)])
    sink.close()
    client.disconnect()
    client.loop_stop()


# --- Kafka --------------------------------------------------------------------------------------


def test_messages_of_kafka(cluster: str) -> None:
    letters: list[BadEvent] = []
    produce(cluster, "first", event(0), b"no quads", None, *map(event, range(1, 50)))
    url = f"kafka://{cluster}/first?format=nq&connect=60s"
    assert found(url, limited(50), dead_letters=letters.append) == [*range(50)]
    assert [letter.position for letter in letters] == [
        f"topic first, partition 0, offset {n}" for n in (1, 2)
    ]
    assert letters[1].reason == "the message has no value"


def test_a_group_goes_on_behind_what_was_processed(cluster: str) -> None:
    produce(cluster, "grouped", *map(event, range(3)))
    url = f"kafka://{cluster}/grouped?format=nq&group=g&connect=60s"
    taking = Taking(url, limited(6))
    until(lambda: len(taking.values) == 3)
    produce(cluster, "grouped", *map(event, range(3, 6)))
    assert taking.all() == [*range(6)]
    # Whether the last batch was known to be processed is a matter of moments: no other comes again.
    produce(cluster, "grouped", event(6))
    assert found(url, limited(1))[0] >= 3


@pytest.mark.slow
def test_kafka_from_a_time(servers: str) -> None:
    produce(servers, "times", *map(event, range(3)))
    assert found(f"kafka://{servers}/times?format=nq&from=2020-01-01&connect=60s", limited(3)) == [0, 1, 2]


@pytest.mark.slow
def test_kafka_from_the_end(cluster: str) -> None:
    produce(cluster, "timed", *map(event, range(3)))
    taking = Taking(f"kafka://{cluster}/timed?format=nq&from=latest&connect=60s", limited(1))
    # When it is there nobody says: something new is sent until it is seen.
    number = 3
    while taking.is_alive():
        produce(cluster, "timed", event(number))
        taking.join(0.2)
        number += 1
    assert taking.all()[0] >= 3


def test_a_history_then_kafka_without_gap_or_double(cluster: str, tmp_path: Path) -> None:
    history = tmp_path / "past.nq"
    history.write_bytes(b"".join(map(event, range(30))))
    produce(cluster, "seam", *map(event, range(20, 50)))
    live = spaseq.connect.source(f"kafka://{cluster}/seam?format=nq&connect=60s", history=history)
    assert found(live, limited(50)) == [*range(50)]


@pytest.mark.slow
def test_no_broker_of_kafka() -> None:
    with pytest.raises(SourceError, match="no connection within"):
        found(f"kafka://127.0.0.1:{free_port()}/t?format=nq&connect=300ms")
    with pytest.raises(SinkError, match="no broker answers"):
        open_sink(f"kafka://127.0.0.1:{free_port()}/t?connect=300ms")


@pytest.mark.slow
def test_a_topic_with_another_name(servers: str) -> None:
    produce(servers, "trades", event(0))
    with pytest.raises(SourceError, match="has no topic 'trade': did you mean 'trades'"):
        found(f"kafka://{servers}/trade?format=nq&connect=60s")


def test_a_user_needs_to_say_how_the_password_is_sent() -> None:
    with pytest.raises(SourceError, match=r"security\.protocol=sasl_ssl") as raised:
        found("kafka://me:hush@127.0.0.1/t?format=nq")
    assert "hush" not in str(raised.value)


@pytest.mark.slow
def test_the_offsets_of_kafka_are_in_the_state(mock: str, tmp_path: Path) -> None:
    going = Going(tmp_path)
    url = f"kafka://{mock}/offsets?format=nq&connect=60s"
    produce(mock, "offsets", event(0), event(1))
    assert going.take(url, 2) == [0, 1]
    produce(mock, "offsets", event(2), event(3))
    assert going.take(url, 2, commits=False) == [2, 3]
    assert going.take(f"{url}&from=latest&group=g", 2) == [2, 3]
    with pytest.raises(SourceError, match="was read of topic offsets of Kafka before"):
        going.take(url.replace("offsets", "another"), 1)


def test_records_to_kafka(cluster: str) -> None:
    produce(cluster, "out", b"before")
    sink = open_sink(f"kafka://{cluster}/out?connect=60s")
    sink.write([SinkRecord("q", n, json.dumps({"n": n}).encode()) for n in range(1, 201)])
    sink.flush()
    assert sink.delivered == 200
    sink.close()
    consumer = kafka.Consumer({"bootstrap.servers": cluster, "group.id": "x"})
    wanted = [kafka.TopicPartition("out", p, 0) for p in consumer.list_topics("out").topics["out"].partitions]
    consumer.assign(wanted)
    got: list[Any] = []

    def all_are_there() -> bool:
        got.extend(message for message in consumer.consume(500, 0.5) if message.error() is None)
        return len(got) >= 201

    until(all_are_there)
    consumer.close()
    records = [message for message in got if message.headers()]
    assert [json.loads(message.value())["n"] for message in records] == [*range(1, 201)]
    assert records[6].headers() == [("query", b"q"), ("number", b"7")]


def test_matches_of_one_run_are_the_events_of_another(cluster: str) -> None:
    from spaseq.connect.writing import RecordWriter
    from spaseq.results import Format

    produce(cluster, "in", *map(event, range(5)))
    # First in each partition: a query's records are in one of them, and no more is read than needed.
    for partition in partitions(cluster, "between"):
        produce(cluster, "between", b"", partition=partition)
    head = "CONSTRUCT { <urn:y> <http://example.org/v> ?v }"
    query = spaseq.prepare(limited(5).replace("SELECT ?v", head))
    sink = open_sink(f"kafka://{cluster}/between?connect=60s")
    writer = RecordWriter(Format.NQUADS, query, "q", sink)
    source = f"kafka://{cluster}/in?format=nq&connect=60s"
    for match in spaseq.run(query, {"S": source}, matcher="reference"):
        writer.match(match)
    writer.close()
    sink.close()
    letters: list[BadEvent] = []
    url = f"kafka://{cluster}/between?format=nq&connect=60s"
    assert found(url, limited(5), dead_letters=letters.append) == [*range(5)]
    assert f"{EX}s" in letters[0].stream
