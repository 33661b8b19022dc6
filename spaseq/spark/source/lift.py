"""A user's columns lifted to events, by a template of triples."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.accumulators import Accumulator
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # Spark's own name for it
from pyspark.sql.types import DateType, IntegralType, TimestampNTZType, TimestampType

from spaseq.errors import SourceError
from spaseq.events import Clock
from spaseq.sources.columns.holes import Constant, Template
from spaseq.spark.source._rows import ARROW, EVENTS
from spaseq.spark.source._told import Told, hearing, knowing, telling_ties

_TIES: Final = (
    "{count} events or more have the time of others, and no n= says which comes first: they are ordered by a "
    "hash of their columns"
)


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
    of equal time; without, a hash of what the template asks for does, and a warning tells of such events.
    Raises SourceError for a template that does not parse, or names no column.
    """
    lifted = Template(template, rows.columns, graph)
    at = F.col(time) if isinstance(time, str) else time
    kind = rows.select(at.alias("at")).schema["at"].dataType
    if isinstance(kind, IntegralType):
        clock, count = Clock.TICKS, at.cast("bigint")
    elif isinstance(kind, TimestampType | TimestampNTZType | DateType):
        clock, count = Clock.INSTANTS, F.unix_micros(at.cast("timestamp"))
    else:
        raise SourceError(f"time= is a column of {kind.simpleString()}: give timestamps, dates or integers")
    columns = [F.col(column) for column in sorted(lifted.columns)]
    told: Accumulator[Told] | None = None
    if n is None:
        order, told = _hashed(columns), hearing(rows, _TIES)
    else:
        order = (F.col(n) if isinstance(n, str) else n).cast("bigint")
    chosen = rows.select(count.alias("__time"), order.alias("__n"), *columns)

    def lift(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if told is not None:
                telling_ties(batch, told)
            yield _lifted(batch, stream, clock, lifted)

    return knowing(chosen.mapInArrow(lift, EVENTS), clock, [stream])


def _hashed(columns: Sequence[Column]) -> Column:
    """An arrival number by what a row says: the same however rows are spread, and exact as JSON reads it."""
    return F.xxhash64(*columns).bitwiseAND(F.lit((1 << 53) - 1)) if columns else F.lit(0).cast("bigint")


def _lifted(batch: pa.RecordBatch, stream: str, clock: Clock, template: Template) -> pa.RecordBatch:
    size = len(batch)
    payload = pa.array([""] * size, pa.string())
    for triple in template.triples:
        terms = [slot.text if isinstance(slot, Constant) else slot.texts(batch) for slot in triple]
        line = pc.binary_join_element_wise(*terms, ".\n", " ")
        payload = pc.binary_join_element_wise(payload, pc.fill_null(line, ""), "")
    graphs = pa.nulls(size, pa.string())
    if template.graph is not None:
        graphs = pc.utf8_slice_codeunits(template.graph.texts(batch), 1, -1)
    return pa.RecordBatch.from_arrays(
        [
            pa.array([stream] * size, pa.string()),
            pa.array([clock.value] * size, pa.string()),
            batch.column("__time"),
            batch.column("__n"),
            graphs,
            pc.cast(payload, pa.binary()),
            pa.nulls(size, pa.string()),
        ],
        schema=ARROW,
    )
