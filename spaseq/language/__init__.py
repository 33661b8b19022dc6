"""The language: text → ``Query``, with everything that can be said against it said first."""

from __future__ import annotations

from dataclasses import replace

from spaseq.language.checks import check
from spaseq.language.parser import parse
from spaseq.language.syntax import Query

__all__ = ["prepare"]


def prepare(text: str, filename: str = "<query>") -> Query:
    """Parse and check a query; its ``warnings`` are what the checks found and let pass.

    Raises QuerySyntaxError or QueryMeaningError, with the place, what was expected, and a hint.
    """
    query = parse(text, filename)
    return replace(query, warnings=check(query))
