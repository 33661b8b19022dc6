"""What the site has beyond its pages: the map of files, and bars in tables as GitHub shows them."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

#: Where a page wants the map of files, which nobody writes: it is made of their first lines.
_FILES = "<!-- the map of files -->"


def on_page_markdown(markdown: str, **_: Any) -> str:
    """A page's text, before it is made HTML."""
    if _FILES not in markdown:
        return markdown
    packages = runpy.run_path(str(Path(__file__).with_name("packages.py")))
    return markdown.replace(
        _FILES, packages["files_of"](packages["ROOT"], packages["MAP"].read_text(encoding="utf-8"))
    )


def on_page_content(html: str, **_: Any) -> str:
    r"""A page's HTML, before it is put into the template: in a table, ``\|`` inside of code is a bar."""
    return re.sub(r"<td.*?</td>", lambda cell: cell[0].replace(r"\|", "|"), html, flags=re.DOTALL)
