"""The examples of docstrings, ``>>>`` to the next blank line, as blocks of code on the page of the API."""

from __future__ import annotations

import re
from typing import Any

import griffe

_EXAMPLE = re.compile(r"^>>> .*(?:\n.*\S.*)*", re.MULTILINE)


def fenced(text: str) -> str:
    """A docstring with each example fenced; without, Markdown takes it for a quotation with links."""
    return _EXAMPLE.sub(lambda example: f"```pycon\n{example[0]}\n```", text)


class Doctests(griffe.Extension):
    """What mkdocstrings runs on all that it reads from the sources."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """A class, a function or a module has been read."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)
