"""The fenced blocks of a Markdown page, and how they are run: as a reader would, one after the other.

``python`` with ``>>>`` is a session whose answers must be as printed; without, a program. ``bash`` is a
script that must end with status 0. The blocks of a page share one folder, which begins as a copy of the
repository's samples, and its Python blocks share their names. All other languages (``text``, ``console``,
``sh``, ``sparql``, …) are shown and not run; ``py`` is Python that is only compiled, since what it needs
(a broker, a cluster, a model) is not there.
"""

from __future__ import annotations

import doctest
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

#: What a reader finds in the repository's root, of what blocks may use.
SAMPLES = ("streams", "kb", "vocab", "docs")

_FENCE = re.compile(r"^(?P<indent> *)(?P<ticks>`{3,})(?P<info>[^`\n]*)$")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: what stands behind its backticks, its text, and the line it begins on."""

    info: str
    text: str
    line: int


def blocks(page: str) -> list[Block]:
    """The fenced blocks of a page, in order; those inside of a list are indented less."""
    found: list[Block] = []
    lines = iter(enumerate(page.splitlines(), 1))
    for number, line in lines:
        if not (opened := _FENCE.match(line)):
            continue
        indent, body = len(opened["indent"]), []
        for _, inner in lines:
            if inner.strip() == opened["ticks"]:
                break
            body.append(inner[min(indent, len(inner) - len(inner.lstrip())) :])
        else:
            raise ValueError(f"line {number}: this block does not end")
        found.append(Block(opened["info"].strip(), "\n".join(body) + "\n", number))
    return found


def copy_samples(folder: Path) -> None:
    """The samples, as they lie in the repository's root."""
    for name in SAMPLES:
        shutil.copytree(ROOT / name, folder / name)
    films = Path("spaseq", "samples", "films.ttl")
    (folder / films).parent.mkdir(parents=True)
    shutil.copy(ROOT / films, folder / films)


def run_python(block: Block, page: str, names: dict[str, Any]) -> None:
    """A session or a program, with what the blocks before it on its page have defined."""
    if ">>> " in block.text:
        test = doctest.DocTestParser().get_doctest(block.text, names, page, page, block.line)
        test.globs = names  # and not a copy: the next block goes on with them
        said: list[str] = []
        runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
        runner.run(test, out=said.append, clear_globs=False)
        assert not runner.failures, "".join(said)
    else:
        padding = "\n" * block.line  # so that errors name the page's lines
        exec(compile(padding + block.text, page, "exec"), names)


def run_bash(block: Block, page: str, folder: Path) -> str:
    """A script; returns what it printed. ``spaseq`` and ``python`` are those that run the tests."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", block.text],
        cwd=folder,
        env={**os.environ, "PATH": path, "COLUMNS": "120", "PYTHONSAFEPATH": ""},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, f"{page}:{block.line}: status {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr
