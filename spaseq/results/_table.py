"""A table for people, which grows as matches come."""

from __future__ import annotations

import io
import re
import shutil
from collections.abc import Mapping, Sequence
from typing import IO, TYPE_CHECKING, Final

from rdflib.term import Literal, Node, URIRef
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from spaseq.interop import from_rdflib
from spaseq.language.syntax import Query
from spaseq.results._base import RowWriter, show_time
from spaseq.results._columns import columns
from spaseq.values import XSD

if TYPE_CHECKING:
    from spaseq.results.match import Match

_GAP: Final = 2
_LEAST: Final = 8

#: A cell beyond this width does not widen its column: one long literal would pad all later lines.
_WIDEST: Final = 60

#: C1 controls, line separators and direction overrides: a stream must not steer the terminal.
_DISTURBING: Final = re.compile("[\x7f-\x9f\u2028-\u202e\u2066-\u2069]")

#: What may follow a prefix without an escape (a safe part of Turtle's PN_LOCAL).
_LOCAL: Final = re.compile(r"[\w](?:[\w.-]*[\w-])?", re.ASCII)


#: Datatypes whose values nobody mistakes for text: shown without quotes.
_NUMBERS: Final = ("integer", "decimal", "double", "float", "boolean")
_TIMES: Final = ("dateTime", "dateTimeStamp", "date", "duration")
_PLAIN: Final = frozenset(XSD + name for name in (*_NUMBERS, *_TIMES))


class TableWriter(RowWriter):
    """Start and end of the match, then the row, aligned; the header once.

    A column is as wide as its widest cell so far. On a terminal the header is bold, and lines are kept
    within its width, long cells folded; elsewhere a row is one line of plain text.
    """

    def __init__(self, query: Query, out: IO[bytes]) -> None:
        super().__init__(query, out)
        self._terminal = out.isatty()
        self._columns = columns(query)
        self._names = ("start", "end", *(f"?{name}" for name in self._columns))
        self._widths = [cell_len(name) for name in self._names]
        self._prefixes = sorted(((iri, prefix) for prefix, iri in query.prefixes), key=_longest_first)

    def _answer(self, answer: bool) -> str:
        return f"{str(answer).lower()}\n"

    def _head(self) -> str:
        return self._render([self._names], "bold")

    def _rows(self, match: Match) -> str:
        times = (str(show_time(match.start)), str(show_time(match.end)))
        rows = [(*times, *(self._cell(name, row) for name in self._columns)) for row in match.bindings]
        for row in rows:
            self._widths = [
                max(w, min(cell_len(cell), _WIDEST)) for w, cell in zip(self._widths, row, strict=True)
            ]
        return self._render(rows, "")

    def _cell(self, name: str, row: Mapping[str, Node]) -> str:
        return _visible(self._term(row[name])) if name in row else ""

    def _term(self, term: Node) -> str:
        if isinstance(term, URIRef):
            for iri, prefix in self._prefixes:
                if term.startswith(iri) and _LOCAL.fullmatch(term, len(iri)):
                    return f"{prefix}:{term[len(iri) :]}"
        if isinstance(term, Literal) and str(term.datatype) in _PLAIN:
            return str(from_rdflib(Literal(str(term))))[1:-1]
        return str(from_rdflib(term))

    def _render(self, rows: Sequence[Sequence[str]], style: str) -> str:
        if not self._terminal:
            return "".join(_padded(row, self._widths) for row in rows)
        widths = self._fitting_widths(shutil.get_terminal_size().columns)
        table = Table(box=None, show_header=False, pad_edge=False, padding=(0, _GAP, 0, 0))
        for width in widths:
            table.add_column(width=width, overflow="fold")
        for row in rows:
            table.add_row(*(Text(cell, style=style) for cell in row))
        text = io.StringIO()
        Console(file=text, width=sum(widths) + _GAP * len(widths), force_terminal=True).print(table)
        return "".join(f"{line.rstrip()}\n" for line in text.getvalue().rstrip("\n").split("\n"))

    def _fitting_widths(self, room: int) -> list[int]:
        """The columns' widths, the widest of them narrowed until a line fits into ``room``."""
        count = len(self._widths)
        room = max(room, (_LEAST + _GAP) * count) - _GAP * count
        widths = [min(width, room) for width in self._widths]
        while sum(widths) > room:
            widths[widths.index(max(widths))] -= 1
        return widths


def _padded(row: Sequence[str], widths: Sequence[int]) -> str:
    cells = (cell + " " * (width - cell_len(cell)) for cell, width in zip(row, widths, strict=True))
    return (" " * _GAP).join(cells).rstrip() + "\n"


def _visible(text: str) -> str:
    """The text with what would disturb a line written as an escape (N-Triples escapes the rest)."""
    return _DISTURBING.sub(lambda c: f"\\u{ord(c[0]):04X}", text)


def _longest_first(pair: tuple[str, str]) -> tuple[int, str]:
    return (-len(pair[0]), pair[1])
