"""Jelly: frames of RDF in Protocol Buffers, decoded by pyjelly directly to pyoxigraph's terms.

In a stream of graphs or datasets (RDF-STaX, the logical stream type) each frame is an event, or an atomic
dataset with events. A flat stream consists of quads, or of triples with ``triples=N``. A frame depends on the
frames before it, so reading stops at a damaged one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any, Final

from pyjelly import jelly
from pyjelly.parse.decode import Adapter, Decoder, options_from_frame
from pyjelly.parse.ioutils import delimited_jelly_hint
from pyoxigraph import BlankNode, DefaultGraph, Literal, NamedNode, Quad, Triple

from spaseq.errors import SourceError
from spaseq.sources._bytes import LONGEST
from spaseq.sources.assembly.assemble import GraphAssembler
from spaseq.sources.assembly.sink import EventSink, add_dataset
from spaseq.sources.assembly.subjects import Assembler, assembler_of

_HINT: Final = 3
_LONGEST_VARINT: Final = 10
_DEFAULT: Final = DefaultGraph()


def read_jelly(blocks: Iterator[bytes], sink: EventSink, triples: int | None) -> Iterator[None]:
    """Parse the frames that each block completes; pause after each block.

    Raises SourceError for a flat stream of triples without ``triples``, the number of triples of an event.
    """
    frames = _Frames()
    reader: _FrameReader | None = None
    number = 1
    try:
        for block in chain(blocks, [None]):
            for data in frames.feed(block) if block else frames.end():
                frame = _decode(jelly.RdfStreamFrame.FromString, data)
                if reader is None and frame.rows:
                    reader = _FrameReader(frame, sink, triples)
                if reader is not None:
                    reader.read(frame, f"frame {number}")
                number += 1
            yield
    except _DamagedError as error:
        sink.bad(f"frame {number}", f"damaged, and nothing after it can be read: {error}")
    if reader is not None:
        reader.close()


class _DamagedError(Exception):
    """The bytes are not Jelly."""


def _decode(read: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return read(*arguments)
    # On damaged input protobuf and pyjelly raise many types: AssertionError, IndexError, their own…
    except Exception as error:
        raise _DamagedError(str(error) or repr(error)) from error


class _Frames:
    """Cuts bytes into frames: with a length before each one, or one frame that is the whole input."""

    def __init__(self) -> None:
        self._text = bytearray()
        self._delimited: bool | None = None

    def feed(self, block: bytes) -> Iterator[bytes]:
        self._text += block
        if self._delimited is None and len(self._text) >= _HINT:
            self._delimited = delimited_jelly_hint(bytes(self._text[:_HINT]))
        if len(self._text) > LONGEST:
            raise _DamagedError(f"a frame of more than {LONGEST} bytes")
        position = 0
        while self._delimited and (start_end := self._next(position)):
            start, position = start_end
            yield bytes(self._text[start:position])
        del self._text[:position]

    def end(self) -> Iterator[bytes]:
        if self._text and self._delimited:
            raise _DamagedError("the input ends inside this frame")
        if self._text:
            yield bytes(self._text)

    def _next(self, position: int) -> tuple[int, int] | None:
        """Return where the next frame begins and ends, once it is complete."""
        length = shift = 0
        for start, byte in enumerate(self._text[position : position + _LONGEST_VARINT], position + 1):
            length |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                if length > LONGEST:
                    raise _DamagedError(f"a frame of {length} bytes: more than {LONGEST}")
                return (start, start + length) if start + length <= len(self._text) else None
        if shift >= 7 * _LONGEST_VARINT:
            raise _DamagedError("this is not Jelly: no length before a frame")
        return None


class _FrameReader:
    """Frames of one stream type → quads → events."""

    def __init__(self, first: Any, sink: EventSink, triples: int | None) -> None:
        options = _decode(lambda: options_from_frame(first, delimited=True))
        types = options.stream_types
        has_graphs = types.physical_type != jelly.PHYSICAL_STREAM_TYPE_TRIPLES
        self._sink = sink
        self._adapter = _JellyTerms(options)
        self._decoder = _decode(lambda: Decoder(adapter=self._adapter))
        self._assembler: Assembler | None = None
        if types.flat or types.logical_type == jelly.LOGICAL_STREAM_TYPE_UNSPECIFIED:
            if has_graphs and sink.by is None:
                self._assembler = GraphAssembler(sink)
            elif (assembler := assembler_of(sink, triples)) is not None:
                self._assembler = assembler
            elif types.flat and sink.by is None:
                raise SourceError(
                    "a flat Jelly stream of triples has no events of its own: by=subject makes the triples "
                    "of a subject one, triples=N so many triples, by=message a frame"
                )

    def read(self, frame: Any, position: str) -> None:
        items = _decode(lambda: list(self._decoder.iter_rows(frame)))
        quads = [item for item in items if item is not None]
        problem, self._adapter.problem = self._adapter.problem, ""
        if problem:
            self._sink.bad(position, problem, "\n".join(f"{quad} ." for quad in quads))
        if self._assembler is None:
            if not problem:
                add_dataset(self._sink, quads, position)
            return
        self._assembler.quads(quads)
        if problem:
            self._assembler.spoil(None, f"incomplete: {position} could not be read", certain=False)

    def close(self) -> None:
        if self._assembler is not None:
            self._assembler.close()


class _JellyTerms(Adapter):  # type: ignore[misc]  # pyjelly's classes are untyped here
    """Converts what pyjelly decodes to pyoxigraph's terms. An invalid term is a ``problem`` of the frame."""

    def __init__(self, options: Any) -> None:
        super().__init__(options)
        self._graph: Any = _DEFAULT
        self.problem = ""

    def iri(self, iri: str) -> NamedNode:
        try:
            return NamedNode(iri)
        except ValueError as error:
            self.problem = f"{error}: {iri}"
            return NamedNode("invalid:")

    def bnode(self, bnode: str) -> BlankNode:
        try:
            return BlankNode(bnode)
        except ValueError as error:
            self.problem = f"{error}: {bnode}"
            return BlankNode()

    def default_graph(self) -> DefaultGraph:
        return _DEFAULT

    def literal(self, lex: str, language: str | None = None, datatype: str | None = None) -> Literal:
        try:
            return Literal(lex, language=language, datatype=NamedNode(datatype) if datatype else None)
        except ValueError as error:
            self.problem = f"{error}: {language or datatype}"
            return Literal(lex)

    def namespace_declaration(self, name: str, iri: str) -> None:
        """Ignore names: they are for printing only."""

    def quoted_triple(self, terms: Iterable[Any]) -> Triple:
        return Triple(*terms)

    def triple(self, terms: Iterable[Any]) -> Quad | None:
        return self._quad([*terms, self._graph])

    def quad(self, terms: Iterable[Any]) -> Quad | None:
        return self._quad(list(terms))

    def graph_start(self, graph_id: Any) -> None:
        self._graph = graph_id

    def graph_end(self) -> None:
        self._graph = _DEFAULT

    def _quad(self, terms: list[Any]) -> Quad | None:
        try:
            return Quad(*terms)
        except TypeError:
            self.problem = "a generalised statement, which RDF does not have: " + " ".join(map(str, terms))
            return None
