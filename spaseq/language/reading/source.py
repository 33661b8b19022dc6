"""The text of a query: places, codepoint escapes, and errors that point into it."""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import TypeVar

from spaseq.errors import QueryError, QuerySyntaxError
from spaseq.language.reading import shared
from spaseq.language.syntax import Span

E = TypeVar("E", bound=QueryError)

#: A codepoint escape. An escaped backslash matches too, so that ``\\u0041`` stays as it is.
_ESCAPE = re.compile(r"\\\\|\\u([0-9A-Fa-f]{4})|\\U([0-9A-Fa-f]{8})")


class QueryText:
    """A text, and the same with its codepoint escapes replaced (SPARQL 1.1, section 19.2).

    The parser reads ``expanded``; every offset that leaves this class is an offset into ``text``.

    >>> source = QueryText(r"?\\u0061b", "<query>")
    >>> source.expanded, source.span(2, 3)
    ('?ab', Span(start=7, end=8, line=1, column=8))
    """

    def __init__(self, text: str, filename: str) -> None:
        self.text = text
        self.filename = filename
        self._lines = [0, *(m.end() for m in re.finditer("\n", text))]
        self._seams: list[int] = [0]  # offsets in expanded from which on …
        self._origins: list[int] = [0]  # … the text begins at this offset
        self.expanded = self._expand()

    def _expand(self) -> str:
        parts: list[str] = []
        length = read = 0
        for match in _ESCAPE.finditer(self.text):
            digits = match[1] or match[2]
            if digits is None:
                continue
            code = int(digits, 16)
            if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
                raise self.error(QuerySyntaxError, f"{match[0]} is not a character", match.start())
            parts += [self.text[read : match.start()], chr(code)]
            length += match.start() - read + 1
            read = match.end()
            self._seams += [length - 1, length]
            self._origins += [match.start(), read]
        return "".join([*parts, self.text[read:]])

    def origin(self, offset: int) -> int:
        """Return the offset in ``text`` of a character of ``expanded``."""
        seam = bisect_right(self._seams, offset) - 1
        return self._origins[seam] + offset - self._seams[seam]

    def span(self, start: int, end: int) -> Span:
        """Return the span in ``text`` of ``expanded[start:end]``."""
        begin = self.origin(start)
        line, column = self.place(begin)
        return shared.span(begin, self.origin(end - 1) + 1 if end > start else begin, line, column)

    def place(self, offset: int) -> tuple[int, int]:
        """Return the line and column, from 1, of an offset in ``text``."""
        line = bisect_right(self._lines, offset)
        return line, offset - self._lines[line - 1] + 1

    def error(self, kind: type[E], message: str, offset: int, hint: str | None = None) -> E:
        """Return an error that points at an offset in ``text``."""
        line, column = self.place(offset)
        start = self._lines[line - 1]
        stop = self._lines[line] if line < len(self._lines) else len(self.text)
        shown = self.text[start:stop].rstrip("\r\n")
        return kind(message, filename=self.filename, lineno=line, offset=column, text=shown, hint=hint)
