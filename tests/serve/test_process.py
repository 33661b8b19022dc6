"""``spaseq serve`` as a process: its first line, its end, and the session in the documentation."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

import spaseq
from tests.serve.running import PATIENCE, running
from tests.streams import NS, letters, query

ROOT = Path(__file__).parents[2]

SPASEQ = [sys.executable, "-c", "from spaseq.cli import main; main()"]


@contextmanager
def serving(*arguments: str | Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    command = [*SPASEQ, "serve", "--port", "0", *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line.startswith("spaseq serves http://127.0.0.1:"), (line, process.poll())
            yield process, line.split()[-1]
        finally:
            process.kill()


def test_sigterm_ends_in_order(tmp_path: Path) -> None:
    path = tmp_path / "late.rq"
    path.write_text(query("A ; !B", "10 SECONDS SLIDING"), encoding="utf-8")
    with serving(path) as (process, url), httpx.Client(base_url=url, timeout=PATIENCE) as http:
        letter = letters("a1")[0]
        stream = f"/streams/{NS.replace(':', '%3A').replace('/', '%2F')}S"
        answer = http.post(
            stream, content=letter.turtle, params={"time": 1}, headers={"Content-Type": "text/turtle"}
        )
        assert answer.json() == {"events": 1, "bad": 0, "late": 0}
        with http.stream("GET", "/queries/late/matches") as reading:
            process.send_signal(signal.SIGTERM)
            lines = [line for line in reading.iter_lines() if line]
        assert [re.match(r'\{"(\w+)"', line)[1] for line in lines] == ["number", "end"]  # type: ignore[index]
        assert process.wait(PATIENCE) == 0
        assert process.stderr is not None
        assert process.stderr.read() == ""


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--host", "0.0.0.0"], "give a token"),
        (["--token-file", "/nowhere/token"], "cannot be read"),
        (["--token", "a", "--token-file", "b"], "two ways"),
        (["missing.rq"], "cannot be read"),
    ],
)
@pytest.mark.few(0, ci=1)
def test_wrong_calls(arguments: list[str], reason: str) -> None:
    done = subprocess.run([*SPASEQ, "serve", *arguments], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 2
    assert reason in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_a_file_that_is_named_like_an_id(tmp_path: Path) -> None:
    path = tmp_path / "q7.rq"
    path.write_text(query("A"), encoding="utf-8")
    command = [*SPASEQ, "serve", "--port", "0", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 1
    assert "'q7' looks like an id" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_a_port_that_another_has() -> None:
    with serving() as (_, url):
        port = url.rpartition(":")[2]
        done = subprocess.run(
            [*SPASEQ, "serve", "--port", port], capture_output=True, text=True, timeout=PATIENCE
        )
        assert done.returncode == 1
        assert f"port {port}" in done.stderr
        assert "Traceback" not in done.stderr


def blocks(kind: str) -> str:
    text = (ROOT / "docs" / "serve.md").read_text(encoding="utf-8")
    return "\n".join(re.findall(rf"^```{kind}\n(.*?)^```", text, re.DOTALL | re.MULTILINE))


@pytest.mark.slow
def test_the_session_in_the_documentation(tmp_path: Path) -> None:
    """In a copy of the samples, with this Python's ``spaseq``."""
    for tool in ("bash", "curl"):
        if shutil.which(tool) is None:
            pytest.skip(f"the session needs {tool}, which is not installed")
    for folder in ("streams", "kb"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    command = tmp_path / "bin" / "spaseq"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "from spaseq.cli import main; main()" "$@"\n')
    command.chmod(0o755)
    environment = {**os.environ, "PATH": f"{command.parent}{os.pathsep}{os.environ['PATH']}"}
    script = "trap 'kill \"$SERVER\" 2>/dev/null || true' EXIT\n" + blocks("bash")
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert '"events":1020' in done.stdout
    assert '{"number":1,"start":"2026-06-04T08:04:22Z"' in done.stdout


@pytest.mark.slow
def test_the_example_of_asyncio_in_the_documentation() -> None:
    done = subprocess.run(
        [sys.executable, "-c", blocks("python")], capture_output=True, text=True, timeout=PATIENCE
    )
    assert (done.returncode, done.stdout) == (0, "0 0\n1 1\n2 2\n"), done.stderr


def test_an_engine_that_is_at_work_holds_up_no_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spaseq.serve.service._LAST_CALL", 0.1)
    has_begun, go_on = threading.Event(), threading.Event()

    def block(_: spaseq.Engine) -> None:
        has_begun.set()
        go_on.wait(PATIENCE)

    try:
        with running() as server:
            key = server.register(query("A"))
            engine = server.app.service.engine
            blocking = threading.Thread(target=lambda: asyncio.run(engine.call(block)), daemon=True)
            blocking.start()
            assert has_begun.wait(PATIENCE)
            with server.http.stream("GET", f"/queries/{key}/matches") as reading:
                server.server.should_exit = True
                lines = [line for line in reading.iter_lines() if line]
            assert json.loads(lines[-1])["end"]["reason"] == "stopped"
        assert not go_on.is_set()
    finally:
        go_on.set()
