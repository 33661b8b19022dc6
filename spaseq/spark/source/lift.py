"""A user's columns as events, by a template of triples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
from pyoxigraph import NamedNode
from pyspark.accumulators import Accumulator
from pyspark.errors import PySparkTypeError
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # Spark's own name for it
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import DateType, IntegralType, StructType, TimestampNTZType, TimestampType

from spaseq.errors import SourceError
from spaseq.events import Clock, EventBatch, batch_of
from spaseq.limits import Limits
from spaseq.sources import BadEvent
from spaseq.sources.columns.holes import ColumnLiteral, Iri, Template, check_types
from spaseq.sources.columns.table import TableLifter, shown
from spaseq.spark.sessions import require_classic
from spaseq.spark.sinks._columns import Key
from spaseq.spark.source._rows import Behind, integers, remembered
from spaseq.spark.source._told import Told, hearing, knowing, telling_ties
from spaseq.terms.dictionary import Dictionary

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
    """Return the rows of a DataFrame, in batches or a stream, as events for ``matches``.

    ``stream``: the IRI of their stream. ``time``: a column of timestamps or dates (then the clock is
    ``instants``) or integers (``ticks``). ``template``: triples in Turtle with places for columns.
    ``?column`` is the column's value as a literal; ``{column}`` inside an IRI is its text. A field of a
    struct is ``?st.x`` or ``{st.x}``, a name with spaces ``?{my column}``. Triples that need a null are left
    out. ``graph``: the IRI of an event's graph; it may contain ``{column}``.

    ``n``: a column that orders events of equal time. Without it, they are ordered by a hash of the template's
    columns, and a warning counts them. A row without a time, or of which no triple can be made, is a dead
    letter.

    Raises SourceError if the template does not parse, names an unknown column, or one of arrays, maps or
    structs.
    """
    require_classic(rows)
    known = _named(rows.schema)
    lifted = Template(template, known, graph)
    at = known.get(time, F.col(time)) if isinstance(time, str) else time
    kind = rows.select(at.alias("at")).schema["at"].dataType
    if isinstance(kind, IntegralType):
        clock, count = Clock.TICKS, at.cast("bigint")
    elif isinstance(kind, TimestampType | TimestampNTZType | DateType):
        clock, count = Clock.INSTANTS, F.unix_micros(at.cast("timestamp"))
    else:
        raise SourceError(f"time= is a column of {kind.simpleString()}: give timestamps, dates or integers")
    names = tuple(sorted(lifted.columns))
    # Spark would read a name with a dot as a field of a struct.
    columns = [known[name].alias(f"c{i}") for i, name in enumerate(names)]
    try:
        kinds = to_arrow_schema(rows.select(*columns).schema)
        check_types(lifted, pa.schema(field.with_name(n) for field, n in zip(kinds, names, strict=True)))
    except PySparkTypeError as error:
        raise SourceError(f"the template names a column of which no term can be made: {error}") from None
    told: Accumulator[Told] | None = None
    if n is None:
        order, told = _hashed(columns), hearing(rows, _TIES)
    else:
        order = (known.get(n, F.col(n)) if isinstance(n, str) else n).cast("bigint")
    chosen = rows.select(count.alias("__time"), order.alias("__n"), *columns)
    kinds_by_name = zip(names, chosen.schema.fields[2:], strict=True)
    keys = {name: Key(field.dataType, _around(lifted, name)) for name, field in kinds_by_name}
    keys = {name: key for name, key in keys.items() if key.around}
    behind = Behind(chosen, Lifting(stream, clock, lifted, names, told).read, lambda: [chosen], keys)
    return remembered(behind, knowing(behind.events(), clock, [stream]))


def _named(schema: StructType, before: str = "", name: str = "") -> dict[str, Column]:
    """Return columns by name, and fields of structs as ``a.b``; a column with that name has precedence."""
    found: dict[str, Column] = {}
    for field in schema.fields:
        quoted = f"{before}`{field.name.replace('`', '``')}`"
        found[f"{name}{field.name}"] = F.col(quoted)
        if isinstance(field.dataType, StructType):
            found = _named(field.dataType, f"{quoted}.", f"{name}{field.name}.") | found
    return found


def _around(template: Template, column: str) -> tuple[tuple[str, str], ...]:
    """Return the text before and after a column, for each kind of term made of this column alone."""
    found: dict[tuple[str, str], None] = {}
    slots = [slot for triple in template.triples for slot in triple]
    for slot in (*slots, template.graph):
        if isinstance(slot, Iri) and slot.columns == (column,):
            found[slot.parts[0], slot.parts[2]] = None
        elif isinstance(slot, ColumnLiteral) and slot.column == column:
            found["", ""] = None
    return tuple(found)


def _hashed(columns: Sequence[Column]) -> Column:
    """Return a hash of the row as arrival number: independent of partitioning, and exact in JSON."""
    return F.xxhash64(*columns).bitwiseAND(F.lit((1 << 53) - 1)) if columns else F.lit(0).cast("bigint")


@dataclass(frozen=True, slots=True)
class Lifting:
    """How rows become events; picklable. ``names``: the names of the columns after ``__time`` and ``__n``."""

    stream: str
    clock: Clock
    template: Template
    names: tuple[str, ...]
    told: Accumulator[Told] | None

    def read(
        self, rows: pa.RecordBatch, dictionary: Dictionary, letters: list[BadEvent]
    ) -> Iterator[EventBatch]:
        """Yield the events of some rows, like ``_rows.read_rows``."""
        if self.told is not None:
            telling_ties(rows, self.told)
        rows = rows.rename_columns(["__time", "__n", *self.names])
        with dictionary.lock:
            lifted = TableLifter(self.template, dictionary, Limits()).lift(rows)
            for name in ("__n", "__time"):
                missing = np.asarray(rows.column(name).is_null())
                lifted.reasons.insert(0, (missing, f"its {name.strip('_')} is null"))
            wrong = lifted.wrong()
            good = np.ones(len(rows), dtype=np.bool_)
            good[list(wrong)] = False
            offset, triples = lifted.chosen(good)
            stream = np.full(int(good.sum()), dictionary.pin(NamedNode(self.stream)), dtype=np.int64)
            time, n = integers(rows, "__time")[good], integers(rows, "__n")[good]
            of_events = stream, lifted.graph[good], time, n, offset
            found = batch_of(dictionary, self.clock, of_events, triples)
        for row, reason in wrong.items():
            place = f"event {rows.column('__n')[row]}"
            letters.append(BadEvent(self.stream, place, reason, shown(rows, row)))
        if len(found):
            yield found
