"""Every page of the documentation is run as it is written, and what its tables of matches say is so."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import pytest

from tests.docs.blocks import PAGES, ROOT, blocks, copy_samples, run_bash, run_python
from tests.streams import found, query

#: Pages whose ``text`` blocks are what the ``bash`` block before them prints: each line is in it.
SHOWN = {"README.md", "cookbook.md", "index.md", "tutorial.md"}

#: Pages whose ``bash`` blocks are one session with a server: ``tests/serve`` runs it as one.
SESSIONS = {"serve.md"}


#: What README's command runs: these pages are quick.
QUICK = {"README.md", "engine.md", "language.md", "operating.md", "results.md", "rdflib.md"}


def title(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


# What rdflib 7.6 deprecates, its own Dataset.query and TriG parser use.
@pytest.mark.filterwarnings("ignore:(Dataset|ConjunctiveGraph):DeprecationWarning")
@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=[] if page.name in QUICK else [pytest.mark.slow]) for page in PAGES],
    ids=title,
)
def test_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy_samples(tmp_path)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "__main__"}
    printed = ""
    for block in blocks(page.read_text(encoding="utf-8")):
        if block.info == "python":
            run_python(block, title(page), names)
        elif block.info == "bash" and page.name not in SESSIONS:
            printed = run_bash(block, title(page), tmp_path)
        elif block.info == "text" and page.name in SHOWN:
            for line in filter(None, block.text.splitlines()):
                assert line in printed, f"{title(page)}:{block.line}: the script above did not print {line!r}"
        elif block.info == "py":
            compile(block.text, f"{title(page)}:{block.line}", "exec")


@pytest.mark.parametrize("page", PAGES, ids=title)
def test_blocks_say_what_they_are(page: Path) -> None:
    for block in blocks(page.read_text(encoding="utf-8")):
        assert re.fullmatch(r"\w+", block.info), (
            f"{title(page)}:{block.line}: ```{block.info}: one word is wanted: python and bash are run, "
            "py is compiled, text, console and sh are shown; the site shows more words as text"
        )


_ROW = re.compile(r"\| (?P<events>(?:`[^`]+`)) \| (?P<seq>`[^`]+`) \| (?P<matches>[^|]+) \|")


def traces() -> list[tuple[str, str, str]]:
    """The rows ``| events | sequence | matches |`` of the language's page."""
    page = (ROOT / "docs" / "language.md").read_text(encoding="utf-8")
    return [
        (row["events"].strip("`"), row["seq"].strip("`"), row["matches"].strip())
        for row in _ROW.finditer(page.replace("\\|", "¦"))
    ]


@pytest.mark.parametrize(("events", "said", "expected"), traces())
def test_traces_of_the_language(events: str, said: str, expected: str) -> None:
    """A sequence, then what follows WHERE, or behind a dash the window; the judge says what is so."""
    seq, _, window = said.replace("¦", "|").partition(" — WITHIN ")
    seq, _, tail = re.sub(r"\b(EMIT|CONSUME|AFTER MATCH)\b", r"§\1", seq, count=1).partition("§")
    gpms = dict.fromkeys(re.findall(r"\b[A-Z]\b", seq), "")
    text = query(seq.strip(), window or "10 SECONDS", gpms, tail=tail)
    matches = [] if expected == "none" else [match.strip(" `") for match in expected.split(",")]
    assert sorted(found(text, events, matcher="reference")) == sorted(matches)


def test_there_are_traces() -> None:
    assert len(traces()) >= 40


def test_the_drawings_of_the_traces_are_those_of_the_tables() -> None:
    drawn: dict[str, Any] = runpy.run_path(str(ROOT / "docs" / "traces.py"))
    page = drawn["PAGE"].read_text(encoding="utf-8")
    sections = drawn["sections"](page)
    assert sum(map(len, sections.values())) == len(traces())
    for title, rows in sections.items():
        picture = drawn["PICTURES"] / drawn["name"](title)
        assert f"(traces/{picture.name})" in page
        there = picture.read_text(encoding="utf-8")
        assert there == drawn["drawing"](title, rows), "python docs/traces.py draws them anew"


def test_the_readme_begins_with_what_the_site_begins_with() -> None:
    """README's first command installs, so it is not run; what it then runs is on the site's first page."""
    first, *_ = blocks((ROOT / "README.md").read_text(encoding="utf-8"))
    _, _, command = first.text.replace("\\\n", "").partition(".venv/bin/spaseq ")
    index, *_ = blocks((ROOT / "docs" / "index.md").read_text(encoding="utf-8"))
    assert index.info == "bash"
    assert index.text.replace("\\\n", "").split() == f"spaseq {command}".split()
