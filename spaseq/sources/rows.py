"""CSV and NDJSON: rows, lifted to RDF by a JSON-LD context file; each row is an event.

A CSV row is a JSON object of strings, without its empty cells. Many rows are one JSON-LD document for the
parser, each in a named graph of its own; if that document is refused, its rows are tried one by one.
As JSON-LD prescribes, a JSON number with a fraction that a context types as anything but ``xsd:double``
keeps the form of a double (``1.5E0``): for an ``xsd:decimal`` write a string.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator
from io import StringIO
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

from pyoxigraph import NamedNode

from spaseq.errors import SourceError
from spaseq.events import Row
from spaseq.sources._bytes import whole_lines
from spaseq.sources._options import SourceOptions
from spaseq.sources._sink import EventSink
from spaseq.sources.jsonld import parse_jsonld

_TOGETHER: Final = 256
_LONGEST_RECORD: Final = 1 << 20


class _Object(NamedTuple):
    """A row: the line it begins on, what was read, and the same as a JSON object."""

    line: int
    raw: str
    json: str


def load_context(path: Path) -> str:
    """The context of a JSON-LD file, as JSON. Raises SourceError; nothing is fetched from the network."""
    try:
        document = json.loads(path.read_bytes())
    except OSError as error:
        raise SourceError(f"context {path} cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise SourceError(f"context {path} is not JSON: {error}") from error
    if not isinstance(document, dict) or "@context" not in document:
        raise SourceError(f'context {path} has no "@context"')
    remote = _remote(document["@context"])
    if remote is not None:
        raise SourceError(f"context {path} refers to {remote}, which is never fetched: write its terms out")
    text = json.dumps(document["@context"])
    try:
        parse_jsonld(f'{{"@context":{text}}}'.encode())
    except ValueError as error:
        raise SourceError(f"context {path} is not a JSON-LD context: {error}") from error
    return text


def _remote(context: object) -> str | None:
    """The first other context that a context refers to, at any depth."""
    if isinstance(context, str):
        return context
    if isinstance(context, list):
        return next(filter(None, map(_remote, context)), None)
    if not isinstance(context, dict):
        return None
    if "@import" in context:
        return str(context["@import"])
    scoped = (term["@context"] for term in context.values() if isinstance(term, dict) and "@context" in term)
    return next(filter(None, map(_remote, scoped)), None)


def read_ndjson(blocks: Iterator[bytes], sink: EventSink, context: str) -> Iterator[None]:
    """JSON objects, one a line; pause after each block."""
    for first, text in whole_lines(blocks, sink.bad):
        _lift(_ndjson_rows(first, text, sink), context, sink)
        yield


def _ndjson_rows(first: int, text: bytes, sink: EventSink) -> Iterator[_Object]:
    for number, line in enumerate(text.split(b"\n"), first):
        raw = line.decode(errors="replace").strip()
        if not raw:
            continue
        try:
            line.decode()
            if not isinstance(json.loads(raw, parse_constant=_refuse), dict):
                raise ValueError("a row must be a JSON object")
        except ValueError as error:
            sink.bad(f"line {number}", str(error), raw)
        else:
            yield _Object(number, raw, raw)


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def read_csv(
    blocks: Iterator[bytes], sink: EventSink, context: str, options: SourceOptions
) -> Iterator[None]:
    """CSV rows, with a header line unless ``header`` names the columns; pause after each block."""
    header = list(options.header or ())
    delimiter = options.delimiter or ","
    for records in _records(blocks, sink):
        rows = [row for line, raw in records for row in _csv_rows(line, raw, delimiter, header, sink)]
        _lift(rows, context, sink)
        yield


def _records(blocks: Iterator[bytes], sink: EventSink) -> Iterator[list[tuple[int, str]]]:
    """(line, text) of the records that each block completes: a quoted cell may span lines."""
    held: list[str] = []
    start, size, is_open = 1, 0, False
    for first, text in whole_lines(blocks, sink.bad):
        records: list[tuple[int, str]] = []
        for number, line in enumerate(text.removesuffix(b"\n").split(b"\n"), first):
            if not held:
                start, size = number, 0
            held.append(line.decode("utf-8-sig" if number == 1 else "utf-8", errors="replace"))
            size += len(line)
            is_open ^= line.count(b'"') % 2 == 1
            if not is_open or size > _LONGEST_RECORD:
                records.append((start, "\n".join(held)))
                held, is_open = [], False
        yield records
    if held:
        yield [(start, "\n".join(held))]


def _csv_rows(line: int, raw: str, delimiter: str, header: list[str], sink: EventSink) -> Iterator[_Object]:
    """The row of a record (more than one if quotes misled). Fills ``header`` from the first line."""
    reader = csv.reader(StringIO(raw, newline=""), delimiter=delimiter, strict=True)
    try:
        for cells in reader:
            if not cells:
                continue
            if not header:
                header.extend(cells)
            elif len(cells) != len(header):
                sink.bad(f"line {line}", f"{len(cells)} cells, but there are {len(header)} columns", raw)
            else:
                row = {name: cell for name, cell in zip(header, cells, strict=True) if cell}
                yield _Object(line, raw, json.dumps(row))
    except csv.Error as error:
        sink.bad(f"line {line}", str(error), raw)


def _lift(objects: Iterable[_Object], context: str, sink: EventSink) -> None:
    """Rows to events: many at once, and one by one where that fails."""
    rest = iter(objects)
    while group := list(islice(rest, _TOGETHER)):
        try:
            lifted = _graphs(group, context)
        except ValueError:
            lifted = None
        for number, row in enumerate(group):
            try:
                rows = lifted[number] if lifted else _graphs([row], context)[0]
            except ValueError as error:
                sink.bad(f"line {row.line}", str(error), row.raw)
            else:
                problem = "" if rows else f"the context lifts nothing of this row: {row.raw}"
                sink.add(rows, None, (), f"line {row.line}", problem)


def _graphs(group: list[_Object], context: str) -> list[list[Row]]:
    """The triples of each row. Raises ValueError with the reason if one of them is no JSON-LD."""
    nodes = ",".join(f'{{"@id":"row:{number}","@graph":[{row.json}]}}' for number, row in enumerate(group))
    graphs: dict[object, list[Row]] = {NamedNode(f"row:{number}"): [] for number in range(len(group))}
    document = f'{{"@context":{context},"@graph":[{nodes}]}}'
    for s, p, o, graph in parse_jsonld(document.encode()):
        if graph not in graphs:
            raise ValueError("a row cannot have a @graph of its own")
        graphs[graph].append((s, p, o))
    return list(graphs.values())
