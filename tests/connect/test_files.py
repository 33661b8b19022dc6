"""Files that are followed, a history that a live stream goes on with, and the catalogue."""

from __future__ import annotations

import os
import threading
from datetime import timedelta
from pathlib import Path

import pytest

import spaseq
from spaseq.connect import source
from spaseq.connect.reconnect import LONGEST_WAIT, Retries
from spaseq.errors import SourceError
from spaseq.sources import BadEvent, load_catalog
from tests.connect.events import EX, STREAM, event, found, limited, server_sent
from tests.connect.servers import PATIENCE, Answer, http, until


class Following(threading.Thread):
    """Follows a file in a thread; ``values`` are those found so far."""

    def __init__(self, path: Path, count: int) -> None:
        super().__init__()
        self.values: list[int] = []
        self.letters: list[BadEvent] = []
        self._run = spaseq.run(
            limited(count),
            {"S": f"file:{path}?follow"},
            matcher="reference",
            dead_letters=self.letters.append,
        )
        self.start()

    def run(self) -> None:
        for match in self._run:
            self.values.append(int(str(match.bindings[0]["v"])))

    def all(self) -> list[int]:
        self.join(PATIENCE)
        assert not self.is_alive()
        return self.values


def append(path: Path, text: bytes) -> None:
    with path.open("ab") as file:
        file.write(text)


def test_a_file_that_grows(tmp_path: Path) -> None:
    path = tmp_path / "s.nq"
    path.write_bytes(event(0) + event(1)[:20])
    following = Following(path, 4)
    append(path, event(1)[20:] + event(2))
    until(lambda: len(following.values) == 2)  # an event is complete when the next one begins
    append(path, event(3) + event(4))
    assert following.all() == [0, 1, 2, 3]


def test_a_file_that_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "s.nq"
    path.write_bytes(event(0) + event(1))
    following = Following(path, 5)
    until(lambda: following.values == [0])
    append(path, event(2) + b"<torn")
    path.rename(tmp_path / "s.nq.1")
    path.write_bytes(event(3) + event(4) + event(5) + event(6) + event(7))
    # The line that was never ended is a dead letter, and spoils what it may have been a part of.
    values = following.all()
    assert values[:2] == [0, 1]
    assert values[-1] >= 5
    assert any("torn" in letter.payload for letter in following.letters)


def test_a_file_that_is_begun_anew(tmp_path: Path) -> None:
    path = tmp_path / "s.nq"
    path.write_bytes(b"".join(map(event, range(10))))
    following = Following(path, 11)
    until(lambda: len(following.values) == 9)
    path.write_bytes(event(10) + event(11))
    assert following.all() == [*range(11)]


def test_with_idle_the_last_event_does_not_wait(tmp_path: Path) -> None:
    path = tmp_path / "s.nq"
    path.write_bytes(event(0) + event(1))
    second = timedelta(seconds=0.2)
    ticking = iter(range(10_000_000))
    values = found(f"file:{path}?follow", limited(2), idle=second, wall_clock=lambda: next(ticking) / 100)
    assert values == [0, 1]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("missing.nq", "no such file to follow"),
        ("a.nq.gz", "a compressed file cannot be followed"),
        ("a.jsonld", "follow ndjsonld"),
        ("a.data", "its format cannot be told"),
    ],
)
def test_what_cannot_be_followed(tmp_path: Path, name: str, said: str) -> None:
    path = tmp_path / name
    if name != "missing.nq":
        path.touch()
    with pytest.raises(SourceError, match=said):
        found(f"file:{path}?follow")


def test_a_file_that_is_not_followed_is_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "s.nq"
    path.write_bytes(event(0) + event(1))
    assert found(f"file://{path}") == [0, 1]


# --- a history, then live -----------------------------------------------------------------------


def test_a_history_then_live_without_a_double(tmp_path: Path) -> None:
    history = tmp_path / "past.nq"
    history.write_bytes(b"".join(map(event, range(30))))
    with http(Answer([server_sent(range(20, 40))]), Answer(status=204)) as server:
        url = f"http://127.0.0.1:{server.port}/e?format=nq"
        assert found(source(url, history=history)) == [*range(40)]


def test_the_live_stream_is_connected_before_its_history_is_read(tmp_path: Path) -> None:
    fifo = tmp_path / "past"
    os.mkfifo(fifo)
    with http(Answer([server_sent(range(2, 4))]), Answer(status=204)) as server:
        url = f"http://127.0.0.1:{server.port}/e?format=nq"
        live = source(url, history=f"{fifo}?format=nq")
        values: list[int] = []
        taking = threading.Thread(target=lambda: values.extend(found(live)))
        taking.start()
        until(lambda: server.seen)  # and nothing is in the pipe yet
        fifo.write_bytes(event(0) + event(1))
        taking.join(PATIENCE)
    assert values == [0, 1, 2, 3]


def test_what_has_no_end_is_no_history() -> None:
    with pytest.raises(SourceError, match="it must have an end"):
        source("ws://h/x?format=nq", history="mqtt://h/t?format=nq")
    with pytest.raises(SourceError, match="is not a live source"):
        source("ticks.nq")


# --- the catalogue ------------------------------------------------------------------------------


def test_the_catalogue_names_live_sources_and_opens_none(tmp_path: Path) -> None:
    path = tmp_path / "catalog.ttl"
    path.write_text(
        f"""@prefix vocals: <http://w3id.org/rsp/vocals#> . @prefix dcat: <http://www.w3.org/ns/dcat#> .
        <{STREAM}> a vocals:RDFStream ; vocals:hasEndpoint [
            dcat:accessURL <mqtt://127.0.0.1:1/t?format=nq> ] .
        <{EX}other> a vocals:RDFStream ; vocals:hasEndpoint [ dcat:accessURL <gopher://h/t> ] ."""
    )
    with pytest.raises(SourceError, match="neither a file nor a URL of kafka, mqtt"):
        load_catalog(path)
    path.write_text(path.read_text().replace("gopher://h/t", "ws://127.0.0.1:1/t"))
    entries = load_catalog(path)
    assert {entry.location for entry in entries.values()} == {
        "mqtt://127.0.0.1:1/t?format=nq",
        "ws://127.0.0.1:1/t",
    }


# --- waiting ------------------------------------------------------------------------------------


def test_waits_double_up_to_the_longest_and_end_with_patience() -> None:
    clock = [0.0]
    retries = Retries(100.0, now=lambda: clock[0], lot=lambda: 0.0)
    waits = []
    while (wait := retries.wait()) is not None:
        waits.append(wait)
        clock[0] += wait
    assert waits[:4] == [0.25, 0.5, 1.0, 2.0]
    assert max(waits) <= LONGEST_WAIT
    assert sum(waits) == pytest.approx(100.0)
    retries.connected()
    assert retries.wait() is not None  # patience begins anew
    before = retries.wait()
    retries.proved()
    assert retries.wait() == 0.25 < (before or 0)


def test_a_document_that_is_read_whole_cannot_be_followed(tmp_path: Path) -> None:
    (tmp_path / "page.ttl").write_text("<urn:s> <urn:member> <urn:m> . <urn:m> <urn:at> 1 .")
    query = "SELECT * WITHIN 9 SECONDS FROM STREAM S <urn:s> WHERE { SEQ(A) DEFINE GPM A ON S { ?s ?p ?o } }"
    with pytest.raises(SourceError, match="use by=subject"):
        list(spaseq.run(query, {"S": f"file:{tmp_path}/page.ttl?follow&by=<urn:member>&time=<urn:at>"}))
