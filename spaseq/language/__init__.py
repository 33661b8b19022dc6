"""The language: text → ``Query``, with everything that can be said against it said first."""

from __future__ import annotations

from spaseq.language.parser import parse
from spaseq.language.syntax import Query

__all__ = ["prepare"]


def prepare(text: str, filename: str = "<query>") -> Query:
    """Parse and check a query."""
    return parse(text, filename)
