"""A server of the page that has one query with as many matches a second as are asked for, made in advance."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from time import monotonic
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

_TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}

STREAM = "http://example.org/stream/readings"

QUERY = {
    "id": "flood",
    "name": "flood",
    "text": "# Very many matches.\nSELECT ?x WITHIN 10 SECONDS SLIDING\nFROM STREAM S <http://example.org/s>\n",
    "streams": [STREAM],
    "form": "SELECT",
    "variables": ["x"],
    "done": False,
    "error": None,
}

#: Matches are sent in groups, so many a second.
_GROUPS = 20


class Canned:
    """``rate``: matches a second, numbered from 1, since ``started``; no more than ``total``.

    ``token``: what requests must bring; ``run``: which run of the server it is; ``asked``: from where on
    matches were asked for, each time. ``word``: is in every name and value.
    """

    def __init__(
        self,
        rate: float,
        total: int | None = None,
        port: int = 0,
        started: float | None = None,
        token: str | None = None,
        run: str = "first",
        word: str = "",
    ) -> None:
        self.run = run
        self.word = word
        self.rate = rate
        self.token = token
        self.total = total
        self.started = monotonic() if started is None else started
        self.closing = threading.Event()
        self.asked: list[int] = []

        class Handler(_Handler):
            canned = self

        self.server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.server.daemon_threads = False  # so that closing waits for them
        self.port = self.server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}/"
        self._thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05})

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.closing.set()
        self.server.shutdown()
        self.server.server_close()
        self._thread.join()

    @property
    def found(self) -> int:
        """How many matches there are by now."""
        so_far = int((monotonic() - self.started) * self.rate)
        return so_far if self.total is None else min(so_far, self.total)

    def matches(self, since: int) -> Iterator[bytes]:
        """Groups of matches as an event stream, from a number on, as they come."""
        self.asked.append(since)
        last = since
        while not self.closing.is_set():
            now = self.found
            if now > last:
                yield b"".join(_block(number, self.word) for number in range(last + 1, now + 1))
                last = now
            self.closing.wait(1 / _GROUPS)

    def answer(self, path: str) -> Any:
        """The JSON of a path; None if there is none."""
        found, word = self.found, self.word
        query = QUERY | {"name": f"flood{word}", "text": f"# {word}\n{QUERY['text']}", "matches": found}
        return {
            "/healthz": {"status": "ok"},
            "/queries": {"queries": [query], "run": self.run},
            "/streams": {
                "streams": [
                    {
                        "iri": STREAM + word,
                        "events": found,
                        "bad": 0,
                        "late": 0,
                        "watermark": None,
                        "rate": self.rate,
                        "lag": 0.0,
                    }
                ]
            },
            "/letters": {"letters": []},
            "/queries/flood/stats": {
                "events": found,
                "relevant": found,
                "matches": found,
                "rows": found,
                "late": 0,
                "gpms": {name + word: {"events": 2 * found, "matched": found} for name in "AB"},
                "watermark": "2026-06-04T08:00:00Z",
                "shed": {
                    "partial_matches": 1234,
                    "recall": 0.87,
                    "latency": 0.004,
                    "active": True,
                },
            },
            "/queries/flood/explain": {
                "states": [
                    {"id": 0, "label": "0", "partial_matches": 1},
                    {"id": 1, "label": "1", "partial_matches": found % 97},
                    {"id": 2, "label": "2", "partial_matches": found % 31},
                ],
                "edges": [
                    {"from": 0, "to": 1, "label": f"A{word}", "gpm": "A", "count": found},
                    {"from": 1, "to": 1, "label": f"; A{word}", "gpm": "A", "count": 3 * found},
                    {"from": 1, "to": 2, "label": f"; !X B{word}", "gpm": "B", "count": found // 2},
                ],
                "counted": {"events": found, "of": found},
            },
        }.get(path)


def _time(milliseconds: int) -> str:
    seconds, rest = divmod(milliseconds, 1000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"2026-06-04T{hours % 24:02d}:{minutes:02d}:{seconds:02d}.{rest:03d}Z"


def match(number: int, word: str = "") -> dict[str, Any]:
    """A match, with its one event; with a ``word`` it has seven."""
    turtle = f"<urn:reading:{number}> <urn:value> {number} ; <urn:of{word}> <urn:sensor:{number % 7}{word}> ."
    event = {"stream": STREAM + word, "time": _time(number), "graph": None, "n": number, "turtle": turtle}
    return {
        "number": number,
        "start": _time(number),
        "end": _time(number + 40),
        "partition": {"x": {"type": "uri", "value": f"urn:x:{word}"}} if word else {},
        "bindings": [
            {
                f"x{word}": {
                    "type": "literal",
                    "value": f"{number}{word}",
                    "datatype": "http://www.w3.org/2001/XMLSchema#integer",
                }
            }
        ],
        "events": {f"A{word}": [event] * (7 if word else 1)},
    }


def _block(number: int, word: str) -> bytes:
    short = {key: value for key, value in match(number, word).items() if key != "events"}
    return f"id: {number}\nevent: match\ndata: {json.dumps(short)}\n\n".encode()


class _Handler(BaseHTTPRequestHandler):
    canned: Canned
    #: Browsers open connections in advance and send nothing.
    timeout = 5

    def log_message(self, *_: object) -> None:
        """Nothing is said."""

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        query = parse_qs(url.query)
        try:
            if url.path == "/" or url.path.startswith("/page/"):
                self._page(url.path)
            elif not self._is_allowed():
                self._send(401, "application/json", b'{"error": {"kind": "auth", "message": "a token"}}')
            elif url.path == "/queries/flood/matches":
                self._matches(query)
            elif (value := self.canned.answer(url.path)) is not None:
                self._send(200, "application/json", json.dumps(value).encode())
            else:
                self._send(404, "application/json", b'{"error": {"kind": "not-found", "message": "gone"}}')
        except (BrokenPipeError, ConnectionResetError, TimeoutError):
            pass  # the page went away

    def _is_allowed(self) -> bool:
        token = self.canned.token
        return token is None or self.headers.get("Authorization") == f"Bearer {token}"

    def _page(self, path: str) -> None:
        name = path.removeprefix("/page/") if path != "/" else "index.html"
        content = files("spaseq.serve").joinpath("page", name).read_bytes()
        self._send(200, _TYPES[name.rpartition(".")[2]], content)

    def _matches(self, query: dict[str, list[str]]) -> None:
        since = int(query["since"][0])
        if query.get("follow") == ["0"]:
            self._send(
                200, "application/x-ndjson", json.dumps(match(since + 1, self.canned.word)).encode() + b"\n"
            )
            return
        self._head(200, "text/event-stream")
        for group in self.canned.matches(since):
            self.wfile.write(group)
            self.wfile.flush()

    def _send(self, status: int, kind: str, content: bytes) -> None:
        self._head(status, kind)
        self.wfile.write(content)

    def _head(self, status: int, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Security-Policy", "default-src 'self'")
        self.end_headers()
