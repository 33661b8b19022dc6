"""Matches as they come: formats, resuming, slow readers, and how it all ends."""

from __future__ import annotations

import asyncio
import io
import json
import socket
from collections.abc import Iterator
from typing import Any

import pyoxigraph as ox
import pytest

import spaseq
from spaseq.results import Format, writer
from tests.serve.load import load
from tests.serve.running import PATIENCE, Running, limited, running, until
from tests.streams import NS, letters, query


def events(lines: Iterator[str]) -> Iterator[tuple[str, str | None, Any]]:
    """Server-sent events: kind, id, and what they say."""
    kind, number, data = "message", None, ""
    for line in lines:
        name, _, value = line.partition(": ")
        if name == "event":
            kind = value
        elif name == "id":
            number = value
        elif name == "data":
            data += value
        elif not line and data:
            yield kind, number, json.loads(data)
            kind, number, data = "message", None, ""


def follow(server: Running, key: str, **headers: str) -> Any:
    return server.http.stream(
        "GET", f"/queries/{key}/matches", headers={"Accept": "text/event-stream", **headers}
    )


def test_a_match_as_json() -> None:
    with running() as server:
        key = server.register(query("A ; B"))
        server.send("a1 b2")
        (match,) = server.matches(key)
        assert (match["number"], match["start"], match["end"]) == (1, 1, 2)
        assert match["partition"] == {}
        integer = {"type": "literal", "datatype": "http://www.w3.org/2001/XMLSchema#integer"}
        assert match["bindings"] == [
            {
                "a": {"type": "uri", "value": f"{NS}e/a1"},
                "av": {**integer, "value": "1"},
                "b": {"type": "uri", "value": f"{NS}e/b2"},
                "bv": {**integer, "value": "2"},
            }
        ]
        assert {name: [event["n"] for event in of] for name, of in match["events"].items()} == {
            "A": [0],
            "B": [1],
        }
        (match,) = server.matches(key, events=1)
        (event,) = match["events"]["B"]
        assert (event["stream"], event["time"], event["n"]) == (NS + "S", 2, 1)
        (graph,) = {str(quad.subject) for quad in ox.parse(event["turtle"], format=ox.RdfFormat.TURTLE)}
        assert graph == f"<{NS}e/b2>"


@pytest.mark.parametrize("form", ["SELECT *", "CONSTRUCT { ?a :then ?b }"])
def test_a_line_is_the_command_lines_with_a_number(form: str) -> None:
    text = query("A ; B", head=form)
    out = io.BytesIO()
    with running() as server:
        key = server.register(text)
        server.send("a1 b2 a3 b4")
        lines = server.http.get(f"/queries/{key}/matches", params={"follow": 0, "format": "ndjson"}).text
    engine = spaseq.Engine()
    handle = engine.register(text)
    for letter in letters("a1 b2 a3 b4"):
        engine.push(NS + letter.stream, letter.turtle, letter.time)
    engine.finish()
    written = writer(Format.NDJSON, handle.query, out)
    for batch in handle.batches():
        written.batch(batch)
    expected = [
        f'{{"number":{n},{line[1:]}' for n, line in enumerate(out.getvalue().decode().splitlines(), 1)
    ]
    assert lines.splitlines() == expected
    assert len(expected) == 2


def test_matches_come_as_they_are_found() -> None:
    with running() as server:
        key = server.register(query("A ; B"))
        with follow(server, key) as answer:
            assert answer.headers["Content-Type"].startswith("text/event-stream")
            found = events(answer.iter_lines())
            for tick in range(1, 20, 2):
                server.send(f"a{tick} b{tick + 1}")
                kind, number, match = next(found)
                assert (kind, number, match["start"]) == ("match", str(match["number"]), tick)


def test_a_reader_resumes_after_the_last_that_it_has() -> None:
    with running() as server:
        key = server.register(query("A"))
        server.send("a1 a2 a3 a4")
        assert [match["number"] for match in server.matches(key, since=2)] == [3, 4]
        with follow(server, key, **{"Last-Event-ID": "3"}) as answer:
            kind, number, _ = next(events(answer.iter_lines()))
            assert (kind, number) == ("match", "4")
        answer = server.http.get(f"/queries/{key}/matches", params={"since": 5})
        assert (answer.status_code, answer.json()["error"]["kind"]) == (400, "parameter")


def test_what_is_no_longer_kept_is_told() -> None:
    with running(limited(matches=3)) as server:
        key = server.register(query("A"))
        server.send("a1 a2 a3 a4 a5")
        lost, *rest = server.matches(key, since=0)
        assert lost == {"lost": {"from": 1, "to": 2}}
        assert [match["number"] for match in rest] == [3, 4, 5]
        assert [match["number"] for match in server.matches(key)] == [3, 4, 5]
        with follow(server, key, **{"Last-Event-ID": "1"}) as answer:
            kind, number, told = next(events(answer.iter_lines()))
            assert (kind, number, told) == ("lost", "2", {"from": 2, "to": 2})


