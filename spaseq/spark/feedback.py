"""What REGISTER STREAM makes of matches: events that other queries read."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # Spark's own name for it

from spaseq.errors import EngineError
from spaseq.events import Clock
from spaseq.language import prepare
from spaseq.language.syntax import Construct, Query, RegisterKind


def derived(found: DataFrame, query: Query | str, *, clock: Clock | str = Clock.INSTANTS) -> DataFrame:
    """The events that the matches of a REGISTER STREAM … CONSTRUCT query make, as ``matches`` takes them.

    ``found`` are its matches (see ``matches``), on that ``clock``. An event has the time at which its match
    ends; those of equal time come in the order of the rows.
    """
    prepared = prepare(query) if isinstance(query, str) else query
    register = prepared.register
    if (
        register is None
        or register.kind is not RegisterKind.STREAM
        or not isinstance(prepared.form, Construct)
    ):
        raise EngineError("the query makes no stream: it must be REGISTER STREAM <IRI> AS CONSTRUCT …")
    clock = Clock(clock)
    end = F.col("end") if clock is Clock.TICKS else F.unix_micros("end")
    columns = {
        "stream": F.lit(register.iri.value),
        "clock": F.lit(clock.value),
        "time": end.cast("bigint"),
        "n": F.monotonically_increasing_id(),
        "graph": F.lit(None).cast("string"),
        "payload": F.col("graph").cast("binary"),
        "bad": F.lit(None).cast("string"),
    }
    return found.select(*(column.alias(name) for name, column in columns.items()))
