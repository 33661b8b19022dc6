"""What REGISTER STREAM makes of matches: events that other queries read."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # Spark's own name for it
from pyspark.sql.types import TimestampType

from spaseq.errors import EngineError
from spaseq.events import Clock
from spaseq.language import as_query
from spaseq.language.syntax import Construct, Query, RegisterKind

#: A label of a blank node, in a line.
_LABEL: Final = r'(_:|"bnode","value":")\w+'

#: What the metadata of the column ``n`` say of derived events.
_DERIVED: Final = "spaseq.derived"


def derived(found: DataFrame, query: Query | str, *, clock: Clock | str | None = None) -> DataFrame:
    """The events that the matches of a REGISTER STREAM … CONSTRUCT query make, as ``matches`` takes them.

    ``found`` are its matches (see ``matches``), in batches or as a stream, on the ``clock`` that their column
    ``end`` says: integers are ticks. An event has the time at which its match ends; those of equal time are
    ordered by a hash of their matches, so that their order is the same in every run. A stream of them is read
    by another query of Spark's, from where it was written, such as a topic (``kafka_messages``): within one,
    all of them would be late. Raises EngineError for a query that makes no stream, and for another ``clock``
    than that of the matches.
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
        # Without the labels of blank nodes, which are new ones in each run; and no number is negative.
        "n": F.shiftrightunsigned(F.xxhash64(F.regexp_replace("json", _LABEL, "$1")), 1),
        "graph": F.lit(None).cast("string"),
        "payload": F.col("graph").cast("binary"),
        "bad": F.lit(None).cast("string"),
    }
    events = found.select(*(column.alias(name) for name, column in columns.items()))
    return events.withMetadata("n", {_DERIVED: True}) if found.isStreaming else events


def require_read(events: DataFrame) -> None:
    """Raises EngineError for a stream that ``derived`` has made in the same query."""
    if events.isStreaming and "n" in events.columns and events.schema["n"].metadata.get(_DERIVED):
        raise EngineError(
            "these events are made of matches by the same streaming query of Spark's, and would all be late: "
            "write them to a topic (kafka_messages) or to files, and read them from there"
        )
