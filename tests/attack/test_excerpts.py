"""Errors cite what they were given by an excerpt, however long it is."""

from __future__ import annotations

import asyncio
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from traceback import format_exception_only
from typing import Any

import pytest
from mcp import Client
from mcp.types import TextContent
from rdflib import Graph

import spaseq
from spaseq.mcp import Bounds, server
from spaseq.paths import KnowledgeGraph, load
from spaseq.sources import SourceOptions
from tests.serve.running import running

EX = "http://example.org/"
LONG = "x" * 50_000
WORDS = "a / " * 5_000
QUERY = f"""PREFIX : <{EX}> SELECT ?v WITHIN 10 SECONDS FROM STREAM S <{EX}S>
    WHERE {{ SEQ(A) DEFINE GPM A ON S {{ [] :v ?v %s }} }}"""


def graph() -> KnowledgeGraph:
    return load(Graph().parse(data="<urn:a> <urn:p> <urn:b> .", format="nt"))


def run(location: object) -> list[object]:
    return list(spaseq.run(QUERY % "", {"S": location}))  # type: ignore[dict-item]


@pytest.mark.parametrize(
    "call",
    [
        lambda: list(graph().pairs(LONG)),
        lambda: list(graph().pairs(WORDS + ")")),
        lambda: list(graph().pairs("<urn:" + LONG)),
        lambda: list(graph().pairs("'" + LONG)),
        lambda: list(graph().pairs("p", sources=[LONG])),
        lambda: load("graph.nt", format=LONG),
        lambda: spaseq.prepare(LONG),
        lambda: spaseq.prepare("SELECT " + WORDS),
        lambda: spaseq.prepare(QUERY % f". ?s ?p <{LONG}"),
        lambda: spaseq.prepare(QUERY % f". ?s {LONG}:p 1"),
        lambda: spaseq.prepare(QUERY % f". ?s :p '{LONG}"),
        lambda: spaseq.prepare(QUERY % f"FILTER({LONG}(?v))"),
        lambda: spaseq.prepare(QUERY % f"FILTER(<{EX}{LONG}>(?v))"),
        lambda: spaseq.Engine().push(f"{EX}S", "<a:a> <b:b> 1 .", LONG),  # type: ignore[arg-type]
        lambda: spaseq.Engine(kb={LONG: "kb.ttl"}),
        lambda: spaseq.Limits().updated(LONG),
        lambda: run(f"s.nq?{LONG}=1"),
        lambda: run(f"s.nq?format={LONG}"),
        lambda: run(f"kafka://h/t?{LONG}=1"),
        lambda: run(f"kafka://{LONG}/t x?format=nq"),
        lambda: run(f"mqtt://h/{LONG}?qos={LONG}"),
        lambda: run(spaseq.Source(f"{EX}S", io.BytesIO(b""), SourceOptions(format=LONG))),
    ],
)
@pytest.mark.few(1, ci=6)
def test_an_error_cites_an_excerpt(call: Callable[[], object]) -> None:
    with pytest.raises(spaseq.SpaseqError) as raised:
        call()
    assert 20 < len(str(raised.value)) < 1_200
    assert len("".join(format_exception_only(raised.value))) < 1_200


def test_a_long_line_is_shown_around_the_place() -> None:
    with pytest.raises(spaseq.errors.QuerySyntaxError) as raised:
        list(graph().pairs(WORDS + "a ) " + WORDS))
    error = raised.value
    assert (error.lineno, error.offset) == (1, len(WORDS) + 3)
    shown, caret = str(error).splitlines()[1:3]
    assert len(shown) < 220
    assert shown[len(caret) - 1] == ")"


