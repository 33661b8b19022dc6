"""Findings of the static checks: errors, which stop the query, and warnings."""

from __future__ import annotations

import re

from spaseq.errors import QueryMeaningError
from spaseq.language.reading.source import QueryText
from spaseq.language.syntax import Span


class Findings:
    """Makes errors and collects warnings, each with its place in the text."""

    def __init__(self, source: QueryText) -> None:
        self._source = source
        self._warnings: list[str] = []

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return all warnings so far, each once."""
        return tuple(dict.fromkeys(self._warnings))

    def error(self, message: str, span: Span | None, hint: str | None = None) -> QueryMeaningError:
        """Return an error that points at the beginning of ``span``."""
        return self._source.error(QueryMeaningError, message, span.start if span else 0, hint)

    def warn(self, message: str, span: Span | None) -> None:
        """Keep a warning about the text at ``span``."""
        line, column = self._source.place(span.start if span else 0)
        self._warnings.append(f"{self._source.filename}:{line}:{column}: {message}")

    def word(self, word: str, span: Span | None, after: str = "") -> Span | None:
        """Return the span of ``word`` within ``span``, after the first occurrence of the word ``after``.

        Needed because names of streams and GPMs have no span of their own in the tree.
        """
        if span is None:
            return None
        pattern = rf"\b{after}\b.*?\b{word}\b" if after else rf"\b{word}\b"
        found = re.compile(pattern, re.IGNORECASE | re.DOTALL).search(self._source.text, span.start, span.end)
        if found is None:
            return span
        start = found.end() - len(word)
        return Span(start, found.end(), *self._source.place(start))
