"""``POST /streams``: bodies in any format, times, what is bad or late, and what is too long."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest

import spaseq
from spaseq.serve import ServeLimits, Settings
from tests.serve.running import limited, running, until
from tests.streams import NS, letters, query

GENERATED = "http://www.w3.org/ns/prov#generatedAtTime"


def quads(words: str) -> str:
    lines = []
    for letter in letters(words):
        e, g = f"<{NS}e/{letter.name}>", f"<{NS}{letter.name}>"
        lines += [
            f'{g} <{GENERATED}> "{letter.time}"^^<http://www.w3.org/2001/XMLSchema#integer> .',
            f"{e} <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <{NS}{letter.type}> {g} .",
            f'{e} <{NS}v> "{letter.value}"^^<http://www.w3.org/2001/XMLSchema#integer> {g} .',
        ]
    return "\n".join(lines) + "\n"


def many(count: int) -> str:
    return quads(" ".join(f"a{tick}" for tick in range(1, count + 1)))


def test_events_by_subject_and_times_by_a_path() -> None:
    body = "".join(f"<{NS}e/a{n}> a <{NS}a> . <{NS}e/a{n}> <{NS}v> 1 ; <{GENERATED}> {n} .\n" for n in (1, 2))
    with running() as server:
        server.register(query("A"))
        place, kind = f"/streams/{quote(f'{NS}S', safe='')}", {"Content-Type": "text/turtle"}
        told = server.http.post(place, params={"by": "subject"}, content=body, headers=kind)
        assert told.json()["events"] == 2
        graphs = f"<{NS}g> {{ <{NS}e/c> a <{NS}a> }} <{NS}h> {{ <{NS}e/c> <{GENERATED}> 5 }}"
        trig = {"Content-Type": "application/trig"}
        told = server.http.post(place, params={"by": "message"}, content=graphs, headers=trig)
        assert told.json()["events"] == 1
        deep = f"<{NS}e/b> a <{NS}a> ; <{NS}in> [ <{NS}at> 7 ] ."
        path = {"predicate": f"<{NS}in>/<{NS}at>"}
        assert server.http.post(place, params=path, content=deep, headers=kind).json()["events"] == 1
        told = server.http.post(place, params={"predicate": f"no:x/<{NS}at>"}, content=deep, headers=kind)
        assert "unknown prefix" in told.text
        told = server.http.post(place, params={"by": "name"}, content=body, headers=kind)
        assert told.status_code == 400
        assert "neither 'subject'" in told.text


def test_events_that_do_not_conform_are_refused() -> None:
    shapes = f"""@prefix sh: <http://www.w3.org/ns/shacl#> . @prefix : <{NS}> .
        :Positive sh:targetSubjectsOf :v ; sh:property [ sh:path :v ; sh:minExclusive 2 ] ."""
    with running(shapes=shapes) as server:
        key = server.register(query("A"))
        told = server.post(quads("a1 a3"), kind="application/n-quads")
        assert (told.status_code, told.json()) == (200, {"events": 1, "bad": 1, "late": 0})
        told = server.post(letters("a2")[0].turtle, time=5)
        assert (told.status_code, told.json()["error"]["kind"]) == (400, "bad-event")
        assert "event 3: does not conform to the shapes" in told.text
        assert [letter["position"] for letter in server.http.get("/letters").json()["letters"]] == [
            "event 3",
            "event 1",
        ]
        assert len(server.matches(key)) == 1


JSONLD = (
    f'{{"@id": "{NS}e/a1", "@type": "{NS}a", "{NS}v": 1, '
    f'"{GENERATED}": {{"@value": "1", "@type": "http://www.w3.org/2001/XMLSchema#integer"}}}}'
)


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("application/n-quads", quads("a1")),
        (
            "application/trig",
            f"<{NS}g> <{GENERATED}> 1 . <{NS}g> {{ <{NS}e/a1> a <{NS}a> ; <{NS}v> 1 }}",
        ),
        ("application/ld+json", JSONLD),
        ("application/x-ndjson", JSONLD + "\n"),
        ("text/turtle", f"<{NS}e/a1> a <{NS}a> ; <{NS}v> 1 ; <{GENERATED}> 1 ."),
        ("text/turtle; charset=utf-8", f"<{NS}e/a1> a <{NS}a> ; <{NS}v> 1 ; <{GENERATED}> 1 ."),
    ],
)
def test_formats_by_content_type(kind: str, body: str) -> None:
    with running() as server:
        key = server.register(query("A"))
        answer = server.post(body, kind=kind)
        assert (answer.status_code, answer.json()) == (200, {"events": 1, "bad": 0, "late": 0})
        (match,) = server.matches(key)
        assert match["start"] == 1


def test_an_unknown_content_type_is_told_what_there_is() -> None:
    with running() as server:
        for kind in ("text/csv", None, "application/x-www-form-urlencoded"):
            answer = server.post("x", kind=kind)
            assert (answer.status_code, answer.json()["error"]["kind"]) == (400, "format")
            assert "text/turtle" in answer.json()["error"]["hint"]


def test_times_by_parameter_header_and_data() -> None:
    turtle = letters("a1")[0].turtle
    with running() as server:
        key = server.register(query("A"))
        server.post(turtle, time="2026-03-01T10:00:00Z")
        server.post(turtle, headers={"Event-Time": "2026-03-01T11:00:00+01:00"})
        server.post(turtle, time="2026-03-01T11:00:01+01:00")
        assert [match["start"] for match in server.matches(key)] == [
            "2026-03-01T10:00:00Z",
            "2026-03-01T10:00:00Z",
            "2026-03-01T10:00:01Z",
        ]
        answer = server.post(turtle, time="yesterday")
        assert (answer.status_code, answer.json()["error"]["kind"]) == (400, "parameter")


def test_an_event_without_a_time_is_bad_unless_the_clock_is_the_walls() -> None:
    turtle = letters("a1")[0].turtle
    with running() as server:
        server.register(query("A"))
        answer = server.post(turtle)
        assert (answer.status_code, answer.json()["error"]["kind"]) == (400, "bad-event")
        assert "no time" in answer.json()["error"]["message"]
        assert answer.json()["bad"] == 1
    with running(Settings(port=0, wall_clock=True)) as server:
        key = server.register(query("A ; !B", "1 SECONDS SLIDING"))
        assert server.post(turtle).json() == {"events": 1, "bad": 0, "late": 0}
        until(lambda: bool(server.matches(key)))  # by the clock alone
        (match,) = server.matches(key)
        assert abs(datetime.now(UTC) - datetime.fromisoformat(match["start"])) < timedelta(hours=1)


def test_bad_and_late_events_are_counted_and_kept() -> None:
    with running() as server:
        key = server.register(query("A"))
        server.send("a5")
        answer = server.post(quads("a7 a3 a9"), kind="application/n-quads")
        assert (answer.status_code, answer.json()) == (200, {"events": 2, "bad": 0, "late": 1})
        assert server.post("<urn:a> <urn:b ", time=9).status_code == 400
        assert [match["start"] for match in server.matches(key)] == [5, 7, 9]
        told = server.http.get("/letters").json()
        assert told["count"] == 2
        assert {letter["stream"] for letter in told["letters"]} == {NS + "S"}
        assert any(letter["reason"].startswith("late") for letter in told["letters"])
        assert len(server.http.get("/letters", params={"limit": 1}).json()["letters"]) == 1
        (stream,) = server.http.get("/streams").json()["streams"]
        assert (stream["iri"], stream["events"], stream["bad"], stream["late"]) == (NS + "S", 4, 1, 1)
        assert (stream["watermark"], stream["lag"]) == (9, None)


def test_a_body_of_which_all_is_bad() -> None:
    with running() as server:
        server.register(query("A"))
        answer = server.post("<urn:a> <urn:b ", time=1)
        assert (answer.status_code, answer.json()["error"]["kind"]) == (400, "bad-event")
        answer = server.post("\x00\x01", kind="application/x-jelly-rdf")
        assert (answer.status_code, answer.json()["error"]["kind"]) == (400, "bad-event")
        # Times on another clock than that of the query's first event.
        server.send("a1")
        answer = server.post(letters("a2")[0].turtle, time="2026-03-01T10:00:00Z")
        assert (answer.status_code, answer.json()["bad"]) == (400, 1)
        assert "instants" in answer.json()["error"]["message"]


def test_letters_are_shortened() -> None:
    with running(limited(letter_characters=10, letters=2)) as server:
        server.register(query("A"))
        for _ in range(3):
            server.post("<urn:a> <urn:b " + "x" * 100, time=1)
        told = server.http.get("/letters").json()
        assert (told["count"], [letter["number"] for letter in told["letters"]]) == (3, [3, 2])
        assert told["letters"][0]["payload"] == "<urn:a> <u…"


def test_gzip() -> None:
    body = gzip.compress(many(100).encode())
    headers = {"Content-Encoding": "gzip"}
    with running() as server:
        key = server.register(query("A"))
        answer = server.post(body, kind="application/n-quads", headers=headers)
        assert answer.json() == {"events": 100, "bad": 0, "late": 0}
        for broken in (body[:-9], b"no gzip", body[:20] + b"xxxx" + body[24:]):
            answer = server.post(broken, kind="application/n-quads", headers=headers)
            assert (answer.status_code, answer.json()["error"]["kind"]) == (400, "bad-event")
        answer = server.post(body, kind="application/n-quads", headers={"Content-Encoding": "br"})
        assert (answer.status_code, answer.json()["error"]["kind"]) == (400, "format")
        assert len(server.matches(key)) == 100


def test_a_body_that_is_too_long_packed_or_not() -> None:
    with running(limited(body_bytes=50_000)) as server:
        server.register(query("A"))
        long = b" " * 60_000
        for body, headers in [
            (long, {}),
            (gzip.compress(long), {"Content-Encoding": "gzip"}),
            (gzip.compress(long), {}),
            (iter([long[:30_000], long[:30_000]]), {}),
        ]:
            answer = server.post(body, kind="application/n-quads", headers=headers)
            assert (answer.status_code, answer.json()["error"]["kind"]) == (413, "limit")
            assert "body_bytes" in answer.json()["error"]["message"]


def test_a_long_body_is_taken_as_it_comes() -> None:
    """More than is read first: events are matched before the rest is there."""
    text = many(12_000).encode()
    assert len(text) > 3 << 20
    with running() as server:
        key = server.register(query("A"))

        def parts() -> Iterator[bytes]:
            for begin in range(0, len(text), 1 << 18):
                if begin > 2 << 20:
                    until(lambda: server.app.service.queries[key].history.count > 100)
                yield text[begin : begin + (1 << 18)]

        answer = server.post(parts(), kind="application/n-quads")
        assert answer.json() == {"events": 12_000, "bad": 0, "late": 0}
        packed = gzip.compress(text, 0)
        answer = server.post(packed, kind="application/n-quads", headers={"Content-Encoding": "gzip"})
        assert answer.json()["events"] + answer.json()["late"] == 12_000
        assert not server.app.service.uploads


def test_a_long_body_that_stops_is_given_up() -> None:
    text = many(12_000).encode()
    with running(Settings(port=0, limits=ServeLimits(pause=1))) as server:
        server.register(query("A"))

        def parts() -> Iterator[bytes]:
            yield text[: 2 << 20]
            until(lambda: bool(server.app.service.uploads))
            until(lambda: not server.app.service.uploads)
            yield text[2 << 20 :]

        try:
            answer = server.post(parts(), kind="application/n-quads")
            assert answer.status_code == 408
        except httpx.TransportError:
            pass  # the server has hung up before it was read to the end
        assert server.http.get("/healthz").status_code == 200
        (stream,) = server.http.get("/streams").json()["streams"]
        assert 0 < stream["events"] < 12_000


def test_time_moves_on_by_watermark() -> None:
    with running() as server:
        key = server.register(query("A ; !B", "3 SECONDS SLIDING"))
        server.send("a1")
        assert server.matches(key) == []
        path = f"/streams/{quote(NS + 'S', safe='')}/watermark"
        assert server.http.post(path, params={"time": 10}).status_code == 200
        assert [match["start"] for match in server.matches(key)] == [1]
        assert server.post(letters("a5")[0].turtle, time=5).json() == {"events": 0, "bad": 0, "late": 1}
        answer = server.http.post(path)
        assert (answer.status_code, answer.json()["error"]["kind"]) == (400, "parameter")


@pytest.mark.parametrize("iri", ["urn:s", "http://e.org/s?x=1&y=%20#f", "http://e.org/a/watermark", "urn:ü"])
def test_iris_of_streams(iri: str) -> None:
    text = query("A").replace(f"<{NS}S>", f"<{iri}>")
    with running() as server:
        key = server.register(text)
        path = f"/streams/{quote(iri, safe='')}"
        headers = {"Content-Type": "text/turtle"}
        answer = server.http.post(path, content=letters("a1")[0].turtle, params={"time": 1}, headers=headers)
        assert answer.json() == {"events": 1, "bad": 0, "late": 0}
        assert [stream["iri"] for stream in server.http.get("/streams").json()["streams"]] == [iri]
        assert len(server.matches(key)) == 1


def test_what_is_no_iri_of_a_stream() -> None:
    with running() as server:
        for name in ("S", "http://a b"):
            path = f"/streams/{quote(name, safe='')}"
            answer = server.http.post(path, content="", headers={"Content-Type": "text/turtle"})
            assert (answer.status_code, answer.json()["error"]["kind"]) == (400, "parameter")


def test_sources_are_read_beside_requests(tmp_path: Path) -> None:
    path = tmp_path / "s.nq"
    path.write_text(quads("a1 a2 a3"), encoding="utf-8")
    source = spaseq.Source(NS + "S", path)
    with running(queries={"all": query("A")}, sources=(source,)) as server:
        until(lambda: len(server.matches("all")) == 3)
