"""Turtle and N-Triples documents that are one event each."""

from __future__ import annotations

from collections.abc import Iterator

from pyoxigraph import RdfFormat, parse

from spaseq.nesting import check_triple_terms, too_long
from spaseq.sources._bytes import LONGEST
from spaseq.sources.assembly.sink import EventSink


def read_whole(blocks: Iterator[bytes], sink: EventSink) -> Iterator[None]:
    """Read a document as one event. It is bad if any part is, or if it is longer than ``LONGEST`` bytes."""
    parts: list[bytes] = []
    size = 0
    for block in blocks:
        parts.append(block)
        size += len(block)
        if size > LONGEST:
            sink.bad("event 1", f"an event of more than {LONGEST} bytes")
            return
    text = b"".join(parts)
    try:
        check_triple_terms(text, sink.limits)
        rows = [tuple(quad.triple) for quad in parse(text, RdfFormat.TURTLE)]
    except (SyntaxError, ValueError, MemoryError) as error:
        reason = too_long(error) if isinstance(error, MemoryError) else str(error)
        sink.bad("event 1", reason, text.decode(errors="replace"))
    else:
        sink.add(rows, None, (), "event 1")
    yield
