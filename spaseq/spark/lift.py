"""A user's columns lifted to events, by a template of triples."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
from pyoxigraph import Literal, NamedNode, RdfFormat, parse
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # Spark's own name for it
from pyspark.sql.types import DateType, IntegralType, TimestampNTZType, TimestampType

from spaseq.errors import SourceError
from spaseq.events import Clock
from spaseq.spark._rows import ARROW, EVENTS

_XSD: Final = "http://www.w3.org/2001/XMLSchema#"
_PART: Final = re.compile(r"\{(\w+)\}")
_VARIABLE: Final = re.compile(r"[?$](\w+)")
_TOKEN: Final = re.compile(r"<[^<>\s]*>|\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|[?$]\w+")

#: Columns stand in the template as IRIs of this kind, until rows fill them in.
_HOLE: Final = "x-column:"

#: Characters that an IRI cannot have.
_FORBIDDEN: Final = re.compile(r"[\x00-\x20<>\"{}|\\^`]")

Fill = Callable[[Mapping[str, Any]], str | None]


def events(
    rows: DataFrame,
    *,
    stream: str,
    time: str | Column,
    template: str,
    graph: str | None = None,
    n: str | Column | None = None,
) -> DataFrame:
    """The rows of a DataFrame, in batches or a stream, as events for ``matches``.

    ``stream``: the IRI of their stream. ``time``: a column of timestamps or dates (then the clock is
    ``instants``) or integers (``ticks``). ``template``: Turtle in which ``?column`` stands for a value of
    a column as a literal, and ``{column}`` inside an IRI for its text; a triple that needs a null is left
    out. ``graph``: the IRI of an event's graph, with ``{column}`` in it. ``n``: a column that orders events
    of equal time, 0 otherwise. Raises SourceError for a template that does not parse, or names no column.
    """
    known = set(rows.columns)
    fills = [tuple(map(_fill, triple)) for triple in _triples(template, known)]
    name = None if graph is None else _filled_iri(graph)
    for column in _PART.findall(graph or ""):
        _check(column, known)
    at = F.col(time) if isinstance(time, str) else time
    kind = rows.select(at.alias("at")).schema["at"].dataType
    if isinstance(kind, IntegralType):
        clock, count = Clock.TICKS, at.cast("bigint")
    elif isinstance(kind, TimestampType | TimestampNTZType | DateType):
        clock, count = Clock.INSTANTS, F.unix_micros(at.cast("timestamp"))
    else:
        raise SourceError(f"time= is a column of {kind.simpleString()}: give timestamps, dates or integers")
    order = F.lit(0).cast("bigint") if n is None else (F.col(n) if isinstance(n, str) else n).cast("bigint")
    wanted = {column for column in known if f"?{column}" in template or f"${column}" in template}
    wanted |= {*_PART.findall(template), *_PART.findall(graph or "")}
    chosen = rows.select(
        count.alias("__time"), order.alias("__n"), *(F.col(column) for column in sorted(wanted))
    )

    def lift(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield _lifted(batch, stream, clock, fills, name)

    return chosen.mapInArrow(lift, EVENTS)


def _lifted(
    batch: pa.RecordBatch,
    stream: str,
    clock: Clock,
    fills: list[tuple[Fill, ...]],
    name: Fill | None,
) -> pa.RecordBatch:
    payloads, graphs = [], []
    for row in batch.to_pylist():
        lines = []
        for triple in fills:
            parts = [fill(row) for fill in triple]
            if None not in parts:
                lines.append(" ".join(map(str, parts)) + " .\n")
        payloads.append("".join(lines).encode())
        graph = name(row) if name else None
        graphs.append(graph[1:-1] if graph else None)
    size = len(payloads)
    return pa.RecordBatch.from_arrays(
        [
            pa.array([stream] * size, pa.string()),
            pa.array([clock.value] * size, pa.string()),
            batch.column("__time"),
            batch.column("__n"),
            pa.array(graphs, pa.string()),
            pa.array(payloads, pa.binary()),
            pa.nulls(size, pa.string()),
        ],
        schema=ARROW,
    )


def _triples(template: str, known: set[str]) -> list[tuple[str, str, str]]:
    """The triples of a template in N-Triples, with holes in them."""

    def hollow(token: re.Match[str]) -> str:
        text = token[0]
        if text[0] in "?$":
            _check(text[1:], known)
            return f"<{_HOLE}{text[1:]}>"
        if text[0] == "<":
            for column in _PART.findall(text):
                _check(column, known)
            return _PART.sub(rf"%7B\1%7D{_HOLE}", text)
        return text

    try:
        quads = list(parse(_TOKEN.sub(hollow, template), format=RdfFormat.TURTLE))
    except SyntaxError as error:
        raise SourceError(f"the template is not Turtle with ?column and {{column}}: {error.msg}") from None
    if not quads:
        raise SourceError("the template has no triple")
    return [(str(quad.subject), str(quad.predicate), str(quad.object)) for quad in quads]


def _check(column: str, known: set[str]) -> None:
    if column not in known:
        raise SourceError(f"the template names a column {column!r}: there are {', '.join(sorted(known))}")


def _fill(text: str) -> Fill:
    """What makes a term of a row, from the term with its holes."""
    if text.startswith(f"<{_HOLE}"):
        column = text[len(_HOLE) + 1 : -1]
        return lambda row: _literal(row[column])
    if f"%7D{_HOLE}" in text:
        return _filled_iri(re.sub(rf"%7B(\w+)%7D{_HOLE}", r"{\1}", text)[1:-1])
    return lambda _: text


def _filled_iri(text: str) -> Fill:
    parts = _PART.split(text)

    def fill(row: Mapping[str, Any]) -> str | None:
        values = [row[part] if i % 2 else part for i, part in enumerate(parts)]
        if any(value is None for value in values):
            return None
        return f"<{_FORBIDDEN.sub(_escaped, ''.join(map(str, values)))}>"

    return fill


def _escaped(character: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in character[0].encode())


def _literal(value: Any) -> str | None:
    """A value of Spark as a literal; None for null."""
    match value:
        case None:
            return None
        case bool():
            return str(Literal(value))
        case Decimal():
            return str(Literal(f"{value:f}", datatype=NamedNode(_XSD + "decimal")))
        case datetime():
            moment = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
            text = moment.isoformat().replace("+00:00", "Z")
            return str(Literal(text, datatype=NamedNode(_XSD + "dateTime")))
        case date():
            return str(Literal(value.isoformat(), datatype=NamedNode(_XSD + "date")))
        case int() | float() | str():
            return str(Literal(value))
    raise SourceError(f"a column of {type(value).__name__} cannot be a literal: cast it")
