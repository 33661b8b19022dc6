"""The language: text → ``Query``, with everything that can be said against it said first."""

from __future__ import annotations

from dataclasses import replace

from spaseq.errors import warn
from spaseq.language.checking.checks import check
from spaseq.language.reading.parser import parse
from spaseq.language.syntax import Query
from spaseq.limits import Limits

__all__ = ["as_query", "checked", "prepare"]


def prepare(text: str, filename: str = "<query>", limits: Limits = Limits()) -> Query:
    """Parse and check a query; what the checks found and let pass is raised as ``SpaseqWarning``s.

    Raises QuerySyntaxError or QueryMeaningError, with the place, what was expected, and a hint. Raises
    LimitError, before the text is read, if it is longer than ``limits.query_characters``.
    """
    query = checked(text, filename, limits)
    for message in query.warnings:
        warn(message)
    return query


def as_query(query: str | Query, limits: Limits = Limits()) -> Query:
    """A query given as a text, or prepared. Raises ``TypeError`` for anything else: files are not read."""
    if not isinstance(query, (str, Query)):
        raise TypeError(f"a query is a text, or what prepare() gives, not {type(query).__name__}")
    return prepare(query, limits=limits) if isinstance(query, str) else query


def checked(text: str, filename: str = "<query>", limits: Limits = Limits()) -> Query:
    """The same without a word: its ``warnings`` are what was found."""
    most = limits.query_characters
    if most is not None and len(text) > most:
        raise limits.error("query_characters", f"{filename}: a query of {len(text)} characters")
    query = parse(text, filename)
    return replace(query, warnings=check(query))
