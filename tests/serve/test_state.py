"""``spaseq serve --state``: queries, windows and the numbers of matches outlive the process."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path

import httpx
import pytest

from spaseq.engine.durable import summary
from tests.serve.running import PATIENCE
from tests.serve.test_process import SPASEQ, serving
from tests.streams import NS, letters, query

STREAM = f"/streams/{NS.replace(':', '%3A').replace('/', '%2F')}S"


def send(http: httpx.Client, events: str) -> None:
    for letter in letters(events):
        answer = http.post(
            STREAM,
            content=letter.turtle,
            params={"time": letter.time},
            headers={"Content-Type": "text/turtle"},
        )
        assert answer.json() == {"events": 1, "bad": 0, "late": 0}


def numbers(http: httpx.Client, key: str, count: int) -> list[int]:
    """The numbers of the matches that are kept, when there were so many."""
    end = time.monotonic() + PATIENCE
    while http.get(f"/queries/{key}").json()["matches"] < count:
        assert time.monotonic() < end
        time.sleep(0.05)
    lines = http.get(f"/queries/{key}/matches?follow=0").text.splitlines()
    return [line["number"] for line in map(_json, lines) if "number" in line]


def _json(line: str) -> dict[str, int]:
    found = httpx.Response(200, content=line).json() if line else {}
    assert isinstance(found, dict)
    return found


def committed(state: Path, events: int, taken: int) -> None:
    """Waits until so many events, and so many taken matches, are in the file: a second or so."""
    end = time.monotonic() + PATIENCE
    while (found := summary(state)).events < events or sum(q.taken for q in found.queries) < taken:
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.few(0, ci=1)
def test_a_restart_goes_on(tmp_path: Path, end: signal.Signals) -> None:
    state = tmp_path / "s.state"
    with serving("--state", state) as (process, url), httpx.Client(base_url=url, timeout=PATIENCE) as http:
        text = query("A ; B ; C", "100 SECONDS SLIDING")
        assert http.post("/queries?name=abc", content=text).status_code == 201
        send(http, "a1 b2 c3 a4 b5")
        assert numbers(http, "abc", 1) == [1]
        committed(state, 5, 1)
        process.send_signal(end)
        process.wait(PATIENCE)
    with serving("--state", state) as (process, url), httpx.Client(base_url=url, timeout=PATIENCE) as http:
        (known,) = http.get("/queries").json()["queries"]
        assert known["name"] == "abc"
        assert known["text"] == text
        send(http, "c6")  # a4 b5 c6: of the window that was open
        assert numbers(http, "abc", 2) == [2]
        assert http.delete("/queries/abc").status_code == 204
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0
    with serving("--state", state) as (_, url), httpx.Client(base_url=url, timeout=PATIENCE) as http:
        assert http.get("/queries").json()["queries"] == []


@pytest.mark.slow
def test_a_query_needs_a_name(tmp_path: Path) -> None:
    with (
        serving("--state", tmp_path / "s.state") as (_, url),
        httpx.Client(base_url=url, timeout=PATIENCE) as http,
    ):
        answer = http.post("/queries", content=query("A ; B"))
        assert answer.status_code == 400
        assert "by their names" in answer.json()["error"]["message"]


@pytest.mark.slow
def test_a_query_of_a_file_is_the_same_or_refused(tmp_path: Path) -> None:
    path, state = tmp_path / "late.rq", tmp_path / "s.state"
    path.write_text(query("A ; B"), encoding="utf-8")
    for _ in range(2):
        with serving(path, "--state", state) as (process, _):
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE) == 0
    path.write_text(query("A ; C"), encoding="utf-8")
    command = [*SPASEQ, "serve", str(path), "--port", "0", "--state", str(state)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 1
    assert "another query of the name 'late'" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_what_a_state_does_not_hold(tmp_path: Path) -> None:
    command = [*SPASEQ, "serve", "--state", str(tmp_path / "s.state"), "--demo"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 2
    assert "--state does not go with --demo" in done.stderr


@pytest.mark.slow
def test_a_graph_that_was_written_is_there_after_a_kill(tmp_path: Path) -> None:
    kb, state = f"{NS}kb", tmp_path / "s.state"
    (tmp_path / "kb.ttl").write_text(f"<urn:x> <{NS}is> 1 .")
    options = ("--state", state, "--allow-write", "--kb", f"{kb}={tmp_path / 'kb.ttl'}")
    text = query("A ; B", "100 SECONDS SLIDING", {"A": f"GRAPH <{kb}> {{ ?x :is ?av }}"})
    with serving(*options) as (process, url), httpx.Client(base_url=url, timeout=PATIENCE) as http:
        assert http.post("/queries?name=alarms", content=text).status_code == 201
        send(http, "a1=1 a2=2")
        turtle = {"Content-Type": "text/turtle"}
        written = http.put("/graphs", params={"graph": kb}, content=f"<urn:x> <{NS}is> 2 .", headers=turtle)
        assert written.status_code == 204
        send(http, "a3=1 a4=2")
        committed(state, 4, 0)
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=PATIENCE)
    with serving(*options) as (_, url), httpx.Client(base_url=url, timeout=PATIENCE) as http:
        nt = {"Accept": "application/n-triples"}
        assert '"2"^^' in http.get("/graphs", params={"graph": kb}, headers=nt).text
        send(http, "b5")
        assert numbers(http, "alarms", 2) == [1, 2]
