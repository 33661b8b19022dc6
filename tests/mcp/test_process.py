"""``spaseq mcp`` as an assistant starts it: the official client over standard input and output."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from spaseq.cli.app import app

pytest.importorskip("mcp", reason="the package mcp is not installed: spaseq[mcp]")

from mcp import Client, StdioServerParameters

COMMAND = [sys.executable, "-c", "from spaseq.cli import main; main()", "mcp"]


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    file = tmp_path / "films.nt"
    file.write_text(
        "<urn:film:Kismet> <urn:starred> <urn:person:Edward_Arnold> .\n"
        "<urn:film:Kismet> <urn:directed_by> <urn:person:William_Dieterle> .\n"
    )
    return file


@pytest.mark.slow
def test_the_official_client(graph: Path) -> None:
    async def ask() -> tuple[set[str], str]:
        command, *arguments = [*COMMAND, "-g", str(graph), "--events"]
        process = StdioServerParameters(command=command, args=arguments, env=dict(os.environ))
        async with Client(process, read_timeout_seconds=500) as client:
            tools = await client.list_tools()
            found = await client.call_tool(
                "retrieve", {"topic": "Edward Arnold", "relations": [["^starred", "directed by"]]}
            )
        return {tool.name for tool in tools.tools}, found.structured_content["text"]

    names, text = asyncio.run(ask())
    assert {"retrieve", "register"} <= names
    assert text.splitlines()[-1] == "(Kismet, directed by, William Dieterle)"


@pytest.fixture
def started(graph: Path) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [*COMMAND, "-g", str(graph)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()


def greeted(process: subprocess.Popen[bytes]) -> None:
    """The server has answered, so it serves."""
    assert process.stdin is not None
    assert process.stdout is not None
    greeting = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "0"},
        },
    }
    process.stdin.write(json.dumps(greeting).encode() + b"\n")
    process.stdin.flush()
    answer = json.loads(process.stdout.readline())
    assert answer["result"]["serverInfo"]["name"] == "spaseq"


@pytest.mark.slow
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 0), (signal.SIGTERM, 143)])
def test_signals_end_it(started: subprocess.Popen[bytes], number: int, status: int) -> None:
    greeted(started)
    started.send_signal(number)
    assert started.wait(180) == status
    assert started.stderr is not None
    assert b"Traceback" not in started.stderr.read()


@pytest.mark.slow
def test_the_end_of_its_input_ends_it(started: subprocess.Popen[bytes]) -> None:
    greeted(started)
    assert started.stdin is not None
    started.stdin.write(b"this is no JSON\n")
    started.stdin.close()
    assert started.wait(180) == 0
    assert started.stderr is not None
    assert b"Traceback" not in started.stderr.read()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "name a graph with -g FILE"),
        (["-g", "films.nt", "--kb", "urn:kb=kb.ttl"], "--kb is for --events"),
        (["-g", "there is no such file.ttl"], "there is no such file.ttl"),
    ],
)
def test_wrong_calls(arguments: list[str], told: str) -> None:
    result = CliRunner().invoke(app, ["mcp", *arguments])
    assert result.exit_code in (1, 2)
    assert told in result.stderr


@pytest.mark.slow
def test_a_client_that_is_gone_before_its_answer_ends_it(started: subprocess.Popen[bytes]) -> None:
    greeted(started)
    assert started.stdin is not None
    assert started.stdout is not None
    started.stdout.close()
    started.stdin.write(b'{"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}}\n')
    started.stdin.close()
    assert started.wait(180) == 0
    assert started.stderr is not None
    assert b"Traceback" not in started.stderr.read()
