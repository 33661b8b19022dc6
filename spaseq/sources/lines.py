"""N-Quads and N-Triples: a bad line is one report, and spoils the event that it belongs to."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from spaseq.sources._assemble import GraphAssembler, TripleGroups
from spaseq.sources._bytes import whole_lines
from spaseq.sources._parse import PieceError, Pieces, last_graph
from spaseq.sources._sink import EventSink

_LAST_TERM: Final = re.compile(rb"(?:<[^<>\"\s]*>|_:[^\s<>\"]+)\s*\.\s*(?:#.*)?$")
_VERSION: Final = re.compile(rb"\s*@?VERSION\b", re.IGNORECASE)


def read_lines(
    form: str, blocks: Iterator[bytes], sink: EventSink, assembler: GraphAssembler | TripleGroups
) -> Iterator[None]:
    """Parse a block at a time; pause after each one.

    A whole block is parsed at once. Only if that fails it is parsed line by line. The event of a bad
    line is the graph that the line ends with, if it can be read, and else the one being read.
    """
    pieces = Pieces(form)
    for first, text in whole_lines(blocks):
        try:
            assembler.quads(pieces.parse(text))
        except PieceError:
            for number, line in enumerate(text.splitlines(), first):
                _read_line(pieces, number, line, sink, assembler)
        yield
    assembler.close()


def _read_line(
    pieces: Pieces, number: int, line: bytes, sink: EventSink, assembler: GraphAssembler | TripleGroups
) -> None:
    if _VERSION.match(line):
        return
    try:
        assembler.quads(pieces.parse(line))
    except PieceError as bad:
        sink.bad(f"line {number}", bad.reason, line.decode(errors="replace"))
        last = _LAST_TERM.search(line)
        graph = last_graph(last[0]) if last else None
        assembler.spoil(graph, f"incomplete: line {number} could not be read")
