"""A server in a thread of the test's process, and what tests ask of it."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import httpx

import spaseq
from spaseq.serve import Letters, ServeLimits, Settings
from spaseq.serve.app import Application
from spaseq.serve.process import Server
from tests.streams import NS, letters

#: Seconds after which a test that waits has failed.
PATIENCE = 120

TURTLE = "text/turtle"


@dataclass
class Running:
    """A server that runs, and a client of it."""

    url: str
    http: httpx.Client
    server: Server
    app: Application

    def register(self, text: str, name: str | None = None) -> str:
        """Registers a query; its id."""
        answer = self.http.post("/queries", content=text, params={} if name is None else {"name": name})
        assert answer.status_code == 201, answer.text
        found: str = answer.json()["id"]
        return found

    def send(self, words: str) -> None:
        """Sends events, one by one."""
        for letter in letters(words):
            answer = self.post(letter.turtle, letter.stream, time=letter.time)
            assert answer.status_code == 200, answer.text

    def post(
        self,
        body: str | bytes | Iterator[bytes],
        stream: str = "S",
        kind: str | None = TURTLE,
        headers: Mapping[str, str] | None = None,
        **params: Any,
    ) -> httpx.Response:
        """Sends one body of events."""
        given = {**({} if kind is None else {"Content-Type": kind}), **(headers or {})}
        content = body if isinstance(body, bytes) or not isinstance(body, str) else body.encode()
        return self.http.post(
            f"/streams/{quote(NS + stream, safe='')}", content=content, headers=given, params=params
        )

    def matches(self, key: str, **params: Any) -> list[dict[str, Any]]:
        """What there is of a query's matches, after all that was sent."""
        answer = self.http.get(f"/queries/{key}/matches", params={"follow": 0, **params})
        assert answer.status_code == 200, answer.text
        return [json.loads(line) for line in answer.text.splitlines() if line]


@contextmanager
def running(
    settings: Settings | None = None,
    queries: Mapping[str, str] | None = None,
    sources: tuple[spaseq.Source, ...] = (),
    token: str | None = None,
    **engine: Any,
) -> Iterator[Running]:
    """A server with an engine of these options."""
    settings = settings or Settings(port=0)
    kept = Letters(settings.limits)
    app = Application(spaseq.Engine(dead_letters=kept, **engine), settings, kept)
    urls: list[str] = []
    started = threading.Event()
    failed: list[BaseException] = []

    def listening(url: str) -> None:
        urls.append(url)
        started.set()

    server = Server(
        app,
        settings,
        queries={name: spaseq.prepare(text) for name, text in (queries or {}).items()},
        sources=sources,
        started_at=listening,
    )

    def run() -> None:
        try:
            asyncio.run(server.serve())
        except BaseException as error:  # which the test is to see
            failed.append(error)
        finally:
            started.set()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        assert started.wait(PATIENCE)
        assert urls, failed
        bearer = {} if token is None else {"Authorization": f"Bearer {token}"}
        with httpx.Client(base_url=urls[0], timeout=PATIENCE, headers=bearer) as http:
            yield Running(urls[0], http, server, app)
    finally:
        server.should_exit = True
        thread.join(PATIENCE)
    assert not thread.is_alive()
    assert not failed, failed


def limited(**limits: int) -> Settings:
    """Settings with other limits."""
    return Settings(port=0, limits=ServeLimits(**limits))


def until(condition: Callable[[], bool]) -> None:
    """Waits for what nobody tells."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)