def test_the_end_of_a_query_is_that_of_its_readers() -> None:
    with running(limits=spaseq.Limits(partial_matches=3), matcher="interpreter") as server:
        deleted, done = server.register(query("B")), server.register(query("A", tail="LIMIT 1"))
        failing = server.register(query("A ; B"))
        server.send("a1")
        with follow(server, deleted) as answer:
            server.http.delete(f"/queries/{deleted}")
            assert list(events(answer.iter_lines())) == [("end", None, {"reason": "deleted"})]
        with follow(server, done) as answer:
            assert [kind for kind, *_ in events(answer.iter_lines())] == ["match", "end"]
        with follow(server, failing) as answer:
            server.send("a2 a3 a4 a5")
            ((kind, _, told),) = events(answer.iter_lines())
            assert (kind, told["reason"]) == ("end", "failed")
            assert "partial_matches" in told["error"]["message"]
        assert server.http.get(f"/queries/{failing}").json()["error"]["kind"] == "limit"


def test_the_end_of_the_server_completes_what_waits() -> None:
    with running() as server:
        key = server.register(query("A ; !B", "10 SECONDS SLIDING"))
        server.send("a1")
        with follow(server, key) as answer:
            found = events(answer.iter_lines())
            server.server.should_exit = True
            kinds = [(kind, told.get("reason")) for kind, _, told in found]
        assert kinds == [("match", None), ("end", "stopped")]


def test_formats_are_negotiated() -> None:
    with running() as server:
        key = server.register(query("A"))
        server.send("a1")
        path = f"/queries/{key}/matches"
        kinds = {
            accept: server.http.get(path, params={"follow": 0}, headers={"Accept": accept}).headers[
                "Content-Type"
            ]
            for accept in ("*/*", "application/x-ndjson", "text/event-stream")
        }
        assert [kind.partition(";")[0] for kind in kinds.values()] == [
            "application/x-ndjson",
            "application/x-ndjson",
            "text/event-stream",
        ]
        answer = server.http.get(path, headers={"Accept": "text/html"})
        assert (answer.status_code, answer.json()["error"]["kind"]) == (406, "format")
        forced = server.http.get(
            path, params={"follow": 0, "format": "sse"}, headers={"Accept": "application/x-ndjson"}
        )
        assert forced.text.startswith("id: 1\nevent: match\n")


def test_construct_gives_graphs() -> None:
    with running() as server:
        key = server.register(query("A", head="CONSTRUCT { ?a :seen ?av }"))
        server.send("a1")
        (match,) = server.matches(key)
        assert match["graph"].startswith(f"<{NS}e/a1> <{NS}seen> ")


def test_too_many_readers() -> None:
    with running(limited(readers=1)) as server:
        key = server.register(query("A"))
        with follow(server, key):
            answer = server.http.get(f"/queries/{key}/matches", params={"follow": 0})
            assert (answer.status_code, answer.json()["error"]["kind"]) == (429, "limit")
        until(lambda: not server.app.service.readers)
        assert server.matches(key) == []


def test_a_slow_reader_is_dropped_with_a_reason_and_costs_others_nothing() -> None:
    """It takes nothing until more has come than sockets and the server keep of it."""
    large = "x" * 100_000
    with running(limited(matches=20)) as server:
        key = server.register(query("A", gpms={"A": "?a :text ?text"}))
        host, port = server.url.removeprefix("http://").split(":")
        with socket.socket() as slow, follow(server, key) as quick:
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            slow.connect((host, int(port)))
            slow.sendall(
                f"GET /queries/{key}/matches HTTP/1.1\r\nHost: {host}\r\n"
                "Accept: application/x-ndjson\r\n\r\n".encode()
            )
            until(lambda: server.app.service.readers == 2)
            taken = events(quick.iter_lines())
            for tick in range(1, 151):
                body = f'@prefix : <{NS}> . <{NS}e> a :a ; :v {tick} ; :text "{tick} {large}" .'
                assert server.post(body, time=tick).status_code == 200
                kind, number, _ = next(taken)
                assert (kind, number) == ("match", str(tick))
            slow.settimeout(PATIENCE)
            got = b""
            while b'"dropped"' not in got[-500:]:
                part = slow.recv(1 << 20)
                assert part, got[-500:]
                got += part
        line = next(line for line in got.decode().splitlines() if line.startswith('{"dropped"'))
        dropped = json.loads(line)["dropped"]
        assert "too slow" in dropped["reason"]
        assert 0 < dropped["since"] < 150
        lost, *rest = server.matches(key, since=dropped["since"])
        assert lost["lost"]["from"] == dropped["since"] + 1
        assert [match["number"] for match in rest] == list(range(131, 151))


def test_a_reader_that_goes_is_forgotten() -> None:
    with running() as server:
        key = server.register(query("A"))
        for _ in range(20):
            with follow(server, key) as answer:
                assert answer.status_code == 200
        until(lambda: not server.app.service.readers)


@pytest.mark.parametrize(("readers", "writers"), [(20, 5), pytest.param(200, 50, marks=pytest.mark.slow)])
def test_many_readers_and_writers_lose_nothing(readers: int, writers: int) -> None:
    with running() as server:
        key = server.register(query("A"))
        seen = asyncio.run(load(server.url, key, readers, writers, 20))
        assert seen.refused == []
        assert seen.numbers == [[*range(1, writers * 20 + 1)]] * readers
