"""JSON-LD: one document with many events, or one document per line, each an atomic dataset.

A single document has to be read whole (its context may be at the end), and is bad as a whole. A stream is
better written with one document per line.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from pyoxigraph import BlankNode, DefaultGraph, NamedNode, Quad, RdfFormat, parse

from spaseq.limits import Limits
from spaseq.nesting import check_json, too_long
from spaseq.sources._bytes import whole_lines
from spaseq.sources.assembly.assemble import GraphAssembler
from spaseq.sources.assembly.sink import EventSink, add_dataset
from spaseq.sources.assembly.subjects import assembler_of
from spaseq.sources.formats._parse import reason_of
from spaseq.terms.dictionary import Term

#: The most names that a message lists.
_FEW: Final = 5


def parse_jsonld(text: bytes, limits: Limits) -> list[Quad]:
    """Return the quads of a document. Raises ValueError, with the reason, if it is invalid, too deep, or
    empty.

    JSON-LD leaves out what the context does not define.
    """
    check_json(text, limits)
    quads = quads_of(text)
    if not quads:
        keys = _keys(json.loads(text))
        if keys:
            raise ValueError(f"nothing of it becomes RDF: no @context defines {shortened(keys)}")
    return quads


def empty_graphs(text: bytes, quads: Iterable[Quad]) -> str:
    """Return a message about named graphs that are empty because no context defines their contents; empty for
    none.
    """
    if b'"@graph"' not in text:
        return ""
    document = json.loads(text)
    given = {json.dumps(node.get("@id", id(node))): node["@graph"] for node in _named(document)}
    lost = len(given) - len({quad.graph_name for quad in quads} - {DefaultGraph()})
    if lost <= 0:
        return ""
    keys = shortened(_keys([*given.values()]))
    return f"{lost} of its {len(given)} graphs are empty: is there one that no @context defines of {keys}?"


def _named(value: object) -> Iterator[dict[str, object]]:
    """Yield the objects of a document that are non-empty graphs with a name."""
    if isinstance(value, dict):
        if value.get("@graph") and any(key not in ("@graph", "@context") for key in value):
            yield value
        value = [part for key, part in value.items() if key != "@context"]
    if isinstance(value, list):
        for part in value:
            yield from _named(part)


def shortened(names: Iterable[str]) -> str:
    """Return the first few names, for a message.

    >>> shortened("abcdefg")
    'a, b, c, d, e, …'
    """
    first = [*islice(names, _FEW + 1)]
    return ", ".join([*first[:_FEW], "…"] if len(first) > _FEW else first)


def _keys(value: object) -> dict[str, None]:
    """Return the names in a document that are not keywords and not in a context."""
    found: dict[str, None] = {}
    if isinstance(value, dict):
        found.update(dict.fromkeys(key for key in value if not key.startswith("@")))
        value = [part for key, part in value.items() if key != "@context"]
    if isinstance(value, list):
        for part in value:
            found.update(_keys(part))
    return found


def quads_of(text: bytes, base: str | None = None) -> list[Quad]:
    """Return the processor's quads for a document. Raises ValueError, with the reason, if there are none.

    Remote contexts are never fetched. Relative IRIs are resolved against ``base``.
    """
    try:
        return list(parse(text, format=RdfFormat.JSON_LD, base_iri=base))
    except MemoryError as error:
        raise ValueError(too_long(error)) from None
    except SyntaxError as error:
        reason = reason_of(error)
        if "LoadDocumentCallback" in reason:
            reason = (
                "it names a remote context, which is never fetched: contexts=FOLDER says where a local copy "
                "is, or write the context into the document"
            )
        raise ValueError(reason) from None


def read_document(blocks: Iterator[bytes], sink: EventSink) -> Iterator[None]:
    """Read one document, with named graphs as events."""
    text = b"".join(blocks)
    assembler = assembler_of(sink, None) or GraphAssembler(sink)
    try:
        text = sink.contexts.filled(text) if sink.contexts else text
        quads = parse_jsonld(text, sink.limits)
        problem = empty_graphs(text, quads)
        if problem:
            sink.bad("byte 0", problem, text.decode(errors="replace"))
        assembler.quads(_with_default(quads, sink.predicate))
    except ValueError as error:
        sink.bad("byte 0", str(error), text.decode(errors="replace"))
    assembler.close()
    yield


def _with_default(quads: list[Quad], time: NamedNode | None) -> list[Quad]:
    """Return the quads, with the intended default graph as the default graph.

    rdflib writes a dataset's default graph without a name beside the other graphs, which in JSON-LD makes it
    another graph, named by a blank node. It is recognized by the times of other graphs in it.
    """
    names = {quad.graph_name for quad in quads}
    unnamed = {
        quad.graph_name
        for quad in quads
        if isinstance(quad.graph_name, BlankNode) and quad.predicate == time
        if quad.subject in names and quad.subject != quad.graph_name
    }
    return [Quad(*quad.triple) if quad.graph_name in unnamed else quad for quad in quads]


def read_documents(blocks: Iterator[bytes], sink: EventSink) -> Iterator[None]:
    """Read one document per line; pause after each block."""
    for first, text in whole_lines(blocks, sink.bad):
        for number, line in enumerate(text.split(b"\n"), first):
            if not line.strip():
                continue
            add_document(sink, line, f"line {number}")
        yield


def add_document(sink: EventSink, text: bytes, position: str) -> bool:
    """Add a document that is an atomic dataset, or an array of them (``items=``).

    Return False if it is empty.
    """
    try:
        text = sink.contexts.filled(text) if sink.contexts else text
        if sink.items is None:
            parts, times = [text], None
        else:
            check_json(text, sink.limits)
            items, around = split_items(text, sink.items)
            parts, times = [item.encode() for item in items], _times(sink, around)
    except ValueError as error:
        sink.bad(position, str(error), text.decode(errors="replace"))
        return True
    is_empty = True
    for number, part in enumerate(parts, 1):
        place = position if times is None else f"{position}, item {number}".removeprefix(", ")
        try:
            quads = parse_jsonld(part, sink.limits)
        except ValueError as error:
            sink.bad(place, str(error), part.decode(errors="replace"))
            is_empty = False
            continue
        problem = empty_graphs(part, quads)
        if problem:
            sink.bad(place, problem, part.decode(errors="replace"))
        add_dataset(sink, quads, place, otherwise=times or ())
        is_empty = is_empty and not quads and not problem
    return not is_empty


def _times(sink: EventSink, around: str) -> list[Term]:
    """Return the times in the document around the elements of an array."""
    return sink.times_inside([(s, p, o) for s, p, o, _ in quads_of(around.encode())], None)


def split_items(text: str | bytes, path: str) -> tuple[list[str], str]:
    """Return the objects of the array at ``path`` (keys joined by dots), as JSON, and the rest of the
    document.

    An element gets the document's ``@context``, before its own. Raises ValueError if there is no such array.

    >>> split_items('{"at": 1, "feed": {"entity": [{"id": 5}]}}', "feed.entity")
    (['{"id": 5}'], '{"at": 1, "feed": {}}')
    """
    document = json.loads(text)
    keys = path.split(".")
    around = document
    for key in keys[:-1]:
        around = around.get(key) if isinstance(around, dict) else None
    items = around.pop(keys[-1], None) if isinstance(around, dict) else None
    if not isinstance(items, list):
        names = ", ".join(document) if isinstance(document, dict) else "no keys"
        raise ValueError(f"items={path}: there is no array of that name; there are {names}")
    if not all(isinstance(item, dict) for item in items):
        raise ValueError(f"items={path}: an element of it is not an object")
    context = document.get("@context")
    return [json.dumps(_with(context, item)) for item in items], json.dumps(document)


def _with(context: object, item: dict[str, object]) -> dict[str, object]:
    if context is None:
        return item
    own = item.get("@context")
    both = [part for each in (context, own) if each is not None for part in _parts(each)]
    return {"@context": both, **{key: value for key, value in item.items() if key != "@context"}}


def _parts(context: object) -> Iterator[object]:
    yield from context if isinstance(context, list) else [context]
