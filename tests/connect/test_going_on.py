"""Live sources of an engine with a state: the next engine goes on where the last commit was."""

from __future__ import annotations

from pathlib import Path

import pytest

import spaseq
from spaseq.connect import reconnect, source
from spaseq.engine.durable import summary
from spaseq.sources import BadEvent
from tests.connect.events import QUERY, STREAM, event, server_sent
from tests.connect.servers import PATIENCE, Answer, HttpServer, http, mosquitto


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reconnect, "FIRST", 0.02)


class Going:
    """Engines with one state, one after the other. ``letters``: the places of bad events."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "state"
        self.letters: list[str] = []

    def take(self, location: object, count: int, *, commits: bool = True) -> list[int]:
        """The values of the next events, so many at least; all is lost of an engine that does not commit."""

        def told(letter: BadEvent) -> None:
            self.letters.append(letter.payload)

        values: list[int] = []
        engine = spaseq.Engine(state=self.path, commit_every=None, dead_letters=told)
        handle = engine.register(QUERY, name="q")
        try:
            steps = engine.pull(spaseq.Source(STREAM, location))  # type: ignore[arg-type]
            for _ in steps:
                values += [int(str(match.bindings[0]["v"])) for match in handle.matches()]
                if len(values) >= count:
                    if commits:
                        engine.commit()
                    steps.close()
        finally:
            engine.abandon()
        return values


@pytest.fixture
def going(tmp_path: Path) -> Going:
    return Going(tmp_path)


def add(path: Path, *parts: bytes) -> None:
    with path.open("ab") as file:
        file.write(b"".join(parts))


def test_a_followed_file(going: Going, tmp_path: Path) -> None:
    path = tmp_path / "s.nq"
    url = f"file:{path}?follow"
    bad = event(9).replace(b'"9"', b'"nine"', 1)
    add(path, event(0), bad, event(1), event(2), event(3))
    assert going.take(url, 3) == [0, 1, 2]
    add(path, event(4), event(5))
    assert going.take(url, 2, commits=False) == [3, 4]
    assert going.take(url, 2) == [3, 4]
    assert len(going.letters) == 1
    # It is replaced while nobody reads, and what was added before is read first.
    add(path, event(6))
    path.rename(tmp_path / "s.nq.1")
    add(path, event(7), event(8), event(9))
    assert going.take(url, 4) == [5, 6, 7, 8]
    add(path, event(10))
    assert going.take(url, 1) == [9]
    assert summary(going.path).sources[0].events == 10
    # It is gone, and another is there.
    (tmp_path / "s.nq.1").unlink()
    add(tmp_path / "new", event(20), event(21))
    (tmp_path / "new").rename(path)
    with pytest.warns(spaseq.SpaseqWarning, match="another file than the one that was read before"):
        assert going.take(url, 1) == [20]


def test_a_followed_file_that_was_changed(going: Going, tmp_path: Path) -> None:
    path = tmp_path / "s.nq"
    add(path, event(0), event(1), event(2))
    assert going.take(f"file:{path}?follow", 2) == [0, 1]
    path.write_bytes(event(5) + event(6) + event(7))
    with pytest.raises(spaseq.SourceError, match="are not those that were read before"):
        going.take(f"file:{path}?follow", 1)
    with pytest.raises(spaseq.EngineError, match="this stream was read of"):
        going.take(path, 1)
    path.rename(tmp_path / "t.nq")
    with pytest.raises(spaseq.SourceError, match=r"read of file s\.nq before, not of file t\.nq"):
        going.take(f"file:{tmp_path}/t.nq?follow", 1)


def test_server_sent_events(going: Going) -> None:
    last = Answer([server_sent(range(3, 5))], stays=True)
    with http(Answer([server_sent(range(3))], stays=True), last) as server:
        url = f"http://127.0.0.1:{server.port}/e?format=nq"
        assert going.take(url, 3) == [0, 1, 2]
        assert going.take(url, 2) == [3, 4]
        assert [seen.get("last-event-id") for seen in server.seen] == [None, "2"]


def test_a_history_then_live(going: Going, tmp_path: Path) -> None:
    history = tmp_path / "past.nq"
    add(history, *map(event, range(5)))

    def live(server: HttpServer) -> object:
        return source(f"http://127.0.0.1:{server.port}/e?format=nq", history=history)

    with http(Answer([server_sent(range(3, 8))], stays=True)) as server:
        assert going.take(live(server), 5, commits=False)[:5] == [*range(5)]
        assert going.take(live(server), 8) == [*range(8)]
    other = http(Answer([server_sent([4, *range(8, 10)])], stays=True))
    with other as server, pytest.raises(spaseq.SourceError, match="was read of"):
        going.take(live(server), 2)


def test_messages_of_mqtt_are_acknowledged_when_they_are_in_the_state(going: Going, tmp_path: Path) -> None:
    mqtt = pytest.importorskip("paho.mqtt.client", reason="paho-mqtt is not installed (the extra mqtt)")
    with mosquitto(tmp_path) as running:
        url = f"mqtt://127.0.0.1:{running.port}/t?format=nq&client=me"
        client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, protocol=mqtt.MQTTv5)
        client.connect("127.0.0.1", running.port)
        client.loop_start()
        client.publish("t", event(0), 1, retain=True).wait_for_publish(PATIENCE)
        assert going.take(url, 1) == [0]
        for number in (1, 2):
            client.publish("t", event(number), 1).wait_for_publish(PATIENCE)
        assert set(going.take(url, 2, commits=False)) == {1, 2}
        assert set(going.take(url, 2)) >= {1, 2}
        client.disconnect()
        client.loop_stop()
