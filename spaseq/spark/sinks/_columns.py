"""Answers as columns of Spark's types: parts of every match, and variables; or as events again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # Spark's own name for it
from pyspark.sql.types import DataType, StringType, StructType, TimestampType, _parse_datatype_string

from spaseq.errors import EngineError
from spaseq.events import Clock
from spaseq.language import as_query
from spaseq.language.syntax import Construct, Query, RegisterKind
from spaseq.results.writers._base import columns
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

#: Variables as columns: DDL (``"price double, k string"``), a schema, types by name, or a list of names for
#: text. The type ``"{column}"`` names a column of the template that made the events.
Columns = str | StructType | Mapping[str, str | DataType] | Sequence[str]


def expanded(found: DataFrame, clock: Clock | str) -> DataFrame:
    """Return the matches among answers, with a column for each part; ``clock``: that of the events."""
    matches = found.where(F.col("kind") == MATCH)
    parsed = matches.withColumn("m", F.from_json("json", _LINE))
    kind = "BIGINT" if Clock(clock) is Clock.TICKS else "TIMESTAMP"
    return parsed.select(
        F.col("m.start").cast(kind).alias("start"),
        # The column ``end`` of the answers, if there, is an event time.
        "end" if "end" in found.columns else F.col("m.end").cast(kind).alias("end"),
        "m.partition",
        "m.events",
        "m.bindings",
        "m.graph",
        "json",
    )


#: Texts with no escapes except those of characters that an IRI must not contain.
_ESCAPED: Final = r"^([^%]|%([01][0-9A-F]|20|22|3C|3E|5C|5E|60|7B|7C|7D))*$"


@dataclass(frozen=True, slots=True)
class Key:
    """A column of a template, and the text around it in the terms that are made of this column alone."""

    kind: DataType
    around: tuple[tuple[str, str], ...]

    def of(self, term: Column) -> Column:
        """Return the column's value in the text of a term; null for a term that is not made of it."""
        found: Column = F.lit(None)
        for before, after in sorted(self.around, key=lambda both: len("".join(both))):
            inside = F.length(term) - len(before) - len(after)
            inner = term.substr(F.lit(len(before) + 1), inside)
            fits = term.startswith(before) & term.endswith(after)
            found = F.when(fits & (inside >= 0), inner).otherwise(found)
        plain = F.url_decode(F.replace(found, F.lit("+"), F.lit("%2B")))
        return F.when(found.rlike(_ESCAPED), plain).otherwise(found)


def types_of(
    given: Columns, query: Query, keys: Mapping[str, Key] | None = None
) -> dict[str, DataType | Key]:
    """Return the variables that are to be columns, and their types; ``keys`` are the template's columns.

    Raises EngineError for a name that the query does not select or that is a column of every match. Also
    raises it for a type that Spark does not have.
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
    return {name: _kind_of(kind, keys) if isinstance(kind, str) else kind for name, kind in given.items()}


def _kind_of(text: str, keys: Mapping[str, Key] | None) -> DataType | Key:
    if not (text.startswith("{") and text.endswith("}")):
        return _type_of(text, "write a type of Spark's, such as double")
    if keys is None:
        raise EngineError(
            f"columns=: {text} needs what events(…) returned, unchanged: filter before events(…)"
        )
    if text[1:-1] not in keys:
        known = ", ".join(f"{{{name}}}" for name in sorted(keys)) or "no column"
        raise EngineError(f"columns=: no term of the template is made of {text} alone, but of {known}")
    return keys[text[1:-1]]


def _type_of(text: str, hint: str) -> DataType:
    """Return the type that a text in DDL names."""
    try:
        # DataType.fromDDL is of PySpark 4.0.
        return _parse_datatype_string(text)
    except PySparkException:
        raise EngineError(f"columns=: {text.removeprefix('struct')!r} is not read: {hint}") from None


def typed(found: DataFrame, wanted: Mapping[str, DataType | Key]) -> DataFrame:
    """Return a row for each of ``bindings``, with the wanted variables as further columns.

    A value that is unbound or not of the wanted type is null; ``bindings`` has the original.
    """
    rows = found.withColumn(_ROW, F.explode(F.from_json("bindings", _ROWS)))
    values = {}
    for name, kind in wanted.items():
        text = F.try_element_at(_ROW, F.lit(name))["value"]
        values[name] = kind.of(text) if isinstance(kind, Key) else text
    rows = rows.withColumns(values).drop(_ROW)
    types = {name: kind.kind if isinstance(kind, Key) else kind for name, kind in wanted.items()}
    # By their text: Column.try_cast is of PySpark 4.0.
    casts = {name: F.expr(f"try_cast(`{name}` AS {kind.simpleString()})") for name, kind in types.items()}
    return rows.withColumns(casts)


# --- derived events: matches of REGISTER STREAM for other queries ------------------------------------

#: A label of a blank node, in a line.
_LABEL: Final = r'(_:|"bnode","value":")\w+'

#: The key in the metadata of the column ``n`` of derived events.
_DERIVED: Final = "spaseq.derived"


def derived(found: DataFrame, query: Query | str, *, clock: Clock | str | None = None) -> DataFrame:
    """Return the events that a REGISTER STREAM … CONSTRUCT query derives from matches, for ``matches``.

    ``found``: the query's matches (see ``matches``), in batches or as a stream. ``clock``: by default the one
    that their column ``end`` shows, where integers are ticks. The time of an event is the end of its match.
    Events of equal time are ordered by a hash of their matches, so that the order is the same in every run.

    In a stream, write the events, for example to a topic (``kafka_messages``), and let another streaming
    query read them there. Within one streaming query all of them would be late. Raises EngineError if the
    query makes no stream, and if ``clock`` is not that of the matches.
    """
    prepared = as_query(query)
    register = prepared.register
    if (
        register is None
        or register.kind is not RegisterKind.STREAM
        or not isinstance(prepared.form, Construct)
    ):
        raise EngineError("the query makes no stream: it must be REGISTER STREAM <IRI> AS CONSTRUCT …")
    known = Clock.INSTANTS if isinstance(found.schema["end"].dataType, TimestampType) else Clock.TICKS
    if clock is not None and Clock(clock) is not known:
        raise EngineError(f"clock={str(clock)!r}, but the times of these matches are {known}")
    clock = known
    end = F.col("end") if clock is Clock.TICKS else F.unix_micros("end")
    columns = {
        "stream": F.lit(register.iri.value),
        "clock": F.lit(clock.value),
        "time": end.cast("bigint"),
        # The hash leaves out labels of blank nodes, which differ in each run. Numbers must not be negative.
        "n": F.shiftrightunsigned(F.xxhash64(F.regexp_replace("json", _LABEL, "$1")), 1),
        "graph": F.lit(None).cast("string"),
        "payload": F.col("graph").cast("binary"),
        "bad": F.lit(None).cast("string"),
    }
    events = found.select(*(column.alias(name) for name, column in columns.items()))
    return events.withMetadata("n", {_DERIVED: True}) if found.isStreaming else events


def require_read(events: DataFrame) -> None:
    """Raise EngineError for a stream that ``derived`` has made in the same streaming query."""
    if events.isStreaming and "n" in events.columns and events.schema["n"].metadata.get(_DERIVED):
        raise EngineError(
            "these events are made of matches by the same streaming query of Spark's, and would all be late: "
            "write them to a topic (kafka_messages) or to files, and read them from there"
        )
