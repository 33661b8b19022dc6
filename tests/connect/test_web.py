"""Server-sent events, NDJSON, documents and WebSockets, by servers of the tests' own."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest

import spaseq
from spaseq.connect import reconnect
from spaseq.connect.clients.http import HttpClient
from spaseq.connect.live import Ending
from spaseq.connect.sinks import SinkRecord, open_sink
from spaseq.errors import SourceError
from spaseq.sources import BadEvent
from tests.connect.conftest import Tls
from tests.connect.events import EX, event, found, limited, server_sent
from tests.connect.servers import PATIENCE, Answer, free_port, http, until, websocket

pytest.importorskip("httpx", reason="httpx is not installed (the extra http brings it)")
pytest.importorskip("websockets", reason="websockets is not installed (the extra ws brings it)")


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lost connections are made again after hundredths of a second."""
    monkeypatch.setattr(reconnect, "FIRST", 0.02)


@pytest.fixture(autouse=True)
def no_thread_remains() -> Any:
    before = set(threading.enumerate())
    yield
    until(lambda: set(threading.enumerate()) <= before)


# --- server-sent events -------------------------------------------------------------------------


def test_events_go_on_behind_the_last_id() -> None:
    broken = Answer([server_sent(range(3)), server_sent([3, 4])], breaks=True)
    ended = Answer([server_sent([5])])
    with http(broken, ended, Answer([server_sent(range(6, 20))], stays=True)) as server:
        assert found(f"http://127.0.0.1:{server.port}/e?format=nq", limited(12)) == [*range(12)]
        assert [seen.get("last-event-id") for seen in server.seen] == [None, "4", "5"]
        until(lambda: server.open == 0)


def test_no_content_ends_a_stream_of_events() -> None:
    with http(Answer([server_sent(range(3))]), Answer(status=204)) as server:
        assert found(f"http://127.0.0.1:{server.port}/e?format=nq") == [0, 1, 2]


def test_an_event_that_is_cut_anywhere_is_the_same(  # the parser, by the network
) -> None:
    text = b": hello\r\n\r\nretry: 1\n\n" + server_sent(range(3)).replace(b"\n", b"\r\n")
    parts = [text[at : at + 7] for at in range(0, len(text), 7)]
    with http(Answer(parts), Answer(status=204)) as server:
        assert found(f"http://127.0.0.1:{server.port}/e?format=nq") == [0, 1, 2]


def test_a_poison_event_is_a_dead_letter_with_its_id() -> None:
    letters: list[BadEvent] = []
    text = server_sent([0]) + b"id: bad-7\ndata: no quads\n\n" + server_sent([1])
    with http(Answer([text]), Answer(status=204)) as server:
        url = f"http://127.0.0.1:{server.port}/e?format=nq"
        assert found(url, dead_letters=letters.append) == [0, 1]
    (letter,) = letters
    assert (letter.position, letter.payload) == ("event id bad-7", "no quads")


def test_the_time_of_arrival_is_an_instant() -> None:
    text = server_sent([0, 1], ids=False)
    with http(Answer([text]), Answer(status=204)) as server:
        query = limited(2).replace("10 SECONDS", "1 HOURS")
        url = f"http://127.0.0.1:{server.port}/e?format=nq&time=arrival"
        matches = list(spaseq.run(query, {"S": url}, matcher="reference"))
    assert [match.start.year > 2020 for match in matches] == [True, True]  # type: ignore[union-attr]


# --- lines and documents ------------------------------------------------------------------------


def row(number: int) -> bytes:
    return json.dumps({"v": number, "at": number}).encode() + b"\n"


@pytest.fixture
def lifting(tmp_path: Path) -> Path:
    path = tmp_path / "context.jsonld"
    integer = "http://www.w3.org/2001/XMLSchema#integer"
    terms = {
        "v": {"@id": f"{EX}v", "@type": integer},
        "at": {"@id": "http://www.w3.org/ns/prov#generatedAtTime", "@type": integer},
    }
    path.write_text(json.dumps({"@context": terms}))
    return path


