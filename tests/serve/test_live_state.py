"""``spaseq serve --state`` reads live sources, is killed and started again: what came of its events."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest

from tests.connect.events import QUERY, event, server_sent
from tests.connect.servers import mosquitto
from tests.serve.running import PATIENCE, until
from tests.serve.test_process import serving

EVENTS = 300
KILLS = 3


@contextmanager
def sse() -> Iterator[str]:
    """Sends the events after the one that a client has, slowly; after the last it says nothing more."""
    ended = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            try:
                for number in range(int(self.headers.get("Last-Event-ID", -1)) + 1, EVENTS):
                    self.wfile.write(server_sent([number]))
                    if ended.wait(0.01):
                        return
                while not ended.wait(0.2):
                    self.wfile.write(b": \n\n")
            except OSError:  # who asked was killed
                pass

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/events?format=nq"
    finally:
        ended.set()
        server.shutdown()
        thread.join(PATIENCE)
        server.server_close()


def _matches(http: httpx.Client) -> int:
    count: int = http.get("/queries/all").json()["matches"]
    return count


def _killed(folder: Path, url: str, began: threading.Event) -> tuple[int, list[tuple[int, int]]]:
    """How many matches a server has found that was killed; numbers and values of those it still has.

    ``began`` is set when the first is there.
    """
    (folder / "all.rq").write_text(QUERY)
    arguments = (folder / "all.rq", "-s", f"S={url}", "--state", folder / "s.state")
    for kill in range(1, KILLS + 1):
        with serving(*arguments) as (process, at), httpx.Client(base_url=at, timeout=PATIENCE) as http:
            until(lambda: _matches(http) > 0)
            began.set()
            enough = kill * EVENTS // (KILLS + 2)
            until(lambda: _matches(http) > enough)  # noqa: B023  # it is called here
            process.send_signal(signal.SIGKILL)
            process.wait(PATIENCE)
    with serving(*arguments) as (_, at), httpx.Client(base_url=at, timeout=PATIENCE) as http:
        until(lambda: _matches(http) >= EVENTS)
        time.sleep(0.5)  # for what should not come
        lines = http.get("/queries/all/matches?follow=0").text.splitlines()
        found = [match for match in map(json.loads, filter(None, lines)) if "number" in match]
        values = [(match["number"], int(match["bindings"][0]["v"]["value"])) for match in found]
        return _matches(http), values


@pytest.mark.slow
def test_server_sent_events_come_once(tmp_path: Path) -> None:
    with sse() as url:
        count, values = _killed(tmp_path, url, threading.Event())
    assert count == EVENTS
    assert values
    assert all(number == value + 1 for number, value in values)
    assert values[-1] == (EVENTS, EVENTS - 1)


@pytest.mark.slow
def test_messages_of_mqtt_are_not_lost(tmp_path: Path) -> None:
    """Each counts at least once; one that comes again is late, unless nothing came after it."""
    mqtt = pytest.importorskip("paho.mqtt.client", reason="paho-mqtt is not installed (the extra mqtt)")
    with mosquitto(tmp_path) as broker:
        client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, protocol=mqtt.MQTTv5)
        client.connect("127.0.0.1", broker.port)
        client.loop_start()
        client.publish("t", event(0), 1, retain=True).wait_for_publish(PATIENCE)
        began, ended = threading.Event(), threading.Event()

        def publish() -> None:
            began.wait(PATIENCE)  # the subscription is there
            for number in range(1, EVENTS):
                client.publish("t", event(number), 1).wait_for_publish(PATIENCE)
                if ended.wait(0.01):
                    return

        thread = threading.Thread(target=publish)
        thread.start()
        try:
            url = f"mqtt://127.0.0.1:{broker.port}/t?format=nq&client=me&retry=10m"
            count, values = _killed(tmp_path, url, began)
        finally:
            ended.set()
            thread.join(PATIENCE)
            client.disconnect()
            client.loop_stop()
    assert EVENTS <= count <= EVENTS + KILLS
    seen = [value for _, value in values]
    assert seen == sorted(seen)
    assert set(seen) == set(range(seen[0], EVENTS))
