"""Servers of the tests' own on loopback: WebSocket, HTTP that a script answers, and a broker for MQTT."""

from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

PATIENCE = 120.0


def until(condition: Callable[[], object]) -> None:
    """Wait for a condition."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.01)


# --- HTTP ---------------------------------------------------------------------------------------


@dataclass
class Answer:
    """What is answered to one request: parts of the body, then its end, or a break of the connection.

    ``stays``: the connection remains open when all parts are sent, until the other side is gone.
    """

    parts: Sequence[bytes] = ()
    status: int = 200
    media: str = "text/event-stream"
    breaks: bool = False
    stays: bool = False
    headers: dict[str, str] = field(default_factory=dict)


class HttpServer:
    """Answers requests in their order; the last answer again and again. ``seen``: their headers."""

    def __init__(self, *answers: Answer, tls: ssl.SSLContext | None = None) -> None:
        self.answers = list(answers)
        self.seen: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.bodies: list[bytes] = []
        self.sent = 0
        self.open = 0
        self._lock = threading.Lock()
        self._ended = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                outer._serve(self)

            def do_POST(self) -> None:
                outer._serve(self)

            def log_message(self, *_: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = False

            def handle_error(self, *_: object) -> None:  # a client that is gone
                pass

        self._server = Server(("127.0.0.1", 0), Handler)
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()

    def _serve(self, handler: BaseHTTPRequestHandler) -> None:
        length = int(handler.headers.get("Content-Length", 0))
        with self._lock:
            self.seen.append({name.lower(): value for name, value in handler.headers.items()})
            self.paths.append(handler.path)
            self.bodies.append(handler.rfile.read(length))
            answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
            self.open += 1
        handler.close_connection = True
        try:
            handler.send_response(answer.status)
            handler.send_header("Content-Type", answer.media)
            for name, value in answer.headers.items():
                handler.send_header(name, value)
            if answer.status == 204:
                handler.end_headers()
                return
            handler.send_header("Transfer-Encoding", "chunked")
            handler.end_headers()
            for part in answer.parts:
                if self._ended.is_set():
                    return
                handler.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
                handler.wfile.flush()
                with self._lock:
                    self.sent += 1
            if answer.breaks:
                return
            if answer.stays:
                handler.connection.settimeout(0.05)
                while not self._ended.is_set():
                    try:
                        if not handler.connection.recv(1):
                            return
                    except TimeoutError:
                        continue
            handler.wfile.write(b"0\r\n\r\n")
        finally:
            with self._lock:
                self.open -= 1

    def close(self) -> None:
        self._ended.set()
        self._server.shutdown()
        self._thread.join(PATIENCE)
        self._server.server_close()


@contextmanager
def http(*answers: Answer, tls: ssl.SSLContext | None = None) -> Iterator[HttpServer]:
    server = HttpServer(*answers, tls=tls)
    try:
        yield server
    finally:
        server.close()


# --- WebSocket ----------------------------------------------------------------------------------


class WsServer:
    """A WebSocket server: ``script`` handles each connection, and gets its number, too."""

    def __init__(self, script: Callable[[int, object], None], tls: ssl.SSLContext | None = None) -> None:
        from websockets.sync.server import serve

        self.count = 0
        self.open = 0
        self.headers: list[dict[str, str]] = []
        self.ended = threading.Event()

        def handle(connection: object) -> None:
            self.count += 1
            self.open += 1
            self.headers.append(dict(connection.request.headers.raw_items()))  # type: ignore[attr-defined]
            try:
                script(self.count, connection)
            finally:
                self.open -= 1

        self._server = serve(handle, "127.0.0.1", 0, ssl=tls)
        self.port = self._server.socket.getsockname()[1]
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    def close(self) -> None:
        self.ended.set()
        self._server.shutdown()
        self._thread.join(PATIENCE)


@contextmanager
def websocket(script: Callable[[int, object], None], tls: ssl.SSLContext | None = None) -> Iterator[WsServer]:
    server = WsServer(script, tls)
    try:
        yield server
    finally:
        server.close()
        until(lambda: server.open == 0)


# --- MQTT ---------------------------------------------------------------------------------------


def free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        number: int = probe.getsockname()[1]
        return number


class Mosquitto:
    """A broker that can be stopped and started again on its port."""

    def __init__(self, folder: Path, extra: str = "") -> None:
        found = shutil.which("mosquitto") or shutil.which("mosquitto", path="/usr/sbin:/usr/local/sbin")
        if found is None:
            pytest.skip("mosquitto is not installed (Debian: apt-get install mosquitto)")
        self._program = found
        self.port = free_port()
        self._config = folder / "mosquitto.conf"
        self._config.write_text(
            f"listener {self.port} 127.0.0.1\nallow_anonymous true\npersistence true\n"
            f"persistence_location {folder}/\nmax_queued_messages 0\nuser root\n{extra}"
        )
        self._log = folder / "mosquitto.log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [self._program, "-c", str(self._config)], stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )

        def answers() -> bool:
            assert self._process is not None
            assert self._process.poll() is None, self._log.read_text()
            with closing(socket.socket()) as probe:
                return probe.connect_ex(("127.0.0.1", self.port)) == 0

        until(answers)

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(PATIENCE)
            self._process = None


@contextmanager
def mosquitto(folder: Path, extra: str = "") -> Iterator[Mosquitto]:
    broker = Mosquitto(folder, extra)
    broker.start()
    try:
        yield broker
    finally:
        broker.stop()
