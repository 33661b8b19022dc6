"""Answers as columns: what every match has, and what SELECT binds as Spark's types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Final

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # Spark's own name for it
from pyspark.sql.types import DataType, StringType, StructType

from spaseq.errors import EngineError
from spaseq.events import Clock
from spaseq.language.syntax import Query
from spaseq.results.writers._columns import columns
from spaseq.spark.sinks._lines import MATCH

_TERM: Final = "STRUCT<type: STRING, value: STRING, datatype: STRING, `xml:lang`: STRING>"
_EVENT: Final = "STRUCT<stream: STRING, graph: STRING, time: STRING, n: BIGINT>"
_LINE: Final = (
    f"start STRING, end STRING, partition MAP<STRING, {_TERM}>, events MAP<STRING, ARRAY<{_EVENT}>>, "
    "bindings STRING, graph STRING"
)
_ROWS: Final = "ARRAY<MAP<STRING, STRUCT<value: STRING>>>"
_ROW: Final = "spaseq row"

#: The columns of matches.
_EXPANDED: Final = ("start", "end", "partition", "events", "bindings", "graph", "json")

#: Variables as columns: as DDL (``"price double, k string"``), a schema, types by name, or names of texts.
Columns = str | StructType | Mapping[str, str | DataType] | Sequence[str]


def expanded(found: DataFrame, clock: Clock | str) -> DataFrame:
    """The matches among answers, in columns."""
    parsed = found.where(F.col("kind") == MATCH).select(F.from_json("json", _LINE).alias("m"), "json")
    kind = "BIGINT" if Clock(clock) is Clock.TICKS else "TIMESTAMP"
    return parsed.select(
        F.col("m.start").cast(kind).alias("start"),
        F.col("m.end").cast(kind).alias("end"),
        "m.partition",
        "m.events",
        "m.bindings",
        "m.graph",
        "json",
    )


def types_of(given: Columns, query: Query) -> dict[str, DataType]:
    """The variables that are to be columns, and their types.

    Raises EngineError for a name that the query does not select, or that every match has, and for a type
    that is not Spark's.
    """
    if isinstance(given, str):
        schema = _type_of(f"struct<{given}>", "name each column and its type, as in 'price double, k string'")
        assert isinstance(schema, StructType)
        given = schema
    if isinstance(given, StructType):
        given = {field.name: field.dataType for field in given.fields}
    if not isinstance(given, Mapping):
        given = dict.fromkeys(given, StringType())
    known = columns(query)
    for name in given:
        if name not in known:
            near = get_close_matches(name, known, 1)
            selected = ", ".join(f"?{one}" for one in known)
            hint = f"did you mean {near[0]!r}?" if near else f"it selects {selected or 'none'}"
            raise EngineError(f"columns=: the query selects no ?{name}; {hint}")
        if name in _EXPANDED:
            raise EngineError(
                f"columns=: {name!r} is a column of every match: rename it, SELECT (?{name} AS ?other)"
            )
    hint = "write a type of Spark's, such as double"
    return {name: _type_of(kind, hint) if isinstance(kind, str) else kind for name, kind in given.items()}


def _type_of(text: str, hint: str) -> DataType:
    """A type that is written in DDL."""
    try:
        return DataType.fromDDL(text)
    except PySparkException:
        raise EngineError(f"columns=: {text.removeprefix('struct')!r} is not read: {hint}") from None


def typed(found: DataFrame, wanted: Mapping[str, DataType]) -> DataFrame:
    """A row for each row of ``bindings``, with further columns.

    A value that is not of its type, or not bound, is null; ``bindings`` has it as it is.
    """
    rows = found.withColumn(_ROW, F.explode(F.from_json("bindings", _ROWS)))
    values = {
        name: F.try_element_at(_ROW, F.lit(name))["value"].try_cast(kind) for name, kind in wanted.items()
    }
    return rows.withColumns(values).drop(_ROW)