def test_rows_come_as_they_are_sent(lifting: Path) -> None:
    parts = [row(0) + row(1)[:4], row(1)[4:] + row(2).rstrip()]
    with http(Answer(parts, media="application/x-ndjson; charset=utf-8")) as server:
        assert found(f"http://127.0.0.1:{server.port}/rows?context={lifting}") == [0, 1, 2]


def test_lines_are_asked_for_again_and_the_torn_one_is_a_dead_letter(lifting: Path) -> None:
    letters: list[BadEvent] = []
    broken = Answer([row(0) + row(1) + b'{"v": '], media="application/x-ndjson", breaks=True)
    with http(broken, Answer([row(2)], media="application/x-ndjson")) as server:
        url = f"http://127.0.0.1:{server.port}/rows?context={lifting}"
        assert found(url, dead_letters=letters.append) == [0, 1, 2]
    assert letters[0].position == "line 3"
    assert letters[0].reason.startswith("the connection broke inside this line")


def test_a_bad_row_among_many_says_its_line(lifting: Path) -> None:
    letters: list[BadEvent] = []
    text = b"".join(b"oops\n" if n == 40 else row(n) for n in range(90))
    with http(Answer([text], media="application/x-ndjson")) as server:
        url = f"http://127.0.0.1:{server.port}/rows?context={lifting}"
        assert found(url, dead_letters=letters.append) == [n for n in range(90) if n != 40]
    assert [letter.position for letter in letters] == ["line 41"]


def test_a_document_is_read_to_its_end() -> None:
    text = b"".join(map(event, range(50)))
    parts = [text[at : at + 100] for at in range(0, len(text), 100)]
    with http(Answer(parts, media="application/n-quads")) as server:
        assert found(f"http://127.0.0.1:{server.port}/past") == [*range(50)]


def test_a_document_that_breaks_off_is_an_error() -> None:
    with (
        http(Answer([event(0) + event(1)], media="application/n-quads", breaks=True)) as server,
        pytest.raises(SourceError, match=r"the connection was lost after \d+ bytes"),
    ):
        found(f"http://127.0.0.1:{server.port}/past")


