"""Connections that send no whole request: they end, and others are answered meanwhile."""

from __future__ import annotations

import json
import logging
import resource
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import httpx
import pytest

from spaseq.serve.connections import Quietly
from tests.serve.running import PATIENCE, Running, limited, running, until
from tests.serve.test_process import SPASEQ

#: A request that is not complete.
HALF = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Half: "


@contextmanager
def connected(url: str, count: int, sent: bytes = HALF) -> Iterator[list[socket.socket]]:
    """So many connections that have sent the same."""
    host, port = httpx.URL(url).host, httpx.URL(url).port or 80
    with ExitStack() as stack:
        found = [stack.enter_context(socket.create_connection((host, port), PATIENCE)) for _ in range(count)]
        for one in found:
            one.sendall(sent)
        yield found


def ended(connection: socket.socket) -> bool:
    """Whether the server ends a connection."""
    try:
        while connection.recv(1 << 16):
            pass
    except TimeoutError:
        return False
    except ConnectionError:
        pass
    return True


def healthy(server: Running) -> bool:
    """Whether a new connection is answered."""
    try:
        return httpx.get(f"{server.url}/healthz", timeout=PATIENCE).status_code == 200
    except httpx.TransportError:
        return False


def test_others_are_answered_beside_half_requests() -> None:
    with running(limited(sockets=20, header_seconds=PATIENCE)) as server:
        server.http.close()
        with connected(server.url, 60) as half:
            assert healthy(server)
            assert all(ended(one) for one in half[:40])  # the oldest made room
            half[-1].sendall(b"no\r\nConnection: close\r\n\r\n")
            assert half[-1].recv(1 << 10).startswith(b"HTTP/1.1 200 ")


def test_a_half_request_ends_in_time_however_slowly_it_comes() -> None:
    with running(limited(header_seconds=1)) as server:
        answered = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
        nothing, half = b"", HALF
        with (
            connected(server.url, 2, nothing) as silent,
            connected(server.url, 2, half) as slow,
            connected(server.url, 2, answered + half) as later,
        ):
            for one in slow:
                one.settimeout(0.2)
            while not all(map(ended, slow)):
                for one in slow:
                    try:
                        one.sendall(b"x")
                    except ConnectionError:
                        break
            assert all(ended(one) for one in [*silent, *later])
        assert healthy(server)


def test_a_connection_is_refused_if_all_others_are_answered() -> None:
    text = "SELECT * WITHIN 1 SECOND FROM STREAM S <urn:s> WHERE { SEQ(A) DEFINE GPM A ON S { ?a ?b ?c } }"
    with running(limited(sockets=3)) as server:
        key = server.register(text)
        server.http.close()
        follow = f"GET /queries/{key}/matches HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
        with connected(server.url, 3, follow) as readers:
            for one in readers:
                assert one.recv(1 << 10).startswith(b"HTTP/1.1 200 ")
            assert not healthy(server)
        until(lambda: healthy(server))  # it has seen that they are gone


@pytest.mark.slow
def test_an_answer_that_is_not_taken_ends() -> None:
    """Requests one after the other, of which no answer is read."""
    with running(limited(sockets=1, seconds=1, pause=1)) as server:
        request = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"
        server.http.close()
        with connected(server.url, 1, request * 1_000) as (greedy,):
            assert greedy.recv(1)
            until(lambda: healthy(server))  # which there was no room for


@pytest.mark.slow
def test_a_server_with_few_files_lives_and_is_quiet() -> None:
    """1,100 half requests and 1,024 files: no answer, and 367 MB of a log a minute."""

    def few() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))

    command = [*SPASEQ, "serve", "--port", "0"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=few
    ) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().split()[-1]
            with connected(url, 400):
                for _ in range(3):
                    answer = httpx.get(f"{url}/healthz", timeout=PATIENCE)
                    assert answer.json() == {"status": "ok"}
            with connected(url, 50, b"nonsense\r\n\r\n") as wrong:
                assert all(ended(one) for one in wrong)
        finally:
            process.terminate()
        assert process.wait(PATIENCE) == 0
        assert process.stderr is not None
        assert len(process.stderr.read()) < 10_000


def test_a_log_says_how_much_it_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, shown = [0.0], []
    monkeypatch.setattr("spaseq.serve.connections.time.monotonic", lambda: clock[0])
    quietly = Quietly()
    for at, name in [(5.0, "a"), (5.5, "a"), (5.6, "b"), (5.9, "a"), (6.1, "a"), (7.2, "a")]:
        clock[0] = at
        record = logging.LogRecord(name, logging.WARNING, "", 0, "%s", (json.dumps(at),), None)
        if quietly.filter(record):
            shown.append(record.getMessage())
    assert shown == ["5.0", "5.6", "6.1 (and 2 more records)", "7.2"]
