"""Location → event batches: finds the reader of the format and drives it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import IO

import numpy as np
from pyoxigraph import NamedNode

from spaseq.errors import SourceError
from spaseq.events import Clock, EventBatch, concatenate
from spaseq.limits import Limits
from spaseq.sources._bytes import BrokenBytesError, check_location, files_of, is_pipe, read_blocks, unmarked
from spaseq.sources._options import SourceOptions, check_options, resolve_format
from spaseq.sources.assembly.assemble import GraphAssembler
from spaseq.sources.assembly.sink import BadEvent, EventSink
from spaseq.sources.assembly.subjects import assembler_of
from spaseq.sources.columns.table import Table, read_table
from spaseq.sources.formats.jsonld import read_document, read_documents
from spaseq.sources.formats.lines import read_lines
from spaseq.sources.formats.messages import announces_messages, peek, read_messages
from spaseq.sources.formats.rows import open_lifter, read_csv, read_ndjson
from spaseq.sources.formats.turtle import read_turtle
from spaseq.sources.whole import read_whole
from spaseq.terms.dictionary import Dictionary


def open_source(
    location: str | Path | IO[bytes] | Table,
    stream: NamedNode,
    dictionary: Dictionary,
    options: SourceOptions | None = None,
    *,
    on_bad: Callable[[BadEvent], None],
    limits: Limits | None = None,
    idle: timedelta | None = None,
    otherwise: tuple[Clock, int] | None = None,
    whole: bool = False,
) -> Iterator[EventBatch]:
    """Return the events of a source as batches, in order of arrival (or of time, on request).

    ``location``: a path, ``-`` for standard input, an open binary file, or a table. A folder, or a pattern
    such as ``ticks/*.nq``, means its files one after the other, by name. An invalid event, or an event over
    one of the ``limits``, goes to ``on_bad``, and reading continues. ``idle``: if a pipe of N-Quads brings
    nothing for this long, the named graph that has its time is complete. ``otherwise``: the time of events
    without one. ``whole``: Turtle and N-Triples without ``triples=`` are one event, and so is JSON-LD without
    named graphs.

    Raises SourceError if the source cannot be read at all: at once for a missing file, an unknown format or a
    wrong option, at the first batch otherwise.
    """
    options = options or SourceOptions()
    if isinstance(location, Table):
        sink = EventSink(stream, dictionary, options, on_bad, limits or Limits())
        return _batches(read_table(location, sink), sink)
    if isinstance(location, (str, Path)) and (files := files_of(location)) is not None:
        return _of_files(files, stream, dictionary, options, on_bad, limits)
    name = str(location if isinstance(location, (str, Path)) else getattr(location, "name", "the open file"))
    form = resolve_format(name, options)
    check_options(name, form, options)
    if isinstance(location, (str, Path)):
        check_location(location)
    if is_pipe(location):
        options = replace(options, is_live=True)
    blocks = read_blocks(location, idle if form == "nq" else None)
    return read_stream(
        name, blocks, stream, dictionary, options,
        on_bad=on_bad, limits=limits, otherwise=otherwise, whole=whole,
    )  # fmt: skip


def read_stream(
    name: str,
    blocks: Iterator[bytes],
    stream: NamedNode,
    dictionary: Dictionary,
    options: SourceOptions,
    *,
    on_bad: Callable[[BadEvent], None],
    limits: Limits | None = None,
    otherwise: tuple[Clock, int] | None = None,
    whole: bool = False,
) -> Iterator[EventBatch]:
    """Return the events of blocks of bytes, as ``open_source`` does; ``name`` is for messages.

    An empty block means that nothing has arrived for a while. Exceptions of ``blocks`` pass through.
    """
    form = resolve_format(name, options)
    check_options(name, form, options)
    sink = EventSink(stream, dictionary, options, on_bad, limits or Limits(), otherwise)
    found = _until_broken(blocks, sink)
    if whole and form in ("nt", "ttl") and options.triples is None and options.by in (None, "message"):
        reader = read_whole(found, sink)
    elif whole and form in ("trig", "nq") and options.by == "message":
        reader = read_messages(form, found, sink)
    elif form == "jsonld" and (options.by == "message" or options.items or (whole and options.by is None)):
        # On one line: JSON has line breaks only as white space.
        reader = read_documents((block.replace(b"\n", b" ") for block in found), sink)
    else:
        reader = _reader(name, form, found, sink, options)
    batches = _batches(reader, sink)
    return _sorted(batches) if sink.is_whole else batches


def _of_files(
    files: Sequence[Path],
    stream: NamedNode,
    dictionary: Dictionary,
    options: SourceOptions,
    on_bad: Callable[[BadEvent], None],
    limits: Limits | None,
) -> Iterator[EventBatch]:
    """Yield the events of several files, numbered throughout."""

    def opened(path: Path) -> Iterator[EventBatch]:
        def refuse(letter: BadEvent) -> None:
            on_bad(replace(letter, position=f"{path}, {letter.position}"))

        return open_source(path, stream, dictionary, options, on_bad=refuse, limits=limits)

    batches = _one_by_one([opened(path) for path in files])
    return _sorted(batches) if options.order == "time" else batches


def _one_by_one(sources: Iterable[Iterator[EventBatch]]) -> Iterator[EventBatch]:
    first = following = 0
    for batches in sources:
        for batch in batches:
            following = max(following, first + int(batch.n.max()) + 1)
            yield replace(batch, n=batch.n + first) if first else batch
        first = following


def _sorted(batches: Iterator[EventBatch]) -> Iterator[EventBatch]:
    """Yield the events of all batches sorted by time, and by graph name for equal times."""
    found = list(batches)
    if found:
        batch = concatenate(found)
        graphs, name = np.unique(batch.graph, return_inverse=True)
        names = np.array([str(batch.dictionary.term(graph)) if graph else "" for graph in graphs.tolist()])
        rank = np.argsort(np.argsort(names, kind="stable"))[name]
        yield batch.take(np.lexsort((rank, batch.time))).renumber(0)


def _batches(reader: Iterator[None], sink: EventSink) -> Iterator[EventBatch]:
    for _ in reader:
        batch = sink.take()
        if batch:
            yield batch
    batch = sink.take()
    if batch:
        yield batch


def _until_broken(blocks: Iterator[bytes], sink: EventSink) -> Iterator[bytes]:
    """End the input at damaged bytes; what was read before them counts."""
    try:
        yield from unmarked(blocks)
    except BrokenBytesError as broken:
        sink.bad(broken.position, broken.reason)


def _reader(
    name: str, form: str, blocks: Iterator[bytes], sink: EventSink, options: SourceOptions
) -> Iterator[None]:
    """Return the reader of the format: it feeds the sink, and pauses when all that has arrived is parsed."""
    if form == "jelly":
        # Imported here: protobuf takes longer to import than everything else together.
        from spaseq.sources.formats.jelly import read_jelly

        return read_jelly(blocks, sink, options.triples)
    if form == "jsonld":
        return read_document(blocks, sink)
    if form == "ndjsonld":
        return read_documents(blocks, sink)
    if form in ("csv", "ndjson"):
        lifter = open_lifter(name, options, sink)
        if form == "csv":
            return read_csv(blocks, sink, lifter, options)
        return read_ndjson(blocks, sink, lifter)
    return _text_reader(name, form, blocks, sink, options)


def _text_reader(
    name: str, form: str, blocks: Iterator[bytes], sink: EventSink, options: SourceOptions
) -> Iterator[None]:
    """Read a text syntax; the document itself says whether it is RDF Messages."""
    head, blocks = peek(blocks)
    if form == "messages" or announces_messages(head):
        if options.triples or options.by not in (None, "message"):
            raise SourceError(
                f"{name}: in RDF Messages a message is an event: leave out triples=, and by= but by=message"
            )
        yield from read_messages(form, blocks, sink)
        return
    if options.by == "message":
        raise SourceError(
            f'{name}: by=message is for RDF Messages: begin the file with VERSION "1.2-messages", or say '
            "format=messages for one message"
        )
    assembler = assembler_of(sink, options.triples)
    if assembler is None and form in ("nt", "ttl"):
        raise SourceError(
            f"{name}: {form} has no events of its own: by=subject makes the triples of a subject one, "
            "by=IRI those of each object of that predicate, and triples=N so many triples"
        )
    assembler = assembler or GraphAssembler(sink)
    read = read_lines if form in ("nq", "nt") else read_turtle
    yield from read(form, blocks, sink, assembler)