def test_a_reason_cites_an_excerpt_and_the_dead_letter_keeps_all() -> None:
    bad: list[spaseq.BadEvent] = []
    text = f"<urn:g> {{ <urn:s> <urn:p> {LONG}:o }}".encode()
    source = spaseq.Source(f"{EX}S", io.BytesIO(text), SourceOptions(format="trig", time="arrival"))
    with pytest.raises(spaseq.SourceError, match=r"nothing of <.*could be read"):
        list(spaseq.run(QUERY % "", {"S": source}, dead_letters=bad.append))
    (letter,) = bad
    assert len(letter.reason) < 1_000
    assert letter.payload == text.decode()


def test_the_server_cites_an_excerpt() -> None:
    requests = [
        ("POST", "/queries", LONG, "text/plain"),
        ("POST", "/queries", QUERY % f". ?s {LONG}:p 1", "text/plain"),
        ("POST", "/paths", json.dumps({"path": WORDS}), "application/json"),
        ("POST", "/paths", json.dumps({"path": "<urn:p>", "graph": "urn:" + LONG}), "application/json"),
        ("POST", "/paths", json.dumps({"path": "<urn:p>", LONG: 1}), "application/json"),
        ("POST", "/paths", json.dumps({"path": "<urn:p>", "mode": LONG}), "application/json"),
        ("POST", "/streams/urn:s?time=1", f"<urn:a> <urn:b> {LONG}:o .", "text/turtle"),
        ("POST", "/streams/urn:s?time=1", "", LONG),
        ("POST", "/sparql", "SELECT " + WORDS, "application/sparql-query"),
        ("GET", "/sparql?window=" + LONG, "", ""),
        ("GET", "/queries/" + LONG, "", ""),
        ("GET", "/graphs?graph=urn:" + LONG, "", ""),
        ("DELETE", "/" + LONG, "", ""),
    ]
    with running() as at:
        for method, path, content, kind in requests:
            headers = {"Content-Type": kind} if kind else {}
            answer = at.http.request(method, path, content=content, headers=headers)
            assert 400 <= answer.status_code < 500, path[:100]
            assert 20 < len(answer.text) < 1_500, (path[:100], content[:100])


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("check", {"query": LONG}),
        ("register", {"query": QUERY % f". ?s {LONG}:p 1"}),
        ("cancel", {"name": LONG}),
        ("matches", {"name": LONG}),
        ("push", {"stream": LONG, "events": [{"graph": "", "time": 1}]}),
        ("push", {"stream": f"{EX}S", "events": [{"graph": f"<urn:a> <urn:b> {LONG}:o .", "time": 1}]}),
        ("push", {"stream": f"{EX}S", "events": [{"graph": "<urn:a> <urn:b> 1 .", "time": LONG}]}),
        ("paths", {"expression": WORDS + ")"}),
        ("paths", {"expression": "<urn:p>", "mode": LONG}),
        ("explain", {"expression": "'" + LONG}),
    ],
)
def test_tools_cite_an_excerpt(tool: str, given: dict[str, Any]) -> None:
    async def ask() -> str:
        async with Client(server(graph(), spaseq.Engine(), Bounds()), read_timeout_seconds=300) as client:
            answer = await client.call_tool(tool, given)
            return "".join(part.text for part in answer.content if isinstance(part, TextContent))

    told = asyncio.run(ask())
    assert 20 < len(told) < 1_500


@pytest.mark.parametrize("before", [["--"], [""], ["run", ""], ["run", "q.rq", "--lateness", ""]])
@pytest.mark.few(1, ci=2)
def test_the_command_line_cites_an_excerpt(before: list[str]) -> None:
    *words, last = before
    command = [sys.executable, "-m", "spaseq", *words, last + "x" * 50_000]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 2
    assert 50 < len(done.stderr) < 1_200


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such signals")
@pytest.mark.parametrize("module", ["spaseq.cli.app", "typer", "spaseq.connect.live"])
def test_ctrl_c_during_imports_ends_without_a_traceback(module: str) -> None:
    script = f"""
import os, signal, sys
class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupting())
sys.argv = ["spaseq", "--help"]
from spaseq.__main__ import main
main()
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (130, "")