def test_no_log_has_the_credentials(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(0)
    options = "format=nq&token=hush&query=key%3Dhush"
    with http(Answer([server_sent([0])]), Answer(status=204)) as server:
        assert found(f"http://127.0.0.1:{server.port}/e?{options}") == [0]

    def script(_number: int, connection: Any) -> None:
        connection.send(event(0))

    with websocket(script) as other:
        assert found(f"ws://127.0.0.1:{other.port}/e?{options}", limited(1)) == [0]
    with http(Answer(status=200)) as server:
        sink = open_sink(f"http://127.0.0.1:{server.port}/in?token=hush&query=key%3Dhush")
        sink.write([SinkRecord("q", 1, b"{}\n")])
        sink.close()
        assert server.paths == ["/in?key=hush"]
    # The servers of these tests log, too.
    ours = [record.getMessage() for record in caplog.records if record.name != "websockets.server"]
    assert "hush" not in "\n".join(ours)


def test_where_a_server_sends_us_is_said_without_its_query() -> None:
    answer = Answer(status=302, headers={"Location": "http://me:hush@elsewhere/?key=hush"})
    with (
        http(answer) as server,
        pytest.raises(SourceError, match=r"http://…@elsewhere/\?key=…: give that") as raised,
    ):
        found(f"http://127.0.0.1:{server.port}/e?format=nq&query=key%3Dhush")
    assert "hush" not in str(raised.value)


# --- silence, and servers that ask to wait ------------------------------------------------------


def test_a_silent_connection_is_made_anew() -> None:
    silent = Answer([server_sent(range(3))], stays=True)
    with http(silent, Answer([server_sent([3])]), Answer(status=204)) as server:
        assert found(f"http://127.0.0.1:{server.port}/e?format=nq&read=300ms") == [0, 1, 2, 3]
        assert [seen.get("last-event-id") for seen in server.seen] == [None, "2", "3"]


def test_what_a_document_repeats_after_a_silence_is_one_event() -> None:
    """Neither twice nor its writer's fault: the document is read from its beginning again."""
    parts = [event(n) for n in range(5)]
    silent = Answer(parts[:3], media="application/n-quads", stays=True)
    with http(silent, Answer(parts, media="application/n-quads")) as server:
        bad: list[BadEvent] = []
        url = f"http://127.0.0.1:{server.port}/past?read=300ms"
        assert found(url, dead_letters=bad.append) == [0, 1, 2, 3, 4]
        assert bad == []
        assert len(server.seen) == 2


def test_retry_after_is_honoured(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr(Ending, "wait", lambda _, seconds: waits.append(seconds))
    busy = [Answer(status=status, headers={"Retry-After": "7"}) for status in (503, 429)]
    with http(Answer([server_sent([0])]), *busy, Answer([server_sent([1])]), Answer(status=204)) as server:
        assert found(f"http://127.0.0.1:{server.port}/e?format=nq") == [0, 1]
    assert [seconds for seconds in waits if seconds >= 7] == [7, 7]


def test_a_server_that_asks_to_wait_too_long_is_an_error_at_once() -> None:
    with http(Answer(status=503, headers={"Retry-After": "9999"})) as server:
        said = "answers 503, and asks to wait for 9999 s.*connect= and retry="
        with pytest.raises(SourceError, match=said):
            found(f"http://127.0.0.1:{server.port}/e?format=nq")
        assert len(server.seen) == 1


# --- what is wrong ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Answer(status=404), "answers 404: there is nothing at this path"),
        (Answer(status=401), "it wants credentials"),
        (Answer(status=302, headers={"Location": "http://elsewhere/"}), "to http://elsewhere/: give that"),
    ],
)
def test_what_a_server_refuses_is_said_at_once(answer: Answer, said: str) -> None:
    with http(answer) as server, pytest.raises(SourceError) as raised:
        found(f"http://127.0.0.1:{server.port}/e?format=nq")
    assert said in str(raised.value)


@pytest.mark.parametrize("scheme", ["http", "ws"])
def test_nobody_there_is_an_error_in_bounded_time(scheme: str) -> None:
    with pytest.raises(SourceError, match=r"no connection within 0\.2 s: .*Is the server running there"):
        found(f"{scheme}://127.0.0.1:{free_port()}/?format=nq&connect=200ms")


def test_a_server_that_stays_away_is_an_error() -> None:
    with http(Answer([server_sent([0])], breaks=True), Answer(status=503)) as server:
        url = f"http://127.0.0.1:{server.port}/e?format=nq&retry=300ms"
        with pytest.raises(SourceError, match=r"not made again within 0\.3 s: the server answers 503"):
            found(url)
        assert len(server.seen) >= 2


def test_the_server_gets_the_credentials_and_its_query() -> None:
    with http(Answer(status=204)) as server:
        found(f"http://127.0.0.1:{server.port}/e?format=nq&token=hush&query=a%3D1")
        found(f"http://me:hush@127.0.0.1:{server.port}/e?format=nq")
        assert server.paths == ["/e?a=1", "/e"]
        assert [seen["authorization"] for seen in server.seen] == ["Bearer hush", "Basic bWU6aHVzaA=="]


# --- backpressure, and the end ------------------------------------------------------------------


def test_a_source_is_read_no_faster_than_it_is_processed() -> None:
    """The run stands still after its first match: the server can send what buffers hold, and no more."""
    filler = b": " + b"x" * 65_000 + b"\n\n"
    parts = [server_sent([0])] + [filler] * 2_000
    with http(Answer(parts, stays=True)) as server:
        run = spaseq.run(
            limited(3), {"S": f"http://127.0.0.1:{server.port}/e?format=nq"}, matcher="reference"
        )
        next(run)
        until(_still(lambda: server.sent))
        assert server.sent < 1_000
        run.close()
        until(lambda: server.open == 0)


