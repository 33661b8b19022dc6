"""Notebooks run without Jupyter: their cells are Python, and what they show is text.

python -m tests.docs.notebooks      runs them, in the root as they say, and writes what they show into them
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

from tests.docs.blocks import ROOT

FOLDER = ROOT / "docs" / "notebooks"
NAMES = sorted(path.stem for path in FOLDER.glob("*.ipynb"))


def run(notebook: dict[str, Any], name: str) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Each cell of code with what it shows now: what it prints, and the value of its last line."""
    names: dict[str, Any] = {"__name__": "__main__"}
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for number, cell in enumerate(cells, 1):
        code = ast.parse("".join(cell["source"]), f"{name}[{number}]")
        last = code.body.pop() if code.body and isinstance(code.body[-1], ast.Expr) else None
        printed, value = StringIO(), None
        with redirect_stdout(printed):
            exec(compile(code, f"{name}[{number}]", "exec"), names)
            if isinstance(last, ast.Expr):
                value = eval(compile(ast.Expression(last.value), f"{name}[{number}]", "eval"), names)
        shown: list[dict[str, Any]] = []
        if printed.getvalue():
            shown.append({"name": "stdout", "output_type": "stream", "text": lines(printed.getvalue())})
        if value is not None:
            data = {"text/plain": lines(repr(value))}
            result = {"data": data, "execution_count": number, "metadata": {}}
            shown.append({**result, "output_type": "execute_result"})
        cell["execution_count"] = number
        yield cell, shown


def lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def read(name: str) -> dict[str, Any]:
    notebook: dict[str, Any] = json.loads((FOLDER / f"{name}.ipynb").read_text(encoding="utf-8"))
    return notebook


def write(path: Path, notebook: dict[str, Any]) -> None:
    path.write_text(json.dumps(notebook, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    for each in NAMES:
        content = read(each)
        for code_cell, now in run(content, each):
            code_cell["outputs"] = now
        write(FOLDER / f"{each}.ipynb", content)
