"""A text table for people, which grows as matches arrive."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Final

from rdflib.term import Literal, Node, URIRef
from rich.cells import cell_len, chop_cells

from spaseq.language.syntax import Query
from spaseq.results.writers._base import RowFormat, columns, harmless, show_time
from spaseq.terms.interop import from_rdflib
from spaseq.terms.values import XSD

if TYPE_CHECKING:
    from spaseq.results.batch import Match

_GAP: Final = 2

#: The indent of the further lines of a row.
_INDENT: Final = 2

#: The widest cell that widens its column: one long literal would pad all later lines.
_WIDEST: Final = 60

#: A cell may wrap after a mark, so that no name, number or time is broken.
_PIECE: Final = re.compile(r"[^/#?&=,;\s]*(?:[/#?&=,;\s]+|$)")

#: What may follow a prefix without an escape (a safe part of Turtle's PN_LOCAL).
_LOCAL: Final = re.compile(r"[\w](?:[\w.-]*[\w-])?", re.ASCII)


#: Datatypes shown without quotes, because their values do not look like text.
_NUMBERS: Final = ("integer", "decimal", "double", "float", "boolean")
_TIMES: Final = ("dateTime", "dateTimeStamp", "date", "duration")
_PLAIN: Final = frozenset(XSD + name for name in (*_NUMBERS, *_TIMES))


class TableRows(RowFormat):
    """Rows of a text table: start and end of the match, then the cells, aligned. The header is written once.

    A column is as wide as its widest cell so far. On a terminal the header is bold, and lines are kept within
    its width: a wide cell is broken after a mark and continues below, and columns that do not fit are written
    on further lines. Elsewhere a row is one line of plain text. ``queries``: the names of several queries.
    With them, the first column is ``query``, and its cells have the current value of the attribute ``query``.
    """

    def __init__(self, query: Query, *, terminal: bool, queries: Iterable[str] = ()) -> None:
        self.query: str | None = None
        self._terminal = terminal
        self._columns = columns(query)
        of_queries = [harmless(name) for name in queries]
        titles = ("query",) * bool(of_queries) + ("start", "end")
        self._names = (*titles, *(f"?{name}" for name in self._columns))
        self._widths = [cell_len(name) for name in self._names]
        self._widths[0] = max(self._widths[0], *map(cell_len, of_queries), 0)
        self._least = list(self._widths)
        self._prefixes = sorted(((iri, prefix) for prefix, iri in query.prefixes), key=_longest_first)

    def answer(self, answer: bool) -> str:
        return f"{str(answer).lower()}\n"

    def head(self) -> str:
        text = self._render([self._names])
        bold = self._terminal and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
        return "".join(f"\x1b[1m{line}\x1b[0m\n" for line in text.splitlines()) if bold else text

    def rows(self, match: Match) -> str:
        lead = self._lead(match)
        rows = [(*lead, *(self._cell(name, row) for name in self._columns)) for row in match.bindings]
        for row in rows:
            self._widths = [max(w, min(cell_len(c), _WIDEST)) for w, c in zip(self._widths, row, strict=True)]
            self._least = [max(w, _longest_piece(c)) for w, c in zip(self._least, row, strict=True)]
        return self._render(rows)

    def _lead(self, match: Match) -> tuple[str, ...]:
        """Return the cells before the row's own."""
        times = str(show_time(match.start)), str(show_time(match.end))
        return times if self.query is None else (harmless(self.query), *times)

    def harmless(self, text: str) -> str:
        return text  # each cell is escaped already, and the header is bold

    def _cell(self, name: str, row: Mapping[str, Node]) -> str:
        return harmless(self._term(row[name])) if name in row else ""

    def _term(self, term: Node) -> str:
        if isinstance(term, URIRef):
            for iri, prefix in self._prefixes:
                if term.startswith(iri) and _LOCAL.fullmatch(term, len(iri)):
                    return f"{prefix}:{term[len(iri) :]}"
        if isinstance(term, Literal) and str(term.datatype) in _PLAIN:
            return str(from_rdflib(Literal(str(term))))[1:-1]
        if isinstance(term, Literal) and term.datatype is not None and not term.language:
            kind = self._term(term.datatype)
            return f"{from_rdflib(Literal(str(term)))}^^{kind}"
        return str(from_rdflib(term))

    def _render(self, rows: Iterable[Sequence[str]]) -> str:
        if not self._terminal:
            return "".join(_padded(row, self._widths) for row in rows)
        lines = _lines(self._widths, self._least, shutil.get_terminal_size().columns)
        return "".join(_laid_out(row, lines) for row in rows)


