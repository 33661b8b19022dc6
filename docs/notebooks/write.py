"""``python docs/notebooks/write.py``, in the root: runs each ``NAME.py`` here and writes ``NAME.ipynb``.

Cells begin with ``# %%``, those of text with ``# %% [markdown]``. What a cell prints is its output.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
from pathlib import Path
from typing import Any, Final

_HERE: Final = Path(__file__).parent
_CELL: Final = re.compile(r"^# %%(.*)\n", re.MULTILINE)
_TEXT: Final = " [markdown]"


def notebook(source: str) -> dict[str, Any]:
    """The notebook of a source, its cells run one after the other."""
    _, *parts = _CELL.split(source)
    names: dict[str, object] = {"__name__": "__main__"}
    pairs = zip(parts[::2], parts[1::2], strict=True)
    return {
        "cells": [
            _cell(number, kind == _TEXT, body.strip(), names) for number, (kind, body) in enumerate(pairs)
        ],
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def _cell(number: int, is_text: bool, body: str, names: dict[str, object]) -> dict[str, Any]:
    cell: dict[str, Any] = {"id": f"cell-{number}", "metadata": {}}
    if is_text:
        text = "\n".join(line.removeprefix("#").removeprefix(" ") for line in body.splitlines())
        return cell | {"cell_type": "markdown", "source": text.splitlines(keepends=True)}
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(body, "<cell>", "exec"), names)
    lines = printed.getvalue().splitlines(keepends=True)
    outputs = [{"name": "stdout", "output_type": "stream", "text": lines}] if lines else []
    return cell | {
        "cell_type": "code",
        "execution_count": None,
        "outputs": outputs,
        "source": body.splitlines(keepends=True),
    }


if __name__ == "__main__":
    for file in sorted(_HERE.glob("*.py")):
        if file != Path(__file__):
            written = json.dumps(notebook(file.read_text(encoding="utf-8")), ensure_ascii=False, indent=1)
            file.with_suffix(".ipynb").write_text(f"{written}\n", encoding="utf-8")
