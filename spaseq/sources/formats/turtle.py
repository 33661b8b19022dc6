"""TriG and Turtle: cut into statements, so that a broken statement does not affect later ones."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from spaseq.sources._bytes import LONGEST
from spaseq.sources.assembly.assemble import TripleGroups
from spaseq.sources.assembly.sink import EventSink
from spaseq.sources.assembly.subjects import Assembler, Members, SubjectGroups
from spaseq.sources.formats._parse import PieceError, Pieces
from spaseq.sources.formats.delimiters import OF_STATEMENTS, Scanner

_LABEL: Final = re.compile(rb"(?:GRAPH\s+)?([^\s{]+)\s*\{", re.IGNORECASE)
_SUBJECT: Final = re.compile(rb"\s*([^\s\[(\"']+)\s")
#: White space, comments, prefixes and bases, which may precede the first statement.
DIRECTIVES: Final = (
    rb"(?:\s++|\#[^\n]*+\n|(?i:@?prefix)\s[^<]*<[^>]*>[ \t]*\.?|(?i:@?base)\s*<[^>]*>[ \t]*\.?)*+"
)
_BEFORE: Final = re.compile(DIRECTIVES)


def read_turtle(form: str, blocks: Iterator[bytes], sink: EventSink, assembler: Assembler) -> Iterator[None]:
    """Parse the statements that each block completes; pause after each block."""
    reader = _Statements(form, sink, assembler)
    for block in blocks:
        reader.read(block)
        yield
    reader.close()
    assembler.close()


class _Statements:
    def __init__(self, form: str, sink: EventSink, assembler: Assembler) -> None:
        self._pieces = Pieces(form, sink.limits)
        self._sink = sink
        self._assembler = assembler
        self._scanner = Scanner(OF_STATEMENTS)
        self._is_inside = False  # inside a graph's braces
        self._skips = False  # inside a statement that is too long
        self._line = 1

    def read(self, block: bytes) -> None:
        """Take the next block and parse the statements that end in it."""
        ends = self._ends(block)
        if ends and self._skips:
            self._line += self._scanner.take(ends[0]).count(b"\n")
            ends = [end - ends[0] for end in ends[1:]]
            self._skips = False
        if ends:
            self._read(self._scanner.take(ends[-1]), ends)
        if len(self._scanner) > LONGEST:
            if not self._skips:
                self._sink.bad(f"line {self._line}", f"a statement of more than {LONGEST} bytes", "")
            self._skips = True
            self._line += self._scanner.take().count(b"\n")

    def close(self) -> None:
        """End the input: the rest is a statement."""
        rest = self._scanner.take()
        if rest.strip() and not self._skips:
            self._read(rest, [len(rest)])

    def _ends(self, block: bytes) -> list[int]:
        """Return where statements end: after a ``.`` before white space, after a graph's ``}``."""
        ends: list[int] = []
        for stop in self._scanner.feed(block):
            if stop.delimiter == b"{":
                self._is_inside = True
            elif stop.delimiter == b"}" or not self._is_inside:
                self._is_inside = False
                ends.append(stop.end)
        return ends

    def _read(self, text: bytes, ends: list[int]) -> None:
        try:
            self._assembler.quads(self._pieces.parse(text, keep=False))
        except PieceError:
            self._read_each(text, ends)
        self._line += text.count(b"\n")

    def _read_each(self, text: bytes, ends: list[int]) -> None:
        line = self._line
        for start, end in zip([0, *ends], ends, strict=False):
            statement = text[start:end]
            try:
                self._assembler.quads(self._pieces.parse(statement))
            except PieceError as bad:
                number = line + bad.line - 1
                self._sink.bad(f"line {number}", bad.reason, statement.decode(errors="replace").strip())
                self._spoil(statement, f"incomplete: line {number} could not be read")
            line += statement.count(b"\n")

    def _spoil(self, statement: bytes, reason: str) -> None:
        """Mark the event of a broken statement. The rest of a broken graph does not become an event, and a
        broken triple invalidates its group of triples.
        """
        if isinstance(self._assembler, TripleGroups):
            self._assembler.spoil(None, reason, certain=True)
            return
        before = _BEFORE.match(statement)
        if isinstance(self._assembler, SubjectGroups | Members):
            first = _SUBJECT.match(statement, before.end() if before else 0)
            subject = self._pieces.name(first[1]) if first else None
            self._assembler.spoil(subject, reason, certain=subject is not None)
            return
        label = _LABEL.match(statement, before.end() if before else 0)
        graph = self._pieces.name(label[1]) if label else None
        if graph is not None:
            self._assembler.spoil(graph, reason, certain=True)
