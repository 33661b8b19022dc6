"""N-Quads and N-Triples: a bad line is one report, and invalidates the event that it belongs to."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from spaseq.sources._bytes import count_lines, whole_lines
from spaseq.sources.assembly.assemble import GraphAssembler, TripleGroups
from spaseq.sources.assembly.sink import EventSink
from spaseq.sources.assembly.subjects import Assembler, Members, SubjectGroups
from spaseq.sources.formats._parse import PieceError, Pieces, graph_name

if TYPE_CHECKING:
    from spaseq.sources.scan.fast import FastLines

#: A line of the shape of a quad, whatever is wrong with its terms; the graph is last.
_QUAD: Final = re.compile(
    rb"""\s* (?: (?: <[^<>]*> | "(?:[^"\\]|\\.)*"\S* | [^\s<"]+ ) \s* ){3}
    (?P<graph> <[^<>"\s]*> | _:[^\s<>"]+ ) \s* \. \s* (?:\#.*)?""",
    re.VERBOSE,
)
_LAST: Final = re.compile(rb"(?P<graph><[^<>\"\s]*>|_:[^\s<>\"]+)\s*\.?\s*$")
_FIRST: Final = re.compile(rb"\s*(?P<subject><[^<>\"\s]*>|_:[^\s<>\"]+)\s")
_VERSION: Final = re.compile(rb"\s*@?VERSION\b", re.IGNORECASE)


#: Bytes that are read slowly first, unless the compiled code is loaded: loading takes as long.
WARM_UP: Final = 1 << 22

#: The smallest block for which the fast path pays off.
SMALL: Final = 1 << 13


def read_lines(form: str, blocks: Iterator[bytes], sink: EventSink, assembler: Assembler) -> Iterator[None]:
    """Read as ``read_lines_slowly`` does, only faster: parse a block at a time; pause after each one."""
    yield from _read(form, blocks, sink, assembler, fast=True)


def read_lines_slowly(
    form: str, blocks: Iterator[bytes], sink: EventSink, assembler: Assembler
) -> Iterator[None]:
    """Parse a block at a time; pause after each one.

    A whole block is parsed at once, and line by line only if that fails. The event of a bad line is the graph
    at the end of the line. If the line does not have the shape of a quad, no event that it may belong to is
    delivered: neither the graph being read, nor the graph that it seems to end with, nor the next graph.
    """
    yield from _read(form, blocks, sink, assembler, fast=False)


def _read(
    form: str,
    blocks: Iterator[bytes],
    sink: EventSink,
    assembler: Assembler,
    *,
    fast: bool,
) -> Iterator[None]:
    pieces = Pieces(form, sink.limits)
    grouped = assembler if isinstance(assembler, GraphAssembler | TripleGroups) else None
    reader: FastLines | None = None
    size = 0

    def too_long(position: str, reason: str) -> None:
        sink.bad(position, reason)
        assembler.spoil(None, f"incomplete: {position} could not be read", certain=False)

    def read_slowly(first: int, text: bytes) -> None:
        try:
            assembler.quads(pieces.parse(text))
        except PieceError:
            for number, line in enumerate(text.splitlines(), first):
                _read_line(pieces, number, line, sink, assembler)

    def count(text: bytes) -> int:
        known = reader.count_of(text) if reader is not None else None
        return count_lines(text) if known is None else known

    for first, text in whole_lines(blocks, too_long, count):
        if not text:
            if isinstance(assembler, GraphAssembler):
                assembler.settle()  # nothing has arrived for a while: the graph is complete
            yield
            continue
        size += len(text)
        is_loaded = size >= WARM_UP or sys.modules.get("spaseq.sources.scan.fast") is not None
        if grouped is None or not fast or not is_loaded or len(text) < SMALL:
            read_slowly(first, text)
        else:
            if reader is None:
                from spaseq.sources.scan.fast import FastLines

                reader = FastLines(form, sink, grouped, read_slowly)
            reader.read(first, text)
        yield
    assembler.close()


def _read_line(pieces: Pieces, number: int, line: bytes, sink: EventSink, assembler: Assembler) -> None:
    if _VERSION.match(line):
        return
    try:
        assembler.quads(pieces.parse(line))
    except PieceError as bad:
        sink.bad(f"line {number}", bad.reason, line.decode(errors="replace"))
        reason = f"incomplete: line {number} could not be read"
        quad = _QUAD.fullmatch(line)
        if isinstance(assembler, SubjectGroups | Members):
            first = _FIRST.match(line)
            subject = graph_name(first["subject"]) if first else None
            assembler.spoil(subject, reason, certain=subject is not None)
            return
        last = quad or _LAST.search(line)
        graph = graph_name(last["graph"]) if last else None
        assembler.spoil(graph, reason, certain=quad is not None)