def _still(count: Any) -> Any:
    """A condition: a number has not changed for twenty looks."""
    seen: list[int] = []

    def is_still() -> bool:
        seen.append(count())
        return len(seen) > 20 and len(set(seen[-20:])) == 1

    return is_still


@pytest.mark.parametrize("idle", [None, 5])
def test_a_run_that_is_closed_ends_its_client(idle: int | None) -> None:
    from datetime import timedelta

    options: dict[str, Any] = {} if idle is None else {"idle": timedelta(seconds=idle)}
    with http(Answer([server_sent([0])], stays=True)) as server:
        url = f"http://127.0.0.1:{server.port}/e?format=nq"
        run = spaseq.run(limited(3), {"S": url}, matcher="reference", **options)
        next(run)
        run.close()
        until(lambda: server.open == 0)


def test_an_error_in_a_callback_ends_the_client() -> None:
    with http(Answer([server_sent([0])], stays=True)) as server:
        engine = spaseq.Engine(matcher="reference")

        def fail(_: object) -> None:
            raise RuntimeError("no")

        engine.register(limited(3), fail)
        url = f"http://127.0.0.1:{server.port}/e?format=nq"
        with pytest.raises(RuntimeError, match="no"):
            engine.feed(spaseq.Source(f"{EX}s", url))
        until(lambda: server.open == 0)
        engine.abandon()


def test_blocks_that_are_not_taken_do_not_keep_a_client_open() -> None:
    parts = [server_sent([n]) for n in range(200)]
    with http(Answer(parts, stays=True)) as server:
        from spaseq.connect.address import parse_address

        client = HttpClient(parse_address(f"http://127.0.0.1:{server.port}/e")[0])
        client.open(PATIENCE)
        client.close()
        until(lambda: server.open == 0)


# --- WebSocket ----------------------------------------------------------------------------------


def test_a_websocket_comes_back_until_its_server_says_that_it_is_over() -> None:
    def script(number: int, connection: Any) -> None:
        first = 3 * (number - 1)
        for n in range(first, first + 3):
            connection.send(event(n) if n % 2 else event(n).decode())
        connection.close(1000 if number == 3 else 1012)

    with websocket(script) as server:
        assert found(f"ws://127.0.0.1:{server.port}/?format=nq") == [*range(9)]
        assert server.count == 3


@pytest.mark.slow
def test_a_websocket_is_read_no_faster_than_it_is_processed() -> None:
    sent = 0

    def script(_: int, connection: Any) -> None:
        nonlocal sent
        from websockets.exceptions import ConnectionClosed

        try:
            connection.send(event(0))
            noise = os.urandom(60_000)  # which does not become less by compression
            for _ in range(3_000):
                connection.send(noise)
                sent += 1
        except ConnectionClosed:
            return

    with websocket(script) as server:
        url = f"ws://127.0.0.1:{server.port}/?format=nq"
        run = spaseq.run(limited(3), {"S": url}, matcher="reference", dead_letters=lambda _: None)
        next(run)
        until(_still(lambda: sent))
        assert sent < 2_000
        run.close()


# --- TLS ----------------------------------------------------------------------------------------


def test_https_with_an_authority_of_ones_own(tls: Tls) -> None:
    with http(Answer([server_sent([0, 1])]), Answer(status=204), tls=tls.server) as server:
        assert found(f"https://127.0.0.1:{server.port}/e?format=nq&ca={tls.ca}") == [0, 1]


def test_wss_with_an_authority_of_ones_own(tls: Tls) -> None:
    def script(_: int, connection: Any) -> None:
        connection.send(event(0))
        connection.close(1000)

    with websocket(script, tls.server) as server:
        assert found(f"wss://127.0.0.1:{server.port}/?format=nq&ca={tls.ca}") == [0]


def test_a_certificate_that_is_not_trusted_is_an_error_that_says_what_to_do(tls: Tls) -> None:
    with http(Answer(status=204), tls=tls.server) as server:
        for url in (f"https://127.0.0.1:{server.port}/e?format=nq",):
            with pytest.raises(SourceError, match=r"certificate is not trusted.*\?ca=FILE"):
                found(url)
