"""JSON-LD: one document with many events, or one document a line, each an atomic dataset.

A single document has to be read whole (its context may stand last), and is bad as a whole. A stream
is better written with one document a line.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyoxigraph import Quad, RdfFormat, parse

from spaseq.sources._assemble import GraphAssembler
from spaseq.sources._bytes import whole_lines
from spaseq.sources._parse import reason_of
from spaseq.sources._sink import EventSink, add_dataset


def parse_jsonld(text: bytes) -> list[Quad]:
    """The quads of a document. Raises ValueError with the reason; remote contexts are never fetched."""
    try:
        return list(parse(text, format=RdfFormat.JSON_LD))
    except SyntaxError as error:
        reason = reason_of(error)
        if "LoadDocumentCallback" in reason:
            reason = "it names a remote context, which is never fetched: write the context into the document"
        raise ValueError(reason) from None


def read_document(blocks: Iterator[bytes], sink: EventSink) -> Iterator[None]:
    """One document, whose named graphs are the events."""
    text = b"".join(blocks)
    assembler = GraphAssembler(sink)
    try:
        assembler.quads(parse_jsonld(text))
    except ValueError as error:
        sink.bad("byte 0", str(error), text.decode(errors="replace"))
    assembler.close()
    yield


def read_documents(blocks: Iterator[bytes], sink: EventSink) -> Iterator[None]:
    """A document a line; pause after each block."""
    for first, text in whole_lines(blocks, sink.bad):
        for number, line in enumerate(text.split(b"\n"), first):
            if not line.strip():
                continue
            position = f"line {number}"
            try:
                quads = parse_jsonld(line)
            except ValueError as error:
                sink.bad(position, str(error), line.decode(errors="replace"))
            else:
                add_dataset(sink, quads, position)
        yield
