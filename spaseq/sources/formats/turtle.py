"""TriG and Turtle: cut into statements, so that a broken one costs itself and not what follows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from spaseq.sources._bytes import LONGEST
from spaseq.sources.assembly.assemble import TripleGroups
from spaseq.sources.assembly.sink import EventSink
from spaseq.sources.assembly.subjects import Assembler, Members, SubjectGroups
from spaseq.sources.formats._parse import PieceError, Pieces

#: What a scanner must step over whole, since delimiters inside it mean nothing. An IRI or a string that
#: is open at the end of the text goes up to there: the next block may close it.
OPAQUE: Final = rb"""
    <[^\x00-\x20<>"{}|^`]*+(?:>|\Z) | <
  | (?: \"{3} [^"\\]*+ (?: (?: \\. | "(?!"") ) [^"\\]*+ )*+ (?: \"{3} | \\?\Z )
      | '{3}  [^'\\]*+ (?: (?: \\. | '(?!'') ) [^'\\]*+ )*+ (?: '{3}  | \\?\Z )
      | "  [^"\\\r\n]*+ (?: \\. [^"\\\r\n]*+ )*+ (?: " | \\?\Z )
      | '  [^'\\\r\n]*+ (?: \\. [^'\\\r\n]*+ )*+ (?: ' | \\?\Z )
    ) (?: @[A-Za-z0-9-]++ )?+
  | ["']
  | \#[^\r\n]*+
  | \\. | \\
"""

_TO_STOP: Final = re.compile(
    rb"""(?s:
      [^<"'\#\\.{}]++
    | """
    + OPAQUE
    + rb"""
    | \.(?![\s\#]|\Z)          # inside a number or a name
    | \{\| | (?<=\|)\}         # an annotation of RDF 1.2
    )*+ (?P<stop>[.{}])?
    """,
    re.VERBOSE,
)

_LABEL: Final = re.compile(rb"(?:GRAPH\s+)?([^\s{]+)\s*\{", re.IGNORECASE)
_SUBJECT: Final = re.compile(rb"\s*([^\s\[(\"']+)\s")
#: White space, comments, prefixes and bases: what may stand before the first statement.
DIRECTIVES: Final = (
    rb"(?:\s++|\#[^\n]*+\n|(?i:@?prefix)\s[^<]*<[^>]*>[ \t]*\.?|(?i:@?base)\s*<[^>]*>[ \t]*\.?)*+"
)
_BEFORE: Final = re.compile(DIRECTIVES)


def statement_ends(text: bytes, *, final: bool) -> list[int]:
    """Where the statements of ``text`` end: after a ``.`` before white space, after a graph's ``}``.

    Without ``final``, more text follows: a statement that touches the end may not be over.

    >>> statement_ends(b"<a:> <b:> 1.5 . <g:> { <a:> <b:> '}' . } <c:> <d:", final=False)
    [15, 40]
    """
    ends: list[int] = []
    inside = False
    position = 0
    while position < len(text):
        found = _TO_STOP.match(text, position)
        assert found is not None
        position = found.end()
        stop = found["stop"]
        if stop == b"{":
            inside = True
        elif stop == b"}" or (stop == b"." and not inside and (final or position < len(text))):
            inside = False
            ends.append(position)
    if final and text[ends[-1] if ends else 0 :].strip():
        ends.append(len(text))
    return ends


def read_turtle(form: str, blocks: Iterator[bytes], sink: EventSink, assembler: Assembler) -> Iterator[None]:
    """Parse the statements that each block completes; pause after each block."""
    reader = _Statements(form, sink, assembler)
    for block in blocks:
        reader.read(block, final=False)
        yield
    reader.read(b"", final=True)
    assembler.close()


class _Statements:
    def __init__(self, form: str, sink: EventSink, assembler: Assembler) -> None:
        self._pieces = Pieces(form, sink.limits)
        self._sink = sink
        self._assembler = assembler
        self._text = b""
        self._line = 1

    def read(self, block: bytes, *, final: bool) -> None:
        text = self._text + block
        ends = statement_ends(text, final=final)
        if not ends and len(text) > LONGEST:
            self._sink.bad(f"line {self._line}", f"a statement of more than {LONGEST} bytes", "")
            self._line += text.count(b"\n")
            text = b""
        cut = ends[-1] if ends else 0
        try:
            self._assembler.quads(self._pieces.parse(text[:cut], keep=False))
        except PieceError:
            self._read_each(text, ends)
        self._line += text.count(b"\n", 0, cut)
        self._text = text[cut:]

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
        """Other parts of a broken graph make no event; a broken triple spoils its group."""
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
