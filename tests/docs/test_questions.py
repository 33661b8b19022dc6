"""The five questions of docs/graphrag.md: all four ways to ask them give the same facts."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from spaseq.cli.app import app
from spaseq.paths import KnowledgeGraph, load

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "graphrag.md"
FILMS = ROOT / "spaseq" / "samples" / "films.ttl"

#: Number → question, topic, relations, and the lines of the answer.
ANSWERS = {
    1: ["(Paper Moths, directed by, Mara Lind)"],
    2: [
        "(Paper Moths, release year, 1964)",
        "(Paper Moths, starred, Ines Rowe)",
        "(The Last Orchard, release year, 1975)",
        "(The Last Orchard, starred, Ines Rowe)",
        "(The Lighthouse Keeper, release year, 1961)",
        "(The Lighthouse Keeper, starred, Ines Rowe)",
    ],
    3: [
        "(The Lighthouse Keeper, starred, Ines Rowe)",
        "(The Lighthouse Keeper, starred, Tomas Ek)",
        "(Winter Ferry, starred, Otto Brandt)",
        "(Winter Ferry, starred, Tomas Ek)",
    ],
    4: [
        "(Mara Lind, born in, Harwick)",
        "(Otto Brandt, born in, Port Anselm)",
        "(Paper Moths, directed by, Mara Lind)",
        "(Paper Moths, written by, Jun Aoki)",
        "(Winter Ferry, directed by, Otto Brandt)",
        "(Winter Ferry, written by, Jun Aoki)",
    ],
    5: [
        "(Paper Moths, starred, Otto Brandt)",
        "(Winter Ferry, directed by, Otto Brandt)",
        "(Winter Ferry, starred, Otto Brandt)",
    ],
}


def questions() -> list[tuple[str, str, list[str]]]:
    """The question, topic and relations of each row of the page's table."""
    rows = re.findall(r"^\| \d \| (.*?) \| `(.*?)` \| `(.*?)` \|$", PAGE.read_text(encoding="utf-8"), re.M)
    return [(question, topic, json.loads(relations)) for question, topic, relations in rows]


@cache
def films() -> KnowledgeGraph:
    return load(FILMS)


def by_command_line(question: str, topic: str, relations: list[str]) -> str:
    """As the page has it for one of them."""
    arguments = ["retrieve", "-g", str(FILMS), "--topic", topic, json.dumps(relations), "-q", question]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.stderr
    return result.stdout


def by_langchain(question: str, topic: str, relations: list[str]) -> str:
    pytest.importorskip("langchain_core", reason="LangChain is not installed: spaseq[langchain]")
    from langchain_core.language_models import FakeListChatModel

    from spaseq.paths.langchain import SpaseqRetriever

    model = FakeListChatModel(responses=[json.dumps([topic]), json.dumps([relations])])
    return SpaseqRetriever(graph=films(), model=model).retrieval(question).text()


def by_llamaindex(question: str, topic: str, relations: list[str]) -> str:
    pytest.importorskip("llama_index.core", reason="LlamaIndex is not installed: spaseq[llamaindex]")
    from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata

    from spaseq.paths.llamaindex import SpaseqRetriever

    class Model(CustomLLM):
        answers: list[str]

        @property
        def metadata(self) -> LLMMetadata:
            return LLMMetadata()

        def complete(self, prompt: str, formatted: bool = False, **_: Any) -> CompletionResponse:  # noqa: ARG002
            return CompletionResponse(text=self.answers.pop(0))

        def stream_complete(self, prompt: str, formatted: bool = False, **_: Any) -> Any:  # noqa: ARG002
            yield self.complete(prompt)

    model = Model(answers=[json.dumps([topic]), json.dumps([relations])])
    return SpaseqRetriever(films(), model).retrieval(question).text()


def by_mcp(question: str, topic: str, relations: list[str]) -> str:
    pytest.importorskip("mcp", reason="the package mcp is not installed: spaseq[mcp]")
    from mcp import Client

    from spaseq.mcp import server

    async def ask() -> str:
        async with Client(server(films()), read_timeout_seconds=500) as client:
            given = {"topic": topic, "relations": [relations], "question": question}
            found = await client.call_tool("retrieve", given)
        text: str = found.structured_content["text"]
        return text

    return asyncio.run(ask())


@pytest.mark.parametrize("way", [by_command_line, by_langchain, by_llamaindex, by_mcp])
def test_the_same_answers(way: Callable[[str, str, list[str]], str]) -> None:
    found = {n: way(*asked).splitlines() for n, asked in enumerate(questions(), 1)}
    assert {n: sorted(lines) for n, lines in found.items()} == ANSWERS


def blocks(page: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", page, re.M | re.S)


@pytest.mark.parametrize("name", ["graphrag.md", "mcp.md", "paths.md"])
def test_the_pages_run(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The blocks share their names."""
    page = ROOT / "docs" / name
    monkeypatch.chdir(ROOT)
    found = blocks(page.read_text(encoding="utf-8"))
    assert found
    names = {"__name__": "page"}
    for block in found:
        for needed in ("langchain_core", "llama_index", "mcp"):
            if re.search(rf"^(from|import) {needed}", block, re.M):
                pytest.importorskip(needed, reason=f"{needed} is not installed")
        exec(compile(block, str(page), "exec"), names)
