"""The command line with live sources, and results by URL."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import spaseq as package
from spaseq.cli import app
from spaseq.cli.running.report import Report
from spaseq.cli.running.state import KeptOutputs
from spaseq.engine import Handle
from spaseq.engine.durable import summary
from spaseq.engine.pipelines.dispatcher import Dispatcher
from tests.connect.events import QUERY, STREAM, event, limited, server_sent
from tests.connect.servers import PATIENCE, Answer, free_port, http, until

COMMAND = (sys.executable, "-c", "from spaseq.cli import main; main()")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    (tmp_path / "q.rq").write_text(QUERY)
    (tmp_path / "four.rq").write_text(limited(4))
    (tmp_path / "s.nq").write_bytes(b"".join(map(event, range(4))))
    return tmp_path


def run(*arguments: str) -> Result:
    result = CliRunner().invoke(app, ["run", "--matcher", "reference", *arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert "Traceback" not in result.stderr
    return result


@contextmanager
def process(here: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    started = subprocess.Popen(
        [*COMMAND, "run", "q.rq", "--matcher", "reference", "--no-why", "-f", "ndjson", *arguments],
        env={**os.environ, "PYTHONPATH": str(Path(package.__file__).parents[1])},
        cwd=here,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield started
    finally:
        started.kill()
        started.communicate()


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("--idle", "60s")])
def test_ctrl_c_ends_a_live_run_at_once(here: Path, options: tuple[str, ...]) -> None:
    with http(Answer([server_sent(range(3))], stays=True)) as server:
        url = f"S=http://127.0.0.1:{server.port}/e?format=nq"
        with process(here, "-s", url, *options) as started:
            assert started.stdout is not None
            lines = [started.stdout.readline() for _ in range(3)]
            started.send_signal(signal.SIGINT)
            out, err = started.communicate(timeout=PATIENCE)
            assert (out, started.returncode) == ("", 0)
            assert re.fullmatch(r"3 events, 3 matches in [\d.]+ s\n", err)
        assert [json.loads(line)["end"] for line in lines] == [0, 1, 2]
        until(lambda: server.open == 0)


def test_sigterm_commits_what_a_live_run_has_read(here: Path) -> None:
    kept = ("-s", "S=file:s.nq?follow", "--state", "s.state", "--commit-every", "1h", "-o", "out")
    with process(here, *kept) as started:
        until(lambda: (here / "out").exists() and (here / "out").read_bytes().count(b"\n") == 3)
        started.send_signal(signal.SIGTERM)
        out, err = started.communicate(timeout=PATIENCE)
        assert (out, started.returncode) == ("", 143)
        assert re.fullmatch(r"3 events, 3 matches in [\d.]+ s\n", err)
    said = summary(here / "s.state")
    assert said.sources[0].events == 3
    assert list(said.outputs.values()) == [(here / "out").stat().st_size]


@pytest.mark.parametrize(
    "within", [(Dispatcher, "admit"), (KeptOutputs, "settled"), (Handle, "batches"), (Report, "write")]
)
def test_sigterm_commits_what_is_in_hand(
    here: Path, monkeypatch: pytest.MonkeyPatch, within: tuple[type, str]
) -> None:
    original, signals = getattr(*within), [signal.SIGTERM]

    def interrupted(*arguments: Any) -> Any:
        while signals:
            signal.raise_signal(signals.pop())
        return original(*arguments)

    kept = ("-s", "S=s.nq", "--state", "s.state", "--commit-every", "1h", "-o", "out", "-f", "ndjson")
    with monkeypatch.context() as patched:
        patched.setattr(*within, interrupted)
        assert run("q.rq", *kept).exit_code == 143
    said = summary(here / "s.state")
    assert said.sources[0].events == 3
    assert list(said.outputs.values()) == [(here / "out").stat().st_size]
    assert (here / "out").read_bytes().count(b"\n") == 3
    assert run("q.rq", *kept).exit_code == 0
    assert [json.loads(line)["end"] for line in (here / "out").read_text().splitlines()] == [*range(4)]


@pytest.mark.usefixtures("here")
def test_a_limit_ends_a_live_run() -> None:
    with http(Answer([server_sent(range(9))], stays=True)) as server:
        result = run("four.rq", "-s", f"S=http://127.0.0.1:{server.port}/e?format=nq", "-f", "ndjson")
        assert result.exit_code == 0
        assert len(result.stdout.splitlines()) == 4
        until(lambda: server.open == 0)


@pytest.mark.usefixtures("here")
def test_a_file_and_then_live_by_two_options() -> None:
    with http(Answer([server_sent(range(2, 6))]), Answer(status=204)) as server:
        url = f"S=http://127.0.0.1:{server.port}/e?format=nq"
        result = run("q.rq", "-s", "S=s.nq", "-s", url, "-f", "ndjson")
        assert [json.loads(line)["end"] for line in result.stdout.splitlines()] == [*range(6)]
        again = run("q.rq", "-s", url, "-s", "S=s.nq")
        assert again.exit_code == 2
        assert "only a live one goes on with a file" in again.stderr


@pytest.mark.usefixtures("here")
def test_what_is_wrong_is_told_with_status_2_and_without_credentials() -> None:
    result = run("q.rq", "-s", "S=kafka://me:hush@h/t?gruop=g")
    assert result.exit_code == 2
    assert "did you mean group?" in result.stderr
    assert "hush" not in result.stderr
    result = run("q.rq", "-s", "S=s.nq", "-o", "https://me:hush@h/t?gruop=g")
    assert result.exit_code == 2
    assert "hush" not in result.stderr
    result = run("q.rq", "-s", "S=s.nq", "-o", "http://h/t", "-f", "csv")
    assert (result.exit_code, "csv is a document" in result.stderr) == (2, True)


@pytest.mark.usefixtures("here")
def test_nobody_there_is_status_1() -> None:
    result = run("q.rq", "-s", f"S=http://127.0.0.1:{free_port()}/?format=nq&connect=200ms")
    assert result.exit_code == 1
    assert "no connection within 0.2 s" in result.stderr


def test_the_catalogue_is_asked_for_the_streams_of_the_query_only(here: Path) -> None:
    with http(Answer([server_sent(range(3))]), Answer(status=204)) as server, http(Answer()) as other:
        (here / "catalog.ttl").write_text(
            "@prefix vocals: <http://w3id.org/rsp/vocals#> . @prefix dcat: <http://www.w3.org/ns/dcat#> .\n"
            f"<{STREAM}> a vocals:RDFStream ; vocals:hasEndpoint [\n"
            f"  dcat:accessURL <http://127.0.0.1:{server.port}/e?format=nq> ] .\n"
            f"<{STREAM}2> a vocals:RDFStream ; vocals:hasEndpoint [\n"
            f"  dcat:accessURL <http://127.0.0.1:{other.port}/e?format=nq> ] .\n"
        )
        result = run("q.rq", "--catalog", "catalog.ttl", "-f", "ndjson")
        assert len(result.stdout.splitlines()) == 3
        assert other.seen == []


# --- results by URL -----------------------------------------------------------------------------


@pytest.mark.usefixtures("here")
def test_matches_are_posted_with_query_and_number() -> None:
    with http(Answer(media="text/plain")) as server:
        result = run("q.rq", "-s", "S=s.nq", "-o", f"http://127.0.0.1:{server.port}/in?token=hush")
        assert (result.exit_code, result.stdout) == (0, "")
        lines = [json.loads(line) for body in server.bodies for line in body.splitlines()]
        assert [(line["query"], line["number"], line["end"]) for line in lines] == [
            ("q.rq", n + 1, n) for n in range(4)
        ]
        assert server.seen[0]["content-type"] == "application/x-ndjson"
        assert server.seen[0]["authorization"] == "Bearer hush"
        assert server.seen[0]["idempotency-key"] == "q.rq/1"


@pytest.mark.usefixtures("here")
def test_a_request_is_made_again_until_it_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spaseq.connect.reconnect.FIRST", 0.02)
    with http(Answer(status=503), Answer(breaks=True), Answer(media="text/plain")) as server:
        result = run("q.rq", "-s", "S=s.nq", "-o", f"http://127.0.0.1:{server.port}/in")
        assert result.exit_code == 0
        keys = [seen["idempotency-key"] for seen in server.seen]
        assert keys[:3] == ["q.rq/1"] * 3
        assert len(set(keys)) == len(keys) - 2


@pytest.mark.usefixtures("here")
def test_matches_that_nobody_takes_end_the_run_with_how_many_were() -> None:
    with http(Answer(status=400)) as server:
        result = run("q.rq", "-s", "S=s.nq", "-o", f"http://127.0.0.1:{server.port}/in")
    assert result.exit_code == 1
    assert "the server answers 400; 0 records were delivered before" in result.stderr


def test_no_thread_is_left() -> None:
    until(lambda: not [thread for thread in threading.enumerate() if thread.name == "spaseq-http"])