#: The columns of a line, each with its width.
_Line = list[tuple[int, int]]


def _lines(widths: Sequence[int], least: Sequence[int], room: int) -> list[_Line]:
    """Return the columns of each line of a row, each wide enough not to break a piece.

    >>> _lines([20, 20, 8], [20, 4, 8], 40)
    [[(0, 20), (1, 8), (2, 8)]]
    >>> _lines([20, 20, 8], [20, 20, 8], 40)
    [[(0, 20)], [(1, 20), (2, 8)]]
    """
    lines: list[_Line] = []
    left = 0
    for column, needed in enumerate(least):
        inside = room - (_INDENT if lines else 0)
        if not lines or left < needed + _GAP:
            inside = room - (_INDENT if lines else 0)
            lines.append([])
            left = inside + _GAP
        lines[-1].append((column, min(needed, inside)))
        left -= needed + _GAP
    return [_widened(line, widths, room - (_INDENT if n else 0)) for n, line in enumerate(lines)]


def _widened(line: _Line, widths: Sequence[int], room: int) -> _Line:
    """Return a line with columns as wide as they want, the widest narrowed until they fit."""
    wanted = [max(width, min(widths[column], room)) for column, width in line]
    while sum(wanted) + _GAP * (len(wanted) - 1) > room:
        spare = [w - width for w, (_, width) in zip(wanted, line, strict=True)]
        if not any(spare):
            break
        wanted[max((w, n) for n, w in enumerate(wanted) if spare[n])[1]] -= 1
    return [(column, width) for (column, _), width in zip(line, wanted, strict=True)]


def _laid_out(row: Sequence[str], lines: Sequence[_Line]) -> str:
    text: list[str] = []
    for number, line in enumerate(lines):
        wrapped = [_wrapped(row[column], width) for column, width in line]
        for parts in zip_longest(*wrapped, fillvalue=""):
            shown = _padded(parts, [width for _, width in line])
            text.append(" " * _INDENT + shown if number else shown)
    return "".join(text)


def _wrapped(text: str, width: int) -> list[str]:
    """Return the lines of a cell: broken after marks; pieces wider than the column are broken inside.

    >>> _wrapped("<http://example.org/a/long/way#x>", 20)
    ['<http://example.org/', 'a/long/way#x>']
    """
    lines = [""]
    for piece in _pieces(text):
        if cell_len(lines[-1] + piece.rstrip()) <= width:
            lines[-1] += piece
        else:
            lines += chop_cells(piece, width)
    return [line.rstrip() for line in (lines if lines[0] or len(lines) == 1 else lines[1:])]


def _pieces(text: str) -> list[str]:
    return _PIECE.findall(text)


def _longest_piece(text: str) -> int:
    return max(cell_len(piece.rstrip()) for piece in _pieces(text))


def _padded(row: Sequence[str], widths: Sequence[int]) -> str:
    cells = (cell + " " * (width - cell_len(cell)) for cell, width in zip(row, widths, strict=True))
    return (" " * _GAP).join(cells).rstrip() + "\n"


def _longest_first(pair: tuple[str, str]) -> tuple[int, str]:
    return (-len(pair[0]), pair[1])
