"""The language: text → checked ``Query``.

``reading`` parses text to the tree in ``syntax``, ``checking`` finds errors in the tree. ``scope`` computes
variables of patterns. Open ``reading/parser.py`` first, then ``checking/checks.py``.
"""

from __future__ import annotations

from dataclasses import replace

from spaseq.errors import warn
from spaseq.language.checking.checks import check
from spaseq.language.reading.parser import parse
from spaseq.language.syntax import Query
from spaseq.limits import Limits

__all__ = ["as_query", "checked", "prepare"]


def prepare(text: str, filename: str = "<query>", limits: Limits = Limits()) -> Query:
    """Parse and check a query; findings that do not stop it are raised as ``SpaseqWarning``s.

    Raises QuerySyntaxError or QueryMeaningError, with the place, what was expected, and a hint. Raises
    LimitError, before parsing, if the text is longer than ``limits.query_characters``.
    """
    query = checked(text, filename, limits)
    for message in query.warnings:
        warn(message)
    return query


def as_query(query: str | Query, limits: Limits = Limits()) -> Query:
    """Return a query given as text or prepared. Raises ``TypeError`` for anything else, also a path."""
    if not isinstance(query, (str, Query)):
        raise TypeError(f"a query is a text, or what prepare() gives, not {type(query).__name__}")
    return prepare(query, limits=limits) if isinstance(query, str) else query


def checked(text: str, filename: str = "<query>", limits: Limits = Limits()) -> Query:
    """Parse and check a query without raising warnings; its ``warnings`` holds them."""
    most = limits.query_characters
    if most is not None and len(text) > most:
        raise limits.error("query_characters", f"{filename}: a query of {len(text)} characters")
    query = parse(text, filename)
    return replace(query, warnings=check(query))
